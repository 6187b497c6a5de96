"""Build the report on a fitted model: collect its facts, then write the page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from .. import __version__
from ..inference.results import MCMCResult, SMCResult, describe_evidence
from ..plot.visible_tree import MAX_VISIBLE_LEAVES
from ..process.predictions import Predictions
from ..table.encoding import Encoding, encoded_columns
from ..table.labels import count
from ..workflow.comparison import ComparedModel, describe_comparison
from ..workflow.model import FittedModel
from .facts import (
    CategoricalFacts,
    ChainFacts,
    ColumnFacts,
    EvidenceFacts,
    HeldOutFacts,
    PowerFacts,
    RealFacts,
    ReportFacts,
    SampleFacts,
)
from .held_out import HeldOut, leave_out
from .page import check_packages, page
from .text import MIN_ROWS, MINUS, describe_partition

FloatArray = NDArray[np.float64]


def report_page(model: FittedModel, title: str | None = None, comparison: Sequence[ComparedModel] = ()) -> str:
    """Return the report on a fitted model as one HTML page.

    Parameters
    ----------
    model : FittedModel
        With flat clusters.
    title : str, optional
        Heading of the page; by default the number of rows.
    comparison : sequence of ComparedModel, default ()
        Models that were compared by their evidence, see `coaltree.workflow.comparison`.

    Returns
    -------
    str
    """
    check_packages()
    return page(report_facts(model, title, comparison))


def report_facts(model: FittedModel, title: str | None = None, comparison: Sequence[ComparedModel] = ()) -> ReportFacts:
    """Collect the facts of the report on a fitted model.

    Parameters
    ----------
    model : FittedModel
        With flat clusters.
    title : str, optional
    comparison : sequence of ComparedModel, default ()

    Returns
    -------
    ReportFacts
    """
    encoding, tree, matrix, labels = model.encoding, model.tree, model.matrix, model.labels
    assert labels is not None
    rows_with_missing, filled = np.zeros(0, dtype=np.intp), None
    if encoding.informative.any() and tree.n_leaves <= MAX_VISIBLE_LEAVES:
        rows_with_missing = np.flatnonzero(encoding.incomplete_cells(matrix).any(axis=1))
    if len(rows_with_missing):
        filled = model.expected_cells(matrix[rows_with_missing])
    held_out = _leave_out(model)
    return ReportFacts(
        title=f"A table of {count(tree.n_leaves, 'row')}" if title is None else title,
        tree=tree,
        labels=np.where(labels < 0, model.n_clusters, labels),
        outliers=bool((labels < 0).any()),
        clusters_chosen_by=model.clusters_chosen_by,
        cut_words=model.cut_words,
        columns=_columns(encoding, matrix, None if held_out is None else held_out.cells, filled),
        profile=model.profile,
        together=np.array([part[labels == k].mean() for k, part in enumerate(model.membership_chances.T)]),
        unused=tuple(
            name for name, used in zip(encoding.column_names, encoding.informative.tolist(), strict=True) if not used
        ),
        incomplete_rows=rows_with_missing,
        held_out=_held_out_facts(held_out),
        log_ratios=model.result.log_ratios,
        parameters=model.prediction_parameters,
        draws_parameters=model.uses_sample,
        search=model.search,
        neighbor_recall=model.neighbor_recall,
        remarks=tuple(model.remarks),
        sample=_sample(model),
        version=__version__,
        evidence=_evidence(comparison),
        partitions=tuple(map(describe_partition, model.partitions)),
    )


def _evidence(comparison: Sequence[ComparedModel]) -> EvidenceFacts | None:
    """Write a comparison of models, if there is one."""
    models = [
        (
            model.name,
            describe_evidence(model.log_evidence, model.standard_error, model.run_range).replace("-", MINUS),
            str(model.n_fitted),
            _describe_factor(model).replace("-", MINUS) if k else "0",
            model.words,
        )
        for k, model in enumerate(comparison)
    ]
    return EvidenceFacts(describe_comparison(comparison), models) if models else None


def _describe_factor(model: ComparedModel) -> str:
    """Write a log Bayes factor, with its standard error if it has one."""
    error = "" if math.isnan(model.bayes_factor_error) else f" ± {model.bayes_factor_error:.1g}"
    return f"{model.log_bayes_factor:.1f}{error}"


def _leave_out(model: FittedModel) -> HeldOut | None:
    """Leave rows out of the trees for predictions, if there are enough rows for that."""
    if not model.encoding.informative.any() or model.tree.n_leaves < MIN_ROWS:
        return None
    rows, predictor = model.prediction_rows, model.predictor
    tree = model.tree if len(rows) == model.tree.n_leaves else predictor.trees[0]
    held_out = leave_out(tree, predictor, model.outlier_scorer)
    return held_out._replace(rows=rows[held_out.rows], inspected=rows[held_out.inspected])


def _held_out_facts(held_out: HeldOut | None) -> HeldOutFacts:
    if held_out is None:
        none = np.zeros(0, dtype=np.intp)
        return HeldOutFacts(none, np.zeros(0), 0.0, 1, none, np.zeros(0, dtype=bool), 0)
    return HeldOutFacts(*held_out[:-1])


def _columns(
    encoding: Encoding, matrix: FloatArray, hidden: Predictions | None, filled: Predictions | None
) -> tuple[ColumnFacts, ...]:
    """Return the columns in use, in their own units and labels, real ones first as in the matrix."""
    columns: list[ColumnFacts] = []
    n_real = 0
    for column in sorted(encoded_columns(encoding), key=lambda column: column.position):
        cells = matrix[:, column.position]
        if column.real:
            expected, expected_sd = _column_moments(hidden, n_real)
            mean, sd = _column_moments(filled, n_real)
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
                    None
                    if scale.power is None
                    else PowerFacts(cells, expected, expected_sd, scale.decode_deviation(1.0)),
                )
            )
            n_real += 1
        else:
            k = column.position - n_real
            codes = np.where(cells >= 0, cells, -1).astype(np.intp)  # partly known cells count as missing
            labels = tuple(map(str, column.categories))
            columns.append(
                CategoricalFacts(column.name, labels, codes, _column_shares(hidden, k), _column_shares(filled, k))
            )
    return tuple(columns)


def _column_moments(cells: Predictions | None, k: int) -> tuple[FloatArray, FloatArray]:
    return (np.zeros(0), np.zeros(0)) if cells is None else (cells.mean[:, k], cells.sd[:, k])


def _column_shares(cells: Predictions | None, k: int) -> FloatArray:
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


def _sample(model: FittedModel) -> SampleFacts | ChainFacts | None:
    sample = model.sample
    if sample is None or isinstance(sample, MCMCResult):
        return None if sample is None else _chains(sample)
    assert model.log_evidence is not None
    facts = SampleFacts(len(sample), sample.n_distinct, sample.effective_size, float(model.log_evidence), None, None)
    if not isinstance(sample, SMCResult):  # from a file without diagnostics
        return facts
    error = sample.log_evidence_se
    min_ess = float(sample.ess.min()) if len(sample.ess) else None
    return replace(facts, log_evidence_se=None if math.isnan(error) else error, least_ess=min_ess)
