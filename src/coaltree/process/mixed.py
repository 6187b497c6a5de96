"""Columns of several kinds side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._html import facts_html
from .._random import RandomState, as_generator
from ..errors import InputError
from ..tree.tree import Tree, check_tree
from .base import Blend, Predictions, Process, check_width, checked_column_count
from .layout import Columns, Messages

FloatArray = NDArray[np.float64]


class Mixed(Process):
    """Several processes, each with its own columns, independent given the tree: eq. (2.3).

    Parameters
    ----------
    *parts : pairs (process, columns), or one list of them
        A process and the indices of its columns. Together the parts must name every column once.

    Examples
    --------
    >>> import coaltree as ct
    >>> process = ct.Mixed((ct.Brownian(), [0, 1]), (ct.Multinomial(rate=0.5), [2]))
    >>> X = [[0.1, 2.0, 0], [0.3, 1.8, 0], [4.0, 0.2, 1]]
    >>> ct.greedy(X, process).tree.children.tolist()
    [[0, 1], [2, 3]]
    """

    def __init__(self, *parts: tuple[Process, ArrayLike] | list[tuple[Process, ArrayLike]]) -> None:
        given = parts[0] if len(parts) == 1 and isinstance(parts[0], list) else parts
        checked = []
        for part in given:
            if not (isinstance(part, Sequence) and len(part) == 2 and isinstance(part[0], Process)):
                raise InputError(
                    f"Mixed takes pairs (process, columns), for example (Brownian(), [0, 1]); it got {part!r}."
                )
            columns = np.atleast_1d(np.asarray(part[1]))
            if columns.ndim != 1 or columns.size == 0 or not np.issubdtype(columns.dtype, np.integer):
                raise InputError(f"The columns of {part[0]!r} are {part[1]!r}; they must be a list of column indices.")
            checked.append((part[0], tuple(int(column) for column in columns)))
        if not checked:
            raise InputError("Mixed needs at least one pair (process, columns).")
        named = sorted(column for _, columns in checked for column in columns)
        if named != list(range(len(named))):
            raise InputError(
                f"The parts of Mixed name the columns {named}; together they must name 0, 1, 2, ... once each."
            )
        self.parts: tuple[tuple[Process, tuple[int, ...]], ...] = tuple(checked)

    @property
    def n_columns(self) -> int:
        """Number of columns of all parts together."""
        return sum(len(columns) for _, columns in self.parts)

    def __repr__(self) -> str:
        return f"Mixed({', '.join(f'({process!r}, {list(columns)})' for process, columns in self.parts)})"

    def _repr_html_(self) -> str:
        return facts_html("Mixed", {f"columns from {columns[0]}": process for process, columns in self.parts})

    def resolve(self, X: FloatArray) -> Self:
        """Resolve every part on its own columns."""
        check_width(X.shape[1], self.n_columns, "Mixed")
        return type(self)(*((process.resolve(X[:, columns]), columns) for process, columns in self.parts))

    def columns(self, X: FloatArray) -> list[Columns]:
        """Return the declarations of all parts."""
        return [own for process, columns in self.parts for own in process.columns(X[:, columns])]

    def leaf_log_likelihoods(self, X: FloatArray) -> FloatArray:
        """Return the sum over the parts."""
        total = np.zeros(len(X))
        for process, columns in self.parts:
            total += process.leaf_log_likelihoods(X[:, columns])
        return total

    def simulate(self, tree: Tree, random_state: RandomState = None, *, n_columns: int | None = None) -> FloatArray:
        """Draw a table, every part its own columns: row i is leaf i."""
        tree, width = check_tree(tree), checked_column_count(n_columns)
        if width is not None:
            check_width(width, self.n_columns, "Mixed")
        rng = as_generator(random_state)
        table = np.empty((tree.n_leaves, self.n_columns))
        for process, columns in self.parts:
            table[:, columns] = process.simulate(tree, rng, n_columns=len(columns))
        return table

    def _by_part(self, messages: Messages) -> Iterator[tuple[Process, tuple[int, ...], Messages]]:
        """Yield the parts with their messages."""
        first = 0
        for process, columns in self.parts:
            last = first + _n_declarations(process)
            yield process, columns, messages[first:last]
            first = last

    def coordinates(self, messages: Messages, height: float) -> NDArray[np.float32]:
        """Return the coordinates of all parts."""
        return np.concatenate([process.coordinates(own, height) for process, _, own in self._by_part(messages)])

    @property
    def settled_height(self) -> float:
        """The smallest of the parts'."""
        return min(process.settled_height for process, _ in self.parts)

    def draw(self, messages: Messages, tree: Tree, size: int, rng: np.random.Generator) -> FloatArray:
        """Draw every part its own columns; see `Process.draw`."""
        tables = np.empty((size, tree.n_leaves, self.n_columns))
        for process, columns, own in self._by_part(messages):
            tables[:, :, columns] = process.draw(own, tree, size, rng)
        return tables

    def unmixed(self, X: FloatArray) -> tuple[Process, FloatArray, float]:
        """Return every part with independent columns."""
        white, total, parts = X.copy(), 0.0, []
        for process, columns in self.parts:
            own, white[:, columns], log_jacobian = process.unmixed(X[:, columns])
            parts.append((own, columns))
            total += log_jacobian
        return type(self)(*parts), white, total

    def blends(self) -> list[Blend]:
        """Return those of all parts."""
        return [
            blend._replace(columns=np.array(columns)[blend.columns])
            for process, columns in self.parts
            for blend in process.blends()
        ]

    def states(self, messages: Messages, distance: FloatArray, observed: bool) -> Predictions:
        """Return what messages say of states some way off, every part of its own columns."""
        return Predictions.side_by_side(
            [
                (process.states(own, distance, observed), np.array(columns))
                for process, columns, own in self._by_part(messages)
            ]
        )

    def remarks(self, tree: Tree, X: FloatArray) -> list[str]:
        """Return the remarks of all parts."""
        return [remark for process, columns in self.parts for remark in process.remarks(tree, X[:, columns])]


def _n_declarations(process: Process) -> int:
    """Return how many declarations a process makes of its columns."""
    return sum(_n_declarations(part) for part, _ in process.parts) if isinstance(process, Mixed) else 1
