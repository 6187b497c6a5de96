"""Rates and equilibria of mutation, fitted to trees by expectation-maximisation over where states were drawn anew."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..tree.tree import Tree
from .base import RATE_RANGE, SCALE, SHAPE, Evidence, Noise, as_matrix
from .kernels.passes import expected_redraws
from .likelihood import Beliefs
from .multinomial import Multinomial

FloatArray = NDArray[np.float64]

EM_STEPS, EM_TOLERANCE = 50, 1e-3
SITE_NOISE_PRIOR = (1.0, 5.0)  # of the Beta distribution of a noise: most cells show the state of their lineage
LEAST_NOISE, MOST_NOISE = 1e-6, 0.999


class Redraws(NamedTuple):
    """What all trees say of the columns' mutations, edges side by side."""

    lengths: FloatArray  # (edges,)
    weights: FloatArray  # (edges,), of the trees that they are in
    redraws: FloatArray  # (columns, edges), probability that the state was drawn anew on the edge
    draws: FloatArray  # (states,), how often each was drawn
    noise_draws: (
        FloatArray  # (columns,), how many cells show a draw from the equilibrium instead of their lineage's state
    )


def fit_multinomial(process: Multinomial, evidence: Evidence, noise: Noise) -> Multinomial:
    """Return the most probable rates, equilibria and noise, or what some steps towards them reach; noise of 0 stays."""
    moves_noise = noise == "fitted" and bool(process.noise.any())
    for _ in range(EM_STEPS):
        found = redraws(process, evidence)
        rates = _best_rates(process, found)
        equilibria = _best_equilibria(process, found)
        assert process.equilibrium is not None
        change = max(
            float(np.max(np.abs(np.log(rates / process.rate)))),
            max(float(np.max(np.abs(new - old))) for new, old in zip(equilibria, process.equilibrium, strict=True)),
        )
        noises = _best_noise(process, found, evidence.X) if moves_noise else process.noise
        change = max(change, float(np.max(np.abs(noises - process.noise))))
        process = Multinomial(rates, equilibria, noises)
        if change < EM_TOLERANCE:
            break
    return process


def redraws(process: Multinomial, evidence: Evidence) -> Redraws:
    """Return the expected mutations of all columns, given trees and table."""
    n, n_columns = evidence.X.shape
    assert process.equilibrium is not None, "redraws is called on a resolved process"
    n_edges = max(2 * n - 3, 0)
    lengths = np.empty((len(evidence.trees), n_edges))
    shares = np.empty((n_columns, len(evidence.trees), n_edges))
    draws, noise_draws = np.zeros(sum(len(q) for q in process.equilibrium)), np.zeros(n_columns)
    for k, (tree, weight) in enumerate(zip(evidence.trees, evidence.weights, strict=True)):
        beliefs = Beliefs(tree, evidence.X, process)
        of_tree, own = np.empty_like(draws), np.empty((n_columns, n_edges))
        expected_redraws(beliefs.forest, tree.children, tree.heights, beliefs.turn, lengths[k], own, of_tree)
        layout = beliefs.forest.layout
        shares[layout.sites, k] = own
        draws += weight * of_tree[layout.parts[0].at]
        if process.noise.any():
            by_noise = _noise_chances(process, beliefs, evidence.X)
            noise_draws += weight * by_noise.sum(axis=0)
            for d, first in enumerate(layout.parts[0].start[:-1]):
                rows = ~np.isnan(evidence.X[:, d])
                np.add.at(draws, first + evidence.X[rows, d].astype(np.intp), weight * by_noise[rows, d])
    weights = np.repeat(evidence.weights, n_edges)
    return Redraws(lengths.ravel(), weights, shares.reshape(n_columns, -1), draws, noise_draws)


def _noise_chances(process: Multinomial, beliefs: Beliefs, X: FloatArray) -> FloatArray:
    """Return for each observed cell the probability that it shows a draw from the equilibrium; 0 for missing ones.

    A leaf's own message is ``(1 - noise) [k observed] / q + noise``; of what the rest of the tree says of the observed state, its
    belief b without that cell, the cell shows it by noise in proportion to ``noise q`` and else to ``(1 - noise) b``.
    """
    assert process.equilibrium is not None
    chances = np.zeros(X.shape)
    shown = beliefs.nodes().take(slice(0, len(X)))  # the leaves' states, their own cells among what is known
    noises = np.broadcast_to(process.noise, X.shape[1])
    for d, (q, noise) in enumerate(zip(process.equilibrium, noises, strict=True)):
        rows = np.flatnonzero(~np.isnan(X[:, d]))
        codes = X[rows, d].astype(np.intp)
        own = shown.probability[rows, shown.start[d] + codes]
        # a state other than the one observed was never shown by the lineage itself; the same one perhaps
        chances[rows, d] = (1 - own) + own * noise * q[codes] / (noise * q[codes] + 1 - noise)
    return chances


