"""Greedy inference: merge the best pair of lineages, again and again, until one is left.

Three rules say which pair is best (`c` is the weight of waiting, ``delta`` the time since the last merge):

``rate1``
    c = 1 for every pair, so that a pair's best height never changes; the pair that merges most recently wins, eq. (7.1).
``max-prob``
    c = the number of live pairs; the pair with the largest ``-c delta + log Z`` wins, eq. (7.2).
``min-duration``
    c = the number of live pairs; the pair with the smallest ``delta`` wins, eq. (7.3).

The best height of a pair is that of eq. (6.1). Where it would be below the younger lineage's, they merge as soon as that one
has appeared; under ``rate1``, where cells have noise and there are many such pairs, those whose messages are most alike first,
eq. (7.4). Other ties go to the smaller pair of node numbers.

Equal rows without noise merge before all others, at height 0; that needs no search.

In a search they would all have the same few partners on their lists, which are soon used up.
"""

from __future__ import annotations

import heapq
import math
import warnings
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._html import facts_html
from .._parameters import check_parameter
from .._validation import quote
from ..errors import InputError, InputWarning
from ..process.base import Process, check_process, log_recorded, merge_log_likelihoods
from ..process.kernels.messages import Forest, set_log_norms
from ..process.validation import as_matrix
from ..tree.coalescent import log_prior
from ..tree.tree import Tree
from .checkpoint import Round, SearchCheckpoint, add_resume_hint
from .executors import ThreadExecutor, in_threads, make_executor, open_client, thread_count
from .kernels.neighbors import slots_for as neighbor_slots_for
from .kernels.partners import (
    Partners,
    Scratch,
    all_pairs_merges,
    enter_all,
    find_partners,
    rate1_merges,
    slots_for,
    start_tournament,
)
from .merges import Merges, allocate_merges, run_in_chunks
from .neighbors import merge_neighbors

IntArray = NDArray[np.intp]

MIN_LINEAGES, MIN_LINEAGES_IN_SPACE = 1_000, 10_000  # below which the neighbour search leaves the rest to the exact one
ROWS_PER_SCAN = 100  # that a thread takes at a time, on average
SCANS_PER_THREAD = 4  # at least, so that the threads finish together; then a scan has fewer rows
MAX_NUMBERS_OF_ONE_THREAD = 2_500_000  # in the messages of all pairs; below, threads take longer to start than the work
ROWS_PER_BLOCK = 100_000  # compared at a time to find equal ones

FloatArray = NDArray[np.float64]
Progress = Callable[[float, int], None]  # share of the work done, live lineages


@dataclass(frozen=True)
class GreedyResult:
    """A tree found by greedy inference, with what the model says of it.

    Attributes
    ----------
    tree : Tree
    log_joint : float
        ``log p(x, tree)``.
    log_likelihood : float
        ``log p(x | tree)``.
    log_ratios : ndarray of shape (n - 1,)
        For each merge, most recent first, the log likelihood ratio of one tree over its leaves against two
        independent ones.
    process : Process
        The process used, everything that it left open settled.
    search : {"exact", "neighbors"}
        How partners were looked for.
    neighbor_recall : float or None
        Of lineages looked at in every round of the search by neighbours, the share whose best partner of all was among their
        neighbours.
    """

    tree: Tree
    log_joint: float
    log_likelihood: float
    log_ratios: NDArray[np.float64]
    process: Process
    search: str = "exact"
    neighbor_recall: float | None = None

    def __repr__(self) -> str:
        return f"<GreedyResult: {self.tree.n_leaves} leaves, log joint {self.log_joint:.6g}>"

    def _repr_html_(self) -> str:
        facts = {
            "log joint": self.log_joint,
            "log likelihood": self.log_likelihood,
            "search": self.search,
            "process": self.process,
        }
        return facts_html("Greedy inference", facts, self.tree._repr_html_())


