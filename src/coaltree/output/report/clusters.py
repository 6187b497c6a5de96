"""The flat clusters of a report: sizes, members, and what sets each apart."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .differences import Differences, differences, strongest, tally
from .facts import CategoricalFacts, ColumnFacts, ReportFacts
from .numbers import MINUS, held_together, percent, set_apart, significant, written

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
    decided: list[str]  # how strongly the model holds its rows together, and apart from their neighbours
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
            _decided(facts, cluster),
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
        column.mean_told(inside),
        column.mean_told(outside),
        more + column.distance(inside - outside),
        effect,
    )


def _members(facts: ReportFacts, cluster: int) -> tuple[list[str], int]:
    rows: NDArray[np.intp] = np.flatnonzero(facts.labels == cluster)
    return [facts.tree.leaf_names[row] for row in rows[:MOST_MEMBERS]], max(len(rows) - MOST_MEMBERS, 0)


def _decided(facts: ReportFacts, cluster: int) -> list[str]:
    """Tell what the merges at the top of a cluster and above it say, if it is a clade of the tree; of outliers nothing."""
    if cluster == facts.n_clusters:
        return []
    tree = facts.tree
    places = np.flatnonzero(facts.labels[tree.leaf_order] == cluster)
    node = np.flatnonzero((tree.first_positions == places[0]) & (tree.leaf_counts == len(places)))
    if places[-1] - places[0] >= len(places) or not len(node):
        return []
    top, above = int(node[0]), int(tree.parents[node[0]])
    if facts.sample is None:
        return _heights(facts, top, above)
    told = []
    if len(places) > 1 and math.isfinite(facts.log_ratios[top - tree.n_leaves]):
        told.append(f"Held together: {held_together(float(facts.log_ratios[top - tree.n_leaves]))}.")
    if above >= 0 and math.isfinite(facts.log_ratios[above - tree.n_leaves]):
        apart = set_apart(float(facts.log_ratios[above - tree.n_leaves]))
        told.append(f"Set apart from the rows next to them in the tree: {apart}.")
    return told


def _heights(facts: ReportFacts, top: int, above: int) -> list[str]:
    """Tell where the rows of a clade meet, and where they meet others."""
    below, beyond = (written(significant(float(facts.tree.heights[node]), 3)) for node in (top, above))
    apart = f"it meets the rows next to it at {beyond}"
    if top < facts.tree.n_leaves:
        return [f"A single row; {apart}."]
    return [f"Its rows meet at height {below} or below" + (f"; {apart}." if above >= 0 else ".")]
