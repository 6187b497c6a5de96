"""Outlier detection as an estimator."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import OutlierMixin
from sklearn.utils.validation import check_is_fitted

from .._parameters import check_parameter
from .._progress import Progress
from ..predict.outliers import find_limit
from ..report.explanations import Explanations, explain_rows
from ..table.columns import Table
from ..table.inputs import FrameKind
from ..workflow.fit import share_progress
from ..workflow.model import FittedModel
from ..workflow.settings import OutlierSettings
from .base import CoalescentEstimator, add_shared_docs

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

AUTO_SHARE = 0.01  # of typical rows are outliers with contamination="auto", if scores have an exponential tail
TREE_SHARE = 0.2  # estimated share of the search for the tree in a fit; the rest draws trees for predictions


@add_shared_docs
class CoalescentOutlierDetector(OutlierMixin, CoalescentEstimator, OutlierSettings):
    """Outlier detection with trees over the rows.

    A tree is found as by `CoalescentClustering`, and short Markov chains that start at it draw trees with their parameters, over
    at most 3,000 rows, chosen at random from larger tables. The score of a row is how far its density is below that of the
    typical row, on average over three widths of the density: with little noise added to each cell, what is next to the row
    counts, with much noise the distance from the middle of the table. Rows of the fit, which are recognised by their cells,
    are left out of the trees. Tables may have categories and missing cells: these are filled with what the rest of their row
    predicts.

    Parameters
    ----------
    contamination : float or "auto", default "auto"
        The share of outliers in the fit, above 0 and at most 0.5. With "auto", rows are outliers beyond a score that about one
        in a hundred typical rows exceeds by chance.
    {shared parameters}

    Attributes
    ----------
    tree_ : Tree or SummaryTree
        The tree; leaf i is row i.
    offset_ : float
        Rows with lower scores are outliers.
    {shared attributes}

    See Also
    --------
    CoalescentClustering : the tree itself, clusters, predictive densities.

    Examples
    --------
    >>> import numpy as np
    >>> from coaltree import CoalescentOutlierDetector
    >>> X = np.random.default_rng(0).normal(size=(60, 2)).round(2)
    >>> X[7, 1] = 9.0
    >>> detector = CoalescentOutlierDetector().fit(X)
    >>> np.flatnonzero(detector.predict(X) < 0).tolist()
    [7]
    >>> detector.explain(X[[7]])[0].cells[0].value
    '9'
    """

    def _fit_table(self, table: Table, progress: Progress | None = None) -> CoalescentOutlierDetector:
        super()._fit_table(table, share_progress(progress, 0.0, TREE_SHARE))
        self._model.draw_trees(share_progress(progress, TREE_SHARE, 1.0))
        self._set_offset()
        return self

    def _set_offset(self) -> None:
        if self.contamination == "auto":
            self.offset_ = find_limit(AUTO_SHARE)
        else:
            scores = self._model.outlier_scores(self._model.matrix)
            self.offset_ = float(np.percentile(scores, 100.0 * self.contamination))

    @classmethod
    def _from_model(cls, model: FittedModel) -> CoalescentOutlierDetector:
        detector = super()._from_model(model)
        detector._set_offset()
        return detector

    def score_samples(self, X: Any) -> FloatArray:
        """Return the scores of rows: 0 for a typical row, about -1 at the lowest tenth of the fit, lower for outliers.

        Parameters
        ----------
        X : frame or array-like of shape (n_rows, n_features)
            Columns of a frame are matched by name. Rows with the cells of a row of the fit are scored without that row.

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        return self._model.outlier_scores(self._read_rows(X).matrix)

    def decision_function(self, X: Any) -> FloatArray:
        """Return the scores minus `offset_`: negative for outliers.

        Parameters
        ----------
        X : frame or array-like of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        check_is_fitted(self)
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> IntArray:
        """Return -1 for outliers and 1 for other rows.

        Parameters
        ----------
        X : frame or array-like of shape (n_rows, n_features)

        Returns
        -------
        ndarray of int, shape (n_rows,)
        """
        return np.where(self.decision_function(X) < 0, -1, 1)

    def explain(self, X: Any, *, n_cells: int = 3) -> Explanations:
        """Return which cells make rows unusual, and what the rest of each row leads to expect, in the units of the table.

        Each cell is hidden in turn, and predicted from the others of its row, without the row itself if it is one of the fit.

        Parameters
        ----------
        X : frame or array-like of shape (n_rows, n_features)
            Columns of a frame are matched by name.
        n_cells : int, default 3
            Number of cells that are named for each row, the most unusual first.

        Returns
        -------
        Explanations
            A sequence with the score and the cells of each row. Printed, a row reads "age 999; 40 to 60 expected".
        """
        check_parameter("n_cells", n_cells)
        rows = self._read_rows(X)
        names = rows.table.row_names or tuple(map(str, range(rows.table.n_rows)))
        return explain_rows(self._model, rows.matrix, names, int(n_cells), FrameKind.from_table(X).index)

    def _facts(self) -> dict[str, object]:
        return super()._facts() | {"offset": self.offset_}