def greedy(
    X: ArrayLike,
    process: Process,
    rule: str = "rate1",
    search: str = "auto",
    *,
    leaf_names: Sequence[str] | None = None,
    n_jobs: int | None = None,
    client: Any = None,
    checkpoint: str | Path | None = None,
    progress: Progress | None = None,
) -> GreedyResult:
    """Find one good tree by merging the best pair again and again.

    Parameters
    ----------
    X : array-like of shape (n, D)
        Rows are leaves; NaN is a missing cell. Nothing is rescaled. A Dask array is computed block by block.
    process : Process
        `Brownian`, `OrnsteinUhlenbeck`, `Multinomial`, `Mixed`, or one of your own.
    rule : {"rate1", "max-prob", "min-duration"}, default "rate1"
        Which pair merges next. ``rate1`` weighs ``n^2 / 2`` pairs at the start and as many after it, the others
        ``n^3 / 6`` in all.
    search : {"auto", "exact", "neighbors"}, default "auto"
        How ``rate1`` looks for partners: among all, ``n^2`` pairs; or among near ones only, in a time that grows little
        faster than n. "auto" looks among all pairs of up to 3,000 rows. Pairs of complete real rows with one noise for all
        columns are ruled out many at a time: it looks among all of up to 30,000 under an Ornstein-Uhlenbeck process, of up to
        50,000 under Brownian motion, and there of any number if they have at most three columns.
    leaf_names : sequence of str, optional
        Names of the rows.
    n_jobs : int, optional
        Threads, as in scikit-learn. The result does not depend on it.
    client : distributed.Client or str, optional
        Whose workers look for neighbours: a Dask client, the address of a scheduler such as "tcp://host:8786", or "local:2" for
        two worker processes on this machine. The result does not depend on it.
    checkpoint : str or Path, optional
        A file that is kept up to date with the rounds of the search by neighbours. If it is there already, the search goes on
        from it, to the very tree that it would have found without a break.
    progress : callable, optional
        Called now and then with the share of the work done, 0 to 1, and the number of lineages that live.

    Returns
    -------
    GreedyResult

    Notes
    -----
    If columns are ascertained, see `Multinomial`, the search ignores that, so heights are too large; the densities of the result
    include it, and `refine` corrects the tree.

    Examples
    --------
    >>> import coaltree as ct
    >>> result = ct.greedy([[0.0], [0.1], [3.0]], ct.Brownian())
    >>> result.tree.children.tolist()
    [[0, 1], [2, 3]]
    """
    _check_arguments(process, rule, search, progress)
    matrix = as_matrix(X)
    resolved = process.resolve(matrix)
    resolved.check_ascertainment(matrix)
    report = progress or (lambda share, live: None)
    search = _choose_search(search, rule, matrix, resolved)
    rounds: list[Round] = []
    with open_client(client) as opened, add_resume_hint(checkpoint):
        threads = thread_count(n_jobs)
        if rule != "rate1":
            children, heights = _all_pairs_tree(matrix, resolved, report, rule)
        elif search == "exact":
            children, heights = _exact_tree(matrix, resolved, threads, report)
        else:
            executor = make_executor(opened, threads)
            (children, heights), rounds = _neighbor_tree(matrix, resolved, executor, checkpoint, report)
    if not np.all(np.isfinite(heights)):
        raise FloatingPointError(
            f"After {int(np.argmin(np.isfinite(heights))) - len(matrix)} merges no pair has a best height that is a number: the "
            "units of the table or of the process are beyond double precision. Rescale them."
        )
    report(1.0, 1)
    result = replace(
        explain(Tree(children, heights, leaf_names), matrix, resolved),
        search=search,
        neighbor_recall=float(np.mean([recall for _, recall in rounds])) if rounds else None,
    )
    for remark in resolved.remarks(result.tree, matrix):
        warnings.warn(remark, InputWarning, stacklevel=2)
    return result


