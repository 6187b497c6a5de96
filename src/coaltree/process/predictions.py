"""What a process says of cells: a Gaussian for each real one, a probability for each state of each categorical one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]


class Predictions(NamedTuple):
    """Independent distributions of the cells of some rows, nodes or places in a tree.

    Attributes
    ----------
    real : ndarray of int, shape (R,)
        The real columns.
    mean, sd : ndarray of shape (rows, R)
        Of their cells; sd is infinite where nothing is known.
    categorical : ndarray of int, shape (C,)
        The categorical columns.
    start : ndarray of int, shape (C + 1,)
        Where the states of each begin in `probability`.
    probability : ndarray of shape (rows, start[-1])
        Of the states of their cells.
    """

    real: IntArray
    mean: FloatArray
    sd: FloatArray
    categorical: IntArray
    start: IntArray
    probability: FloatArray

    @classmethod
    def of_real(cls, mean: FloatArray, sd: FloatArray) -> Self:
        """Return predictions for real columns alone."""
        none = np.zeros(0, dtype=np.intp)
        return cls(np.arange(mean.shape[1]), mean, sd, none, np.zeros(1, dtype=np.intp), np.empty((len(mean), 0)))

    @classmethod
    def of_categorical(cls, start: IntArray, probability: FloatArray) -> Self:
        """Return predictions for categorical columns alone."""
        empty = np.empty((len(probability), 0))
        return cls(np.zeros(0, dtype=np.intp), empty, empty, np.arange(len(start) - 1), start, probability)

    @classmethod
    def side_by_side(cls, parts: list[tuple[Self, IntArray]]) -> Self:
        """Return the predictions of parts, each with the table's columns that are its own."""
        starts, offset = [np.zeros(1, dtype=np.intp)], 0
        for part, _ in parts:
            starts.append(part.start[1:] + offset)
            offset += int(part.start[-1])
        return cls(
            np.concatenate([columns[part.real] for part, columns in parts]),
            np.hstack([part.mean for part, _ in parts]),
            np.hstack([part.sd for part, _ in parts]),
            np.concatenate([columns[part.categorical] for part, columns in parts]),
            np.concatenate(starts),
            np.hstack([part.probability for part, _ in parts]),
        )

    @classmethod
    def stacked(cls, blocks: Sequence[Self]) -> Self:
        """Return the rows of blocks one below the other."""
        return blocks[0]._replace(
            mean=np.concatenate([block.mean for block in blocks]),
            sd=np.concatenate([block.sd for block in blocks]),
            probability=np.concatenate([block.probability for block in blocks]),
        )

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.mean)

    def take(self, rows: IntArray | slice) -> Self:
        """Return the predictions of some rows."""
        return self._replace(mean=self.mean[rows], sd=self.sd[rows], probability=self.probability[rows])

    def __repr__(self) -> str:
        return f"<Predictions: {self.n_rows:,} rows, {len(self.real)} real and {len(self.categorical)} categorical columns>"
