"""The flat clusters of a report: sizes, members, and what sets each apart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from .facts import CategoricalFacts, ColumnFacts, Examined, RealFacts, ReportFacts
from .numbers import MINUS, held_together, percent, set_apart, significant, written

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]


class Differences(NamedTuple):
    """How groups differ from all other rows in one column, an entry for each group."""

    effect: FloatArray  # 0 where one of the two sides has no observed cell
    inside: FloatArray  # mean, or share of the category
    outside: FloatArray
    category: IntArray  # which one the shares are of; -1 for a real column


def tally(column: ColumnFacts, groups: IntArray, n_groups: int) -> FloatArray:
    """Return what is to be added up over groups of rows.

    Parameters
    ----------
    column : RealFacts or CategoricalFacts
    groups : ndarray of int, shape (n_rows,)
        The group of each row.
    n_groups : int

    Returns
    -------
    ndarray of shape (n_groups, k)
        Of a real column the number of observed cells and the sum of their standardised values; of others the number of cells
        of each category.
    """
    seen = ~column.missing
    if isinstance(column, RealFacts):
        standardised = (column.values[seen] - column.mean) / column.sd
        sums = np.bincount(groups[seen], weights=standardised, minlength=n_groups)
        return np.column_stack([np.bincount(groups[seen], minlength=n_groups), sums]).astype(np.float64)
    n_categories = len(column.categories)
    cells = groups[seen] * n_categories + column.codes[seen]
    counts = np.bincount(cells, minlength=n_groups * n_categories)
    return counts.reshape(n_groups, n_categories).astype(np.float64)


def differences(column: ColumnFacts, inside: FloatArray, total: FloatArray) -> Differences:
    """Compare groups with all other rows.

    Parameters
    ----------
    column : RealFacts or CategoricalFacts
    inside : ndarray of shape (n_groups, k)
        Tallies of the groups.
    total : ndarray of shape (k,)
        That of all rows.

    Returns
    -------
    Differences
        The effect of a real column is the difference of the means in standard deviations of the column. Of a categorical column
        it is that of the category which the group has more of than others, most clearly by Cohen's h: the difference of
        ``2 arcsin(sqrt(share))``, at most 3.14.
    """
    outside = total - inside
    if isinstance(column, RealFacts):
        both = (inside[:, 0] > 0) & (outside[:, 0] > 0)
        within, without = (part[:, 1] / np.maximum(part[:, 0], 1) for part in (inside, outside))
        return Differences(
            np.where(both, within - without, 0.0),
            column.mean + column.sd * within,
            column.mean + column.sd * without,
            np.full(len(inside), -1),
        )
    n_inside, n_outside = inside.sum(axis=1), outside.sum(axis=1)
    shares, others = (
        np.clip(part / np.maximum(count, 1)[:, None], 0.0, 1.0)
        for part, count in ((inside, n_inside), (outside, n_outside))
    )
    angles = 2 * (np.arcsin(np.sqrt(shares)) - np.arcsin(np.sqrt(others)))
    best = angles.argmax(axis=1)
    at = np.arange(len(inside)), best
    return Differences(np.where((n_inside > 0) & (n_outside > 0), angles[at], 0.0), shares[at], others[at], best)


def strongest(found: Sequence[Differences], group: int, most: int, least_effect: float) -> list[int]:
    """Return the columns in which a group differs most, the strongest first; none with less of an effect."""
    effects = np.array([abs(own.effect[group]) for own in found])
    order = np.argsort(-np.round(effects, 9), kind="stable")
    return [int(k) for k in order[:most] if effects[k] >= least_effect]


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
    if "noise_sd" not in own:  # a process of the user's own need not have any
        return SharedParameters("", _half_height(own))
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
        sd = float(own.get("sd", math.nan))
        mean = column.told(float(own["mean"]), sd) if "mean" in own else ""
        found.append(
            RealParameters(
                column.name,
                mean,
                column.distance(sd) if "sd" in own else "",
                column.distance(column.compared_sd),
                told_signal(own),
            )
        )
    return found


def categorical_parameters(facts: ReportFacts) -> list[CategoricalParameters]:
    """Return the parameters of the categorical columns."""
    found = []
    for column in facts.categorical:
        own = facts.parameters[column.name]
        equilibrium = own.get("equilibrium", {})  # which a process of the user's own need not have
        shares = sorted(
            zip(column.categories, equilibrium.values(), strict=bool(equilibrium)), key=lambda pair: -pair[1]
        )
        told = [(category, percent(float(share))) for category, share in shares[:MOST_SHARES]]
        found.append(
            CategoricalParameters(column.name, _half_height(own), told_signal(own), told, len(shares) - len(told))
        )
    return found


def told_signal(own: dict[str, Any]) -> str:
    """Return how much a column owes to descent, with its interval if trees were drawn."""
    if "signal" not in own:  # the process does not tell
        return ""
    if "signal_low" not in own:
        return f"{own['signal']:.2f}"
    return f"{own['signal']:.2f} ({own['signal_low']:.2f} to {own['signal_high']:.2f})"


def _half_height(own: dict[str, Any]) -> str:
    rate = float(own.get("rate", 0.0))
    return written(significant(math.log(2) / (2 * rate), 3)) if rate > 0 else ""


MOST_CELLS = 20
FEWEST_ROWS, MOST_ROWS = 5, 20
RARE = 0.001  # tail from which on a cell is called odd
CELLS_OF_ROW = 3
UNLIKELY = 0.05  # tail from which on a cell is named as what makes a row odd
ROUNDING = 1e-9


class Surprise(NamedTuple):
    """An observed cell and what was expected in its place."""

    row: int
    column: str
    value: str
    expected: str
    log_tail: float  # log of the probability of something at least as odd

    @property
    def rare(self) -> bool:
        """Whether it is one of those that are called odd."""
        return self.log_tail < math.log(RARE)


class Oddity(NamedTuple):
    """A row and how far below the typical row its score is."""

    row: int
    below: float  # in units of the distance that a quarter of the rows are below it
    far: bool  # whether it is called an outlier
    cells: list[Surprise]


class OddRows(NamedTuple):
    """The rows of the lowest scores, the oddest first: outliers, and a few in any case."""

    shown: list[Oddity]
    n_far: int
    limit: float  # of `below`, beyond which a row is called an outlier


class OddCells(NamedTuple):
    """The observed cells that are least likely given the rest of their rows, the oddest first."""

    shown: list[Surprise]
    n_rare: int
    n_cells: int  # that were looked at


def log_tails(column: ColumnFacts, examined: Examined) -> FloatArray:
    """Return of each cell of an opened row the log of the probability of something at least as odd; 0 if nothing was observed.

    Of a real cell that is a value at least as far from the mean; of a categorical one, a category at most as probable.
    """
    rows = examined.opened
    seen = ~column.missing[rows]
    found = np.zeros(len(rows))
    if isinstance(column, RealFacts):
        known = seen & (column.expected_sd > 0)
        found[known] = log_ndtr(-column.deviations(rows)[known]) + np.log(2)
        return found
    own = column.expected[seen, column.codes[rows[seen]]]
    tail = np.where(column.expected[seen] <= own[:, None] * (1 + ROUNDING), column.expected[seen], 0.0).sum(axis=1)
    found[seen] = np.log(np.clip(np.where(tail > 1 - ROUNDING, 1.0, tail), 1e-300, 1.0))
    return found


def odd_cells(columns: Sequence[ColumnFacts], examined: Examined, most: int = MOST_CELLS) -> OddCells:
    """Find the least likely of the cells in the rows that were opened evenly; those of odd rows alone would not be fair."""
    if not columns or not examined.hidden_at_once:
        return OddCells([], 0, 0)
    at = np.flatnonzero(examined.evenly)
    tails = np.column_stack([log_tails(column, examined)[at] for column in columns])
    order = np.argsort(tails, axis=None, kind="stable")[:most]
    cells = np.column_stack(np.unravel_index(order, tails.shape)).tolist()
    shown = [_surprise(columns[j], examined, int(at[k]), float(tails[k, j])) for k, j in cells if tails[k, j] < 0]
    n_cells = sum(int(np.sum(~column.missing[examined.opened[at]])) for column in columns)
    return OddCells(shown, int(np.sum(tails < np.log(RARE))), n_cells)


def odd_rows(columns: Sequence[ColumnFacts], examined: Examined) -> OddRows:
    """Find the rows of the lowest scores.

    Scores have a long lower tail, as the logarithm of a normal density has. If it falls like an exponential one,
    ``2**-(1 + b)`` of the rows are more than b times as far below the median as the lower quartile is. Rows are called outliers
    from where on a table of their number has a quarter of a row.
    """
    n = len(examined.rows)
    limit = 1 + np.log2(max(n, 1))
    if n < 3 or not columns:
        return OddRows([], 0, limit)
    quartile, median = np.quantile(examined.scores, [0.25, 0.5])
    if median - quartile <= ROUNDING * max(1.0, abs(median)):
        return OddRows([], 0, limit)
    below = (median - examined.scores) / (median - quartile)
    order = np.argsort(np.round(examined.scores, 9), kind="stable")  # as it was found which rows to open
    n_far = int(np.sum(below > limit))
    tails = [log_tails(column, examined) for column in columns] if examined.hidden_at_once else []
    shown = [
        Oddity(
            int(examined.rows[k]),
            float(below[k]),
            bool(below[k] > limit),
            _oddest_cells(columns, examined, tails, int(np.searchsorted(examined.opened, examined.rows[k]))),
        )
        for k in order[: int(np.clip(n_far, FEWEST_ROWS, MOST_ROWS))].tolist()
        if below[k] > 0
    ]
    return OddRows(shown, n_far, limit)


def _oddest_cells(
    columns: Sequence[ColumnFacts], examined: Examined, tails: list[FloatArray], k: int
) -> list[Surprise]:
    odd = sorted((float(own[k]), j) for j, own in enumerate(tails) if own[k] < np.log(UNLIKELY))
    return [_surprise(columns[j], examined, k, tail) for tail, j in odd[:CELLS_OF_ROW]]


def _surprise(column: ColumnFacts, examined: Examined, k: int, log_tail: float) -> Surprise:
    row = int(examined.opened[k])
    return Surprise(row, column.name, column.cell(row), column.expectation(k), log_tail)