def _check_arguments(process: Process, rule: str, search: str, progress: object) -> None:
    check_parameter("rule", rule)
    check_parameter("search", search)
    if search == "neighbors" and rule != "rate1":
        raise InputError(
            f"search is 'neighbors', and rule is {quote(rule)}: only 'rate1' can be searched by neighbours."
        )
    check_process(process)
    if progress is not None and not callable(progress):
        raise InputError(
            f"progress is {quote(progress)}; it must be a function of the share of work done and the number of live lineages, or "
            "None."
        )


def _choose_search(search: str, rule: str, X: FloatArray, process: Process) -> str:
    """Return how to search for partners: among all pairs if there are few enough rows."""
    if search != "auto":
        return search
    return "neighbors" if rule == "rate1" and len(X) > process.max_exact_rows(X) else "exact"


def explain(tree: Tree, X: FloatArray, process: Process) -> GreedyResult:
    """Return a tree with its densities and likelihood ratios under a resolved process."""
    merges = merge_log_likelihoods(process, tree, X)
    log_likelihood = math.fsum(process.leaf_log_likelihoods(X)) + float(merges.log_z.sum())
    log_likelihood -= log_recorded(process, tree, X)
    return GreedyResult(tree, log_likelihood + log_prior(tree), log_likelihood, merges.log_ratios, process)


def _exact_tree(X: FloatArray, process: Process, n_threads: int, report: Progress) -> Merges:
    merges = allocate_merges(len(X))
    forest, nodes = _first_lineages(X, process, slots_for(len(X)), merges)
    partners = Partners(forest, len(nodes))
    np.asarray(partners.node)[: len(nodes)] = nodes
    merge_exactly(forest, partners, len(X) - len(nodes), merges, n_threads, report)
    return merges


def _first_lineages(X: FloatArray, process: Process, slots: int, merges: Merges) -> tuple[Forest, IntArray]:
    """Return a forest of the rows, and the numbers in the tree of its lineages; equal rows may have been merged."""
    forest = process.forest(X, slots, scan=True)
    if forest.noisy:
        set_log_norms(forest, len(X))
    if not _in_space(forest) or forest.noisy:
        return forest, np.arange(len(X))
    distinct = merge_equal_rows(X, merges)
    live = len(distinct.nodes)
    mean, variance, least = np.asarray(forest.mean), np.asarray(forest.spread)[:, 0], np.asarray(forest.least)
    mean[:live] = mean[distinct.rows]
    variance[:live] = variance[distinct.rows] / distinct.counts
    least[:live] = variance[:live]
    return forest, distinct.nodes


def _in_space(forest: Forest) -> bool:
    """Return whether the lineages' partners are looked for in space, most being ruled out many at a time."""
    return bool(forest.complete and forest.n_brownian)


def _message_length(forest: Forest) -> int:
    """Return how many numbers the message of a lineage has."""
    return int(np.asarray(forest.mean).shape[1] + np.asarray(forest.state).shape[1])


