"""Results of `evidence`: the log evidence, its standard error, and what each step from power to power contributes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._html import facts_html
from ..errors import MissingDependencyError
from ..process.base import Process
from .smc_result import normalize

FloatArray = NDArray[np.float64]

MAX_STANDARD_ERROR = 0.5  # of a log evidence that is good enough to compare models
MIN_ESS = 0.2  # share of the samples that the weights of a step are worth, on average over the runs


class EvidenceResult:
    """The evidence ``p(x)`` of a process, from several independent runs.

    Attributes
    ----------
    log_evidence : float
        Log of the mean over all runs, each of which estimates ``p(x)`` without bias.
    standard_error : float
        Standard error of the log evidence: the standard deviation of the runs' log evidences over the square root of their
        number; NaN for a single run.
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
        Whether the standard error is at most 0.5 and no step is too large.
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
        self.standard_error = _standard_error(self.run_log_evidences)
        problems = self._find_problems()
        self.reliable = not problems
        self.verdict = self._verdict(problems)

    @property
    def n_runs(self) -> int:
        """The number of runs."""
        return len(self.log_ratios)

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
        if self.standard_error > MAX_STANDARD_ERROR:
            problems.append(
                f"the runs differ, so the standard error of the log evidence is {self.standard_error:.2g}, above "
                f"{MAX_STANDARD_ERROR}. Take more samples"
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
            f"<EvidenceResult: log evidence {self.log_evidence:.6g}, standard error {self.standard_error:.2g}, "
            f"{self.n_runs} runs>"
        )

    def _repr_html_(self) -> str:
        facts = {
            "log evidence": f"{self.log_evidence:.2f}",
            "standard error": f"{self.standard_error:.2g}",
            "runs": self.n_runs,
            "powers": len(self.powers),
            "process": self.process,
            "verdict": self.verdict,
        }
        return facts_html("Evidence", facts)


def _standard_error(values: FloatArray) -> float:
    """Return the standard error of the mean of some independent values; NaN for a single one."""
    return float(np.std(values, ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.nan
