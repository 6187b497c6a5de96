"""Fitted estimators from model files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ..errors import InputError
from ..persist.model import ModelRecord, invalid_model_error, read_model_record, restore_model
from ..workflow.settings import ClusterSettings, ImputationSettings, parameter_names
from .clustering import CoalescentClustering
from .imputer import CoalescentImputer


def load_model(path: str | Path) -> CoalescentClustering | CoalescentImputer:
    """Read a fitted estimator from a file that its method ``save`` or the command ``coaltree fit`` wrote.

    It gives the same predictions as the estimator that was saved. Files need not be trusted: nothing in them is executed, and a
    file that does not hold a valid model is rejected.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    CoalescentClustering or CoalescentImputer

    Raises
    ------
    InputError
        If there is no such file, or it does not hold a complete model.

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
    return to_estimator(read_model_record(path), str(path))


def to_estimator(record: ModelRecord, source: str) -> CoalescentClustering | CoalescentImputer:
    """Return the estimator of a record; messages call the file `source`."""
    model = restore_model(record, source)
    if isinstance(model.settings, ClusterSettings):
        return CoalescentClustering._from_model(model)
    return CoalescentImputer._from_model(model)


def to_imputer(record: ModelRecord, source: str, n_jobs: int | None = None) -> CoalescentImputer:
    """Return a fitted estimator of either kind as an imputer with the same tree and process.

    Parameters
    ----------
    record : ModelRecord
    source : str
        The file, for messages.
    n_jobs : int, optional
        Number of threads; by default that of the model.

    Returns
    -------
    CoalescentImputer
    """
    parameters = record.parameters if n_jobs is None else record.parameters | {"n_jobs": n_jobs}
    if record.estimator == ClusterSettings._estimator:
        cluster_only = {*parameter_names(ClusterSettings)} - {*parameter_names(ImputationSettings)}
        parameters = {name: value for name, value in parameters.items() if name not in cluster_only}
        record = replace(record, estimator=ImputationSettings._estimator, labels=None)
    model = to_estimator(replace(record, parameters=parameters), source)
    if not isinstance(model, CoalescentImputer):
        raise invalid_model_error(source, InputError(f"it is a {record.estimator}"))
    return model
