"""Stationary diffusion of real columns."""

from __future__ import annotations

import math
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._html import shorten_value
from .._random import RandomState, as_generator
from ..errors import InputError
from ..tree.tree import Tree, check_tree
from .base import Predictions, check_width
from .gaussian import LARGEST_VALUE, Gaussian, check_size, in_single_precision, least_noise
from .layout import Columns, GaussianColumns, GaussianMessages, Messages

FloatArray = NDArray[np.float64]

SMALLEST_RATE, LARGEST_RATE = 1e-30, 1e30


class OrnsteinUhlenbeck(Gaussian):
    r"""Diffusion with a pull towards the mean, at equilibrium: the stationary twin of `Brownian`.

    Every lineage is :math:`N(\mu, \Sigma)` at all times, also at the root, and two rows whose lineages meet at height :math:`h`
    have correlation :math:`e^{-2 \kappa h}` in every column, eq. (4.1). The likelihood of a merge, eq. (4.4), is therefore a
    true ratio, of one tree to two independent ones.

    Parameters
    ----------
    rate : float, default 1.0
        :math:`\kappa`, at which the past is forgotten, in all columns.
    mean : float or array-like of shape (D,), default 0.0
        :math:`\mu`.
    variance : float, array-like of shape (D,) or (D, D), default 1.0
        :math:`\Sigma`: the same for all columns, one a column, or a full covariance matrix.
    noise : float or array-like of shape (D,) or (D, D), default 0.0
        Each observation is its lineage's state plus noise of variance ``noise * variance``: one number for all columns, or
        one a column. Any noise makes the density of identical rows finite. Where `variance` is a matrix, a matrix is the
        covariance of the noise itself, in the columns' own units.

    Notes
    -----
    Missing cells are integrated out. With a full covariance matrix the table of a tree has to be complete, and new rows need not
    be. Where `noise` is a matrix too, :func:`coaltree.mcmc` with ``calibrate=True`` takes tables with missing cells: it draws
    them, and both matrices, together with the trees, eq. (13.9) and (13.10).

    Examples
    --------
    >>> import coaltree as ct
    >>> tree = ct.Tree.from_newick("((a:1,b:1):1,c:2);")
    >>> round(ct.OrnsteinUhlenbeck(rate=0.5).log_likelihood(tree, [[0.0], [1.0], [2.0]]), 4)
    -5.1055
    """

    def __init__(
        self, rate: float = 1.0, mean: ArrayLike = 0.0, variance: ArrayLike = 1.0, noise: ArrayLike = 0.0
    ) -> None:
        super().__init__(variance, noise)
        try:
            self.rate = float(rate)
        except (TypeError, ValueError):
            self.rate = math.nan
        if not SMALLEST_RATE <= self.rate <= LARGEST_RATE:
            raise InputError(
                f"rate is {rate!r}; it must be a number from {SMALLEST_RATE:g} to {LARGEST_RATE:g}, the speed of forgetting."
            )
        try:
            self.mean = np.array(mean, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError(f"mean is {mean!r}; it must be one number or one a column.") from None
        if self.mean.ndim > 1 or self.mean.size == 0 or not np.all(np.isfinite(self.mean)):
            raise InputError("mean must be one finite number, or one a column.")
        for name, own in (("variance", self.variance), ("noise", self.noise)):
            if self.mean.ndim and own.ndim and len(self.mean) != len(own):
                raise InputError(
                    f"mean has {len(self.mean)} numbers, but {name} describes {len(own)} columns; they must be as many."
                )
        self.mean.setflags(write=False)

    @property
    def n_columns(self) -> int | None:
        """How many columns the parameters are for; None where they fit any number."""
        return len(self.mean) if self.mean.ndim else super().n_columns

    def __repr__(self) -> str:
        return (
            f"OrnsteinUhlenbeck(rate={self.rate:g}, mean={shorten_value(self.mean)}, variance={shorten_value(self.variance)}, "
            f"noise={shorten_value(self.noise)})"
        )

    def whitened(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return X in units of the equilibrium, and half the log variance of each column (its Jacobian)."""
        return super().whitened(X - self.mean)

    def coloured(self, white: FloatArray) -> FloatArray:
        """Return rows in units of the equilibrium in those of the table, the inverse of `whitened`."""
        return super().coloured(white) + self.mean

    def _noises(self, white: FloatArray) -> FloatArray:
        """Return the noise of each column, at least what keeps densities finite."""
        observed = ~np.isnan(white)
        centred = np.where(observed, white - _means(white, observed), 0.0)
        spread = (centred**2).sum(axis=0) / np.maximum(observed.sum(axis=0), 1)
        # of the equilibrium's scale at the most: rows may lie far out, and still be as far from each other as they are
        return np.maximum(self.white_noise, least_noise(np.where(spread > 0, np.minimum(spread, 1.0), 1.0)))

    def columns(self, X: FloatArray) -> list[Columns]:
        """Declare the leaves' messages in units of the equilibrium."""
        white, _ = self.whitened(X)
        observed = ~np.isnan(white)
        white = np.where(observed, white, 0.0)
        _check_distance(white)
        check_size(np.where(observed, white - _means(white, observed), 0.0))
        noise = self._noises(np.where(observed, white, np.nan))
        shared = bool(observed.all()) and self.uniform_noise
        if shared:
            noise = np.full(X.shape[1], noise.max())
        f = 1 / np.sqrt(1 + noise)
        lost = noise * f / (1 + 1 / f)  # 1 - f without cancellation
        spread = np.full((len(X), 1), lost[0]) if shared else np.where(observed, lost, 1.0)
        return [GaussianColumns(white / np.sqrt(1 + noise), spread, shared, self.noisy, self.rate)]

    def leaf_log_likelihoods(self, X: FloatArray) -> FloatArray:
        """Return the log density of each row at equilibrium, noise included."""
        white, log_scales = self.whitened(X)
        variance = 1 + self.white_noise
        terms = -0.5 * (np.log(2 * math.pi * variance) + white**2 / variance) - log_scales
        return np.asarray(np.where(np.isnan(white), 0.0, terms).sum(axis=1))

    def simulate(self, tree: Tree, random_state: RandomState = None, *, n_columns: int | None = None) -> FloatArray:
        """Draw a table: row i is leaf i.

        Parameters
        ----------
        tree : Tree
        random_state : None, int, numpy.random.Generator or numpy.random.RandomState
        n_columns : int, optional
            Number of columns where no parameter says it; 1 by default.

        Returns
        -------
        ndarray of shape (n_leaves, D)
        """
        tree = check_tree(tree)
        rng = as_generator(random_state)
        width = self.width(n_columns)
        kept = np.exp(-self.rate * tree.branch_lengths)
        fresh = np.sqrt(-np.expm1(-2 * self.rate * tree.branch_lengths))
        states = rng.standard_normal((tree.n_nodes, width))
        parents = tree.parents
        for node in range(tree.n_nodes - 2, -1, -1):
            states[node] = kept[node] * states[parents[node]] + fresh[node] * states[node]
        leaves = states[: tree.n_leaves]
        return self.coloured(leaves + np.sqrt(self.white_noise) * rng.standard_normal(leaves.shape))

    def coordinates(self, messages: Messages, height: float) -> NDArray[np.float32]:
        """Return the messages, in units of what they differ by after a path; NaN where there is none."""
        a, lost = messages[0][:2]
        known = lost < 1
        span = 2 * (np.median(lost[known]) if np.any(known) else 0.0) + 4 * self.rate * height
        return in_single_precision(np.where(known, a, np.nan).T, span)

    @property
    def settled_height(self) -> float:
        """The height at which the past is forgotten as far as by the noise, in the column with the least."""
        return math.log1p(float(self.white_noise.min())) / (2 * self.rate)

    def _white(self) -> OrnsteinUhlenbeck:
        return OrnsteinUhlenbeck(self.rate, 0.0, 1.0, self.white_noise)

    def _root(self, mean: FloatArray, spread: FloatArray) -> tuple[FloatArray, FloatArray]:
        return (1 - spread) * mean, spread * (2 - spread)

    def _child(
        self, mean: FloatArray, spread: FloatArray, above: FloatArray, length: float
    ) -> tuple[FloatArray, FloatArray]:
        # the parent says N(kept z, fresh), the message that a is N(f z, 1 - f^2)
        kept, fresh = math.exp(-self.rate * length), -math.expm1(-2 * self.rate * length)
        f, free = 1 - spread, spread * (2 - spread)
        gain = fresh * f / (fresh * f**2 + free)
        return kept * above + gain * (mean - f * kept * above), fresh * free / (fresh * f**2 + free)

    def states(self, messages: Messages, distance: FloatArray, observed: bool) -> Predictions:
        """Return what messages say of states some way off, the equilibrium as prior."""
        own = messages[0]
        assert isinstance(own, GaussianMessages)
        lost = own.spread
        f = (1 - lost) * np.exp(-self.rate * distance)[:, None]
        gap = lost - (1 - lost) * np.expm1(-self.rate * distance)[:, None]
        variance = gap * (1 + f) + (self.noise if observed else 0.0)
        mean = self.coloured(f * own.mean)
        return Predictions.of_real(mean, np.sqrt(variance) * self.deviations(mean.shape[1]))

    def resolve(self, X: FloatArray) -> Self:
        """Check that the table fits; nothing is left open."""
        if self.n_columns is not None:
            check_width(X.shape[1], self.n_columns, "OrnsteinUhlenbeck's parameters")
        return super().resolve(X)


def _means(white: FloatArray, observed: NDArray[np.bool_]) -> FloatArray:
    return np.asarray(np.where(observed, white, 0.0).sum(axis=0) / np.maximum(observed.sum(axis=0), 1))


def _check_distance(white: FloatArray) -> None:
    """Raise for values so far from the mean that their squares would be lost."""
    largest = np.abs(white).max(axis=0)
    if np.any(largest >= LARGEST_VALUE):
        column = int(np.argmax(largest >= LARGEST_VALUE))
        raise InputError(
            f"The values of column {column} lie up to {largest[column]:g} standard deviations from the mean of the process; it "
            f"must be less than {LARGEST_VALUE:g}: rescale the column, or give its own mean and variance."
        )
