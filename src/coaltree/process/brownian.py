"""Brownian diffusion of real columns."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._html import shorten_value
from .._random import RandomState, as_generator
from ..errors import InputError
from ..tree.tree import Tree, check_tree
from .base import Predictions
from .gaussian import Gaussian, check_size, in_single_precision, least_noise
from .layout import Columns, GaussianColumns, GaussianMessages, Messages

FloatArray = NDArray[np.float64]


class Brownian(Gaussian):
    r"""Brownian motion along the branches, from a flat root.

    Over a time :math:`t` a lineage moves by :math:`N(0, t \Lambda)`. The root is flat and improper, so the likelihood is
    the restricted one of Felsenstein's contrasts: eq. (3.2) and eq. (3.3).

    Parameters
    ----------
    variance : float, array-like of shape (D,) or (D, D), default 1.0
        :math:`\Lambda` per unit of time: the same for all columns, one a column, or a full covariance matrix.
    noise : float or array-like of shape (D,) or (D, D), default 0.0
        Each observation is its lineage's state plus noise of variance ``noise * variance``: one number for all columns, or
        one a column. Any noise makes the density of identical rows finite. Where `variance` is a matrix, a matrix is the
        covariance of the noise itself, in the columns' own units; Markov chains do not draw it.

    Notes
    -----
    Missing cells are integrated out. With a full covariance matrix the table of a tree has to be complete; new rows need not be.

    Examples
    --------
    >>> import coaltree as ct
    >>> tree = ct.Tree.from_newick("((a:1,b:1):1,c:2);")
    >>> round(ct.Brownian().log_likelihood(tree, [[0.0], [1.0], [5.0]]), 4)
    -5.9537
    """

    def __init__(self, variance: ArrayLike = 1.0, noise: ArrayLike = 0.0) -> None:
        super().__init__(variance, noise)

    def __repr__(self) -> str:
        return f"Brownian(variance={shorten_value(self.variance)}, noise={shorten_value(self.noise)})"

    def columns(self, X: FloatArray) -> list[Columns]:
        """Declare the leaves' Gaussian messages in units of the diffusion."""
        white, log_scales = self.whitened(X)
        observed = ~np.isnan(white)
        complete = bool(observed.all())
        counts = np.maximum(observed.sum(axis=0), 1)
        means = np.where(observed, white, 0.0).sum(axis=0) / counts
        centred = np.where(observed, white - means, 0.0)  # nothing depends on the origin, and differences are exact
        check_size(centred)
        spread = (centred**2).sum(axis=0) / counts
        scale = float(spread[observed.any(axis=0)].mean()) if observed.any() else 0.0
        scale = scale if scale > 0 else 1.0
        shared = complete and self.uniform_noise
        if shared:
            v = np.full((len(X), 1), np.maximum(self.white_noise.flat[0], least_noise(scale)))
        else:
            noise = np.maximum(self.white_noise, least_noise(np.where(spread > 0, spread, scale)))
            v = np.where(observed, noise, np.inf)
        return [GaussianColumns(centred, v, shared, self.noisy, 0.0, log_scales, scale, means)]

    def leaf_log_likelihoods(self, X: FloatArray) -> FloatArray:
        """Return zeros: a leaf's message is a density and needs no constant."""
        return np.zeros(len(X))

    def simulate(
        self,
        tree: Tree,
        random_state: RandomState = None,
        *,
        n_columns: int | None = None,
        root: ArrayLike = 0.0,
    ) -> FloatArray:
        """Draw a table: row i is leaf i.

        Parameters
        ----------
        tree : Tree
        random_state : None, int, numpy.random.Generator or numpy.random.RandomState
        n_columns : int, optional
            Number of columns where `variance` is one number; 1 by default.
        root : float or array-like of shape (D,), default 0.0
            State at the root, which the model itself leaves open.

        Returns
        -------
        ndarray of shape (n_leaves, D)
        """
        tree = check_tree(tree)
        rng = as_generator(random_state)
        width = self.width(n_columns)
        start = _checked_root(root, width)
        lengths = tree.branch_lengths
        steps = rng.standard_normal((tree.n_nodes - 1, width)) * np.sqrt(lengths)[:, None]
        states = np.zeros((tree.n_nodes, width))
        parents = tree.parents
        for node in range(tree.n_nodes - 2, -1, -1):
            states[node] = states[parents[node]] + steps[node]
        leaves = states[: tree.n_leaves]
        leaves += np.sqrt(self.white_noise) * rng.standard_normal(leaves.shape)
        return self.coloured(leaves) + start

    def coordinates(self, messages: Messages, height: float) -> NDArray[np.float32]:
        """Return the means of the messages, in units of what a path adds to their variance; NaN where there is none."""
        y, v = messages[0][:2]
        known = v < np.inf
        span = 2 * (np.median(v[known]) if np.any(known) else 0.0) + 2 * height
        return in_single_precision(np.where(known, y, np.nan).T, span)

    @property
    def settled_height(self) -> float:
        """The height at which diffusion is as large as the noise, in the column with the least."""
        return float(self.white_noise.min())

    def _white(self) -> Brownian:
        return Brownian(1.0, self.white_noise)

    def _root(self, mean: FloatArray, spread: FloatArray) -> tuple[FloatArray, FloatArray]:
        return mean, np.where(spread < np.inf, spread, 0.0)  # a column without any observed cell stays at its centre

    def _child(
        self, mean: FloatArray, spread: FloatArray, above: FloatArray, length: float
    ) -> tuple[FloatArray, FloatArray]:
        known = spread < np.inf
        share = np.where(known, length / (length + np.where(known, spread, 1.0)), 0.0)
        return above + share * (mean - above), length * (1 - share)

    def states(self, messages: Messages, distance: FloatArray, observed: bool) -> Predictions:
        """Return what messages say of states some way off: the mean, and the variance that grew on the way."""
        own = messages[0]
        assert isinstance(own, GaussianMessages)
        variance = own.spread + distance[:, None] + (self.noise if observed else 0.0)
        mean = self.coloured(own.mean + own.center)
        return Predictions.of_real(mean, np.sqrt(variance) * self.deviations(mean.shape[1]))


def _checked_root(root: ArrayLike, width: int) -> FloatArray:
    """Return the state at the root, one number or one a column."""
    try:
        state = np.asarray(root, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"root is {root!r}; it must be one number, or one a column.") from None
    if state.shape not in ((), (width,)) or not np.all(np.isfinite(state)):
        raise InputError(f"root is {root!r}; it must be one finite number, or one for each of {width} column(s).")
    return state
