"""The sections of a report as data for its page: clusters, support, parameters, odd rows and odd cells."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from ..table.labels import count
from ..tree.tree import SummaryTree
from ..workflow.profile import Differences, ProfiledColumn
from .facts import CategoricalFacts, ColumnFacts, HeldOutFacts, RealFacts, ReportFacts
from .text import describe_cohesion, describe_separation, format_number, format_percent, round_significant

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

MAX_CLUSTERS = 40
MAX_MEMBERS = 300
MAX_COLUMNS = 8  # that say something about a cluster
MAX_SHARES = 5
NOISE_TOLERANCE = 1e-6  # relative difference of noises that is rounding
MAX_WEAK_CLADES = 10
WEAK_SUPPORT = 0.5
MAX_NAMES = 4  # leaves of a clade, or columns, that the text names
MIN_ODD_ROWS, MAX_ODD_ROWS = 5, 20
MAX_ODD_CELLS = 20
MAX_CELLS_PER_ROW = 3
RARE = 0.001  # tail probability below which a cell is called odd
UNLIKELY = 0.05  # tail probability below which a cell is given as a reason for an odd row
ROUNDING = 1e-9


def strongest_columns(
    differences_by_column: Sequence[Differences], group: int, max_columns: int, min_effect: float
) -> list[int]:
    """Return the columns in which a group differs most, the strongest first, with at least the given effect."""
    effects = np.array([abs(difference.effect[group]) for difference in differences_by_column])
    order = np.argsort(-np.round(effects, 9), kind="stable")
    return [int(k) for k in order[:max_columns] if effects[k] >= min_effect]


class ColumnView(NamedTuple):
    """What one column says about a cluster, as text."""

    column: str
    inside: str
    outside: str
    effect: float
    evidence: str


class ClusterView(NamedTuple):
    """A cluster as the report shows it."""

    number: int
    size: int
    share: str
    color: str
    together: str  # probability of its rows to be in one cluster; empty for outliers and single rows
    example: str
    members: list[str]
    n_more: int  # members beyond the limit
    cohesion: list[str]  # how strongly its rows belong together, and how separate they are from their neighbours
    columns: list[ColumnView]


def cluster_views(facts: ReportFacts, colors: list[str]) -> list[ClusterView]:
    """Return the largest clusters, ordered by number.

    Parameters
    ----------
    facts : ReportFacts
    colors : list of str
        Colour of each cluster.

    Returns
    -------
    list of ClusterView
    """
    profile, by_name = facts.profile, {column.name: column for column in facts.columns}
    largest = np.sort(np.argsort(-profile.sizes, kind="stable")[:MAX_CLUSTERS])
    return [
        ClusterView(
            cluster,
            int(profile.sizes[cluster]),
            format_percent(profile.sizes[cluster] / len(facts.labels)),
            colors[cluster],
            format_percent(facts.together[cluster])
            if cluster < facts.n_clusters and profile.sizes[cluster] > 1
            else "",
            facts.tree.leaf_names[profile.examples[cluster]],
            *_members(facts, cluster),
            _describe_cohesion(facts, cluster),
            [
                _column_view(by_name[profile.columns[j].name], profile.columns[j], cluster)
                for j in profile.strongest(cluster)[:MAX_COLUMNS]
                if profile.columns[j].evidence[cluster] > ROUNDING
            ],
        )
        for cluster in largest.tolist()
    ]


def _column_view(column: ColumnFacts, profiled: ProfiledColumn, group: int) -> ColumnView:
    """Return what a column says about a group of rows."""
    effect, evidence = float(profiled.differences.effect[group]), f"{profiled.evidence[group]:.3g}"
    if isinstance(column, CategoricalFacts):
        inside, outside = (format_percent(float(part[group])) for part in profiled.differences[1:3])
        return ColumnView(f"{column.name} = {profiled.level(group)}", inside, outside, effect, evidence)
    spread = column.format_difference(float(profiled.spread[group]), 2)
    return ColumnView(
        column.name,
        f"{column.format_mean(float(profiled.center[group]))} ± {spread}",
        column.format_mean(float(profiled.elsewhere[group])),
        effect,
        evidence,
    )


def _members(facts: ReportFacts, cluster: int) -> tuple[list[str], int]:
    rows: NDArray[np.intp] = np.flatnonzero(facts.labels == cluster)
    return [facts.tree.leaf_names[row] for row in rows[:MAX_MEMBERS]], max(len(rows) - MAX_MEMBERS, 0)


def _describe_cohesion(facts: ReportFacts, cluster: int) -> list[str]:
    """Describe the merges at the top of a cluster and above it, if the cluster is a clade; nothing for outliers."""
    if cluster == facts.n_clusters:
        return []
    tree = facts.tree
    places = np.flatnonzero(facts.labels[tree.leaf_order] == cluster)
    node = np.flatnonzero((tree.first_positions == places[0]) & (tree.leaf_counts == len(places)))
    if places[-1] - places[0] >= len(places) or not len(node):
        return []
    top, above = int(node[0]), int(tree.parents[node[0]])
    if facts.sample is None:
        return _describe_heights(facts, top, above)
    sentences = []
    if len(places) > 1 and math.isfinite(facts.log_ratios[top - tree.n_leaves]):
        sentences.append(f"Cohesion: {describe_cohesion(float(facts.log_ratios[top - tree.n_leaves]))}.")
    if above >= 0 and math.isfinite(facts.log_ratios[above - tree.n_leaves]):
        apart = describe_separation(float(facts.log_ratios[above - tree.n_leaves]))
        sentences.append(f"Separation from the rows next to it in the tree: {apart}.")
    return sentences


def _describe_heights(facts: ReportFacts, top: int, above: int) -> list[str]:
    """Say at which heights the rows of a clade merge, with each other and with others."""
    below, beyond = (format_number(round_significant(float(facts.tree.heights[node]), 3)) for node in (top, above))
    apart = f"it merges with the next rows at {beyond}"
    if top < facts.tree.n_leaves:
        return [f"A single row; {apart}."]
    return [f"Its rows merge at height {below} or below" + (f"; {apart}." if above >= 0 else ".")]


class RealParameters(NamedTuple):
    """Parameters of a real column."""

    column: str
    mean: str  # empty for Brownian motion, which has none
    sd: str
    observed_sd: str
    signal: str


class SharedParameters(NamedTuple):
    """Parameters that all real columns share."""

    # share of a cell's variance; for Brownian motion the height of equal drift; empty if columns differ
    noise: str
    half_height: str  # height over which half of the correlation is lost; empty for Brownian motion


class CategoricalParameters(NamedTuple):
    """Parameters of a categorical column."""

    column: str
    half_height: str
    signal: str
    shares: list[tuple[str, str]]  # of the most frequent categories
    n_more: int  # categories


def shared_parameters(facts: ReportFacts) -> SharedParameters | None:
    """Return the parameters that the real columns share; None without real columns."""
    if not facts.real:
        return None
    first = facts.parameters[facts.real[0].name]
    each = [facts.parameters[column.name] for column in facts.real]
    if "noise_sd" not in first:  # a user-defined process may have none
        return SharedParameters("", _half_height(first))
    noises = [(float(values["noise_sd"]) / float(values["sd"])) ** 2 for values in each]
    noise = noises[0]
    if max(noises) - min(noises) > NOISE_TOLERANCE * max(noises):  # each column has its own noise
        return SharedParameters("", _half_height(first))
    noise_text = format_percent(noise / (1 + noise)) if "rate" in first else format_number(round_significant(noise, 3))
    return SharedParameters(noise_text, _half_height(first))


def real_parameters(facts: ReportFacts) -> list[RealParameters]:
    """Return the parameters of the real columns."""
    views = []
    for column in facts.real:
        parameters = facts.parameters[column.name]
        sd = float(parameters.get("sd", math.nan))
        mean = column.format_value(float(parameters["mean"]), sd) if "mean" in parameters else ""
        views.append(
            RealParameters(
                column.name,
                mean,
                column.format_difference(sd) if "sd" in parameters else "",
                column.format_difference(column.reference_sd),
                f"{parameters['signal']:.2f}",
            )
        )
    return views


def categorical_parameters(facts: ReportFacts) -> list[CategoricalParameters]:
    """Return the parameters of the categorical columns."""
    views = []
    for column in facts.categorical:
        parameters = facts.parameters[column.name]
        equilibrium = parameters.get("equilibrium", {})  # a user-defined process may have none
        shares = sorted(
            zip(column.categories, equilibrium.values(), strict=bool(equilibrium)), key=lambda pair: -pair[1]
        )
        shown_shares = [(category, format_percent(float(share))) for category, share in shares[:MAX_SHARES]]
        views.append(
            CategoricalParameters(
                column.name,
                _half_height(parameters),
                f"{parameters['signal']:.2f}",
                shown_shares,
                len(shares) - len(shown_shares),
            )
        )
    return views


def _half_height(parameters: dict[str, Any]) -> str:
    rate = float(parameters.get("rate", 0.0))
    return format_number(round_significant(math.log(2) / (2 * rate), 3)) if rate > 0 else ""


class OddCell(NamedTuple):
    """An observed cell and its expected value."""

    row: int
    column: str
    value: str
    expected: str
    log_tail: float  # log probability of a value at least as odd

    @property
    def rare(self) -> bool:
        """Whether it is rare enough to be called odd."""
        return self.log_tail < math.log(RARE)


class OddRow(NamedTuple):
    """A row and the distance of its score below that of the typical row."""

    row: int
    below: float  # how far the score is below 0, that of a typical row
    is_outlier: bool
    cells: list[OddCell]


class OddRows(NamedTuple):
    """The rows with the lowest scores, the oddest first: outliers, or at least a few rows."""

    rows: list[OddRow]
    n_outliers: int
    limit: float  # value of `below` above which a row is an outlier


class OddCells(NamedTuple):
    """The observed cells that are least likely given the rest of their rows, the oddest first."""

    cells: list[OddCell]
    n_rare: int
    n_cells: int  # number of cells that were held out


def log_tails(column: ColumnFacts, held_out: HeldOutFacts) -> FloatArray:
    """Return the log tail probability of each cell of the inspected rows; 0 for missing cells.

    The tail of a real cell is all values at least as far from the mean; that of a category, all categories at most as probable.
    """
    rows = held_out.inspected
    observed = ~column.missing[rows]
    tails = np.zeros(len(rows))
    if isinstance(column, RealFacts):
        known = observed & (column.expected_sd > 0)
        tails[known] = log_ndtr(-column.deviations(rows)[known]) + np.log(2)
        return tails
    probability = column.expected[observed, column.codes[rows[observed]]]
    tail = np.where(
        column.expected[observed] <= probability[:, None] * (1 + ROUNDING), column.expected[observed], 0.0
    ).sum(axis=1)
    tails[observed] = np.log(np.clip(np.where(tail > 1 - ROUNDING, 1.0, tail), 1e-300, 1.0))
    return tails


def odd_cells(columns: Sequence[ColumnFacts], held_out: HeldOutFacts, max_cells: int = MAX_ODD_CELLS) -> OddCells:
    """Find the least likely cells of the evenly chosen rows; odd rows would bias their number."""
    if not columns or not held_out.hidden_at_once:
        return OddCells([], 0, 0)
    even_rows = np.flatnonzero(held_out.evenly)
    tails = np.column_stack([log_tails(column, held_out)[even_rows] for column in columns])
    order = np.argsort(tails, axis=None, kind="stable")[:max_cells]
    cells = np.column_stack(np.unravel_index(order, tails.shape)).tolist()
    entries = [
        _odd_cell(columns[j], held_out, int(even_rows[k]), float(tails[k, j])) for k, j in cells if tails[k, j] < 0
    ]
    n_cells = sum(int(np.sum(~column.missing[held_out.inspected[even_rows]])) for column in columns)
    return OddCells(entries, int(np.sum(tails < np.log(RARE))), n_cells)


def odd_rows(columns: Sequence[ColumnFacts], held_out: HeldOutFacts) -> OddRows:
    """Find the rows with the lowest scores."""
    if len(held_out.rows) < 3 or not columns:
        return OddRows([], 0, -held_out.limit)
    # The order in which the inspected rows were chosen.
    order = np.argsort(np.round(held_out.scores, 9), kind="stable")
    is_outlier = held_out.scores < held_out.limit
    n_outliers = int(np.sum(is_outlier))
    tails = [log_tails(column, held_out) for column in columns] if held_out.hidden_at_once else []
    rows = [
        OddRow(
            int(held_out.rows[k]),
            float(-held_out.scores[k]),
            bool(is_outlier[k]),
            _reasons(columns, held_out, tails, int(np.searchsorted(held_out.inspected, held_out.rows[k]))),
        )
        for k in order[: int(np.clip(n_outliers, MIN_ODD_ROWS, MAX_ODD_ROWS))].tolist()
        if held_out.scores[k] < 0
    ]
    return OddRows(rows, n_outliers, -held_out.limit)


def _reasons(columns: Sequence[ColumnFacts], held_out: HeldOutFacts, tails: list[FloatArray], k: int) -> list[OddCell]:
    odd_columns = sorted(
        (float(column_tails[k]), j) for j, column_tails in enumerate(tails) if column_tails[k] < np.log(UNLIKELY)
    )
    return [_odd_cell(columns[j], held_out, k, tail) for tail, j in odd_columns[:MAX_CELLS_PER_ROW]]


def _odd_cell(column: ColumnFacts, held_out: HeldOutFacts, k: int, log_tail: float) -> OddCell:
    row = int(held_out.inspected[k])
    return OddCell(row, column.name, column.format_cell(row), column.format_expected(k), log_tail)


def describe_held_out(facts: ReportFacts) -> str:
    """Say which rows and cells were held out, and how."""
    held_out, n = facts.held_out, facts.tree.n_leaves
    if not len(held_out.rows):
        return ""
    all_rows = len(held_out.rows) == n
    subject = "Each row was" if all_rows else f"To save time, {len(held_out.rows):,} of the {n:,} rows were"
    together = "" if held_out.at_once == 1 else f", up to {held_out.at_once:,} of them at a time,"
    them = "it" if all_rows else "them"
    text = f"{subject} removed from the tree{together} and compared with what the other rows predict for {them}."
    n_even = int(np.sum(held_out.evenly))
    of_rows = "" if n_even == n else f" of {n_even:,} rows, chosen evenly from all, and of the oddest rows"
    if held_out.hidden_at_once == 1:
        return text + f" Then each cell{of_rows} was hidden in turn and predicted from the rest of its row."
    return (
        text
        + f" Then the cells{of_rows} were hidden, up to {held_out.hidden_at_once} at a time, and predicted from the rest of "
        "their row."
    )


class SupportView(NamedTuple):
    """The support of the clades of a summary tree."""

    bins: list[tuple[str, int, float]]  # range of support, number of clades, height relative to the highest bin
    summary: str
    weak: list[str]
    n_more: int


def support_view(facts: ReportFacts) -> SupportView | None:
    """Return the distribution of support and the weak clades; None without a sample of trees."""
    tree = facts.tree
    if not isinstance(tree, SummaryTree) or facts.sample is None or tree.n_leaves < 3:
        return None
    support = tree.support[:-1]  # every tree has the root's clade
    shares = support[~np.isnan(support)]
    if not len(shares):
        return None
    counts, _ = np.histogram(shares, bins=10, range=(0.0, 1.0))
    bins = [
        (f"{10 * k} to {10 * k + 10} %", number, number / max(int(counts.max()), 1))
        for k, number in enumerate(counts.tolist())
    ]
    sure = int(np.sum(shares >= 0.95))
    summary = (
        f"{sure:,} of {count(len(shares), 'clade')} {'is' if sure == 1 else 'are'} in at least 95 % of the sampled trees, "
        f"{int(np.sum(shares < WEAK_SUPPORT)):,} in fewer than half."
    )
    weak = [k for k in np.argsort(support, kind="stable").tolist() if support[k] < WEAK_SUPPORT]
    sentences = [
        f"{describe_clade(facts, tree.n_leaves + k)}: in {format_percent(float(support[k]))} of the trees" for k in weak
    ]
    return SupportView(bins, summary, sentences[:MAX_WEAK_CLADES], max(len(weak) - MAX_WEAK_CLADES, 0))


def describe_clade(facts: ReportFacts, node: int) -> str:
    """Describe a clade by some of its leaves."""
    leaves = np.sort(facts.tree.leaves_below(node))
    names = [facts.tree.leaf_names[leaf] for leaf in leaves[: MAX_NAMES + (len(leaves) == MAX_NAMES + 1)]]
    if len(names) < len(leaves):
        return f"{', '.join(names)} and {len(leaves) - len(names):,} more"
    return f"{', '.join(names[:-1])} and {names[-1]}"
