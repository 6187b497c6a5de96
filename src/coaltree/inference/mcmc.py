"""Markov chain Monte Carlo over trees, by regrafting subtrees.

Each chain starts at a different perturbation of the greedy tree. Its moves leave the posterior invariant, eq. (13.1) to
(13.3), so in the long run it visits trees in proportion to ``p(tree | x)``. Comparing the chains shows whether the run was long
enough. The parameters of the process can be sampled in turn with the tree, eq. (13.4) to (13.10). Heated chains help where groups
of good trees are far apart, eq. (13.12).
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._parameters import check_parameter, check_time_limit
from .._random import RandomState, as_generator
from .._validation import check_count, check_memory, quote
from ..errors import InputError, InputWarning
from ..process.base import ParameterSampler, Process
from ..tree.tree import Tree
from .chain import MOVES, Chain, Sample, check_chains, without_ties
from .characters import read_arguments
from .checkpoint import ChainCheckpoint, ChainRecord, add_resume_hint, fingerprint
from .executors import ThreadExecutor, make_executor, open_client, thread_count
from .greedy import greedy
from .results import MCMCResult, effective_samples, find_warmup, r_hat
from .tempering import TemperedChain

FloatArray = NDArray[np.float64]
#: Called with the share of the work done, and R-hat and effective samples of the log joint.
McmcProgress = Callable[[float, float, float], None]

TUNING_DIVISOR = 10  # by default moves are tuned during n_samples // TUNING_DIVISOR samples
MOVES_PER_ROW = 2  # between successive samples, by default
N_REPORTS = 40  # per run, of progress and checkpoints
FIRST_CHECK = (
    500  # samples of each chain after which n_samples="auto" asks for the first time whether they have converged
)
CHECK_GROWTH = 1.5  # of the number of samples from one check to the next
MAX_SECONDS = 600.0  # of n_samples="auto", by default
LEAST_AFTER_TUNING = 10  # samples that are drawn whatever the time limit is
SWAPPED_SHARE = 0.1  # of the leaves that are permuted in the starting tree of a chain
HEIGHT_JITTER = 0.5  # standard deviation of the log of the factor by which its heights are scaled


class Plan(NamedTuple):
    """How long the chains run."""

    n_samples: int
    n_chains: int
    n_tuning: int  # samples during which moves are tuned
    thin: int  # moves between successive samples


def run_chains(
    chains: list[Chain],
    plan: Plan,
    record: ChainRecord,
    executor: ThreadExecutor,
    report: Callable[[], None],
    deadline: float = math.inf,
) -> bool:
    """Run the chains from their present states to the end, and record their samples; return whether there was time for it."""
    bounds = np.linspace(0, plan.n_samples, N_REPORTS + 1).astype(int)
    for first, last in pairwise(np.unique(np.maximum(bounds, record.done[0])).tolist()):
        tasks = [(chain, plan, first, last) for chain in chains]
        for number, (chain, samples) in enumerate(executor.run(run_chain, tasks)):
            chains[number] = chain
            for k, sample in enumerate(samples, first):
                record.add(number, k, sample)
        record.done[0] = last
        report()
        if time.monotonic() > deadline and plan.n_tuning + LEAST_AFTER_TUNING <= last < plan.n_samples:
            return False
    return True


def run_chain(chain: Chain, plan: Plan, first: int, last: int) -> tuple[Chain, list[Sample]]:
    """Draw samples first <= k < last from a chain; return the chain and the samples."""
    samples = []
    for k in range(first, last):
        chain.move(plan.thin)
        if k < plan.n_tuning:
            chain.tune()
        samples.append(chain.sample())
    return chain, samples


def mcmc(
    X: ArrayLike,
    process: Process | None = None,
    n_samples: int | Literal["auto"] = 1000,
    n_chains: int = 4,
    *,
    n_heated: int = 0,
    max_seconds: float | None = None,
    draw_parameters: bool | None = None,
    hold_noise: bool = False,
    warmup: int | None = None,
    thin: int | None = None,
    leaf_names: Sequence[str] | None = None,
    n_jobs: int | None = None,
    client: Any = None,
    random_state: RandomState = None,
    checkpoint: str | Path | None = None,
    progress: McmcProgress | None = None,
) -> MCMCResult:
    """Sample trees from the posterior by Markov chains that regraft subtrees.

    Parameters
    ----------
    X : array-like of shape (n, D)
        Rows are leaves; NaN is a missing cell. Nothing is rescaled. Or a frame of `read_characters`.
        With a full covariance matrix no cell may be missing, unless
        the noise of an `OrnsteinUhlenbeck` is a matrix too and parameters are sampled: then missing cells are sampled as well.
    process : Process, optional
        `Brownian`, `OrnsteinUhlenbeck`, `Multinomial` or `Mixed`. By default, for a frame of characters, the model that
        `CoalescentClustering` has for them.
    n_samples : int or "auto", default 1000
        Trees that each chain records, including the warm-up. With "auto" the chains run until they have converged, or until
        the time limit; `verdict` says which. Whether they have is asked after 500 samples and whenever there are half as many
        more, so that the result does not depend on the machine unless the time limit is reached.
    n_chains : int, default 4
        Independent chains.
    n_heated : int, default 0
        Heated chains next to each of them (MC3, parallel tempering). They sample trees at smaller powers of the likelihood, and
        exchange trees with the chain that is recorded. Use one or two if the verdict says that chains differ in their clades
        although they are long: chains then seldom move between groups of good trees. Each heated chain takes as much time as the
        chain itself. If parameters are sampled, they are exchanged together with the trees.
    max_seconds : float, optional
        Time limit of ``n_samples="auto"``, by default 600.
    draw_parameters : bool, optional
        Sample the parameters of the process in turn with the trees, from their joint posterior; by default if no process is
        given. The chains start at the
        values of the process. The priors are the weak priors of `ct.calibrate`. If an `OrnsteinUhlenbeck` has covariance
        matrices of both diffusion and noise, they are shrunk towards diagonal matrices.
    hold_noise : bool, default False
        Keep the noise fixed. Noise of 0 is always fixed; if a real column has none, the noise of all real columns is fixed.
    warmup : int, optional
        Samples at the beginning of each chain that are discarded. By default at least a tenth, and more if that increases the
        effective number of the remaining samples.
    thin : int, optional
        Moves between successive samples; by default twice the number of rows.
    leaf_names : sequence of str, optional
        Names of the rows; by default those of a frame of characters.
    n_jobs : int, optional
        Number of threads, as in scikit-learn. The result does not depend on it.
    client : distributed.Client or str, optional
        Distribute the chains over Dask workers: a Dask client, the address of a scheduler such as "tcp://host:8786", or
        "local:2" for two worker processes on this machine. The result does not depend on it.
    random_state : int, Generator, RandomState or None, default None
    checkpoint : str or Path, optional
        A file to which the state of the chains is saved regularly. If the file exists, the chains resume from it and sample
        the same trees as without the interruption. A completed run can be extended with a larger `n_samples`. Its moves stay
        as they were tuned, so the new trees differ from those of one longer run, but are equally valid.
    progress : callable, optional
        Called regularly with the share of the work done, and R-hat and effective samples of the log joint so far.

    Returns
    -------
    MCMCResult

    Examples
    --------
    >>> import coaltree as ct
    >>> sample = ct.mcmc([[0.0, 0.0], [0.1, 0.2], [3.0, 2.0]], ct.Brownian(), n_samples=500, random_state=0)
    >>> sample.converged
    True
    >>> 0.6 < sample.clade_probabilities()[frozenset({"0", "1"})] < 1
    True
    """
    if progress is not None and not callable(progress):
        raise InputError(
            f"progress is {quote(progress)}; it must be a function of share, R-hat and effective samples, or None."
        )
    check_parameter("draw_parameters", draw_parameters)
    if draw_parameters is None:
        draw_parameters = process is None
    matrix, process, leaf_names = read_arguments(X, process, leaf_names, greedy)
    n = len(matrix)
    automatic = isinstance(n_samples, str)
    check_parameter("n_samples", n_samples)
    check_parameter("max_seconds", max_seconds)
    check_parameter("n_heated", n_heated)
    check_time_limit(n_samples, max_seconds)
    limit = MAX_SECONDS if max_seconds is None else float(max_seconds)
    start = time.monotonic()
    first_check = next_check(warmup) if automatic else n_samples
    plan = _make_plan(first_check, n_chains, warmup, MOVES_PER_ROW * n if thin is None else thin)
    if n < 2:
        raise InputError("The table has 1 row, so there are no trees to sample; pass at least 2 rows.")
    n_trees = plan.n_chains * plan.n_samples
    check_memory(n_trees * sample_bytes(n), f"{n_trees:,} trees of {n:,} rows", "use fewer samples or chains")
    check_chains(plan.n_chains * (int(n_heated) + 1), plan.thin, matrix.shape)
    resolved = process.resolve(matrix)
    resolved.check_ascertainment(matrix)
    seeds = as_generator(random_state).integers(2**63, size=plan.n_chains).tolist()
    n_threads = thread_count(n_jobs)
    samplers = [
        [resolved.sampler(matrix, hold_noise) if draw_parameters else None for _ in range(n_heated + 1)] for _ in seeds
    ]
    sampler = samplers[0][0]
    initial = sampler.table if sampler else matrix  # missing cells that are sampled have initial values
    with open_client(client) as opened, add_resume_hint(checkpoint):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InputWarning)  # issued below
            tree = greedy(initial, resolved, leaf_names=leaf_names, n_jobs=n_jobs).tree
        chains = [_init_chain(initial, resolved, tree, seed, own) for seed, own in zip(seeds, samplers, strict=True)]
        n_missing = len(sampler.missing_cells()) if sampler else 0
        record = ChainRecord.empty(plan.n_chains, plan.n_samples, n, len(chains[0].parameter_names()), n_missing)
        file = None
        if checkpoint is not None:
            fixed_seeds = None if random_state is None else seeds
            settings = (
                plan.n_chains,
                n_heated,
                plan.thin,
                warmup,
                fixed_seeds,
                bool(draw_parameters),
                bool(hold_noise),
            )
            mark = fingerprint((matrix, resolved.columns(initial)), *settings)
            file = ChainCheckpoint(checkpoint, mark, plan.n_tuning)
            if automatic:
                plan = plan._replace(n_samples=check_at(plan.n_samples, file.n_stored()))
                record = record.with_room(plan.n_samples)
            plan = plan._replace(n_tuning=file.resume(record, chains))

        def report() -> None:
            if file:
                file.write(record, chains)
            if progress:
                done = int(record.done[0])
                second_half = record.log_joints[:, done // 2 : done]
                share = min((time.monotonic() - start) / limit, 0.99) if automatic else done / plan.n_samples
                progress(share, r_hat(second_half), effective_samples(second_half))

        executor = make_executor(opened, n_threads)
        if not automatic:
            run_chains(chains, plan, record, executor, report)
            result = _make_result(record, chains, plan, warmup, leaf_names)
        while automatic:
            in_time = run_chains(chains, plan, record, executor, report, start + limit)
            plan = plan._replace(n_samples=int(record.done[0]))
            result = _make_result(record.until(plan.n_samples), chains, plan, warmup, leaf_names)
            if result.converged or not in_time or time.monotonic() > start + limit:
                result.add_stop_reason(plan.n_samples, None if result.converged and in_time else limit)
                break
            plan = plan._replace(n_samples=check_at(plan.n_samples, plan.n_samples + 1))
            record = record.with_room(plan.n_samples)
        if automatic and progress:
            done = plan.n_samples // 2
            progress(1.0, r_hat(record.log_joints[:, done : 2 * done]), result.effective_samples["log_joint"])
    result.remarks.extend(resolved.remarks(tree, initial))
    for remark in result.remarks:
        warnings.warn(remark, InputWarning, stacklevel=2)
    return result


def _init_chain(
    X: FloatArray, process: Process, tree: Tree, seed: int, samplers: Sequence[ParameterSampler[Any] | None]
) -> Chain:
    """Return a chain at a perturbed tree: some leaves are permuted, and all heights are scaled.

    There is a sampler, or None, for the chain and for each heated companion.
    """
    rng = np.random.default_rng(seed)
    n = tree.n_leaves
    swapped = rng.permutation(n)[: max(2, round(SWAPPED_SHARE * n))]
    names = np.arange(2 * n - 1)
    names[swapped] = np.roll(swapped, 1)
    heights = tree.heights * np.exp(HEIGHT_JITTER * rng.standard_normal())
    start = without_ties(Tree(np.sort(names[tree.children], axis=1), heights), rng)
    if len(samplers) > 1:
        heated = [np.random.default_rng([seed, k]) for k in range(1, len(samplers))]
        return TemperedChain(X, process, start, [rng, *heated], samplers)
    return Chain(X, process, start, rng, samplers[0])


def _make_result(
    record: ChainRecord,
    chains: Sequence[Chain],
    plan: Plan,
    warmup: int | None,
    leaf_names: Sequence[str] | None,
) -> MCMCResult:
    n = record.children.shape[2] + 1
    if warmup is None:
        first = max(plan.n_tuning, plan.n_samples // TUNING_DIVISOR)  # a run that was extended has tuned for less
        warmup = first + find_warmup(record.log_joints[:, first:])
    live = np.arange(n, 1, -1)
    trees = [
        [
            Tree(children, np.append(np.zeros(n), heights), leaf_names)
            for children, heights in zip(record.children[c, warmup:], record.heights[c, warmup:], strict=True)
        ]
        for c in range(plan.n_chains)
    ]
    traces = {
        "log_joint": record.log_joints,
        "root_height": record.heights[:, :, -1].copy(),
        "tree_length": np.diff(record.heights, prepend=0.0, axis=2) @ live,
    }
    names = chains[0].parameter_names()
    if names:
        traces["log_parameter_prior"] = record.log_parameter_priors
    tried, accepted = (sum(counts) for counts in zip(*((c.tried, c.accepted) for c in chains), strict=True))
    shares = np.where(tried > 0, accepted / np.maximum(tried, 1), np.nan)
    moves = [*MOVES, "exchange"] if len(chains[0].members()) > 1 else MOVES
    return MCMCResult(
        trees,
        traces,
        record.log_ratios[:, warmup:].reshape(-1, n - 1),
        warmup,
        dict(zip(moves, shares.tolist(), strict=False)),
        chains[0].process,
        {name: record.parameters[:, :, p] for p, name in enumerate(names)},
        np.concatenate(list(record.missing_cells[:, warmup:])),
    )


def next_check(warmup: object) -> int:
    """Return the number of samples at the first check of n_samples="auto"."""
    return FIRST_CHECK if warmup is None else 2 * check_count(warmup, "warmup", 0) + FIRST_CHECK


def check_at(first: int, least: int) -> int:
    """Return the number of samples at the first check that has at least some number of them."""
    count = first
    while count < least:
        count = math.ceil(CHECK_GROWTH * count)
    return count


def sample_bytes(n_rows: int) -> float:
    """Return the memory of a sampled tree: as it is recorded and as an object."""
    return 56.0 * n_rows + 1000.0


def _make_plan(n_samples: object, n_chains: object, warmup: object, thin: object) -> Plan:
    samples, chains = check_count(n_samples, "n_samples"), check_count(n_chains, "n_chains")
    n_tuning = samples // TUNING_DIVISOR if warmup is None else check_count(warmup, "warmup", 0)
    if n_tuning >= samples:
        raise InputError(
            f"warmup is {warmup} of {samples} samples, which leaves none; it must be smaller than n_samples."
        )
    return Plan(samples, chains, n_tuning, check_count(thin, "thin"))
