"""The search for the best height of categories that all mutate at one rate."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import coaltree as ct


def two_rows(seed):
    rng = np.random.default_rng(seed)
    n_columns = int(rng.integers(1, 12))
    equilibrium = [rng.dirichlet(np.ones(k)) for k in rng.integers(2, 6, size=n_columns)]
    process = ct.Multinomial(10 ** rng.uniform(-2, 1.5), equilibrium)
    X = np.column_stack([rng.choice(len(q), size=2, p=q) for q in equilibrium]).astype(float)
    X[rng.random(X.shape) < 0.1] = np.nan
    return X, process


@pytest.mark.parametrize("seed", range(15))
def test_one_rate_height_is_optimal(seed):
    X, process = two_rows(seed)

    def loss(h):
        """Return ``h - log Z(h)``, where states that agree have the ratio 1 + f (1/q - 1), and others 1 - f."""
        unchanged = np.exp(-2 * process.rate * h)
        log_ratio = 0.0
        for (a, b), q in zip(X.T, process.equilibrium, strict=True):
            if not np.isnan(a + b):
                ratio = 1 + unchanged * (1 / q[int(a)] - 1) if a == b else 1 - unchanged
                with np.errstate(divide="ignore"):
                    log_ratio = log_ratio + np.log(ratio)
        return h - log_ratio

    # finely over all orders of magnitude, then from the best point on
    grid = np.concatenate([[0.0], np.logspace(-9, 3, 20_000)])
    losses = loss(grid)
    best = int(np.argmin(losses))
    least = losses[best]
    if 0 < best < len(grid) - 1:
        least = min(least, minimize_scalar(loss, bounds=(grid[best - 1], grid[best + 1]), method="bounded").fun)
    result = ct.greedy(X, process).tree.heights[-1]
    assert loss(result) <= least + 1e-9
    if best == 0:
        assert result == 0


def test_nearly_equal_rates_give_nearly_same_tree():
    _, process = two_rows(3)
    rng = np.random.default_rng(0)
    table = np.column_stack([rng.choice(len(q), size=40, p=q) for q in process.equilibrium]).astype(float)
    rates = np.full(table.shape[1], process.rate)
    rates[0] *= 1 + 1e-12  # the general search, which proves that nothing is overlooked
    one = ct.greedy(table, process)
    several = ct.greedy(table, ct.Multinomial(rates, process.equilibrium))
    np.testing.assert_allclose(one.tree.heights, several.tree.heights, rtol=1e-6, atol=1e-12)
    assert one.log_joint == pytest.approx(several.log_joint, rel=1e-6)
