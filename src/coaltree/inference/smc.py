"""Sequential Monte Carlo: a weighted sample of trees, and the evidence ``p(x)``.

Particles are partial histories of the coalescent. At each step every particle is *extended* by a merge drawn from a proposal
and *weighted* by ``exp(-c delta) Z`` over the density of the proposal, with all constants, eq. (8.1). When the effective
sample size is low, the particles are *resampled* and, optionally, *moved* by regrafting. The mean weight is then an unbiased
estimate of the evidence. There are four proposals for the next merge, a pair of lineages and a time:

``prior-prior``
    pair and time from the prior, eq. (8.2).
``prior-post``
    the time from the prior, the pair in proportion to its likelihood at that time, eq. (8.3).
``post-post``
    the pair in proportion to its likelihood integrated over all times, then the time given the pair, eq. (8.4).
``race``
    each pair draws a merge time when both of its lineages exist, and the earliest merges. This takes ``n^2`` instead of
    ``n^3`` pairs; eq. (8.5) and eq. (8.6).
"""

from __future__ import annotations

import math
import threading
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._parameters import Choices, check_parameter
from .._random import RandomState, as_generator
from .._validation import check_count, check_memory, quote
from ..errors import InputError, InputWarning
from ..process.base import Process
from ..process.kernels.messages import Forest
from ..tree.tree import Tree
from .chain import room_for_chain
from .characters import read_arguments
from .checkpoint import add_resume_hint
from .executors import Workers, make_executor, open_client, shares_memory, thread_count
from .greedy import greedy
from .kernels import particles as kernels
from .results import FinishedParticles, Run, SMCResult, normalize

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

SCHEMES = ("systematic", "stratified", "residual", "multinomial")
# Limits on the work in one call of a kernel, so that Ctrl-C and other threads are not delayed.
MAX_PAIRS_PER_CALL = 20_000
MAX_MOVED_PARTICLES = 16
UNIFORMS_PER_MOVE = 4

#: Called with the share of the work done, the effective sample size and the log evidence so far.
SmcProgress = Callable[[float, float, float], None]


class Settings(NamedTuple):
    """How to sample."""

    proposal: str
    n_particles: int
    threshold: float
    resampling: str
    regrafts: int = 0


def sample_histories(
    X: FloatArray, process: Process, settings: Settings, seed: int, n_threads: int, report: SmcProgress | None
) -> Run:
    """Run the sampler once: extend, weight, resample, move."""
    n, rng = len(X), np.random.default_rng(seed)
    ess, log_evidences, resampled = np.empty(n - 1), np.empty(n - 1), np.zeros(n - 1, dtype=bool)
    with Workers(n_threads) as workers:
        sampler = Sampler(X, process, settings, workers)
        log_weights = np.asarray(sampler.particles.log_weights)
        log_evidence = math.fsum(process.leaf_log_likelihoods(X))
        sampler.start(rng)
        for k in range(n - 1):
            sampler.extend_and_weight(k, rng)
            check_weights(log_weights, k, n)
            weights, log_mean = normalize(log_weights)
            ess[k] = 1 / np.sum(weights**2)
            log_evidences[k] = log_evidence + log_mean
            if k < n - 2 and ess[k] < settings.threshold * settings.n_particles:
                sampler.resample(k, draw_copies(settings.resampling, weights, rng))
                sampler.move(k, rng)
                log_evidence += log_mean
                log_weights[:] = 0.0
                resampled[k] = True
            if report:
                report((k + 1) / (n - 1), ess[k], log_evidences[k])
    unseen = process.unseen_columns(X)
    if unseen is not None and n > 1:  # the condition on recorded columns is a matter of whole trees
        children, heights = np.asarray(sampler.particles.children), np.asarray(sampler.particles.heights)
        for p in range(settings.n_particles):
            log_weights[p] -= unseen.log_recorded(Tree(children[p], np.append(np.zeros(n), heights[p])))
        weights, log_mean = normalize(log_weights)
        ess[-1], log_evidences[-1] = 1 / np.sum(weights**2), log_evidence + log_mean
    log_evidence += normalize(log_weights)[1]
    return Run(FinishedParticles.from_particles(sampler.particles), log_evidence, log_evidences, ess, resampled)


