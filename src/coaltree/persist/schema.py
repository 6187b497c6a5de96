"""The schema of a model file: parameters, columns and processes as JSON; trees, chains, runs and draws as arrays; and back."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._validation import quote
from ..errors import InputError
from ..inference.posterior_draws import Draw
from ..inference.results import MCMCResult, SMCResult
from ..process import brownian, mixed, multinomial, ornstein_uhlenbeck  # noqa: F401  whose classes files may name
from ..process.base import Process
from ..process.normal_scores import Marginal, NormalScores
from ..table.cells import Category
from ..table.encoding import Encoding, Kind
from ..table.notation import SEPARATORS, Notation
from ..table.scaling import PowerTransform
from ..tree.sample import TreeSample
from ..tree.tree import Tree
from .archive import (
    Archive,
    array_to_bytes,
    number_to_json,
    read_bool,
    read_field,
    read_finite,
    read_integer,
    read_list,
    read_number,
    read_object,
    read_text,
)

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

_CHAIN_TRACES = ("log_joint", "root_height", "tree_length")
_PARAMETER_PRIOR = "log_parameter_prior"  # additional members for chains that also sample parameters
# Diagnostics of sequential Monte Carlo: the type of each array, and its axes.
_RUN_ARRAYS = {
    "run_log_evidences": ("<f8", ("run",)),
    "log_evidence_traces": ("<f8", ("run", "merge")),
    "run_ess": ("<f8", ("run", "merge")),
    "resampled": ("|b1", ("run", "merge")),
    "n_ancestors": ("<i4", ("run",)),
    "runs": ("<i4", ("tree",)),
}


def parameters_to_json(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters for JSON; a random generator, which cannot be stored, becomes None."""
    return {name: _parameter_to_json(value, name) for name, value in parameters.items()}


def _parameter_to_json(value: Any, name: str) -> Any:
    if isinstance(value, (np.random.Generator, np.random.RandomState)):
        return None
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        # An object, because a string could be the value of a parameter.
        return value if math.isfinite(value) else {"number": number_to_json(value)}
    if isinstance(value, Process):
        return {"process": process_to_json(value)}
    if isinstance(value, PathLike):
        return str(value)
    if isinstance(value, Mapping):
        return {"mapping": {str(key): _parameter_to_json(entry, name) for key, entry in value.items()}}
    if hasattr(value, "tolist"):  # arrays, and the columns and indices of pandas
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [_parameter_to_json(entry, name) for entry in value]
    raise InputError(
        f"{name} is {quote(value)}, which cannot be stored; parameters must be numbers, strings, booleans, processes or lists."
    )


def parameters_from_json(value: Any) -> dict[str, Any]:
    """Return the parameters that `parameters_to_json` wrote."""
    return {name: _parameter_from_json(entry, name) for name, entry in read_object(value, "parameters").items()}


def _parameter_from_json(value: Any, name: str, depth: int = 1) -> Any:
    if isinstance(value, dict) and "process" in value:
        return process_from_json(value["process"])
    if isinstance(value, dict) and "mapping" in value:
        entries = read_object(value["mapping"], name)
        if not depth:
            raise InputError(f"{name} is a mapping in a list")
        return {key: _parameter_from_json(entry, name, depth) for key, entry in entries.items()}
    if isinstance(value, dict):
        return read_number(read_field(value, "number", name), name)
    if isinstance(value, list):
        if not depth:
            raise InputError(f"{name} is a list of lists")
        return [_parameter_from_json(entry, name, depth - 1) for entry in value]
    return value


def encoding_to_json(encoding: Encoding) -> list[dict[str, Any]]:
    """Return an encoding for JSON, one object per column."""
    columns: list[dict[str, Any]] = []
    real = iter(encoding.column_scales)
    categories = iter(encoding.categories)
    for name, kind, used in zip(encoding.column_names, encoding.kinds, encoding.informative.tolist(), strict=True):
        column: dict[str, Any] = {"name": name, "kind": kind, "used": used}
        if kind == "real":
            scale = next(real)
            column |= {"center": scale.center, "scale": scale.scale, "time": name in encoding.times}
            if scale.power is not None:
                column["power"] = scale.power._asdict()
            if name in encoding.notations:
                column["notation"] = asdict(encoding.notations[name])
        else:
            known = next(categories)
            column |= {"categories": list(known), "types": [type(category).__name__ for category in known]}
            if name in encoding.partitions:
                column["partition"] = encoding.partitions[name]
        columns.append(column)
    return columns


