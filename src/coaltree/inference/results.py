"""Results of sampling: `SMCResult`, `MCMCResult` with convergence diagnostics, and `EvidenceResult`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._html import facts_html
from ..errors import MissingDependencyError
from ..process.base import Process
from ..table.labels import count
from ..tree.clades import number_clades
from ..tree.coalescent import log_prior
from ..tree.sample import TreeSample
from ..tree.tree import Tree
from .kernels.particles import Particles

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

SITE_RATE = "site_rate["  # how the names of the rates of single sites begin
MIN_CLADE_FREQUENCY = 0.1  # in at least one chain, for clades whose frequencies are compared, as is usual
N_REFERENCE_TREES = 20  # the effective number of topologies is computed from distances to these trees
MIN_SAMPLES = 4  # per chain, for any diagnostic
MAX_WARMUP_SHARE = 0.5  # of the samples
N_WARMUPS = 11  # candidates for the length of the warm-up
MAX_SPLIT_DEVIATION = 0.05  # mean standard deviation of clade frequencies between chains, for convergence
MAX_R_HAT = 1.05
MIN_EFFECTIVE_SAMPLES = 100.0

MAX_STANDARD_ERROR = 0.5  # of a log evidence that is good enough to compare models
MIN_ESS = 0.2  # share of the samples that the weights of a step are worth, on average over the runs


class FinishedParticles(NamedTuple):
    """The particles at the end of a run, as plain arrays, which can be sent between processes."""

    children: NDArray[np.intp]  # (particles, merges, 2)
    heights: FloatArray  # (particles, merges)
    log_z: FloatArray  # (particles, merges), local likelihoods
    log_ratios: FloatArray  # (particles, merges), one tree below the merge versus two independent trees
    log_weights: FloatArray  # (particles,)
    ancestor: NDArray[np.intp]  # (particles,), index of the initial particle that this one descends from

    @classmethod
    def from_particles(cls, particles: Particles) -> FinishedParticles:
        """Copy the results out of particles."""
        return cls(*(np.asarray(getattr(particles, name)) for name in cls._fields))


class Run(NamedTuple):
    """One run of the sampler."""

    particles: FinishedParticles  # with their weights since the last resampling
    log_evidence: float
    log_evidences: FloatArray  # (merges,), estimates after each merge
    ess: FloatArray  # (merges,)
    resampled: NDArray[np.bool_]  # (merges,)


def normalize(log_weights: FloatArray) -> tuple[FloatArray, float]:
    """Return the weights normalized to sum 1, and the log of their mean."""
    largest = float(log_weights.max())
    weights = np.exp(log_weights - largest)
    total = float(weights.sum())
    return weights / total, largest + math.log(total / len(weights))


class SMCResult(TreeSample):
    """A weighted sample from the posterior over trees, with the evidence; see also `TreeSample`.

    Attributes
    ----------
    log_evidence : float
        Log of an unbiased estimate of ``p(x)``, the mean over all runs.
    log_evidence_se : float
        Its standard error: the standard deviation of the runs' log evidences over the square root of their number; NaN for
        a single run. Above 1, a few runs dominate the mean.
    run_log_evidences : ndarray of shape (n_runs,)
    log_evidence_traces : ndarray of shape (n_runs, n - 1)
        Estimate of the log evidence in each run after each merge.
    ess : ndarray of shape (n - 1,)
        Effective sample size, eq. (8.7), after each merge and before resampling, summed over the runs.
    run_ess : ndarray of shape (n_runs, n - 1)
    resampled : ndarray of bool, shape (n_runs, n - 1)
        After which merges the particles were resampled.
    n_ancestors : ndarray of int, shape (n_runs,)
        How many of the initial particles have descendants at the end.
    runs : ndarray of int, shape (n_trees,)
        The run that each tree comes from.
    process : Process
        The process, with all parameters resolved.
    remarks : list of str
        Problems of the sample and how to fix them; also issued as warnings.
    """

    log_evidence: float
    log_evidence_se: float
    run_log_evidences: FloatArray
    log_evidence_traces: FloatArray
    ess: FloatArray
    run_ess: FloatArray
    resampled: NDArray[np.bool_]
    n_ancestors: NDArray[np.intp]
    runs: NDArray[np.intp]
    process: Process
    remarks: list[str]

    def __init__(self, trees: Sequence[Tree], runs: Sequence[Run], X: FloatArray, process: Process) -> None:
        # A run is weighted by its evidence, a particle by its weight within the run.
        shares, log_evidence = normalize(np.array([run.log_evidence for run in runs]))
        weights = [share * normalize(run.particles.log_weights)[0] for share, run in zip(shares, runs, strict=True)]
        leaves = math.fsum(process.leaf_log_likelihoods(X))
        log_z = np.concatenate([run.particles.log_z for run in runs])
        unseen = process.unseen_columns(X)
        log_recorded = np.array([0.0 if unseen is None else unseen.log_recorded(tree) for tree in trees])
        super().__init__(
            trees,
            np.concatenate(weights),
            log_joints=leaves + log_z.sum(axis=1) - log_recorded + [log_prior(tree) for tree in trees],
            log_ratios=np.concatenate([run.particles.log_ratios for run in runs]),
        )
        evidences = np.array([run.log_evidence for run in runs])
        n_runs = len(runs)
        se = float(np.std(evidences, ddof=1) / math.sqrt(n_runs)) if n_runs > 1 else math.nan
        shape = n_runs, len(X) - 1
        run_ess = np.array([run.ess for run in runs]).reshape(shape)
        self.__dict__.update(
            log_evidence=log_evidence,
            log_evidence_se=se,
            run_log_evidences=evidences,
            log_evidence_traces=np.array([run.log_evidences for run in runs]).reshape(shape),
            ess=run_ess.sum(axis=0),
            run_ess=run_ess,
            resampled=np.array([run.resampled for run in runs]).reshape(shape),
            n_ancestors=np.array([len(np.unique(run.particles.ancestor)) for run in runs]),
            runs=np.repeat(np.arange(n_runs), [len(run.particles.log_weights) for run in runs]),
            process=process,
            remarks=[],
        )
        self.remarks.extend(self._describe_problems())

    def _describe_problems(self) -> list[str]:
        """Describe the problems that the diagnostics show, and how to fix them."""
        total, n_runs = len(self.weights), len(self.n_ancestors)
        if self.n_leaves < 3:
            return []
        problems = []
        if total == n_runs:
            problems.append("Each run had one particle, which says nothing about uncertainty: use 50 or more.")
        elif self.effective_size < max(0.1 * total, 5):
            problems.append(
                f"The sample has collapsed: its {total} particles are worth {self.effective_size:.1f} trees of equal weight. "
                "Use more particles or another proposal (race or post-post); if rows are nearly equal, noise helps."
            )
        elif np.all(self.n_ancestors == 1):
            problems.append(
                f"All {total // n_runs} particles of {'each run' if n_runs > 1 else 'the run'} descend from one: the lowest "
                "merges are the same in all trees, so their support is too high. Use more particles, or more runs, which are "
                "independent."
            )
        if self.log_evidence_se > 1:
            problems.append(
                f"The runs disagree on the evidence (standard error {self.log_evidence_se:.2g} of its logarithm), so few of "
                "them dominate the sample: use more particles."
            )
        return problems

    def to_xarray(self) -> Any:
        """Return scalar summaries of the trees, with the run of each tree; see `TreeSample.to_xarray`."""
        facts = {"log_evidence": self.log_evidence, "log_evidence_se": self.log_evidence_se}
        return super().to_xarray().assign(run=("tree", self.runs)).assign_attrs(facts)

    def _facts(self) -> dict[str, object]:
        facts = super()._facts() | {"effective size": self.effective_size, "log evidence": self.log_evidence}
        if len(self.run_log_evidences) > 1:
            facts["its standard error"] = self.log_evidence_se
        return facts | {"process": self.process, "remarks": " ".join(self.remarks) or "none"}

    def __repr__(self) -> str:
        return (
            f"<SMCResult: {len(self.weights)} trees of {self.n_leaves} leaves, {self.n_distinct} distinct, "
            f"log evidence {self.log_evidence:.6g}>"
        )


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
        Traces of sampled parameters by name, including the warm-up, for example ``rate[3]`` of column 3. The rates of single
        sites, which `processes` has, are not among them: as in other programs, their shape is.
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
    parameter_draws: dict[str, FloatArray]  # those and the rates of single sites
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
        parameter_draws: Mapping[str, FloatArray] | None = None,
        missing_cells: FloatArray | None = None,
    ) -> None:
        n_chains, n_samples = len(trees), len(trees[0])
        all_trees = [tree for chain in trees for tree in chain]
        after_warmup = {name: trace[:, warmup:] for name, trace in traces.items()}
        super().__init__(all_trees, log_joints=after_warmup["log_joint"].ravel(), log_ratios=log_ratios)
        topologies, draws = Topologies(all_trees, n_chains), dict(parameter_draws or {})
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
            parameters={name: trace for name, trace in draws.items() if not name.startswith(SITE_RATE)},
            parameter_draws=draws,
            missing_cells=np.zeros((len(all_trees), 0)) if missing_cells is None else missing_cells,
        )
        if self.parameters:
            means = np.array([trace[:, warmup:].mean() for trace in self.parameter_draws.values()])
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
        values = np.stack([trace[:, self.warmup :] for trace in self.parameter_draws.values()], axis=2)
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
            return f"The chains have not converged: {'; '.join(problems)}.{self._advice()}"
        if self.n_chains == 1:
            return "The chain shows no problem, but only several chains can show convergence."
        return (
            f"The {self.n_chains} chains agree: R-hat is at most {max(self.r_hat.values()):.3f}, clade frequencies differ by "
            f"{self.split_deviation:.3f} on average, and the trees are worth {self.effective_topologies:.0f} independent ones."
        )

    def _advice(self) -> str:
        """Return what to do about chains that have not converged."""
        return f" Take more samples.{self._advice_on_groups()}"

    def _advice_on_groups(self) -> str:
        """Return what helps if chains seldom move between groups of trees, unless it was done or cannot be."""
        if self.split_deviation <= MAX_SPLIT_DEVIATION or self.parameters or "exchange" in self.acceptance:
            return ""
        return " If that does not help, add heated chains (n_heated=1), which move between groups of trees."

    def add_stop_reason(self, n_samples: int, limit: float | None) -> None:
        """Add to the verdict of a run of n_samples="auto" whether it stopped at convergence or at a time limit."""
        if limit is None:
            reason = f"They stopped when they had converged, after {n_samples:,} samples each."
        else:
            reason = f"They stopped at the time limit of {limit:g} seconds, after {n_samples:,} samples each"
            reason += "." if self.converged else f"; a larger max_seconds gives them more.{self._advice_on_groups()}"
        verdict = f"{self.verdict.removesuffix(self._advice())} {reason}"
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


class EvidenceResult:
    """The evidence ``p(x)`` of a process, from several independent runs.

    Attributes
    ----------
    log_evidence : float
        Log of the mean over all runs, each of which estimates ``p(x)`` without bias.
    standard_error : float
        Standard error of the log evidence: the standard deviation of the runs' log evidences over the square root of their
        number. NaN for a single run, and where the runs contradict it: if they differ so much that it would be above 0.5, all
        of them may be too low by far more, because chains that are too short lag behind the powers.
    run_log_evidences : ndarray of shape (n_runs,)
    powers : ndarray of shape (n_steps + 1,)
        Powers of the likelihood, from 0 (the prior) to 1 (the posterior).
    log_ratios : ndarray of shape (n_runs, n_steps)
        Contributions of the steps from each power to the next: a row adds up to the log evidence of the run.
    ess : ndarray of shape (n_runs, n_steps)
        Effective sample size of the weights of each step, as a share of the samples.
    mean_log_likelihoods : ndarray of shape (n_runs, n_steps)
        Mean log likelihood of the trees at the lower power of each step.
    process : Process
        The process, with all parameters resolved.
    reliable : bool
        Whether the runs differ so little that the standard error is at most 0.5, and no step is too large.
    verdict : str
        How far the number can be trusted, and what to do if it cannot.
    """

    def __init__(
        self,
        powers: FloatArray,
        log_ratios: FloatArray,
        ess: FloatArray,
        mean_log_likelihoods: FloatArray,
        process: Process,
    ) -> None:
        self.powers, self.log_ratios, self.ess = powers, log_ratios, ess
        self.mean_log_likelihoods, self.process = mean_log_likelihoods, process
        self.run_log_evidences = np.array([math.fsum(row) for row in log_ratios])
        self.log_evidence = normalize(self.run_log_evidences)[1]
        problems = self._find_problems()
        self.reliable = not problems
        self.standard_error = _standard_error(self.run_log_evidences) if self.reliable else math.nan
        self.verdict = self._verdict(problems)

    @property
    def n_runs(self) -> int:
        """The number of runs."""
        return len(self.log_ratios)

    @property
    def run_range(self) -> float:
        """The difference between the largest and the smallest log evidence of the runs; NaN for a single run."""
        return float(np.ptp(self.run_log_evidences)) if self.n_runs > 1 else math.nan

    def _find_problems(self) -> list[str]:
        if self.n_runs == 1:
            return ["one run has no standard error. Take several runs"]
        problems = []
        least = self.ess.mean(axis=0)
        step = int(least.argmin())
        if least[step] < MIN_ESS:
            problems.append(
                f"the step from power {self.powers[step]:.3g} to {self.powers[step + 1]:.3g} is too large: its samples are worth "
                f"{100 * least[step]:.0f} % of their number. Take more powers"
            )
        if _standard_error(self.run_log_evidences) > MAX_STANDARD_ERROR:
            problems.append(
                f"the log evidences of the runs differ by up to {self.run_range:.2g}, too much for a standard error. Take more "
                "samples"
            )
        return problems

    def _verdict(self, problems: list[str]) -> str:
        if problems:
            return f"The evidence is not reliable: {'; '.join(problems)}."
        return (
            f"The {self.n_runs} runs agree: the log evidence is {self.log_evidence:.2f} with a standard error of "
            f"{self.standard_error:.2g}."
        )

    def columns(self) -> dict[str, list[float]]:
        """Return the steps from power to power as a dict of columns.

        ``log_ratio`` is the contribution to the log evidence, ``ess`` the share of the samples that their weights are worth, and
        ``mean_log_likelihood`` that of the trees at the lower power.
        """
        return {
            "power": self.powers[:-1].tolist(),
            "next_power": self.powers[1:].tolist(),
            "log_ratio": self.log_ratios.mean(axis=0).tolist(),
            "standard_error": [_standard_error(column) for column in self.log_ratios.T],
            "ess": self.ess.mean(axis=0).tolist(),
            "mean_log_likelihood": self.mean_log_likelihoods.mean(axis=0).tolist(),
        }

    def to_pandas(self) -> Any:
        """Return the steps as a pandas DataFrame, see `columns`."""
        try:
            import pandas as pd
        except ImportError as error:
            raise MissingDependencyError("pandas is not installed: use columns(), or pip install pandas.") from error
        return pd.DataFrame(self.columns())

    def __repr__(self) -> str:
        return (
            f"<EvidenceResult: log evidence {describe_evidence(self.log_evidence, self.standard_error, self.run_range)}, "
            f"{count(self.n_runs, 'run')}>"
        )

    def _repr_html_(self) -> str:
        facts = {
            "log evidence": describe_evidence(self.log_evidence, self.standard_error, self.run_range),
            "runs": self.n_runs,
            "powers": len(self.powers),
            "process": self.process,
            "verdict": self.verdict,
        }
        return facts_html("Evidence", facts)


def describe_evidence(log_evidence: float, standard_error: float, run_range: float) -> str:
    """Write a log evidence with its standard error, or with the range of the runs if there is none.

    Examples
    --------
    >>> describe_evidence(-10.0, 0.25, 0.7), describe_evidence(-10.0, math.nan, 4.2)
    ('-10.00 ± 0.25', '-10.0, runs differ by 4.2')
    """
    if not math.isnan(standard_error):
        places = 2 if standard_error >= 0.01 else 3
        return f"{log_evidence:.{places}f} ± {standard_error:.2g}"
    return f"{log_evidence:.1f}" + ("" if math.isnan(run_range) else f", runs differ by {run_range:.2g}")


def _standard_error(values: FloatArray) -> float:
    """Return the standard error of the mean of some independent values; NaN for a single one."""
    return float(np.std(values, ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.nan
