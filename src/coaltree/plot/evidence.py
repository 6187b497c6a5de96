"""``plot_evidence``: diagnostics of sequential Monte Carlo."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError
from ..inference.results import SMCResult
from .style import FONT, PALETTE, SMALL_FONT, check_panels, hide_spines, new_panels, require_matplotlib

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PANELS = ("evidence", "ess")
_MAX_NAMED = 12


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
    found = _check_result(result)
    panels = check_panels(axes, _PANELS)
    require_matplotlib()
    panels = new_panels(_PANELS, (6.0, 5.0)) if panels is None else panels
    n_runs, n_merges = found.run_ess.shape
    merges = np.arange(1, n_merges + 1)
    runs = zip(found.log_evidence_traces, found.run_ess, found.resampled, strict=True)
    for k, (evidences, ess, resampled) in enumerate(runs):
        style: dict[str, Any] = {"color": PALETTE[k % len(PALETTE)], "linewidth": 1.2, "label": f"run {k}"}
        panels["evidence"].plot(merges, evidences, **style)
        panels["ess"].plot(merges, ess, **style)
        panels["ess"].plot(
            merges[resampled], ess[resampled], linestyle="none", marker="o", markersize=3, color=style["color"]
        )
    spread = "" if math.isnan(found.log_evidence_se) else f" ± {found.log_evidence_se:.2g}"
    panels["evidence"].set_title(f"log evidence {found.log_evidence:.6g}{spread}", loc="left", fontsize=FONT + 1)
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


def _check_result(result: Any) -> SMCResult:
    found = getattr(result, "sample_", result)
    if isinstance(found, SMCResult):
        return found
    raise InputError(
        f"result is of type {type(result).__name__}, which has no diagnostics of runs; pass the result of smc(), or a model "
        "fitted with inference='smc'."
    )
