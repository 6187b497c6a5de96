"""Draws of trees with their parameters by short Markov chains, for predictions to be averaged over.

A single tree is overconfident whatever its parameters. Some tens of draws correct this, and take about a second for a few hundred
rows. The chains start at a tree that already fits.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._extensions import are_compiled
from .._random import RandomState, as_generator
from ..process.base import Process
from ..process.normal_scores import NormalScores
from ..tree.tree import Tree
from .chain import Chain, without_ties
from .executors import ThreadExecutor, thread_count

FloatArray = NDArray[np.float64]

N_CHAINS = 2  # the first over the columns, the second over their normal scores if there are any
DRAWS_PER_CHAIN = 25  # draws of each chain
# Sweeps, of as many moves as there are rows, before parameters are drawn: first the tree has to suit them.
N_TREE_SWEEPS = 10
WARMUP_SHARE = 0.6  # of all sweeps; with 0.4, chains over categories had not arrived
N_CELL_DRAWS = 10  # of missing cells before the first move: filled otherwise they would mislead it
MIN_SWEEPS, MAX_SWEEPS = 80, 300
# By these a sweep of a chain takes about n (MOVE + COLUMN d) units of time; small tables get as many as there is time for.
MOVE, COLUMN, TIME = 1.0, 0.05, 60_000.0
MAX_TIME = 1_000_000.0  # in these units, about half a minute: wide tables get fewer sweeps, and fewer rows
MIN_WIDE_SWEEPS = 16  # of wide tables, whose trees are nearly certain, and of all tables where kernels are not compiled
PLAIN_PYTHON_COST = 300.0  # of a move where kernels are not compiled, relative to a compiled one
MIN_ROWS, MAX_ROWS = 100, 3_000  # that trees are drawn over
MAX_CELLS = 5_000_000  # in the tables of all draws: a wide table gets fewer draws, so that questions stay fast
N_REPORTS = 10  # of progress


class Draw(NamedTuple):
    """A tree, its parameters, and the table that its messages are made of."""

    tree: Tree
    process: Process
    X: FloatArray  # as given, but for missing cells that are drawn too, and for rounding; or the scores of all that
    scores: NormalScores | None = None


class Plan(NamedTuple):
    """How long the chains run."""

    n_sweeps: int
    warmup: int
    kept: frozenset[int]  # sweeps after which the chain is recorded


def posterior_draws(
    X: FloatArray,
    process: Process,
    tree: Tree,
    *,
    scored: tuple[NormalScores, Process] | None = None,
    hold_noise: bool = False,
    n_draws: int | None = None,
    n_jobs: int | None = None,
    random_state: RandomState = None,
    progress: Callable[[float], None] | None = None,
) -> list[Draw]:
    """Draw trees and parameters from their posterior by short chains.

    Parameters
    ----------
    X : ndarray of shape (n, D)
        NaN is a missing cell.
    process : Process
        A resolved one; the chains begin with its parameters.
    tree : Tree
        Over the rows; the chains begin with it.
    scored : tuple of NormalScores and Process, optional
        Scores of the table, and a process for them. If given, half of the chains draw trees over the scores.
    hold_noise : bool, default False
        Leave the noise as it is.
    n_draws : int, optional
        Number of draws, rounded up to an even one, of chains that are as short as they may be. By default 50, and small tables
        have longer chains: densities gain by them, filled cells do not.
    n_jobs : int, optional
        Threads. The result does not depend on it.
    random_state : int, Generator, RandomState or None, default None
    progress : callable, optional
        Called regularly with the share of the work done.

    Returns
    -------
    list of Draw
    """
    seeds = as_generator(random_state).integers(2**63, size=N_CHAINS).tolist()
    plan = _plan(len(X), X.shape[1], n_draws)
    models: list[tuple[NormalScores | None, Process]] = [(None, process), scored or (None, process)]
    chains = [_init_chain(X, *model, tree, seed, hold_noise) for model, seed in zip(models, seeds, strict=True)]
    draws_by_chain: list[list[Draw]] = [[] for _ in chains]
    bounds = np.unique(np.linspace(0, plan.n_sweeps, N_REPORTS + 1).astype(int))
    threads = ThreadExecutor(thread_count(n_jobs))
    for first, last in pairwise(bounds.tolist()):
        tasks = [(chain, tree.leaf_names, plan, first, last) for chain in chains]
        for number, (chain, draws) in enumerate(threads.run(_run_sweeps, tasks)):
            chains[number] = chain
            draws_by_chain[number].extend(draws)
        if progress:
            progress(last / plan.n_sweeps)
    return [
        draw._replace(scores=scores)
        for (scores, _), draws in zip(models, draws_by_chain, strict=True)
        for draw in draws
    ]


def _init_chain(
    X: FloatArray, scores: NormalScores | None, process: Process, tree: Tree, seed: int, hold_noise: bool
) -> Chain:
    rng = np.random.default_rng(seed)
    X = process.jitter_rounded(X, rng)
    sampler = process.sampler(X if scores is None else scores.apply(X), hold_noise)
    tree = without_ties(tree, rng)
    for _ in range(N_CELL_DRAWS):
        sampler.draw_cells(process, tree, rng)
    return Chain(sampler.table, process, tree, rng, sampler)


def max_rows(n_columns: int) -> int:
    """Return the number of rows up to which chains over a table of so many columns finish within `MAX_TIME`."""
    return int(np.clip(MAX_TIME / (MIN_WIDE_SWEEPS * (MOVE + COLUMN * n_columns)), MIN_ROWS, MAX_ROWS))


def _plan(n: int, n_columns: int, n_draws: int | None) -> Plan:
    time = n * (MOVE + COLUMN * n_columns)
    per_chain = DRAWS_PER_CHAIN if n_draws is None else max(-(-n_draws // N_CHAINS), 1)
    shortest = max(MIN_SWEEPS, MIN_SWEEPS * per_chain // DRAWS_PER_CHAIN)
    sweeps = int(np.clip(TIME / time, MIN_SWEEPS, MAX_SWEEPS)) if n_draws is None else shortest
    most = MAX_TIME if are_compiled() else MAX_TIME / PLAIN_PYTHON_COST
    sweeps = min(sweeps, max(int(most / time), MIN_WIDE_SWEEPS))
    warmup = int(WARMUP_SHARE * sweeps)
    per_chain = min(per_chain, max(int(MAX_CELLS / (N_CHAINS * n * n_columns)), 2))
    return Plan(sweeps, warmup, frozenset(np.linspace(warmup, sweeps - 1, per_chain).round().astype(int).tolist()))


def _run_sweeps(
    chain: Chain, leaf_names: tuple[str, ...], plan: Plan, first: int, last: int
) -> tuple[Chain, list[Draw]]:
    """Make some sweeps; return the chain and its draws."""
    draws: list[Draw] = []
    for k in range(first, last):
        chain.move(chain.n_leaves, hold=k < min(N_TREE_SWEEPS, plan.warmup // 2))
        if k < plan.warmup:
            chain.tune()
        if k in plan.kept:
            unchanged = draws and np.array_equal(draws[-1].X, chain.table, equal_nan=True)
            # most tables are the same in all draws, and may be large
            X = draws[-1].X if unchanged else chain.table.copy()
            draws.append(Draw(chain.tree(leaf_names), chain.process, X))
    return chain, draws
