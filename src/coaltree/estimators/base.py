"""The base class of the scikit-learn estimators: parameters, tables in, the fitted model and its attributes."""

from __future__ import annotations

import copy
import warnings
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from .._html import shorten_value
from .._parameters import check_parameter
from .._progress import Progress, print_progress
from ..errors import InputError, InputWarning
from ..inference.results import MCMCResult
from ..persist.model import write_model
from ..report.text import describe_zero_heights
from ..table.columns import Table, read_columns
from ..table.inputs import FrameKind, compute_dask
from ..tree.arrays import count_zero_heights
from ..workflow.fit import fit_model
from ..workflow.model import FittedModel, NewRows
from ..workflow.settings import SETTINGS, Settings, parameter_names

Estimator = TypeVar("Estimator")

SHARED_PARAMETERS = """inference : {"greedy", "smc", "mcmc"}, default "greedy"
        How trees are found. "greedy": one good tree. "smc": a weighted sample of trees by sequential Monte Carlo, with support
        values and the evidence, for up to a few hundred rows. "mcmc": a sample by Markov chains, with support values and
        convergence diagnostics. All three use the same fixed parameters of the process.
    rule : {"rate1", "max-prob", "min-duration"}, default "rate1"
        Which pair merges next in greedy inference, see :func:`coaltree.greedy`.
    search : {"auto", "exact", "neighbors"}, default "auto"
        Where greedy inference searches for partners: among all rows, or among near ones; see :func:`coaltree.greedy`.
    refine : bool, default False
        Whether to move subtrees of the greedy tree to where they fit better, see :func:`coaltree.refine`. Suitable for up to
        about a thousand rows.
    proposal : {"post-post", "race", "prior-post", "prior-prior"}, default "post-post"
        How sequential Monte Carlo draws merges, see :func:`coaltree.smc`.
    n_particles : int, default 50
        Number of particles in each run of sequential Monte Carlo.
    n_runs : int, default 1
        Number of independent runs of sequential Monte Carlo.
    n_chains : int, default 4
        Number of Markov chains, see :func:`coaltree.mcmc`.
    n_heated : int, default 0
        Number of heated chains next to each Markov chain, for posteriors with several separate groups of trees; see
        :func:`coaltree.mcmc`.
    n_samples : int or "auto", default 1000
        Number of trees that each chain records, including the warm-up. With "auto" the chains run until they have converged or
        `max_seconds` have passed; ``sample_.verdict`` says which.
    max_seconds : float, optional
        Time limit of ``n_samples="auto"``, by default 600.
    draw_parameters : bool, optional
        Whether the chains of ``inference="mcmc"`` draw the parameters together with the trees; by default only if the table has
        characters. Predictions are then averaged over up to 200 trees of that sample. Otherwise they are averaged over 50
        other trees, which short chains draw together with their parameters.
    model : {"jc", "f81", "mk"}, optional
        The model of characters, such as the sites of an alignment: "jc" and "mk" have equally likely states, "f81" has
        frequencies that are fitted or drawn. A partition has one rate, which is drawn by Markov chains and otherwise fitted, and
        no noise. By default "mk" for standard (morphological) characters and "f81" for all others, also where only those
        that are present were recorded. Columns are characters if `coaltree.read_characters` has read them, or, for other
        tables, if this parameter, `rates`, `partitions` or `ascertainment` is given: all categorical columns, and those of
        whole numbers from 0 to 9 unless `categorical_features` says otherwise.
    rates : {"equal", "gamma"}, optional
        How the rates of characters vary within a partition: not at all, the default, or by four equally likely categories of a
        gamma distribution, whose shape is drawn or fitted (Yang, 1994).
    partitions : mapping or path, optional
        Names of partitions with lists of their columns, or a file of partitions as for RAxML or IQ-TREE, for the columns in the
        order of the table. Columns in none of them form one more. By default there is one for each datatype.
    ascertainment : {"variable", "present", "all"} or mapping, optional
        Which characters were recorded: those in which rows differ, those that some row has, or all; or a mapping of partitions to
        these. "present" needs states such as 0 and 1, or absent and present. By default "variable" for standard characters and
        "present" for restriction sites and cognates, unless the table has columns that would then be absent; `remarks_` says
        so. Columns that were not recorded according to this parameter are left out.
    summary : {"ccd0", "mcc", "consensus"}, default "ccd0"
        The tree that represents a sample: the best tree of the conditional clade distribution CCD0, the sampled tree of
        maximum clade credibility, or the majority-rule consensus.
    summary_heights : {"mean", "median"}, default "mean"
        The height of a clade of that tree: its mean or its median over the sampled trees that have it.
    real_process : {"ornstein-uhlenbeck", "brownian"} or Process, default "ornstein-uhlenbeck"
        How real columns diffuse: with a pull towards the mean, or without bounds, as in the paper. A `Process` is used with its
        own parameters; `covariance` and `noise` do not apply to it. The page "A process of your own" shows how to define one.
    categorical_process : Process, optional
        A process for the categorical columns, which are codes 0, 1, 2, ... in the order of the categories; by default
        `Multinomial`.
    covariance : {"full", "diagonal", "spherical"}, optional
        Covariance of the real columns in predictions. "full": covariance matrices of diffusion and noise. "diagonal": one
        variance per column. "spherical": one variance for all columns. By default "full"; "diagonal" for more than 100 real
        columns, for Brownian motion, and if `noise` is given. The search for the tree uses no covariance matrices.
    noise : float, optional
        Share of the variance of real columns that is noise, from 0 to less than 1. By default 0.5 for the tree, and drawn for
        predictions. With 0, categorical columns have no noise either. If noise is given, the tree weights real columns by their
        variance, by default by their range.
    categorical_features : "from_dtype", None, array-like of bool, int or str, default "from_dtype"
        Which columns are categorical: by dtype (categories, text and booleans), a mask, indices or names.
    unseen_categories : {"missing", "error"}, default "missing"
        How to treat categories of new rows that did not occur in the fit: as missing, or as an error.
    standardize : bool or "power", default True
        Whether to scale real columns to mean 0 and standard deviation 1. "power" first applies the Yeo-Johnson transform, as
        scikit-learn's `PowerTransformer` does, which helps with heavy tails. Real cells are then filled with their median, and
        intervals are those of the transformed cell in the units of the column. Where the transform is bounded, a straight line
        continues it beyond the range of the fit.
    n_jobs : int, optional
        Number of threads; -1 uses all processors. The result does not depend on it.
    client : distributed.Client or str, optional
        A Dask cluster for the neighbour search, for particles and chains, and for predictions of thousands of new rows: a Dask
        client, the address of a scheduler such as "tcp://host:8786", or "local:2" for two worker processes on this machine. A
        connection opened from an address is closed after each fit or prediction. The result does not depend on it. Model files
        do not store it.
    random_state : int, Generator, RandomState or None, default None
        Random state of sequential Monte Carlo, of Markov chains, and of the draws that predictions are averaged over. For these
        draws None means a fixed seed, so the same table gives the same predictions. Greedy trees do not depend on it.
    verbose : int, default 0
        Above 0, progress is shown on standard error."""

