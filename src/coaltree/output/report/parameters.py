"""The fitted parameters by column, in the column's own units."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from .facts import ReportFacts
from .numbers import beside, percent, significant, written

MOST_SHARES = 5


class RealParameters(NamedTuple):
    """What was fitted to a real column."""

    column: str
    mean: str  # empty for Brownian motion, which has none
    sd: str
    noise_sd: str
    half_height: str  # of a common ancestor of which rows keep half; empty for Brownian motion


class CategoricalParameters(NamedTuple):
    """What was fitted to a categorical column."""

    column: str
    half_height: str
    shares: str


def real_parameters(facts: ReportFacts) -> list[RealParameters]:
    """Return the parameters of the real columns."""
    found = []
    for column in facts.real:
        own = facts.parameters[column.name]
        sd = float(own["sd"])
        found.append(
            RealParameters(
                column.name,
                written(beside(float(own["mean"]), sd)) if "mean" in own else "",
                written(significant(sd, 3)),
                written(significant(float(own["noise_sd"]), 3)),
                _half_height(own),
            )
        )
    return found


def categorical_parameters(facts: ReportFacts) -> list[CategoricalParameters]:
    """Return the parameters of the categorical columns."""
    found = []
    for column in facts.categorical:
        own = facts.parameters[column.name]
        shares = sorted(zip(column.categories, own["equilibrium"].values(), strict=True), key=lambda pair: -pair[1])
        told = ", ".join(f"{category} {percent(float(share))}" for category, share in shares[:MOST_SHARES])
        more = len(shares) - MOST_SHARES
        found.append(
            CategoricalParameters(column.name, _half_height(own), told + (f" and {more} more" if more > 0 else ""))
        )
    return found


def _half_height(own: dict[str, Any]) -> str:
    rate = float(own.get("rate", 0.0))
    return written(significant(math.log(2) / (2 * rate), 3)) if rate > 0 else ""
