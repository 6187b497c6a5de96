"""Sequential Monte Carlo: a weighted sample of trees, and the evidence ``p(x)``.

Particles are partial histories. Each is *extended* by a merge drawn from a proposal, *weighed* by ``exp(-c delta) Z`` over the
density really drawn from, every constant in, eq. (8.1), and all are *resampled* when few of them carry the weight. The mean
weight is then an unbiased estimate of the evidence. Four proposals for the time since the last merge and the pair:

``prior-prior``
    both from the prior, eq. (8.2).
``prior-post``
    the time from the prior, the pair in proportion to its likelihood then, eq. (8.3).
``post-post``
    the pair in proportion to its likelihood integrated over all times, the time given the pair, eq. (8.4).
``race``
    every pair holds an alarm, drawn once when it comes to live; the first to ring merges. ``n^2`` pairs instead of ``n^3``;
    eq. (8.5) and eq. (8.6).
"""

from __future__ import annotations

import math
import threading
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from joblib import parallel
from numpy.typing import ArrayLike, NDArray

from .._parameters import Choices, check_parameter
from .._random import RandomState, as_generator
from .._validation import check_count
from ..errors import InputError, InputWarning
from ..process.base import Process, check_process
from ..process.kernels.messages import Forest
from ..process.validation import as_matrix
from ..tree.tree import Tree
from .chain import room_for_chain
from .checkpoint import add_resume_hint
from .executors import make_executor, open_client
from .kernels import particles as kernels
from .kernels.rejuvenation import regraft_particles
from .smc_result import FinishedParticles, Run, SMCResult, normalised
from .thread_executor import thread_count

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

SCHEMES = ("systematic", "stratified", "residual", "multinomial")


def copies(scheme: str, weights: FloatArray, rng: np.random.Generator) -> IntArray:
    """Draw the number of copies of each particle.

    Parameters
    ----------
    scheme : {"systematic", "stratified", "residual", "multinomial"}
        One uniform number for all, one for each of n equal strata, whole parts first and chance for the rest, or chance alone.
    weights : ndarray of shape (n,)
        Non-negative, with sum 1.
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of int, shape (n,)
        With sum n; the expectation of entry i is ``n weights[i]``.
    """
    n = len(weights)
    if scheme == "multinomial":
        return rng.multinomial(n, weights).astype(np.intp)
    if scheme == "residual":
        whole = np.floor(n * weights).astype(np.intp)
        left = n - int(whole.sum())
        if left <= 0:
            return whole
        rest = n * weights - whole
        return whole + rng.multinomial(left, rest / rest.sum())
    offsets = rng.random() if scheme == "systematic" else rng.random(n)
    places = (np.arange(n) + offsets) / n
    ends = np.cumsum(weights)
    ends[-1] = 1.0  # rounding must not leave a place beyond the last end
    return np.bincount(np.searchsorted(ends, places, side="right"), minlength=n).astype(np.intp)


def moves(counts: IntArray) -> tuple[IntArray, IntArray]:
    """Return which particles are copied where, those with a copy staying in place: sources and targets."""
    return np.repeat(np.arange(len(counts)), np.maximum(counts - 1, 0)), np.flatnonzero(counts == 0)


REGRAFTED_AT_ONCE = 16  # particles
UNIFORMS = 4  # numbers that a move takes
PAIRS_AT_ONCE = 20_000  # in one call of a kernel, so that Ctrl-C and other threads get their turn

#: Called with the share of the work done, the effective sample size and the log evidence so far.
SmcProgress = Callable[[float, float, float], None]


