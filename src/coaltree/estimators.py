"""The scikit-learn door: a table in, a tree and clusters out."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils import Tags
from sklearn.utils.validation import validate_data

from .errors import InputError, InputWarning
from .inference.greedy import RULES, SEARCHES, GreedyResult, explain, greedy
from .inference.smc import PROPOSALS, smc
from .process.brownian import Brownian
from .process.interface import Process
from .process.mixed import Mixed
from .process.multinomial import Multinomial, smoothed_shares
from .streams import as_generator
from .table.columns import Table, read_columns
from .table.encoding import EncodedTable, describe, encode, fit_encoding
from .tree.cut import check_cluster_count, cut_by_agreement, cut_by_count, cut_by_height, cut_by_ratio

FloatArray = NDArray[np.float64]
Progress = Callable[[float, str], None]  # share of the work done, and a word on how it goes


class CoalescentClustering(ClusterMixin, BaseEstimator):
    """Hierarchical clustering with Kingman's coalescent.

    Rows are leaves of a binary tree; real columns diffuse along its branches, categorical columns mutate. Missing cells
    are integrated out. Flat clusters are where the model prefers one tree to two, unless a number of clusters or a height
    is asked for.

    Parameters
    ----------
    inference : {"greedy", "smc"}, default "greedy"
        How the tree is found: one good tree, or a weighted sample of trees by sequential Monte Carlo, which gives support
        values and the evidence; for up to some hundred rows.
    rule : {"rate1", "max-prob", "min-duration"}, default "rate1"
        Which pair merges next in greedy inference, see :func:`coaltree.greedy`.
    proposal : {"post-post", "race", "prior-post", "prior-prior"}, default "post-post"
        How sequential Monte Carlo draws merges, see :func:`coaltree.smc`.
    n_particles : int, default 50
        Particles in each of its runs.
    n_runs : int, default 1
        Independent runs.
    summary : {"mcc", "consensus"}, default "mcc"
        Which tree stands for the sample: the sampled tree of maximum clade credibility, or the majority-rule consensus.
    calibrate : {0}, default 0
        Rounds in which the parameters of the process are fitted to the tree. This version has none: a standardised column
        has variance 1, mutation has rate 1, equilibria are the smoothed shares of the categories.
    noise : float, default 0.0
        Variance of the noise on real cells, in units of the column's diffusion. Any noise makes the density of identical
        rows finite.
    categorical_features : "from_dtype", None, array-like of bool, int or str, default "from_dtype"
        Which columns are categorical: by dtype (categories, text and booleans), a mask, indices or names.
    standardize : bool, default True
        Bring real columns to mean 0 and standard deviation 1 first.
    n_clusters : int, optional
        Number of flat clusters.
    height_threshold : float, optional
        Rows are in one flat cluster if they merge at this height or below.
    search : {"auto", "exact"}, default "auto"
        How greedy inference looks for partners.
    n_jobs : int, optional
        Threads. The result does not depend on it.
    random_state : int, Generator, RandomState or None, default None
        Source of randomness of sequential Monte Carlo. Greedy inference uses none.
    verbose : int, default 0
        Above 0, progress is shown on standard error.

    Attributes
    ----------
    tree_ : Tree or SummaryTree
        The tree; leaf i is row i, with the row names of a frame that has them. Of a sample, a `SummaryTree` with
        ``support``, mean heights and their 95 % intervals.
    labels_ : ndarray of int, shape (n_samples,)
        Flat cluster of each row, numbered in the order of their first rows. Of a sample of trees, each is cut, and rows are
        together that are together in most of them, on average over the clusters.
    n_clusters_ : int
        Number of flat clusters.
    linkage_ : ndarray of shape (n_samples - 1, 4)
        The tree as scipy's linkage matrix.
    children_ : ndarray of int, shape (n_samples - 1, 2)
        The two nodes that each merge joins.
    distances_ : ndarray of shape (n_samples - 1,)
        Heights of the merges.
    process_ : Process
        The process with its parameters, over the encoded columns: real ones first, then categorical ones.
    encoding_ : Encoding
        How the columns were encoded.
    sample_ : SMCResult
        The sample of trees with its diagnostics; only with ``inference="smc"``.
    log_evidence_ : float
        Log of the estimate of ``p(x)``, the encoded table's density over all trees; only with ``inference="smc"``.
    log_joint_ : float
        ``log p(x, tree)`` of the encoded table.
    log_likelihood_ : float
        ``log p(x | tree)`` of the encoded table.
    log_ratios_ : ndarray of shape (n_samples - 1,)
        For each merge, one tree against two independent ones.
    remarks_ : list of str
        What was noticed about the table; also given as warnings.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of str
        Names of the columns, if they are all strings.

    Examples
    --------
    >>> import numpy as np
    >>> from coaltree import CoalescentClustering
    >>> X = np.array([[0.0, 0.2], [0.1, np.nan], [4.0, 4.1], [3.9, 4.0]])
    >>> CoalescentClustering(n_clusters=2).fit_predict(X).tolist()
    [0, 0, 1, 1]
    """

    def __init__(
        self,
        *,
        inference: str = "greedy",
        rule: str = "rate1",
        proposal: str = "post-post",
        n_particles: int = 50,
        n_runs: int = 1,
        summary: str = "mcc",
        calibrate: int = 0,
        noise: float = 0.0,
        categorical_features: Any = "from_dtype",
        standardize: bool = True,
        n_clusters: int | None = None,
        height_threshold: float | None = None,
        search: str = "auto",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.inference = inference
        self.rule = rule
        self.proposal = proposal
        self.n_particles = n_particles
        self.n_runs = n_runs
        self.summary = summary
        self.calibrate = calibrate
        self.noise = noise
        self.categorical_features = categorical_features
        self.standardize = standardize
        self.n_clusters = n_clusters
        self.height_threshold = height_threshold
        self.search = search
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the tree of a table.

        Parameters
        ----------
        X : frame or array-like of shape (n_samples, n_features)
            Rows to cluster. NaN, None, pd.NA and polars' nulls are missing cells.
        y : ignored

        Returns
        -------
        self
        """
        table = read_columns(X, self.categorical_features)
        validate_data(self, X, skip_check_array=True)
        return self._fit(table, _shown_progress if self.verbose else None)

    def _fit(self, table: Table, progress: Progress | None = None) -> Self:
        """Find the tree of a table that has been read already."""
        self._check_parameters(table.n_rows)
        for name in ("sample_", "log_evidence_"):  # of an earlier fit
            self.__dict__.pop(name, None)
        encoding = fit_encoding(table, self.standardize)
        remarks = describe(table, encoding)
        matrix, process = _model(encode(table, encoding), self.noise)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", InputWarning)
            if self.inference == "smc":
                result, labels = self._sample(matrix, process, table.row_names, progress)
            else:
                result, labels = self._search(matrix, process, table.row_names, progress)
        remarks += [str(warning.message) for warning in caught if issubclass(warning.category, InputWarning)]
        for warning in caught:
            if not issubclass(warning.category, InputWarning):
                warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
        for remark in remarks:
            warnings.warn(remark, InputWarning, stacklevel=3)
        tree = result.tree
        self.tree_ = tree
        self.labels_ = labels
        self.n_clusters_ = int(labels.max()) + 1
        self.linkage_ = tree.to_linkage()
        self.children_ = tree.children
        self.distances_ = tree.merge_heights
        self.process_ = result.process
        self.encoding_ = encoding
        self.log_joint_ = result.log_joint
        self.log_likelihood_ = result.log_likelihood
        self.log_ratios_ = result.log_ratios
        self.remarks_ = remarks
        return self

    def _search(
        self, matrix: FloatArray, process: Process, names: Sequence[str] | None, progress: Progress | None
    ) -> tuple[GreedyResult, NDArray[np.intp]]:
        """Find one tree and cut it."""
        report = (lambda share: progress(share, "")) if progress else None
        result = greedy(matrix, process, self.rule, self.search, leaf_names=names, n_jobs=self.n_jobs, progress=report)
        if self.n_clusters is not None:
            return result, cut_by_count(result.tree, self.n_clusters)
        if self.height_threshold is not None:
            return result, cut_by_height(result.tree, self.height_threshold)
        return result, cut_by_ratio(result.tree, result.log_ratios)

    def _sample(
        self, matrix: FloatArray, process: Process, names: Sequence[str] | None, progress: Progress | None
    ) -> tuple[GreedyResult, NDArray[np.intp]]:
        """Draw a sample of trees, let one stand for it, and cut all of them."""

        def report(share: float, ess: float, log_evidence: float) -> None:
            if progress:
                progress(share, f"ESS {ess:.0f}, log evidence {log_evidence:.1f}")

        sample = smc(
            matrix,
            process,
            self.proposal,
            self.n_particles,
            n_runs=self.n_runs,
            leaf_names=names,
            n_jobs=self.n_jobs,
            random_state=self.random_state,
            progress=report,
        )
        self.sample_ = sample
        self.log_evidence_ = sample.log_evidence
        together = sample.co_clustering(n_clusters=self.n_clusters, height=self.height_threshold)
        tree = sample.mcc() if self.summary == "mcc" else sample.consensus()
        return explain(tree, matrix, sample.process), cut_by_agreement(together, self.n_clusters)

    def _check_parameters(self, n_rows: int) -> None:
        for name, allowed in (
            ("inference", ("greedy", "smc")),
            ("rule", RULES),
            ("search", SEARCHES),
            ("proposal", PROPOSALS),
            ("summary", ("mcc", "consensus")),
        ):
            if getattr(self, name) not in allowed:
                raise InputError(f"{name} is {getattr(self, name)!r}; it must be {' or '.join(map(repr, allowed))}.")
        if not isinstance(self.standardize, (bool, np.bool_)):
            raise InputError(f"standardize is {self.standardize!r}; it must be True or False.")
        as_generator(self.random_state)
        if self.calibrate != 0:
            raise InputError(
                f"calibrate is {self.calibrate!r}; this version does not fit parameters to the tree: use calibrate=0."
            )
        if self.n_clusters is not None and self.height_threshold is not None:
            raise InputError("n_clusters and height_threshold were both given; give one of them, or neither.")
        if self.n_clusters is not None:
            check_cluster_count(self.n_clusters, n_rows)
        threshold: Any = self.height_threshold
        if threshold is not None and not (
            isinstance(threshold, (int, float, np.integer, np.floating)) and threshold >= 0
        ):
            raise InputError(f"height_threshold is {self.height_threshold!r}; it must be a number of at least 0.")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags


def _model(encoded: EncodedTable, noise: float) -> tuple[FloatArray, Process]:
    """Put the encoded columns side by side, real ones first, and describe them by a process."""
    codes = np.where(encoded.codes < 0, np.nan, encoded.codes)
    n_real, n_categorical = encoded.real.shape[1], codes.shape[1]
    real = Brownian(1.0, noise)
    if n_real + n_categorical == 0:
        # Nothing tells the rows apart: one column in which nothing was observed says just that.
        return np.full((len(codes), 1), np.nan), real
    if n_categorical == 0:
        return encoded.real, real
    categorical = Multinomial(1.0, [smoothed_shares(codes[:, d], states) for d, states in enumerate(encoded.n_states)])
    if n_real == 0:
        return codes, categorical
    columns = np.arange(n_real + n_categorical)
    return np.hstack([encoded.real, codes]), Mixed((real, columns[:n_real]), (categorical, columns[n_real:]))


def _shown_progress(share: float, word: str) -> None:
    end = "\n" if share >= 1 else ""
    print(f"\r[CoalescentClustering] {100 * share:3.0f} % {word}", end=end, file=sys.stderr, flush=True)
