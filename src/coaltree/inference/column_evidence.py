"""What one column says about given clusters: the evidence of its cells, and their predictive densities in each cluster.

The cells of a cluster have a distribution of their own, whose parameters are integrated out. Numbers are Gaussian, with the prior
that the partition has in one dimension. Categories have shares with a Dirichlet distribution around those of the table. In both,
the share s of the variance that is within clusters sets how far clusters may be from the whole, and is the one of
`coaltree.inference.partition` under which the column has the greatest evidence. A column says how clearly a cluster is apart by

    log p(cells of the cluster) + log p(cells of the other rows) - log p(all cells),

eq. (10.8), and where a row belongs by the predictive densities of its cell, eq. (10.10). Missing cells say nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .partition import SHARES_WITHIN, ClusterPrior

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

ROUNDING = 1e-9  # differences of log densities


class Moments(NamedTuple):
    """Number, mean and scatter, the sum of squared deviations from the mean, of the cells in groups."""

    sizes: FloatArray
    means: FloatArray
    scatters: FloatArray

    @classmethod
    def of_groups(cls, cells: FloatArray, groups: IntArray, n_groups: int) -> Moments:
        """Return those of the observed cells of each group of rows."""
        known = ~np.isnan(cells)
        cells, groups = cells[known], groups[known]
        sizes = np.bincount(groups, minlength=n_groups).astype(np.float64)
        means = np.bincount(groups, weights=cells, minlength=n_groups) / np.maximum(sizes, 1)
        scatters = np.bincount(groups, weights=(cells - means[groups]) ** 2, minlength=n_groups)
        return cls(sizes, means, scatters.astype(np.float64))

    def take(self, groups: IntArray | slice) -> Moments:
        """Return those of some groups."""
        return Moments(*(part[groups] for part in self))

    def join(self, other: Moments) -> Moments:
        """Return those of the cells of both."""
        sizes = self.sizes + other.sizes
        step, share = other.means - self.means, other.sizes / np.maximum(sizes, 1)
        return Moments(sizes, self.means + share * step, self.scatters + other.scatters + self.sizes * share * step**2)

    def without(self, cells: FloatArray) -> Moments:
        """Return those without one cell each."""
        sizes = self.sizes - 1
        step = np.where(sizes > 0, (self.means - cells) / np.maximum(sizes, 1), 0.0)
        scatters = self.scatters - sizes * self.sizes * step**2
        return Moments(
            sizes, np.where(sizes > 0, self.means + step, 0.0), np.where(sizes > 0, np.maximum(scatters, 0.0), 0.0)
        )

    def others(self) -> Moments:
        """Return those of all other groups together, for cells with mean 0 and variance 1: no digits are lost then."""
        sums, squares = self.sizes * self.means, self.scatters + self.sizes * self.means**2
        sizes, sums, squares = (part.sum() - part for part in (self.sizes, sums, squares))
        means = np.where(sizes > 0, sums / np.maximum(sizes, 1), 0.0)
        return Moments(sizes, means, np.where(sizes > 0, np.maximum(squares - sizes * means**2, 0.0), 0.0))


class ColumnInClusters:
    """The cells of one column in each cluster.

    Parameters
    ----------
    cells : ndarray of shape (n,)
        Numbers with mean 0 and variance 1, or the codes of categories. NaN is missing.
    labels : ndarray of int, shape (n,)
        The cluster of each row.
    n_groups : int
        Number of clusters.
    n_categories : int
        0 for numbers.

    Attributes
    ----------
    evidence : ndarray of shape (n_groups,)
        How clearly the column sets each cluster apart from the other rows, eq. (10.8).
    share : float
        The share of the variance within clusters.
    """

    def __init__(self, cells: FloatArray, labels: IntArray, n_groups: int, n_categories: int) -> None:
        self._n_categories = n_categories
        if n_categories:
            known = ~np.isnan(cells)
            at = labels[known] * n_categories + cells[known].astype(np.intp)
            counts = np.bincount(at, minlength=(n_groups + 1) * n_categories)  # the last group is empty
            self._counts = counts.reshape(n_groups + 1, n_categories).astype(np.float64)
            table = self._counts.sum(axis=0)
            self._shares = table / max(table.sum(), 1)
            own, others, both = map(self._count_evidence, (self._counts, table - self._counts, table[None]))
        else:
            self._prior = ClusterPrior.for_variance(1.0, 1)
            self._moments = Moments.of_groups(cells, labels, n_groups + 1)
            rest = self._moments.others()
            own, others, both = map(self._moment_evidence, (self._moments, rest, rest.take(slice(n_groups, None))))
        total = own.sum(axis=0)
        # Clusters of one row say nothing about the share: it is the largest one then.
        chosen = int(np.flatnonzero(total > total.max() - ROUNDING)[-1])
        self.share = float(SHARES_WITHIN[chosen])
        self.evidence: FloatArray = (own + others - both)[:-1, chosen]
        if not n_categories:
            self._prior = self._prior.at(chosen)

    def log_predictive(self, cells: FloatArray, groups: IntArray, leave_out: bool = False) -> FloatArray:
        """Return the log predictive density of cells, each in one cluster, as in eq. (10.10).

        Parameters
        ----------
        cells : ndarray of shape (m,)
        groups : ndarray of int, shape (m,)
            Clusters; their number stands for a new one without any row.
        leave_out : bool, default False
            Whether the cells are among those of their clusters, and are left out.

        Returns
        -------
        ndarray of shape (m,)
            0 for missing cells, and for categories that the table does not have.
        """
        known = ~np.isnan(cells)
        if self._n_categories:
            known[known] &= self._shares[cells[known].astype(np.intp)] > 0
        result, cells, groups = np.zeros(len(cells)), cells[known], groups[known]
        if self._n_categories:
            codes, weight = cells.astype(np.intp), self.share / (1 - self.share)
            counts = self._counts[groups, codes] - leave_out + weight * self._shares[codes]
            result[known] = np.log(counts / (self._counts.sum(axis=1)[groups] - leave_out + weight))
            return result
        moments = self._moments.take(groups)
        if leave_out:
            moments = moments.without(cells)
        joined = moments.join(Moments(np.ones(len(cells)), cells, np.zeros(len(cells))))
        result[known] = (self._moment_evidence(joined) - self._moment_evidence(moments))[:, 0]
        return result

    def _moment_evidence(self, moments: Moments) -> FloatArray:
        """Return the log density of numbers, for each share within clusters."""
        prior, sizes = self._prior, moments.sizes[:, None]
        pull = prior.weights * sizes / (prior.weights + sizes) * moments.means[:, None] ** 2
        return prior.log_density(moments.sizes, np.log(prior.scales + moments.scatters[:, None] + pull))

    def _count_evidence(self, counts: FloatArray) -> FloatArray:
        """Return the log probability of categories, eq. (10.9), for each share within clusters."""
        from scipy.special import gammaln  # slow to import

        used, weights = self._shares > 0, SHARES_WITHIN / (1 - SHARES_WITHIN)
        priors = weights[:, None] * self._shares[used]
        terms = [(gammaln(counts[:, used] + prior) - gammaln(prior)).sum(axis=1) for prior in priors]
        sizes = counts.sum(axis=1)[:, None]
        evidence: FloatArray = np.column_stack(terms) + gammaln(weights) - gammaln(sizes + weights)
        return evidence