def sample_histories(
    X: FloatArray, process: Process, settings: Settings, seed: int, n_threads: int, report: SmcProgress | None
) -> Run:
    """Run the sampler once: extend, weigh, resample."""
    n, rng = len(X), np.random.default_rng(seed)
    extender = Extender(X, process, settings, n_threads)
    log_weights = np.asarray(extender.particles.log_weights)
    log_evidence = math.fsum(process.leaf_log_likelihoods(X))
    ess, evidences, resampled = np.empty(n - 1), np.empty(n - 1), np.zeros(n - 1, dtype=bool)
    with extender:
        extender.start(rng)
        for k in range(n - 1):
            extender.extend_and_weigh(k, rng)
            check_weights(log_weights, k, n)
            weights, log_mean = normalised(log_weights)
            ess[k] = 1 / np.sum(weights**2)
            evidences[k] = log_evidence + log_mean
            if k < n - 2 and ess[k] < settings.threshold * settings.n_particles:
                extender.resample(k, copies(settings.resampling, weights, rng))
                extender.regraft(k, rng)
                log_evidence += log_mean
                log_weights[:] = 0.0
                resampled[k] = True
            if report:
                report((k + 1) / (n - 1), ess[k], evidences[k])
    log_evidence += normalised(log_weights)[1]
    return Run(FinishedParticles.of(extender.particles), log_evidence, evidences, ess, resampled)


class Settings(NamedTuple):
    """How to sample."""

    proposal: str
    n_particles: int
    threshold: float
    resampling: str
    regrafts: int = 0


