"""Missing cells as mixtures of Gaussians: components are collected, similar ones merged, and quantiles found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import NormalDist
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ..process.normal_scores import NormalScores
from ..process.predictions import CellQuantiles
from .kernels.mixtures import Table, add_all, find_quantiles, move

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

_LOWER = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.125, 0.16, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45)
#: Levels of the quantiles that are kept.
LEVELS = np.array([*_LOWER, 0.5, *(1 - level for level in reversed(_LOWER))])
#: Quantiles of the standard Gaussian at these levels.
DEVIATES = np.array([NormalDist().inv_cdf(level) for level in LEVELS.tolist()])

MIN_SHARE = 1e-8  # of a cell's mixture; points with less are left out
MIN_CAPACITY = 1 << 10
MAX_NEW_COMPONENTS = 100_000  # added in one step, and room made for all of them


class Components(NamedTuple):
    """Components of the mixtures of cells, sorted by cell."""

    cells: IntArray  # twice the index into the flattened rows x real columns; plus 1 for components of normal scores
    weights: FloatArray
    means: FloatArray
    variances: FloatArray

    @classmethod
    def from_cells(
        cls, requested: NDArray[np.bool_], weight: float, mean: FloatArray, variance: FloatArray, has_scores: bool
    ) -> Self:
        """Return one component for each requested cell of an array of rows and real columns."""
        cells = np.flatnonzero(requested)
        return cls(
            2 * cells + int(has_scores), np.full(len(cells), weight), mean.ravel()[cells], variance.ravel()[cells]
        )

    @classmethod
    def join(cls, parts: Sequence[Self]) -> Self:
        """Join components and sort them by cell."""
        cells, *arrays = map(np.concatenate, zip(*parts, strict=True))
        order = np.argsort(cells, kind="stable")
        return cls(cells[order], *(array[order] for array in arrays))

    def renumber(self, rows: IntArray, n_columns: int) -> Self:
        """Return the components of a part of the rows, given their indices, numbered among all rows, and not sorted."""
        row, rest = np.divmod(self.cells, 2 * n_columns)
        return self._replace(cells=rows[row] * (2 * n_columns) + rest)

    def quantiles(self, shape: tuple[int, ...], scores: NormalScores | None) -> CellQuantiles:
        """Return quantiles of all cells that have components: eq. (9.9). The array of rows and real columns has this shape."""
        first = np.flatnonzero(np.diff(self.cells // 2, prepend=-1))
        cells, first = self.cells[first] // 2, np.append(first, len(self.cells))
        n_scored = np.add.reduceat(self.cells % 2, first[:-1]) if len(cells) else np.zeros(0, dtype=np.intp)
        maps = [] if scores is None else scores.marginals
        first_knots = np.zeros(shape[1] + 1, dtype=np.intp)
        first_knots[1 : len(maps) + 1] = np.cumsum([len(marginal.knots) for marginal in maps])
        values = np.empty((len(cells), len(LEVELS)))
        find_quantiles(
            first,
            first[1:] - n_scored,
            self.weights,
            self.means,
            np.sqrt(self.variances),
            cells % shape[1],
            first_knots,
            np.concatenate([np.zeros(0), *(marginal.knots for marginal in maps)]),
            np.concatenate([np.zeros(0), *(marginal.scores for marginal in maps)]),
            LEVELS,
            DEVIATES,
            values,
        )
        at = np.full(shape, -1, dtype=np.intp)
        at.ravel()[cells] = np.arange(len(cells))
        return CellQuantiles(at, values)


class Mixtures:
    """Mixtures of some cells, to which components are added one after another."""

    def __init__(self) -> None:
        self.table = Table(MIN_CAPACITY)

    def reserve(self, count: int) -> Table:
        """Return the table, with room for some more components."""
        needed = 2 * (self.table.count + count)
        if needed > len(self.table.keys):
            larger = Table(1 << (needed - 1).bit_length())
            move(self.table, larger)
            self.table = larger
        return self.table

    def add(self, components: Components, weight: float = 1.0) -> None:
        """Add components, with weights multiplied by `weight`."""
        for part in split(np.ones(len(components.cells), dtype=np.intp)):
            cells, weights, means, variances = (array[part] for array in components)
            add_all(self.reserve(len(cells)), cells, weight * weights, means, variances)

    def components(self) -> Components:
        """Return the components, in an order that does not depend on other cells."""
        keys, sums = np.asarray(self.table.keys), np.asarray(self.table.sums)
        used = np.flatnonzero(keys[:, 0] >= 0)
        used = used[np.lexsort(keys[used, ::-1].T)]
        weight, first, second, near = sums[used].T
        shift = first / weight
        return Components(
            np.ascontiguousarray(keys[used, 0]), weight.copy(), near + shift, second / weight - shift * shift
        )


def split(counts: IntArray) -> Iterator[slice]:
    """Yield ranges of items, given how many components each may add, such that not too many are added at once."""
    totals = np.cumsum(counts)
    first = 0
    while first < len(counts):
        before = int(totals[first - 1]) if first else 0
        last = max(int(np.searchsorted(totals, before + MAX_NEW_COMPONENTS, side="right")), first + 1)
        yield slice(first, last)
        first = last
