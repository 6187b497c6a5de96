"""Bayesian hierarchical clustering of Heller and Ghahramani (2005) as an estimator."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, gammaln, logit, multigammaln
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils import Tags
from sklearn.utils.validation import validate_data

from .._validation import quote
from ..errors import InputError
from ..table.columns import RealColumn, Table, missing_cells, read_columns
from ..table.encoding import encode, fit_encoding
from ..table.inputs import open_source
from ..table.labels import count, row_label
from ..tree.cut import check_cluster_count, cut_by_count, cut_by_ratio
from ..tree.tree import Tree
from .kernels.bhc import Clusters, agglomerate

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

MODELS = ("auto", "gaussian", "bernoulli", "multinomial")
MAX_TREES_PER_PARAMETER = 40  # maximum number of trees per optimised hyperparameter
COLUMNS_PER_UPDATE_ROW = 4  # rank-one updates are faster up to one row per this number of columns
MIN_PARAMETER, MAX_PARAMETER = 1e-100, 1e100  # beyond these limits, squares overflow


class Hyperparameters(NamedTuple):
    """The priors of the mixture; see `BayesianHierarchicalClustering`."""

    concentration: float
    within: float
    mean_strength: float
    degrees_of_freedom: float
    state_strength: float


class EncodedRows(NamedTuple):
    """The table in the units of the model."""

    real: FloatArray  # standardised
    states: IntArray  # zeros and ones, a column for each state
    frequencies: FloatArray  # frequency of each state in its column, with one pseudo-count per state


class MergeResult(NamedTuple):
    """A tree and the odds of its merges."""

    children: IntArray
    log_odds: FloatArray
    log_evidence_bound: float


class BayesianHierarchicalClustering(ClusterMixin, BaseEstimator):
    r"""Bayesian hierarchical clustering, after Heller and Ghahramani (2005).

    Clusters merge bottom up. The next merge is the pair with the highest posterior probability ``r`` that all its rows come
    from one component of a mixture, against all partitions consistent with the two subtrees. The sum over the partitions of the
    tree is a lower bound on the evidence of a Dirichlet process mixture.

    In a component, real columns are jointly Gaussian with a normal-inverse-Wishart prior, and categorical columns are
    independent with Dirichlet priors. Constant real columns are ignored. Missing cells are refused.

    Parameters
    ----------
    model : {"auto", "gaussian", "bernoulli", "multinomial"}, default "auto"
        Type of the columns: by dtype; all real; all 0 or 1; all categorical.
    concentration : float, default 1.0
        Concentration of the Dirichlet process.
    within : float, default 0.5
        Expected variance within a component, as a share of the variance of each real column, between 0 and 1.
    mean_strength : float, optional
        Weight, in rows, of the prior of a component's mean, which is centred at the mean of the table. By default
        ``within / (1 - within)``, so that within and between variance add up to the total.
    degrees_of_freedom : float, optional
        Degrees of freedom of the inverse Wishart prior: more than the number of varying real columns plus one; default plus
        two.
    state_strength : float, default 2.0
        Weight, in rows, of the prior of a categorical column. Its mean is the frequencies in the table with one
        pseudo-count per state.
    optimize : bool, default False
        Choose concentration, ``within`` (of real columns) and ``state_strength`` (of categorical ones) by the bound of the
        evidence, with a Nelder-Mead search from the given values and up to 40 trees for each.
    n_clusters : int, optional
        Number of flat clusters: the last merges are undone. By default the tree is cut, from the root downwards, at merges
        with ``r`` below one half.

    Attributes
    ----------
    tree_ : Tree
        The tree. The model has no times: the height of a merge is ``-log r``, or that of the previous merge if it is
        higher.
    labels_ : ndarray of int, shape (n_samples,)
        Flat cluster of each row, numbered in the order of their first rows.
    n_clusters_ : int
        Number of flat clusters.
    merge_probabilities_ : ndarray of shape (n_samples - 1,)
        ``r`` of each merge.
    log_odds_ : ndarray of shape (n_samples - 1,)
        ``log(r / (1 - r))`` of each merge.
    log_evidence_bound_ : float
        Lower bound of the log density of the table under the Dirichlet process mixture, in the units of the table.
    hyperparameters_ : dict
        The hyperparameters in use.
    linkage_ : ndarray of shape (n_samples - 1, 4)
        The tree as scipy's linkage matrix.
    children_ : ndarray of int, shape (n_samples - 1, 2)
        The two nodes that each merge joins.
    distances_ : ndarray of shape (n_samples - 1,)
        Heights of the merges.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of str
        Names of the columns, if they are all strings.

    Notes
    -----
    A fit compares somewhat more than ``n_samples ** 2`` pairs. With D real columns each takes about ``D ** 2`` steps for every
    row of the smaller cluster, and at most ``D ** 3``. Ties go to the pair with the lowest first rows.

    Examples
    --------
    >>> from coaltree.baselines import BayesianHierarchicalClustering
    >>> X = [[0.0, 0.2], [0.1, 0.1], [4.0, 4.1], [3.9, 4.0]]
    >>> model = BayesianHierarchicalClustering(within=0.01).fit(X)
    >>> model.labels_.tolist()
    [0, 0, 1, 1]
    >>> bool(model.merge_probabilities_[-1] < 0.5)
    True
    """

    def __init__(
        self,
        *,
        model: str = "auto",
        concentration: float = 1.0,
        within: float = 0.5,
        mean_strength: float | None = None,
        degrees_of_freedom: float | None = None,
        state_strength: float = 2.0,
        optimize: bool = False,
        n_clusters: int | None = None,
    ) -> None:
        self.model = model
        self.concentration = concentration
        self.within = within
        self.mean_strength = mean_strength
        self.degrees_of_freedom = degrees_of_freedom
        self.state_strength = state_strength
        self.optimize = optimize
        self.n_clusters = n_clusters

    def fit(self, X: Any, y: Any = None) -> Self:
        """Build the tree of a table.

        Parameters
        ----------
        X : frame or array-like of shape (n_samples, n_features)
            Without missing cells.
        y : ignored

        Returns
        -------
        self
        """
        self._check_parameters()
        table = self._read(X)
        validate_data(self, X, skip_check_array=True)
        if self.n_clusters is not None:
            check_cluster_count(self.n_clusters, table.n_rows)
        rows, log_units = self._encode(table)
        prior = self._make_hyperparameters(rows.real.shape[1])
        if self.optimize:
            prior = self._optimise(rows, prior)
        result = merge_all(rows, prior)
        log_r = -np.logaddexp(0.0, -result.log_odds)
        heights = np.maximum.accumulate(np.concatenate([np.zeros(table.n_rows), -log_r]))
        self.tree_ = Tree(result.children, heights, table.row_names)
        self.log_odds_ = result.log_odds
        self.merge_probabilities_ = expit(result.log_odds)
        self.log_evidence_bound_ = result.log_evidence_bound - log_units
        self.hyperparameters_ = prior._asdict()
        if self.n_clusters is None:
            self.labels_ = cut_by_ratio(self.tree_, result.log_odds)
        else:
            self.labels_ = cut_by_count(self.tree_, self.n_clusters)
        self.n_clusters_ = int(self.labels_.max()) + 1
        self.linkage_ = self.tree_.to_linkage()
        self.children_ = self.tree_.children
        self.distances_ = self.tree_.merge_heights
        return self

    def _check_parameters(self) -> None:
        if not isinstance(self.model, str) or self.model not in MODELS:
            raise InputError(f"model is {quote(self.model)}; it must be {' or '.join(map(repr, MODELS))}.")
        if not isinstance(self.optimize, (bool, np.bool_)):
            raise InputError(f"optimize is {quote(self.optimize)}; it must be True or False.")
        for name in ("concentration", "state_strength", "mean_strength", "degrees_of_freedom"):
            value: Any = getattr(self, name)
            optional = name in ("mean_strength", "degrees_of_freedom")
            if not (value is None and optional) and not (_is_number(value) and MIN_PARAMETER <= value <= MAX_PARAMETER):
                raise InputError(
                    f"{name} is {quote(value)}; it must be a finite number above 0 (from {MIN_PARAMETER:g} to {MAX_PARAMETER:g})"
                    f"{', or None' if optional else ''}."
                )
        if not (_is_number(self.within) and MIN_PARAMETER <= self.within < 1):
            raise InputError(
                f"within is {quote(self.within)}; it must be a number between 0 and 1: the share of the columns' variance that "
                "is expected within clusters."
            )

    def _read(self, X: Any) -> Table:
        all_categorical = self.model in ("bernoulli", "multinomial")
        table = read_columns(X, [True] * len(open_source(X).names) if all_categorical else "from_dtype")
        if self.model == "gaussian" and table.categorical:
            raise InputError(
                f"Column {table.categorical[0].name!r} holds categories, and model='gaussian' needs numbers: convert or drop the "
                "column, or use model='auto'."
            )
        missing = [(column, missing_cells(column)) for column in table.columns]
        n_missing = sum(int(cells.sum()) for _, cells in missing)
        if n_missing:
            name, row = next((column.name, int(cells.argmax())) for column, cells in missing if cells.any())
            raise InputError(
                f"The table has {count(n_missing, 'missing cell')} (NaN), the first in column {name!r}, "
                f"{row_label(row, table.row_names)}: Bayesian hierarchical clustering needs complete rows: fill the "
                "cells, or use CoalescentClustering, which accepts missing cells."
            )
        return table

    def _encode(self, table: Table) -> tuple[EncodedRows, float]:
        """Return the encoded rows, and the log Jacobian of the standardisation."""
        encoding = fit_encoding(table)
        real = encode(table, encoding).real
        varies = [
            bool(use)
            for column, use in zip(table.columns, encoding.informative, strict=True)
            if isinstance(column, RealColumn)
        ]
        log_units = table.n_rows * float(np.log(encoding.scale[varies]).sum())
        states = [np.empty((table.n_rows, 0), dtype=np.intp)]
        for column in table.categorical:
            codes, n_states = column.codes, len(column.categories)
            if self.model == "bernoulli":
                codes, n_states = _binary_codes(codes, column.categories, column.name), 2
            states.append(np.equal.outer(codes, np.arange(n_states)).astype(np.intp))
        shares = [(part.sum(axis=0) + 1) / (table.n_rows + part.shape[1]) for part in states if part.shape[1]]
        return EncodedRows(real, np.hstack(states), np.concatenate([np.empty(0), *shares])), log_units

    def _make_hyperparameters(self, n_real: int) -> Hyperparameters:
        freedom = self.degrees_of_freedom if self.degrees_of_freedom is not None else n_real + 2
        if freedom <= n_real + 1:
            raise InputError(
                f"degrees_of_freedom is {quote(freedom)}; of {count(n_real, 'real column')} that vary it must be more than "
                f"{n_real + 1}."
            )
        mean_strength = self.mean_strength if self.mean_strength is not None else _strength_from_within(self.within)
        return Hyperparameters(
            float(self.concentration),
            float(self.within),
            float(mean_strength),
            float(freedom),
            float(self.state_strength),
        )

    def _optimise(self, rows: EncodedRows, start: Hyperparameters) -> Hyperparameters:
        """Return the hyperparameters with the highest evidence bound of a local search."""
        from scipy.optimize import minimize

        n_real, n_states = rows.real.shape[1], rows.states.shape[1]
        free = ["concentration"] + ["within"] * (n_real > 0) + ["state_strength"] * (n_states > 0)

        def at(point: FloatArray) -> Hyperparameters:
            values = {
                name: float(expit(x) if name == "within" else np.exp(x))
                for name, x in zip(free, np.clip(point, -30, 30), strict=True)
            }
            if "within" in values and self.mean_strength is None:
                values["mean_strength"] = _strength_from_within(values["within"])
            return start._replace(**values)

        def loss(point: FloatArray) -> float:
            return -merge_all(rows, at(point)).log_evidence_bound

        first = np.array([logit(start.within) if name == "within" else math.log(getattr(start, name)) for name in free])
        simplex = np.vstack([first, first + np.eye(len(first))])
        options: Any = {
            "maxfev": MAX_TREES_PER_PARAMETER * len(free),
            "xatol": 0.05,
            "fatol": 0.01,
            "initial_simplex": simplex,
        }
        return at(minimize(loss, first, method="Nelder-Mead", options=options).x)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags


def merge_all(rows: EncodedRows, prior: Hyperparameters) -> MergeResult:
    """Build the tree of rows.

    Parameters
    ----------
    rows : EncodedRows
    prior : Hyperparameters

    Returns
    -------
    MergeResult
    """
    n, d = rows.real.shape
    sizes = np.arange(n + 1)
    scale = prior.within * (prior.degrees_of_freedom - d - 1)
    kappa, nu = prior.mean_strength, prior.degrees_of_freedom
    by_size = np.zeros(n + 1)
    by_size[1:] = math.log(prior.concentration) + gammaln(sizes[1:])
    if d:
        by_size += (
            multigammaln((nu + sizes) / 2, d)
            - multigammaln(nu / 2, d)
            - 0.5 * d * sizes * math.log(math.pi * scale)
            - 0.5 * d * np.log1p(sizes / kappa)
        )
    counts = prior.state_strength * rows.frequencies
    n_columns = round(float(rows.frequencies.sum()))
    by_size -= n_columns * (gammaln(prior.state_strength + sizes) - gammaln(prior.state_strength))
    by_count = gammaln(counts[:, None] + sizes) - gammaln(counts)[:, None]
    mean = rows.real / math.sqrt(scale)
    log_det = np.log1p(kappa / (kappa + 1) * np.einsum("ij,ij->i", mean, mean))
    weight = by_size[1] - 0.5 * (nu + 1) * log_det + rows.states @ by_count[:, 1]
    clusters = Clusters(
        weight,
        np.ascontiguousarray(mean),
        log_det,
        rows.states.copy(),  # merged in place
        by_size,
        np.ascontiguousarray(by_count),
        float(kappa),
        float(nu),
        max(d // COLUMNS_PER_UPDATE_ROW, 1),
    )
    children, log_odds = np.empty((n - 1, 2), dtype=np.intp), np.empty(n - 1)
    agglomerate(clusters, children, log_odds)
    bound = float(weight[0]) + gammaln(prior.concentration) - gammaln(prior.concentration + n)
    return MergeResult(children, log_odds, float(bound))


def _binary_codes(codes: IntArray, categories: Sequence[object], name: str) -> IntArray:
    other = [value for value in categories if value not in (0, 1)]
    if other:
        raise InputError(
            f"Column {name!r} holds {quote(other[0])}, and model='bernoulli' accepts only 0 and 1: recode the column, or use "
            "model='multinomial'."
        )
    return np.array([int(value == 1) for value in categories], dtype=np.intp)[codes]


def _strength_from_within(within: float) -> float:
    """Return the weight of the prior of means, in rows, if means have the rest of the variance after `within`."""
    return within / (1 - within)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
