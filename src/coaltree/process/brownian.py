"""Brownian motion of real columns: the process, its fit to trees and its sampler."""

from __future__ import annotations

import sys

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._random import RandomState, as_generator
from .._validation import quote, to_floats
from ..errors import InputError
from ..tree.tree import Tree, check_tree
from .base import ParameterSampler, WeightedTrees
from .declarations import Columns
from .gaussian import Gaussian, GaussianSampler, skip_singular
from .gaussian_columns import (
    NOISE_RANGE,
    Contrasts,
    GaussianPrior,
    best_column_noises,
    diffusion_columns,
    maximize_positive,
    scale_coordinates,
)
from .layout import GaussianMessages, Messages
from .predictions import Predictions
from .slice_sampling import positive_slice_step

FloatArray = NDArray[np.float64]

MAX_EXACT_ROWS_IN_SPACE = 50_000  # for complete rows with one noise, most of which a tree in space rules out;
MAX_FAST_COLUMNS = 3  # with so few columns, any number of rows is fast
N_SWEEPS = 2  # over the noises of all columns, from where they are and from one noise for all of them


class Brownian(Gaussian):
    r"""Brownian motion along the branches, from a flat root.

    Over a time :math:`t` a lineage moves by :math:`N(0, t \Lambda)`. The root is flat and improper, so the likelihood is
    the restricted one of Felsenstein's contrasts: eq. (3.2) and eq. (3.3).

    Parameters
    ----------
    variance : float, array-like of shape (D,) or (D, D), default 1.0
        :math:`\Lambda` per unit of time: the same for all columns, one per column, or a full covariance matrix.
    noise : float or array-like of shape (D,) or (D, D), default 0.0
        Each observation is its lineage's state plus noise of variance ``noise * variance``: one number for all columns, or
        one per column. Any noise makes the density of identical rows finite. Where `variance` is a matrix, a matrix is the
        covariance of the noise itself, in the columns' own units; Markov chains do not sample it.

    Notes
    -----
    Missing cells are integrated out. With a full covariance matrix the table of a tree must be complete; new rows need not be.

    Examples
    --------
    >>> import coaltree as ct
    >>> tree = ct.Tree.from_newick("((a:1,b:1):1,c:2);")
    >>> round(ct.Brownian().log_likelihood(tree, [[0.0], [1.0], [5.0]]), 4)
    -5.9537
    """

    kind = "brownian"

    def __init__(self, variance: ArrayLike = 1.0, noise: ArrayLike = 0.0) -> None:
        super().__init__(variance, noise)

    def columns(self, X: FloatArray) -> list[Columns]:
        """Declare the leaves' Gaussian messages in units of the diffusion."""
        white, log_scales = self.whiten(X)
        return [diffusion_columns(white, log_scales, self.white_noise)]

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
        return self.unwhiten(leaves) + start

    def coordinates(self, messages: Messages, height: float) -> NDArray[np.float32]:
        """Return the means of the messages, in units of the variance that a path adds; NaN where there is none."""
        y, v = messages[0][:2]
        known = v < np.inf
        span = 2 * (np.median(v[known]) if np.any(known) else 0.0) + 2 * height
        return scale_coordinates(np.where(known, y, np.nan).T, span)

    @property
    def min_attachment_height(self) -> float:
        """The height at which diffusion is as large as the noise, in the column with the least noise."""
        return float(self.white_noise.min())

    def _unit_process(self) -> Brownian:
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
        """Return the means of the messages, with the variance that paths add."""
        message = messages[0]
        assert isinstance(message, GaussianMessages)
        variance = message.spread + distance[:, None] + (self.noise if observed else 0.0)
        mean = self.unwhiten(message.mean + message.center)
        return Predictions.from_real(mean, np.sqrt(variance) * self.deviations(mean.shape[1]))

    def _max_rows_in_blocks(self, X: FloatArray) -> int:
        return MAX_EXACT_ROWS_IN_SPACE if X.shape[1] > MAX_FAST_COLUMNS else sys.maxsize

    def rescale_clock(self, factor: float) -> Brownian:
        """Return slower diffusion. Noise is in units of it, so that its ratio grows."""
        return Brownian(self.variance / factor, self.noise * factor)

    def fit(self, trees: WeightedTrees, hold_noise: bool) -> Brownian:
        """Return the most probable variance and noise; see `Process.fit`."""
        self._check_fit()
        return _fit(self, trees, hold_noise)

    def sampler(self, X: FloatArray, hold_noise: bool) -> ParameterSampler[Brownian]:
        """Return a sampler of variance and noise."""
        return BrownianSampler(self, X, hold_noise)