def merge_exactly(
    forest: Forest, partners: Partners, done: int, merges: Merges, n_threads: int, report: Progress
) -> None:
    """Merge all live lineages, in the first slots in order of age, by the exact search; some merges are done already."""
    n = partners.n_live
    if n == 1:
        return
    scratch = Scratch(forest)
    enter_all(forest, partners, scratch)
    # near ones in turn, while they are at hand
    order = np.argsort(np.asarray(partners.space.bucket)[:n], kind="stable")
    n_threads = n_threads if n**2 * _message_length(forest) > MAX_NUMBERS_OF_ONE_THREAD else 1
    # Row i has i pairs: bounds that share the n^2 / 2 of them evenly.
    n_scans = min(n, max(SCANS_PER_THREAD * n_threads, n // ROWS_PER_SCAN))
    bounds = np.round(n * np.sqrt(np.linspace(0, 1, 1 + n_scans))).astype(int)

    def scan(first: int, last: int) -> None:
        find_partners(forest, partners, order[first:last], Scratch(forest))

    for scanned, _ in enumerate(in_threads(n_threads, scan, pairwise(bounds.tolist()))):
        report(0.5 * (scanned + 1) / (len(bounds) - 1), n)
    start_tournament(partners)
    run_in_chunks(
        lambda first, last: rate1_merges(forest, partners, first, last, *merges, scratch),
        done,
        len(merges.children),
        lambda k: report(1 - 0.5 * (1 - (k - done) / n) ** 2, n - (k - done)),
    )


def _neighbor_tree(
    X: FloatArray, process: Process, executor: ThreadExecutor, checkpoint: str | Path | None, report: Progress
) -> tuple[Merges, list[Round]]:
    n = len(X)
    merges = allocate_merges(n)
    order = np.lexsort(X.T)  # what is looked at, and ties, depend on the order of the rows: let it be one of their own
    forest, nodes = _first_lineages(X[order], process, neighbor_slots_for(n), merges)
    min_lineages = MIN_LINEAGES_IN_SPACE if _in_space(forest) else MIN_LINEAGES
    file = None if checkpoint is None else SearchCheckpoint(checkpoint, forest, nodes, min_lineages)
    lists, done, rounds = merge_neighbors(
        forest, process, nodes, min_lineages, executor, merges, lambda share, live: report(0.95 * share, live), file
    )
    live = int(lists.counts[1])
    partners = Partners(forest, live)
    np.asarray(partners.node)[:live] = np.asarray(lists.node)[:live]

    def report_rest(share: float, live: int) -> None:
        report(0.95 + 0.05 * share, live)

    merge_exactly(forest, partners, done, merges, executor.n_threads, report_rest)
    merges.children[:] = np.sort(np.append(order, np.arange(n, 2 * n - 1))[merges.children], axis=1)
    return merges, rounds


def _all_pairs_tree(X: FloatArray, process: Process, report: Progress, rule: str) -> Merges:
    n = len(X)
    forest = process.forest(X, n + 1)
    node, merges = np.arange(n + 1), allocate_merges(n)
    run_in_chunks(
        lambda first, last: all_pairs_merges(forest, rule == "max-prob", node, first, last, *merges),
        0,
        n - 1,
        lambda k: report(1 - (1 - k / n) ** 3, n - k),
    )
    return merges


class DistinctRows(NamedTuple):
    """The lineages that are left when equal rows have merged, by age."""

    nodes: IntArray  # number in the tree
    rows: IntArray  # one of the rows below each
    counts: IntArray  # how many there are


def merge_equal_rows(X: NDArray[np.float64], merges: Merges) -> DistinctRows:
    """Merge equal rows, of all pairs the one with the smallest numbers first, as the search does with ties.

    Parameters
    ----------
    X : ndarray of shape (n, D)
        Without missing cells.
    merges : Merges
        Where the merges go, which are the first ones.

    Returns
    -------
    DistinctRows
    """
    n = len(X)
    order = np.lexsort(X.T)
    new = np.ones(n, dtype=bool)
    for p in range(1, n, ROWS_PER_BLOCK):
        rows = X[order[p - 1 : p + ROWS_PER_BLOCK]]
        new[p : p + ROWS_PER_BLOCK] = np.any(rows[1:] != rows[:-1], axis=1)
    starts = np.flatnonzero(new)
    counts = np.diff(np.append(starts, n))
    nodes = order[starts]
    # np.lexsort is stable, so the members of a group are in order
    groups = {
        int(nodes[g]): (g, deque(order[starts[g] : starts[g] + counts[g]].tolist()))
        for g in np.flatnonzero(counts > 1).tolist()
    }
    ready = sorted(groups)
    done = 0
    while ready:
        first = heapq.heappop(ready)
        g, members = groups.pop(first)
        members.popleft()
        merges.children[done] = first, members.popleft()
        members.append(n + done)
        done += 1
        if len(members) > 1:
            groups[members[0]] = g, members
            heapq.heappush(ready, members[0])
        else:
            nodes[g] = members[0]
    by_age = np.argsort(nodes)
    return DistinctRows(nodes[by_age], order[starts][by_age], counts[by_age])
