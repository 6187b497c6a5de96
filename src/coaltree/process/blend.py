"""Real columns with a covariance matrix: the way to coordinates in which they are independent, and back."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
BoolArray = NDArray[np.bool_]


class Blend(NamedTuple):
    """Columns that are independent as ``z = x @ basis + origin``, component k in place of column k."""

    columns: IntArray  # (K,)
    basis: FloatArray  # (K, K)
    origin: FloatArray  # (K,)

    def coloured(self, white: FloatArray) -> FloatArray:
        """Return the columns of components, shape ``(..., K)``."""
        return np.asarray((white - self.origin) @ np.linalg.inv(self.basis))

    def variances(self, white: FloatArray) -> FloatArray:
        """Return the variances of the columns, given those of the components, shape ``(..., K)``."""
        return np.asarray(white @ np.linalg.inv(self.basis) ** 2)

    def condition(
        self, cells: FloatArray, missing: BoolArray, mean: FloatArray, sd: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return what the missing cells of rows are, given the others.

        Parameters
        ----------
        cells : ndarray of shape (rows, K)
            Those that are missing have any value.
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
        own = self.basis[missing] / sd[:, None, :]  # (rows, M, K): the precision matrix is own @ own.T
        lower = np.linalg.cholesky(own @ own.transpose(0, 2, 1))
        root = np.linalg.inv(lower).transpose(0, 2, 1)
        slopes = own @ (gaps / sd)[:, :, None]
        shift = root @ (root.transpose(0, 2, 1) @ slopes)
        return cells[:, missing] - shift[:, :, 0], root
