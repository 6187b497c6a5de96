"""Results of sequential Monte Carlo: a weighted sample of trees, the evidence, and diagnostics."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..process.base import Process
from ..tree.coalescent import log_prior
from ..tree.sample import TreeSample
from ..tree.tree import Tree
from .kernels.particles import Particles

FloatArray = NDArray[np.float64]


class FinishedParticles(NamedTuple):
    """The particles at the end of a run, as plain arrays, which can be sent between processes."""

    children: NDArray[np.intp]  # (particles, merges, 2)
    heights: FloatArray  # (particles, merges)
    log_z: FloatArray  # (particles, merges), local likelihoods
    log_ratios: FloatArray  # (particles, merges), one tree below the merge versus two independent trees
    log_weights: FloatArray  # (particles,)
    ancestor: NDArray[np.intp]  # (particles,), index of the initial particle that this one descends from

    @classmethod
    def of(cls, particles: Particles) -> FinishedParticles:
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
        self.remarks.extend(self._judgement())

    def _judgement(self) -> list[str]:
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
