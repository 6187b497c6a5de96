"""Trees, chains, runs and posterior draws as members of an archive, and back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..inference.posterior_draws import Draw
from ..inference.results import MCMCResult, SMCResult
from ..process.base import Process
from ..table.encoding import Encoding
from ..tree.sample import TreeSample
from ..tree.tree import Tree
from .archive import Archive, array_to_bytes
from .fields import number_to_json, read_field, read_integer, read_list, read_number, read_object, read_text
from .schema import check_process, process_from_json, process_to_json

IntArray = NDArray[np.intp]
FloatArray = NDArray[np.float64]

_CHAIN_TRACES = ("log_joint", "root_height", "tree_length")
_PARAMETER_PRIOR = "log_parameter_prior"  # of chains that also sample parameters
# Diagnostics of sequential Monte Carlo: the type of each array, and its axes.
_RUN_ARRAYS = {
    "run_log_evidences": ("<f8", ("run",)),
    "log_evidence_traces": ("<f8", ("run", "merge")),
    "run_ess": ("<f8", ("run", "merge")),
    "resampled": ("|b1", ("run", "merge")),
    "n_ancestors": ("<i4", ("run",)),
    "runs": ("<i4", ("tree",)),
}


class TreeMembers(NamedTuple):
    """Members of an archive for one or several trees."""

    members: dict[str, bytes]
    n_distinct: int
    n_sampled: int | None  # None for one tree that is not a sample


def trees_to_members(found: Tree | TreeSample) -> TreeMembers:
    """Return the members for a tree or a sample of trees; each distinct tree is stored once."""
    sample = found.trees if isinstance(found, TreeSample) else (found,)
    # Compare by identity: samplers use the same object for the same tree.
    trees = list({id(tree): tree for tree in sample}.values())
    members = {
        "children.npy": array_to_bytes(np.stack([tree.children for tree in trees]), "<i4"),
        "heights.npy": array_to_bytes(np.stack([tree.merge_heights for tree in trees]), "<f8"),
    }
    if not isinstance(found, TreeSample):
        return TreeMembers(members, 1, None)
    number = {id(tree): k for k, tree in enumerate(trees)}
    members["which.npy"] = array_to_bytes(np.array([number[id(tree)] for tree in sample]), "<i4")
    members["weights.npy"] = array_to_bytes(found.weights, "<f8")
    for name, logs in (("log_joints", found.log_joints), ("log_ratios", found.log_ratios)):
        if logs is None:
            raise InputError(f"The sample has no {name}, which a model file needs; fit the model again.")
        members[f"{name}.npy"] = array_to_bytes(logs, "<f8")
    return TreeMembers(members, len(trees), len(sample))


def read_trees(archive: Archive, names: tuple[str, ...], n_trees: int, n_draws: int | None) -> Tree | TreeSample:
    """Return the tree or the sample of trees that `trees_to_members` wrote."""
    n = len(names)
    if n == 0:
        raise InputError("row_names is empty; a tree needs at least one leaf")
    children = archive.read_array("children.npy", "<i4", (n_trees, n - 1, 2))
    heights = archive.read_array("heights.npy", "<f8", (n_trees, n - 1))
    leaves = np.zeros(n)
    trees = [Tree(pairs, np.concatenate([leaves, ages]), names) for pairs, ages in zip(children, heights, strict=True)]
    if n_draws is None:
        if n_trees > 1:
            raise InputError(f"it has {n_trees} trees but no sample")
        return trees[0]
    which = archive.read_array("which.npy", "<i4", (n_draws,))
    if which.min() < 0 or not np.array_equal(np.unique(which), np.arange(n_trees)):
        raise InputError("its which.npy does not refer to each of its trees")
    return TreeSample(
        [trees[k] for k in which.tolist()],
        archive.read_array("weights.npy", "<f8", (n_draws,)),
        log_joints=archive.read_array("log_joints.npy", "<f8", (n_draws,)),
        log_ratios=archive.read_array("log_ratios.npy", "<f8", (n_draws, n - 1)),
    )


def read_labels(archive: Archive, n_rows: int) -> IntArray:
    """Return the flat clusters of the rows."""
    labels = archive.read_array("labels.npy", "<i4", (n_rows,)).astype(np.intp)
    # The maximum is checked first: it decides how much memory the comparison takes.
    if labels.max() >= n_rows or not np.array_equal(np.unique(labels[labels != -1]), np.arange(labels.max() + 1)):
        raise InputError("its labels.npy does not number clusters 0, 1, 2, ...")
    return labels


def chains_to_members(sample: MCMCResult) -> dict[str, bytes]:
    """Return the members for the traces of a sample, and for those of its parameters if these were sampled."""
    members = {f"trace_{name}.npy": array_to_bytes(trace, "<f8") for name, trace in sample.traces.items()}
    if sample.parameters:
        members["trace_parameters.npy"] = array_to_bytes(np.stack(list(sample.parameters.values()), axis=2), "<f8")
    return members


def chains_to_json(sample: MCMCResult) -> dict[str, Any]:
    """Return the facts about the chains for JSON."""
    return {
        "n_chains": sample.n_chains,
        "warmup": sample.warmup,
        "parameters": list(sample.parameters),
        "acceptance": {move: number_to_json(share) for move, share in sample.acceptance.items()},
    }


def read_chains(archive: Archive, sample: TreeSample, written: Any, process: Process) -> MCMCResult:
    """Return a sample with the traces and facts that `chains_to_members` and `chains_to_json` wrote."""
    n_chains = read_integer(read_field(written, "n_chains", "chains"), "n_chains", 1)
    warmup = read_integer(read_field(written, "warmup", "chains"), "warmup")
    acceptance = {
        move: read_number(share, "acceptance")
        for move, share in read_object(read_field(written, "acceptance", "chains"), "acceptance").items()
    }
    length, left = divmod(len(sample), n_chains)
    if left:
        raise InputError(f"its {len(sample)} trees cannot be divided among {n_chains} chains")
    names = [
        read_text(name, "a parameter's name")
        for name in read_list(read_field(written, "parameters", "chains"), "parameters")
    ]
    shape = n_chains, warmup + length
    known = (*_CHAIN_TRACES, _PARAMETER_PRIOR) if names else _CHAIN_TRACES
    traces = {name: archive.read_array(f"trace_{name}.npy", "<f8", shape) for name in known}
    sampled = (
        archive.read_array("trace_parameters.npy", "<f8", (*shape, len(names))) if names else np.empty((*shape, 0))
    )
    for name, trace in (traces | {"parameters": sampled}).items():
        if not np.isfinite(trace).all():
            raise InputError(f"its trace_{name}.npy holds NaN or infinite numbers")
    log_joints, log_ratios = sample.log_joints, sample.log_ratios
    if log_joints is None or log_ratios is None:
        raise InputError("its sample has no log joints or no log ratios")
    if not np.array_equal(traces["log_joint"][:, warmup:].ravel(), log_joints):
        raise InputError("its trace_log_joint.npy does not end with the log joints of its trees")
    trees = [sample.trees[c * length : (c + 1) * length] for c in range(n_chains)]
    parameters = {name: sampled[:, :, p] for p, name in enumerate(names)}
    return MCMCResult(trees, traces, log_ratios, warmup, acceptance, process, parameters)


def runs_to_members(sample: SMCResult) -> dict[str, bytes]:
    """Return the members for the diagnostics of a sample."""
    return {f"{name}.npy": array_to_bytes(getattr(sample, name), dtype) for name, (dtype, _) in _RUN_ARRAYS.items()}


def read_runs(archive: Archive, sample: TreeSample, n_runs: int, log_evidence: float, process: Process) -> SMCResult:
    """Return a sample with the diagnostics that `runs_to_members` wrote."""
    lengths = {"run": n_runs, "merge": sample.n_leaves - 1, "tree": len(sample)}
    found: dict[str, Any] = {
        name: archive.read_array(f"{name}.npy", dtype, tuple(lengths[axis] for axis in axes))
        for name, (dtype, axes) in _RUN_ARRAYS.items()
    }
    for name in ("run_log_evidences", "log_evidence_traces", "run_ess"):
        if np.isnan(found[name]).any():
            raise InputError(f"its {name}.npy holds NaN")
    for name in ("n_ancestors", "runs"):
        found[name] = found[name].astype(np.intp)
    if found["runs"].min() < 0 or found["runs"].max() >= n_runs:
        raise InputError("its runs.npy refers to a run that does not exist")
    with np.errstate(invalid="ignore", over="ignore"):  # evidences may be infinite
        spread = float(np.std(found["run_log_evidences"], ddof=1)) if n_runs > 1 else math.nan
    found |= {
        "log_evidence": log_evidence,
        "log_evidence_se": spread / math.sqrt(n_runs),
        "ess": found["run_ess"].sum(axis=0),
        "process": process,
        "remarks": [],
    }
    result = SMCResult.__new__(SMCResult)  # its constructor needs particles, which are not stored
    result.__setstate__(sample.__getstate__() | found)
    result.remarks.extend(result._judgement())
    return result


def draws_to_members(draws: Sequence[Draw], matrix: FloatArray) -> dict[str, bytes]:
    """Return the members for trees, parameters and tables of draws.

    The draws of a chain differ only in the missing cells of the table, so observed cells are stored once per chain.
    """
    missing = np.isnan(matrix)
    return {
        "draw_children.npy": array_to_bytes(np.stack([draw.tree.children for draw in draws]), "<i4"),
        "draw_heights.npy": array_to_bytes(np.stack([draw.tree.merge_heights for draw in draws]), "<f8"),
        "draw_parameters.npy": array_to_bytes(np.stack([draw.process.parameter_values() for draw in draws]), "<f8"),
        "draw_tables.npy": array_to_bytes(
            np.stack([draws[k].X[~missing] for k in _first_draws(draws, missing)]), "<f8"
        ),
        "draw_missing.npy": array_to_bytes(np.stack([draw.X[missing] for draw in draws]), "<f8"),
    }


def draws_to_json(draws: Sequence[Draw], matrix: FloatArray) -> dict[str, Any]:
    """Return the facts about draws for JSON."""
    return {
        "n_draws": len(draws),
        "first_of_each_table": _first_draws(draws, np.isnan(matrix)),
        "process": process_to_json(draws[0].process),
    }


def _first_draws(draws: Sequence[Draw], missing: NDArray[np.bool_]) -> list[int]:
    """Return the first draw of each table."""
    firsts = [0]
    for k, draw in enumerate(draws):
        if not np.array_equal(draw.X[~missing], draws[firsts[-1]].X[~missing]):
            firsts.append(k)
    return firsts


def read_draws(
    archive: Archive, written: Any, encoding: Encoding, matrix: FloatArray, names: Sequence[str]
) -> list[Draw]:
    """Return the draws that `draws_to_members` and `draws_to_json` wrote.

    Parameters
    ----------
    archive : Archive
    written : object
        What `draws_to_json` returned.
    encoding : Encoding
    matrix : ndarray of shape (n_rows, n_columns)
        The encoded rows of the draws.
    names : sequence of str
        Names of these rows.
    """
    count = read_integer(read_field(written, "n_draws", "draws"), "n_draws", 1)
    firsts = [
        read_integer(entry, "first_of_each_table")
        for entry in read_list(read_field(written, "first_of_each_table", "draws"), "")
    ]
    if not firsts or firsts[0] != 0 or sorted(set(firsts)) != firsts or firsts[-1] >= count:
        raise InputError("first_of_each_table is not an increasing list of its draws")
    first = process_from_json(read_field(written, "process", "draws"))
    check_process(first, encoding)
    missing = np.isnan(matrix)
    n, n_missing = len(matrix), int(missing.sum())
    children = archive.read_array("draw_children.npy", "<i4", (count, n - 1, 2)).astype(np.intp)
    heights = archive.read_array("draw_heights.npy", "<f8", (count, n - 1))
    parameters = archive.read_array("draw_parameters.npy", "<f8", (count, len(first.parameter_values())))
    tables = archive.read_array("draw_tables.npy", "<f8", (len(firsts), matrix.size - n_missing))
    cells = archive.read_array("draw_missing.npy", "<f8", (count, n_missing))
    for name, numbers in (("draw_parameters", parameters), ("draw_tables", tables)):
        if not np.isfinite(numbers).all():
            raise InputError(f"its {name}.npy holds NaN or infinite numbers")
    if np.isinf(cells).any():
        raise InputError("its draw_missing.npy holds infinite numbers")
    draws = []
    for k in range(count):
        X = np.empty_like(matrix)
        X[~missing], X[missing] = tables[np.searchsorted(firsts, k, side="right") - 1], cells[k]
        process = first.with_parameter_values(parameters[k]).resolve(X)
        draws.append(Draw(Tree(children[k], np.append(np.zeros(n), heights[k]), names), process, X))
    return draws