class Extender:
    """The particles of a run with their forest, and the threads that share the work on them."""

    def __init__(self, X: FloatArray, process: Process, settings: Settings, n_threads: int) -> None:
        n_particles, n = settings.n_particles, len(X)
        slots = n_particles * n
        extra = 2 * n if settings.regrafts else 0  # the leaves once more, and scratch
        self.n = n
        self.proposal = settings.proposal
        self.forest = process.forest(X, slots + extra)
        _repeat_leaves(self.forest, n, n_particles + (extra > 0))
        self.particles = kernels.Particles(n_particles, n)
        self.alarms = kernels.Alarms(n_particles if settings.proposal == "race" else 0, n)
        self.regrafts = settings.regrafts
        if self.regrafts:
            self.room = room_for_chain(X, process)
        self.n_threads = n_threads
        self.pool = ThreadPoolExecutor(n_threads) if n_threads > 1 else None

    def __enter__(self) -> Extender:
        return self

    def __exit__(self, *error: object) -> None:
        if self.pool:
            self.pool.shutdown(cancel_futures=True)

    def _share(self, n_pairs: int, work: Callable[[int, int], None]) -> None:
        """Do the work on all particles, in shares of moderate size: `n_pairs` are looked at in each particle."""
        n_particles = len(self.particles.log_weights)
        step = max(1, min(-(-n_particles // self.n_threads), PAIRS_AT_ONCE // n_pairs))
        spans = [(first, min(first + step, n_particles)) for first in range(0, n_particles, step)]
        if self.pool is None:
            for span in spans:
                work(*span)
        else:
            for future in [self.pool.submit(work, *span) for span in spans]:
                future.result()

    def start(self, rng: np.random.Generator) -> None:
        """Set the first alarms of a race."""
        if self.proposal == "race":
            for i in range(1, self.n):
                u = rng.random((len(self.particles.log_weights), i, 2))
                self._share(i, partial(kernels.set_first_alarms, self.forest, self.particles, self.alarms, i, u))

    def extend_and_weigh(self, k: int, rng: np.random.Generator) -> None:
        """Add merge k to every particle, and the log of its weight to the particle's."""
        n_particles, n_live = len(self.particles.log_weights), self.n - k
        if self.proposal == "race":
            u = rng.random((n_particles, n_live - 1, 2))
            self._share(3 * n_live, partial(kernels.extend_race, self.forest, self.particles, self.alarms, k, u))
        elif self.proposal == "prior-prior":
            u = rng.random((n_particles, 3))
            self._share(1, partial(kernels.extend_prior_prior, self.forest, self.particles, k, u))
        else:
            u = rng.random((n_particles, 4))
            time_first = self.proposal == "prior-post"
            n_pairs = n_live * (n_live - 1) // 2
            self._share(n_pairs, partial(kernels.extend_by_likelihood, self.forest, self.particles, k, u, time_first))

    def resample(self, k: int, counts: NDArray[np.intp]) -> None:
        """Copy particles in the place of those without a copy, after merge k."""
        kernels.copy_particles(self.forest, self.particles, self.alarms, k, *moves(counts))

    def regraft(self, k: int, rng: np.random.Generator) -> None:
        """Let subtrees of all particles move after merge k, which leaves their distribution as it is."""
        if self.regrafts:
            n_particles = len(self.particles.log_weights)
            u = rng.random((n_particles, self.regrafts, UNIFORMS))
            for p in range(0, n_particles, REGRAFTED_AT_ONCE):  # so that Ctrl-C gets its turn
                last = min(p + REGRAFTED_AT_ONCE, n_particles)
                regraft_particles(*self.room, self.forest, n_particles * self.n, self.particles, k, u, p, last)


def _repeat_leaves(forest: Forest, n: int, times: int) -> None:
    """Copy the first n slots of a forest to those that follow, so that there are so many of each."""
    for messages in (forest.mean, forest.spread, forest.least, forest.state, forest.growth):
        rows = np.asarray(messages)[: times * n]
        rows.reshape(times, n, *rows.shape[1:])[1:] = rows[:n]


def check_weights(log_weights: FloatArray, k: int, n: int) -> None:
    """Raise when no particle can go on, or a weight is not a number."""
    if np.any(np.isnan(log_weights)) or np.any(log_weights == math.inf):
        raise FloatingPointError(
            f"At merge {k + 1} of {n - 1} a weight is not a finite number: the table's or the process's units are beyond what "
            "double precision holds; rescale them, or give Brownian some noise."
        )
    if not np.any(log_weights > -math.inf):
        raise InputError(
            f"At merge {k + 1} of {n - 1} all {len(log_weights)} particles have weight 0: the process gives these rows no "
            "probability that double precision can hold. Rescale the columns or the variances, or take "
            "proposal='post-post' and more particles."
        )


def smc(
    X: ArrayLike,
    process: Process,
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
        Rows are leaves; NaN is a missing cell. Nothing is rescaled.
    process : Process
        `Brownian`, `OrnsteinUhlenbeck`, `Multinomial` or `Mixed`.
    proposal : {"post-post", "race", "prior-post", "prior-prior"}, default "post-post"
        How merges are drawn. ``post-post`` looks at ``n^3 / 6`` pairs for each particle, ``race`` at ``3 n^2 / 2``; the other two
        are for comparison.
    n_particles : int, default 50
        Particles in each run.
    threshold : float, default 0.5
        Particles are resampled when their effective number falls below this share of them; never after the last merge.
    resampling : {"systematic", "stratified", "residual", "multinomial"}, default "systematic"
    n_runs : int, default 1
        Independent runs; their spread gives the evidence its standard error. They go through joblib, so that
        ``joblib.parallel_config`` decides what carries them.
    regrafts : int, default 0
        Moves of Markov chains that each particle makes whenever particles are resampled: subtrees are hung elsewhere within what
        has merged, so that the most recent merges stay different. The evidence stays unbiased. Not for ``race``.
    leaf_names : sequence of str, optional
        Names of the rows.
    n_jobs : int, optional
        Threads, as in scikit-learn. The result does not depend on it.
    client : distributed.Client or str, optional
        Whose workers take the runs, one each: a Dask client, the address of a scheduler such as "tcp://host:8786", or "local:2"
        for two worker processes on this machine. The result does not depend on it.
    random_state : int, Generator, RandomState or None, default None
    progress : callable, optional
        Called now and then with the share of the work done, the effective sample size and the log evidence so far; on a
        cluster after each run.

    Returns
    -------
    SMCResult

    Notes
    -----
    Memory grows as ``n_particles n D``, and for ``race`` by ``4 n_particles n^2`` bytes more, for the alarms.

    Examples
    --------
    >>> import coaltree as ct
    >>> sample = ct.smc([[0.0], [0.1], [3.0]], ct.Brownian(), n_particles=200, random_state=0)
    >>> probability = sample.clade_probabilities()[frozenset({"0", "1"})]
    >>> 0.6 < probability < 1
    True
    """
    if progress is not None and not callable(progress):
        raise InputError(f"progress is {progress!r}; it must be a function of share, ESS and log evidence, or None.")
    settings = _checked_settings(process, proposal, n_particles, threshold, resampling, regrafts)
    n_runs = check_count(n_runs, "n_runs")
    matrix = as_matrix(X)
    resolved = process.resolve(matrix)
    seeds = as_generator(random_state).integers(2**63, size=n_runs).tolist()
    n_threads = thread_count(n_jobs)
    # A callback can follow the runs only where they share its memory.
    together = getattr(parallel.get_active_backend(prefer="threads")[0], "supports_sharedmem", False) or n_threads == 1
    reports = _reports(progress if together and client is None else None, n_runs)
    each = max(1, n_threads // n_runs) if client is None else 1
    runs: list[Run] = []
    with open_client(client) as opened, add_resume_hint(has_checkpoint=False):
        tasks = [(matrix, resolved, settings, *own) for own in zip(seeds, [each] * n_runs, reports, strict=True)]
        for run in make_executor(opened, n_threads, any_backend=True).run(sample_histories, tasks):
            runs.append(run)
            if progress and opened is not None:
                ess = float(run.ess[-1]) if len(run.ess) else float(n_particles)  # one row has no merges
                progress(len(runs) / n_runs, ess, run.log_evidence)
    trees = _trees(runs, leaf_names)
    result = SMCResult(trees, runs, matrix, resolved)
    result.remarks.extend(resolved.remarks(_flattened(result.best()), matrix))
    for remark in result.remarks:
        warnings.warn(remark, InputWarning, stacklevel=2)
    return result


def _trees(runs: Sequence[Run], leaf_names: Sequence[str] | None) -> list[Tree]:
    """Return the particles' trees, the same object for the same tree."""
    known: dict[tuple[bytes, bytes], Tree] = {}
    trees = []
    for run in runs:
        for children, heights in zip(run.particles.children, run.particles.heights, strict=True):
            key = (children.tobytes(), heights.tobytes())
            if key not in known:
                known[key] = Tree(children, np.concatenate([np.zeros(len(children) + 1), heights]), leaf_names)
            trees.append(known[key])
    return trees


def _flattened(tree: Tree) -> Tree:
    """Return the tree with merges at height 0 that are there but for the noise that keeps identical rows apart."""
    return Tree(tree.children, np.where(tree.heights < 1e-12 * tree.heights[-1], 0.0, tree.heights), tree.leaf_names)


def _reports(progress: SmcProgress | None, n_runs: int) -> list[SmcProgress | None]:
    """Return a report for each run, which may be in threads of their own, that make one progress."""
    if progress is None:
        return [None] * n_runs
    lock, shares = threading.Lock(), [0.0] * n_runs

    def report(run: int, share: float, ess: float, log_evidence: float) -> None:
        with lock:
            shares[run] = share
            progress(sum(shares) / n_runs, ess, log_evidence)

    return [lambda *facts, run=run: report(run, *facts) for run in range(n_runs)]


def _checked_settings(
    process: Process, proposal: str, n_particles: int, threshold: float, resampling: str, regrafts: int
) -> Settings:
    check_process(process)
    check_parameter("proposal", proposal)
    check_parameter("resampling", resampling, Choices(tuple(SCHEMES)))
    if isinstance(threshold, bool) or not isinstance(threshold, (int, float, np.floating)) or not 0 <= threshold <= 1:
        raise InputError(f"threshold is {threshold!r}; it must be a number from 0 (never resample) to 1.")
    moves = check_count(regrafts, "regrafts", 0)
    if moves and proposal == "race":
        raise InputError(
            "regrafts is not 0, and proposal is 'race', whose pairs have their times already; take 'post-post'."
        )
    return Settings(proposal, check_count(n_particles, "n_particles"), float(threshold), resampling, moves)
