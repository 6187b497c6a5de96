"""The file of a fitted model: ``model.json`` says what it is, ``.npy`` files hold its numbers, all in one zip.

All that is read is checked first: the file may come from anywhere.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import numpy as np
from numpy.typing import NDArray

from .. import __version__
from ..errors import InputError
from ..inference.mcmc_result import MCMCResult
from ..inference.posterior_draws import Draw
from ..inference.smc_result import SMCResult
from ..process.interface import Process
from ..table.encoding import Encoding
from ..tree.sample import TreeSample
from ..tree.tree import Tree
from ..whole import checked_path
from .archive import Archive, array_bytes, pack
from .checked_json import (
    from_json,
    member,
    read_finite,
    read_list,
    read_number,
    read_object,
    read_text,
    read_whole,
    to_json,
    written_number,
)
from .stored_chains import chain_members, read_chains, written_chains
from .stored_draws import draw_members, read_draws, written_draws
from .stored_parts import (
    check_process,
    read_columns,
    read_parameters,
    read_process,
    states_of,
    written_columns,
    written_parameters,
    written_process,
)
from .stored_runs import read_runs, run_members
from .stored_trees import TreeMembers, read_labels, read_trees, tree_members

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
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
