"""Fitted estimators from files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError
from ..inference.greedy import explain
from ..persist.model import ModelState, invalid_model_error, newer_version_error, read_model_state
from ..predict.predictor import Predictor
from ..tree.sample import TreeSample
from .base import CoalescentModel
from .clustering import CoalescentClustering
from .imputer import CoalescentImputer
from .modelling import encoded_of, parameters_by_name
from .saving import parameter_names

ESTIMATORS: dict[str, type[CoalescentModel]] = {
    "CoalescentClustering": CoalescentClustering,
    "CoalescentImputer": CoalescentImputer,
}


def load_model(path: str | Path) -> CoalescentClustering | CoalescentImputer:
    """Read a fitted estimator from a file that its method ``save`` or the command ``coaltree fit`` wrote.

    It answers as the one that was saved, bit for bit. Of files that earlier versions wrote, ``sample_`` is a `TreeSample`
    without diagnostics. Files need not be trusted: nothing in them is run, and what does not make a model is refused.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    CoalescentClustering or CoalescentImputer

    Raises
    ------
    InputError
        When there is no such file, or it does not hold a whole model.

    Examples
    --------
    >>> import tempfile
    >>> import coaltree as ct
    >>> model = ct.CoalescentClustering(n_clusters=2).fit([[0.0], [0.1], [4.0], [4.2]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(folder + "/model.coaltree")
    ...     again = ct.load_model(folder + "/model.coaltree")
    >>> again.predict([[3.5]]).tolist()
    [1]
    """
    return model_of(read_model_state(path), str(path))


def imputer_of(state: ModelState, source: str, n_jobs: int | None = None) -> CoalescentImputer:
    """Return a fitted estimator of any kind as one that fills cells, which takes the same tree and process.

    Parameters
    ----------
    state : ModelState
    source : str
        Where it comes from, for messages.
    n_jobs : int, optional
        Threads, if not as the model has it.

    Returns
    -------
    CoalescentImputer
    """
    if n_jobs is not None:
        state = replace(state, parameters=state.parameters | {"n_jobs": n_jobs})
    if state.estimator == "CoalescentClustering":
        own = {*parameter_names(CoalescentClustering)} - {*parameter_names(CoalescentImputer)}
        state = replace(
            state,
            estimator="CoalescentImputer",
            parameters={name: value for name, value in state.parameters.items() if name not in own},
            labels=None,
        )
    model = model_of(state, source)
    if not isinstance(model, CoalescentImputer):
        raise invalid_model_error(source, InputError(f"it is a {state.estimator}"))
    return model


def model_of(state: ModelState, source: str) -> CoalescentClustering | CoalescentImputer:
    """Return the estimator whose state it is; `source` is where it comes from, for messages."""
    if state.estimator not in ESTIMATORS:
        raise invalid_model_error(source, InputError(f"it is a {state.estimator!r}, which is not known"))
    kind = ESTIMATORS[state.estimator]
    unknown = sorted(set(state.parameters) - set(parameter_names(kind)))
    if unknown:  # a parameter that was added since has changed nothing in how the file is written
        raise newer_version_error(source, state.version)
    try:
        model: CoalescentClustering | CoalescentImputer = _restored(kind(**state.parameters), state)
        return model
    except (ValueError, TypeError, ArithmeticError, LookupError) as error:
        # Whatever a number may do that no fit has found, it is the file's fault.
        raise invalid_model_error(source, error) from (None if isinstance(error, InputError) else error)


def _restored(model: Any, state: ModelState) -> Any:
    model._check_parameters(len(state.matrix))
    encoding = state.encoding
    model.n_features_in_ = len(encoding.column_names)
    if state.feature_names is not None:
        model.feature_names_in_ = np.array(state.feature_names, dtype=object)
    model.encoding_ = encoding
    model.parameters_ = parameters_by_name(state.process, encoded_of(encoding, state.matrix), encoding)
    model.remarks_ = list(state.remarks)
    found = state.found
    if isinstance(model, CoalescentClustering) and state.labels is None:
        raise InputError("it has no labels")
    if isinstance(found, TreeSample):
        model.sample_ = found
        if state.log_evidence is not None:
            model.log_evidence_ = state.log_evidence
        result: Any = found
    else:
        model.search_, model.neighbors_held_ = state.search, state.neighbors_held
        result = explain(found, state.matrix, state.process)
    model._settle(result, state.matrix, state.process, state.labels)
    model._prediction_seed = state.prediction_seed
    if state.prediction_rows is not None:
        weights = np.ones(len(state.prediction))
        model._asked = Predictor(state.prediction, weights, state.matrix[state.prediction_rows], model.n_jobs)
    model._with_holes = state.indicator_features
    model._constants = _constants(state)
    model._id_column = state.id_column
    return model


def _constants(state: ModelState) -> list[Any]:
    """Return for each column the one value that it had; None if it had several, or none."""
    categories = iter(state.encoding.categories)
    constants: list[Any] = []
    for kind, number in zip(state.encoding.kinds, state.constants, strict=True):
        own = next(categories) if kind == "categorical" else ()
        constants.append(own[0] if len(own) == 1 else number)
    return constants
