"""From a fitted model to the facts of its report."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .. import __version__
from ..inference.mcmc_result import MCMCResult
from ..inference.smc_result import SMCResult
from ..persist.results import clusters_chosen_by
from ..plot.fitted_model import encoded_columns
from ..plot.visible_tree import MAX_VISIBLE_LEAVES
from ..process.predictions import Predictions
from ..report.facts import (
    CategoricalFacts,
    ChainFacts,
    ColumnFacts,
    Examined,
    PowerFacts,
    RealFacts,
    ReportFacts,
    SampleFacts,
)
from ..report.messages import MIN_ROWS
from ..report.page import check_packages, page
from ..table.encoding import Encoding
from ..table.messages import count
from .base import check_fitted
from .examining import OffTree, take_off

if TYPE_CHECKING:
    from .clusters import ClusterModel

FloatArray = NDArray[np.float64]


def report_page(model: ClusterModel, title: str | None = None) -> str:
    """Return the report on a fitted model as one HTML page.

    Parameters
    ----------
    model : CoalescentClustering, fitted
    title : str, optional
        Name of the table, for the heading.

    Returns
    -------
    str
    """
    check_fitted(model)
    check_packages()
    return page(report_facts(model, title))


def report_facts(model: ClusterModel, title: str | None = None) -> ReportFacts:
    """Collect what a report on a fitted model tells.

    Parameters
    ----------
    model : CoalescentClustering, fitted
        By its method ``fit``, or read from a file.
    title : str, optional

    Returns
    -------
    ReportFacts
    """
    encoding, tree = model.encoding_, model.tree_
    matrix, predictor = model._matrix, model._predictor
    asked = model._prediction_rows()
    holes, filled, off = np.zeros(0, dtype=np.intp), None, None
    if encoding.informative.any():
        if tree.n_leaves <= MAX_VISIBLE_LEAVES:
            holes = np.flatnonzero(np.isnan(matrix).any(axis=1))
        if len(holes):
            filled = model._expected_cells(matrix[holes])
        if tree.n_leaves >= MIN_ROWS:
            n_real = sum(column.real for column in encoded_columns(encoding))
            part = tree if len(asked) == tree.n_leaves else predictor.trees[0]
            off = take_off(part, predictor, n_real)
            off = off._replace(rows=asked[off.rows], opened=asked[off.opened])
    sample = getattr(model, "sample_", None)
    return ReportFacts(
        title=f"A table of {count(tree.n_leaves, 'row')}" if title is None else title,
        tree=tree,
        labels=np.where(model.labels_ < 0, model.n_clusters_, model.labels_),
        outliers=bool((model.labels_ < 0).any()),
        clusters_chosen_by=clusters_chosen_by(model),
        resolution=model.resolution,
        columns=_columns(encoding, matrix, None if off is None else off.cells, filled),
        unused=tuple(
            name for name, used in zip(encoding.column_names, encoding.informative.tolist(), strict=True) if not used
        ),
        holes=holes,
        examined=_examined(off),
        log_ratios=model.log_ratios_,
        parameters=model.prediction_parameters_,
        draws_parameters=model._asks_sample,
        search=getattr(model, "search_", None),
        neighbors_held=getattr(model, "neighbors_held_", None),
        remarks=tuple(model.remarks_),
        sample=None if sample is None else _chains(sample) if isinstance(sample, MCMCResult) else _sample(model),
        version=__version__,
    )


def _examined(off: OffTree | None) -> Examined:
    if off is None:
        none = np.zeros(0, dtype=np.intp)
        return Examined(none, np.zeros(0), 1, none, np.zeros(0, dtype=bool), 0)
    return Examined(*off[:-1])


def _columns(
    encoding: Encoding, matrix: FloatArray, hidden: Predictions | None, filled: Predictions | None
) -> tuple[ColumnFacts, ...]:
    """Return the columns that take part, in their own units and labels, real ones first as the matrix has them."""
    columns: list[ColumnFacts] = []
    n_real = 0
    for column in sorted(encoded_columns(encoding), key=lambda column: column.position):
        cells = matrix[:, column.position]
        if column.real:
            expected, expected_sd = _moments_of(hidden, n_real)
            mean, sd = _moments_of(filled, n_real)
            scale = column.scale
            columns.append(
                RealFacts(
                    column.name,
                    scale.decode(cells),
                    scale.decode(expected),
                    scale.decode_spread(expected, expected_sd),
                    scale.decode(mean),
                    scale.decode_spread(mean, sd),
                    column.time,
                    None if scale.power is None else PowerFacts(cells, expected, expected_sd, scale.unit_at(0.0)),
                )
            )
            n_real += 1
        else:
            k = column.position - n_real
            codes = np.where(np.isnan(cells), -1, cells).astype(np.intp)
            labels = tuple(map(str, column.categories))
            columns.append(CategoricalFacts(column.name, labels, codes, _shares_of(hidden, k), _shares_of(filled, k)))
    return tuple(columns)


def _moments_of(cells: Predictions | None, k: int) -> tuple[FloatArray, FloatArray]:
    return (np.zeros(0), np.zeros(0)) if cells is None else (cells.mean[:, k], cells.sd[:, k])


def _shares_of(cells: Predictions | None, k: int) -> FloatArray:
    return np.zeros((0, 0)) if cells is None else cells.probability[:, cells.start[k] : cells.start[k + 1]]


def _chains(sample: MCMCResult) -> ChainFacts:
    return ChainFacts(
        len(sample),
        sample.converged,
        sample.verdict,
        max(sample.r_hat.values()),
        min(sample.effective_samples.values()),
        sample.acceptance,
        sample.traces["log_joint"][:, sample.warmup :].tolist(),
    )


def _sample(model: ClusterModel) -> SampleFacts:
    sample = model.sample_
    found = SampleFacts(
        len(sample), sample.n_distinct, sample.effective_size, float(model.log_evidence_), None, None
    )  # a file keeps the trees and not how they were drawn
    if not isinstance(sample, SMCResult):
        return found
    error = sample.log_evidence_se
    least = float(sample.ess.min()) if len(sample.ess) else None
    return replace(found, log_evidence_se=None if math.isnan(error) else error, least_ess=least)