def _fit(process: Brownian, trees: WeightedTrees, hold_noise: bool) -> Brownian:
    prior = GaussianPrior.from_table(trees.X, hold_noise)
    heights = [tree.heights for tree in trees.trees]

    @skip_singular(process)
    def best_at(noise: FloatArray | float) -> tuple[float, Brownian]:
        sums = Contrasts.from_trees(trees, prior, heights, noise)
        best = Brownian(
            prior.best_variance(process.variance.ndim, sums.squares(process.variance.ndim), sums.counts, noise), noise
        )
        return sums.log_density(best.variance) + best._log_prior(prior), best

    log_density = Contrasts.from_trees(trees, prior, heights, process.noise).log_density(process.variance)
    candidates = [(log_density + process._log_prior(prior), process), best_at(process.noise)]
    if process.noise.ndim and not hold_noise:
        pooled = _fit(Brownian(process.variance, process.noise.mean()), trees, hold_noise)
        for start in (candidates[-1][1], pooled):
            current = start
            for _ in range(N_SWEEPS):
                noises = best_column_noises(current.variance, current.noise, trees, prior, heights)
                candidates.append(best_at(noises))
                current = candidates[-1][1]
    elif not hold_noise:
        candidates.append(
            best_at(maximize_positive(lambda trial: best_at(trial)[0], float(process.noise), NOISE_RANGE))
        )
    return max(candidates, key=lambda candidate: candidate[0])[1]


class BrownianSampler(GaussianSampler[Brownian]):
    """Draws variance and noise: the variance given contrasts, eq. (13.4), noise by slices."""

    def initial_process(self, process: Brownian) -> Brownian:
        """Return the process with at least the noise of rounding."""
        return Brownian(process.variance, self._possible_noise(process))

    def draw(self, process: Brownian, tree: Tree, rng: np.random.Generator) -> Brownian:
        """Draw the noise given the variance, then the variance."""
        variance, noise = process.variance, process.noise

        def log_density(trial: float) -> float:
            sums = self._contrasts(tree, tree.heights, trial)
            return sums.log_density(variance) + self._prior.log_density(variance, trial)

        if self._moves_noise and noise.ndim:
            noise = self._draw_column_noises(process, tree, tree.heights, None, rng)
        elif self._moves_noise:
            noise = np.asarray(positive_slice_step(log_density, float(noise), NOISE_RANGE, rng))
        sums = self._contrasts(tree, tree.heights, noise)
        return Brownian(
            self._prior.draw_variance(variance, sums.squares(variance.ndim), sums.counts, noise, rng), noise
        )

    def clock_exponent(self, process: Brownian) -> float | None:
        """Return the number of precisions and noises; None if noise is held, as its ratio to the diffusion would change."""
        if process.noisy and not self._moves_noise:
            return None
        n_columns = len(process.variance) if process.variance.ndim else 1
        precisions = n_columns * (n_columns + 1) / 2 if process.variance.ndim == 2 else n_columns
        return precisions + (process.noise.size if process.noisy else 0)


def _checked_root(root: ArrayLike, width: int) -> FloatArray:
    """Return the state at the root, one number or one per column."""
    state = to_floats(root)
    if state is None or state.shape not in ((), (width,)) or not np.all(np.isfinite(state)):
        raise InputError(f"root is {quote(root)}; it must be one finite number, or one for each of {width} column(s).")
    return state
