"""The fitted model behind an estimator, and its columns, as figures need them."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..errors import InputError
from ..table.encoding import Encoding
from ..table.scaling import ColumnScale
from ..workflow.model import FittedModel


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
    """Return the fitted model of an estimator.

    Parameters
    ----------
    model : CoalescentClustering, CoalescentImputer or FittedModel

    Raises
    ------
    InputError
        If it is none of these, or not fitted; the message says what to pass.
    """
    fitted = getattr(model, "_model", model)
    if isinstance(fitted, FittedModel):
        return fitted
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
            column = EncodedColumn(name, real, (), next(scales), name in encoding.times)
            real += used
        else:
            column = EncodedColumn(name, categorical, next(categories), ColumnScale(0.0, 1.0), False)
            categorical += used
        if used:
            found.append(column)
    return found
