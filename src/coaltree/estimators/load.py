"""Fitted estimators from model files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from .._progress import Progress
from ..persist.model import ModelRecord, read_model_record, restore_model
from ..workflow.model import FittedModel
from ..workflow.settings import SETTINGS, ImputationSettings, OutlierSettings, Settings, parameter_names
from .clustering import CoalescentClustering
from .imputer import CoalescentImputer
from .outliers import CoalescentOutlierDetector

ESTIMATORS = {kind._estimator: kind for kind in (CoalescentClustering, CoalescentImputer, CoalescentOutlierDetector)}
AnyEstimator = CoalescentClustering | CoalescentImputer | CoalescentOutlierDetector


def load_model(path: str | Path) -> AnyEstimator:
    """Read a fitted estimator from a file that its method ``save`` or the command ``coaltree fit`` wrote.

    It gives the same predictions as the estimator that was saved. Files need not be trusted: nothing in them is executed, and a
    file that does not hold a valid model is rejected.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    CoalescentClustering, CoalescentImputer or CoalescentOutlierDetector

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


def to_estimator(record: ModelRecord, source: str) -> AnyEstimator:
    """Return the estimator of a record; messages call the file `source`."""
    model: FittedModel = restore_model(record, source)
    return ESTIMATORS[model.settings._estimator]._from_model(model)


def to_detector(
    record: ModelRecord, source: str, parameters: dict[str, Any], progress: Progress | None = None
) -> CoalescentOutlierDetector:
    """Return a fitted estimator of any kind as an outlier detector over the same rows.

    Parameters
    ----------
    record : ModelRecord
    source : str
        The file, for messages.
    parameters : dict
        Parameters that replace those of the model.
    progress : callable, optional
        Called while trees are drawn, if the model has none.

    Returns
    -------
    CoalescentOutlierDetector
    """
    record = _convert(record, OutlierSettings, parameters)
    model = restore_model(record, source)
    model.draw_trees(progress)
    return CoalescentOutlierDetector._from_model(model)


def to_imputer(record: ModelRecord, source: str, n_jobs: int | None = None) -> CoalescentImputer:
    """Return a fitted estimator of any kind as an imputer with the same tree and process.

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
    record = _convert(record, ImputationSettings, {} if n_jobs is None else {"n_jobs": n_jobs})
    return CoalescentImputer._from_model(restore_model(record, source))


def _convert(record: ModelRecord, kind: type[Settings], parameters: dict[str, Any]) -> ModelRecord:
    """Return the record of another kind of estimator with the same tree and process, with some parameters replaced."""
    kept = record.parameters
    if record.estimator in SETTINGS:
        own = {*parameter_names(SETTINGS[record.estimator])} - {*parameter_names(kind)}
        kept = {name: value for name, value in kept.items() if name not in own}
        record = replace(record, estimator=kind._estimator, labels=None)
    return replace(record, parameters=kept | parameters)