SHARED_ATTRIBUTES = """process_ : Process
        The process with its parameters, over the encoded columns: real ones first, then categorical ones.
    parameters_ : dict
        The parameters of every column in the search for the tree, by name and in the units of the column. ``signal`` tells how
        much a column matters: it is the correlation, over pairs of rows, between being alike in the column and being alike in
        the others, beyond chance.
    prediction_parameters_ : dict
        The parameters of every column in predictions, by name and in the units of the column: means over the draws, which are
        made when first needed. Columns are sorted by signal, the largest first. If draws have normal scores, ``mean`` is the
        value whose score has the mean.
    search_ : str
        How greedy inference searched for partners, "exact" or "neighbors"; only with ``inference="greedy"``.
    neighbor_recall_ : float or None
        Quality of the neighbour search, see `coaltree.GreedyResult`; None after an exact search, or if the table had so few
        rows that the neighbour search left all of them to the exact search.
    encoding_ : Encoding
        How the columns were encoded.
    sample_ : SMCResult or MCMCResult
        The sample of trees with its diagnostics; not with ``inference="greedy"``, nor for Markov chains of one row.
    log_evidence_ : float
        Log of the estimated evidence ``p(x)`` of the encoded table, averaged over all trees; only with ``inference="smc"``.
    log_joint_ : float
        ``log p(x, tree)`` of the encoded table and `tree_` under `process_`. It is lower than that of the greedy tree, because
        merges that the data cannot order are spread over heights instead of at the most probable ones.
    log_likelihood_ : float
        ``log p(x | tree)`` of the encoded table.
    log_ratios_ : ndarray of shape (n_samples - 1,)
        For each merge, the log likelihood ratio of one tree against two independent ones.
    remarks_ : list of str
        Remarks about the table and the fit; also issued as warnings.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of str
        Names of the columns, if they are all strings."""


