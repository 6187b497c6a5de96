"""The attributes of a fitted estimator that figures use, as a protocol: estimators import figures, not the reverse."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..predict.predictor import Predictor
from ..process.base import Process
from ..process.predictions import Predictions
from ..table.encoding import Encoding
from ..table.scaling import ColumnScale
from ..tree.tree import Tree

FloatArray = NDArray[np.float64]


class FittedModel(Protocol):
    """A fitted CoalescentClustering, which has ``labels_`` as well, or CoalescentImputer."""

    encoding_: Encoding
    process_: Process
    tree_: Tree
    _matrix: FloatArray

    @property
    def _predictor(self) -> Predictor: ...

    def _expected_cells(self, X: FloatArray) -> Predictions: ...


class EncodedColumn(NamedTuple):
    """A column in use, with its place in the encoded table."""

    name: str
    position: int  # in the matrix of the encoded table
    categories: tuple[Any, ...]  # none for a real column
    scale: ColumnScale
    time: bool  # whether values are times, as days since 1970-01-01

    @property
    def real(self) -> bool:
        """Whether the column is real."""
        return not self.categories


def check_fitted_model(model: Any) -> FittedModel:
    """Return a fitted estimator unchanged; raise for anything else.

    Raises
    ------
    InputError
        If it is not a fitted estimator; the message says what to pass.
    """
    if hasattr(model, "tree_") and hasattr(model, "_matrix"):
        found: FittedModel = model
        return found
    if hasattr(model, "fit"):
        raise InputError(f"model is a {type(model).__name__} that has not been fitted; call its fit(table) first.")
    raise InputError(
        f"model is of type {type(model).__name__}; it must be a fitted CoalescentClustering or CoalescentImputer."
    )


def encoded_columns(encoding: Encoding) -> list[EncodedColumn]:
    """Return the columns in use, in the order of the table."""
    kinds = list(zip(encoding.column_names, encoding.kinds, encoding.informative.tolist(), strict=True))
    real, categorical = 0, sum(kind == "real" and used for _, kind, used in kinds)
    scales = iter(encoding.column_scales)
    categories = iter(encoding.categories)
    found = []
    for name, kind, used in kinds:
        if kind == "real":
            own = EncodedColumn(name, real, (), next(scales), name in encoding.times)
            real += used
        else:
            own = EncodedColumn(name, categorical, next(categories), ColumnScale(0.0, 1.0), False)
            categorical += used
        if used:
            found.append(own)
    return found


def encoded_table(model: FittedModel) -> FloatArray:
    """Return the encoded table of the fit, real columns first, NaN for missing cells."""
    return model._matrix
