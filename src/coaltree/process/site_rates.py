"""Rates that vary across the sites of a partition: categories of a gamma distribution (Yang, 1994).

The rate of a site is that of its partition times one of four factors, which are equally likely: the means of the quarters of a
gamma distribution with mean 1. Its shape is large if all sites have about the same rate.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ..tree.tree import Tree
from .kernels.messages import Forest
from .kernels.passes import climb_sites

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

N_CATEGORIES = 4  # as in MrBayes and IQ-TREE
SHAPE_RANGE = (1e-3, 200.0)  # below, the slower three quarters do not change; above, all rates are the same
SHAPE_PRIOR_RATE = 1.0  # of the exponential distribution of the shape, as in MrBayes
MIN_FACTOR = 1e-12  # of a rate, with which nothing changes


def category_rates(shape: float) -> FloatArray:
    """Return the factors of the categories, the slowest first; their mean is 1."""
    from scipy.special import gammainc, gammaincinv  # slow to import, and only models with such rates need it

    quantiles = gammaincinv(shape, np.arange(1, N_CATEGORIES) / N_CATEGORIES)
    below = np.concatenate([[0.0], gammainc(shape + 1, quantiles), [1.0]])
    return np.asarray(np.maximum(N_CATEGORIES * np.diff(below), MIN_FACTOR))


class SiteLikelihoods:
    """The likelihood of each column on trees, given its category or the shape only.

    Parameters
    ----------
    forest : Forest
        Of ``2n - 1`` slots, the first of which hold the messages of the leaves; all factors are 1.
    group_of : ndarray of int, optional
        The column of the forest that each column of the table is equal to; by default they are the same.
    """

    def __init__(self, forest: Forest, group_of: IntArray | None = None) -> None:
        self._forest = forest
        self.site_of = forest.layout.site_of if group_of is None else forest.layout.site_of[group_of]
        self.weight = np.bincount(self.site_of, minlength=forest.n_sites)

    def given_category(self, tree: Tree, shape: float, clock: float = 1.0) -> FloatArray:
        """Return the log likelihood of each site in each category, shape ``(categories, sites)``.

        It is relative to that of the leaves by themselves, see `Process.leaf_log_likelihoods`. A factor of the rate of all sites
        has the effect of the same factor of all heights.
        """
        logs = np.zeros((N_CATEGORIES, len(self.weight)))
        for log_z, factor in zip(logs, category_rates(shape), strict=True):
            climb_sites(self._forest, tree.children, clock * factor * tree.heights, log_z)
        return logs

    def log_likelihood(self, tree: Tree, shape: float, clock: float = 1.0) -> float:
        """Return the log likelihood of all columns given the shape, with all rates multiplied by `clock`."""
        return float(self.weight @ sum_categories(self.given_category(tree, shape, clock)))

    def chances(self, logs: FloatArray) -> FloatArray:
        """Return the probability of each category for each column, shape ``(categories, columns)``; see `given_category`."""
        chances = np.exp(logs - np.logaddexp.reduce(logs, axis=0))
        return np.asarray(chances[:, self.site_of])


def sum_categories(logs: FloatArray, axis: int = 0) -> FloatArray:
    """Return log likelihoods of sites, summed over their categories, which are equally likely."""
    return np.asarray(np.logaddexp.reduce(logs, axis=axis) - math.log(logs.shape[axis]))


def draw_categories(chances: FloatArray, rng: np.random.Generator) -> IntArray:
    """Draw a category for each column."""
    cumulative = np.cumsum(chances, axis=0)
    ranks = (cumulative <= rng.random(chances.shape[1]) * cumulative[-1]).sum(axis=0)
    return np.asarray(np.minimum(ranks, N_CATEGORIES - 1))
