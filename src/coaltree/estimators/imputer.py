"""Imputation as an estimator."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, Self

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.base import TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import _check_feature_names_in

from .._random import as_generator
from .._validation import check_count
from ..errors import InputError
from ..predict.cells import CategoricalCells, GaussianCodes, Predictive, RealCells
from ..process.base import Process
from ..process.predictions import Predictions
from ..table.columns import RealColumn, Table, missing_cells
from ..table.fill import fill_cells, take_columns
from ..table.inputs import compute_dask
from ..table.scaling import ColumnScale
from .base import FloatArray, Means, NewRows, Progress, check_fitted
from .scikit import ScikitModel

BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.intp]

TREE_SHARE = 0.2  # of the work of a fit is thought to be that of the tree; the rest draws others


class CoalescentImputer(TransformerMixin, ScikitModel):
    """Fill missing cells from trees over the rows.

    A tree is found as by `CoalescentClustering`, and two short Markov chains that begin there draw 50 trees, each with parameters
    of its own, over at most 3,000 rows, a random part of more. A row of the fit is filled where each of these trees has it; other
    rows are placed in each by what is observed of them, over all places by their probability. Real cells get their mean (their
    median under ``standardize="power"``), categorical ones their most probable category. Integers stay integers, categories keep
    their labels, and other cells are not touched.

    Parameters
    ----------
    inference : {"greedy", "smc", "mcmc"}, default "greedy"
        How the tree is found at which the draws begin: one good tree; a weighted sample of trees by sequential Monte Carlo, for
        up to some hundred rows; or a sample by Markov chains.
    rule : {"rate1", "max-prob", "min-duration"}, default "rate1"
        Which pair merges next in greedy inference, see :func:`coaltree.greedy`.
    proposal : {"post-post", "race", "prior-post", "prior-prior"}, default "post-post"
        How sequential Monte Carlo draws merges, see :func:`coaltree.smc`.
    n_particles : int, default 50
        Particles in each of its runs.
    n_runs : int, default 1
        Independent runs.
    n_chains : int, default 4
        Markov chains, see :func:`coaltree.mcmc`.
    n_samples : int, default 1000
        Trees that each of them records, those of its warm-up among them.
    summary : {"mcc", "consensus"}, default "mcc"
        Which tree stands for the sample in `tree_`.
    draw_parameters : bool, default False
        Whether the chains of ``inference="mcmc"`` draw the parameters together with the trees. Cells are then filled from up to
        200 trees of that sample, and not from 50 of short chains.
    real_process : {"ornstein-uhlenbeck", "brownian"} or Process, default "ornstein-uhlenbeck"
        How real columns diffuse: with a pull towards the mean, or freely, as in the paper. A process of your own is used with
        the parameters it has; `covariance` and `noise` do not apply to it. See the page "A process of your own" of the docs.
    categorical_process : Process, optional
        A process for categorical columns, which it sees as codes 0, 1, 2, ... in the order of the categories; by default
        `Multinomial`.
    covariance : {"full", "diagonal", "spherical"}, optional
        What real columns have in predictions: covariance matrices of their diffusion and their noise, one variance each, or one
        for all. By default the first. More than 100 real columns, Brownian motion and given `noise` have no matrices, and one
        variance each instead. The tree itself is found without matrices.
    noise : float, optional
        Share of the real columns' variance that is noise, from 0 to less than 1. By default 0.5 for the tree, and drawn
        for predictions. With 0, categorical columns have no noise either.
    categorical_features : "from_dtype", None, array-like of bool, int or str, default "from_dtype"
        Which columns are categorical: by dtype (categories, text and booleans), a mask, indices or names.
    unseen_categories : {"missing", "error"}, default "missing"
        What to do with categories that did not occur in the fit: they say nothing, and stay as they are; or an error.
    standardize : bool or "power", default True
        Bring real columns to mean 0 and standard deviation 1 first. With "power" they are first made as Gaussian as they can be,
        by the transform of Yeo and Johnson as in scikit-learn's `PowerTransformer`: for columns with heavy tails. Real cells are
        then filled with their median, and intervals are those of the transformed cell, brought back to the column's units. Where
        the transform has a bound, it goes on in a straight line beyond the largest or smallest value of the fit.
    add_indicator : bool, default False
        Add a column for each column that had missing cells in the fit, which says where they were.
    search : {"auto", "exact", "neighbors"}, default "auto"
        How greedy inference looks for partners: among all, or among near ones; see `coaltree.greedy`.
    refine : bool, default False
        Whether to hang subtrees of the greedy tree that was kept where they fit better, see :func:`coaltree.refine`; for up to
        about a thousand rows.
    n_jobs : int, optional
        Threads. The result does not depend on it.
    client : distributed.Client or str, optional
        Whose workers look for neighbours, take runs and chains, and answer questions about thousands of new rows: a Dask client,
        the address of a scheduler such as "tcp://host:8786", or "local:2" for two worker processes on this machine. What a text
        opens is closed after each fit or question. The result does not depend on it. A model's file does not keep it.
    random_state : int, Generator, RandomState or None, default None
        Source of randomness of sequential Monte Carlo, of Markov chains, and of the draws that cells are filled from. For these
        draws None counts as a fixed seed, so that the same table is filled in the same way.
    verbose : int, default 0
        Above 0, progress is shown on standard error.

    Attributes
    ----------
    tree_ : Tree or SummaryTree
        The tree; leaf i is row i.
    process_ : Process
        The process with its parameters, over the encoded columns.
    parameters_ : dict
        The parameters of every column that the tree was found with, by its name and in its units.
    prediction_parameters_ : dict
        The same of the parameters that cells are filled with: means over the draws, and each column's ``signal``, see
        `CoalescentClustering`.
    log_joint_ : float
        ``log p(x, tree)`` of the encoded table and of `tree_`, with the parameters that were kept.
    search_ : str
        How partners were looked for, "exact" or "neighbors"; only with ``inference="greedy"``.
    neighbors_held_ : float or None
        How good the lists of neighbours were, see `coaltree.GreedyResult`; None after an exact
        search, or if so few rows were left to it from the beginning.
    indicator_features_ : ndarray of int
        The columns that had missing cells in the fit.
    remarks_ : list of str
        What was noticed about the table; also given as warnings.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of str
        Names of the columns, if they are all strings.

    See Also
    --------
    CoalescentClustering : the tree itself, clusters, predictive densities.

    Examples
    --------
    >>> import numpy as np
    >>> from coaltree import CoalescentImputer
    >>> X = np.array([[0.0, 0.1], [0.2, np.nan], [5.0, 5.2], [5.1, 4.9], [0.1, 0.2]])
    >>> filled = CoalescentImputer().fit_transform(X)
    >>> bool(-2 < filled[1, 1] < 2.5)
    True
    """

    _stored_as = "CoalescentImputer"

    def __init__(
        self,
        *,
        inference: str = "greedy",
        rule: str = "rate1",
        proposal: str = "post-post",
        n_particles: int = 50,
        n_runs: int = 1,
        n_chains: int = 4,
        n_samples: int = 1000,
        summary: str = "mcc",
        draw_parameters: bool = False,
        real_process: str | Process = "ornstein-uhlenbeck",
        categorical_process: Process | None = None,
        covariance: str | None = None,
        noise: float | None = None,
        categorical_features: Any = "from_dtype",
        unseen_categories: str = "missing",
        standardize: bool | Literal["power"] = True,
        add_indicator: bool = False,
        search: str = "auto",
        refine: bool = False,
        n_jobs: int | None = None,
        client: Any = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.inference = inference
        self.rule = rule
        self.proposal = proposal
        self.n_particles = n_particles
        self.n_runs = n_runs
        self.n_chains = n_chains
        self.n_samples = n_samples
        self.summary = summary
        self.draw_parameters = draw_parameters
        self.real_process = real_process
        self.categorical_process = categorical_process
        self.covariance = covariance
        self.noise = noise
        self.categorical_features = categorical_features
        self.unseen_categories = unseen_categories
        self.standardize = standardize
        self.add_indicator = add_indicator
        self.search = search
        self.refine = refine
        self.n_jobs = n_jobs
        self.client = client
        self.random_state = random_state
        self.verbose = verbose

    @property
    def indicator_features_(self) -> IntArray:
        """The columns that had missing cells in the fit."""
        check_fitted(self)
        return np.array(self._with_holes, dtype=np.intp)

    def _fit(self, table: Table, progress: Progress | None = None, checkpoint: Path | None = None) -> Self:
        means = Means(progress)
        super()._fit(table, means.stretched(0.0, TREE_SHARE).progress, checkpoint)
        self._draw_trees(means.stretched(TREE_SHARE, 1.0).progress)  # here, not at the first question
        return self

    def transform(self, X: Any) -> Any:
        """Fill the missing cells of a table.

        Rows of the fit, known by their cells, are filled as the fit has them; all others are placed in its trees.

        Parameters
        ----------
        X : frame or array-like of shape (n_rows, n_features)
            Columns of a frame are matched by name.

        Returns
        -------
        frame or ndarray
            Of the kind of X and with the columns of the fit in their order, unless `set_output` asks for another. A cell stays
            missing only in a column without any observed cell in the fit.
        """
        X = compute_dask(X)
        rows = self._new_rows(X)
        filled = _filled(X, rows, self._fills(rows))
        return self._with_indicator(filled, rows.table) if self.add_indicator else filled

    def predictive(self, X: Any) -> Predictive:
        """Return what is known of all cells of a table: mean and standard deviation, or probabilities.

        Parameters
        ----------
        X : frame or array-like of shape (n_rows, n_features)

        Returns
        -------
        Predictive
            By column: ``predictive["height"].sd``, ``predictive["colour"].probability``, and which cells were missing.
        """
        rows = self._new_rows(X)
        at, found = self._cells(rows)
        columns: dict[str, RealCells | CategoricalCells] = {}
        places = self._columns_of(found)
        scales = self._scales_by_position()
        for j, column in enumerate(rows.table.columns):
            missing = missing_cells(column)
            if isinstance(column, RealColumn):
                mean, sd = np.array(column.values), np.where(missing, np.nan, 0.0)
                if j in places:
                    scale, k = scales[j], places[j]
                    mean[at], sd[at] = np.where(
                        missing[at], scale.decode_moments(found.mean[:, k], found.sd[:, k]), [mean[at], sd[at]]
                    )
                    if scale.power is not None:
                        codes, code_sds = scale.encode(column.values), np.zeros(len(missing))
                        codes[at] = np.where(missing[at], found.mean[:, k], codes[at])
                        code_sds[at] = np.where(missing[at], found.sd[:, k], 0.0)
                        columns[column.name] = RealCells(
                            mean, sd, missing, GaussianCodes(codes, code_sds, scale.decode)
                        )
                        continue
                elif self._constants[j] is not None:
                    mean[missing], sd[missing] = self._constants[j], 0.0
                columns[column.name] = RealCells(mean, sd, missing)
            else:
                probability = np.zeros((rows.table.n_rows, len(column.categories)))
                seen = np.flatnonzero(column.codes >= 0)
                probability[seen, column.codes[seen]] = 1.0
                unknown = column.codes < 0
                if j in places:
                    start = places[j]
                    own = found.probability[:, start : start + len(column.categories)]
                    probability[at] = np.where(unknown[at][:, None], own, probability[at])
                elif len(column.categories) == 1:
                    probability[unknown] = 1.0
                columns[column.name] = CategoricalCells(column.categories, probability, missing)
        return Predictive(columns)

    def sample(self, X: Any, n_draws: int = 5, random_state: Any = None) -> list[Any]:
        """Draw the missing cells, for multiple imputation.

        All cells of a table belong together. Each table has one of the trees that were drawn, with its parameters, on which rows
        of the fit are drawn jointly; other rows are drawn each from one place in one of the trees.

        Parameters
        ----------
        X : frame or array-like of shape (n_rows, n_features)
        n_draws : int, default 5
        random_state : int, Generator, RandomState or None, default None

        Returns
        -------
        list of frame or ndarray
            Filled tables of the kind of X.
        """
        n_draws = check_count(n_draws, "n_draws")
        rng = as_generator(random_state)
        X = compute_dask(X)
        rows = self._new_rows(X)
        at = np.flatnonzero(np.isnan(rows.matrix).any(axis=1))
        predictor = self._predictor
        known = at if predictor.is_fit(rows.matrix) else predictor.rows_of_fit(rows.matrix)[at]
        drawn = np.empty((n_draws, len(at), rows.matrix.shape[1]))
        old, new = np.flatnonzero(known >= 0), np.flatnonzero(known < 0)
        if len(old):
            distinct, place = np.unique(known[old], return_inverse=True)
            drawn[:, old] = predictor.draw_fitted(distinct, int(n_draws), rng)[:, place]
        if len(new):
            drawn[:, new] = predictor.few.draw(rows.matrix[at[new]], int(n_draws), rng)
        return [_filled(X, rows, self._fills_from(rows.table, at, table)) for table in drawn]

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the names of the columns that come out.

        Parameters
        ----------
        input_features : array-like of str, optional
            Names of the columns that go in, where the fit had none.

        Returns
        -------
        ndarray of str
        """
        check_fitted(self)
        names = _check_feature_names_in(self, input_features)
        if not self.add_indicator:
            return np.asarray(names, dtype=object)
        return np.array([*names, *(f"missingindicator_{names[j]}" for j in self.indicator_features_)], dtype=object)

    def _cells(self, rows: NewRows) -> tuple[IntArray, Predictions]:
        """Return the rows with missing cells in the columns that take part, and what the model says of their cells."""
        at = np.flatnonzero(np.isnan(rows.matrix).any(axis=1))
        return at, self._expected_cells(rows.matrix[at])

    def _columns_of(self, found: Predictions) -> dict[int, int]:
        """Return for each column of the table that takes part where it begins in the predictions."""
        places: dict[int, int] = {}
        encoding, n_real, n_categorical = self.encoding_, 0, 0
        for j, (kind, informative) in enumerate(zip(encoding.kinds, encoding.informative, strict=True)):
            if kind == "real" and informative:
                places[j] = n_real
                n_real += 1
            elif informative:
                places[j] = int(found.start[n_categorical])
                n_categorical += 1
        return places

    def _scales_by_position(self) -> dict[int, ColumnScale]:
        """Return how each real column of the table is encoded."""
        real = (j for j, kind in enumerate(self.encoding_.kinds) if kind == "real")
        return dict(zip(real, self.encoding_.column_scales, strict=True))

    def _fills(self, rows: NewRows) -> dict[int, tuple[IntArray, Any]]:
        """Return the best values of all missing cells, by the position of their column."""
        if not _any_missing(rows.table).any():
            return {}
        at, found = self._cells(rows)
        best = np.full((len(at), rows.matrix.shape[1]), np.nan)
        best[:, found.real] = found.mean
        for k, column in enumerate(found.categorical):
            best[:, column] = found.probability[:, found.start[k] : found.start[k + 1]].argmax(axis=1)
        return self._fills_from(rows.table, at, best)

    def _fills_from(self, table: Table, at: IntArray, values: FloatArray) -> dict[int, tuple[IntArray, Any]]:
        """Return encoded cells of some rows as values in the table's units, where its cells are missing."""
        fills: dict[int, tuple[IntArray, Any]] = {}
        encoding = self.encoding_
        n_real = sum(
            kind == "real" and bool(used) for kind, used in zip(encoding.kinds, encoding.informative, strict=True)
        )
        real, categorical, scales = 0, n_real, self._scales_by_position()
        for j, column in enumerate(table.columns):
            missing = missing_cells(column)
            own = np.flatnonzero(missing[at])
            if isinstance(column, RealColumn):
                if encoding.informative[j]:
                    fills[column.index] = (at[own], scales[j].decode(values[own, real]))
                    real += 1
            elif encoding.informative[j]:
                codes = values[own, categorical].astype(np.intp)
                fills[column.index] = (at[own], [column.categories[code] for code in codes])
                categorical += 1
            if not encoding.informative[j] and self._constants[j] is not None:
                fills[column.index] = (np.flatnonzero(missing), [self._constants[j]] * int(missing.sum()))
        return fills

    def _with_indicator(self, filled: Any, table: Table) -> Any:
        flags = {
            f"missingindicator_{table.columns[j].name}": missing_cells(table.columns[j])
            for j in self.indicator_features_
        }
        frame = nw.from_native(filled, eager_only=True, pass_through=True)
        if not isinstance(frame, nw.DataFrame):
            return np.hstack([filled, np.column_stack(list(flags.values())).astype(filled.dtype)]) if flags else filled
        added = [
            nw.new_series(name, cells, dtype=nw.Boolean, backend=frame.implementation) for name, cells in flags.items()
        ]
        if frame.implementation.is_pandas_like():
            import pandas as pd

            own = pd.DataFrame(flags, index=filled.index)
            return pd.concat([filled, own], axis=1)
        return frame.with_columns(*added).to_native() if added else filled

    def _check_parameters(self, n_rows: int) -> None:
        super()._check_parameters(n_rows)
        if not isinstance(self.add_indicator, (bool, np.bool_)):
            raise InputError(f"add_indicator is {self.add_indicator!r}; it must be True or False.")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _filled(X: Any, rows: NewRows, fills: dict[int, tuple[IntArray, Any]]) -> Any:
    return take_columns(fill_cells(X, fills), [column.index for column in rows.table.columns])


def _any_missing(table: Table) -> BoolArray:
    return np.asarray(np.logical_or.reduce([missing_cells(column) for column in table.columns]))
