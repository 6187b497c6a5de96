"""What Markov chain Monte Carlo returns: a sample of trees, traces of its chains, and whether they have converged."""

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

MIN_CLADE_FREQUENCY = 0.1  # clades that no chain has more often are left out of the comparison of chains, as is usual
N_REFERENCE_TREES = 20  # trees, distances to which are looked at for the effective number of topologies
MIN_SAMPLES = 4  # samples of a chain, below which nothing can be said
MAX_WARMUP_SHARE = 0.5  # of the samples
N_WARMUPS = 11  # that are tried


def r_hat(trace: FloatArray) -> float:
    """Return the rank-normalised R-hat of a trace of shape (chains, samples): 1 where all chains are alike.

    The halves of a single chain stand for two.
    """
    from arviz_stats.base import array_stats  # type: ignore[attr-defined, unused-ignore]

    if np.all(trace == trace.flat[0]):
        return 1.0
    if len(trace) == 1:
        half = trace.shape[1] // 2
        trace = trace[:, -2 * half :].reshape(2, half)
    return _number(array_stats.rhat, trace, "rank")


def effective_samples(trace: FloatArray) -> float:
    """Return how many independent samples a trace of shape (chains, samples) is worth, in its bulk."""
    from arviz_stats.base import array_stats  # type: ignore[attr-defined, unused-ignore]

    if np.all(trace == trace.flat[0]):
        return float(trace.size)
    return _number(array_stats.ess, trace, "bulk")


def _number(diagnostic: Any, trace: FloatArray, method: str) -> float:
    return (
        float(diagnostic(trace, chain_axis=0, draw_axis=1, method=method)) if trace.shape[1] >= MIN_SAMPLES else np.nan
    )


