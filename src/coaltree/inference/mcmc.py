"""Markov chain Monte Carlo: chains over trees that move by regrafting.

A chain begins at the greedy tree, thrown into disorder in a way of its own. Its moves leave the posterior as it is, eq. (13.1)
to (13.3), so that in the long run trees are visited in proportion to ``p(tree | x)``; whether the run was long enough, chains
tell that began at different places. The parameters of the process may be drawn in turn with the tree, eq. (13.4) to (13.10).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._random import RandomState, as_generator
from .._validation import check_count
from ..errors import InputError, InputWarning
from ..process.base import ParameterSampler, Process, check_process
from ..process.validation import as_matrix
from ..tree.tree import Tree
from .chain import MOVES, Chain, Sample, without_ties
from .checkpoint import ChainCheckpoint, ChainRecord, add_resume_hint, fingerprint
from .executors import make_executor, open_client
from .greedy import greedy
from .mcmc_result import MCMCResult, effective_samples, r_hat, warm_up
from .thread_executor import ThreadExecutor, thread_count

FloatArray = NDArray[np.float64]
McmcProgress = Callable[
    [float, float, float], None
]  # share of the work done, R-hat and effective samples of the log joint

TUNED = 10  # of so many samples one goes into tuning, at least
N_REPORTS = 40  # at how it goes, in a run
SWAPPED_SHARE = 0.1  # of the leaves change places where a chain begins
HEIGHT_JITTER = 0.5  # standard deviation of the log of what its heights are multiplied by


class Plan(NamedTuple):
    """How long the chains run."""

    n_samples: int
    n_chains: int
    tuned: int  # samples during which moves are tuned
    thin: int  # moves from one sample to the next


def run_chains(
    chains: list[Chain], plan: Plan, recorded: ChainRecord, executor: ThreadExecutor, look: Callable[[], None]
) -> None:
    """Move the chains, and record them, from where they are to the end."""
    bounds = np.linspace(0, plan.n_samples, N_REPORTS + 1).astype(int)
    for first, last in pairwise(np.unique(np.maximum(bounds, recorded.done[0])).tolist()):
        tasks = [(chain, plan, first, last) for chain in chains]
        for number, (chain, samples) in enumerate(executor.run(run_chain, tasks)):
            chains[number] = chain
            for k, sample in enumerate(samples, first):
                recorded.record(number, k, sample)
        recorded.done[0] = last
        look()


def run_chain(chain: Chain, plan: Plan, first: int, last: int) -> tuple[Chain, list[Sample]]:
    """Move a chain from one sample to another; return it, and the samples."""
    samples = []
    for k in range(first, last):
        chain.move(plan.thin)
        if k < plan.tuned:
            chain.tune()
        samples.append(chain.sample())
    return chain, samples


def mcmc(
    X: ArrayLike,
    process: Process,
    n_samples: int = 1000,
    n_chains: int = 4,
    *,
    draw_parameters: bool = False,
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
        Rows are leaves; NaN is a missing cell. Nothing is rescaled. With a full covariance matrix no cell may be missing, unless
        the noise of an `OrnsteinUhlenbeck` is a matrix too and parameters are drawn: then the cells are drawn as well.
    process : Process
        `Brownian`, `OrnsteinUhlenbeck`, `Multinomial` or `Mixed`.
    n_samples : int, default 1000
        Trees that each chain records, those of the warm-up among them.
    n_chains : int, default 4
        Independent chains.
    draw_parameters : bool, default False
        Draw the process's parameters too, in turn with the trees: the sample is from the posterior of both. They begin as the
        process has them, and their priors are the weak ones of `ct.calibrate`. Covariance matrices of the diffusion and of the
        noise, where an `OrnsteinUhlenbeck` has both, are shrunk towards diagonal ones.
    hold_noise : bool, default False
        Leave the noise as it is. Noise of 0 always stays; where a real column has none, that of all real columns stays.
    warmup : int, optional
        Samples at the beginning of each chain that are left out. By default at least a tenth, and as many more as make the rest
        worth most.
    thin : int, optional
        Moves from one sample to the next; by default as many as there are rows.
    leaf_names : sequence of str, optional
        Names of the rows.
    n_jobs : int, optional
        Threads, as in scikit-learn. The result does not depend on it.
    client : distributed.Client or str, optional
        Whose workers move the chains: a Dask client, the address of a scheduler such as "tcp://host:8786", or "local:2" for two
        worker processes on this machine. The result does not depend on it.
    random_state : int, Generator, RandomState or None, default None
    checkpoint : str or Path, optional
        A file that is kept up to date. If it is there already, the chains go on from it, to the very trees that they would
        have found without a break. A run that has ended goes on as well, if more samples are asked for, with its moves as they
        were tuned: other trees than those of one longer run, as good as them.
    progress : callable, optional
        Called now and then with the share of the work done, and R-hat and the effective number of samples of the log joint
        density so far.

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
    check_process(process)
    if progress is not None and not callable(progress):
        raise InputError(
            f"progress is {progress!r}; it must be a function of share, R-hat and effective samples, or None."
        )
    if not isinstance(draw_parameters, bool | np.bool_):
        raise InputError(f"draw_parameters is {draw_parameters!r}; it must be True or False.")
    matrix = as_matrix(X)
    n = len(matrix)
    plan = _checked_plan(n_samples, n_chains, warmup, n if thin is None else thin)
    if n < 2:
        raise InputError("The table has 1 row, and its tree is nothing to sample: pass at least 2 rows.")
    resolved = process.resolve(matrix)
    seeds = as_generator(random_state).integers(2**63, size=plan.n_chains).tolist()
    n_threads = thread_count(n_jobs)
    samplers = [resolved.sampler(matrix, hold_noise) if draw_parameters else None for _ in seeds]
    begun = samplers[0].table if samplers[0] else matrix  # with a value in missing cells that are drawn
    with open_client(client) as opened, add_resume_hint(checkpoint):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InputWarning)  # they follow below
            tree = greedy(begun, resolved, leaf_names=leaf_names, n_jobs=n_jobs).tree
        chains = [_init_chain(begun, resolved, tree, seed, own) for seed, own in zip(seeds, samplers, strict=True)]
        n_missing = len(samplers[0].missing_cells()) if samplers[0] else 0
        recorded = ChainRecord.empty(plan.n_chains, plan.n_samples, n, len(chains[0].parameter_names()), n_missing)
        kept = None
        if checkpoint is not None:
            seeded = None if random_state is None else seeds
            settings = (plan.n_chains, plan.thin, warmup, seeded, bool(draw_parameters), bool(hold_noise))
            mark = fingerprint((matrix, resolved.columns(begun)), *settings)
            kept = ChainCheckpoint(checkpoint, mark, plan.tuned)
            plan = plan._replace(tuned=kept.resume(recorded, chains))

        def look() -> None:
            if kept:
                kept.write(recorded, chains)
            if progress:
                done = int(recorded.done[0])
                so_far = recorded.log_joints[:, done // 2 : done]
                progress(done / plan.n_samples, r_hat(so_far), effective_samples(so_far))

        run_chains(chains, plan, recorded, make_executor(opened, n_threads), look)
    result = _result(recorded, chains, plan, warmup, leaf_names)
    result.remarks.extend(resolved.remarks(tree, begun))
    for remark in result.remarks:
        warnings.warn(remark, InputWarning, stacklevel=2)
    return result


def _init_chain(X: FloatArray, process: Process, tree: Tree, seed: int, sampler: ParameterSampler[Any] | None) -> Chain:
    """Return a chain at a tree in disorder: some leaves have changed places, and heights are stretched."""
    rng = np.random.default_rng(seed)
    n = tree.n_leaves
    swapped = rng.permutation(n)[: max(2, round(SWAPPED_SHARE * n))]
    names = np.arange(2 * n - 1)
    names[swapped] = np.roll(swapped, 1)
    heights = tree.heights * np.exp(HEIGHT_JITTER * rng.standard_normal())
    return Chain(X, process, without_ties(Tree(np.sort(names[tree.children], axis=1), heights), rng), rng, sampler)


def _result(
    recorded: ChainRecord,
    chains: Sequence[Chain],
    plan: Plan,
    warmup: int | None,
    leaf_names: Sequence[str] | None,
) -> MCMCResult:
    n = recorded.children.shape[2] + 1
    if warmup is None:
        first = max(plan.tuned, plan.n_samples // TUNED)  # more than was tuned, if the run was made longer
        warmup = first + warm_up(recorded.log_joints[:, first:])
    live = np.arange(n, 1, -1)
    trees = [
        [
            Tree(children, np.append(np.zeros(n), heights), leaf_names)
            for children, heights in zip(recorded.children[c, warmup:], recorded.heights[c, warmup:], strict=True)
        ]
        for c in range(plan.n_chains)
    ]
    traces = {
        "log_joint": recorded.log_joints,
        "root_height": recorded.heights[:, :, -1].copy(),
        "tree_length": np.diff(recorded.heights, prepend=0.0, axis=2) @ live,
    }
    names = chains[0].parameter_names()
    if names:
        traces["log_parameter_prior"] = recorded.log_parameter_priors
    tried, accepted = (sum(counts) for counts in zip(*((c.tried, c.accepted) for c in chains), strict=True))
    shares = np.where(tried > 0, accepted / np.maximum(tried, 1), np.nan)
    return MCMCResult(
        trees,
        traces,
        recorded.log_ratios[:, warmup:].reshape(-1, n - 1),
        warmup,
        dict(zip(MOVES, shares.tolist(), strict=True)),
        chains[0].process,
        {name: recorded.parameters[:, :, p] for p, name in enumerate(names)},
        np.concatenate(list(recorded.missing_cells[:, warmup:])),
    )


def _checked_plan(n_samples: object, n_chains: object, warmup: object, thin: object) -> Plan:
    samples, chains = check_count(n_samples, "n_samples"), check_count(n_chains, "n_chains")
    tuned = samples // TUNED if warmup is None else check_count(warmup, "warmup", 0)
    if tuned >= samples:
        raise InputError(
            f"warmup is {warmup} of {samples} samples, which leaves none; it must be smaller than n_samples."
        )
    return Plan(samples, chains, tuned, check_count(thin, "thin"))
