"""Resampling gives n copies, in proportion to the weights on average."""

import numpy as np
import pytest

from coaltree.inference.smc import SCHEMES, assign_copies, draw_copies

WEIGHTS = np.array([0.5, 0.0, 0.26, 0.2, 0.04])


@pytest.mark.parametrize("scheme", SCHEMES)
def test_resampling_is_unbiased(scheme):
    """Means over 20,000 draws, each within 5 standard errors: level 6e-7 a weight."""
    rng = np.random.default_rng(0)
    draws = np.array([draw_copies(scheme, WEIGHTS, rng) for _ in range(20_000)])
    assert np.all(draws.sum(axis=1) == len(WEIGHTS))
    assert np.all(draws[:, 1] == 0)
    errors = draws.std(axis=0) / np.sqrt(len(draws))
    assert np.all(np.abs(draws.mean(axis=0) - len(WEIGHTS) * WEIGHTS) <= 5 * errors + 1e-12)
    if scheme == "systematic":
        assert np.all(np.abs(draws - len(WEIGHTS) * WEIGHTS) < 1)
    if scheme == "residual":
        assert np.all(draws >= np.floor(len(WEIGHTS) * WEIGHTS))


@pytest.mark.parametrize("scheme", SCHEMES)
def test_resampling_of_equal_and_extreme_weights(scheme):
    rng = np.random.default_rng(0)
    assert draw_copies(scheme, np.array([1.0]), rng).tolist() == [1]
    assert draw_copies(scheme, np.array([0.0, 0.0, 1.0]), rng).tolist() == [0, 0, 3]
    if scheme in ("systematic", "stratified", "residual"):
        for n in (3, 7, 1000):
            assert draw_copies(scheme, np.full(n, 1 / n), rng).tolist() == [1] * n


def test_resampling_keeps_survivors_in_place():
    sources, targets = assign_copies(np.array([3, 0, 1, 0, 1]))
    assert sources.tolist() == [0, 0]
    assert targets.tolist() == [1, 3]
