"""Imputation as an estimator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.base import TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from .._parameters import Integer, check_parameter
from .._progress import Progress
from .._random import as_generator
from ..errors import InputError
from ..predict.mixtures import LEVELS
from ..predict.pooling import PooledEstimates, pool_analyses
from ..predict.results import CategoricalCells, CellCodes, DateCells, Predictive, RealCells
from ..process.predictions import Predictions
from ..table.columns import RealColumn, Table, incomplete_cells, missing_cells
from ..table.fill import fill_cells, take_columns
from ..table.inputs import compute_dask
from ..table.scaling import ColumnScale
from ..workflow.fit import share_progress
from ..workflow.model import NewRows
from ..workflow.settings import ImputationSettings
from .base import CoalescentEstimator, add_shared_docs

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

TREE_SHARE = 0.2  # estimated share of the search for the tree in a fit; the rest draws trees for predictions


@add_shared_docs
class CoalescentImputer(TransformerMixin, CoalescentEstimator, ImputationSettings):
    """Fill missing cells from trees over the rows.

    A tree is found as by `CoalescentClustering`. Two short Markov chains that start at it draw `n_draws` trees, each with its
    own parameters, over at most 3,000 rows, chosen at random from larger tables. A row of the fit is filled from its place in
    each of these trees; other rows are placed in each tree by their observed cells, averaged over all branches.

    Real cells get their mean (their median with ``standardize="power"``), categorical cells their most probable category. A cell
    that is a set of categories gets the most probable of them. Integers stay integers, categories keep their labels, and observed
    cells do not change.

    Parameters
    ----------
    add_indicator : bool, default False
        Whether to add, for each column with missing cells in the fit, a column that marks its missing cells.
    n_draws : int, default 50
        Number of trees that cells are filled from, rounded up to an even one; more take longer. Large tables get fewer.
    {shared parameters}

    Attributes
    ----------
    tree_ : Tree or SummaryTree
        The tree; leaf i is row i.
    indicator_features_ : ndarray of int
        The columns with missing cells in the fit.
    {shared attributes}

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

    _X: Any = None

    @property
    def indicator_features_(self) -> IntArray:
        """The columns with missing cells in the fit."""
        check_is_fitted(self)
        return np.array(self._model.incomplete_columns, dtype=np.intp)

    def _fit_table(self, table: Table, progress: Progress | None = None) -> Self:
        super()._fit_table(table, share_progress(progress, 0.0, TREE_SHARE))
        self._model.draw_trees(share_progress(progress, TREE_SHARE, 1.0))  # now rather than at the first prediction
        return self

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: D102  inherited
        super().fit(X, y)
        self._X = X  # for `pool`
        return self

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_X"}

    def transform(self, X: Any) -> Any:
        """Fill the missing cells of a table.

        Rows of the fit, recognised by their cells, are filled from their places in the trees; other rows are placed in the
        trees first.

        Parameters
        ----------
        X : frame or array-like of shape (n_rows, n_features)
            Columns of a frame are matched by name.

        Returns
        -------
        frame or ndarray
            The same kind as X, with the columns of the fit in their order, unless `set_output` says otherwise. A cell stays
            missing only in a column without any observed cell in the fit.
        """
        X = compute_dask(X)
        rows = self._read_rows(X)
        filled = _fill(X, rows, self._fills(rows))
        return self._with_indicator(filled, rows.table) if self.add_indicator else filled

    def predictive(self, X: Any) -> Predictive:
        """Return the predictive distribution of all cells of a table: mean, standard deviation and quantiles, or probabilities.

        Parameters
        ----------
        X : frame or array-like of shape (n_rows, n_features)

        Returns
        -------
        Predictive
            By column: ``predictive["height"].sd``, ``predictive["height"].interval(0.9)``,
            ``predictive["colour"].probability``, and which cells are missing. Dates and times have dates as mean and quantiles
            (``datetime64[us]``) and a duration as standard deviation; ``predictive["born"].days`` has numbers of days.
        """
        rows = self._read_rows(X)
        positions, predictions = self._cells(rows, quantiles=True)
        columns: dict[str, RealCells | DateCells | CategoricalCells] = {}
        places = self._column_positions(predictions)
        scales = self._scales_by_position()
        has_intervals = predictions.quantiles is not None and len(predictions.quantiles.values) > 0
        concentrations = self._model.interval_concentrations if has_intervals else np.ones(len(predictions.real))
        for j, column in enumerate(rows.table.columns):
            missing = missing_cells(column)
            if isinstance(column, RealColumn):
                mean, sd, codes = np.array(column.values), np.where(missing, np.nan, 0.0), None
                if j in places:
                    scale, k = scales[j], places[j]
                    mean[positions], sd[positions] = np.where(
                        missing[positions],
                        scale.decode_moments(predictions.mean[:, k], predictions.sd[:, k]),
                        [mean[positions], sd[positions]],
                    )
                    codes = _cell_codes(predictions, k, np.flatnonzero(missing[positions]), scale, concentrations[k])
                elif self._model.constants[j] is not None:
                    mean[missing], sd[missing] = self._model.constants[j], 0.0
                cells = RealCells(mean, sd, missing, codes)
                columns[column.name] = DateCells(cells) if column.time else cells
            else:
                missing = incomplete_cells(column)
                probability = np.zeros((rows.table.n_rows, len(column.categories)))
                observed_codes = np.flatnonzero(column.codes >= 0)
                probability[observed_codes, column.codes[observed_codes]] = 1.0
                unknown = column.codes < 0
                if j in places:
                    start = places[j]
                    shares = predictions.probability[:, start : start + len(column.categories)]
                    probability[positions] = np.where(unknown[positions][:, None], shares, probability[positions])
                elif len(column.categories) == 1:
                    probability[unknown] = 1.0
                columns[column.name] = CategoricalCells(column.categories, probability, missing)
        return Predictive(columns)

    def sample(self, X: Any, n_draws: int = 5, random_state: Any = None) -> list[Any]:
        """Draw the missing cells, for multiple imputation.

        Each table is one joint draw: it uses one of the trees, with its parameters, on which rows of the fit are drawn
        together. Other rows are drawn one by one, each from one branch of one tree.

        Parameters
        ----------
        X : frame or array-like of shape (n_rows, n_features)
        n_draws : int, default 5
        random_state : int, Generator, RandomState or None, default None

        Returns
        -------
        list of frame or ndarray
            Filled tables of the same kind as X.
        """
        check_parameter("n_draws", n_draws)
        rng = as_generator(random_state)
        X = compute_dask(X)
        rows = self._read_rows(X)
        at = np.flatnonzero(self._model.encoding.incomplete_cells(rows.matrix).any(axis=1))
        tables = self._model.sample_cells(rows.matrix, int(n_draws), rng)
        return [_fill(X, rows, self._fills_from(rows.table, at, values)) for values in tables]

    def pool(
        self, analysis: Callable[[Any], Any], n: int = 20, *, X: Any = None, random_state: Any = None
    ) -> PooledEstimates:
        """Run an analysis on drawn tables, and pool what it finds by Rubin's rules: eq. (9.11).

        Parameters
        ----------
        analysis : callable
            Is called with a filled table, and returns estimates with their variances (two numbers, arrays or mappings of names;
            variances may be a covariance matrix), or a fitted model of statsmodels. A fitted linear model of scikit-learn, or
            estimates alone, have no variances: then there are no standard errors either.
        n : int, default 20
            Number of tables, at least 2.
        X : frame or array-like of shape (n_rows, n_features), optional
            By default the table of the fit. A model that was loaded from a file does not have it.
        random_state : int, Generator, RandomState or None, default None

        Returns
        -------
        PooledEstimates

        Raises
        ------
        InputError
            If the analysis fails on a table; the message says on which and why.

        Examples
        --------
        >>> import numpy as np
        >>> from coaltree import CoalescentImputer
        >>> X = np.array([[0.0, 0.1], [0.2, np.nan], [5.0, 5.2], [5.1, 4.9], [0.1, 0.2]])
        >>> mean = lambda table: (table[:, 1].mean(), table[:, 1].var(ddof=1) / len(table))
        >>> pooled = CoalescentImputer().fit(X).pool(mean, n=5, random_state=0)
        >>> low, high = pooled.interval(0.95)
        >>> bool(low[0] < 2 < high[0])
        True
        """
        check_parameter("n", n, Integer(2))
        check_is_fitted(self)
        X = self._X if X is None else X
        if X is None:
            raise InputError("The table of the fit is not in a model file; give it as pool(analysis, X=table).")
        return pool_analyses(analysis, self.sample(X, int(n), random_state), int(n))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the names of the columns that `transform` returns.

        Parameters
        ----------
        input_features : array-like of str, optional
            Names of the input columns, if the fit had none.

        Returns
        -------
        ndarray of str
        """
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        if not self.add_indicator:
            return np.asarray(names, dtype=object)
        return np.array([*names, *(f"missingindicator_{names[j]}" for j in self.indicator_features_)], dtype=object)

    def _cells(self, rows: NewRows, quantiles: bool) -> tuple[IntArray, Predictions]:
        """Return the rows with missing or partly known cells in the columns in use, and the predictions for their cells."""
        at = np.flatnonzero(self._model.encoding.incomplete_cells(rows.matrix).any(axis=1))
        return at, self._model.expected_cells(rows.matrix[at], self.client, quantiles)

    def _column_positions(self, predictions: Predictions) -> dict[int, int]:
        """Return where each column in use begins in the predictions, by its position in the table."""
        places: dict[int, int] = {}
        encoding, n_real, n_categorical = self._model.encoding, 0, 0
        for j, (kind, informative) in enumerate(zip(encoding.kinds, encoding.informative, strict=True)):
            if kind == "real" and informative:
                places[j] = n_real
                n_real += 1
            elif informative:
                places[j] = int(predictions.start[n_categorical])
                n_categorical += 1
        return places

    def _scales_by_position(self) -> dict[int, ColumnScale]:
        """Return the scale of each real column, by its position in the table."""
        real = (j for j, kind in enumerate(self._model.encoding.kinds) if kind == "real")
        return dict(zip(real, self._model.encoding.column_scales, strict=True))

    def _fills(self, rows: NewRows) -> dict[int, tuple[IntArray, Any]]:
        """Return the best values of all missing cells, by the position of their column."""
        if not any(incomplete_cells(column).any() for column in rows.table.columns):
            return {}
        scales = {j: scale for j, scale in self._scales_by_position().items() if scale.power is not None}
        positions, predictions = self._cells(rows, quantiles=bool(scales))
        best = np.full((len(positions), rows.matrix.shape[1]), np.nan)
        best[:, predictions.real] = predictions.mean
        # After a power transform the median: it does not change with the transform, and tails do not distort it.
        places = self._column_positions(predictions)
        for j, scale in scales.items():
            if j in places:
                codes = _cell_codes(predictions, places[j], np.arange(len(positions)), scale)
                best[:, predictions.real[places[j]]] = codes.quantile(0.0)
        for k, column in enumerate(predictions.categorical):
            best[:, column] = predictions.probability[:, predictions.start[k] : predictions.start[k + 1]].argmax(axis=1)
        return self._fills_from(rows.table, positions, best)

    def _fills_from(self, table: Table, positions: IntArray, values: FloatArray) -> dict[int, tuple[IntArray, Any]]:
        """Return encoded values of some rows in the table's units, for its missing cells."""
        fills: dict[int, tuple[IntArray, Any]] = {}
        encoding = self._model.encoding
        n_real = sum(
            kind == "real" and bool(used) for kind, used in zip(encoding.kinds, encoding.informative, strict=True)
        )
        real, categorical, scales = 0, n_real, self._scales_by_position()
        for j, column in enumerate(table.columns):
            missing = incomplete_cells(column)
            rows_missing = np.flatnonzero(missing[positions])
            if isinstance(column, RealColumn):
                if encoding.informative[j]:
                    decoded = scales[j].decode(values[rows_missing, real])
                    if column.time:
                        decoded = _keep_clock(decoded, scales[j].decode(self._model.matrix[:, real]))
                    fills[column.index] = (positions[rows_missing], decoded)
                    real += 1
            elif encoding.informative[j]:
                codes = values[rows_missing, categorical].astype(np.intp)
                fills[column.index] = (positions[rows_missing], [column.categories[code] for code in codes])
                categorical += 1
            if not encoding.informative[j] and self._model.constants[j] is not None:
                fills[column.index] = (np.flatnonzero(missing), [self._model.constants[j]] * int(missing.sum()))
        return fills

    def _with_indicator(self, filled: Any, table: Table) -> Any:
        flags = {
            f"missingindicator_{table.columns[j].name}": missing_cells(table.columns[j])
            for j in self.indicator_features_
        }
        frame = nw.from_native(filled, eager_only=True, pass_through=True)
        if not isinstance(frame, nw.DataFrame):
            return np.hstack([filled, np.column_stack(list(flags.values())).astype(filled.dtype)]) if flags else filled
        series = [
            nw.new_series(name, cells, dtype=nw.Boolean, backend=frame.implementation) for name, cells in flags.items()
        ]
        if frame.implementation.is_pandas_like():
            import pandas as pd

            indicators = pd.DataFrame(flags, index=filled.index)
            return pd.concat([filled, indicators], axis=1)
        return frame.with_columns(*series).to_native() if series else filled

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _keep_clock(days: FloatArray, known: FloatArray) -> FloatArray:
    """Move times to the nearest with the time of day that all known ones have, of dates midnight; as they are if these differ."""
    # To the second, because encoding costs digits.
    dates, seconds = np.divmod(np.rint(known[~np.isnan(known)] * 86_400), 86_400)
    if len(np.unique(seconds)) != 1 or len(np.unique(dates)) == 1:
        return days
    clock = seconds[0] / 86_400
    return np.asarray(np.rint(days - clock) + clock)


def _cell_codes(
    found: Predictions, k: int, rows: IntArray, scale: ColumnScale, concentration: float = 1.0
) -> CellCodes:
    """Return the distributions of the cells of some rows in the k-th real column."""
    quantiles = np.full((len(rows), len(LEVELS)), np.nan)
    if found.quantiles is not None:
        at = found.quantiles.at[rows, k]
        known = (at >= 0) & np.isfinite(found.sd[rows, k])
        quantiles[known] = found.quantiles.values[at[known]]
    return CellCodes(found.mean[rows, k], found.sd[rows, k], quantiles, scale.decode, float(concentration))


def _fill(X: Any, rows: NewRows, fills: dict[int, tuple[IntArray, Any]]) -> Any:
    return take_columns(fill_cells(X, fills), [column.index for column in rows.table.columns])
