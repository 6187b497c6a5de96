"""What a process is to the rest of the library."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Literal, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._html import facts_html
from .._random import RandomState
from ..errors import InputError
from ..table.inputs import compute_dask
from ..tree.tree import Tree
from .kernels.messages import Forest
from .layout import Columns, Messages, make_forest

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


class Process(ABC):
    """A Markov process that runs down every branch of a tree and gives each leaf a row of the table.

    A process of Gaussian columns, or of columns whose states are redrawn from an equilibrium, is one module with a subclass of
    this: it declares its columns, and needs no compiled code of its own. Rows of ``X`` are leaves, NaN is a missing cell.
    """

    @abstractmethod
    def resolve(self, X: FloatArray) -> Self:
        """Return this process with everything that it leaves open settled from the data.

        Raises `InputError` when the rows cannot come from this process.
        """

    @abstractmethod
    def columns(self, X: FloatArray) -> list[Columns]:
        """Declare the kinds of the columns, their parameters and the messages of the rows of X; see `coaltree.process.layout`.

        Called on a resolved process. A process of one kind returns one declaration.
        """

    def forest(self, X: FloatArray, capacity: int, *, scan: bool = False) -> Forest:
        """Return a forest of `capacity` slots whose first ones hold the messages of the rows of X; see `make_forest`."""
        return make_forest(self.columns(X), capacity, scan)

    @abstractmethod
    def leaf_log_likelihoods(self, X: FloatArray) -> FloatArray:
        """Log of the constants ``Z_leaf`` of each row's message, shape ``(n,)``. Called on a resolved process."""

    @abstractmethod
    def simulate(self, tree: Tree, random_state: RandomState = None, *, n_columns: int | None = None) -> FloatArray:
        """Draw a table from the process on a given tree, one row a leaf.

        `n_columns` is for processes whose parameters do not say how many columns there are.
        """

    @abstractmethod
    def states(self, messages: Messages, distance: FloatArray, observed: bool) -> Predictions:
        """Return what messages say of states at the other end of paths of given lengths.

        `messages` has one entry for each declaration of `columns`. `observed` says whether the states are asked for as a leaf
        would show them, with its noise.
        """

    @abstractmethod
    def draw(self, messages: Messages, tree: Tree, size: int, rng: np.random.Generator) -> FloatArray:
        """Draw tables from the process on a tree, given all that was observed; shape ``(size, n_leaves, n_columns)``.

        `messages` are the upward ones of all nodes, leaves first. Every cell is drawn as a leaf would show it anew, with its
        noise; within a draw all cells belong together.
        """

    @property
    def settled_height(self) -> float:
        """A height so near to the leaves that what a new leaf shows does not depend on where below it attaches."""
        return 0.0

    @abstractmethod
    def coordinates(self, messages: Messages, height: float) -> NDArray[np.float32]:
        """Return points for lineages, such that those near each other are likely to merge.

        Squared distances are about the log likelihood that is lost where two lineages merge near a height, so that those of
        several processes can be added; NaN where nothing was observed below a lineage; shape ``(coordinates, lineages)``.
        """

    def unmixed(self, X: FloatArray) -> tuple[Process, FloatArray, float]:
        """Return an equal process with independent columns, X as it has to see it, and the log Jacobian of a row."""
        return self, X, 0.0

    def blends(self) -> list[Blend]:
        """Return the columns that `unmixed` makes independent, those of each covariance matrix by themselves."""
        return []

    def remarks(self, tree: Tree, X: FloatArray) -> list[str]:
        """Return sentences that the user of a tree found for X should read."""
        return []

    def log_likelihood(self, tree: Tree, X: ArrayLike) -> float:
        """Log likelihood of a table on a tree, every constant in: eq. (2.1).

        Parameters
        ----------
        tree : Tree
        X : array-like of shape (n_leaves, n_columns)
            Row i belongs to leaf i; NaN is a missing cell.

        Returns
        -------
        float
            ``log p(x | tree)``; minus infinity if the process cannot produce these rows on this tree.
        """
        from .likelihood import log_likelihood  # it calls the methods above

        return log_likelihood(self, tree, X)

    def _repr_html_(self) -> str:
        return facts_html(type(self).__name__, vars(self))


def check_process(process: object) -> None:
    """Raise unless something is a process."""
    if not isinstance(process, Process):
        raise InputError(f"process is {process!r}; it must be a process, for example Brownian() or Multinomial().")


def as_matrix(X: ArrayLike) -> FloatArray:
    """Return X as a fresh float matrix in which NaN is the only number that is not finite."""
    X = compute_dask(X)
    try:
        if hasattr(X, "isna") and hasattr(X, "to_numpy"):  # a pandas frame: its pd.NA needs asking for
            X = X.to_numpy(dtype=np.float64, na_value=np.nan)
        elif hasattr(X, "to_numpy"):
            X = X.to_numpy()
        given = np.asarray(X)
        if given.dtype.kind == "c":
            raise TypeError("complex numbers")
        matrix = np.array(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"The table could not be read as numbers ({error}); give real values or state codes, with NaN for missing "
            "cells, or use CoalescentClustering, which encodes text and categories itself."
        ) from None
    if matrix.ndim != 2:
        raise InputError(f"The table has {matrix.ndim} dimension(s); it must have two: rows and columns.")
    if matrix.shape[0] == 0 or matrix.shape[1] == 0:
        raise InputError(f"The table has shape {matrix.shape}; it needs at least one row and one column.")
    infinite = np.argwhere(np.isinf(matrix))
    if len(infinite):
        row, column = infinite[0]
        raise InputError(
            f"{len(infinite)} cell(s) are infinite, the first in row {row}, column {column}; cells must be finite numbers "
            "or NaN for missing: replace infinities by NaN or by a large finite value."
        )
    return matrix


def checked_column_count(n_columns: object) -> int | None:
    """Return how many columns to simulate, if it was said."""
    if n_columns is None:
        return None
    if isinstance(n_columns, bool) or not isinstance(n_columns, int | np.integer) or n_columns < 1:
        raise InputError(f"n_columns is {n_columns!r}; it must be a whole number of columns of at least 1, or None.")
    return int(n_columns)


def check_width(given: int, expected: int, what: str) -> None:
    """Raise unless a table has as many columns as a process describes."""
    if given != expected:
        raise InputError(f"The table has {given} column(s), but {what} describes {expected}; they must be as many.")


# Whether noise is to be fitted, or is what the user wants: then it has no prior, and no least value.
Noise: TypeAlias = Literal["fitted", "held"]

# Precisions, in units of the column's own, and rates have a Gamma prior of this shape and scale.
SHAPE, SCALE = 1.1, 1.1
RATE_RANGE = (1e-4, 1e4)


class Evidence(NamedTuple):
    """What parameters are fitted to: weighted trees over the rows of one table."""

    trees: Sequence[Tree]
    weights: FloatArray
    X: FloatArray

    def columns(self, columns: Sequence[int]) -> Evidence:
        """Return the same trees with some of the columns."""
        return self._replace(X=self.X[:, list(columns)])
