"""The evidence ``p(x)`` of a process, by Markov chains over trees at a ladder of powers of the likelihood.

Trees are drawn from ``p(x | tree)^b p(tree)``, first from the prior (b = 0), then at larger and larger powers b up to 1. From
each power to the next, trees are weighted by ``p(x | tree)`` to the power of the difference. The product of the mean weights
estimates the evidence, eq. (14.1) and (14.2). At each power some trees are chosen by their weights, a Markov chain starts from
each, and all samples of the chains are weighted for the next power: an annealed sequential Monte Carlo sampler in which no sample
is wasted (Dau and Chopin 2022). A run estimates ``p(x)`` without bias. Several independent runs give the standard error.

If rates vary across sites, the likelihood of a site at some power is the mean over the categories of its likelihoods given the
category, each raised to the power, eq. (14.3). Chains draw the categories in turn with the tree, and weights sum over them.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._random import RandomState, as_generator
from .._validation import check_count, check_memory, quote, to_floats
from ..errors import InputError, InputWarning
from ..process.base import Process
from ..process.site_rates import N_CATEGORIES, category_rates, draw_categories, sum_categories
from ..tree.coalescent import simulate_tree
from ..tree.tree import Tree
from .chain import Chain, check_chains
from .characters import read_arguments
from .checkpoint import CheckpointFile, add_resume_hint, fingerprint
from .executors import ThreadExecutor, make_executor, open_client, thread_count
from .greedy import greedy
from .results import SITE_RATE, EvidenceResult, normalize

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
#: Called with the share of the work done, the number of powers done and the log evidence so far.
EvidenceProgress = Callable[[float, int, float], None]

STEP_ESS = 0.7  # the next power is the one at which the weights of the samples are worth this share of their number
PILOT_DIVISOR = 4  # the pilot run, which chooses the powers, has so many times fewer samples
MIN_PILOT_SAMPLES = 64
MAX_POWERS = 10_000
CHAINS_PER_TASK = 4
PILOT_SHARE = 0.05  # of the work, for reports


class Plan(NamedTuple):
    """How much work is done at each power."""

    n_chains: int
    n_samples: int  # of each chain
    thin: int  # moves between successive samples


class Samples(NamedTuple):
    """Trees of one run at one power."""

    children: IntArray  # (samples, merges, 2)
    heights: FloatArray  # (samples, merges)
    log_likelihoods: FloatArray  # (samples,), but for sites whose rates vary
    site_logs: FloatArray  # (samples, categories, sites), of these, given the category
    site_weights: FloatArray  # (samples, sites), which are the same for all samples

    def log_densities(self, power: float) -> FloatArray:
        """Return the log likelihoods of the samples, raised to a power, but for sites whose rates vary: eq. (14.3)."""
        by_site = sum_categories(power * self.site_logs, axis=1)
        return np.asarray(power * self.log_likelihoods + np.sum(self.site_weights * by_site, axis=1))


class Steps(NamedTuple):
    """What all runs found on the way from each power to the next."""

    log_ratios: FloatArray  # (runs, steps)
    ess: FloatArray  # (runs, steps), of the weights, as a share of the samples
    mean_log_likelihoods: FloatArray  # (runs, steps), at the lower power

    @classmethod
    def empty(cls, n_runs: int, n_steps: int) -> Steps:
        """Allocate arrays."""
        return cls(*(np.zeros((n_runs, n_steps)) for _ in cls._fields))

    def add(self, run: int, step: int, samples: Samples, low: float, high: float) -> None:
        """Weight samples for the next power, and record what that says."""
        weights, self.log_ratios[run, step] = weigh(samples, low, high)
        self.ess[run, step] = 1 / np.sum(weights**2) / len(weights)
        self.mean_log_likelihoods[run, step] = samples.log_densities(1.0).mean()


def weigh(samples: Samples, low: float, high: float) -> tuple[FloatArray, float]:
    """Return the weights of samples at some power for a higher one, and the log of their mean before they add up to 1."""
    return normalize(samples.log_densities(high) - samples.log_densities(low))


class SiteRates:
    """The rates of sites, where they vary: draws of their categories, and likelihoods given the category.

    Parameters
    ----------
    X : ndarray of shape (n, D)
    process : Process
        A resolved one.
    """

    def __init__(self, X: FloatArray, process: Process) -> None:
        names = process.parameter_names(range(X.shape[1]))
        self._process, self._place = process, {name: k for k, name in enumerate(names)}
        self._parts = [
            (columns, shape, part.site_likelihoods(X[:, columns]))
            for part, columns in process.subprocesses(X.shape[1])
            if (shape := part.gamma_shape) is not None
        ]

    @property
    def varies(self) -> bool:
        """Whether any rates vary."""
        return bool(self._parts)

    @property
    def weights(self) -> FloatArray:
        """How many columns each site stands for."""
        return np.concatenate([np.zeros(0), *(sites.weight for *_, sites in self._parts)])

    def logs(self, tree: Tree) -> list[FloatArray]:
        """Return the log likelihood of each site in each category, for each part of the process whose rates vary."""
        return [sites.given_category(tree, shape) for _, shape, sites in self._parts]

    def draw(self, logs: list[FloatArray], power: float, rng: np.random.Generator) -> tuple[Process, list[IntArray]]:
        """Draw the category of each column given its likelihoods; return the process with the rates, and the categories."""
        values, drawn = self._process.parameter_values(), []
        for (columns, shape, sites), of_part in zip(self._parts, logs, strict=True):
            categories = draw_categories(sites.chances(power * of_part), rng)
            values[[self._place[f"{SITE_RATE}{d}]"] for d in columns]] = category_rates(shape)[categories]
            drawn.append(categories)
        return self._process.with_parameter_values(values), drawn

    def log_likelihood(self, logs: list[FloatArray], drawn: list[IntArray]) -> float:
        """Return the log likelihood of all sites whose rates vary, given their categories."""
        parts = zip(self._parts, logs, drawn, strict=True)
        return sum(float(of_part[chosen, sites.site_of].sum()) for (*_, sites), of_part, chosen in parts)


def draw_from_prior(X: FloatArray, process: Process, seed: int, size: int) -> Samples:
    """Draw trees from the coalescent, which is the distribution at power 0."""
    rng = np.random.default_rng([seed, 0])
    trees = [simulate_tree(len(X), rng) for _ in range(size)]
    recorder = _Recorder(X, process, trees[0], 1.0)
    for tree in trees:
        recorder.start_at(tree, rng)
        recorder.record()
    return recorder.samples()


class _Recorder:
    """A chain at some power and what it has visited."""

    def __init__(self, X: FloatArray, process: Process, tree: Tree, power: float) -> None:
        self._chain, self._rates, self._power = Chain(X, process, tree, power=power), SiteRates(X, process), power
        self._samples: list[tuple[Any, float, FloatArray]] = []
        self._drawn: list[IntArray] = []  # categories of columns

    def start_at(self, tree: Tree, rng: np.random.Generator) -> None:
        """Continue from another tree."""
        self._rng = rng
        self._chain.start_at(tree, rng)
        self._draw_rates()

    def move(self, count: int) -> None:
        """Make some moves, record the tree, and draw the categories of sites."""
        self._chain.move(count)
        self.record()
        self._draw_rates()

    def _draw_rates(self) -> None:
        if self._rates.varies:
            process, self._drawn = self._rates.draw(self._rates.logs(self._chain.tree()), self._power, self._rng)
            self._chain.continue_with(process)

    def record(self) -> None:
        """Record the current tree."""
        logs = self._rates.logs(self._chain.tree()) if self._rates.varies else []
        others = self._chain.log_likelihood - self._rates.log_likelihood(logs, self._drawn)
        self._samples.append((self._chain.sample(), others, np.hstack([np.zeros((N_CATEGORIES, 0)), *logs])))

    def samples(self) -> Samples:
        """Return what was recorded since the last call."""
        trees, others, logs = zip(*self._samples, strict=True)
        self._samples = []
        return Samples(
            np.array([tree.children for tree in trees]),
            np.array([tree.heights for tree in trees]),
            np.array(others),
            np.array(logs),
            np.tile(self._rates.weights, (len(trees), 1)),
        )


def run_from_trees(
    X: FloatArray, process: Process, power: float, plan: Plan, starts: Samples, seeds: Sequence[list[int]]
) -> list[Samples]:
    """Run a chain at some power from each of several trees; return the samples of each."""
    n = len(X)
    trees = [
        Tree(children, np.append(np.zeros(n), heights))
        for children, heights in zip(starts.children, starts.heights, strict=True)
    ]
    recorder, result = _Recorder(X, process, trees[0], power), []
    for tree, seed in zip(trees, seeds, strict=True):
        recorder.start_at(tree, np.random.default_rng(seed))
        for _ in range(plan.n_samples):
            recorder.move(plan.thin)
        result.append(recorder.samples())
    return result


def choose(samples: Samples, weights: FloatArray, size: int, rng: np.random.Generator) -> Samples:
    """Choose some samples in proportion to their weights, systematically."""
    cumulative = np.cumsum(weights)
    cumulative[-1] = 1.0  # despite rounding, no point may be beyond the end
    chosen = np.searchsorted(cumulative, (np.arange(size) + rng.random()) / size, side="right")
    return _take(samples, chosen)


def _take(samples: Samples, chosen: Any) -> Samples:
    return Samples(*(values[chosen] for values in samples))


def next_power(power: float, samples: Samples) -> float:
    """Return the power up to which samples at some power can be weighted, at most 1: their weights are worth `STEP_ESS`."""
    possible = _take(samples, samples.log_densities(1.0) > -math.inf)

    def is_near(difference: float) -> bool:
        weights, _ = weigh(possible, power, power + difference)
        return 1 / float(np.sum(weights**2)) >= STEP_ESS * len(weights)

    if is_near(1 - power):
        return 1.0
    low, high = math.log(1e-12 * (1 - power)), math.log(1 - power)
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if is_near(math.exp(middle)) else (low, middle)
    return power + math.exp(low)


class Sampler:
    """Runs that climb from the prior to the posterior in step, and where their chains are computed.

    Parameters
    ----------
    X : ndarray of shape (n, D)
    process : Process
        A resolved one.
    plan : Plan
    seeds : list of int
        One for each run.
    executor : ThreadExecutor
    """

    def __init__(self, X: FloatArray, process: Process, plan: Plan, seeds: list[int], executor: ThreadExecutor) -> None:
        self._X, self._process, self._plan = X, process, plan
        self._seeds, self._executor = seeds, executor

    def start(self) -> list[Samples]:
        """Draw the samples of all runs at power 0."""
        size = self._plan.n_chains * self._plan.n_samples
        tasks = [(self._X, self._process, seed, size) for seed in self._seeds]
        return list(self._executor.run(draw_from_prior, tasks))

    def climb(self, step: int, power: float, samples: list[Samples], weights: list[FloatArray]) -> list[Samples]:
        """Draw the samples of all runs at the next power from those of the last one and their weights."""
        tasks, n_chains = [], self._plan.n_chains
        for seed, run_samples, run_weights in zip(self._seeds, samples, weights, strict=True):
            chosen = choose(run_samples, run_weights, n_chains, np.random.default_rng([seed, step, 0]))
            for first in range(0, n_chains, CHAINS_PER_TASK):
                last = min(first + CHAINS_PER_TASK, n_chains)
                starts = _take(chosen, slice(first, last))
                chain_seeds = [[seed, step, 1 + chain] for chain in range(first, last)]
                tasks.append((self._X, self._process, power, self._plan, starts, chain_seeds))
        results = [run_samples for task in self._executor.run(run_from_trees, tasks) for run_samples in task]
        return [
            Samples(*(np.concatenate(parts) for parts in zip(*results[first : first + n_chains], strict=True)))
            for first in range(0, len(results), n_chains)
        ]


def choose_powers(sampler: Sampler, progress: EvidenceProgress | None) -> FloatArray:
    """Climb once with few samples; return the powers at which the weights stay even, from 0 to 1."""
    powers, (samples,) = [0.0], sampler.start()
    while True:
        _check_samples(samples)
        power = next_power(powers[-1], samples)
        if power <= powers[-1] or len(powers) > MAX_POWERS:
            raise InputError(
                "The likelihoods of trees differ so much that no ladder of powers leads from the prior to the posterior; rescale "
                "the columns, or give the process some noise."
            )
        weights, _ = weigh(samples, powers[-1], power)
        powers.append(power)
        if progress:
            progress(PILOT_SHARE * power**0.25, 0, math.nan)
        if power == 1.0:
            return np.array(powers)
        (samples,) = sampler.climb(len(powers) - 1, power, [samples], [weights])


def _check_samples(samples: Samples) -> None:
    log_likelihoods = samples.log_densities(1.0)
    if np.any(np.isnan(log_likelihoods)) or np.any(log_likelihoods == math.inf):
        raise FloatingPointError(
            "A likelihood is not a finite number: the units of the table or the process exceed the range of double precision. "
            "Rescale them, or give Brownian some noise."
        )
    if not np.any(log_likelihoods > -math.inf):
        raise InputError(
            "Under this process the probability of these rows is too small for double precision. Rescale the columns or the "
            "variances."
        )


class EvidenceCheckpoint:
    """A checkpoint of the runs: the powers, what was found on the steps so far, and the last samples.

    Parameters
    ----------
    path : str or Path
    mark : str
        `fingerprint` of table, process and settings.
    seeds : list of int
        Of the runs, for which those of a file that is resumed are substituted.
    """

    def __init__(self, path: str | Path, mark: str, seeds: list[int]) -> None:
        self._file = CheckpointFile(path, mark, "an evidence")
        self._seeds = seeds

    def write(self, powers: FloatArray, done: int, steps: Steps, samples: Sequence[Samples]) -> None:
        """Save the state after some steps, with the samples that were weighted last."""
        last = {f"last_{name}": np.stack([getattr(run, name) for run in samples]) for name in Samples._fields}
        self._file.write({"done": done, "seeds": self._seeds}, {"powers": powers, **steps._asdict(), **last})

    def read(self) -> tuple[FloatArray, int, Steps, list[Samples]] | None:
        """Return what was saved, or None if there is no file."""
        stored = self._file.read()
        if stored is None:
            return None
        facts, arrays = stored
        self._seeds[:] = facts["seeds"]
        steps = Steps(*(arrays[name] for name in Steps._fields))
        last = zip(*(arrays[f"last_{name}"] for name in Samples._fields), strict=True)
        return arrays["powers"], int(facts["done"]), steps, [Samples(*run) for run in last]


def evidence(
    X: ArrayLike,
    process: Process | None = None,
    n_runs: int = 8,
    *,
    n_chains: int = 16,
    n_samples: int = 16,
    thin: int | None = None,
    powers: ArrayLike | None = None,
    n_jobs: int | None = None,
    client: Any = None,
    random_state: RandomState = None,
    checkpoint: str | Path | None = None,
    progress: EvidenceProgress | None = None,
) -> EvidenceResult:
    """Estimate the evidence ``p(x)`` of a process, averaged over all trees, with a standard error.

    The difference of two log evidences of the same table is the log Bayes factor of the processes. The parameters of the
    process stay as they are. `smc` estimates the same number, but needs far too many particles for more than some ten rows
    or for many columns.

    Parameters
    ----------
    X : array-like of shape (n, D)
        Rows are leaves; NaN is a missing cell. Nothing is rescaled. Or a frame of `read_characters`.
        With a full covariance matrix no cell may be missing.
    process : Process, optional
        `Brownian`, `OrnsteinUhlenbeck`, `Multinomial` or `Mixed`. By default, for a frame of characters, the model
        that `CoalescentClustering` has for them, with rates fitted to a greedy tree.
    n_runs : int, default 8
        Independent runs, from which the standard error is estimated.
    n_chains : int, default 16
        Markov chains of each run at each power of the likelihood.
    n_samples : int, default 16
        Samples of each chain. Four times as many halve the standard error.
    thin : int, optional
        Moves between successive samples; by default the number of rows.
    powers : array-like, optional
        Increasing powers of the likelihood from 0 to 1. By default a shorter run at the beginning chooses them.
    n_jobs : int, optional
        Number of threads, as in scikit-learn; choose another joblib backend with ``joblib.parallel_config``. The result does
        not depend on it.
    client : distributed.Client or str, optional
        Distribute the chains over Dask workers: a Dask client, the address of a scheduler such as "tcp://host:8786", or
        "local:2" for two worker processes on this machine. The result does not depend on it.
    random_state : int, Generator, RandomState or None, default None
    checkpoint : str or Path, optional
        A file to which the state is saved after each power. If the file exists, the runs resume from it, with the same result
        as without the interruption.
    progress : callable, optional
        Called after each power with the share of the work done, the number of powers done and the log evidence so far.

    Returns
    -------
    EvidenceResult

    Notes
    -----
    The root of `Brownian` is flat and improper, so its evidence is the density of the contrasts between rows (with missing
    cells, of the observed cells of each column): a column with fewer than two observed cells contributes a factor of 1. It may
    be compared with the evidence of another `Brownian`, but not with that of a process with a proper root.

    Examples
    --------
    >>> import coaltree as ct
    >>> X = [[0.0, 0.0], [0.1, 0.2], [3.0, 2.0]]
    >>> slow, fast = (ct.evidence(X, ct.Brownian(variance), random_state=0) for variance in (1.0, 100.0))
    >>> round(slow.log_evidence - fast.log_evidence)  # the log Bayes factor
    4
    >>> slow.standard_error < 0.1
    True
    """
    if progress is not None and not callable(progress):
        raise InputError(
            f"progress is {quote(progress)}; it must be a function of share, powers done and log evidence, or None."
        )
    n_runs = check_count(n_runs, "n_runs")
    matrix, process, _ = read_arguments(X, process, None, greedy)
    n = len(matrix)
    counts = check_count(n_chains, "n_chains"), check_count(n_samples, "n_samples")
    plan = Plan(*counts, check_count(n if thin is None else thin, "thin"))
    fixed_powers = None if powers is None else _check_powers(powers)
    if n < 2:
        raise InputError("The table has 1 row, so there are no trees to average over; pass at least 2 rows.")
    n_trees = n_runs * plan.n_chains * plan.n_samples
    resolved = process.resolve(matrix)
    resolved.check_ascertainment(matrix)
    n_varying = len(SiteRates(matrix, resolved).weights)
    n_bytes = n_trees * (24.0 * n + 8.0 * (N_CATEGORIES + 1) * n_varying)
    check_memory(n_bytes, f"{n_trees:,} trees of {n:,} rows", "use fewer runs, chains or samples")
    check_chains(1, plan.thin, matrix.shape)
    seeds = as_generator(random_state).integers(2**63, size=n_runs + 1).tolist()
    n_threads = thread_count(n_jobs)
    with open_client(client) as opened, add_resume_hint(checkpoint):
        executor = make_executor(opened, n_threads, any_backend=True)
        file = None
        if checkpoint is not None:
            fixed_seeds = None if random_state is None else seeds
            chosen = None if fixed_powers is None else fixed_powers.tolist()
            mark = fingerprint((matrix, resolved.columns(matrix)), "evidence", n_runs, plan, chosen, fixed_seeds)
            file = EvidenceCheckpoint(checkpoint, mark, seeds)
        if file and (stored := file.read()):
            ladder, done, steps, samples = stored
        else:
            pilot = Sampler(matrix, resolved, _pilot_plan(plan), seeds[n_runs:], executor)
            ladder = choose_powers(pilot, progress) if fixed_powers is None else fixed_powers
            done, steps, samples = 0, Steps.empty(n_runs, len(ladder) - 1), []
        sampler = Sampler(matrix, resolved, plan, seeds[:n_runs], executor)
        for step in range(done, len(ladder) - 1):
            if step == 0:
                samples = sampler.start()
            else:
                weights = [weigh(run_samples, ladder[step - 1], ladder[step])[0] for run_samples in samples]
                samples = sampler.climb(step, float(ladder[step]), samples, weights)
            for run, run_samples in enumerate(samples):
                _check_samples(run_samples)
                steps.add(run, step, run_samples, ladder[step], ladder[step + 1])
            if file:
                file.write(ladder, step + 1, steps, samples)
            if progress:
                so_far = normalize(steps.log_ratios[:, : step + 1].sum(axis=1))[1]
                progress(PILOT_SHARE + (1 - PILOT_SHARE) * (step + 1) / (len(ladder) - 1), step + 1, so_far)
    result = EvidenceResult(ladder, steps.log_ratios, steps.ess, steps.mean_log_likelihoods, resolved)
    if not result.reliable:
        warnings.warn(result.verdict, InputWarning, stacklevel=2)
    return result


def _pilot_plan(plan: Plan) -> Plan:
    """Return the plan of the run that chooses the powers."""
    size = max(MIN_PILOT_SAMPLES, plan.n_chains * plan.n_samples // PILOT_DIVISOR)
    n_chains = min(plan.n_chains, max(1, size // plan.n_samples))
    return plan._replace(n_chains=n_chains, n_samples=-(-size // n_chains))


def _check_powers(powers: ArrayLike) -> FloatArray:
    array = to_floats(powers)
    if (
        array is None
        or array.ndim != 1
        or len(array) < 2
        or (array[0], array[-1]) != (0, 1)
        or not np.all(np.diff(array) > 0)
    ):
        raise InputError(f"powers is {quote(powers)}; it must be increasing numbers, the first 0 and the last 1.")
    return array
