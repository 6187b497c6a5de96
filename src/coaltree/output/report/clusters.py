"""The flat clusters of a report: sizes, members, and what sets each apart."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .differences import Differences, differences, strongest, tally
from .facts import CategoricalFacts, ColumnFacts, ReportFacts
from .numbers import MINUS, beside, percent, significant, written

MOST_CLUSTERS = 40
MOST_MEMBERS = 300
MOST_DIFFERENCES = 8
LEAST_EFFECT = 0.2  # what is usually called a small one


class DifferenceView(NamedTuple):
    """How a cluster differs from all other rows in one column."""

    column: str
    inside: str
    outside: str
    difference: str
    effect: float


class ClusterView(NamedTuple):
    """A cluster as it is shown."""

    number: int
    size: int
    color: str
    members: list[str]
    n_more: int  # members that are not named
    differences: list[DifferenceView]


def cluster_views(facts: ReportFacts, colors: list[str]) -> list[ClusterView]:
    """Return the largest clusters, by their numbers.

    Parameters
    ----------
    facts : ReportFacts
    colors : list of str
        Of each cluster.

    Returns
    -------
    list of ClusterView
    """
    n_clusters = int(facts.labels.max()) + 1
    sizes = np.bincount(facts.labels, minlength=n_clusters)
    found = []
    for column in facts.columns:
        tallies = tally(column, facts.labels, n_clusters)
        found.append(differences(column, tallies, tallies.sum(axis=0)))
    shown = np.sort(np.argsort(-sizes, kind="stable")[:MOST_CLUSTERS])
    return [
        ClusterView(
            cluster,
            int(sizes[cluster]),
            colors[cluster],
            *_members(facts, cluster),
            [
                view(facts.columns[j], found[j], cluster)
                for j in strongest(found, cluster, MOST_DIFFERENCES, LEAST_EFFECT)
            ],
        )
        for cluster in shown.tolist()
    ]


def view(column: ColumnFacts, found: Differences, group: int) -> DifferenceView:
    """Put the difference of a group in one column into words."""
    inside, outside, effect = (float(part[group]) for part in found[1:3] + found[:1])
    if isinstance(column, CategoricalFacts):
        return DifferenceView(
            f"{column.name} = {column.categories[found.category[group]]}",
            percent(inside),
            percent(outside),
            f"{100 * (inside - outside):+.3g} points".replace("-", MINUS),
            effect,
        )
    more = "+" if inside > outside else ""
    return DifferenceView(
        column.name,
        written(beside(inside, 0.1 * column.sd)),
        written(beside(outside, 0.1 * column.sd)),
        more + written(significant(inside - outside, 3)),
        effect,
    )


def _members(facts: ReportFacts, cluster: int) -> tuple[list[str], int]:
    rows: NDArray[np.intp] = np.flatnonzero(facts.labels == cluster)
    return [facts.tree.leaf_names[row] for row in rows[:MOST_MEMBERS]], max(len(rows) - MOST_MEMBERS, 0)