class Sampler:
    """The particles of a run, the forest with their messages, and the threads that work on them."""

    def __init__(self, X: FloatArray, process: Process, settings: Settings, workers: Workers) -> None:
        n_particles, n = settings.n_particles, len(X)
        slots = n_particles * n
        extra = 2 * n if settings.regrafts else 0  # another copy of the leaves, and scratch
        self.n = n
        self.proposal = settings.proposal
        self.forest = process.forest(X, slots + extra)
        _repeat_leaves(self.forest, n, n_particles + (extra > 0))
        self.particles = kernels.Particles(n_particles, n)
        self.alarms = kernels.Alarms(n_particles if settings.proposal == "race" else 0, n)
        self.regrafts = settings.regrafts
        if self.regrafts:
            self.room = room_for_chain(X, process)
        self.workers = workers

    def start(self, rng: np.random.Generator) -> None:
        """Draw the first merge times of all pairs, for a race."""
        if self.proposal == "race":
            for i in range(1, self.n):
                u = rng.random((len(self.particles.log_weights), i, 2))
                self._run(i, partial(kernels.set_first_alarms, self.forest, self.particles, self.alarms, i, u))

    def extend_and_weight(self, k: int, rng: np.random.Generator) -> None:
        """Add merge k to every particle, and the log of its weight to the particle's log weight."""
        n_particles, n_live = len(self.particles.log_weights), self.n - k
        if self.proposal == "race":
            u = rng.random((n_particles, n_live - 1, 2))
            self._run(3 * n_live, partial(kernels.extend_race, self.forest, self.particles, self.alarms, k, u))
        elif self.proposal == "prior-prior":
            u = rng.random((n_particles, 3))
            self._run(1, partial(kernels.extend_prior_prior, self.forest, self.particles, k, u))
        else:
            u = rng.random((n_particles, 4))
            time_first = self.proposal == "prior-post"
            n_pairs = n_live * (n_live - 1) // 2
            self._run(n_pairs, partial(kernels.extend_by_likelihood, self.forest, self.particles, k, u, time_first))

    def resample(self, k: int, counts: IntArray) -> None:
        """Replace particles without a copy by copies of others, after merge k."""
        kernels.copy_particles(self.forest, self.particles, self.alarms, k, *assign_copies(counts))

    def move(self, k: int, rng: np.random.Generator) -> None:
        """Regraft subtrees within each particle after merge k; this leaves the distribution of particles invariant."""
        if self.regrafts:
            n_particles = len(self.particles.log_weights)
            u = rng.random((n_particles, self.regrafts, UNIFORMS_PER_MOVE))
            for first in range(0, n_particles, MAX_MOVED_PARTICLES):
                last = min(first + MAX_MOVED_PARTICLES, n_particles)
                kernels.regraft_particles(
                    *self.room, self.forest, n_particles * self.n, self.particles, k, u, first, last
                )

    def _run(self, n_pairs: int, kernel: Callable[[int, int], None]) -> None:
        """Call a kernel for ranges of particles, on all threads; it considers `n_pairs` pairs in each particle."""
        n_particles = len(self.particles.log_weights)
        step = max(1, min(-(-n_particles // self.workers.n_threads), MAX_PAIRS_PER_CALL // n_pairs))
        for _ in self.workers.run(
            kernel, [(first, min(first + step, n_particles)) for first in range(0, n_particles, step)]
        ):
            pass


def _repeat_leaves(forest: Forest, n: int, times: int) -> None:
    """Copy the messages of the first n slots of a forest to the following ones, so that each occurs `times` times."""
    for messages in (forest.mean, forest.spread, forest.least, forest.state, forest.growth, forest.chain):
        rows = np.asarray(messages)[: times * n]
        rows.reshape(times, n, *rows.shape[1:])[1:] = rows[:n]


def particle_bytes(n_rows: int, n_numbers: int, proposal: str) -> float:
    """Return the memory of a particle whose messages have so many numbers each, at least one for each column."""
    n_pairs = n_rows**2 / 2 if proposal == "race" else 0
    return 8.0 * (n_rows * (n_numbers + 8) + n_pairs)


def draw_copies(scheme: str, weights: FloatArray, rng: np.random.Generator) -> IntArray:
    """Draw the number of copies of each particle.

    Parameters
    ----------
    scheme : {"systematic", "stratified", "residual", "multinomial"}
        ``systematic`` uses one uniform number for all particles, ``stratified`` one for each of n equal strata. ``residual``
        makes the integer parts of ``n weights`` copies and draws the rest, ``multinomial`` draws all copies independently.
    weights : ndarray of shape (n,)
        Non-negative, with sum 1.
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of int, shape (n,)
        With sum n. The expectation of entry i is ``n weights[i]``.
    """
    n = len(weights)
    if scheme == "multinomial":
        return rng.multinomial(n, weights).astype(np.intp)
    if scheme == "residual":
        integer_parts = np.floor(n * weights).astype(np.intp)
        n_random = n - int(integer_parts.sum())
        if n_random <= 0:
            return integer_parts
        residuals = n * weights - integer_parts
        return integer_parts + rng.multinomial(n_random, residuals / residuals.sum())
    offsets = rng.random() if scheme == "systematic" else rng.random(n)
    points = (np.arange(n) + offsets) / n
    cumulative = np.cumsum(weights)
    cumulative[-1] = 1.0  # despite rounding, no point may be beyond the end
    return np.bincount(np.searchsorted(cumulative, points, side="right"), minlength=n).astype(np.intp)


def assign_copies(counts: IntArray) -> tuple[IntArray, IntArray]:
    """Return sources and targets of copies. Particles with at least one copy stay in place."""
    return np.repeat(np.arange(len(counts)), np.maximum(counts - 1, 0)), np.flatnonzero(counts == 0)


def check_weights(log_weights: FloatArray, k: int, n: int) -> None:
    """Raise if all weights are 0, or a weight is not a finite number."""
    if np.any(np.isnan(log_weights)) or np.any(log_weights == math.inf):
        raise FloatingPointError(
            f"At merge {k + 1} of {n - 1} a weight is not a finite number: the units of the table or the process exceed the "
            "range of double precision. Rescale them, or give Brownian some noise."
        )
    if not np.any(log_weights > -math.inf):
        raise InputError(
            f"At merge {k + 1} of {n - 1} all {len(log_weights)} particles have weight 0: under this process the probability "
            "of these rows is too small for double precision. Rescale the columns or the variances, or use "
            "proposal='post-post' and more particles."
        )


def smc(
    X: ArrayLike,
    process: Process | None = None,
    proposal: str = "post-post",
    n_particles: int = 50,
    *,
    threshold: float = 0.5,
    resampling: str = "systematic",
    n_runs: int = 1,
    regrafts: int = 0,
    leaf_names: Sequence[str] | None = None,
    n_jobs: int | None = None,
    client: Any = None,
    random_state: RandomState = None,
    progress: SmcProgress | None = None,
) -> SMCResult:
    """Sample trees from the posterior by sequential Monte Carlo.

    Parameters
    ----------
    X : array-like of shape (n, D)
        Rows are leaves; NaN is a missing cell. Nothing is rescaled. Or a frame of `read_characters`.
    process : Process, optional
        `Brownian`, `OrnsteinUhlenbeck`, `Multinomial` or `Mixed`. By default, for a frame of characters, the model
        that `CoalescentClustering` has for them, with rates fitted to a greedy tree.
    proposal : {"post-post", "race", "prior-post", "prior-prior"}, default "post-post"
        How merges are drawn. ``post-post`` considers ``n^3 / 6`` pairs for each particle, ``race`` ``3 n^2 / 2``; the other
        two are for comparison.
    n_particles : int, default 50
        Particles in each run.
    threshold : float, default 0.5
        Particles are resampled when the effective sample size falls below this share of their number, except after the last
        merge.
    resampling : {"systematic", "stratified", "residual", "multinomial"}, default "systematic"
    n_runs : int, default 1
        Independent runs, from which the standard error of the evidence is estimated. They run in parallel by joblib; choose
        a backend with ``joblib.parallel_config``.
    regrafts : int, default 0
        Number of regrafting moves of each particle after each resampling. Subtrees move within what has merged, so that the
        lowest merges stay diverse. The evidence stays unbiased. Not available for ``race``.
    leaf_names : sequence of str, optional
        Names of the rows.
    n_jobs : int, optional
        Number of threads, as in scikit-learn. The result does not depend on it.
    client : distributed.Client or str, optional
        Distribute the runs over Dask workers, one run per worker: a Dask client, the address of a scheduler such as
        "tcp://host:8786", or "local:2" for two worker processes on this machine. The result does not depend on it.
    random_state : int, Generator, RandomState or None, default None
    progress : callable, optional
        Called after each merge with the share of the work done, the effective sample size and the log evidence so far; on a
        Dask cluster after each run.

    Returns
    -------
    SMCResult

    Notes
    -----
    If columns are ascertained, see `Multinomial`, the particles are weighted by that condition at the end.

    Memory is proportional to ``n_particles n D``. The merge times of ``race`` take another ``4 n_particles n^2`` bytes.

    Examples
    --------
    >>> import coaltree as ct
    >>> sample = ct.smc([[0.0], [0.1], [3.0]], ct.Brownian(), n_particles=200, random_state=0)
    >>> probability = sample.clade_probabilities()[frozenset({"0", "1"})]
    >>> 0.6 < probability < 1
    True
    """
    if progress is not None and not callable(progress):
        raise InputError(
            f"progress is {quote(progress)}; it must be a function of share, ESS and log evidence, or None."
        )
    settings = _check_settings(proposal, n_particles, threshold, resampling, regrafts)
    n_runs = check_count(n_runs, "n_runs")
    matrix, process, leaf_names = read_arguments(X, process, leaf_names, greedy)
    size = n_runs * settings.n_particles * 8.0 * len(matrix)
    size += settings.n_particles * particle_bytes(len(matrix), matrix.shape[1], proposal)
    check_memory(
        size, f"{n_runs * settings.n_particles:,} particles of {len(matrix):,} rows", "use fewer particles or runs"
    )
    n_moves = settings.n_particles * settings.regrafts
    check_memory(8.0 * n_moves * UNIFORMS_PER_MOVE, f"{n_moves:,} regrafts after a merge", "use fewer")
    resolved = process.resolve(matrix)
    resolved.check_ascertainment(matrix)
    seeds = as_generator(random_state).integers(2**63, size=n_runs).tolist()
    n_threads = thread_count(n_jobs)
    # A callback can be called during the runs only if they share memory with it.
    reports = _make_reports(progress if shares_memory(n_threads) and client is None else None, n_runs)
    threads_per_run = max(1, n_threads // n_runs) if client is None else 1
    runs: list[Run] = []
    with open_client(client) as opened, add_resume_hint(has_checkpoint=False):
        tasks = [
            (matrix, resolved, settings, seed, threads_per_run, report)
            for seed, report in zip(seeds, reports, strict=True)
        ]
        for run in make_executor(opened, n_threads, any_backend=True).run(sample_histories, tasks):
            runs.append(run)
            if progress and opened is not None:
                ess = float(run.ess[-1]) if len(run.ess) else float(n_particles)  # one row has no merges
                progress(len(runs) / n_runs, ess, run.log_evidence)
    result = SMCResult(_make_trees(runs, leaf_names), runs, matrix, resolved)
    result.remarks.extend(resolved.remarks(_round_heights(result.best()), matrix))
    for remark in result.remarks:
        warnings.warn(remark, InputWarning, stacklevel=2)
    return result


def _make_trees(runs: Sequence[Run], leaf_names: Sequence[str] | None) -> list[Tree]:
    """Return the trees of all particles; equal trees are the same object."""
    distinct: dict[tuple[bytes, bytes], Tree] = {}
    trees = []
    for run in runs:
        for children, heights in zip(run.particles.children, run.particles.heights, strict=True):
            key = (children.tobytes(), heights.tobytes())
            if key not in distinct:
                distinct[key] = Tree(children, np.concatenate([np.zeros(len(children) + 1), heights]), leaf_names)
            trees.append(distinct[key])
    return trees


def _round_heights(tree: Tree) -> Tree:
    """Return the tree with negligible heights, where only noise separates identical rows, set to 0."""
    return Tree(tree.children, np.where(tree.heights < 1e-12 * tree.heights[-1], 0.0, tree.heights), tree.leaf_names)


def _make_reports(progress: SmcProgress | None, n_runs: int) -> list[SmcProgress | None]:
    """Return a thread-safe callback for each run; together they report the progress of all runs."""
    if progress is None:
        return [None] * n_runs
    lock, shares = threading.Lock(), [0.0] * n_runs

    def report(run: int, share: float, ess: float, log_evidence: float) -> None:
        with lock:
            shares[run] = share
            progress(sum(shares) / n_runs, ess, log_evidence)

    return [lambda *values, run=run: report(run, *values) for run in range(n_runs)]


def _check_settings(proposal: str, n_particles: int, threshold: float, resampling: str, regrafts: int) -> Settings:
    check_parameter("proposal", proposal)
    check_parameter("resampling", resampling, Choices(tuple(SCHEMES)))
    if isinstance(threshold, bool) or not isinstance(threshold, (int, float, np.floating)) or not 0 <= threshold <= 1:
        raise InputError(f"threshold is {quote(threshold)}; it must be a number from 0 (never resample) to 1.")
    regrafts = check_count(regrafts, "regrafts", 0)
    if regrafts and proposal == "race":
        raise InputError(
            "regrafts must be 0 with proposal='race', whose merge times are drawn in advance; use proposal='post-post'."
        )
    return Settings(proposal, check_count(n_particles, "n_particles"), float(threshold), resampling, regrafts)
