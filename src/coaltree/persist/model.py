"""The file of a fitted model: ``model.json`` says what it is, ``.npy`` files hold its numbers, all in one zip.

All that is read is checked first: the file may come from anywhere.
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from .. import __version__
from .._atomic import checked_path
from ..errors import InputError
from ..inference.mcmc_result import MCMCResult
from ..inference.posterior_draws import Draw
from ..inference.smc_result import SMCResult
from ..process.base import Process
from ..process.parameters import parameter_values, with_parameters
from ..table.encoding import Encoding
from ..tree.sample import TreeSample
from ..tree.tree import Tree
from .archive import (
    Archive,
    array_bytes,
    from_json,
    member,
    pack,
    read_finite,
    read_list,
    read_number,
    read_object,
    read_text,
    read_whole,
    to_json,
    written_number,
)
from .schema import (
    check_process,
    read_columns,
    read_parameters,
    read_process,
    states_of,
    written_columns,
    written_parameters,
    written_process,
)

IntArray = NDArray[np.intp]


class TreeMembers(NamedTuple):
    """Trees as members of an archive."""

    members: dict[str, bytes]
    n_distinct: int
    n_sampled: int | None  # None if there is one tree, and no sample


def tree_members(found: Tree | TreeSample) -> TreeMembers:
    """Return a tree, or a sample of trees, as members of an archive, each tree once."""
    drawn = found.trees if isinstance(found, TreeSample) else (found,)
    # By identity: whoever weighs trees takes the same object for the same tree.
    trees = list({id(tree): tree for tree in drawn}.values())
    members = {
        "children.npy": array_bytes(np.stack([tree.children for tree in trees]), "<i4"),
        "heights.npy": array_bytes(np.stack([tree.merge_heights for tree in trees]), "<f8"),
    }
    if not isinstance(found, TreeSample):
        return TreeMembers(members, 1, None)
    number = {id(tree): k for k, tree in enumerate(trees)}
    members["which.npy"] = array_bytes(np.array([number[id(tree)] for tree in drawn]), "<i4")
    members["weights.npy"] = array_bytes(found.weights, "<f8")
    for name, logs in (("log_joints", found.log_joints), ("log_ratios", found.log_ratios)):
        if logs is None:
            raise InputError(f"The sample has no {name}, without which it is not stored; fit the model again.")
        members[f"{name}.npy"] = array_bytes(logs, "<f8")
    return TreeMembers(members, len(trees), len(drawn))


def read_trees(archive: Archive, names: tuple[str, ...], n_trees: int, n_draws: int | None) -> Tree | TreeSample:
    """Return the tree, or the sample of trees, that `tree_members` has written."""
    n = len(names)
    if n == 0:
        raise InputError("row_names is empty, and there is no tree without leaves")
    children = archive.read_array("children.npy", "<i4", (n_trees, n - 1, 2))
    heights = archive.read_array("heights.npy", "<f8", (n_trees, n - 1))
    leaves = np.zeros(n)
    trees = [Tree(pairs, np.concatenate([leaves, ages]), names) for pairs, ages in zip(children, heights, strict=True)]
    if n_draws is None:
        if n_trees > 1:
            raise InputError(f"there are {n_trees} trees, and no sample that they are of")
        return trees[0]
    which = archive.read_array("which.npy", "<i4", (n_draws,))
    if which.min() < 0 or not np.array_equal(np.unique(which), np.arange(n_trees)):
        raise InputError("its which.npy does not name each of its trees")
    return TreeSample(
        [trees[k] for k in which.tolist()],
        archive.read_array("weights.npy", "<f8", (n_draws,)),
        log_joints=archive.read_array("log_joints.npy", "<f8", (n_draws,)),
        log_ratios=archive.read_array("log_ratios.npy", "<f8", (n_draws, n - 1)),
    )


def read_labels(archive: Archive, n_rows: int) -> IntArray:
    """Return the clusters of the rows."""
    labels = archive.read_array("labels.npy", "<i4", (n_rows,)).astype(np.intp)
    if not np.array_equal(np.unique(labels[labels != -1]), np.arange(labels.max() + 1)):
        raise InputError("its labels.npy does not number clusters 0, 1, 2, ...")
    return labels


_TRACES = ("log_joint", "root_height", "tree_length")
_PARAMETER_PRIOR = "log_parameter_prior"  # of chains that draw parameters as well


def chain_members(sample: MCMCResult) -> dict[str, bytes]:
    """Return the traces of a sample as members of an archive, and those of its parameters where these were drawn."""
    members = {f"trace_{name}.npy": array_bytes(trace, "<f8") for name, trace in sample.traces.items()}
    if sample.parameters:
        members["trace_parameters.npy"] = array_bytes(np.stack(list(sample.parameters.values()), axis=2), "<f8")
    return members


def written_chains(sample: MCMCResult) -> dict[str, Any]:
    """Return what else there is to know of the chains, for JSON."""
    return {
        "n_chains": sample.n_chains,
        "warmup": sample.warmup,
        "parameters": list(sample.parameters),
        "acceptance": {move: written_number(share) for move, share in sample.acceptance.items()},
    }


def read_chains(archive: Archive, sample: TreeSample, written: Any, process: Process) -> MCMCResult:
    """Return a sample with the traces and facts that `chain_members` and `written_chains` have written."""
    n_chains = read_whole(member(written, "n_chains", "chains"), "n_chains", 1)
    warmup = read_whole(member(written, "warmup", "chains"), "warmup")
    acceptance = {
        move: read_number(share, "acceptance")
        for move, share in read_object(member(written, "acceptance", "chains"), "acceptance").items()
    }
    length, left = divmod(len(sample), n_chains)
    if left:
        raise InputError(f"its {len(sample)} trees are not as many of each of {n_chains} chains")
    names = [
        read_text(name, "a parameter's name")
        for name in read_list(member(written, "parameters", "chains"), "parameters")
    ]
    shape = n_chains, warmup + length
    known = (*_TRACES, _PARAMETER_PRIOR) if names else _TRACES
    traces = {name: archive.read_array(f"trace_{name}.npy", "<f8", shape) for name in known}
    drawn = archive.read_array("trace_parameters.npy", "<f8", (*shape, len(names))) if names else np.empty((*shape, 0))
    for name, trace in (traces | {"parameters": drawn}).items():
        if not np.isfinite(trace).all():
            raise InputError(f"its trace_{name}.npy holds NaN or infinite numbers")
    log_joints, log_ratios = sample.log_joints, sample.log_ratios
    if log_joints is None or log_ratios is None:
        raise InputError("its sample has no log joints or no log ratios")
    if not np.array_equal(traces["log_joint"][:, warmup:].ravel(), log_joints):
        raise InputError("its trace_log_joint.npy does not end with the log joints of its trees")
    trees = [sample.trees[c * length : (c + 1) * length] for c in range(n_chains)]
    parameters = {name: drawn[:, :, p] for p, name in enumerate(names)}
    return MCMCResult(trees, traces, log_ratios, warmup, acceptance, process, parameters)


# The type of each array, and what its axes go along.
_ARRAYS = {
    "run_log_evidences": ("<f8", ("run",)),
    "log_evidence_traces": ("<f8", ("run", "merge")),
    "run_ess": ("<f8", ("run", "merge")),
    "resampled": ("|b1", ("run", "merge")),
    "n_ancestors": ("<i4", ("run",)),
    "runs": ("<i4", ("tree",)),
}


def run_members(sample: SMCResult) -> dict[str, bytes]:
    """Return the diagnostics of a sample as members of an archive."""
    return {f"{name}.npy": array_bytes(getattr(sample, name), dtype) for name, (dtype, _) in _ARRAYS.items()}


def read_runs(archive: Archive, sample: TreeSample, n_runs: int, log_evidence: float, process: Process) -> SMCResult:
    """Return a sample with the diagnostics that `run_members` has written."""
    lengths = {"run": n_runs, "merge": sample.n_leaves - 1, "tree": len(sample)}
    found: dict[str, Any] = {
        name: archive.read_array(f"{name}.npy", dtype, tuple(lengths[axis] for axis in axes))
        for name, (dtype, axes) in _ARRAYS.items()
    }
    for name in ("run_log_evidences", "log_evidence_traces", "run_ess"):
        if np.isnan(found[name]).any():
            raise InputError(f"its {name}.npy holds NaN")
    for name in ("n_ancestors", "runs"):
        found[name] = found[name].astype(np.intp)
    if found["runs"].min() < 0 or found["runs"].max() >= n_runs:
        raise InputError("its runs.npy names a run that is not there")
    spread = float(np.std(found["run_log_evidences"], ddof=1)) if n_runs > 1 else math.nan
    found |= {
        "log_evidence": log_evidence,
        "log_evidence_se": spread / math.sqrt(n_runs),
        "ess": found["run_ess"].sum(axis=0),
        "process": process,
        "remarks": [],
    }
    result = SMCResult.__new__(SMCResult)  # it is made of particles, which are gone
    result.__setstate__(sample.__getstate__() | found)
    result.remarks.extend(result._judgement())
    return result


FloatArray = NDArray[np.float64]


def draw_members(draws: Sequence[Draw], matrix: FloatArray) -> dict[str, bytes]:
    """Return trees, parameters and tables of draws as members of an archive.

    The draws of a chain differ in cells that are missing from the table alone, so that each table is kept once for a chain.
    """
    missing = np.isnan(matrix)
    return {
        "draw_children.npy": array_bytes(np.stack([draw.tree.children for draw in draws]), "<i4"),
        "draw_heights.npy": array_bytes(np.stack([draw.tree.merge_heights for draw in draws]), "<f8"),
        "draw_parameters.npy": array_bytes(np.stack([parameter_values(draw.process) for draw in draws]), "<f8"),
        "draw_tables.npy": array_bytes(np.stack([draws[k].X[~missing] for k in _firsts(draws, missing)]), "<f8"),
        "draw_missing.npy": array_bytes(np.stack([draw.X[missing] for draw in draws]), "<f8"),
    }


def written_draws(draws: Sequence[Draw], matrix: FloatArray) -> dict[str, Any]:
    """Return what else there is to know of draws, for JSON."""
    return {
        "n_draws": len(draws),
        "first_of_each_table": _firsts(draws, np.isnan(matrix)),
        "process": written_process(draws[0].process),
    }


def _firsts(draws: Sequence[Draw], missing: NDArray[np.bool_]) -> list[int]:
    """Return which draws are the first with their table."""
    firsts = [0]
    for k, draw in enumerate(draws):
        if not np.array_equal(draw.X[~missing], draws[firsts[-1]].X[~missing]):
            firsts.append(k)
    return firsts


def read_draws(
    archive: Archive, written: Any, encoding: Encoding, matrix: FloatArray, names: Sequence[str]
) -> list[Draw]:
    """Return the draws that `draw_members` and `written_draws` have written.

    Parameters
    ----------
    archive : Archive
    written : object
        What `written_draws` returned.
    encoding : Encoding
    matrix : ndarray of shape (n_rows, n_columns)
        The encoded rows that the draws are over.
    names : sequence of str
        Of these rows.
    """
    count = read_whole(member(written, "n_draws", "draws"), "n_draws", 1)
    firsts = [
        read_whole(entry, "first_of_each_table")
        for entry in read_list(member(written, "first_of_each_table", "draws"), "")
    ]
    if not firsts or firsts[0] != 0 or sorted(set(firsts)) != firsts or firsts[-1] >= count:
        raise InputError("first_of_each_table of its draws does not number them")
    first = read_process(member(written, "process", "draws"))
    check_process(first, encoding)
    missing = np.isnan(matrix)
    n, n_missing = len(matrix), int(missing.sum())
    children = archive.read_array("draw_children.npy", "<i4", (count, n - 1, 2)).astype(np.intp)
    heights = archive.read_array("draw_heights.npy", "<f8", (count, n - 1))
    parameters = archive.read_array("draw_parameters.npy", "<f8", (count, len(parameter_values(first))))
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
        process = with_parameters(first, parameters[k]).resolve(X)
        draws.append(Draw(Tree(children[k], np.append(np.zeros(n), heights[k]), names), process, X))
    return draws


Value = TypeVar("Value")

FORMAT = "coaltree model"
FORMAT_VERSION = 3
_ABOUT = "A tree, or a sample of trees, that coaltree has fitted to a table: read it with coaltree.load_model(path)."
_LARGEST_JSON = 2**30
_CHOICES = (
    "n_clusters",
    "height",
    "resolution",
    "gap",
    "no structure",
    "default resolution",
    "tree",  # one of the last three, in files of earlier versions
    "likelihood ratio",
)


@dataclass(frozen=True, eq=False)
class ModelState:
    """All that is kept of a fitted estimator; everything else follows from it.

    Parameters
    ----------
    estimator : str
        Name of its class.
    parameters : dict
        Its parameters: numbers, truth values, text, None, or lists of these.
    encoding : Encoding
        How the columns were encoded.
    process : Process
        The fitted process, over the encoded columns.
    matrix : ndarray of shape (n_rows, n_columns)
        The encoded table.
    found : Tree or TreeSample
        The tree, or the sample of trees, with log joints and log ratios; an SMCResult or an MCMCResult if it is known how they
        were found.
    remarks : tuple of str
        What was noticed.
    constants : tuple of float or None
        For each column the one number that all of its cells are, if it is real and they are.
    indicator_features : tuple of int
        The columns that had missing cells.
    feature_names : tuple of str or None
        Names of the columns, if the table had names.
    log_evidence : float or None
        Of a sample of trees by sequential Monte Carlo.
    labels : ndarray of int or None
        Flat clusters of the rows, of an estimator that has them.
    clusters_chosen_by : str or None
        What decided on them: "n_clusters", "height", "resolution", "tree" or "likelihood ratio".
    search : str or None
        How greedy inference looked for partners.
    neighbors_held : float or None
        How good the lists of neighbours were.
    id_column : str or None
        The column of the table's file that held the row names.
    prediction_seed : int
        Of the draws that predictions are averaged over.
    prediction_rows : ndarray of int or None
        Which rows these draws are over, if there are any.
    prediction : tuple of Draw
        The draws, if they have been made.
    version : str
        The version of coaltree that wrote the file.
    """

    estimator: str
    parameters: dict[str, Any]
    encoding: Encoding
    process: Process
    matrix: FloatArray
    found: Tree | TreeSample
    remarks: tuple[str, ...]
    constants: tuple[float | None, ...]
    indicator_features: tuple[int, ...]
    feature_names: tuple[str, ...] | None = None
    log_evidence: float | None = None
    labels: IntArray | None = None
    clusters_chosen_by: str | None = None
    search: str | None = None
    neighbors_held: float | None = None
    id_column: str | None = None
    prediction_seed: int = 0
    prediction_rows: IntArray | None = None
    prediction: tuple[Draw, ...] = ()
    version: str = __version__

    @property
    def tree(self) -> Tree:
        """The tree, or the one that stands for the sample of trees."""
        if not isinstance(self.found, TreeSample):
            return self.found
        return self.found.consensus() if self.parameters.get("summary") == "consensus" else self.found.mcc()

    def to_bytes(self) -> bytes:
        """Return the content of a file; the same for the same model."""
        trees = tree_members(self.found)
        members = {
            "model.json": to_json(self._facts(trees)),
            "matrix.npy": array_bytes(self.matrix, "<f8"),
            **trees.members,
            **(run_members(self.found) if isinstance(self.found, SMCResult) else {}),
            **(chain_members(self.found) if isinstance(self.found, MCMCResult) else {}),
        }
        if self.labels is not None:
            members["labels.npy"] = array_bytes(self.labels, "<i4")
        if self.prediction_rows is not None:
            members["draw_rows.npy"] = array_bytes(self.prediction_rows, "<i4")
            members |= draw_members(self.prediction, self.matrix[self.prediction_rows])
        return pack(members)

    def _facts(self, trees: TreeMembers) -> dict[str, Any]:
        return {
            "about": _ABOUT,
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "coaltree_version": __version__,
            "estimator": self.estimator,
            "parameters": written_parameters(self.parameters),
            "n_features_in": len(self.encoding.column_names),
            "feature_names_in": None if self.feature_names is None else list(self.feature_names),
            "columns": written_columns(self.encoding),
            "process": written_process(self.process),
            "prediction_seed": self.prediction_seed,
            "draws": self._written_draws(),
            "n_distinct_trees": trees.n_distinct,
            "n_sampled_trees": trees.n_sampled,
            "n_runs": len(self.found.n_ancestors) if isinstance(self.found, SMCResult) else None,
            "chains": written_chains(self.found) if isinstance(self.found, MCMCResult) else None,
            "log_evidence": None if self.log_evidence is None else written_number(self.log_evidence),
            "clusters_chosen_by": self.clusters_chosen_by,
            "search": self.search,
            "neighbors_held": self.neighbors_held,
            "n_clusters": None if self.labels is None else int(self.labels.max()) + 1,
            "constants": list(self.constants),
            "indicator_features": list(self.indicator_features),
            "remarks": list(self.remarks),
            "id_column": self.id_column,
            "row_names": list(self.found.leaf_names),
        }

    def _written_draws(self) -> dict[str, Any] | None:
        if self.prediction_rows is None:
            return None
        return written_draws(self.prediction, self.matrix[self.prediction_rows]) | {"n_rows": len(self.prediction_rows)}

    @classmethod
    def from_bytes(cls, data: bytes, source: str = "The model") -> ModelState:
        """Read the content of a file, whose name is for messages; see `read_state`."""
        return _read(io.BytesIO(data), len(data), source)


def read_state(path: str | Path) -> ModelState:
    """Read the file of a model.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    ModelState

    Raises
    ------
    InputError
        When there is no such file, or it is not the whole and unharmed file of a model.
    """
    path = checked_path(path)
    try:
        if path.is_dir():
            raise InputError(f"{path} is a folder: name a model file in it, such as model.coaltree.")
        if not path.exists():
            raise InputError(f"{path} does not exist.")
        with path.open("rb") as file:
            return _read(file, path.stat().st_size, str(path))
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from None


def _read(file: BinaryIO, size: int, source: str) -> ModelState:
    if size == 0:
        raise InputError(f"{source} is empty: a model file was expected, as model.save and coaltree fit write them.")
    try:
        archive = Archive(file)
        if "model.json" not in archive.names:
            raise InputError("it is a zip file with something else")
        facts = from_json(archive.read("model.json", _LARGEST_JSON))
        if read_object(facts, "model.json").get("format") != FORMAT:
            raise InputError(f"its model.json does not say {FORMAT!r}")
    except InputError as error:
        raise InputError(
            f"{source} is not a model of coaltree, or is damaged: {error}; take a file as model.save and coaltree fit write them."
        ) from None
    try:
        version = read_whole(member(facts, "format_version", "model.json"), "format_version", 1)
        if version < FORMAT_VERSION:
            raise InputError(
                f"it was written by an earlier version of coaltree ({facts.get('coaltree_version')}), whose models predict "
                "otherwise"
            )
        state = None if version > FORMAT_VERSION else _checked(facts, archive)
    except InputError as error:
        raise unusable(source, error) from None
    if state is None:
        raise later(source, facts.get("coaltree_version"))
    return state


def unusable(source: str, error: Exception) -> InputError:
    """Say that the content of a file makes no model, and why."""
    reason = str(error).rstrip(".") or type(error).__name__
    return InputError(f"{source} holds no model that can be used: {reason}; save or fit it again.")


def later(source: str, version: object) -> InputError:
    """Say that a file is of a later version, which knows more than this one."""
    which = f" ({version}, and this is {__version__})" if isinstance(version, str) and len(version) < 40 else ""
    return InputError(f"{source} was written by a later version of coaltree{which}: update coaltree to read it.")


def _checked(facts: Mapping[str, Any], archive: Archive) -> ModelState:
    def fact(name: str) -> Any:
        return member(facts, name, "model.json")

    encoding = read_columns(fact("columns"))
    if read_whole(fact("n_features_in"), "n_features_in") != len(encoding.column_names):
        raise InputError("n_features_in is not the number of its columns")
    process = read_process(fact("process"))
    check_process(process, encoding)
    names = _texts(fact("row_names"), "row_names")
    n_real, n_states = states_of(encoding)
    matrix = archive.read_array("matrix.npy", "<f8", (len(names), max(n_real + len(n_states), 1)))
    if np.isinf(matrix).any():
        raise InputError("its matrix.npy holds infinite numbers")
    process.resolve(matrix)
    found = read_trees(
        archive,
        names,
        read_whole(fact("n_distinct_trees"), "n_distinct_trees", 1),
        _optional(fact("n_sampled_trees"), lambda value: read_whole(value, "n_sampled_trees", 1)),
    )
    features = _optional(fact("feature_names_in"), lambda value: _texts(value, "feature_names_in"))
    if features is not None and features != encoding.column_names:
        raise InputError("feature_names_in are not the names of its columns")
    evidence = _optional(fact("log_evidence"), lambda value: read_number(value, "log_evidence"))
    chains = facts.get("chains")
    if (evidence is not None) != (isinstance(found, TreeSample) and chains is None):
        raise InputError("log_evidence is there without a sample of trees, or the other way round")
    if chains is not None:
        if not isinstance(found, TreeSample):
            raise InputError("chains are there without a sample of trees")
        found = read_chains(archive, found, chains, process)
    n_runs = _optional(facts.get("n_runs"), lambda value: read_whole(value, "n_runs", 1))
    if n_runs is not None:  # files written before do not say how trees were found
        if evidence is None or not isinstance(found, TreeSample):
            raise InputError("n_runs is there without a sample of trees")
        found = read_runs(archive, found, n_runs, evidence, process)
    labels = read_labels(archive, len(names)) if fact("n_clusters") is not None else None
    if labels is not None and fact("n_clusters") != labels.max() + 1:
        raise InputError("n_clusters is not the number of its clusters")
    return ModelState(
        read_text(fact("estimator"), "estimator"),
        read_parameters(fact("parameters")),
        encoding,
        process,
        matrix,
        found,
        _texts(fact("remarks"), "remarks"),
        _read_constants(fact("constants"), encoding),
        _read_positions(fact("indicator_features"), encoding),
        features,
        evidence,
        labels,
        _optional(fact("clusters_chosen_by"), _choice),
        _optional(facts.get("search"), lambda value: read_text(value, "search")),
        _optional(facts.get("neighbors_held"), lambda value: read_number(value, "neighbors_held")),
        _optional(facts.get("id_column"), lambda value: read_text(value, "id_column")),
        read_whole(fact("prediction_seed"), "prediction_seed"),
        *_read_prediction(archive, facts.get("draws"), encoding, matrix, names),
        read_text(fact("coaltree_version"), "coaltree_version"),
    )


def _read_prediction(
    archive: Archive, written: Any, encoding: Encoding, matrix: FloatArray, names: Sequence[str]
) -> tuple[IntArray | None, tuple[Draw, ...]]:
    """Return the draws that predictions are averaged over, and their rows, if the file has them."""
    if written is None:
        return None, ()
    n_rows = read_whole(member(written, "n_rows", "draws"), "n_rows", 2)
    rows = archive.read_array("draw_rows.npy", "<i4", (n_rows,)).astype(np.intp)
    if rows[0] < 0 or rows[-1] >= len(names) or np.any(np.diff(rows) <= 0):
        raise InputError("its draw_rows.npy does not name rows of the table in their order")
    return rows, tuple(read_draws(archive, written, encoding, matrix[rows], [names[row] for row in rows.tolist()]))


def _optional(value: Any, read: Callable[[Any], Value]) -> Value | None:
    return None if value is None else read(value)


def _texts(value: Any, what: str) -> tuple[str, ...]:
    return tuple(read_text(entry, what) for entry in read_list(value, what))


def _choice(value: Any) -> str:
    if value not in _CHOICES:
        raise InputError(f"clusters_chosen_by is {value!r}, and not one of {', '.join(_CHOICES)}")
    return str(value)


def _read_constants(value: Any, encoding: Encoding) -> tuple[float | None, ...]:
    constants = [
        _optional(entry, lambda number: read_finite(number, "constants")) for entry in read_list(value, "constants")
    ]
    if len(constants) != len(encoding.column_names):
        raise InputError("constants has not an entry for each column")
    return tuple(constants)


def _read_positions(value: Any, encoding: Encoding) -> tuple[int, ...]:
    positions = [read_whole(entry, "indicator_features") for entry in read_list(value, "indicator_features")]
    if any(position >= len(encoding.column_names) for position in positions):
        raise InputError("indicator_features names a column that is not there")
    return tuple(positions)
