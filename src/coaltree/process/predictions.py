"""Predictive distributions of cells: for rows, for nodes, or for points in a tree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ..table.cells import set_members

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
BoolArray = NDArray[np.bool_]


class CellQuantiles(NamedTuple):
    """Quantiles of some real cells, at levels that all of them share."""

    at: IntArray  # (rows, R), where the quantiles of each cell are; -1 for cells without
    values: FloatArray  # (cells, levels)

    @classmethod
    def stack(cls, blocks: Sequence[Self]) -> Self:
        """Stack the rows of several blocks."""
        starts = np.cumsum([0, *(len(block.values) for block in blocks[:-1])])
        at = [np.where(block.at >= 0, block.at + start, -1) for block, start in zip(blocks, starts, strict=True)]
        return cls(np.concatenate(at), np.concatenate([block.values for block in blocks]))


class Predictions(NamedTuple):
    """Independent distributions of the cells of some rows, nodes or points in a tree.

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
    quantiles : CellQuantiles, optional
        Of real cells, if they were asked for.
    """

    real: IntArray
    mean: FloatArray
    sd: FloatArray
    categorical: IntArray
    start: IntArray
    probability: FloatArray
    quantiles: CellQuantiles | None = None

    @classmethod
    def from_real(cls, mean: FloatArray, sd: FloatArray) -> Self:
        """Return predictions for real columns only."""
        none = np.zeros(0, dtype=np.intp)
        return cls(np.arange(mean.shape[1]), mean, sd, none, np.zeros(1, dtype=np.intp), np.empty((len(mean), 0)))

    @classmethod
    def from_categorical(cls, start: IntArray, probability: FloatArray) -> Self:
        """Return predictions for categorical columns only."""
        start, empty = np.asarray(start, dtype=np.intp), np.empty((len(probability), 0))
        return cls(np.zeros(0, dtype=np.intp), empty, empty, np.arange(len(start) - 1), start, probability)

    @classmethod
    def join_columns(cls, parts: list[tuple[Self, IntArray]]) -> Self:
        """Join the predictions of several processes, each given with the columns of the table that it describes."""
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
    def stack(cls, blocks: Sequence[Self]) -> Self:
        """Stack the rows of several blocks. The result has quantiles if all blocks have them."""
        quantiles = [block.quantiles for block in blocks if block.quantiles is not None]
        return blocks[0]._replace(
            quantiles=CellQuantiles.stack(quantiles) if len(quantiles) == len(blocks) else None,
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
        quantiles = self.quantiles
        return self._replace(
            mean=self.mean[rows],
            sd=self.sd[rows],
            probability=self.probability[rows],
            quantiles=None if quantiles is None else quantiles._replace(at=quantiles.at[rows]),
        )

    def restrict(self, X: FloatArray) -> Self:
        """Return the predictions with cells that are one of several states conditioned on that.

        Parameters
        ----------
        X : ndarray of shape (rows, D)
            The rows of the table, in which such cells have the codes of sets of states.
        """
        rows, columns = np.nonzero(X[:, self.categorical] < 0)
        if not len(rows):
            return self
        probability = self.probability.copy()
        for row, k in zip(rows.tolist(), columns.tolist(), strict=True):
            shares = probability[row, self.start[k] : self.start[k + 1]]
            shares *= set_members(X[row, self.categorical[k], None], len(shares))[0]
            shares /= shares.sum()
        return self._replace(probability=probability)

    def __repr__(self) -> str:
        return f"<Predictions: {self.n_rows:,} rows, {len(self.real)} real and {len(self.categorical)} categorical columns>"


class Whitening(NamedTuple):
    """A linear map to independent components: ``z = x @ basis + origin``, component k in place of column k."""

    columns: IntArray  # (K,)
    basis: FloatArray  # (K, K)
    origin: FloatArray  # (K,)

    def invert(self, white: FloatArray) -> FloatArray:
        """Return the columns, given the components, shape ``(..., K)``."""
        return np.asarray((white - self.origin) @ np.linalg.inv(self.basis))

    def column_variances(self, white: FloatArray) -> FloatArray:
        """Return the variances of the columns, given those of the components, shape ``(..., K)``."""
        return np.asarray(white @ np.linalg.inv(self.basis) ** 2)

    def condition(
        self, cells: FloatArray, missing: BoolArray, mean: FloatArray, sd: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the distribution of the missing cells of rows, given the other cells.

        Parameters
        ----------
        cells : ndarray of shape (rows, K)
            Missing ones may have any value.
        missing : ndarray of bool, shape (K,)
            The same for all rows.
        mean, sd : ndarray of shape (rows, K)
            Of the components.

        Returns
        -------
        mean : ndarray of shape (rows, M)
            Of the missing cells.
        root : ndarray of shape (rows, M, M)
            ``root @ root.T`` is their covariance matrix.
        """
        gaps = cells @ self.basis + self.origin - mean
        scaled = self.basis[missing] / sd[:, None, :]  # (rows, M, K): the precision matrix is scaled @ scaled.T
        lower = np.linalg.cholesky(scaled @ scaled.transpose(0, 2, 1))
        root = np.linalg.inv(lower).transpose(0, 2, 1)
        slopes = scaled @ (gaps / sd)[:, :, None]
        shift = root @ (root.transpose(0, 2, 1) @ slopes)
        return cells[:, missing] - shift[:, :, 0], root
