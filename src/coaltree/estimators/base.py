"""What all estimators do: find the trees of a table, and ask draws of trees about its rows and others.

Nothing here needs scikit-learn, which takes longer to import than most tables to fit: the command line does without.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from .._random import as_generator
from .._validation import check_count
from ..errors import InputError, InputWarning
from ..inference.averaging import average_trees
from ..inference.executors import open_client
from ..inference.expected_heights import expected_heights
from ..inference.greedy import RULES, SEARCHES, GreedyResult, explain, greedy
from ..inference.mcmc import mcmc
from ..inference.mcmc_result import MCMCResult
from ..inference.near_rows import filled_from_near_rows
from ..inference.posterior_draws import Draw, max_rows, posterior_draws
from ..inference.refine import refine
from ..inference.smc import PROPOSALS, smc
from ..inference.smc_result import SMCResult
from ..inference.thread_executor import thread_count
from ..predict.predictor import Predictor, ask
from ..process.base import MAX_EXACT_ROWS, Process
from ..process.predictions import Predictions
from ..report.messages import describe_zero_heights
from ..table.columns import Table, find_constant, missing_cells
from ..table.encoding import EncodedTable, describe, encode, fit_encoding, read_new_rows
from ..table.inputs import FrameKind
from ..tree.edit import without_leaves
from ..tree.sample import TreeSample
from ..tree.traversal import count_zero_heights
from ..tree.tree import Tree
from .modelling import (
    COVARIANCES,
    REAL_PROCESSES,
    Templates,
    column_signals,
    encoded_of,
    matrix_of,
    parameters_by_name,
    prediction_process,
    sampling_process,
    structure_process,
)

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
Progress = Callable[[float, str], None]  # share of the work done, and a word on how it goes
Inferred = GreedyResult | SMCResult | MCMCResult

ALMOST_DONE = 0.999  # all that is shown before the end: how many passes there will be is not known
MOST_ASKED = 200  # trees of a sample with parameters that questions are asked of
_QUESTIONS = Lock()


class NewRows(NamedTuple):
    """New rows as the table that was read, and as the matrix that the model sees."""

    table: Table
    matrix: FloatArray


class Means(NamedTuple):
    """Who carries a fit, who is told of it, and where it is kept."""

    progress: Progress | None
    client: Any = None  # of Dask, an open one
    checkpoint: Path | None = None

    def stretched(self, low: float, high: float) -> Means:
        """Return the means of a part of the work."""
        whole = self.progress
        return self._replace(progress=whole and (lambda share, word: whole(low + (high - low) * share, word)))


def check_fitted(model: Any) -> None:
    """Raise scikit-learn's NotFittedError unless a model has been fitted."""
    if not hasattr(model, "tree_"):
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(model)


