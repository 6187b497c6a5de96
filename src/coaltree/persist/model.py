"""The model file: ``model.json`` describes a fitted estimator, ``.npy`` members hold its arrays, in one zip archive.

Everything is checked when it is read, because the file may come from anywhere.
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import numpy as np
from numpy.typing import NDArray

from .. import __version__
from .._atomic import check_path, finish_interrupted, write_atomic
from .._cut import CUT_RULES, DEFAULT_WORDS
from .._validation import quote
from ..errors import InputError
from ..inference.greedy import explain
from ..inference.posterior_draws import Draw
from ..inference.results import MCMCResult, SMCResult
from ..predict.predictor import Predictor
from ..process.base import Process, UnknownProcessError
from ..table.encoding import Encoding
from ..tree.sample import TreeSample
from ..tree.tree import Tree
from ..workflow.fit import summarize
from ..workflow.model import FittedModel
from ..workflow.processes import find_tree_table
from ..workflow.settings import SETTINGS, ClusterSettings, Settings, check_settings, parameter_names, parameter_values
from .archive import (
    Archive,
    MissingDigestError,
    array_to_bytes,
    from_json,
    number_to_json,
    pack,
    read_field,
    read_finite,
    read_integer,
    read_list,
    read_number,
    read_object,
    read_text,
    to_json,
)
from .schema import (
    TreeMembers,
    chains_to_json,
    chains_to_members,
    check_process,
    count_states,
    draws_to_json,
    draws_to_members,
    encoding_from_json,
    encoding_to_json,
    parameters_from_json,
    parameters_to_json,
    process_from_json,
    process_to_json,
    read_chains,
    read_draws,
    read_labels,
    read_runs,
    read_trees,
    runs_to_members,
    trees_to_members,
)

IntArray = NDArray[np.intp]
FloatArray = NDArray[np.float64]


Value = TypeVar("Value")

FORMAT = "coaltree model"
FORMAT_VERSION = 7  # files end with a digest since version 3
_ABOUT = "A coaltree model, fitted to a table. Read it with coaltree.load_model(path)."
_MAX_JSON_BYTES = 2**30
_CUT_RULES = (*CUT_RULES, *DEFAULT_WORDS)


@dataclass(frozen=True, eq=False)
class ModelRecord:
    """The content of a model file. Everything else about a fitted estimator is computed from it.

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
    trees : Tree or TreeSample
        The tree, or the sample of trees with log joints and log ratios: an SMCResult or an MCMCResult.
    remarks : tuple of str
        Remarks about the table and the fit.
    constants : tuple of float or None
        For each constant real column its value; None for the others.
    indicator_features : tuple of int
        The columns that had missing cells.
    feature_names : tuple of str or None
        Names of the columns, if the table had names.
    log_evidence : float or None
        Log evidence of a sample by sequential Monte Carlo.
    labels : ndarray of int or None
        Flat clusters of the rows, if the estimator has them.
    clusters_chosen_by : str or None
        The rule for them, see `FittedModel.clusters_chosen_by`.
    search : str or None
        How greedy inference searched for partners.
    neighbor_recall : float or None
        Share of the neighbour lists that contained the best partner.
    id_column : str or None
        The column of the table's file with the row names.
    prediction_seed : int
        Seed of the draws that predictions are averaged over.
    prediction_rows : ndarray of int or None
        The rows of these draws, if there are any.
    prediction : tuple of Draw
        The draws, if they have been made.
    concentrations : ndarray of float or None
        By how much levels of intervals are moved in each real column, if that is known.
    version : str
        The version of coaltree that wrote the file.
    """

    estimator: str
    parameters: dict[str, Any]
    encoding: Encoding
    process: Process
    matrix: FloatArray
    trees: Tree | TreeSample
    remarks: tuple[str, ...]
    constants: tuple[float | None, ...]
    indicator_features: tuple[int, ...]
    feature_names: tuple[str, ...] | None = None
    log_evidence: float | None = None
    labels: IntArray | None = None
    clusters_chosen_by: str | None = None
    search: str | None = None
    neighbor_recall: float | None = None
    id_column: str | None = None
    prediction_seed: int = 0
    prediction_rows: IntArray | None = None
    prediction: tuple[Draw, ...] = ()
    concentrations: FloatArray | None = None
    version: str = __version__

    @property
    def tree(self) -> Tree:
        """The tree, or the summary of the sample of trees."""
        if not isinstance(self.trees, TreeSample):
            return self.trees
        kind, heights = self.parameters.get("summary", "ccd0"), self.parameters.get("summary_heights", "mean")
        return self.trees.summarize(kind, heights)

    def to_bytes(self) -> bytes:
        """Return the content of a model file; the same for the same model."""
        tree_members = trees_to_members(self.trees)
        members = {
            "model.json": to_json(self._facts(tree_members)),
            "matrix.npy": array_to_bytes(self.matrix, "<f8"),
            **tree_members.members,
            **(runs_to_members(self.trees) if isinstance(self.trees, SMCResult) else {}),
            **(chains_to_members(self.trees) if isinstance(self.trees, MCMCResult) else {}),
        }
        if self.labels is not None:
            members["labels.npy"] = array_to_bytes(self.labels, "<i4")
        if self.prediction_rows is not None:
            members["draw_rows.npy"] = array_to_bytes(self.prediction_rows, "<i4")
            members |= draws_to_members(self.prediction, self.matrix[self.prediction_rows])
        return pack(members)

    def _facts(self, tree_members: TreeMembers) -> dict[str, Any]:
        return {
            "about": _ABOUT,
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "coaltree_version": __version__,
            "estimator": self.estimator,
            "parameters": parameters_to_json(self.parameters),
            "n_features_in": len(self.encoding.column_names),
            "feature_names_in": None if self.feature_names is None else list(self.feature_names),
            "columns": encoding_to_json(self.encoding),
            "process": process_to_json(self.process),
            "prediction_seed": self.prediction_seed,
            "draws": self._draws_to_json(),
            "interval_concentrations": None if self.concentrations is None else self.concentrations.tolist(),
            "n_distinct_trees": tree_members.n_distinct,
            "n_sampled_trees": tree_members.n_sampled,
            "n_runs": len(self.trees.n_ancestors) if isinstance(self.trees, SMCResult) else None,
            "chains": chains_to_json(self.trees) if isinstance(self.trees, MCMCResult) else None,
            "log_evidence": None if self.log_evidence is None else number_to_json(self.log_evidence),
            "clusters_chosen_by": self.clusters_chosen_by,
            "search": self.search,
            "neighbor_recall": self.neighbor_recall,
            "n_clusters": None if self.labels is None else int(self.labels.max()) + 1,
            "constants": list(self.constants),
            "indicator_features": list(self.indicator_features),
            "remarks": list(self.remarks),
            "id_column": self.id_column,
            "row_names": list(self.trees.leaf_names),
        }

    def _draws_to_json(self) -> dict[str, Any] | None:
        if self.prediction_rows is None:
            return None
        return draws_to_json(self.prediction, self.matrix[self.prediction_rows]) | {"n_rows": len(self.prediction_rows)}

    @classmethod
    def from_bytes(cls, data: bytes, source: str = "The model") -> ModelRecord:
        """Read the content of a model file; messages call it `source`. See `read_model_record`."""
        return _read_file(io.BytesIO(data), len(data), source)


def write_model(model: FittedModel, path: str | Path, settings: Settings | None = None) -> None:
    """Write a fitted model into a file, or leave an earlier file of that name untouched if that fails.

    Nothing in the file is pickled, and the same model makes the same file.

    Parameters
    ----------
    model : FittedModel
    path : str or Path
        The file, for example ``"model.coaltree"``.
    settings : Settings, optional
        Parameters to store; by default those of the fit.

    Raises
    ------
    InputError
        If it cannot be written, or a parameter cannot be stored.
    """
    write_atomic(path, make_record(model, settings).to_bytes())


def make_record(model: FittedModel, settings: Settings | None = None) -> ModelRecord:
    """Return the content of the file of a fitted model; see `write_model`."""
    parameters = parameter_values(settings or model.settings)
    del parameters["client"]  # a connection of this process
    record = ModelRecord(
        model.settings._estimator,
        parameters,
        model.encoding,
        model.process,
        model.matrix,
        model.tree if model.sample is None else model.sample,
        tuple(model.remarks),
        tuple(
            float(constant) if kind == "real" and constant is not None else None
            for constant, kind in zip(model.constants, model.encoding.kinds, strict=True)
        ),
        model.incomplete_columns,
        model.feature_names,
        model.log_evidence,
        model.labels,
        None if model.labels is None else model.clusters_chosen_by,
        model.search,
        model.neighbor_recall,
        model.id_column,
        model.prediction_seed,
        concentrations=model.known_concentrations,
    )
    if model.known_predictor is None or model.uses_sample:
        return record
    draws = tuple(model.known_predictor.ensemble.draws)
    return replace(record, prediction_rows=model.prediction_rows, prediction=draws)


def restore_model(record: ModelRecord, source: str) -> FittedModel:
    """Return the fitted model of a record; messages call the file `source`.

    Raises
    ------
    InputError
        If the record is not that of a valid model.
    """
    if record.estimator not in SETTINGS:
        raise invalid_model_error(source, InputError(f"it is a {record.estimator!r}, which is not known"))
    kind = SETTINGS[record.estimator]
    if set(record.parameters) - set(parameter_names(kind)):  # a later version can add parameters to the same format
        raise newer_version_error(source, record.version)
    try:
        return _restore(kind(**record.parameters), record)
    except (ValueError, TypeError, ArithmeticError, LookupError) as error:
        # Numbers that no fit writes can fail anywhere: the file is to blame.
        raise invalid_model_error(source, error) from (None if isinstance(error, InputError) else error)


def _restore(settings: Settings, record: ModelRecord) -> FittedModel:
    check_settings(settings, len(record.matrix))
    if isinstance(settings, ClusterSettings) and record.labels is None:
        raise InputError("it has no labels")
    trees, is_sample = record.trees, isinstance(record.trees, TreeSample)
    tree_matrix = find_tree_table(record.matrix, record.encoding, settings).matrix
    model = FittedModel(
        settings=settings,
        encoding=record.encoding,
        process=record.process,
        matrix=record.matrix,
        result=summarize(
            trees if isinstance(trees, TreeSample) else explain(trees, tree_matrix, record.process),
            tree_matrix,
            record.process,
            settings,
        ),
        sample=trees if isinstance(trees, TreeSample) else None,
        log_evidence=record.log_evidence if is_sample else None,
        search=None if is_sample else record.search,
        neighbor_recall=None if is_sample else record.neighbor_recall,
        labels=record.labels,
        remarks=list(record.remarks),
        constants=_constants(record),
        incomplete_columns=record.indicator_features,
        id_column=record.id_column,
        feature_names=record.feature_names,
        prediction_seed=record.prediction_seed,
        known_concentrations=record.concentrations,
    )
    if record.prediction_rows is not None:
        matrix = model.move_tails(model.matrix)[record.prediction_rows]
        model.known_predictor = Predictor(record.prediction, np.ones(len(record.prediction)), matrix, settings.n_jobs)
    return model


def _constants(record: ModelRecord) -> list[Any]:
    """Return the only value of each column; None for columns with several or none."""
    categories = iter(record.encoding.categories)
    constants: list[Any] = []
    for kind, number in zip(record.encoding.kinds, record.constants, strict=True):
        known = next(categories) if kind == "categorical" else ()
        constants.append(known[0] if len(known) == 1 else number)
    return constants


def read_model_record(path: str | Path) -> ModelRecord:
    """Read the file of a model.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    ModelRecord

    Raises
    ------
    InputError
        If there is no such file, or it is not a complete and unaltered model file.
    """
    path = check_path(path)
    finish_interrupted(path.parent)
    try:
        if path.is_dir():
            raise InputError(f"{path} is a folder; name a model file in it, such as model.coaltree.")
        if not path.exists():
            raise InputError(f"{path} does not exist.")
        with path.open("rb") as file:
            return _read_file(file, path.stat().st_size, str(path))
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from None


def _read_file(file: BinaryIO, size: int, source: str) -> ModelRecord:
    if size == 0:
        raise InputError(f"{source} is empty; a model file is expected, as model.save and coaltree fit write it.")
    try:
        archive, facts = _open(file)
    except InputError as error:
        raise InputError(
            f"{source} is not a coaltree model, or is damaged: {error}; use a file that model.save or coaltree fit wrote."
        ) from None
    try:
        version = read_integer(read_field(facts, "format_version", "model.json"), "format_version", 1)
        if version < FORMAT_VERSION:
            raise InputError(
                f"it was written by an earlier version of coaltree ({facts.get('coaltree_version')}), in format {version}; "
                f"this version reads format {FORMAT_VERSION}"
            )
        record = None if version > FORMAT_VERSION else _read_record(facts, archive)
    except InputError as error:
        raise invalid_model_error(source, error) from None
    if record is None:
        raise newer_version_error(source, facts.get("coaltree_version"))
    return record


def _open(file: BinaryIO) -> tuple[Archive, dict[str, Any]]:
    """Return the archive and its model.json. Only files of another format may lack a digest: the error names their version."""
    try:
        archive, digest_error = Archive(file), None
    except MissingDigestError as error:
        file.seek(0)
        archive, digest_error = Archive(file, verify=False), error
    if "model.json" not in archive.names:
        raise InputError("it is a zip file of something else")
    facts = read_object(from_json(archive.read("model.json", _MAX_JSON_BYTES)), "model.json")
    if facts.get("format") != FORMAT:
        raise InputError(f"its model.json does not have the format {FORMAT!r}")
    if digest_error and facts.get("format_version") == FORMAT_VERSION:
        raise digest_error
    return archive, facts


def invalid_model_error(source: str, error: Exception) -> InputError:
    """Return the error for a file that is not a valid model."""
    reason = str(error).rstrip(".") or type(error).__name__
    if isinstance(error, UnknownProcessError):
        return InputError(f"{source} cannot be loaded: {reason}.")
    return InputError(f"{source} is not a usable model: {reason}; fit the model again.")


def newer_version_error(source: str, version: object) -> InputError:
    """Return the error for a file of a later version of coaltree."""
    versions = f" ({version}, and this is {__version__})" if isinstance(version, str) and len(version) < 40 else ""
    return InputError(f"{source} was written by a later version of coaltree{versions}: update coaltree to read it.")


def _read_record(facts: Mapping[str, Any], archive: Archive) -> ModelRecord:
    def fact(name: str) -> Any:
        return read_field(facts, name, "model.json")

    encoding = encoding_from_json(fact("columns"))
    if read_integer(fact("n_features_in"), "n_features_in") != len(encoding.column_names):
        raise InputError("n_features_in is not the number of its columns")
    process = process_from_json(fact("process"))
    check_process(process, encoding)
    names = _read_texts(fact("row_names"), "row_names")
    n_real, n_states = count_states(encoding)
    matrix = archive.read_array("matrix.npy", "<f8", (len(names), max(n_real + len(n_states), 1)))
    if np.isinf(matrix).any():
        raise InputError("its matrix.npy holds infinite numbers")
    process.resolve(matrix)
    trees = read_trees(
        archive,
        names,
        read_integer(fact("n_distinct_trees"), "n_distinct_trees", 1),
        _optional(fact("n_sampled_trees"), lambda value: read_integer(value, "n_sampled_trees", 1)),
    )
    features = _optional(fact("feature_names_in"), lambda value: _read_texts(value, "feature_names_in"))
    if features is not None and features != encoding.column_names:
        raise InputError("feature_names_in are not the names of its columns")
    evidence = _optional(fact("log_evidence"), lambda value: read_number(value, "log_evidence"))
    chains = fact("chains")
    if (evidence is not None) != (isinstance(trees, TreeSample) and chains is None):
        raise InputError("log_evidence and a sample by sequential Monte Carlo must occur together")
    if chains is not None:
        if not isinstance(trees, TreeSample):
            raise InputError("it has chains but no sample of trees")
        trees = read_chains(archive, trees, chains, process)
    n_runs = _optional(fact("n_runs"), lambda value: read_integer(value, "n_runs", 1))
    if n_runs is not None:
        if evidence is None or not isinstance(trees, TreeSample):
            raise InputError("it has n_runs but no sample of trees")
        trees = read_runs(archive, trees, n_runs, evidence, process)
    labels = read_labels(archive, len(names)) if fact("n_clusters") is not None else None
    if labels is not None and fact("n_clusters") != labels.max() + 1:
        raise InputError("n_clusters is not the number of its clusters")
    return ModelRecord(
        read_text(fact("estimator"), "estimator"),
        parameters_from_json(fact("parameters")),
        encoding,
        process,
        matrix,
        trees,
        _read_texts(fact("remarks"), "remarks"),
        _read_constants(fact("constants"), encoding),
        _read_positions(fact("indicator_features"), encoding),
        features,
        evidence,
        labels,
        _optional(fact("clusters_chosen_by"), _read_cut_rule),
        _optional(fact("search"), lambda value: read_text(value, "search")),
        _optional(fact("neighbor_recall"), lambda value: read_number(value, "neighbor_recall")),
        _optional(fact("id_column"), lambda value: read_text(value, "id_column")),
        read_integer(fact("prediction_seed"), "prediction_seed"),
        *_read_prediction(archive, fact("draws"), encoding, matrix, names),
        _optional(fact("interval_concentrations"), lambda value: _read_concentrations(value, n_real)),
        read_text(fact("coaltree_version"), "coaltree_version"),
    )


def _read_concentrations(written: Any, n_real: int) -> FloatArray:
    """Return the concentrations of the real columns."""
    numbers = [
        read_number(entry, "a concentration")
        for entry in read_list(written, "interval_concentrations, the concentration of each real column,")
    ]
    if len(numbers) != n_real or not all(0 < number < math.inf for number in numbers):
        raise InputError(
            "interval_concentrations, the concentration of each real column, is not a list of positive numbers"
        )
    return np.array(numbers)


def _read_prediction(
    archive: Archive, written: Any, encoding: Encoding, matrix: FloatArray, names: Sequence[str]
) -> tuple[IntArray | None, tuple[Draw, ...]]:
    """Return the rows and the draws that predictions are averaged over, if the file has them."""
    if written is None:
        return None, ()
    n_rows = read_integer(read_field(written, "n_rows", "draws"), "n_rows", 1)
    rows = archive.read_array("draw_rows.npy", "<i4", (n_rows,)).astype(np.intp)
    if rows[0] < 0 or rows[-1] >= len(names) or np.any(np.diff(rows) <= 0):
        raise InputError("its draw_rows.npy does not name rows of the table in their order")
    return rows, tuple(read_draws(archive, written, encoding, matrix[rows], [names[row] for row in rows.tolist()]))


def _optional(value: Any, read: Callable[[Any], Value]) -> Value | None:
    return None if value is None else read(value)


def _read_texts(value: Any, subject: str) -> tuple[str, ...]:
    return tuple(read_text(entry, subject) for entry in read_list(value, subject))


def _read_cut_rule(value: Any) -> str:
    if value not in _CUT_RULES:
        raise InputError(f"clusters_chosen_by is {quote(value)}, not one of {', '.join(_CUT_RULES)}")
    return str(value)


def _read_constants(value: Any, encoding: Encoding) -> tuple[float | None, ...]:
    constants = [
        _optional(entry, lambda number: read_finite(number, "constants")) for entry in read_list(value, "constants")
    ]
    if len(constants) != len(encoding.column_names):
        raise InputError("constants does not have one entry per column")
    return tuple(constants)


def _read_positions(value: Any, encoding: Encoding) -> tuple[int, ...]:
    positions = [read_integer(entry, "indicator_features") for entry in read_list(value, "indicator_features")]
    if any(position >= len(encoding.column_names) for position in positions):
        raise InputError("indicator_features refers to a column that does not exist")
    return tuple(positions)
