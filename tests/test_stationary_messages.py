"""Messages of stationary columns, against the integrals that they stand for."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import norm

import coaltree as ct
from coaltree.process.kernels import messages as op

N_COLUMNS = 37  # more than a block of them, and no multiple of four
RATE = 0.7


def random_forest(rng, noises, missing, apart):
    """Return a forest with three messages of each column, which differ by about as much as their noise and a path `apart`."""
    noise = 10 ** rng.uniform(*np.log10(noises), N_COLUMNS)
    forest = ct.OrnsteinUhlenbeck(RATE, 0.0, 1.0, noise).forest(rng.normal(size=(3, N_COLUMNS)), 6)
    assert not forest.complete
    mean, spread = np.asarray(forest.mean), np.asarray(forest.spread)
    spread[:3] *= 10 ** rng.uniform(-2, 0, (3, 1))  # as if there were several rows below
    mean[:3] = rng.normal(size=N_COLUMNS) + np.sqrt(2 * spread[:3] + apart) * rng.normal(size=(3, N_COLUMNS))
    flat = rng.random((3, N_COLUMNS)) < missing
    mean[:3][flat], spread[:3][flat] = 0.0, 1.0
    return forest


def log_moments(sides):
    """Return the log integral of normal densities over a state at equilibrium, and its mean and variance, by quadrature.

    Each side is a number ``a``, ``log f`` and the path that it has to go: a is drawn from ``N(n z, 1 - n^2)``.
    """
    known = [(a, log_f - RATE * path) for a, log_f, path in sides]
    precision = 1 + sum(np.exp(2 * log_n) / -np.expm1(2 * log_n) for _, log_n in known)
    center = sum(a * np.exp(log_n) / -np.expm1(2 * log_n) for a, log_n in known) / precision
    step = 0.05 / np.sqrt(precision)
    way = step * np.arange(-240, 241)
    z = center + way
    log_density = norm.logpdf(z)
    for a, log_n in known:
        log_density = log_density + norm.logpdf(a, np.exp(log_n) * z, np.sqrt(-np.expm1(2 * log_n)))
    log_integral = logsumexp(log_density) + np.log(step)
    weight = np.exp(log_density + np.log(step) - log_integral)
    mean = np.sum(weight * way)
    return log_integral, center + mean, np.sum(weight * (way - mean) ** 2)


CASES = pytest.mark.parametrize(
    ("noises", "missing", "paths"),
    [
        ((1e-1, 1e1), 0.0, (0.1, 3.0)),
        ((1e-1, 1e1), 0.4, (0.1, 3.0)),
        ((1e-10, 1e1), 0.0, (1e-8, 1e1)),
        ((1e-10, 1e-8), 0.2, (1e-8, 1e-6)),
        ((1e-10, 1e1), 0.2, (1e-8, 1e1)),
    ],
)


@CASES
def test_third_message_on_branch_matches_formula(noises, missing, paths):
    rng = np.random.default_rng(0)
    for _ in range(5):
        up, down, across = 10 ** rng.uniform(*np.log10(paths), 3)
        forest = random_forest(rng, noises, missing, up + across)
        h = max(up, across)
        np.asarray(forest.height)[[0, 2]] = h - up, h - across
        place = op.Place(forest)
        op.load_place(forest, 0, 1, h + down, 2, place)
        up, down, across = h - forest.height[0], (h + down) - h, h - forest.height[2]  # as they are after rounding
        expected = 0.0
        for a, lost in zip(np.asarray(forest.mean)[:3].T, np.asarray(forest.spread)[:3].T, strict=True):
            sides = [(a[k], np.log1p(-lost[k]), path) for k, path in enumerate((up, down, across)) if lost[k] < 1]
            if lost[2] < 1:
                expected += log_moments(sides)[0] - log_moments(sides[:-1])[0] - norm.logpdf(a[2])
        assert op.log_z_at(forest, place, h) == pytest.approx(expected, rel=1e-10, abs=1e-8)


@CASES
@pytest.mark.parametrize("into", [0, 1, 3])
def test_stationary_merge_matches_formula(noises, missing, paths, into):
    rng = np.random.default_rng(1)
    climbs = 10 ** rng.uniform(*np.log10(paths), 2)
    forest = random_forest(rng, noises, missing, sum(climbs))
    h = max(climbs)
    np.asarray(forest.height)[:2] = h - climbs
    climbs = h - np.asarray(forest.height)[:2]
    means, losses = np.asarray(forest.mean)[:2].T.copy(), np.asarray(forest.spread)[:2].T.copy()
    pair, expected = op.Pair(forest), 0.0
    op.load_pair(forest, 0, 1, pair)
    log_z = op.log_z(forest, pair, h)
    op.merge(forest, 0, 1, h, into, pair)
    for d, (a, lost) in enumerate(zip(means, losses, strict=True)):
        sides = [(a[k], np.log1p(-lost[k]), climbs[k]) for k in range(2) if lost[k] < 1]
        log_integral, mean, variance = log_moments(sides)
        merged, merged_lost = forest.mean[into, d], forest.spread[into, d]
        # of the state, what is merged says that it is N(f a, 1 - f^2)
        assert (1 - merged_lost) * merged == pytest.approx(mean, rel=1e-11, abs=1e-11)
        assert merged_lost * (2 - merged_lost) == pytest.approx(variance, rel=1e-10)
        if not sides:
            assert (merged, merged_lost) == (0.0, 1.0)
        expected += log_integral - sum(norm.logpdf(a[k]) for k in range(2) if lost[k] < 1)
    assert log_z == pytest.approx(expected, rel=1e-10, abs=1e-8)
    assert forest.least[into] == pytest.approx(-np.log1p(-np.asarray(forest.spread)[into].min()) / RATE, rel=1e-12)


def test_exact_state_dominates_merge():
    rng = np.random.default_rng(2)
    forest = random_forest(rng, (0.1, 1.0), 0.2, 0.1)
    mean, spread = np.asarray(forest.mean), np.asarray(forest.spread)
    mean[0], spread[0] = rng.normal(size=N_COLUMNS), 0.0
    op.merge(forest, 0, 1, 0.0, 3, op.Pair(forest))
    assert mean[3] == pytest.approx(mean[0], rel=1e-14)
    assert np.all(spread[3] == 0)

    # where the branch begins, the other side says nothing more
    place = op.Place(forest)
    op.load_place(forest, 0, 1, 0.5, 2, place)
    n = 1 - spread[2]
    expected = norm.logpdf(mean[2], n * mean[0], np.sqrt(1 - n**2)) - norm.logpdf(mean[2])
    assert op.log_z_at(forest, place, 0.0) == pytest.approx(expected.sum(), rel=1e-12)

    # two that are known exactly and differ do not meet at once
    spread[2] = 0.0
    assert op.log_z_at(forest, place, 0.0) < -1e100


def test_long_branch_forgets_state():
    rng = np.random.default_rng(3)
    forest = random_forest(rng, (0.1, 1.0), 0.2, 0.1)
    for h in (60.0, 500.0, 1500.0, 1e5):
        op.merge(forest, 0, 1, h, 3, op.Pair(forest))
        assert np.all(np.isfinite(forest.mean[3]))
        assert np.asarray(forest.spread)[3] == pytest.approx(np.ones(N_COLUMNS), abs=1e-15)
        place = op.Place(forest)
        op.load_place(forest, 0, 1, 2 * h, 2, place)
        assert op.log_z_at(forest, place, h) == pytest.approx(0, abs=1e-12)
