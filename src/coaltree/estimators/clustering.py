"""Hierarchical clustering as an estimator."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClusterMixin
from sklearn.utils.validation import check_is_fitted

from .._atomic import check_path, check_writable, write_atomic
from .._cut import change_cut
from .._parameters import check_parameter
from ..errors import InputWarning
from ..predict.results import Placements
from ..report.build import report_page
from ..table.inputs import FrameKind, is_table
from ..workflow.model import FittedModel
from ..workflow.settings import ClusterSettings
from .base import CoalescentEstimator, add_shared_docs

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

LEAST_CHANCE = 1e-9  # of a number of clusters that is listed


@add_shared_docs
class CoalescentClustering(ClusterMixin, CoalescentEstimator, ClusterSettings):
    """Hierarchical clustering with Kingman's coalescent.

    Rows are the leaves of a binary tree. Real columns diffuse along its branches, categorical columns mutate. Missing cells are
    integrated out. Only the greedy search for up to 3,000 rows uses the mean of the ten nearest rows in place of a missing
    number, unless there is no noise.

    The tree is found with fixed parameters: half of the variance of every column counts as noise, and nothing is fitted. It is
    the average of up to twenty greedy trees (thirty if cells are missing), each for other draws of the noise, so it does not
    depend on single cells. Merges that the data cannot order are spread over heights.

    Predictions (`score_samples`, `predict`, `place` and the report) are averages over 50 trees, each with its own parameters.
    Two short Markov chains that start at the tree draw them for the first prediction, over at most 3,000 rows, chosen at random
    from larger tables. The model keeps them, and `save` stores them.

    Parameters
    ----------
    resolution : float, optional
        How fine flat clusters are, from 0 to 1: rows are in one cluster if the correlation of their columns, without noise, is
        at least this. Higher values give more and smaller clusters. The tree does not change. By default the clusters are the
        partition of greatest evidence among those into subtrees, at whatever height; without structure there is one cluster.
    n_clusters : int, optional
        Number of flat clusters: the best partition into so many subtrees, by evidence.
    height_threshold : float, optional
        Rows are in one flat cluster if they merge at this height or below.
    min_cluster_size : int or float, default 0.02
        Minimum number of rows in a cluster; a value below 1 is a share of all rows, but at least two rows. With 1, single rows
        can be clusters.
    assign_outliers : bool, default True
        Whether rows outside all clusters join the most probable cluster; if not, their label is -1, also in `predict`.
    {shared parameters}

    Attributes
    ----------
    tree_ : Tree or SummaryTree
        The tree; leaf i is row i, with the row names of a frame that has them. For a sample, a `SummaryTree` with
        ``support``, mean heights and their 95 % intervals.
    labels_ : ndarray of int, shape (n_samples,)
        Flat cluster of each row, numbered in the order of their first rows; -1 for outliers that are not assigned. With a
        sample, every tree is cut, by default where the model prefers one tree to two, and rows share a cluster if they do so in
        most trees, on average over the clusters.
    n_clusters_ : int
        Number of flat clusters.
    n_clusters_distribution_ : dict of int to float
        Probability of each number of clusters, over all partitions into subtrees, by their evidence.
    cluster_probabilities_ : ndarray of shape (n_samples, n_clusters_)
        Mean probability that a row is in one cluster with the other rows of each cluster.
    linkage_ : ndarray of shape (n_samples - 1, 4)
        The tree as scipy's linkage matrix.
    children_ : ndarray of int, shape (n_samples - 1, 2)
        The two nodes that each merge joins.
    distances_ : ndarray of shape (n_samples - 1,)
        Heights of the merges.
    {shared attributes}

    Examples
    --------
    >>> import numpy as np
    >>> from coaltree import CoalescentClustering
    >>> X = np.array([[0.0, 0.2], [0.1, np.nan], [4.0, 4.1], [3.9, 4.0]])
    >>> model = CoalescentClustering(n_clusters=2).fit(X)
    >>> model.labels_.tolist()
    [0, 0, 1, 1]
    >>> model.predict([[3.5, np.nan]]).tolist()
    [1]
    """

    def _set_fitted_attributes(self, model: FittedModel) -> None:
        super()._set_fitted_attributes(model)
        assert model.labels is not None
        self.labels_ = model.labels
        self.n_clusters_ = model.n_clusters
        self.linkage_ = model.tree.to_linkage()
        self.children_ = model.tree.children
        self.distances_ = model.tree.merge_heights

    @property
    def n_clusters_distribution_(self) -> dict[int, float]:
        """Probability of each number of clusters, over all partitions into subtrees; improbable numbers are left out."""
        check_is_fitted(self)
        return {k: chance for k, chance in enumerate(self._model.number_chances.tolist()) if chance >= LEAST_CHANCE}

    @property
    def cluster_probabilities_(self) -> FloatArray:
        """Mean probability that a row is in one cluster with the other rows of each cluster, shape ``(n, n_clusters_)``."""
        check_is_fitted(self)
        return self._model.membership_chances

    def cut(
        self,
        *,
        resolution: float | None = None,
        n_clusters: int | None = None,
        height_threshold: float | None = None,
        min_cluster_size: float | None = None,
        assign_outliers: bool | None = None,
    ) -> IntArray:
        """Return other flat clusters of the fitted tree, without fitting again; `labels_` does not change.

        Parameters
        ----------
        resolution : float, optional
            How fine clusters are, from 0 to 1; by default as in the fit, see `CoalescentClustering`.
        n_clusters : int, optional
            Number of flat clusters: the best partition into so many subtrees, by evidence.
        height_threshold : float, optional
            Rows are in one flat cluster if they merge at this height or below.
        min_cluster_size : int or float, optional
            Minimum number of rows in a cluster; by default as in the fit.
        assign_outliers : bool, optional
            Whether rows outside all clusters join one; by default as in the fit.

        Returns
        -------
        ndarray of int, shape (n_samples,)
            Cluster of each row: `labels_` of a fit with these parameters.

        Examples
        --------
        >>> from coaltree import CoalescentClustering
        >>> model = CoalescentClustering(n_clusters=2).fit([[0.0], [0.1], [4.0], [9.0]])
        >>> model.cut(n_clusters=3).tolist()
        [0, 0, 1, 2]
        >>> model.cut(height_threshold=float("inf")).tolist()
        [0, 0, 0, 0]
        """
        check_is_fitted(self)
        cut = change_cut(
            self._model.cluster_settings,
            resolution=resolution,
            n_clusters=n_clusters,
            height_threshold=height_threshold,
            min_cluster_size=min_cluster_size,
            assign_outliers=assign_outliers,
        )
        labels = self._model.cut(cut)
        for remark in self._model.describe_small_groups(cut, labels):
            warnings.warn(remark, InputWarning, stacklevel=2)
        return labels

    def predict(self, X: Any) -> IntArray:
        """Return the clusters of rows: of rows of the fit those of `labels_`, of new rows the most probable ones.

        A row of the fit is recognised by its cells, in all columns that varied in the fit. The table of the fit gets `labels_`.
        On its own, a row that the cut separated from equal ones gets the most frequent of their labels.

        A new row belongs to the clusters of the leaves below the branch where it attaches, averaged over all branches by their
        probability. If the model was fitted with ``assign_outliers=False``, outliers get the label -1: rows that attach outside
        of all clusters with a probability above 1/2 (above several clusters, above the root, or next to rows labelled -1), and
        rows with a number that is farther from those of the clusters than twice their range.

        Parameters
        ----------
        X : frame or array-like of shape (n_rows, n_features)
            Columns of a frame are matched by name. Cells can be missing.

        Returns
        -------
        ndarray of int, shape (n_rows,)
        """
        rows = self._read_rows(X)
        return self._model.predict_clusters(rows.matrix, self.client)

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probability of each cluster for new rows, see `predict`.

        Rows of the fit are treated as new ones here, so a row between clusters may be more probable in another than that of
        `labels_`.

        Parameters
        ----------
        X : frame or array-like of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows, n_clusters)
        """
        rows = self._read_rows(X)
        return self._model.cluster_shares(rows.matrix, self.client)

    def score_samples(self, X: Any) -> FloatArray:
        """Return the log predictive density of new rows, in the units of the table.

        The density is an average over all branches where a row can attach, and over all trees. Missing cells are integrated
        out: a row without any observed cell has density 1. Columns that did not vary in the fit are ignored. Rows of the fit
        are copies of rows in the trees, so this does not tell which of them are unusual; `CoalescentOutlierDetector` does.

        Parameters
        ----------
        X : frame or array-like of shape (n_rows, n_features)
            Columns of a frame are matched by name.

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        rows = self._read_rows(X)
        for remark in self._model.describe_known_rows(rows.matrix):
            warnings.warn(remark, InputWarning, stacklevel=2)
        return self._model.log_density(rows, self.client)

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean log predictive density of new rows, see `score_samples`.

        Parameters
        ----------
        X : frame or array-like of shape (n_rows, n_features)
        y : ignored

        Returns
        -------
        float
        """
        return float(np.mean(self.score_samples(X)))

    def place(self, X: Any, *, n_nearest: int = 3, level: float = 0.9) -> Placements:
        """Return where new rows attach to the tree.

        Parameters
        ----------
        X : frame or array-like of shape (n_rows, n_features)
            Columns of a frame are matched by name. A row without any observed cell attaches according to the prior.
        n_nearest : int, default 3
            Number of leaves to name, those that the row is expected to merge with most recently.
        level : float, default 0.9
            Probability of the interval for the height.

        Returns
        -------
        Placements
            For each row the most probable branch of `tree_`, its probability, the height at which the row attaches, the
            nearest leaves, and the cluster as in `predict`. Heights follow the clock of the trees that were drawn.
        """
        check_parameter("n_nearest", n_nearest)
        check_parameter("level", level)
        rows = self._read_rows(X)
        return self._model.place(rows, int(n_nearest), float(level), self.client, FrameKind.from_table(X).index)

    def profile(self, *, n_columns: int | None = None) -> Any:
        """Return what defines each cluster: a frame with a line for every cluster and column.

        Parameters
        ----------
        n_columns : int, optional
            Number of columns to list for each cluster, those with the greatest evidence; by default all that vary.

        Returns
        -------
        frame
            Of the library of the fitted table, with the columns

            - ``cluster``, ``size``: as in `labels_`, and its number of rows; outliers are cluster -1;
            - ``column``: the columns of each cluster, those with the greatest evidence first;
            - ``typical``: mean or most frequent category, in the units of the table;
            - ``spread``: standard deviation (of dates in days), or share of that category;
            - ``elsewhere``: mean, or share of that category, in all other rows;
            - ``missing``: share of missing cells;
            - ``effect``: difference from the mean of the other rows, in standard deviations of the column; for categories the
              largest Cohen's h, the difference of ``2 arcsin(sqrt(share))``;
            - ``level``: the category with that difference;
            - ``evidence``: log of how many times better the column is explained if the cluster has a distribution of its own
              than if all rows share one, eq. (10.8); about 0 or negative for a column that does not set the cluster apart.

        Examples
        --------
        >>> from coaltree import CoalescentClustering
        >>> model = CoalescentClustering(n_clusters=2).fit([[0.0, 3], [0.1, 5], [4.0, 4], [4.1, 2], [3.8, 5]])
        >>> model.profile(n_columns=1)[["cluster", "size", "column", "typical", "elsewhere"]].round(2).values.tolist()
        [[0, 2, 'x0', 0.05, 3.97], [1, 3, 'x0', 3.97, 0.05]]
        """
        check_is_fitted(self)
        check_parameter("n_columns", n_columns)
        return self._frame_kind.frame_of_lines(self._model.profile.lines(n_columns))

    def explain(self, rows: Any, *, n_columns: int | None = None) -> Any:
        """Return why rows are in their clusters: log ratios of each column for its cluster against the next best one.

        The cluster of a row of the fit is that of `labels_`, of a new row that of `predict`. For every column, the log ratio is
        that of the predictive densities of the row's cell in both clusters, eq. (10.10); a row of the fit is left out of its own
        cluster. Together with the log ratio of the sizes they add up to how many times more probable the row is in its cluster
        than in the next best one. If that sum is negative, the columns alone favour the next best cluster, and the tree decided
        otherwise: it also knows how columns go together.

        Parameters
        ----------
        rows : int, str, sequence of these, frame or array-like of shape (n_rows, n_features)
            Rows of the fit by position or by name, or new rows as a table.
        n_columns : int, optional
            Number of columns to list for each row, those with the largest log ratios of either sign; the others are added up in a
            line ``(other columns)``. By default all.

        Returns
        -------
        frame
            Of the library of the fitted table, with the columns ``row``, ``cluster``, ``next_cluster``, ``column``, ``value``
            (the row's cell), ``typical`` and ``typical_next`` (mean or most frequent category in both clusters) and
            ``log_ratio``. The line ``(size)`` has the log ratio of the sizes. An outlier, -1, is compared with the best cluster
            for it as if it were a cluster of its own; so is a row with cluster -1 as the next best, if there is one cluster only.
            Columns with positive log ratios are those in which it lies outside. Missing cells have the log ratio 0.

        Examples
        --------
        >>> from coaltree import CoalescentClustering
        >>> model = CoalescentClustering(n_clusters=2).fit([[0.0, 3], [0.1, 5], [4.0, 4], [4.1, 2], [3.8, 5]])
        >>> model.explain([0])[["column", "value", "typical_next", "log_ratio"]].round(1).values.tolist()
        [['x0', 0.0, 4.0, 25.5], ['x1', 3.0, 3.7, -0.2], ['(size)', nan, nan, -1.1]]
        """
        check_is_fitted(self)
        check_parameter("n_columns", n_columns)
        if is_table(rows):
            new_rows = self._read_rows(rows)
            return self._frame_kind.frame_of_lines(self._model.explain_new(new_rows, n_columns, self.client))
        chosen = [rows] if isinstance(rows, str) or np.ndim(rows) == 0 else rows
        return self._frame_kind.frame_of_lines(self._model.explain(chosen, n_columns))

    def to_frame(self) -> Any:
        """Return the rows of the fit with their clusters, as the same kind of frame as the table and with its index.

        Returns
        -------
        frame
            ``cluster`` is that of `labels_`; ``merge_height`` is the height at which the row merges with another, large for
            rows that are unlike all others. A polars table gives a polars frame, an array a pandas frame, and a model from a
            file a pandas frame with the row names as index.

        Examples
        --------
        >>> import pandas as pd
        >>> from coaltree import CoalescentClustering
        >>> table = pd.DataFrame({"x": [0.0, 0.1, 4.0, 3.9]}, index=[7, 8, 9, 10])
        >>> CoalescentClustering(n_clusters=2).fit(table).to_frame()["cluster"].to_dict()
        {7: 0, 8: 0, 9: 1, 10: 1}
        """
        check_is_fitted(self)
        merge_heights = self.tree_.heights[self.tree_.parents[: self.tree_.n_leaves]]
        return self._frame_kind.frame({"cluster": self.labels_, "merge_height": merge_heights})

    def _facts(self) -> dict[str, object]:
        return super()._facts() | {"clusters": self.n_clusters_}

    def report(self, path: str | Path, *, title: str | None = None) -> None:
        """Write a report: one HTML file that works offline, written completely or not at all.

        It shows what defines each cluster, the tree next to the table, support, which columns matter, the parameters in plain
        words, and rows and cells that do not fit the rest. The same model makes the same file.

        Parameters
        ----------
        path : str or Path
            The file, for example ``"report.html"``; an earlier one of that name is replaced.
        title : str, optional
            Heading of the report; by default the number of rows.

        Raises
        ------
        MissingDependencyError
            If jinja2 or plotly is not installed.
        InputError
            If the file cannot be written.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> import coaltree as ct
        >>> model = ct.CoalescentClustering(n_clusters=2).fit([[0.0], [0.1], [4.0], [4.2]])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.report(folder + "/report.html", title="Four rows")
        ...     "<h1>Four rows</h1>" in Path(folder, "report.html").read_text(encoding="utf-8")
        True
        """
        check_is_fitted(self)
        check_writable(check_path(path))
        write_atomic(path, report_page(self._model, title))
