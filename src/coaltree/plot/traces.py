"""Traces of Markov chains: a picture, and files for Tracer and the like."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError
from ..inference.mcmc_result import MCMCResult
from .style import FONT, PALETTE, SMALL_FONT, checked_panels, hide_spines, need_matplotlib, new_panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PANELS = ("log_joint", "root_height")
_MOST_NAMED = 12
_SHADE = "#E4E4E4"


def plot_traces(result: MCMCResult, *, axes: Mapping[str, Axes] | None = None) -> dict[str, Axes]:
    """Draw the log joint density and the root height of every Markov chain, sample by sample.

    Chains that have converged look alike, without a trend, after the warm-up, which is shaded.

    Parameters
    ----------
    result : MCMCResult
        What :func:`mcmc` returns; or a model that was fitted with ``inference="mcmc"``, for its `sample_`.
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
        If ``result`` is no result of Markov chains.

    Examples
    --------
    >>> import coaltree as ct
    >>> result = ct.mcmc([[0.0], [0.1], [3.0], [3.2]], ct.Brownian(), n_samples=500, random_state=0)
    >>> axes = ct.plot_traces(result)  # doctest: +SKIP
    """
    found = _checked_result(result)
    panels = checked_panels(axes, _PANELS)
    need_matplotlib()
    panels = new_panels(_PANELS, (6.5, 5.0)) if panels is None else panels
    for name, ax in panels.items():
        for k, trace in enumerate(found.traces[name]):
            ax.plot(
                np.arange(len(trace)),
                trace,
                color=PALETTE[k % len(PALETTE)],
                linewidth=0.7,
                alpha=0.8,
                label=f"chain {k + 1}",
            )
        ax.axvspan(0, found.warmup, color=_SHADE, linewidth=0, zorder=0)
        ax.set_ylim(_shown_heights(found, name))
        ax.margins(x=0.01)
        hide_spines(ax, "top", "right")
        ax.locator_params(axis="x", integer=True)
    least = found.least_effective
    if np.isfinite(least):  # else there are too few samples to tell
        title = f"R-hat {max(found.r_hat.values()):.3f}, {least:,.0f} effective samples"
        panels["log_joint"].set_title(title, loc="left", fontsize=FONT + 1)
    panels["log_joint"].set_ylabel("log joint density")
    panels["root_height"].set_ylabel("root height")
    panels["root_height"].set_xlabel("sample (shaded: warm-up)")
    if 1 < found.n_chains <= _MOST_NAMED:
        legend = panels["log_joint"].legend(
            frameon=False,
            fontsize=SMALL_FONT,
            loc="upper left",
            bbox_to_anchor=(1.0, 1.0),  # chains fill the axes
        )
        for line in legend.get_lines():
            line.set_linewidth(1.5)
    return panels


def trace_log(result: MCMCResult, chain: int) -> str:
    """Write the traces of one chain after its warm-up, tab-separated and with a header, as Tracer reads them.

    Parameters that were drawn are among them.

    Parameters
    ----------
    result : MCMCResult
    chain : int
        Which one, counted from 0.

    Returns
    -------
    str
        ``state`` counts the samples of the chain, those of the warm-up too.
    """
    traces = result.traces | result.parameters
    lines = ["\t".join(("state", *traces))]
    kept = np.stack([trace[chain, result.warmup :] for trace in traces.values()], axis=1)
    lines += ["\t".join(map(repr, (state, *row))) for state, row in enumerate(kept.tolist(), result.warmup)]
    return "\n".join(lines) + "\n"


def _shown_heights(found: MCMCResult, name: str) -> tuple[float, float]:
    """Return what of an axis is shown: all that came after the warm-up, and as much below it and above."""
    every = found.traces[name]
    low, high = np.min(kept := every[:, found.warmup :]), np.max(kept)
    room = (high - low) or 1.0
    low, high = max(every.min(), low - room), min(every.max(), high + room)
    return float(low - 0.05 * room), float(high + 0.05 * room)


def _checked_result(result: Any) -> MCMCResult:
    found = getattr(result, "sample_", result)
    if isinstance(found, MCMCResult):
        return found
    raise InputError(
        f"result is of type {type(result).__name__}, which has no traces of chains; it must be what mcmc() returns, or a model "
        "fitted with inference='mcmc'."
    )