def gradients(process: Multinomial, tree: Tree, X: ArrayLike) -> tuple[FloatArray, list[FloatArray]]:
    """Return the derivatives of ``log p(x | tree)`` by the rate and by the equilibrium of every column.

    Parameters
    ----------
    process : Multinomial
    tree : Tree
    X : array-like of shape (n_leaves, n_columns)

    Returns
    -------
    rate : ndarray of shape (n_columns,)
    equilibrium : list of ndarray
        By the probability of each state, as if they need not add up to 1.
    """
    matrix = as_matrix(X)
    resolved = process.resolve(matrix)
    assert resolved.equilibrium is not None
    found = redraws(resolved, Evidence([tree], np.ones(1), matrix))
    x = np.broadcast_to(resolved.rate, matrix.shape[1])[:, None] * found.lengths
    with np.errstate(divide="ignore", invalid="ignore"):
        gained = np.where(x > 0, found.redraws / np.expm1(x), 0.0)
    by_rate = np.sum(found.lengths * (gained - (1 - found.redraws)), axis=1)
    ends = np.cumsum([len(q) for q in resolved.equilibrium])[:-1]
    return by_rate, [own / q for own, q in zip(np.split(found.draws, ends), resolved.equilibrium, strict=True)]


def _best_rates(process: Multinomial, found: Redraws) -> FloatArray:
    """Maximise ``sum of redraws log(1 - exp(-rate length)) - (1 - redraws) rate length`` and the prior, concave: eq. (11.2)."""
    real = found.lengths > 0
    lengths, weights, shares = found.lengths[real], found.weights[real], found.redraws[:, real]
    pooled = process.rate.ndim == 0
    rate = np.array(np.broadcast_to(process.rate, len(shares)))
    idle = ((1 - shares) * weights) @ lengths
    if pooled:
        idle = np.full(len(shares), idle.sum())
    low, high = np.minimum(rate, RATE_RANGE[0]), np.maximum(rate, RATE_RANGE[1])
    rate = np.clip(rate, RATE_RANGE[0], RATE_RANGE[1])
    for _ in range(60):
        x = np.minimum(rate[:, None] * lengths, 700.0)
        growth = np.expm1(x)
        slopes = shares * weights * lengths / growth
        bends = slopes * lengths * (growth + 1) / growth
        slope, bend = slopes.sum(axis=1), bends.sum(axis=1)
        if pooled:
            slope, bend = np.full(len(rate), slope.sum()), np.full(len(rate), bend.sum())
        slope += (SHAPE - 1) / rate - 1 / SCALE - idle
        bend += (SHAPE - 1) / rate**2
        low, high = np.where(slope > 0, rate, low), np.where(slope > 0, high, rate)
        new = rate * np.exp(np.clip(slope / (bend * rate - slope), -5, 5))  # Newton's step in the logarithm
        new = np.where((new > low) & (new < high), new, np.sqrt(low * high))
        done = np.max(np.abs(np.log(new / rate))) < 1e-6
        rate = new
        if done:
            break
    return rate[0] if pooled else rate


def _best_equilibria(process: Multinomial, found: Redraws) -> list[FloatArray]:
    """Return the shares of the states among all draws and one more, which is spread evenly: eq. (11.3)."""
    assert process.equilibrium is not None
    ends = np.cumsum([len(q) for q in process.equilibrium])[:-1]
    return [(own + 1 / len(own)) / (own.sum() + 1) for own in np.split(found.draws, ends)]


def _best_noise(process: Multinomial, found: Redraws, X: FloatArray) -> FloatArray:
    """Return the most probable noise given how many cells it has drawn: eq. (11.4)."""
    cells, drawn = (~np.isnan(X)).sum(axis=0).astype(np.float64), found.noise_draws
    if process.noise.ndim == 0:
        cells, drawn = cells.sum(), drawn.sum()
    a, b = SITE_NOISE_PRIOR
    # noise that was given beyond these ends may stay where it is best
    least, most = np.minimum(process.noise, LEAST_NOISE), np.maximum(process.noise, MOST_NOISE)
    best = np.clip((a - 1 + drawn) / (a + b - 2 + cells), least, most)
    return np.where(process.noise > 0, best, 0.0)  # noise of 0 stays


def multinomial_log_prior(process: Multinomial, X: FloatArray) -> float:
    """Return the log density of the parameters under their priors, up to a constant."""
    resolved = process.resolve(X)
    assert resolved.equilibrium is not None
    rate = np.atleast_1d(resolved.rate)
    total = float(np.sum((SHAPE - 1) * np.log(rate) - rate / SCALE))
    noises = np.atleast_1d(resolved.noise)[np.atleast_1d(resolved.noise) > 0]
    total += float(np.sum((SITE_NOISE_PRIOR[0] - 1) * np.log(noises) + (SITE_NOISE_PRIOR[1] - 1) * np.log1p(-noises)))
    return total + sum(float(np.mean(np.log(q))) for q in resolved.equilibrium)
