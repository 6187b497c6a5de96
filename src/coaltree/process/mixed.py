"""`Mixed`: several processes side by side, each for some of the columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._html import facts_html
from .._random import RandomState, as_generator
from .._validation import check_column_count, check_width, quote
from ..errors import InputError
from ..table.cells import Category
from ..table.scaling import ColumnScale
from ..tree.tree import Tree, check_tree
from .ascertainment import UnseenColumns
from .base import ParameterSampler, Process, WeightedTrees
from .declarations import Columns
from .layout import Messages
from .predictions import Predictions, Whitening

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

    kind = "mixed"

    def __init__(self, *parts: tuple[Process, ArrayLike] | list[tuple[Process, ArrayLike]]) -> None:
        processes = parts[0] if len(parts) == 1 and isinstance(parts[0], list) else parts
        checked = []
        for part in processes:
            if not (isinstance(part, Sequence) and len(part) == 2 and isinstance(part[0], Process)):
                raise InputError(
                    f"Mixed takes pairs (process, columns), for example (Brownian(), [0, 1]); it got {quote(part)}."
                )
            columns = np.atleast_1d(np.asarray(part[1]))
            if columns.ndim != 1 or columns.size == 0 or not np.issubdtype(columns.dtype, np.integer):
                raise InputError(
                    f"The columns of {quote(part[0])} are {quote(part[1])}; they must be a list of column indices."
                )
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
    def takes_state_sets(self) -> bool:  # type: ignore[override]
        """Whether all parts take cells that are one of several states."""
        return all(process.takes_state_sets for process, _ in self.parts)

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

    @property
    def n_declarations(self) -> int:
        """Number of declarations of all parts."""
        return sum(process.n_declarations for process, _ in self.parts)

    def columns(self, X: FloatArray) -> list[Columns]:
        """Return the declarations of all parts."""
        return [declaration for process, columns in self.parts for declaration in process.columns(X[:, columns])]

    def leaf_log_likelihoods(self, X: FloatArray) -> FloatArray:
        """Return the sum over the parts."""
        total = np.zeros(len(X))
        for process, columns in self.parts:
            total += process.leaf_log_likelihoods(X[:, columns])
        return total

    def simulate(self, tree: Tree, random_state: RandomState = None, *, n_columns: int | None = None) -> FloatArray:
        """Draw a table part by part: row i is leaf i."""
        tree, width = check_tree(tree), check_column_count(n_columns)
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
            last = first + process.n_declarations
            yield process, columns, messages[first:last]
            first = last

    def coordinates(self, messages: Messages, height: float) -> NDArray[np.float32]:
        """Return the coordinates of all parts."""
        return np.concatenate([process.coordinates(part, height) for process, _, part in self._by_part(messages)])

    def max_exact_rows(self, X: FloatArray) -> int:
        """Return the smallest number of rows of any part, and of processes in general."""
        return min(super().max_exact_rows(X), *(part.max_exact_rows(X[:, columns]) for part, columns in self.parts))

    @property
    def min_attachment_height(self) -> float:
        """The smallest of the parts'."""
        return min(process.min_attachment_height for process, _ in self.parts)

    def draw(self, messages: Messages, tree: Tree, size: int, rng: np.random.Generator) -> FloatArray:
        """Draw the columns of every part; see `Process.draw`."""
        tables = np.empty((size, tree.n_leaves, self.n_columns))
        for process, columns, part in self._by_part(messages):
            tables[:, :, columns] = process.draw(part, tree, size, rng)
        return tables

    def decorrelate(self, X: FloatArray) -> tuple[Process, FloatArray, float]:
        """Return every part with independent columns."""
        white, total, parts = X.copy(), 0.0, []
        for process, columns in self.parts:
            resolved, white[:, columns], log_jacobian = process.decorrelate(X[:, columns])
            parts.append((resolved, columns))
            total += log_jacobian
        return type(self)(*parts), white, total

    def whitenings(self) -> list[Whitening]:
        """Return those of all parts."""
        return [
            whitening._replace(columns=np.array(columns)[whitening.columns])
            for process, columns in self.parts
            for whitening in process.whitenings()
        ]

    def states(self, messages: Messages, distance: FloatArray, observed: bool) -> Predictions:
        """Return the distributions of all parts, side by side."""
        return Predictions.join_columns(
            [
                (process.states(part, distance, observed), np.array(columns))
                for process, columns, part in self._by_part(messages)
            ]
        )

    def remarks(self, tree: Tree, X: FloatArray) -> list[str]:
        """Return the remarks of all parts."""
        return [remark for process, columns in self.parts for remark in process.remarks(tree, X[:, columns])]

    def subprocesses(self, n_columns: int) -> tuple[tuple[Process, tuple[int, ...]], ...]:
        """Return the parts."""
        return self.parts

    def check_columns(self, n_states: Sequence[int]) -> None:
        """Check the columns of every part."""
        if len(n_states) != self.n_columns:
            raise InputError(f"Mixed is over other columns than the table has: {self.n_columns}, not {len(n_states)}")
        for process, columns in self.parts:
            process.check_columns([n_states[d] for d in columns])

    def jitter_rounded(self, X: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Let every part treat its own columns."""
        X = X.copy()
        for process, columns in self.parts:
            X[:, columns] = process.jitter_rounded(X[:, columns], rng)
        return X

    def with_more_noise(self, ratio: float) -> Self:
        """Return every part with more noise."""
        return type(self)(*((process.with_more_noise(ratio), columns) for process, columns in self.parts))

    def check_ascertainment(self, X: FloatArray, names: Sequence[str] | None = None) -> None:
        """Check the columns of every part."""
        known = [f"{column}" for column in range(self.n_columns)] if names is None else names
        for process, columns in self.parts:
            process.check_ascertainment(X[:, columns], [known[d] for d in columns])

    def unseen_columns(self, X: FloatArray) -> UnseenColumns | None:
        """Return those of all parts."""
        parts = (process.unseen_columns(X[:, columns]) for process, columns in self.parts)
        return UnseenColumns.join([unseen for unseen in parts if unseen is not None])

    def parameter_names(self, columns: Sequence[int]) -> list[str]:
        """Return the names of all parts; a name that several parts have gets their partition added, or their columns."""
        columns_by_part = [[columns[d] for d in positions] for _, positions in self.parts]
        names = [part.parameter_names(numbers) for (part, _), numbers in zip(self.parts, columns_by_part, strict=True)]
        repeated = {name for part in names for name in part if sum(name in other for other in names) > 1}
        labels = [
            getattr(part, "partition", None) or ",".join(map(str, numbers))
            for (part, _), numbers in zip(self.parts, columns_by_part, strict=True)
        ]
        return [
            f"{name}[{label}]" if name in repeated else name
            for part, label in zip(names, labels, strict=True)
            for name in part
        ]

    def parameter_values(self) -> FloatArray:
        """Return the values of all parts."""
        return np.concatenate([part.parameter_values() for part, _ in self.parts])

    @property
    def n_constraints(self) -> int:
        """Those of all parts."""
        return sum(part.n_constraints for part, _ in self.parts)

    def with_parameter_values(self, values: FloatArray) -> Self:
        """Return every part with its share of the values."""
        parts, used = [], 0
        for part, columns in self.parts:
            size = len(part.parameter_values())
            parts.append((part.with_parameter_values(values[used : used + size]), columns))
            used += size
        return type(self)(*parts)

    def rescale_clock(self, factor: float) -> Self | None:
        """Return every part with a slower clock; None unless all have one."""
        parts = []
        for part, columns in self.parts:
            rescaled = part.rescale_clock(factor)
            if rescaled is None:
                return None
            parts.append((rescaled, columns))
        return type(self)(*parts)

    def fit(self, trees: WeightedTrees, hold_noise: bool) -> Self:
        """Fit every part to its own columns."""
        return type(self)(
            *((part.fit(trees.select_columns(columns), hold_noise), columns) for part, columns in self.parts)
        )

    def log_parameter_prior(self, X: FloatArray, hold_noise: bool = False) -> float:
        """Return the sum over the parts."""
        return sum(part.log_parameter_prior(X[:, columns], hold_noise) for part, columns in self.parts)

    def sampler(self, X: FloatArray, hold_noise: bool) -> ParameterSampler[Mixed]:
        """Return a sampler of all parts, which are independent given the tree."""
        return MixedSampler(self, X, hold_noise)

    def describe_columns(self, columns: Sequence[ColumnScale | Sequence[Category]]) -> list[dict[str, Any]]:
        """Let every part describe its own columns."""
        described: list[dict[str, Any]] = [{} for _ in columns]
        for part, positions in self.parts:
            for d, facts in zip(positions, part.describe_columns([columns[d] for d in positions]), strict=True):
                described[d] = facts
        return described

    def to_dict(self) -> dict[str, Any]:
        """Return all parts as plain values."""
        parts = [{"process": part.to_dict(), "columns": list(columns)} for part, columns in self.parts]
        return {"kind": self.kind, "parts": parts}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Process:
        """Return the process that `to_dict` has written."""
        parts = []
        for part in values.get("parts", ()):
            process = Process.from_dict(part["process"])
            if isinstance(process, Mixed):
                raise InputError("a part of the process has parts itself")
            parts.append((process, part["columns"]))
        return cls(*parts)


class MixedSampler(ParameterSampler[Mixed]):
    """Draws the parameters of every part: given the tree, parts are independent."""

    def __init__(self, process: Mixed, X: FloatArray, hold_noise: bool) -> None:
        super().__init__(X.copy())
        self._samplers = [part.sampler(X[:, columns], hold_noise) for part, columns in process.parts]
        self._columns = [columns for _, columns in process.parts]
        self._update_table()

    def _update_table(self) -> None:
        for sampler, columns in zip(self._samplers, self._columns, strict=True):
            self.table[:, columns] = sampler.table

    def _pairs(self, process: Mixed) -> Iterator[tuple[ParameterSampler[Any], Process]]:
        """Yield the samplers with their processes."""
        return zip(self._samplers, (part for part, _ in process.parts), strict=True)

    def _join(self, parts: Sequence[Process]) -> Mixed:
        return Mixed(*zip(parts, self._columns, strict=True))

    def missing_cells(self) -> FloatArray:
        """Return those of all parts."""
        return np.concatenate([sampler.missing_cells() for sampler in self._samplers])

    def state(self) -> FloatArray:
        """Return the states of all parts."""
        return np.concatenate([sampler.state() for sampler in self._samplers])

    def restore(self, state: FloatArray) -> None:
        """Continue all parts from a state."""
        for sampler in self._samplers:
            used = len(sampler.state())
            sampler.restore(state[:used])
            state = state[used:]
        self._update_table()

    def initial_process(self, process: Mixed) -> Mixed:
        """Return the process with which every part starts."""
        return self._join([sampler.initial_process(part) for sampler, part in self._pairs(process)])

    def draw_cells(self, process: Mixed, tree: Tree, rng: np.random.Generator) -> None:
        """Draw the missing cells of all parts."""
        for sampler, part in self._pairs(process):
            sampler.draw_cells(part, tree, rng)
        self._update_table()

    def draw(self, process: Mixed, tree: Tree, rng: np.random.Generator) -> Mixed:
        """Draw the parameters of all parts."""
        mixed = self._join([sampler.draw(part, tree, rng) for sampler, part in self._pairs(process)])
        self._update_table()
        return mixed

    def log_prior(self, process: Mixed) -> float:
        """Return the sum over the parts."""
        return sum(sampler.log_prior(part) for sampler, part in self._pairs(process))

    def clock_exponent(self, process: Mixed) -> float | None:
        """Return the sum over the parts; None if the clock of one of them must stay."""
        exponents = [sampler.clock_exponent(part) for sampler, part in self._pairs(process)]
        return None if None in exponents else sum(exponents)  # type: ignore[arg-type]

    def log_clock_ratio(self, process: Mixed, log_factor: float) -> float:
        """Return the sum over the parts."""
        return sum(sampler.log_clock_ratio(part, log_factor) for sampler, part in self._pairs(process))
