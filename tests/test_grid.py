"""The density that merge heights are drawn from: against the integrand, and draws against the density."""

import math

import numpy as np
import pytest
from scipy import stats

import coaltree as ct
from coaltree.inference.kernels import grid as grids
from coaltree.process.kernels import messages as op

RNG = np.random.default_rng(0)
REAL = RNG.normal(size=(6, 10))
GAPS = np.where(RNG.random(REAL.shape) < 0.3, np.nan, REAL)
CODES = RNG.integers(0, 3, size=(6, 12)).astype(float)
ALIKE = np.repeat(CODES[:1], 6, axis=0)
RATES = RNG.gamma(2.0, 0.5, size=12)
MIXED = ct.Mixed((ct.Brownian(), np.arange(10)), (ct.Multinomial(RATES), np.arange(10, 22)))
ONE_AND_CODES = ct.Mixed((ct.Brownian(), [0]), (ct.Multinomial(RATES), np.arange(1, 13)))

TABLES = {
    "one column": (REAL[:, :1], ct.Brownian()),
    "two columns": (REAL[:, :2], ct.Brownian()),
    "complete": (REAL, ct.Brownian()),
    "noise": (REAL, ct.Brownian(noise=0.3)),
    "gaps": (GAPS, ct.Brownian()),
    "categories": (CODES, ct.Multinomial(RATES)),
    "alike": (ALIKE, ct.Multinomial(1.0, [[0.5, 0.3, 0.2]] * 12)),
    "mixed": (np.hstack([GAPS, CODES]), MIXED),
    "equal in one column": (np.zeros((6, 1)), ct.Brownian()),
    "equal in two columns": (np.zeros((6, 2)), ct.Brownian()),
    "equal in three columns": (np.zeros((6, 3)), ct.Brownian()),
    "equal in ten columns": (np.zeros((6, 10)), ct.Brownian()),
    "nearly equal": (np.array([[0.0], [1e-6], [1.0], [2.0], [3.0], [4.0]]), ct.Brownian()),
    "one equal cell and categories": (np.hstack([np.zeros((6, 1)), CODES]), ONE_AND_CODES),
    "one equal cell of two": (np.array([[0.0, np.nan], [0.0, 1.0], *[[1.0, 2.0]] * 4]), ct.Brownian()),
    "nothing": (np.full((6, 2), np.nan), ct.Brownian()),
}


class PairGrid:
    def __init__(self, name, c, lowest):
        X, process = TABLES[name]
        forest = process.resolve(X).forest(X, 6)
        pair = op.Pair(forest)
        op.load_pair(forest, 0, 1, pair)
        self.grid = grids.Grid()
        self.log_integral = grids.lay_grid(forest, pair, op.pair_shift(forest, 0, 1), c, lowest, self.grid)
        self.logs = np.linspace(-75, 8, 40_001)  # of heights above the lowest
        self.heights = lowest + np.exp(self.logs)
        self.log_f = np.array([op.log_z(forest, pair, h) for h in self.heights]) - c * (self.heights - lowest)

    def log_densities(self):
        return np.array([grids.log_density_at(self.grid, h) for h in self.heights])

    def integral(self, logs):
        """Log of the integral over the heights of a function given by its logs."""
        return np.log(np.trapezoid(np.exp(logs + self.logs - logs.max()), self.logs)) + logs.max()


cases = pytest.mark.parametrize("name", TABLES)
clocks = pytest.mark.parametrize(("c", "lowest"), [(15.0, 0.0), (1.0, 0.0), (6.0, 0.4), (1.0, 3.0)])


@cases
@clocks
def test_grid_approximates_integrand(name, c, lowest):
    grid = PairGrid(name, c, lowest)
    log_density = grid.log_densities()
    exact = grid.integral(grid.log_f)
    assert grid.integral(log_density) == pytest.approx(grid.log_integral, abs=2e-3)
    # powers of the path over many orders of magnitude take a wider mesh
    assert grid.log_integral == pytest.approx(exact, abs=0.3 if name.startswith("equal") else 0.1)
    # the share of draws that importance weights leave
    second = grid.integral(2 * grid.log_f - log_density)
    assert math.exp(2 * exact - second - grid.log_integral) > 0.75
    if name == "nothing":  # an exponential is met exactly
        assert grid.log_integral == pytest.approx(-math.log(c), abs=1e-12)
        assert np.allclose(log_density, grid.log_f, atol=1e-9)


@cases
@clocks
def test_height_draws_follow_grid_density(name, c, lowest):
    """Kolmogorov and Smirnov's test of 3,000 draws against the density, level 1e-5 each."""
    grid = PairGrid(name, c, lowest)
    uniforms = np.random.default_rng(1).random((3000, 2))
    draws = np.array([grids.draw_height(grid.grid, *pair) for pair in uniforms])
    assert np.all(draws >= lowest)
    masses = np.exp(grid.log_densities() - grid.log_integral + grid.logs)
    steps = 0.5 * (masses[1:] + masses[:-1]) * np.diff(grid.logs)
    below = np.concatenate([[0.0], np.cumsum(steps)])
    assert stats.kstest(np.interp(draws, grid.heights, below), "uniform").pvalue > 1e-5
    survivals = np.exp([grids.log_survival(grid.grid, h) for h in draws])
    assert np.allclose(survivals, 1 - np.interp(draws, grid.heights, below), atol=2e-3)
