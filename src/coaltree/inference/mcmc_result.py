"""Results of Markov chain Monte Carlo: a sample of trees, traces of the chains, and convergence diagnostics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..process.base import Process
from ..tree.clades import number_clades
from ..tree.sample import TreeSample
from ..tree.tree import Tree

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

MIN_CLADE_FREQUENCY = 0.1  # in at least one chain, for clades whose frequencies are compared, as is usual
N_REFERENCE_TREES = 20  # the effective number of topologies is computed from distances to these trees
MIN_SAMPLES = 4  # per chain, for any diagnostic
MAX_WARMUP_SHARE = 0.5  # of the samples
N_WARMUPS = 11  # candidates for the length of the warm-up
MAX_SPLIT_DEVIATION = 0.05  # mean standard deviation of clade frequencies between chains, for convergence
MAX_R_HAT = 1.05
MIN_EFFECTIVE_SAMPLES = 100.0


def r_hat(trace: FloatArray) -> float:
    """Return the rank-normalized R-hat of a trace of shape (chains, samples): 1 if the chains cannot be told apart.

    A single chain is split into halves.
    """
    from arviz_stats.base import array_stats  # type: ignore[attr-defined, unused-ignore]

    if np.all(trace == trace.flat[0]):
        return 1.0
    if len(trace) == 1:
        half = trace.shape[1] // 2
        trace = trace[:, -2 * half :].reshape(2, half)
    return _diagnose(array_stats.rhat, trace, "rank")


def effective_samples(trace: FloatArray) -> float:
    """Return the bulk effective sample size of a trace of shape (chains, samples)."""
    from arviz_stats.base import array_stats  # type: ignore[attr-defined, unused-ignore]

    if np.all(trace == trace.flat[0]):
        return float(trace.size)
    return _diagnose(array_stats.ess, trace, "bulk")


def _diagnose(diagnostic: Any, trace: FloatArray, method: str) -> float:
    if trace.shape[1] < MIN_SAMPLES:
        return np.nan
    with np.errstate(divide="ignore", invalid="ignore"):  # constant but different chains have an infinite R-hat
        return float(diagnostic(trace, chain_axis=0, draw_axis=1, method=method))


def find_warmup(log_joints: FloatArray) -> int:
    """Return the length of the warm-up that leaves the most effective samples.

    Parameters
    ----------
    log_joints : ndarray of shape (n_chains, n_samples)
    """
    n = log_joints.shape[1]
    starts = np.unique(np.linspace(0, MAX_WARMUP_SHARE * n, N_WARMUPS).astype(int))
    return int(max(starts, key=lambda start: np.nan_to_num(effective_samples(log_joints[:, start:]))))


class Topologies:
    """The clades of trees from several chains.

    Parameters
    ----------
    trees : sequence of Tree
        Chain after chain.
    n_chains : int
    """

    def __init__(self, trees: Sequence[Tree], n_chains: int) -> None:
        self._numbers = number_clades(trees)
        self._n_chains = n_chains

    def split_deviation(self) -> float:
        """Return the standard deviation of clade frequencies between chains, averaged over clades; NaN for one chain."""
        chains = self._numbers.reshape(self._n_chains, -1)
        samples = len(self._numbers) / self._n_chains
        shares = np.array([np.bincount(chain, minlength=self._numbers.max() + 1) / samples for chain in chains])
        common = shares.max(axis=0) >= MIN_CLADE_FREQUENCY
        return float(np.mean(np.std(shares[:, common], axis=0, ddof=1))) if self._n_chains > 1 else np.nan

    def effective_topologies(self) -> float:
        """Return the effective sample size of the distances to a reference tree; the median over reference trees.

        The distance is the number of clades that only one of two trees has.
        """
        references = np.linspace(0, len(self._numbers) - 1, N_REFERENCE_TREES).astype(int)
        return float(np.median([effective_samples(self._distances(k)) for k in np.unique(references)]))

    def _distances(self, reference: int) -> FloatArray:
        in_reference = np.zeros(self._numbers.max() + 1, dtype=bool)
        in_reference[self._numbers[reference]] = True
        distances: FloatArray = 2.0 * np.sum(~in_reference[self._numbers], axis=1)
        return distances.reshape(self._n_chains, -1)


class MCMCResult(TreeSample):
    """A sample from the posterior over trees by Markov chains; see also `TreeSample`.

    Attributes
    ----------
    chains : ndarray of int, shape (n_trees,)
        The chain that each tree comes from.
    traces : dict of str to ndarray of shape (n_chains, warmup + n_samples)
        ``log_joint``, ``root_height`` and ``tree_length`` of all samples, including the warm-up. If parameters were sampled,
        also ``log_parameter_prior``, the log density of their prior up to a constant.
    warmup : int
        Samples at the beginning of each chain that are discarded.
    acceptance : dict of str to float
        Acceptance rate of each kind of move; NaN if none was tried.
    r_hat, effective_samples : dict of str to float
        Rank-normalized R-hat and effective sample size of each trace, without the warm-up.
    effective_topologies : float
        Effective number of topologies: the median, over reference trees, of the effective sample size of the distances to them.
    split_deviation : float
        Standard deviation of clade frequencies between chains, averaged over clades; NaN for one chain.
    verdict : str
        Whether the chains have converged, and what to do if not.
    converged : bool
    process : Process
        The process, with all parameters resolved. Parameters that were sampled have their posterior means.
    parameters : dict of str to ndarray of shape (n_chains, warmup + n_samples)
        Traces of sampled parameters by name, including the warm-up, for example ``rate[3]`` of column 3.
    missing_cells : ndarray of shape (n_trees, n_cells)
        Samples of the missing cells in columns with a noise covariance matrix, row by row, for each tree.
    remarks : list of str
        Problems of the sample and how to fix them; also issued as warnings.
    """

    chains: IntArray
    traces: dict[str, FloatArray]
    warmup: int
    acceptance: dict[str, float]
    r_hat: dict[str, float]
    effective_samples: dict[str, float]
    effective_topologies: float
    split_deviation: float
    verdict: str
    converged: bool
    process: Process
    parameters: dict[str, FloatArray]
    missing_cells: FloatArray
    remarks: list[str]

    def __init__(
        self,
        trees: Sequence[Sequence[Tree]],
        traces: Mapping[str, FloatArray],
        log_ratios: FloatArray,
        warmup: int,
        acceptance: Mapping[str, float],
        process: Process,
        parameters: Mapping[str, FloatArray] | None = None,
        missing_cells: FloatArray | None = None,
    ) -> None:
        n_chains, n_samples = len(trees), len(trees[0])
        all_trees = [tree for chain in trees for tree in chain]
        after_warmup = {name: trace[:, warmup:] for name, trace in traces.items()}
        super().__init__(all_trees, log_joints=after_warmup["log_joint"].ravel(), log_ratios=log_ratios)
        topologies = Topologies(all_trees, n_chains)
        self.__dict__.update(
            chains=np.repeat(np.arange(n_chains), n_samples),
            traces=dict(traces),
            warmup=warmup,
            acceptance=dict(acceptance),
            r_hat={name: r_hat(trace) for name, trace in after_warmup.items()},
            effective_samples={name: effective_samples(trace) for name, trace in after_warmup.items()},
            effective_topologies=topologies.effective_topologies(),
            split_deviation=topologies.split_deviation(),
            process=process,
            parameters=dict(parameters or {}),
            missing_cells=np.zeros((len(all_trees), 0)) if missing_cells is None else missing_cells,
        )
        if self.parameters:
            means = np.array([trace[:, warmup:].mean() for trace in self.parameters.values()])
            self.__dict__["process"] = process.with_parameter_values(means)
        problems = self._find_problems()
        self.__dict__.update(converged=not problems, verdict=self._verdict(problems))
        self.__dict__["remarks"] = [self.verdict] if problems else []

    @property
    def n_chains(self) -> int:
        """The number of chains."""
        return len(self.traces["log_joint"])

    def processes(self) -> list[Process]:
        """Return the process of each tree, with the parameters sampled with it."""
        if not self.parameters:
            return [self.process] * len(self)
        values = np.stack([trace[:, self.warmup :] for trace in self.parameters.values()], axis=2)
        return [self.process.with_parameter_values(row) for row in values.reshape(len(self), -1)]

    def parameter_diagnostics(self) -> dict[str, tuple[float, float]]:
        """Return R-hat and effective sample size of each sampled parameter, by name."""
        after_warmup = {name: trace[:, self.warmup :] for name, trace in self.parameters.items()}
        return {name: (r_hat(trace), effective_samples(trace)) for name, trace in after_warmup.items()}

    @property
    def min_effective_samples(self) -> float:
        """The smallest effective sample size over all traces and the topologies."""
        return min(*self.effective_samples.values(), self.effective_topologies)

    def _find_problems(self) -> list[str]:
        if (n_trees := len(self) // self.n_chains) < MIN_SAMPLES:
            return [f"{n_trees} tree(s) per chain are too few for a diagnosis"]
        problems = []
        smallest = self.min_effective_samples
        if not smallest >= MIN_EFFECTIVE_SAMPLES:
            problems.append(
                f"the trees are worth only {smallest:.0f} independent ones, fewer than {MIN_EFFECTIVE_SAMPLES:.0f}"
            )
        if not (largest := max(self.r_hat.values())) <= MAX_R_HAT:
            problems.append(f"R-hat is {largest:.4f}, above {MAX_R_HAT}")
        if self.split_deviation > MAX_SPLIT_DEVIATION:
            problems.append(
                f"clade frequencies of the chains differ by {self.split_deviation:.4f}, above {MAX_SPLIT_DEVIATION}"
            )
        return problems

    def _verdict(self, problems: Sequence[str]) -> str:
        if problems:
            return f"The chains have not converged: {'; '.join(problems)}. Take more samples."
        if self.n_chains == 1:
            return "The chain shows no problem, but only several chains can show convergence."
        return (
            f"The {self.n_chains} chains agree: R-hat is at most {max(self.r_hat.values()):.3f}, clade frequencies differ by "
            f"{self.split_deviation:.3f} on average, and the trees are worth {self.effective_topologies:.0f} independent ones."
        )

    def say_why_stopped(self, n_samples: int, limit: float | None) -> None:
        """Add to the verdict of a run of n_samples="auto" whether it stopped at convergence or at a time limit."""
        if limit is None:
            why = f"They stopped when they had converged, after {n_samples:,} samples each."
        else:
            why = f"They stopped at the time limit of {limit:g} seconds, after {n_samples:,} samples each"
            why += "." if self.converged else "; a larger max_seconds gives them more."
        verdict = f"{self.verdict.removesuffix(' Take more samples.')} {why}"
        self.__dict__.update(verdict=verdict, remarks=[] if self.converged else [verdict])

    def to_xarray(self) -> Any:
        """Return scalar summaries of the trees, with the chain and parameters of each tree; see `TreeSample.to_xarray`."""
        parameters = {name: ("tree", trace[:, self.warmup :].ravel()) for name, trace in self.parameters.items()}
        return super().to_xarray().assign(chain=("tree", self.chains), **parameters)

    def _facts(self) -> dict[str, object]:
        facts = super()._facts() | {"chains": self.n_chains, "warm-up": self.warmup}
        return facts | {"process": self.process, "verdict": self.verdict}

    def __repr__(self) -> str:
        return (
            f"<MCMCResult: {len(self)} trees of {self.n_leaves} leaves from {self.n_chains} chains, "
            f"{'' if self.converged else 'not '}converged>"
        )