def add_shared_docs(estimator: type[Estimator]) -> type[Estimator]:
    """Insert the documentation of shared parameters and attributes into the docstring of an estimator."""
    text = estimator.__doc__ or ""  # none with python -OO
    text = text.replace("{shared parameters}", SHARED_PARAMETERS)
    estimator.__doc__ = text.replace("{shared attributes}", SHARED_ATTRIBUTES)
    return estimator


class CoalescentEstimator(BaseEstimator, Settings):
    """An estimator that holds a `FittedModel`; subclasses inherit their parameters from settings."""

    _model: FittedModel
    _frame_kind: FrameKind

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the tree of a table.

        Parameters
        ----------
        X : frame or array-like of shape (n_samples, n_features)
            NaN, None, pd.NA and polars' nulls are missing cells; a set of categories is a cell that has one of them. A Dask
            array is computed block by block.
        y : ignored

        Returns
        -------
        self
        """
        check_parameter("verbose", self.verbose)
        X = compute_dask(X)
        table = read_columns(X, self.categorical_features)
        validate_data(self, X, skip_check_array=True)
        self._fit_table(table, print_progress(type(self).__name__) if self.verbose else None)
        names = getattr(self, "feature_names_in_", None)
        self._model.feature_names = None if names is None else tuple(map(str, names))
        self._frame_kind = FrameKind.from_table(X)
        for remark in self.remarks_:
            warnings.warn(remark, InputWarning, stacklevel=2)
        return self

    def _fit_table(self, table: Table, progress: Progress | None = None) -> Self:
        """Fit the model to columns that have been read, as the command line does."""
        self._set_fitted_attributes(fit_model(table, self._settings(), progress))
        return self

    def _settings(self) -> Settings:
        """Return the current parameters."""
        kind = SETTINGS[self._estimator]
        return kind(**{name: getattr(self, name) for name in parameter_names(kind)})

    def _set_fitted_attributes(self, model: FittedModel) -> None:
        self._model = model
        self.tree_ = model.tree
        self.process_ = model.process
        self.parameters_ = model.parameters
        self.encoding_ = model.encoding
        self.log_joint_ = model.result.log_joint
        self.log_likelihood_ = model.result.log_likelihood
        self.log_ratios_ = model.result.log_ratios
        self.remarks_ = model.remarks
        for name in ("sample_", "log_evidence_", "search_", "neighbor_recall_"):  # of an earlier fit
            self.__dict__.pop(name, None)
        if model.sample is None:
            self.search_, self.neighbor_recall_ = model.search, model.neighbor_recall
        else:
            self.sample_ = model.sample
        if model.log_evidence is not None:
            self.log_evidence_ = model.log_evidence
        self._frame_kind = FrameKind(index=list(model.tree.leaf_names))  # `fit` knows the kind of X

    @classmethod
    def _from_model(cls, model: FittedModel) -> Self:
        """Return the estimator that holds a fitted model."""
        settings = model.settings
        estimator = cls(**{name: getattr(settings, name) for name in parameter_names(type(settings))})
        estimator.n_features_in_ = len(model.encoding.column_names)
        if model.feature_names is not None:
            estimator.feature_names_in_ = np.array(model.feature_names, dtype=object)
        estimator._set_fitted_attributes(model)
        return estimator

    @property
    def prediction_parameters_(self) -> dict[str, dict[str, Any]]:
        """The parameters of every column in predictions, by name and in the units of the column; means over the draws.

        Columns with the largest signal come first, see ``parameters_``.
        """
        check_is_fitted(self)
        return self._model.prediction_parameters

    def save(self, path: str | Path) -> None:
        """Write the fitted model into a file, for :func:`coaltree.load_model`.

        The file is written completely or not at all. Nothing in it is pickled, and the same model makes the same file. A
        ``random_state`` that is a generator is not kept.

        Parameters
        ----------
        path : str or Path
            The file, for example ``"model.coaltree"``; an earlier one of that name is replaced.

        Raises
        ------
        InputError
            If it cannot be written.
        """
        check_is_fitted(self)
        if type(self).__name__ != self._estimator:  # a subclass may have other attributes to store
            raise InputError(f"A {type(self).__name__} cannot be saved: only {self._estimator} itself can.")
        write_model(self._model, path, self._settings())

    def _read_rows(self, X: Any) -> NewRows:
        """Read new rows, matching their columns with those of the fit."""
        check_is_fitted(self)
        return self._model.read_rows(X, self.unseen_categories)

    def __sklearn_clone__(self) -> Self:
        """Let a copy share the connection to a cluster, which cannot be copied."""
        bare = copy.copy(self)
        bare.client = None
        twin: Self = super(CoalescentEstimator, bare).__sklearn_clone__()
        twin.client = self.client
        return twin

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the connection to a cluster, which belongs to this process; keep an address."""
        state: dict[str, Any] = super().__getstate__()
        return state | {"client": self.client if isinstance(self.client, str) else None}

    def __dir__(self) -> list[str]:
        """Leave out `prediction_parameters_` until trees have been drawn.

        scikit-learn asks for the value of every name here, and shows them in its diagram; this one would take seconds or minutes.
        """
        model = vars(self).get("_model")
        lazy = set() if model is not None and model.known_predictor is not None else {"prediction_parameters_"}
        return [name for name in object.__dir__(self) if name not in lazy and hasattr(self, name)]

    def _repr_html_inner(self) -> str:
        return str(super()._repr_html_inner()) + self._facts_html()

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        return bundle | ({"text/html": bundle["text/html"] + self._facts_html()} if "text/html" in bundle else {})

    def _facts_html(self) -> str:
        if not hasattr(self, "_model"):
            return ""
        return f"<div>{', '.join(f'{name} {shorten_value(value)}' for name, value in self._facts().items())}</div>"

    def _facts(self) -> dict[str, object]:
        """Return the facts that a notebook shows below scikit-learn's diagram."""
        model, tree = self._model, self._model.tree
        facts: dict[str, object] = {"rows": tree.n_leaves, "columns": len(model.encoding.column_names)}
        facts |= {"root height": tree.heights[-1], "log joint": model.result.log_joint}
        if describe_zero_heights(tree):
            facts["merges at height 0"] = f"{count_zero_heights(tree.merge_heights):,}"
        if isinstance(model.sample, MCMCResult):
            facts["chains converged"] = "yes" if model.sample.converged else "no"
        return facts | ({} if model.log_evidence is None else {"log evidence": model.log_evidence})

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags
