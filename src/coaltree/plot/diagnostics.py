"""``plot_traces`` and ``plot_evidence``: diagnostics of Markov chains and of sequential Monte Carlo."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ..errors import InputError
from ..inference.results import MCMCResult, SMCResult
from .style import FONT, SMALL_FONT, check_panels, distinct_colors, hide_spines, new_panels, require_matplotlib

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_TRACE_PANELS = ("log_joint", "root_height")
_EVIDENCE_PANELS = ("evidence", "ess")
_MAX_NAMED = 12  # chains or runs in a legend
_SHADE = "#E4E4E4"

Result = TypeVar("Result", MCMCResult, SMCResult)


def plot_traces(result: MCMCResult, *, axes: Mapping[str, Axes] | None = None) -> dict[str, Axes]:
    """Draw the log joint density and the root height of every Markov chain, sample by sample.

    After the warm-up, which is shaded, converged chains look alike and have no trend.

    Parameters
    ----------
    result : MCMCResult
        The result of :func:`mcmc`, or a model fitted with ``inference="mcmc"``.
    axes : mapping of "log_joint" and "root_height" to matplotlib Axes, optional
        Where to draw; by default a new pyplot figure.

    Returns
    -------
    dict of str to matplotlib Axes

    Raises
    ------
    MissingDependencyError
        If matplotlib is not installed.
    InputError
        If ``result`` has no traces of Markov chains.

    Examples
    --------
    >>> import coaltree as ct
    >>> result = ct.mcmc([[0.0], [0.1], [3.0], [3.2]], ct.Brownian(), n_samples=500, random_state=0)
    >>> axes = ct.plot_traces(result)  # doctest: +SKIP
    """
    checked = _check_result(result, MCMCResult, "mcmc")
    panels = check_panels(axes, _TRACE_PANELS)
    require_matplotlib()
    panels = new_panels(_TRACE_PANELS, (6.5, 5.0)) if panels is None else panels
    colors = distinct_colors(checked.n_chains)
    for name, ax in panels.items():
        for k, trace in enumerate(checked.traces[name]):
            ax.plot(
                np.arange(len(trace)),
                trace,
                color=colors[k],
                linewidth=0.7,
                alpha=0.8,
                label=f"chain {k + 1}",
            )
        ax.axvspan(0, checked.warmup, color=_SHADE, linewidth=0, zorder=0)
        ax.set_ylim(_axis_limits(checked, name))
        ax.margins(x=0.01)
        hide_spines(ax, "top", "right")
        ax.locator_params(axis="x", integer=True)
    least = checked.min_effective_samples
    if np.isfinite(least):  # NaN if there are too few samples
        title = f"R-hat {max(checked.r_hat.values()):.3f}, {least:,.0f} effective samples"
        panels["log_joint"].set_title(title, loc="left", fontsize=FONT + 1)
    panels["log_joint"].set_ylabel("log joint density")
    panels["root_height"].set_ylabel("root height")
    panels["root_height"].set_xlabel("sample (shaded: warm-up)")
    if 1 < checked.n_chains <= _MAX_NAMED:
        legend = panels["log_joint"].legend(
            frameon=False,
            fontsize=SMALL_FONT,
            loc="upper left",
            bbox_to_anchor=(1.0, 1.0),  # chains fill the axes
        )
        for line in legend.get_lines():
            line.set_linewidth(1.5)
    return panels


def _axis_limits(result: MCMCResult, name: str) -> tuple[float, float]:
    """Return the limits of an axis: the range after the warm-up, and the same length below and above."""
    every = result.traces[name]
    low, high = np.min(samples := every[:, result.warmup :]), np.max(samples)
    margin = (high - low) or 1.0
    low, high = max(every.min(), low - margin), min(every.max(), high + margin)
    return float(low - 0.05 * margin), float(high + 0.05 * margin)


def plot_evidence(result: SMCResult, *, axes: Mapping[str, Axes] | None = None) -> dict[str, Axes]:
    """Draw the log evidence and the effective sample size of every run of sequential Monte Carlo, merge by merge.

    Runs that diverge have too few particles. Where the effective size falls to a few particles, all earlier merges
    depend on these few.

    Parameters
    ----------
    result : SMCResult
        The result of :func:`smc`, or a model fitted with ``inference="smc"``.
    axes : mapping of "evidence" and "ess" to matplotlib Axes, optional
        Where to draw; by default a new pyplot figure.

    Returns
    -------
    dict of str to matplotlib Axes
        ``"evidence"`` has the log evidence so far, ``"ess"`` the effective sample size with a dot where particles were
        resampled.

    Raises
    ------
    MissingDependencyError
        If matplotlib is not installed.
    InputError
        If ``result`` has no diagnostics of sequential Monte Carlo.

    Examples
    --------
    >>> import coaltree as ct
    >>> result = ct.smc([[0.0], [0.1], [3.0], [3.2]], ct.Brownian(), n_runs=2, random_state=0)
    >>> axes = ct.plot_evidence(result)  # doctest: +SKIP
    """
    checked = _check_result(result, SMCResult, "smc")
    panels = check_panels(axes, _EVIDENCE_PANELS)
    require_matplotlib()
    panels = new_panels(_EVIDENCE_PANELS, (6.0, 5.0)) if panels is None else panels
    n_runs, n_merges = checked.run_ess.shape
    merges = np.arange(1, n_merges + 1)
    runs = zip(checked.log_evidence_traces, checked.run_ess, checked.resampled, strict=True)
    colors = distinct_colors(n_runs)
    for k, (evidences, ess, resampled) in enumerate(runs):
        style: dict[str, Any] = {"color": colors[k], "linewidth": 1.2, "label": f"run {k}"}
        panels["evidence"].plot(merges, evidences, **style)
        panels["ess"].plot(merges, ess, **style)
        panels["ess"].plot(
            merges[resampled], ess[resampled], linestyle="none", marker="o", markersize=3, color=style["color"]
        )
    spread = "" if math.isnan(checked.log_evidence_se) else f" ± {checked.log_evidence_se:.2g}"
    panels["evidence"].set_title(f"log evidence {checked.log_evidence:.6g}{spread}", loc="left", fontsize=FONT + 1)
    panels["evidence"].set_ylabel("log evidence so far")
    panels["ess"].set_ylabel("effective sample size")
    panels["ess"].set_ylim(bottom=0.0)
    panels["ess"].set_xlabel("merge (dots: resampled)")
    for ax in panels.values():
        hide_spines(ax, "top", "right")
        ax.locator_params(axis="x", integer=True)
    if 1 < n_runs <= _MAX_NAMED:
        panels["evidence"].legend(frameon=False, fontsize=SMALL_FONT, ncols=-(-n_runs // 4))
    return panels


def _check_result(result: Any, kind: type[Result], inference: str) -> Result:
    sample = getattr(result, "sample_", result)
    if isinstance(sample, kind):
        return sample
    raise InputError(
        f"result is of type {type(result).__name__}; it must be the result of {inference}(), or a model fitted with "
        f"inference={inference!r}."
    )