def encoding_from_json(value: Any) -> Encoding:
    """Return the encoding that `encoding_to_json` wrote."""
    names: list[str] = []
    kinds: list[Kind] = []
    used: list[bool] = []
    moments: list[tuple[float, float]] = []
    powers: list[PowerTransform | None] = []
    times: list[str] = []
    notations: dict[str, Notation] = {}
    categories: list[tuple[Category, ...]] = []
    partitions: dict[str, str] = {}
    for column in read_list(value, "columns"):
        name = read_text(read_field(column, "name", "a column"), "the name of a column")
        subject = f"column {name!r}"
        kind = read_field(column, "kind", subject)
        used.append(read_bool(read_field(column, "used", subject), f"'used' of {subject}"))
        if kind == "real":
            center, scale = (
                read_finite(read_field(column, part, subject), f"{part} of {subject}") for part in ("center", "scale")
            )
            if scale <= 0:
                raise InputError(f"scale of {subject} is {scale:g}, not positive")
            moments.append((center, scale))
            powers.append(_read_power(column["power"], subject) if "power" in column else None)
            if read_bool(read_field(column, "time", subject), f"'time' of {subject}"):
                times.append(name)
            if "notation" in column:
                notations[name] = _read_notation(column["notation"], subject)
        elif kind == "categorical":
            values = read_list(read_field(column, "categories", subject), f"categories of {subject}")
            types = read_list(read_field(column, "types", subject), f"types of {subject}")
            if len(types) != len(values):
                raise InputError(f"{subject} has {len(values)} categories and {len(types)} types")
            categories.append(tuple(_category(*pair, subject) for pair in zip(values, types, strict=True)))
            if len({(type(category), category) for category in categories[-1]}) < len(values) or (
                used[-1] and len(values) < 2
            ):
                raise InputError(f"{subject} has too few categories, or categories that are not distinct")
            if "partition" in column:
                partitions[name] = read_text(column["partition"], f"the partition of {subject}")
        else:
            raise InputError(f"{subject} is of the kind {kind!r}, which is neither real nor categorical")
        names.append(name)
        kinds.append(kind)
    if not names or len(set(names)) < len(names):
        raise InputError("columns must have at least one column, and distinct names")
    centers, scales = np.array(moments, dtype=np.float64).reshape(-1, 2).T.copy()
    return Encoding(
        tuple(names),
        tuple(kinds),
        centers,
        scales,
        tuple(categories),
        np.array(used),
        tuple(times),
        tuple(powers) if any(powers) else (),
        partitions,
        notations,
    )


def _read_power(value: Any, subject: str) -> PowerTransform:
    """Return the power transform of a column."""
    numbers = (
        read_finite(read_field(value, part, f"power of {subject}"), f"{part} of the power of {subject}")
        for part in PowerTransform._fields
    )
    power = PowerTransform(*numbers)
    if power.unit <= 0 or power.low >= power.high:
        raise InputError(f"power of {subject} has no positive unit, or no values between low and high")
    return power


def _read_notation(value: Any, subject: str) -> Notation:
    """Return how the numbers of a column are written."""
    subject = f"notation of {subject}"
    notation = Notation(*(read_text(read_field(value, part.name, subject), subject) for part in fields(Notation)))
    if (
        notation.decimal not in SEPARATORS
        or notation.group not in SEPARATORS
        or notation.group == notation.decimal != ""
    ):
        raise InputError(f"{subject} has separators of digits that are not allowed")
    return notation


