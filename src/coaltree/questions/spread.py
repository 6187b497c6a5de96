"""Questions about many new rows, spread over the workers of a Dask cluster."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..inference.carriers import opened_client
from ..inference.checkpoints import told_how_to_go_on
from ..process.predictions import Predictions
from .predictor import Predictor

ROWS_AT_ONCE = 2_000  # of fewer, sending takes longer than answering


def ask(predictor: Predictor, question: str, X: NDArray[np.float64], *arguments: Any, client: Any = None) -> Any:
    """Ask a predictor about rows; of many, workers of a client answer some each, in the same words.

    Rows that are known in part are asked of fewer draws, see `Predictor.few`.

    Parameters
    ----------
    predictor : Predictor
    question : str
        The method that answers.
    X : ndarray of shape (n_rows, n_columns)
    arguments : object
        What the method takes besides.
    client : distributed.Client or str, optional

    Returns
    -------
    ndarray, Predictions or Placed
    """
    in_part = predictor.known_in_part(X)
    if in_part.any() and predictor.few is not predictor:
        order = np.argsort(np.concatenate([np.flatnonzero(in_part), np.flatnonzero(~in_part)]))
        parts = [(predictor.few, X[in_part]), (predictor, X[~in_part])]
        answers = [ask(asked, question, rows, *arguments, client=client) for asked, rows in parts if len(rows)]
        return _taken(_joined(answers), order)
    if client is None or len(X) <= ROWS_AT_ONCE:
        return getattr(predictor, question)(X, *arguments)
    sent = copy.copy(predictor)
    sent.n_threads = 1
    tasks = ((X[first : first + ROWS_AT_ONCE],) for first in range(0, len(X), ROWS_AT_ONCE))
    with opened_client(client) as opened, told_how_to_go_on(can_be_kept=False):
        from ..inference.cluster import Cluster

        return _joined(list(Cluster(opened, predictor.n_threads).run_on((sent, question, arguments), answered, tasks)))


def answered(asked: tuple[Predictor, str, tuple[Any, ...]], X: NDArray[np.float64]) -> Any:
    """Answer a question about some rows."""
    predictor, question, arguments = asked
    return getattr(predictor, question)(X, *arguments)


def _taken(answer: Any, order: NDArray[np.intp]) -> Any:
    """Put answers about rows into another order."""
    if isinstance(answer, Predictions):
        return answer.take(order)
    return type(answer)(*(own[order] for own in answer)) if isinstance(answer, tuple) else answer[order]


def _joined(answers: list[Any]) -> Any:
    """Put answers about rows one below the other."""
    if isinstance(answers[0], Predictions):
        return Predictions.stacked(answers)
    if isinstance(answers[0], tuple):
        return type(answers[0])(*map(np.concatenate, zip(*answers, strict=True)))
    return np.concatenate(answers)
