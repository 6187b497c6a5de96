"""Why rows are unusual: their most unusual cells and what was expected, in the units of the table."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from .._html import first_rows, rows_html
from ..errors import MissingDependencyError
from ..predict.mixtures import LEVELS
from ..process.predictions import Predictions
from ..table.encoding import EncodedColumn, encoded_columns
from ..workflow.model import FittedModel
from .facts import RealFacts
from .text import format_percent

FloatArray = NDArray[np.float64]

LEVEL = 0.9  # of the interval of expected values
UNLIKELY = 0.05  # probability of the cells that are named after the first


class UnusualCell(NamedTuple):
    """A cell of a row."""

    column: str
    value: str
    expected: str
    probability: float  # of a value at least as far from the prediction

    def __str__(self) -> str:
        return f"{self.column} {self.value}; {self.expected} expected"


class Explanation(NamedTuple):
    """Why a row is unusual."""

    row: str  # its name, or its number
    score: float
    cells: tuple[UnusualCell, ...]  # the most unusual first

    def __str__(self) -> str:
        return ", ".join(map(str, self.cells)) or "no observed cell"


@dataclass(frozen=True, eq=False, repr=False)
class Explanations(Sequence[Explanation]):
    """Explanations of rows, see `CoalescentOutlierDetector.explain`.

    Attributes
    ----------
    rows : tuple of Explanation
    index : pandas Index or None
        Index of the frame that the rows came from, if it had one.
    """

    rows: tuple[Explanation, ...]
    index: Any = None

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Explanation]:
        return iter(self.rows)

    @overload
    def __getitem__(self, at: int) -> Explanation: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Explanation, ...]: ...
    def __getitem__(self, at: int | slice) -> Explanation | tuple[Explanation, ...]:
        return self.rows[at]

    def __repr__(self) -> str:
        return "\n".join(f"{row.row} ({row.score:.2f}): {row}" for row in self.rows)

    def columns(self) -> dict[str, list[Any]]:
        """Return the columns of a table with a line for each cell."""
        lines = [(row, cell) for row in self.rows for cell in row.cells]
        return {
            "row": [row.row for row, _ in lines],
            "score": [row.score for row, _ in lines],
            "column": [cell.column for _, cell in lines],
            "value": [cell.value for _, cell in lines],
            "expected": [cell.expected for _, cell in lines],
            "probability": [cell.probability for _, cell in lines],
        }

    def to_pandas(self) -> Any:
        """Return a pandas frame with a line for each cell; its index is that of the rows."""
        try:
            import pandas as pd
        except ImportError:
            raise MissingDependencyError("Explanations.to_pandas", "pandas", "analysis") from None
        columns = self.columns()
        names = columns.pop("row")
        if self.index is not None:
            names = [self.index[k] for k, row in enumerate(self.rows) for _ in row.cells]
        return pd.DataFrame(columns, index=pd.Index(names, name="row"))

    def _repr_html_(self) -> str:
        shown = self.rows[first_rows(len(self.rows))]
        columns: dict[str, list[object]] = {
            "row": [row.row for row in shown],
            "score": [row.score for row in shown],
            "why": list(map(str, shown)),
        }
        return rows_html("Explanations", columns, len(self.rows))


def explain_rows(
    model: FittedModel, matrix: FloatArray, names: Sequence[str], n_cells: int, index: Any = None
) -> Explanations:
    """Return why encoded rows are unusual; `index` is the index of their frame."""
    scores = model.outlier_scores(matrix)
    columns = sorted(encoded_columns(model.encoding), key=lambda column: column.position)
    cells: list[list[UnusualCell]] = [[] for _ in scores]
    for found in model.unusual_cells(matrix, n_cells) if columns else []:
        writers = [_Writer(column, found.predictions, matrix) for column in columns]
        for k, (j, deviation) in enumerate(zip(found.columns.tolist(), found.deviations.tolist(), strict=True)):
            probability = math.erfc(deviation / math.sqrt(2))
            if deviation > 0 and (probability < UNLIKELY or not cells[k]):
                cells[k].append(UnusualCell(columns[j].name, writers[j].value(k), writers[j].expected(k), probability))
    parts = zip(names, scores.tolist(), cells, strict=True)
    return Explanations(tuple(Explanation(str(name), score, tuple(row)) for name, score, row in parts), index)


class _Writer:
    """Writes the cells of a column, and what was expected."""

    def __init__(self, column: EncodedColumn, predictions: Predictions, matrix: FloatArray) -> None:
        self._column = column
        self._cells = matrix[:, column.position]
        if column.real:
            k = int(np.flatnonzero(predictions.real == column.position)[0])
            assert predictions.quantiles is not None
            quantiles = predictions.quantiles.values[predictions.quantiles.at[:, k]]
            ends = [int(np.argmin(np.abs(LEVELS - level))) for level in (0.5 - LEVEL / 2, 0.5 + LEVEL / 2)]
            self._low, self._high = (column.scale.decode(quantiles[:, end]) for end in ends)
            values = column.scale.decode(self._cells)
            none = np.zeros(0)
            self._facts = RealFacts(column.name, values, none, none, none, none, column.time)
        else:
            k = int(np.flatnonzero(predictions.categorical == column.position)[0])
            self._shares = predictions.probability[:, predictions.start[k] : predictions.start[k + 1]]

    def value(self, row: int) -> str:
        """Write the cell of a row."""
        if self._column.real:
            return self._facts.format_cell(row)
        code = int(self._cells[row])
        return str(self._column.categories[code]) if code >= 0 else "one of several"

    def expected(self, row: int) -> str:
        """Write the interval of the expected values, or the most probable category."""
        if not self._column.real:
            best = int(self._shares[row].argmax())
            return f"{self._column.categories[best]} ({format_percent(float(self._shares[row, best]))})"
        low, high = float(self._low[row]), float(self._high[row])
        if math.isnan(low):
            return "anything"
        # Rounded so that the width keeps one or two digits.
        ends = [self._facts.format_value(end, 2 * (high - low)) for end in (low, high)]
        return ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"