def _category(value: Any, kind: Any, subject: str) -> Category:
    if kind == "float":
        return read_finite(value, f"a category of {subject}")
    if kind in ("str", "int", "bool") and type(value).__name__ == kind:
        category: Category = value
        return category
    raise InputError(f"{subject} has a category {quote(value)} that is not of the type {kind!r}")


def count_states(encoding: Encoding) -> tuple[int, list[int]]:
    """Return the number of real columns in use, and the number of categories of each categorical column in use."""
    categories = iter(encoding.categories)
    n_real, n_states = 0, []
    for kind, used in zip(encoding.kinds, encoding.informative.tolist(), strict=True):
        known = next(categories) if kind == "categorical" else ()
        if used and kind == "real":
            n_real += 1
        elif used:
            n_states.append(len(known))
    return n_real, n_states


def process_to_json(process: Process) -> dict[str, Any]:
    """Return a process as plain values."""
    return process.to_dict()


def process_from_json(value: Any) -> Process:
    """Return the process that `process_to_json` has written; its class must have been imported."""
    value = read_object(value, "the process")
    if "parts" in value:
        parts = read_list(value["parts"], "parts of the process")
        return Process.from_dict(value | {"parts": [_check_part(part) for part in parts]})
    return Process.from_dict(_check_process_values(value))


def _check_part(part: Any) -> dict[str, Any]:
    """Return a part of a process, after checking its values."""
    process = read_object(read_field(part, "process", "a part of the process"), "a part of the process")
    columns = read_list(read_field(part, "columns", "a part of the process"), "columns of a part of the process")
    if "parts" in process:
        raise InputError("a part of the process has parts itself")
    return {
        "process": _check_process_values(process),
        "columns": [read_integer(column, "a column of a part of the process") for column in columns],
    }


