"""Categorical columns: checks of noise and equilibria, estimates of equilibria, cells that are sets of states, and coordinates.

Everything here works on arrays; the process that uses it is in `multinomial.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._validation import quote, to_floats
from ..errors import InputError
from ..table.cells import set_members

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

MIN_SHARE = 1e-100
MAX_COORDINATES = 16  # of a column, when points are compared in the search for neighbours


def check_noise(noise: ArrayLike) -> FloatArray:
    """Return the noise of categorical columns, one for all or one per column, after checking it."""
    checked = to_floats(noise)
    if checked is None or checked.ndim > 1 or checked.size == 0 or not np.all((checked >= 0) & (checked < 1)):
        raise InputError(
            f"noise is {quote(noise)}; it must be a probability of at least 0 and below 1, one for all columns or one per column."
        )
    checked.setflags(write=False)
    return checked


def is_flat(equilibrium: Any) -> bool:
    """Return whether an equilibrium is one vector of numbers."""
    if isinstance(equilibrium, list | tuple) and equilibrium and isinstance(equilibrium[0], np.ndarray):
        return False
    vector = to_floats(equilibrium)
    return vector is not None and vector.ndim == 1


def check_equilibria(equilibrium: Sequence[ArrayLike], shared: bool) -> tuple[FloatArray, ...]:
    """Return the equilibria of columns, which may share one, after checking that each has valid probabilities."""
    try:
        vectors = list(equilibrium)
    except Exception:  # a class of the user's may raise anything
        vectors = None
    if vectors is None or isinstance(equilibrium, str):
        raise InputError(
            f"equilibrium is {quote(equilibrium)}; it must be a list with one vector of probabilities per column."
        )
    columns: list[FloatArray] = []
    for d, column_equilibrium in enumerate(vectors):
        if d and column_equilibrium is vectors[d - 1]:  # columns that share one
            columns.append(columns[-1])
            continue
        q = to_floats(column_equilibrium)
        if q is None:
            raise InputError(
                f"The equilibrium of column {d} is {quote(column_equilibrium)}; it must be one probability per state."
            )
        if q.ndim != 1 or q.size == 0:
            raise InputError(
                f"The equilibrium of column {d} has shape {q.shape}; it must be one probability per state."
            )
        if not MIN_SHARE <= q.min() <= q.max() < math.inf:
            raise InputError(
                f"The equilibrium of column {d} holds {q.min():g}; probabilities must be above 0 (and at least "
                f"{MIN_SHARE:g}): leave unused states out."
            )
        total = q.sum()
        if abs(total - 1) > 1e-8:
            raise InputError(f"The equilibrium of column {d} adds up to {total:g}; probabilities must add up to 1.")
        q /= total
        q.setflags(write=False)
        columns.append(q)
    if not columns:
        raise InputError("equilibrium is empty; it must have one vector of probabilities for each column.")
    if shared and any(len(q) != len(columns[0]) or np.any(q != columns[0]) for q in columns if q is not columns[0]):
        raise InputError("With share_equilibrium all columns have one equilibrium; give one vector of probabilities.")
    return tuple(columns)


def smoothed_shares(codes: FloatArray, n_states: int | None = None) -> FloatArray:
    """Return the share of each state, with one extra count for every state; an all-missing column has one state.

    A cell that is one of several states counts for all of them in equal parts.
    """
    states, sets = codes[codes >= 0].astype(np.intp), codes[codes < 0]
    if n_states is None and len(sets):
        n_states = int(max(np.frexp(-sets)[1].max(), states.max(initial=0) + 1))
    counts = np.bincount(states, minlength=n_states or 1) + 1.0
    members = set_members(sets, len(counts)).astype(np.float64)
    sizes = members.sum(axis=1, keepdims=True)
    counts += (members / sizes)[sizes.ravel() < len(counts)].sum(axis=0)  # a set of all states says nothing
    shares: FloatArray = counts / counts.sum()
    return shares


class SetCells(NamedTuple):
    """The cells of a table that are one of several states, but not of all."""

    rows: IntArray  # (cells,)
    columns: IntArray  # (cells,)
    cell: IntArray  # (members of all sets,), the cell of each
    state: IntArray  # (members of all sets,), numbered through all columns
    flat: tuple[IntArray, IntArray]  # rows and columns of cells that may be any state

    @classmethod
    def from_codes(cls, X: FloatArray, equilibrium: Sequence[FloatArray]) -> SetCells:
        """Find the sets among the cells of a table."""
        rows, columns = np.nonzero(X < 0)
        counts = np.array([len(q) for q in equilibrium], dtype=np.intp)
        start = np.cumsum(counts) - counts
        members = set_members(X[rows, columns], int(counts.max()) if len(rows) else 0)
        full = members.sum(axis=1) == counts[columns]
        cell, state = np.nonzero(members[~full])
        flat = rows[full], columns[full]
        rows, columns = rows[~full], columns[~full]
        return cls(rows, columns, cell, start[columns[cell]] + state, flat)

    def shares(self, q: FloatArray) -> FloatArray:
        """Return the probability of each set, given those of all states."""
        return np.bincount(self.cell, weights=q[self.state], minlength=len(self.rows)).astype(np.float64)

    def without_flat(self, observed: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return which cells say something: those that may be any state do not."""
        observed[self.flat] = False
        return observed

    def choose(self, q: FloatArray, which: IntArray, rng: np.random.Generator) -> IntArray:
        """Draw a state of some of the sets, each with its probability given that it is in the set."""
        counts = np.bincount(self.cell, minlength=len(self.rows))
        total = np.concatenate([[0.0], np.cumsum(q[self.state])])
        ends = np.cumsum(counts)
        low, high = total[(ends - counts)[which]], total[ends[which]]
        at = np.searchsorted(total, low + rng.random(len(which)) * (high - low), side="right") - 1
        return np.asarray(self.state[np.clip(at, (ends - counts)[which], ends[which] - 1)])


def project_points(points: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return points with at most `MAX_COORDINATES` coordinates, by a random projection that is the same each time.

    It keeps squared distances on average (Johnson and Lindenstrauss, 1984). Comparing points takes most of the time of the
    neighbour search, and without it a column of a hundred cities would take as long as a hundred columns of numbers.
    """
    n_states = len(points)
    if n_states <= MAX_COORDINATES:
        return points
    signs = np.random.default_rng(n_states).choice([-1.0, 1.0], size=(n_states, MAX_COORDINATES)).astype(np.float32)
    projected = np.zeros((MAX_COORDINATES, points.shape[1]), dtype=np.float32)
    for state_signs, state in zip(signs / np.float32(math.sqrt(MAX_COORDINATES)), points, strict=True):
        for coordinate, sign in zip(
            projected, state_signs, strict=True
        ):  # not `@`, whose rounding depends on a point's index
            coordinate += sign * state
    return projected