def warm_up(log_joints: FloatArray) -> int:
    """Return how many samples at the beginning are best left out: such that what is left is worth most.

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
        """Return the mean over clades of the standard deviation of their frequencies between chains; NaN for one chain."""
        chains = self._numbers.reshape(self._n_chains, -1)
        samples = len(self._numbers) / self._n_chains
        shares = np.array([np.bincount(chain, minlength=self._numbers.max() + 1) / samples for chain in chains])
        common = shares.max(axis=0) >= MIN_CLADE_FREQUENCY
        return float(np.mean(np.std(shares[:, common], axis=0, ddof=1))) if self._n_chains > 1 else np.nan

    def effective_topologies(self) -> float:
        """Return the median, over reference trees, of what the distances to them are worth.

        The distance is the number of clades that only one of two trees has.
        """
        references = np.linspace(0, len(self._numbers) - 1, N_REFERENCE_TREES).astype(int)
        return float(np.median([effective_samples(self._distances(k)) for k in np.unique(references)]))

    def _distances(self, reference: int) -> FloatArray:
        there = np.zeros(self._numbers.max() + 1, dtype=bool)
        there[self._numbers[reference]] = True
        missing: FloatArray = 2.0 * np.sum(~there[self._numbers], axis=1)
        return missing.reshape(self._n_chains, -1)


MAX_SPLIT_DEVIATION = 0.05  # mean standard deviation of clade frequencies between chains, below which they agree
MAX_R_HAT = 1.05  # R-hat
MIN_EFFECTIVE_SAMPLES = 100.0  # effective samples


class MCMCResult(TreeSample):
    """A sample from the posterior over trees by Markov chains; see also `TreeSample`.

    Attributes
    ----------
    chains : ndarray of int, shape (n_trees,)
        Which chain each tree is from.
    traces : dict of str to ndarray of shape (n_chains, warmup + n_samples)
        ``log_joint``, ``root_height`` and ``tree_length`` of all samples, those of the warm-up too; where parameters were drawn,
        also ``log_parameter_prior``, the log density of their prior up to a constant.
    warmup : int
        Samples at the beginning of each chain that are left out.
    acceptance : dict of str to float
        Share of each kind of move that was accepted; NaN if none was tried.
    r_hat, effective_samples : dict of str to float
        Rank-normalised R-hat, and what the samples are worth, for each trace without the warm-up.
    effective_topologies : float
        What the topologies are worth: the median, over some reference trees, for the distances to them.
    split_deviation : float
        Mean over clades of the standard deviation of their frequencies between chains; NaN for one chain.
    verdict : str
        In words: converged or not, and what to do.
    converged : bool
    process : Process
        The process used, everything that it left open settled; where parameters were drawn, with their means over the trees.
    parameters : dict of str to ndarray of shape (n_chains, warmup + n_samples)
        Where parameters were drawn, each of them by name, for example ``rate[3]`` of column 3, those of the warm-up too.
    missing_cells : ndarray of shape (n_trees, n_cells)
        Where cells were missing from columns with a covariance of their noise: those cells, row by row, as drawn with each tree.
    remarks : list of str
        What to know about the sample; also given as warnings.
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
        every = [tree for chain in trees for tree in chain]
        kept = {name: trace[:, warmup:] for name, trace in traces.items()}
        super().__init__(every, log_joints=kept["log_joint"].ravel(), log_ratios=log_ratios)
        topologies = Topologies(every, n_chains)
        self.__dict__.update(
            chains=np.repeat(np.arange(n_chains), n_samples),
            traces=dict(traces),
            warmup=warmup,
            acceptance=dict(acceptance),
            r_hat={name: r_hat(trace) for name, trace in kept.items()},
            effective_samples={name: effective_samples(trace) for name, trace in kept.items()},
            effective_topologies=topologies.effective_topologies(),
            split_deviation=topologies.split_deviation(),
            process=process,
            parameters=dict(parameters or {}),
            missing_cells=np.zeros((len(every), 0)) if missing_cells is None else missing_cells,
        )
        if self.parameters:
            means = np.array([trace[:, warmup:].mean() for trace in self.parameters.values()])
            self.__dict__["process"] = process.with_parameter_values(means)
        doubts = self._doubts()
        self.__dict__.update(converged=not doubts, verdict=self._verdict(doubts))
        self.__dict__["remarks"] = [self.verdict] if doubts else []

    @property
    def n_chains(self) -> int:
        """How many chains there are."""
        return len(self.traces["log_joint"])

    def processes(self) -> list[Process]:
        """Return the process with which each tree was drawn."""
        if not self.parameters:
            return [self.process] * len(self)
        values = np.stack([trace[:, self.warmup :] for trace in self.parameters.values()], axis=2)
        return [self.process.with_parameter_values(row) for row in values.reshape(len(self), -1)]

    def parameter_diagnostics(self) -> dict[str, tuple[float, float]]:
        """Return R-hat and what the samples are worth, for each parameter that was drawn, by name."""
        kept = {name: trace[:, self.warmup :] for name, trace in self.parameters.items()}
        return {name: (r_hat(trace), effective_samples(trace)) for name, trace in kept.items()}

    @property
    def least_effective(self) -> float:
        """What the sample is worth by the trace, or the topologies, that it is worth least by."""
        return min(*self.effective_samples.values(), self.effective_topologies)

    def _doubts(self) -> list[str]:
        if (kept := len(self) // self.n_chains) < MIN_SAMPLES:
            return [f"{kept} tree(s) of each chain are too few to say anything"]
        doubts = []
        least = self.least_effective
        if not least >= MIN_EFFECTIVE_SAMPLES:
            doubts.append(
                f"the trees are worth only {least:.0f} independent ones, and {MIN_EFFECTIVE_SAMPLES:.0f} is the least to go by"
            )
        if not (most := max(self.r_hat.values())) <= MAX_R_HAT:
            doubts.append(f"R-hat is {most:.4f}, above {MAX_R_HAT}")
        if self.split_deviation > MAX_SPLIT_DEVIATION:
            doubts.append(
                f"clade frequencies of the chains differ by {self.split_deviation:.4f}, above {MAX_SPLIT_DEVIATION}"
            )
        return doubts

    def _verdict(self, doubts: Sequence[str]) -> str:
        if doubts:
            return f"The chains have not converged: {'; '.join(doubts)}. Take more samples."
        if self.n_chains == 1:
            return "Nothing speaks against the chain, but only several chains can show that they agree."
        return (
            f"The {self.n_chains} chains agree: R-hat is at most {max(self.r_hat.values()):.3f}, clade frequencies differ by "
            f"{self.split_deviation:.3f} on average, and the trees are worth {self.effective_topologies:.0f} independent ones."
        )

    def to_xarray(self) -> Any:
        """Return the scalars of the trees, with the chain that each is from and its parameters; see `TreeSample.to_xarray`."""
        drawn = {name: ("tree", trace[:, self.warmup :].ravel()) for name, trace in self.parameters.items()}
        return super().to_xarray().assign(chain=("tree", self.chains), **drawn)

    def _facts(self) -> dict[str, object]:
        facts = super()._facts() | {"chains": self.n_chains, "warm-up": self.warmup}
        return facts | {"process": self.process, "verdict": self.verdict}

    def __repr__(self) -> str:
        return (
            f"<MCMCResult: {len(self)} trees of {self.n_leaves} leaves from {self.n_chains} chains, "
            f"{'' if self.converged else 'not '}converged>"
        )
