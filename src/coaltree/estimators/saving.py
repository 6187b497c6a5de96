"""Fitted models as the content of files."""

from __future__ import annotations

import inspect
from dataclasses import replace
from pathlib import Path

from .._atomic import write_atomic
from ..errors import InputError
from ..persist.model import ModelState
from ..persist.results import clusters_chosen_by
from .base import CoalescentModel, check_fitted
from .clusters import ClusterModel


def parameter_names(kind: type[CoalescentModel]) -> list[str]:
    """Return the names of a model's parameters, sorted as scikit-learn sorts them."""
    return sorted(inspect.signature(kind).parameters)


def save_model(model: CoalescentModel, path: str | Path) -> None:
    """Write a fitted estimator into a file, whole or not at all; an earlier file of that name is replaced.

    Nothing in the file is pickled, and the same model makes the same file. A ``random_state`` that is a generator is not
    kept.

    Parameters
    ----------
    model : CoalescentClustering or CoalescentImputer, fitted
    path : str or Path
        The file, for example ``"model.coaltree"``.

    Raises
    ------
    InputError
        When it cannot be written.
    """
    write_atomic(path, model_bytes(model))


def model_bytes(model: CoalescentModel) -> bytes:
    """Return what `save_model` writes."""
    check_fitted(model)
    if "_stored_as" not in vars(type(model)):  # a subclass may have more to keep
        raise InputError(
            f"A {type(model).__name__} cannot be saved: only CoalescentClustering and CoalescentImputer themselves can."
        )
    return state_of(model).to_bytes()


def state_of(model: CoalescentModel) -> ModelState:
    """Return all that has to be kept of a fitted estimator."""
    encoding = model.encoding_
    sample = getattr(model, "sample_", None)
    # The command line reads tables itself, and its columns have names.
    named = getattr(model, "feature_names_in_", None if hasattr(model, "n_features_in_") else encoding.column_names)
    state = ModelState(
        model._stored_as,
        {name: getattr(model, name) for name in parameter_names(type(model)) if name != "client"},
        encoding,
        model.process_,
        model._matrix,
        model.tree_ if sample is None else sample,
        tuple(model.remarks_),
        tuple(
            float(own) if kind == "real" and own is not None else None
            for own, kind in zip(model._constants, encoding.kinds, strict=True)
        ),
        model._with_holes,
        None if named is None else tuple(map(str, named)),
        getattr(model, "log_evidence_", None),
        search=getattr(model, "search_", None),
        neighbors_held=getattr(model, "neighbors_held_", None),
        id_column=model._id_column,
        prediction_seed=model._prediction_seed,
    )
    if model._asked is not None and not model._asks_sample:
        draws = model._asked.ensemble.draws
        state = replace(state, prediction_rows=model._prediction_rows(), prediction=tuple(draws))
    if isinstance(model, ClusterModel):
        return replace(state, labels=model.labels_, clusters_chosen_by=clusters_chosen_by(model))
    return state
