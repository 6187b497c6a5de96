"""Hierarchical clustering as an estimator."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import ClusterMixin

from .._atomic import check_path, check_writable, write_atomic
from .._validation import check_count
from ..errors import InputError, InputWarning
from ..inference.flat_clusters import check_min_cluster_size
from ..predict.placements import Placements
from ..table.columns import RealColumn, Table
from ..table.inputs import FrameKind
from ..tree.cut import check_cut
from ..tree.edit import ancestor, without_leaves
from .base import FloatArray, check_fitted
from .clusters import ClusterModel, IntArray
from .modelling import check_resolution
from .reporting import report_page
from .scikit import ScikitModel


class CoalescentClustering(ClusterMixin, ScikitModel, ClusterModel):
    """Hierarchical clustering with Kingman's coalescent.

    Rows are leaves of a binary tree; real columns diffuse along its branches, categorical columns mutate. Missing cells
    are integrated out; only the greedy search, of up to 3,000 rows and with noise, sees the mean of the ten nearest rows in place
    of a missing number. The tree is found with parameters that show structure, half of every column's variance taken for noise,
    and nothing is fitted. It is the average of up to ten greedy trees (thirty where cells are missing), for which the noise
    of the cells is drawn again, so that it does not hang on single cells; merges that the data cannot order are at their
    expected heights. Rows are in one flat cluster if what they share explains enough of the rest, see `resolution`.

    What is asked of the model about rows (`score_samples`, `predict`, `place`, the report) is averaged over 50 trees, each with
    parameters of its own. Two short Markov chains that begin at the tree draw them when the first question is asked, over at most
    3,000 rows, a random part of more. They are kept, and stored by `save`.

    Parameters
    ----------
    inference : {"greedy", "smc", "mcmc"}, default "greedy"
        How the tree is found: one good tree; a weighted sample of trees by sequential Monte Carlo, which gives support values
        and the evidence, for up to some hundred rows; or a sample by Markov chains, which gives support values and says
        whether it has converged. The parameters are fixed ones that show structure, the same for all three.
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
        Which tree stands for the sample: the sampled tree of maximum clade credibility, or the majority-rule consensus.
    draw_parameters : bool, default False
        Whether the chains of ``inference="mcmc"`` draw the parameters together with the trees. Questions about rows are then
        asked of up to 200 trees of that sample. Otherwise they are averaged over 50 other trees, each drawn with parameters of
        its own by short chains.
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
        What to do with categories of new rows that did not occur in the fit.
    standardize : bool or "power", default True
        Bring real columns to mean 0 and standard deviation 1 first. With "power" they are first made as Gaussian as they can be,
        by the transform of Yeo and Johnson as in scikit-learn's `PowerTransformer`: for columns with heavy tails. All that comes
        out is in the units of the table, densities as well. Where the transform has a bound, it goes on in a straight line beyond
        the largest or smallest value of the fit.
    resolution : float, optional
        How fine flat clusters are, from 0 to 1: rows are in one cluster if their correlation over the columns is at least this,
        noise aside. More gives more and smaller clusters. It does not change the tree. By default, the tree is cut where a gap
        in the heights of its splits is clear, not at all if there is no structure, and else at a resolution of 0.18.
    n_clusters : int, optional
        Number of flat clusters, whatever their resolution.
    height_threshold : float, optional
        Rows are in one flat cluster if they merge at this height or below.
    min_cluster_size : int or float, default 0.02
        Rows that a cluster has at least: a number, or below 1 a share of all rows, which stands for at least two. 1 takes single
        rows for clusters. Not for samples of trees.
    assign_outliers : bool, default True
        Whether rows beside all clusters that are large enough join the one that they most probably belong to; else their label
        is -1.
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
        Source of randomness of sequential Monte Carlo, of Markov chains, and of the draws that predictions are averaged over. For
        these draws None counts as a fixed seed, so that the same table gives the same answers. Greedy trees do not depend on it.
    verbose : int, default 0
        Above 0, progress is shown on standard error.

    Attributes
    ----------
    tree_ : Tree or SummaryTree
        The tree; leaf i is row i, with the row names of a frame that has them. Of a sample, a `SummaryTree` with
        ``support``, mean heights and their 95 % intervals.
    labels_ : ndarray of int, shape (n_samples,)
        Flat cluster of each row, numbered in the order of their first rows; -1 for outliers, if they are not assigned. Of a
        sample of trees, each is cut where the model prefers one tree to two, and rows are together that are together in most of
        them, on average over the clusters.
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
    parameters_ : dict
        The parameters of every column that the tree was found with, by its name and in its units.
    prediction_parameters_ : dict
        The same of the parameters that questions about rows are answered with: means over the draws, which are made when first
        asked for. ``signal`` is the correlation of a cell with the same cell of the row's nearest relative on the tree, and
        ``signal_low`` and ``signal_high`` are the ends of its central 90 % interval, where trees were drawn. Columns with the
        largest signal come first.
    search_ : str
        How partners were looked for, "exact" or "neighbors"; only with ``inference="greedy"``.
    neighbors_held_ : float or None
        How good the lists of neighbours were, see `coaltree.GreedyResult`; None after an exact
        search, or if so few rows were left to it from the beginning.
    encoding_ : Encoding
        How the columns were encoded.
    sample_ : SMCResult or MCMCResult
        The sample of trees with its diagnostics; not with ``inference="greedy"``, nor Markov chains of one row.
    log_evidence_ : float
        Log of the estimate of ``p(x)``, the encoded table's density over all trees; only with ``inference="smc"``.
    log_joint_ : float
        ``log p(x, tree)`` of the encoded table and of `tree_` as it stands, with the process of `process_`. Merges that the data
        cannot order are at their expected heights, not at the most probable ones, which lowers it.
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
    >>> model = CoalescentClustering(n_clusters=2).fit(X)
    >>> model.labels_.tolist()
    [0, 0, 1, 1]
    >>> model.predict([[3.5, np.nan]]).tolist()
    [1]
    """

    _stored_as = "CoalescentClustering"

    def cut(
        self,
        *,
        resolution: float | None = None,
        n_clusters: int | None = None,
        height_threshold: float | None = None,
        min_cluster_size: float | None = None,
    ) -> IntArray:
        """Return other flat clusters of the fitted tree, without fitting again; `labels_` stays as it is.

        Parameters
        ----------
        resolution : float, optional
            How fine clusters are, from 0 to 1; by default as the model has it, see `CoalescentClustering`.
        n_clusters : int, optional
            Number of flat clusters.
        height_threshold : float, optional
            Rows are in one flat cluster if they merge at this height or below.
        min_cluster_size : int or float, optional
            Rows that a cluster has at least; by default as the model has it.

        Returns
        -------
        ndarray of int, shape (n_samples,)
            Cluster of each row, what `labels_` would be if the model had been fitted with these parameters.

        Examples
        --------
        >>> from coaltree import CoalescentClustering
        >>> model = CoalescentClustering(n_clusters=2).fit([[0.0], [0.1], [4.0], [9.0]])
        >>> model.cut(n_clusters=3).tolist()
        [0, 0, 1, 2]
        >>> model.cut(height_threshold=float("inf")).tolist()
        [0, 0, 0, 0]
        """
        check_fitted(self)
        check_cut(n_clusters, height_threshold, self.tree_.n_leaves, resolution)
        resolution = self.resolution if resolution is None else resolution
        min_cluster_size = self.min_cluster_size if min_cluster_size is None else min_cluster_size
        check_resolution(resolution)
        check_min_cluster_size(min_cluster_size)
        for remark in self._remarks_on_cut(n_clusters, min_cluster_size):
            warnings.warn(remark, InputWarning, stacklevel=2)
        return self._cut(n_clusters, height_threshold, resolution, min_cluster_size)

    def predict(self, X: Any) -> IntArray:
        """Return the most probable cluster of new rows.

        A row belongs to the clusters of the leaves below the place where it attaches, averaged over all places by their
        probability.

        Parameters
        ----------
        X : frame or array-like of shape (n_rows, n_features)
            Columns of a frame are matched by name. Missing cells are welcome.

        Returns
        -------
        ndarray of int, shape (n_rows,)
        """
        return np.asarray(self.predict_proba(X).argmax(axis=1))

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probability of each cluster for new rows, see `predict`.

        Parameters
        ----------
        X : frame or array-like of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows, n_clusters)
        """
        return self._cluster_shares(self._new_rows(X).matrix)

    def _cluster_shares(self, matrix: FloatArray) -> FloatArray:
        """Return the probability of each cluster for encoded rows."""
        beside = self.labels_ < 0  # outliers count for no cluster
        labels = np.where(beside, self.n_clusters_, self.labels_)
        found: FloatArray = self._ask("cluster_shares", matrix, labels[self._prediction_rows()])[:, : self.n_clusters_]
        shares = np.zeros((len(found), self.n_clusters_))
        shares[:, : found.shape[1]] = found  # the rows that trees were drawn over may lack the last clusters
        return shares / shares.sum(axis=1, keepdims=True) if beside.any() else shares

    def score_samples(self, X: Any) -> FloatArray:
        """Return the log predictive density of new rows, in the units of the table.

        Over all places where a row may attach, and all trees that were drawn or sampled. Missing cells are integrated out:
        a row without any observed cell has density 1. Columns that did not vary in the fit take no part.

        Parameters
        ----------
        X : frame or array-like of shape (n_rows, n_features)
            Columns of a frame are matched by name.

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        rows = self._new_rows(X)
        log_density: FloatArray = self._ask("log_density", rows.matrix)
        return log_density + self._log_slopes(rows.table)

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
            Columns of a frame are matched by name. A row without any observed cell attaches as the prior has it.
        n_nearest : int, default 3
            How many of the leaves to name that the row is expected to merge with most recently.
        level : float, default 0.9
            Probability of the interval for the height.

        Returns
        -------
        Placements
            Of each row the most probable branch of `tree_`, its probability, the height at which the row attaches, the nearest
            leaves, and the most probable cluster. Heights are by the clock of the trees that were drawn.
        """
        n_nearest = check_count(n_nearest, "n_nearest", 0)
        if not isinstance(level, (int, float, np.floating)) or not 0 < level < 1:
            raise InputError(f"level is {level!r}; it must be a number between 0 and 1.")
        rows = self._new_rows(X)
        tree, asked = self.tree_, self._prediction_rows()
        part = (
            tree if len(asked) == tree.n_leaves else without_leaves(tree, np.setdiff1d(np.arange(tree.n_leaves), asked))
        )
        placed = self._ask("place", rows.matrix, part, n_nearest, float(level))
        if part is not tree:
            nodes = [ancestor(tree, asked[part.leaves_below(k)[0]], part.heights[k]) for k in placed.node.tolist()]
            placed = placed._replace(node=np.array(nodes, dtype=np.intp), nearest=asked[placed.nearest])
        log_density = placed.log_density + self._log_slopes(rows.table)
        return Placements.of(
            placed._replace(log_density=log_density),
            self._cluster_shares(rows.matrix),
            self.tree_,
            rows.table.row_names,
            FrameKind.of(X).index,
        )

    def to_frame(self) -> Any:
        """Return the rows of the fit with their clusters, as a frame of the kind of the table and with its index.

        Returns
        -------
        frame
            ``cluster`` is that of `labels_`; ``merge_height`` is the height at which the row merges with another, large for rows
            that are like no other. Of a table of polars, a frame of polars; of an array, one of pandas; of a model from a
            file, one of pandas with the row names as index.

        Examples
        --------
        >>> import pandas as pd
        >>> from coaltree import CoalescentClustering
        >>> table = pd.DataFrame({"x": [0.0, 0.1, 4.0, 3.9]}, index=[7, 8, 9, 10])
        >>> CoalescentClustering(n_clusters=2).fit(table).to_frame()["cluster"].to_dict()
        {7: 0, 8: 0, 9: 1, 10: 1}
        """
        check_fitted(self)
        merge_heights = self.tree_.heights[self.tree_.parents[: self.tree_.n_leaves]]
        return self._frame_kind.frame({"cluster": self.labels_, "merge_height": merge_heights})

    def _facts(self) -> dict[str, object]:
        return super()._facts() | {"clusters": self.n_clusters_}

    def report(self, path: str | Path, *, title: str | None = None) -> None:
        """Write a report for people: one HTML file that works offline, whole or not at all.

        The tree beside the table, the clusters and what sets them apart, support, which columns matter, the parameters in plain
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
            When the file cannot be written.

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
        check_fitted(self)
        check_writable(check_path(path))
        write_atomic(path, report_page(self, title))

    def _log_slopes(self, table: Table) -> FloatArray:
        """Return the log Jacobian of encoding each row's observed cells."""
        total = np.zeros(table.n_rows)
        scales = iter(self.encoding_.column_scales)
        for column, informative in zip(table.columns, self.encoding_.informative, strict=True):
            if isinstance(column, RealColumn):
                scale = next(scales)
                if informative:
                    total += np.where(np.isnan(column.values), 0.0, scale.log_slope(column.values))
        return total
