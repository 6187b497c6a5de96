"""The allowed values of every parameter, declared as data.

One table serves the estimators, the functions and the command line. A constraint says which values it accepts and describes
them in words, so every message states what was given and what is allowed. Nothing here imports NumPy: ``coaltree --help``
reads this table.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, Protocol, get_args

from ._validation import quote, to_float, to_whole_number
from .errors import InputError

Inference = Literal["greedy", "smc", "mcmc"]
Rule = Literal["rate1", "max-prob", "min-duration"]
Search = Literal["auto", "exact", "neighbors"]
Proposal = Literal["prior-prior", "prior-post", "post-post", "race"]
Summary = Literal["ccd0", "mcc", "consensus"]
SummaryHeights = Literal["mean", "median"]
RealProcess = Literal["ornstein-uhlenbeck", "brownian"]
Covariance = Literal["spherical", "diagonal", "full"]
ASCERTAINMENTS = ("variable", "present", "all")
Model = Literal["jc", "f81", "mk"]
Rates = Literal["equal", "gamma"]
UnseenCategories = Literal["missing", "error"]
Gaps = Literal["missing", "state"]
TableFormat = Literal["csv", "tsv", "parquet", "nexus", "fasta", "phylip"]
TreeFormat = Literal["newick", "nexus", "linkage", "npy", "json", "model"]
PictureFormat = Literal["png", "svg", "pdf"]
Orientation = Literal["left", "right", "top", "bottom"]
Layout = Literal["rectangular", "circular"]


class Constraint(Protocol):
    """The values that a parameter may have."""

    @property
    def allowed(self) -> str:
        """The allowed values in words, as the end of "it must be ..."."""

    def accepts(self, value: Any) -> bool:
        """Return whether a value is allowed."""


@dataclass(frozen=True)
class Choices:
    """One of some texts, truth values or None."""

    values: tuple[str | bool | None, ...]

    @property
    def allowed(self) -> str:
        """The choices."""
        return join_words([repr(value) for value in self.values])

    def accepts(self, value: Any) -> bool:
        """Return whether a value is among the choices; 1 is not True."""
        return (value is None or isinstance(value, str) or is_bool(value)) and value in self.values


@dataclass(frozen=True)
class Integer:
    """A whole number of at least `low`."""

    low: int
    meaning: str = ""
    as_float: bool = False  # whether 5.0 is accepted for 5

    @property
    def allowed(self) -> str:
        """The smallest value, and what the number counts."""
        return f"a whole number{self.meaning and f' of {self.meaning}'} of at least {self.low}"

    def accepts(self, value: Any) -> bool:
        """Return whether a value is such a whole number."""
        number = to_whole_number(value)
        if number is None and self.as_float and (real := to_float(value)) is not None and real.is_integer():
            number = int(real)
        return number is not None and number >= self.low


@dataclass(frozen=True)
class Interval:
    """A number from `low` to `high`; the ends are included unless they are open."""

    low: float
    high: float = math.inf
    open_low: bool = False
    open_high: bool = False
    meaning: str = ""

    @property
    def allowed(self) -> str:
        """The ends, and what the number means."""
        if math.isinf(self.high):
            ends = f"above {self.low:.12g}" if self.open_low else f"of at least {self.low:.12g}"
        elif self.open_low and self.open_high:
            ends = f"between {self.low:.12g} and {self.high:.12g}"
        else:
            ends = f"{'above' if self.open_low else 'from'} {self.low:.12g} to {'less than ' * self.open_high}{self.high:.12g}"
        return f"a number {ends}{self.meaning and f', {self.meaning}'}"

    def accepts(self, value: Any) -> bool:
        """Return whether a value is a number within the ends; NaN is not."""
        number = to_float(value)
        if number is None:
            return False
        above = number > self.low if self.open_low else number >= self.low
        return above and (number < self.high if self.open_high else number <= self.high)


@dataclass(frozen=True)
class Instance:
    """An object of a class."""

    kind: type
    allowed: str

    def accepts(self, value: Any) -> bool:
        """Return whether a value is of the class."""
        return isinstance(value, self.kind)


@dataclass(frozen=True)
class AnyOf:
    """A value that at least one of several constraints accepts."""

    constraints: tuple[Constraint, ...]

    @property
    def allowed(self) -> str:
        """What each of them allows."""
        return ", or ".join(constraint.allowed for constraint in self.constraints)

    def accepts(self, value: Any) -> bool:
        """Return whether one of them accepts a value."""
        return any(constraint.accepts(value) for constraint in self.constraints)


FLAG = Choices((True, False))


def optional(constraint: Constraint) -> AnyOf:
    """Return a constraint that also accepts None."""
    return AnyOf((Choices((None,)), constraint))


PARAMETERS: dict[str, Constraint] = {
    "inference": Choices(get_args(Inference)),
    "rule": Choices(get_args(Rule)),
    "search": Choices(get_args(Search)),
    "refine": FLAG,
    "proposal": Choices(get_args(Proposal)),
    "n_particles": Integer(1),
    "n_runs": Integer(1),
    "n_chains": Integer(1),
    "n_heated": Integer(0),
    "n_samples": AnyOf((Choices(("auto",)), Integer(1))),
    "max_seconds": optional(Interval(0, open_low=True, meaning="seconds of n_samples='auto'")),
    "draw_parameters": optional(FLAG),
    "model": Choices((None, *get_args(Model))),
    "rates": Choices((None, *get_args(Rates))),
    "summary": Choices(get_args(Summary)),
    "summary_heights": Choices(get_args(SummaryHeights)),
    "real_process": Choices(get_args(RealProcess)),
    "covariance": Choices((None, *get_args(Covariance))),
    "noise": optional(Interval(0, 1, open_high=True, meaning="the share of the columns' variance that is noise")),
    "unseen_categories": Choices(get_args(UnseenCategories)),
    "standardize": Choices((True, False, "power")),
    "add_indicator": FLAG,
    "contamination": AnyOf((Choices(("auto",)), Interval(0, 0.5, open_low=True, meaning="the share of outliers"))),
    "n_nearest": Integer(0),
    "n_columns": optional(Integer(1)),
    "level": Interval(0, 1, open_low=True, open_high=True),
    "n_cells": Integer(1),
    "n_draws": Integer(1),
    "seed": Integer(0),
    "verbose": AnyOf((FLAG, Integer(0))),
}


def check_parameter(name: str, value: Any, constraint: Constraint | None = None) -> None:
    """Raise unless a parameter has an allowed value.

    Parameters
    ----------
    name : str
        The parameter.
    value : object
        Its value.
    constraint : Constraint, optional
        What is allowed; by default as `PARAMETERS` has it.

    Raises
    ------
    InputError
        With the value and what is allowed.

    Examples
    --------
    >>> check_parameter("noise", 0.2)
    >>> check_parameter("rule", "rate2")
    Traceback (most recent call last):
        ...
    coaltree.errors.InputError: rule is 'rate2'; it must be 'rate1', 'max-prob' or 'min-duration'.
    """
    constraint = PARAMETERS[name] if constraint is None else constraint
    if not constraint.accepts(value):
        raise InputError(f"{name} is {quote(value)}; it must be {constraint.allowed}.")


def check_time_limit(n_samples: Any, max_seconds: Any) -> None:
    """Raise if there is a time limit for a given number of samples.

    Parameters
    ----------
    n_samples, max_seconds : object
        As in `coaltree.mcmc`.

    Raises
    ------
    InputError
        With both values.
    """
    if max_seconds is not None and n_samples != "auto":
        raise InputError(
            f"max_seconds is {max_seconds:g}, and n_samples is {n_samples}; a time limit needs n_samples='auto'."
        )


def check_option(option: str, value: Any, constraint: Constraint | None = None) -> None:
    """Raise unless an option of a command has an allowed value; None stands for an option that was not given.

    Parameters
    ----------
    option : str
        The option, such as ``--noise``.
    value : object
        Its value.
    constraint : Constraint, optional
        What is allowed; by default what `PARAMETERS` has for the parameter of that option.

    Raises
    ------
    InputError
        With the value and what is allowed.

    Examples
    --------
    >>> check_option("--chains", 0)
    Traceback (most recent call last):
        ...
    coaltree.errors.InputError: --chains is 0; it must be a whole number of at least 1.
    """
    if constraint is None:
        name = option.removeprefix("--").replace("-", "_")
        constraint = PARAMETERS[name] if name in PARAMETERS else PARAMETERS[f"n_{name}"]
    if value is not None and not constraint.accepts(value):
        value_text = f"{value:g}" if isinstance(value, float) else str(value)
        raise InputError(f"{option} is {value_text}; it must be {_without_none(constraint).allowed}.")


def _without_none(constraint: Constraint) -> Constraint:
    """Return the constraint of an option, which cannot be given as None."""
    if isinstance(constraint, AnyOf):
        rest = tuple(part for part in constraint.constraints if part != Choices((None,)))
        return rest[0] if len(rest) == 1 else AnyOf(rest)
    return constraint


def is_bool(value: Any) -> bool:
    """Return whether a value is True or False, also of NumPy."""
    return isinstance(value, bool) or type(value).__name__ in ("bool", "bool_")


def join_words(words: list[str]) -> str:
    """Join words by commas and "or"."""
    return " or ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))
