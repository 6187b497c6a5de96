"""The content of result files: clusters as csv, the summary as JSON, traces for Tracer, and the picture of the tree."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .. import __version__
from ..inference.results import MCMCResult, SMCResult
from ..plot.dendrogram import dendrogram_bytes
from ..report.text import describe_low_recall, describe_zero_heights
from ..table.columns import Column, RealColumn, Table
from ..tree.arrays import count_zero_heights
from ..tree.coalescent import log_prior
from ..tree.tree import Tree
from ..workflow.model import FittedModel


def clusters_csv(names: Iterable[str], labels: Iterable[int]) -> str:
    """Write the cluster of each row as csv, in the order of the rows.

    Parameters
    ----------
    names : iterable of str
        Row names.
    labels : iterable of int
        Cluster of each row.

    Returns
    -------
    str
    """
    rows = list(zip(names, map(int, labels), strict=True))
    return csv_text({"name": [name for name, _ in rows], "cluster": [label for _, label in rows]})


def csv_text(columns: Mapping[str, Sequence[object]]) -> str:
    """Write columns of equal length as csv; None is an empty cell, floats have all their digits.

    Parameters
    ----------
    columns : mapping of str to sequence
        Cells by column name.

    Returns
    -------
    str
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return text.getvalue()


def fit_summary(
    model: FittedModel,
    table: Table,
    *,
    source: str,
    remarks: Sequence[str] = (),
    settings: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the facts about a fit.

    Parameters
    ----------
    model : FittedModel
        With flat clusters.
    table : Table
        The table that it was fitted to.
    source : str
        Name of the table's file.
    remarks : sequence of str, optional
        Remarks about the table and the fit.
    settings : mapping, optional
        The settings to list.

    Returns
    -------
    dict
        Plain values for JSON; numbers that are not finite become None. Missing cells are counted in the columns in use.
    """
    tree, labels, fit = model.tree, model.labels, model.settings
    assert labels is not None
    used = model.encoding.informative.tolist()
    columns = [_column_facts(column, bool(use)) for column, use in zip(table.columns, used, strict=True)]
    n_missing = sum(facts["n_missing"] for facts in columns if facts["used"])
    facts = {
        "coaltree_version": __version__,
        "input": source,
        "n_rows": table.n_rows,
        "n_columns": len(columns),
        "id_column": table.id_column,
        "n_missing": n_missing,
        "missing_share": n_missing / max(table.n_rows * sum(used), 1),
        "columns": columns,
        "inference": fit.inference,
        "rule": fit.rule if fit.inference == "greedy" else None,
        "search": model.search,
        "neighbor_recall": model.neighbor_recall,
        "log_joint": model.result.log_joint,
        "log_likelihood": model.result.log_likelihood,
        "log_prior": log_prior(tree),
        "tree_height": tree.heights[-1],
        "n_merges_at_zero": count_zero_heights(tree.merge_heights),
        "zero_heights": describe_zero_heights(tree),
        "n_clusters": model.n_clusters,
        "clusters_chosen_by": model.clusters_chosen_by,
        "clusters_chosen_in_words": model.cut_words,
        "resolution": model.cluster_settings.resolution,
        "n_clusters_distribution": {
            str(k): chance for k, chance in enumerate(model.number_chances.tolist()) if chance >= 1e-6
        },
        "cluster_sizes": np.bincount(labels[labels >= 0], minlength=model.n_clusters).tolist(),
        "n_outliers": int(np.count_nonzero(labels < 0)),
        "partitions": model.partitions,
        "parameters": model.parameters,
        "remarks": [*remarks, *describe_low_recall(model.neighbor_recall)],
        "settings": dict(settings or {}),
    }
    if (sample := model.sample) is not None:
        facts |= {"n_trees": len(sample), "n_distinct_trees": sample.n_distinct, "topology_ess": sample.topology_ess()}
    if isinstance(sample, MCMCResult):
        facts |= _chain_facts(sample)
    elif isinstance(sample, SMCResult):
        facts |= _run_facts(sample)
    plain: dict[str, Any] = to_plain_values(facts)
    return plain


def _chain_facts(sample: MCMCResult) -> dict[str, Any]:
    diagnostics = sample.parameter_diagnostics()
    return {
        "verdict": sample.verdict,
        "converged": sample.converged,
        "n_chains": sample.n_chains,
        "warmup": sample.warmup,
        "r_hat": sample.r_hat | {name: r_hat for name, (r_hat, _) in diagnostics.items()},
        "effective_samples": sample.effective_samples | {name: size for name, (_, size) in diagnostics.items()},
        "effective_topologies": sample.effective_topologies,
        "split_deviation": sample.split_deviation,
        "acceptance": sample.acceptance,
    }


def _run_facts(sample: SMCResult) -> dict[str, Any]:
    return {
        "log_evidence": sample.log_evidence,
        "log_evidence_se": sample.log_evidence_se,
        "effective_size": sample.effective_size,
        "distinct_ancestors": sample.n_ancestors.tolist(),
        "resamplings": sample.resampled.sum(axis=1).tolist(),
        "ess": sample.ess.tolist(),
    }


def evidence_csv(models: Sequence[Mapping[str, Any]]) -> str:
    """Write a comparison of models as csv, the best first; see `coaltree.workflow.comparison.ComparedModel`."""
    with io.StringIO(newline="") as text:
        writer = csv.DictWriter(text, list(models[0]) if models else ["model"], lineterminator="\n")
        writer.writeheader()
        writer.writerows(models)
        return text.getvalue()


def json_text(facts: Mapping[str, Any]) -> str:
    """Write facts as strict JSON."""
    return json.dumps(facts, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def trace_log(result: MCMCResult, chain: int) -> str:
    """Return the traces of one chain after its warm-up as tab-separated text with a header, as Tracer reads it.

    Sampled parameters are included.

    Parameters
    ----------
    result : MCMCResult
    chain : int
        Its number, from 0.

    Returns
    -------
    str
        ``state`` counts the samples of the chain, including the warm-up.
    """
    traces = result.traces | result.parameters
    lines = ["\t".join(("state", *traces))]
    samples = np.stack([trace[chain, result.warmup :] for trace in traces.values()], axis=1)
    lines += ["\t".join(map(repr, (state, *row))) for state, row in enumerate(samples.tolist(), result.warmup)]
    return "\n".join(lines) + "\n"


def dendrogram_png(tree: Tree, labels: ArrayLike, title: str) -> bytes:
    """Return the picture of a tree with its clusters; see `dendrogram_bytes`."""
    return dendrogram_bytes(tree, labels=labels, title=title)


def _column_facts(column: Column, used: bool) -> dict[str, Any]:
    if isinstance(column, RealColumn):
        kind, n_categories, missing = "real", None, np.isnan(column.values)
    else:
        kind, n_categories, missing = "categorical", len(column.categories), column.codes == -1
    return {
        "name": column.name,
        "kind": kind,
        "n_categories": n_categories,
        "n_missing": int(missing.sum()),
        "used": used,
    }


def to_plain_values(value: Any) -> Any:
    """Convert facts to plain values for JSON; numbers that are not finite become None."""
    if isinstance(value, Mapping):
        return {str(key): to_plain_values(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_plain_values(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
