"""Greedy inference: merge the best pair of lineages until only one lineage is left.

Three rules define the best pair. A merge has the log density ``-c delta + log Z``, with the time ``delta`` since the last merge:

``rate1``
    c = 1 for every pair, so the best height of a pair never changes. The pair with the lowest best height wins, eq. (7.1).
``max-prob``
    c is the number of live pairs. The pair with the largest ``-c delta + log Z`` wins, eq. (7.2).
``min-duration``
    c is the number of live pairs. The pair with the smallest ``delta`` wins, eq. (7.3).

Eq. (6.1) gives the best height of a pair. If that is below one of the two lineages, the pair merges at the height of the higher
one. With noise there are many such ties; ``rate1`` then merges the pair with the most similar messages first, eq. (7.4). Any
other tie goes to the pair with the smaller node numbers.

Equal rows are most similar, and merge first, at height 0 and without a search, see `coaltree.inference.equal_rows`.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._html import facts_html
from .._parameters import check_parameter
from .._validation import quote
from ..errors import InputError, InputWarning
from ..process.base import Process, log_recorded, merge_log_likelihoods
from ..process.kernels.messages import Forest, merge_copies, set_log_norms
from ..process.layout import make_forest
from ..tree.arrays import Merges, allocate_merges
from ..tree.coalescent import log_prior
from ..tree.tree import Tree
from .characters import read_arguments
from .checkpoint import Round, SearchCheckpoint, add_resume_hint
from .equal_rows import merge_equal_rows
from .executors import ThreadExecutor, Workers, make_executor, open_client, run_in_chunks, thread_count
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
from .neighbors import merge_neighbors

IntArray = NDArray[np.intp]

# With fewer lineages, the exact search completes a neighbour search.
MIN_LINEAGES, MIN_LINEAGES_IN_SPACE = 1_000, 10_000
ROWS_PER_SCAN = 100  # mean number of rows that a thread scans per task
SCANS_PER_THREAD = 4  # minimum number of tasks per thread, so that all threads finish at about the same time
MAX_NUMBERS_OF_ONE_THREAD = 2_500_000  # numbers in the messages of all pairs; with fewer, starting threads takes longer

FloatArray = NDArray[np.float64]
Progress = Callable[[float, int], None]  # share of the work done, live lineages


@dataclass(frozen=True)
class GreedyResult:
    """A tree found by greedy inference, with its densities.

    Attributes
    ----------
    tree : Tree
    log_joint : float
        ``log p(x, tree)``.
    log_likelihood : float
        ``log p(x | tree)``.
    log_ratios : ndarray of shape (n - 1,)
        For each merge, most recent first: the log likelihood ratio of one tree over all its leaves against two independent
        trees, one below each child.
    process : Process
        The process, with all parameters resolved.
    search : {"exact", "neighbors"}
        How partners were searched for.
    neighbor_recall : float or None
        Quality of the neighbour search: the share of tested lineages whose best partner was on their list of neighbours. None
        after an exact search.
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
    process: Process | None = None,
    rule: str = "rate1",
    search: str = "auto",
    *,
    leaf_names: Sequence[str] | None = None,
    n_jobs: int | None = None,
    client: Any = None,
    checkpoint: str | Path | None = None,
    progress: Progress | None = None,
) -> GreedyResult:
    """Find one good tree by repeatedly merging the best pair of lineages.

    Parameters
    ----------
    X : array-like of shape (n, D)
        Rows are leaves; NaN is a missing cell. Nothing is rescaled. Or a frame of `read_characters`.
        A Dask array is computed block by block.
    process : Process, optional
        `Brownian`, `OrnsteinUhlenbeck`, `Multinomial`, `Mixed`, or one of your own. By default, for a frame of characters, the
        model that `CoalescentClustering` has for them, with rates fitted to a greedy tree.
    rule : {"rate1", "max-prob", "min-duration"}, default "rate1"
        Which pair merges next. ``rate1`` evaluates about ``n^2`` pairs, the other rules ``n^3 / 6``.
    search : {"auto", "exact", "neighbors"}, default "auto"
        Where ``rate1`` searches for partners: "exact" considers all ``n^2`` pairs; "neighbors" considers near pairs only, in a
        time that grows little faster than n. "auto" is exact for up to 3,000 rows. For complete real rows with the same noise
        in all columns, where the search rules out many pairs at a time, it is exact for up to 30,000 rows under an
        Ornstein-Uhlenbeck process, for up to 50,000 under Brownian motion, and there for any number with at most three columns.
        Equal rows merge first: what counts is the number of lineages that are left.
    leaf_names : sequence of str, optional
        Names of the rows.
    n_jobs : int, optional
        Number of threads, as in scikit-learn. The result does not depend on it.
    client : distributed.Client or str, optional
        Distribute the neighbour search over Dask workers: a Dask client, the address of a scheduler such as "tcp://host:8786",
        or "local:2" for two worker processes on this machine. The result does not depend on it.
    checkpoint : str or Path, optional
        A file to which every round of the neighbour search is saved. If the file exists, the search resumes from it and finds
        the same tree as without the interruption.
    progress : callable, optional
        Called regularly with the share of the work done, from 0 to 1, and the number of live lineages.

    Returns
    -------
    GreedyResult

    Notes
    -----
    The search ignores the ascertainment of columns (see `Multinomial`), so heights are then too large. The densities of the
    result include it, and `refine` corrects the tree.

    Examples
    --------
    >>> import coaltree as ct
    >>> result = ct.greedy([[0.0], [0.1], [3.0]], ct.Brownian())
    >>> result.tree.children.tolist()
    [[0, 1], [2, 3]]
    """
    _check_arguments(rule, search, progress)
    matrix, process, leaf_names = read_arguments(X, process, leaf_names, greedy)
    resolved = process.resolve(matrix)
    resolved.check_ascertainment(matrix)
    report = progress or (lambda share, live: None)
    max_exact = resolved.max_exact_rows(matrix) if search == "auto" else 0
    if search == "auto":
        search = "neighbors" if rule == "rate1" and len(matrix) > max_exact else "exact"
    rounds: list[Round] = []
    with open_client(client) as opened, add_resume_hint(checkpoint):
        threads = thread_count(n_jobs)
        if rule != "rate1":
            children, heights = _all_pairs_tree(matrix, resolved, report, rule)
        elif search == "exact":
            children, heights = _exact_tree(matrix, resolved, threads, report)
        else:
            executor = make_executor(opened, threads)
            (children, heights), rounds = _neighbor_tree(matrix, resolved, max_exact, executor, checkpoint, report)
            if max_exact and not rounds:
                search = "exact"
    if not np.all(np.isfinite(heights)):
        raise FloatingPointError(
            f"After {int(np.argmin(np.isfinite(heights))) - len(matrix)} merges no pair has a finite best height: the units of "
            "the table or of the process exceed the range of double precision. Rescale them."
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


def _check_arguments(rule: str, search: str, progress: object) -> None:
    check_parameter("rule", rule)
    check_parameter("search", search)
    if search == "neighbors" and rule != "rate1":
        raise InputError(
            f"search is 'neighbors', but rule is {quote(rule)}; the neighbour search supports only rule='rate1'."
        )
    if progress is not None and not callable(progress):
        raise InputError(
            f"progress is {quote(progress)}; it must be a function of the share of work done and the number of live lineages, or "
            "None."
        )


def explain(tree: Tree, X: FloatArray, process: Process) -> GreedyResult:
    """Return a tree with its densities and likelihood ratios under a resolved process."""
    merges = merge_log_likelihoods(process, tree, X)
    log_likelihood = math.fsum(process.leaf_log_likelihoods(X)) + float(merges.log_z.sum())
    log_likelihood -= log_recorded(process, tree, X)
    return GreedyResult(tree, log_likelihood + log_prior(tree), log_likelihood, merges.log_ratios, process)


def _exact_tree(X: FloatArray, process: Process, n_threads: int, report: Progress) -> Merges:
    merges = allocate_merges(len(X))
    forest, nodes = _first_lineages(X, process, slots_for, merges)
    partners = Partners(forest, len(nodes))
    np.asarray(partners.node)[: len(nodes)] = nodes
    merge_exactly(forest, partners, len(X) - len(nodes), merges, n_threads, report)
    return merges


def _first_lineages(
    X: FloatArray, process: Process, count_slots: Callable[[int], int], merges: Merges
) -> tuple[Forest, IntArray]:
    """Merge equal rows; return a forest of the lineages that are left, in the order of their node numbers, and these."""
    columns = process.checked_columns(X)
    noisy = any(part.noisy for part in columns)
    distinct = merge_equal_rows(X, noisy, merges)
    n_lineages = len(distinct.nodes)
    if n_lineages < len(X):
        columns = [part.take_rows(distinct.rows) for part in columns]
    forest = make_forest(columns, count_slots(n_lineages), scan=True)
    if n_lineages < len(X):
        merge_copies(forest, distinct.counts)
    if noisy:
        set_log_norms(forest, n_lineages)
    return forest, distinct.nodes


def _in_space(forest: Forest) -> bool:
    """Return whether lineages are points in space, where the search rules out many partners at a time."""
    return bool(forest.complete and forest.n_brownian)


def _message_length(forest: Forest) -> int:
    """Return the number of values in the message of a lineage."""
    return sum(np.asarray(part).shape[1] for part in (forest.mean, forest.state, forest.chain))


def merge_exactly(
    forest: Forest, partners: Partners, done: int, merges: Merges, n_threads: int, report: Progress
) -> None:
    """Complete a tree by the exact search, after `done` merges. The live lineages are in the first slots, ordered by age."""
    n = partners.n_live
    if n == 1:
        return
    scratch = Scratch(forest)
    enter_all(forest, partners, scratch)
    # Points of the same bucket are scanned together, while they are in the cache.
    order = np.argsort(np.asarray(partners.space.bucket)[:n], kind="stable")
    n_threads = n_threads if n**2 * _message_length(forest) > MAX_NUMBERS_OF_ONE_THREAD else 1
    # Row i has i pairs, so these bounds divide the n^2 / 2 pairs evenly.
    n_scans = min(n, max(SCANS_PER_THREAD * n_threads, n // ROWS_PER_SCAN))
    bounds = np.round(n * np.sqrt(np.linspace(0, 1, 1 + n_scans))).astype(int)

    def scan(first: int, last: int) -> None:
        find_partners(forest, partners, order[first:last], Scratch(forest))

    with Workers(n_threads) as workers:
        for scanned, _ in enumerate(workers.run(scan, pairwise(bounds.tolist()))):
            report(0.5 * (scanned + 1) / (len(bounds) - 1), n)
    start_tournament(partners)
    run_in_chunks(
        lambda first, last: rate1_merges(forest, partners, first, last, *merges, scratch),
        done,
        len(merges.children),
        lambda k: report(1 - 0.5 * (1 - (k - done) / n) ** 2, n - (k - done)),
    )


def _neighbor_tree(
    X: FloatArray,
    process: Process,
    max_exact: int,
    executor: ThreadExecutor,
    checkpoint: str | Path | None,
    report: Progress,
) -> tuple[Merges, list[Round]]:
    """Search by rounds of neighbours, unless at most `max_exact` lineages are left once equal rows have merged."""
    n = len(X)
    merges = allocate_merges(n)
    order = np.lexsort(X.T)  # candidates and ties depend on the order of rows, so sort the rows by content
    forest, nodes = _first_lineages(X[order], process, neighbor_slots_for, merges)
    min_lineages = MIN_LINEAGES_IN_SPACE if _in_space(forest) else MIN_LINEAGES
    if len(nodes) <= max_exact:
        min_lineages = len(nodes)
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