def _check_process_values(value: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a process: finite numbers, in lists and lists of lists, None, strings and booleans.

    Whether they suit the process is checked by its constructor.
    """
    return {name: _check_value(entry, f"{name} of the process") for name, entry in value.items()}


def _check_value(value: Any, subject: str, depth: int = 2) -> Any:
    if isinstance(value, list) and depth:
        return [_check_value(entry, subject, depth - 1) for entry in value]
    if value is not None and not isinstance(value, str | bool):
        read_finite(value, subject)
    return value  # integers stay integers


def check_process(process: Process, encoding: Encoding) -> None:
    """Raise unless a process has the columns of an encoding."""
    n_real, n_states = count_states(encoding)
    process.check_columns([0] * n_real + n_states or [0])


class TreeMembers(NamedTuple):
    """Members of an archive for one or several trees."""

    members: dict[str, bytes]
    n_distinct: int
    n_sampled: int | None  # None for one tree that is not a sample


def trees_to_members(source: Tree | TreeSample) -> TreeMembers:
    """Return the members for a tree or a sample of trees; each distinct tree is stored once."""
    sample = source.trees if isinstance(source, TreeSample) else (source,)
    # Compare by identity: samplers use the same object for the same tree.
    trees = list({id(tree): tree for tree in sample}.values())
    members = {
        "children.npy": array_to_bytes(np.stack([tree.children for tree in trees]), "<i4"),
        "heights.npy": array_to_bytes(np.stack([tree.merge_heights for tree in trees]), "<f8"),
    }
    if not isinstance(source, TreeSample):
        return TreeMembers(members, 1, None)
    number = {id(tree): k for k, tree in enumerate(trees)}
    members["which.npy"] = array_to_bytes(np.array([number[id(tree)] for tree in sample]), "<i4")
    members["weights.npy"] = array_to_bytes(source.weights, "<f8")
    for name, logs in (("log_joints", source.log_joints), ("log_ratios", source.log_ratios)):
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
    indices = archive.read_array("which.npy", "<i4", (n_draws,))
    if indices.min() < 0 or not np.array_equal(np.unique(indices), np.arange(n_trees)):
        raise InputError("its which.npy does not refer to each of its trees")
    return TreeSample(
        [trees[k] for k in indices.tolist()],
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
    if draws := list(sample.parameter_draws.values()):
        members["trace_parameters.npy"] = array_to_bytes(np.stack(draws, axis=2), "<f8")
    return members


def chains_to_json(sample: MCMCResult) -> dict[str, Any]:
    """Return the facts about the chains for JSON."""
    return {
        "n_chains": sample.n_chains,
        "warmup": sample.warmup,
        "parameters": list(sample.parameter_draws),
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
    length, remainder = divmod(len(sample), n_chains)
    if remainder:
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
    fields: dict[str, Any] = {
        name: archive.read_array(f"{name}.npy", dtype, tuple(lengths[axis] for axis in axes))
        for name, (dtype, axes) in _RUN_ARRAYS.items()
    }
    for name in ("run_log_evidences", "log_evidence_traces", "run_ess"):
        if np.isnan(fields[name]).any():
            raise InputError(f"its {name}.npy holds NaN")
    for name in ("n_ancestors", "runs"):
        fields[name] = fields[name].astype(np.intp)
    if fields["runs"].min() < 0 or fields["runs"].max() >= n_runs:
        raise InputError("its runs.npy refers to a run that does not exist")
    with np.errstate(invalid="ignore", over="ignore"):  # evidences may be infinite
        spread = float(np.std(fields["run_log_evidences"], ddof=1)) if n_runs > 1 else math.nan
    fields |= {
        "log_evidence": log_evidence,
        "log_evidence_se": spread / math.sqrt(n_runs),
        "ess": fields["run_ess"].sum(axis=0),
        "process": process,
        "remarks": [],
    }
    result = SMCResult.__new__(SMCResult)  # its constructor needs particles, which are not stored
    result.__setstate__(sample.__getstate__() | fields)
    result.remarks.extend(result._describe_problems())
    return result


def draws_to_members(draws: Sequence[Draw], matrix: FloatArray) -> dict[str, bytes]:
    """Return the members for trees, parameters and tables of draws.

    The draws of a chain differ only in the missing cells of the table, so observed cells are stored once per chain.
    """
    missing = np.isnan(matrix)
    scores = draws[-1].scores
    members = {} if scores is None else {"draw_scores.npy": array_to_bytes(_scores_to_array(scores), "<f8")}
    return members | {
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
    scores = draws[-1].scores
    return {
        "n_draws": len(draws),
        "first_of_each_table": _first_draws(draws, np.isnan(matrix)),
        "n_scored": sum(draw.scores is not None for draw in draws),  # the last draws
        "n_knots": [] if scores is None else [len(marginal.knots) for marginal in scores.marginals],
        "process": process_to_json(draws[0].process),
    }


def _scores_to_array(scores: NormalScores) -> FloatArray:
    """Return the knots of all columns, one after the other, and their scores."""
    return np.stack(
        [np.concatenate([marginal[k] for marginal in scores.marginals]) for k in range(len(Marginal._fields))]
    )


def _read_scores(archive: Archive, written: Any) -> NormalScores | None:
    counts = [
        read_integer(entry, "n_knots", 2) for entry in read_list(read_field(written, "n_knots", "draws"), "n_knots")
    ]
    if not counts:
        return None
    numbers = archive.read_array("draw_scores.npy", "<f8", (2, sum(counts)))
    parts = np.split(numbers, np.cumsum(counts)[:-1], axis=1)
    if not np.isfinite(numbers).all() or any(np.any(np.diff(part) <= 0) for part in parts):
        raise InputError("its draw_scores.npy does not hold increasing finite numbers")
    return NormalScores(tuple(Marginal(*part) for part in parts))


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
    scores, n_scored = (
        _read_scores(archive, written),
        read_integer(read_field(written, "n_scored", "draws"), "n_scored"),
    )
    if n_scored >= count or (n_scored > 0) != (scores is not None):
        raise InputError("n_scored does not agree with its other numbers")
    if scores is not None and len(scores.marginals) > matrix.shape[1]:
        raise InputError("n_knots has more columns than the table")
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
        tree = Tree(children[k], np.append(np.zeros(n), heights[k]), names)
        draws.append(Draw(tree, process, X, scores if k >= count - n_scored else None))
    return draws
