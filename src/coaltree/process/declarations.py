"""Columns as processes declare them: the messages of the leaves and the parameters, checked where they are declared.

Kernels check nothing. What has another shape than they expect, or is not a number, stops here with the name of the field.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from .._validation import quote, to_floats
from ..errors import InputError

FloatArray = NDArray[np.float64]

CHECKED_ROWS = 4096  # of messages at once: no second table in memory
SUM_ERROR = 1e-6  # of probabilities: more is a mistake, and no rounding
LEAST, LARGEST = float(np.finfo(np.float64).smallest_subnormal), float(np.finfo(np.float64).max)


@dataclass(frozen=True, eq=False)
class GaussianColumns:
    """Real columns that diffuse alike, in units of the diffusion; see `coaltree.process.kernels.messages`."""

    mean: FloatArray  # (rows, columns), of the leaves' messages; 0 where a cell is missing
    # (rows, columns), or (rows, 1) if `complete`: of Brownian motion the variance, infinite where a cell is missing; else the
    # share of the equilibrium's standard deviation that is lost, 1 where a cell is missing
    spread: FloatArray
    complete: bool  # whether no cell is missing and all columns have the same noise
    noisy: bool  # whether leaves have noise: of pairs that would merge at once the likelier ones then come first
    rate: float = 0.0  # at which the past is forgotten; 0 for Brownian motion
    log_scale: FloatArray | None = None  # (columns,), log of the units; Brownian motion needs them
    root_variance: float = 1.0  # of the proper root that flat clusters are compared with, for Brownian motion
    center: FloatArray | None = None  # (columns,), what was taken off every row
    weight: FloatArray | None = None  # (columns,), powers to which their likelihoods are raised; 1 if not given

    def __post_init__(self) -> None:
        mean = _set_array(self, "mean", (None, None), "rows and columns")
        n, n_columns = mean.shape
        rate, _ = _set_number(self, "rate", 0.0), _set_number(self, "root_variance", LEAST)
        most = np.inf if rate == 0 else 1.0
        width, why = (1, "one column, because `complete` is True") if self.complete else (n_columns, "that of `mean`")
        spread = _set_array(self, "spread", (n, width), why, 0.0, most)
        if self.complete and np.any(spread == most):
            raise InputError(
                f"GaussianColumns: spread is {most:g} in some row, a missing cell, but `complete` is True."
            )
        if rate == 0 and self.log_scale is None:
            raise InputError(
                "GaussianColumns: log_scale is missing. Brownian motion (rate=0) needs the log of the unit of each column; for "
                "columns that forget the past give a positive rate."
            )
        per_column = f"one number for each of the {n_columns} column(s) of `mean`"
        for name in ("log_scale", "center", "weight"):
            if getattr(self, name) is not None:
                _set_array(self, name, (n_columns,), per_column, 0.0 if name == "weight" else -LARGEST)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.mean)

    def take_rows(self, rows: NDArray[np.intp]) -> GaussianColumns:
        """Return the declaration of some rows, which may occur more than once."""
        return replace(self, mean=self.mean[rows], spread=self.spread[rows])


@dataclass(frozen=True, eq=False)
class SiteColumns:
    """Columns of states that are redrawn from an equilibrium at some rate."""

    message: FloatArray  # (rows, states of all columns), ``M_k``, with ``sum_k q_k M_k = 1`` in every column
    equilibrium: Sequence[FloatArray]  # of each column
    rate: FloatArray  # (columns,)
    noisy: bool
    weight: FloatArray | None = None  # (columns,), powers to which their likelihoods are raised; 1 if not given

    def __post_init__(self) -> None:
        first: dict[int, int] = {}  # column of each equilibrium, which columns often share
        owner = [first.setdefault(id(q), d) for d, q in enumerate(self.equilibrium)]
        checked = {d: _as_numbers("SiteColumns: equilibrium", self.equilibrium[d]) for d in first.values()}
        _check_equilibria(checked)
        equilibrium = tuple(checked[d] for d in owner)
        object.__setattr__(self, "equilibrium", equilibrium)
        start = np.cumsum([0, *map(len, equilibrium)])
        message = _set_array(self, "message", (None, int(start[-1])), "one column for each state in `equilibrium`", 0.0)
        per_column = f"one number for each of the {len(equilibrium)} column(s) in `equilibrium`"
        _set_array(self, "rate", (len(equilibrium),), per_column, 0.0)
        if self.weight is not None:
            _set_array(self, "weight", (len(equilibrium),), per_column, 0.0)
        if equilibrium:
            self._check_sums(message, start)

    def _check_sums(self, message: FloatArray, start: NDArray[np.intp]) -> None:
        """Raise unless the messages are normalised."""
        q = np.concatenate(self.equilibrium)
        for first in range(0, len(message), CHECKED_ROWS):
            sums = np.add.reduceat(message[first : first + CHECKED_ROWS] * q, start[:-1], axis=1)
            wrong = np.argwhere(np.abs(sums - 1) > SUM_ERROR)
            if len(wrong):
                row, column = wrong[0].tolist()
                raise InputError(
                    f"SiteColumns: message of row {first + row}, column {column}, times the equilibrium adds up to "
                    f"{sums[row, column]:g}; it must add up to 1. Divide it by that sum, and add the log of the sum to "
                    "leaf_log_likelihoods."
                )

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.message)

    def take_rows(self, rows: NDArray[np.intp]) -> SiteColumns:
        """Return the declaration of some rows, which may occur more than once."""
        return replace(self, message=self.message[rows])


@dataclass(frozen=True, eq=False)
class ChainColumns:
    """Columns of states that each change by a reversible Markov chain, given by its rates."""

    message: FloatArray  # (rows, states of all columns), ``M_k``, with ``sum_k q_k M_k = 1`` in every column
    equilibrium: Sequence[FloatArray]  # of each column
    generator: Sequence[
        FloatArray
    ]  # of each column, (states, states): the rate from one state to another; rows add up to 0
    noisy: bool
    path: float = 0.0  # length of a path along which about as much is lost as by the noise; bounds are tighter with it

    def __post_init__(self) -> None:
        sites = SiteColumns(self.message, self.equilibrium, np.ones(len(self.equilibrium)), self.noisy)
        object.__setattr__(self, "message", sites.message)
        object.__setattr__(self, "equilibrium", sites.equilibrium)
        _set_number(self, "path", 0.0)
        if len(self.generator) != len(sites.equilibrium):
            raise InputError(
                f"ChainColumns: generator has {len(self.generator)} entries; it must have one for each of the "
                f"{len(sites.equilibrium)} column(s) in `equilibrium`."
            )
        generator = tuple(_as_numbers("ChainColumns: generator", rates) for rates in self.generator)
        object.__setattr__(self, "generator", generator)
        for d, (q, rates) in enumerate(zip(sites.equilibrium, generator, strict=True)):
            if rates.shape != (len(q), len(q)):
                raise InputError(
                    f"ChainColumns: generator[{d}] has shape {rates.shape}; it must be {(len(q), len(q))}."
                )
            flow, most = q[:, None] * rates, np.abs(rates).max()
            leaving = np.abs(rates.sum(axis=1)).max() > SUM_ERROR * most
            if not np.isfinite(most) or leaving or np.any(flow - np.diag(np.diag(flow)) < 0):
                raise InputError(
                    f"ChainColumns: generator[{d}] must have rates of 0 or more, and rows that add up to 0."
                )
            if np.abs(flow - flow.T).max() > SUM_ERROR * np.abs(flow).max():
                raise InputError(
                    f"ChainColumns: generator[{d}] is not reversible: equilibrium[a] * generator[a, b] must be the same as with "
                    "a and b exchanged."
                )

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.message)

    def take_rows(self, rows: NDArray[np.intp]) -> ChainColumns:
        """Return the declaration of some rows, which may occur more than once."""
        return replace(self, message=self.message[rows])


Columns: TypeAlias = GaussianColumns | SiteColumns | ChainColumns


def _set_array(
    declaration: Columns,
    name: str,
    shape: tuple[int | None, ...],
    why: str,
    least: float = -LARGEST,
    most: float = LARGEST,
) -> FloatArray:
    """Set a field to an array of a shape, where None stands for any length, with numbers in a range; return it."""
    owner, value = type(declaration).__name__, getattr(declaration, name)
    array = _as_numbers(f"{owner}: {name}", value)
    if array.ndim != len(shape) or any(k not in (None, found) for k, found in zip(shape, array.shape, strict=True)):
        needed = ", ".join("any" if k is None else str(k) for k in shape) + ("," if len(shape) == 1 else "")
        raise InputError(f"{owner}: {name} has shape {array.shape}; it must have shape ({needed}): {why}.")
    if array.size and not (array.min() >= least and array.max() <= most):
        at = tuple(np.argwhere(~((array >= least) & (array <= most)))[0].tolist())
        raise InputError(f"{owner}: {name}{list(at)} is {array[at]:g}; it must be {_range_words(least, most)}.")
    object.__setattr__(declaration, name, array)
    return array


def _set_number(declaration: Columns, name: str, least: float) -> float:
    """Set a field to a finite number that is not less than another; return it."""
    owner, value = type(declaration).__name__, getattr(declaration, name)
    array = _as_numbers(f"{owner}: {name}", value)
    if array.ndim or not least <= array <= LARGEST:
        raise InputError(f"{owner}: {name} is {quote(value)}; it must be one number, {_range_words(least, LARGEST)}.")
    object.__setattr__(declaration, name, float(array))
    return float(array)


def _check_equilibria(equilibrium: dict[int, FloatArray]) -> None:
    """Raise unless the equilibria of some columns are probabilities."""
    wrong = [d for d, q in equilibrium.items() if q.ndim != 1 or not len(q)]
    if equilibrium and not wrong:
        start = np.cumsum([0, *map(len, equilibrium.values())])[:-1]
        q = np.concatenate([*equilibrium.values()])
        is_right = (np.minimum.reduceat(q, start) > 0) & (np.abs(np.add.reduceat(q, start) - 1) <= SUM_ERROR)
        wrong = np.array([*equilibrium])[~is_right].tolist()
    if wrong:
        raise InputError(
            f"SiteColumns: equilibrium[{wrong[0]}] is {quote(equilibrium[wrong[0]].tolist())}; it must be a vector of positive "
            "probabilities that add up to 1."
        )


def _as_numbers(name: str, value: object) -> FloatArray:
    """Return numbers as an array."""
    numbers = to_floats(value)
    if numbers is None:
        raise InputError(f"{name} is {quote(value)}; it must be an array of numbers.")
    return numbers


def _range_words(least: float, most: float) -> str:
    """Return what a number must be."""
    if least == -LARGEST:
        return "finite"
    low = "positive" if least == LEAST else f"{least:g} or more"
    return low if most == np.inf else f"{low}, and finite" if most == LARGEST else f"from {least:g} to {most:g}"