class CoalescentModel:
    """A tree, or a sample of trees, over the rows of a table; the estimators add what to do with it."""

    _stored_as: ClassVar[str]  # the name of the estimator in files, of classes that have their own

    inference: str
    rule: str
    proposal: str
    n_particles: int
    n_runs: int
    n_chains: int
    n_samples: int
    summary: str
    draw_parameters: bool
    real_process: str | Process
    categorical_process: Process | None
    covariance: str | None
    noise: float | None
    categorical_features: Any
    unseen_categories: Any
    standardize: bool | Literal["power"]
    search: str
    refine: bool
    n_jobs: int | None
    client: Any
    random_state: Any
    verbose: int

    _matrix: FloatArray  # the encoded table
    sample_: SMCResult | MCMCResult  # only where trees were sampled
    _prediction_seed: int  # of the draws that predictions are averaged over
    _question_progress: Progress | None = None  # who is told of these draws, if anyone
    _asked: Predictor | None  # what answers questions about rows, if that has been fitted yet

    def _fit(self, table: Table, progress: Progress | None = None, checkpoint: Path | None = None) -> Self:
        """Find the tree of a table that has been read already; a checkpoint keeps its last and longest search."""
        self._check_parameters(table.n_rows)
        for name in ("sample_", "log_evidence_", "search_", "neighbors_held_"):  # of an earlier fit
            self.__dict__.pop(name, None)
        # without a random state a greedy fit is the same each time, and so are its answers
        self._prediction_seed = 0 if self.random_state is None else int(as_generator(self.random_state).integers(2**63))
        encoding = fit_encoding(table, self.standardize)
        encoded = encode(table, encoding)
        matrix = matrix_of(encoded)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InputWarning)  # what the result has to say follows
            with open_client(self.client) as client:
                best = self._found(matrix, encoded, table.row_names, Means(progress, client, checkpoint))
        if progress:
            progress(1.0, "")
        tree = None if isinstance(best, TreeSample) else best.tree
        remarks = describe(table, encoding, {} if tree is None else self._set_apart(tree, encoded))
        if isinstance(best, SMCResult):
            self.log_evidence_ = best.log_evidence
        if isinstance(best, TreeSample):
            self.sample_ = best
            remarks += best.remarks
        else:
            self.search_, self.neighbors_held_ = best.search, best.neighbors_held
            remarks += best.process.remarks(best.tree, matrix)
        self.encoding_ = encoding
        self._id_column = table.id_column
        self._constants = [find_constant(column) for column in table.columns]
        self._with_holes = tuple(j for j, column in enumerate(table.columns) if missing_cells(column).any())
        self.parameters_ = parameters_by_name(best.process, encoded, encoding)
        self.remarks_ = remarks
        self._settle(best, matrix, best.process)
        for remark in remarks:
            warnings.warn(remark, InputWarning, stacklevel=3)
        return self

    def _set_apart(self, tree: Tree, encoded: EncodedTable) -> dict[str, IntArray]:
        """Return rows that the top of the tree sets apart because of one column; only clusters have a size to call them few."""
        return {}

    @property
    def _noise(self) -> float | None:
        """The noise that was given, in double precision, as files keep it."""
        return None if self.noise is None else float(self.noise)

    @property
    def _templates(self) -> Templates:
        return Templates(self.real_process, self.categorical_process)

    def _found(
        self, matrix: FloatArray, encoded: EncodedTable, row_names: Sequence[str] | None, means: Means
    ) -> Inferred:
        """Find the tree, or the sample of trees, with fixed parameters; only Markov chains may draw them as well."""
        walks = self.inference == "mcmc" and len(matrix) > 1  # the tree of one row is nothing to sample
        choose = sampling_process if walks and self.draw_parameters else structure_process
        process = choose(matrix, encoded, self._templates, self.covariance, self._noise)
        if walks:
            return self._walked(process, matrix, row_names, means)
        if self.inference == "smc":
            return self._sampled(process, matrix, row_names, means)
        n_real = encoded.real.shape[1]
        no_column = n_real + encoded.codes.shape[1] == 0  # nothing tells the rows apart: all merge at 0
        averages = self.rule == "rate1" and not self.refine and not no_column
        searched = matrix
        if averages and self.noise != 0 and len(matrix) <= MAX_EXACT_ROWS:
            searched = filled_from_near_rows(matrix, n_real)
        found = self._searched(process, searched, row_names, means)
        if self.refine:
            return self._refined(found, matrix, means.progress)
        if not averages:
            return found
        tree = average_trees(found.tree, searched, found.process, filled=searched is not matrix, n_jobs=self.n_jobs)
        tree = expected_heights(tree, matrix, found.process, only_ties=True)
        return replace(explain(tree, matrix, found.process), search=found.search, neighbors_held=found.neighbors_held)

    @property
    def _predictor(self) -> Predictor:
        """What answers questions about rows."""
        with _QUESTIONS:  # threads that ask at the same time draw one sample
            if self._asked is None:
                self._asked = self._fit_predictor()
        return self._asked

    @property
    def prediction_parameters_(self) -> dict[str, dict[str, Any]]:
        """The parameters that questions about rows are answered with, by column and in its units; means over the draws.

        ``signal`` says how much the column owes to descent: the correlation of a cell with the same cell of the row's nearest
        relative on the tree. Where trees were drawn, ``signal_low`` and ``signal_high`` are the ends of its central 90 %
        interval. Columns with the largest signal come first.
        """
        check_fitted(self)
        draws, encoded = self._predictor.ensemble.draws, encoded_of(self.encoding_, self._matrix)
        mean = draws[0].process
        if len(draws) > 1:
            mean = mean.with_parameter_values(np.mean([draw.process.parameter_values() for draw in draws], axis=0))
        found = parameters_by_name(mean, encoded, self.encoding_)
        signals = column_signals(draws, self._matrix.shape[1]) if len(self._matrix) > 1 else np.zeros((1, len(found)))
        names = (*encoded.real_names, *encoded.categorical_names)
        for name, own in zip(names, signals.T, strict=False):  # where no column takes part there is one without a name
            if np.isnan(own).any():  # the process does not tell
                continue
            found[name]["signal"] = float(own.mean())
            if len(draws) > 1:
                low, high = np.quantile(own, [0.05, 0.95])
                found[name] |= {"signal_low": float(low), "signal_high": float(high)}
        return dict(sorted(found.items(), key=lambda item: -item[1].get("signal", 0.0)))

    @property
    def _asks_sample(self) -> bool:
        """Whether questions are asked of the sample of trees, since each of its trees has parameters of its own."""
        sample = getattr(self, "sample_", None)
        return isinstance(sample, MCMCResult) and bool(sample.parameters)

    def _prediction_rows(self) -> NDArray[np.intp]:
        """Return the rows over which trees are drawn for predictions.

        A part of a coalescent's leaves has a coalescent of its own, by the same clock.
        """
        n, most = len(self._matrix), max_rows(self._matrix.shape[1])
        if n <= most or self._asks_sample:
            return np.arange(n)
        return np.sort(np.random.default_rng(self._prediction_seed).permutation(n)[:most])

    def _draw_trees(self, progress: Progress | None) -> None:
        """Draw the trees that questions are answered with, if they have not been drawn, and tell how it goes."""
        self._question_progress = progress
        try:
            self._predictor  # noqa: B018  it is made when it is asked for
        finally:
            self._question_progress = None

    def _expected_cells(self, X: FloatArray) -> Predictions:
        """Return what the cells of rows would show; rows of the fit are known by their cells."""
        predictor = self._predictor
        known = predictor.rows_of_fit(X)
        old, new = np.flatnonzero(known >= 0), np.flatnonzero(known < 0)
        parts = []
        if len(old):
            distinct, place = np.unique(known[old], return_inverse=True)
            parts.append(predictor.fitted_cells(distinct).take(place))
        if len(new) or not len(old):
            parts.append(self._ask("cells", X[new]))
        return Predictions.stack(parts).take(np.argsort(np.concatenate([old, new]), kind="stable"))

    def _fit_predictor(self) -> Predictor:
        """Draw trees with their parameters for predictions: those that clusters are found with see too much noise."""
        matrix, tree = self._matrix, self.tree_
        if len(matrix) == 1 or not self.encoding_.informative.any():
            return Predictor.of_trees([tree], np.ones(1), matrix, self.process_, self.n_jobs)
        if self._asks_sample:
            return self._sample_predictor()
        rows = self._prediction_rows()
        if len(rows) < len(matrix):
            tree = without_leaves(tree, np.setdiff1d(np.arange(len(matrix)), rows))
            matrix = matrix[rows]
        encoded = encoded_of(self.encoding_, matrix)
        templates = self._templates.resolved(self.process_, encoded)
        process = prediction_process(matrix, encoded, templates, self.covariance, self._noise).resolve(matrix)
        progress = self._question_progress or (self._shown_progress if self.verbose else None)
        draws = posterior_draws(
            matrix,
            process,
            tree,
            hold_noise=self.noise is not None,
            n_jobs=self.n_jobs,
            random_state=self._prediction_seed,
            progress=None if progress is None else lambda share: progress(share, "drawing trees for predictions"),
        )
        return Predictor(draws, np.ones(len(draws)), matrix, self.n_jobs)

    def _sample_predictor(self) -> Predictor:
        """Take trees of the sample with their parameters, evenly from all: neighbours are alike."""
        sample = self.sample_
        assert isinstance(sample, MCMCResult)
        which = np.unique(np.linspace(0, len(sample) - 1, MOST_ASKED).round().astype(int)).tolist()
        processes = sample.processes()
        draws = [Draw(sample.trees[k], processes[k], self._matrix) for k in which]
        return Predictor(draws, np.ones(len(draws)), self._matrix, self.n_jobs)

    def save(self, path: str | Path) -> None:
        """Write the fitted model into a file, for :func:`coaltree.load_model`; whole or not at all, nothing pickled.

        Parameters
        ----------
        path : str or Path
            The file, for example ``"model.coaltree"``; an earlier one of that name is replaced.
        """
        from .saving import save_model  # it knows the models, which are made of this class

        save_model(self, path)

    def _settle(
        self,
        found: GreedyResult | TreeSample,
        matrix: FloatArray,
        process: Process,
        labels: NDArray[np.intp] | None = None,
    ) -> None:
        """Set what follows from trees, table and process alone; `labels` are the flat clusters, where they are known already."""
        if isinstance(found, TreeSample):
            summary = found.mcc() if self.summary == "mcc" else found.consensus()
            result = explain(summary, matrix, process)
        else:
            result = found
        self.tree_ = result.tree
        self.process_ = process
        self.log_joint_ = result.log_joint
        self.log_likelihood_ = result.log_likelihood
        self.log_ratios_ = result.log_ratios
        self._matrix = matrix
        self._asked = None
        self._frame_kind = FrameKind(index=list(self.tree_.leaf_names))  # unless there is a frame to take it from

    def _walked(
        self, process: Process, matrix: FloatArray, row_names: Sequence[str] | None, means: Means
    ) -> MCMCResult:
        """Sample trees by Markov chains, and parameters with them if asked for."""

        def report(share: float, r_hat: float, effective: float) -> None:
            if means.progress:
                known = not math.isnan(r_hat + effective)
                word = f"R-hat {r_hat:.2f}, {effective:,.0f} effective samples" if known else "first samples"
                means.progress(min(share, ALMOST_DONE), word)

        return mcmc(
            matrix,
            process,
            self.n_samples,
            self.n_chains,
            draw_parameters=self.draw_parameters,
            hold_noise=self.noise is not None,
            leaf_names=row_names,
            n_jobs=self.n_jobs,
            client=means.client,
            random_state=self.random_state,
            checkpoint=means.checkpoint,
            progress=report,
        )

    def _refined(self, found: GreedyResult, matrix: FloatArray, progress: Progress | None) -> GreedyResult:
        """Make the tree better, and remember how it was found."""

        def report(moved: int, log_joint: float) -> None:
            if progress:
                progress(ALMOST_DONE, f"refining, log joint {log_joint:.1f}")

        better = refine(found.tree, matrix, found.process, progress=report)
        return replace(better, search=found.search, neighbors_held=found.neighbors_held)

    def _searched(
        self, process: Process, matrix: FloatArray, row_names: Sequence[str] | None, means: Means
    ) -> GreedyResult:
        """Find one tree."""

        def report(share: float, live: int) -> None:
            if means.progress:
                means.progress(min(share, ALMOST_DONE), f"{live:,} lineages")

        return greedy(
            matrix,
            process,
            self.rule,
            self.search,
            leaf_names=row_names,
            n_jobs=self.n_jobs,
            client=means.client,
            checkpoint=means.checkpoint,
            progress=report,
        )

    def _sampled(
        self, process: Process, matrix: FloatArray, row_names: Sequence[str] | None, means: Means
    ) -> SMCResult:
        """Sample trees by sequential Monte Carlo."""

        def report(share: float, ess: float, log_evidence: float) -> None:
            if means.progress:
                means.progress(min(share, ALMOST_DONE), f"ESS {ess:.0f}, log evidence {log_evidence:.1f}")

        return smc(
            matrix,
            process,
            self.proposal,
            self.n_particles,
            n_runs=self.n_runs,
            leaf_names=row_names,
            n_jobs=self.n_jobs,
            client=means.client,
            random_state=self.random_state,
            progress=report,
        )

    def _new_rows(self, X: Any) -> NewRows:
        """Read new rows, whose columns are matched with those of the fit."""
        check_fitted(self)
        table = read_new_rows(X, self.encoding_, unseen=self.unseen_categories, estimator=type(self).__name__)
        return self._encoded(table)

    def _ask(self, question: str, X: FloatArray, *arguments: Any) -> Any:
        """Ask the trees about rows of a matrix, see `Predictor`; about many through the client, if there is one."""
        return ask(self._predictor, question, X, *arguments, client=self.client)

    def _encoded(self, table: Table) -> NewRows:
        return NewRows(table, matrix_of(encode(table, self.encoding_)))

    def _check_parameters(self, n_rows: int) -> None:
        for name, allowed in (
            ("inference", ("greedy", "smc", "mcmc")),
            ("rule", RULES),
            ("search", SEARCHES),
            ("proposal", PROPOSALS),
            ("summary", ("mcc", "consensus")),
            ("covariance", (None, *COVARIANCES)),
            ("unseen_categories", ("missing", "error")),
        ):
            if getattr(self, name) not in allowed:
                raise InputError(f"{name} is {getattr(self, name)!r}; it must be {' or '.join(map(repr, allowed))}.")
        real_process, categorical_process = self._templates
        if not isinstance(real_process, Process) and real_process not in REAL_PROCESSES:
            raise InputError(
                f"real_process is {real_process!r}; it must be {' or '.join(map(repr, REAL_PROCESSES))}, or a process."
            )
        if categorical_process is not None and not isinstance(categorical_process, Process):
            raise InputError(f"categorical_process is {categorical_process!r}; it must be a process or None.")
        if not isinstance(self.refine, (bool, np.bool_)):
            raise InputError(f"refine is {self.refine!r}; it must be True or False.")
        if not isinstance(self.standardize, (bool, np.bool_)) and not (
            isinstance(self.standardize, str) and self.standardize == "power"
        ):
            raise InputError(f"standardize is {self.standardize!r}; it must be True, False or 'power'.")
        if self.refine and self.inference != "greedy":
            raise InputError(
                f"refine is True, and inference is {self.inference!r}: only the tree of inference 'greedy' is refined."
            )
        if not isinstance(self.draw_parameters, (bool, np.bool_)):
            raise InputError(f"draw_parameters is {self.draw_parameters!r}; it must be True or False.")
        if self.draw_parameters and self.inference != "mcmc":
            raise InputError(
                f"draw_parameters is True, and inference is {self.inference!r}: parameters are drawn together with trees by "
                "inference 'mcmc' only."
            )
        for name in ("n_chains", "n_samples"):
            check_count(getattr(self, name), name)
        noise: Any = self.noise
        if noise is not None and not (isinstance(noise, (int, float, np.number)) and 0 <= noise < 1):
            raise InputError(
                f"noise is {noise!r}; it must be None or a number from 0 to less than 1: the share of the columns' variance that "
                "is noise."
            )
        if self.client is not None:
            from ..inference.dask_executor import check_client  # and Dask with it

            check_client(self.client)
        as_generator(self.random_state)
        thread_count(self.n_jobs)

    def _shown_progress(self, share: float, word: str) -> None:
        end = "\n" if share >= 1 else ""
        print(f"\r[{type(self).__name__}] {100 * share:3.0f} % {word}", end=end, file=sys.stderr, flush=True)

    def _facts(self) -> dict[str, object]:
        """What a notebook shows below scikit-learn's diagram."""
        facts: dict[str, object] = {"rows": self.tree_.n_leaves, "columns": len(self.encoding_.column_names)}
        facts |= {"root height": self.tree_.heights[-1], "log joint": self.log_joint_}
        if describe_zero_heights(self.tree_):
            facts["merges at height 0"] = f"{count_zero_heights(self.tree_.merge_heights):,}"
        if isinstance(sample := getattr(self, "sample_", None), MCMCResult):
            facts["chains converged"] = "yes" if sample.converged else "no"
        return facts | ({"log evidence": self.log_evidence_} if hasattr(self, "log_evidence_") else {})
