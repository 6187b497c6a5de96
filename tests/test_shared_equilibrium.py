"""Columns that share one equilibrium, as the sites of a gene do: likelihood, fit and draws."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

import coaltree as ct
from coaltree.process.base import Process, WeightedTrees
from named import refused

SHARES = [0.1, 0.2, 0.3, 0.4]
BATCHES = 40
BOUND = 6  # standard errors of means of batches: less than one false alarm in a million


def table(n=8, n_columns=40, seed=0):
    tree = ct.simulate_tree(n, seed)
    X = ct.Multinomial(0.8, SHARES, share_equilibrium=True).simulate(tree, seed + 1, n_columns=n_columns)
    X[0, 0], X[1, 2] = np.nan, ct.state_set(0, 2)
    return tree, X


def test_shared_equilibrium_equals_repeated_vector():
    tree, X = table()
    one = ct.Multinomial(0.8, SHARES, share_equilibrium=True)
    each = ct.Multinomial(0.8, [SHARES] * 40)
    assert one.log_likelihood(tree, X) == each.log_likelihood(tree, X)
    assert one.simulate(tree, 3, n_columns=5).shape == (8, 5)
    rates = np.linspace(0.5, 1.0, 40)
    one, each = one.replace(rate=rates), each.replace(rate=rates)
    assert one.log_likelihood(tree, X) == each.log_likelihood(tree, X)


def test_shared_equilibrium_is_estimated_from_all_cells():
    _, X = table(n_columns=400)
    actual = ct.Multinomial(share_equilibrium=True).resolve(X).equilibrium
    assert len(actual) == 400
    assert all(np.array_equal(value, actual[0]) for value in actual)
    assert actual[0] == pytest.approx(SHARES, abs=0.1)


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_shared_equilibrium_fit_is_optimal(noise):
    tree, X = table()
    process = ct.Multinomial(1.0, noise=noise, share_equilibrium=True).resolve(X)
    result = process.fit(WeightedTrees([tree], np.ones(1), X), hold_noise=True)
    assert all(np.array_equal(value, result.equilibrium[0]) for value in result.equilibrium)

    def loss(x):
        q = np.exp(np.append(x[1:], 0.0))
        candidate = ct.Multinomial(np.exp(x[0]), q / q.sum(), noise, share_equilibrium=True)
        return -candidate.log_likelihood(tree, X) - candidate.log_parameter_prior(X)

    best = minimize(loss, np.zeros(4), method="Nelder-Mead", options={"xatol": 1e-4, "fatol": 1e-6, "maxiter": 5000})
    q = np.exp(np.append(best.x[1:], 0.0))
    assert result.equilibrium[0] == pytest.approx(q / q.sum(), abs=2e-3)
    assert float(result.rate) == pytest.approx(np.exp(best.x[0]), rel=1e-2)


@pytest.mark.parametrize("ascertainment", [None, "variable"])
def test_shared_equilibrium_draws_match_grid(ascertainment):
    """Rate and equilibrium of three binary columns on a tree of four leaves that stays as it is."""
    tree = ct.simulate_tree(4, 5)
    X = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 1.0], [0.0, np.nan, 1.0]])
    start = ct.Multinomial(1.0, [0.5, 0.5], 0.0, ascertainment, share_equilibrium=True).resolve(X)
    sampler, rng, process, results = start.sampler(X, True), np.random.default_rng(0), start, []
    for _ in range(1_000):
        process = sampler.draw(process, tree, rng)
        results.append((np.log(process.rate), process.equilibrium[0][0]))
    grid = (np.arange(20) + 0.5) / 20, np.linspace(np.log(1e-2), np.log(1e2), 25)
    log_density = np.empty((20, 25))
    for i, q in enumerate(grid[0]):
        for j, log_rate in enumerate(grid[1]):
            candidate = ct.Multinomial(np.exp(log_rate), [q, 1 - q], 0.0, ascertainment, share_equilibrium=True)
            log_density[i, j] = candidate.log_likelihood(tree, X) + candidate.log_parameter_prior(X) + log_rate
    mass = np.exp(log_density - log_density.max())
    mass /= mass.sum()
    for values, expected in zip(np.transpose(results), (mass.sum(0) @ grid[1], mass.sum(1) @ grid[0]), strict=True):
        means = values.reshape(BATCHES, -1).mean(axis=1)
        assert abs(means.mean() - expected) < BOUND * means.std(ddof=1) / np.sqrt(BATCHES) + 2e-3


@pytest.mark.filterwarnings("ignore:The chains have not converged")
def test_shared_equilibrium_per_partition():
    """Two genes with different rates and equilibria, as parts of one table: each is estimated from its own columns."""
    tree = ct.simulate_tree(20, 1)
    genes = (
        ct.Multinomial(0.3, SHARES, share_equilibrium=True),
        ct.Multinomial(2.0, [0.4, 0.4, 0.1, 0.1], share_equilibrium=True),
    )
    X = np.hstack([gene.simulate(tree, k, n_columns=300) for k, gene in enumerate(genes)])
    first, second = list(range(300)), list(range(300, 600))
    parts = [(ct.Multinomial(share_equilibrium=True), value) for value in (first, second)]
    sample = ct.mcmc(X, ct.Mixed(*parts), 20, 1, draw_parameters=True, random_state=0)
    (one, _), (other, _) = sample.process.subprocesses(600)
    assert one.equilibrium[0] == pytest.approx(SHARES, abs=0.12)
    assert other.equilibrium[0] == pytest.approx([0.4, 0.4, 0.1, 0.1], abs=0.12)
    assert 3 < other.rate / one.rate < 15
    assert len(sample.parameters) == 2 * (1 + 4)


def test_shared_equilibrium_round_trip():
    _, X = table()
    process = ct.Multinomial(0.8, SHARES, share_equilibrium=True).resolve(X)
    names, values = process.parameter_names(range(40)), process.parameter_values()
    assert names == ["rate", "equilibrium[0]", "equilibrium[1]", "equilibrium[2]", "equilibrium[3]"]
    assert values.tolist() == [0.8, *SHARES]
    other = process.with_parameter_values(np.array([0.5, 0.4, 0.3, 0.2, 0.1]))
    assert len(other.equilibrium) == 40
    assert np.array_equal(other.equilibrium[-1], [0.4, 0.3, 0.2, 0.1])
    again = Process.from_dict(process.to_dict())
    assert again.share_equilibrium
    assert again.parameter_values().tolist() == values.tolist()
    assert "share_equilibrium" not in ct.Multinomial(0.8, [SHARES]).to_dict()
    assert "share_equilibrium=True" in repr(process)


def test_invalid_shared_equilibrium_is_rejected():
    with refused("share_equilibrium yes"):
        ct.Multinomial(share_equilibrium="yes")
    with refused("share_equilibrium one vector"):
        ct.Multinomial(1.0, [[0.5, 0.5], [0.4, 0.6]], share_equilibrium=True)
    with refused("share_equilibrium categories"):
        table = [["a", "c"], ["b", "d"], ["a", "c"]]
        ct.CoalescentClustering(categorical_process=ct.Multinomial(share_equilibrium=True)).fit(table)
