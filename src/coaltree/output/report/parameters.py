"""The fitted parameters: what columns share, and what each has of its own, in its own units."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from .facts import ReportFacts
from .numbers import percent, significant, written

MOST_SHARES = 5
SAME = 1e-6  # difference of noises, as a share of them, that is rounding


class RealParameters(NamedTuple):
    """What was fitted to a real column."""

    column: str
    mean: str  # empty for Brownian motion, which has none
    sd: str
    observed_sd: str
    signal: str


class SharedParameters(NamedTuple):
    """What was fitted to all real columns together."""

    # its share of a cell's variance; for Brownian motion the height over which as much is drifted; empty if columns differ
    noise: str
    half_height: str  # of a common ancestor of which rows keep half; empty for Brownian motion


class CategoricalParameters(NamedTuple):
    """What was fitted to a categorical column."""

    column: str
    half_height: str
    signal: str
    shares: list[tuple[str, str]]  # of the most frequent categories
    n_more: int  # categories


def shared_parameters(facts: ReportFacts) -> SharedParameters | None:
    """Return what the real columns share; None if there are none."""
    if not facts.real:
        return None
    own = facts.parameters[facts.real[0].name]
    each = [facts.parameters[column.name] for column in facts.real]
    noises = [(float(of["noise_sd"]) / float(of["sd"])) ** 2 for of in each]
    noise = noises[0]
    if max(noises) - min(noises) > SAME * max(noises):  # each column has its own
        return SharedParameters("", _half_height(own))
    told = percent(noise / (1 + noise)) if "rate" in own else written(significant(noise, 3))
    return SharedParameters(told, _half_height(own))


def real_parameters(facts: ReportFacts) -> list[RealParameters]:
    """Return the parameters of the real columns."""
    found = []
    for column in facts.real:
        own = facts.parameters[column.name]
        sd = float(own["sd"])
        mean = column.told(float(own["mean"]), sd) if "mean" in own else ""
        found.append(
            RealParameters(
                column.name, mean, column.distance(sd), column.distance(column.compared_sd), told_signal(own)
            )
        )
    return found


def categorical_parameters(facts: ReportFacts) -> list[CategoricalParameters]:
    """Return the parameters of the categorical columns."""
    found = []
    for column in facts.categorical:
        own = facts.parameters[column.name]
        shares = sorted(zip(column.categories, own["equilibrium"].values(), strict=True), key=lambda pair: -pair[1])
        told = [(category, percent(float(share))) for category, share in shares[:MOST_SHARES]]
        found.append(
            CategoricalParameters(column.name, _half_height(own), told_signal(own), told, len(shares) - len(told))
        )
    return found


def told_signal(own: dict[str, Any]) -> str:
    """Return how much a column owes to descent, with its interval if trees were drawn."""
    if "signal_low" not in own:
        return f"{own['signal']:.2f}"
    return f"{own['signal']:.2f} ({own['signal_low']:.2f} to {own['signal_high']:.2f})"


def _half_height(own: dict[str, Any]) -> str:
    rate = float(own.get("rate", 0.0))
    return written(significant(math.log(2) / (2 * rate), 3)) if rate > 0 else ""
