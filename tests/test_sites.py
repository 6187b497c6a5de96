"""Messages over the states of categorical columns, against the formulas state by state."""

from types import SimpleNamespace

import numpy as np
import pytest

import coaltree as ct
from coaltree.process.kernels import messages as op
from coaltree.process.layout import read_messages

N, FREE = 9, 20  # leaves; slots


def sites(rate, seed=0, noise=0.0):
    """A forest over columns of one to four states, and what the formulas need to know of it."""
    rng = np.random.default_rng(seed)
    n_states = rng.integers(1, 5, 13)  # one state is a column that says nothing
    q = [rng.dirichlet(np.full(k, 2.0)) for k in n_states]
    X = np.column_stack([rng.integers(0, k, N) for k in n_states]).astype(float)
    X[rng.random(X.shape) < 0.2] = np.nan
    rates = np.full(13, 0.7) if rate == "one rate" else rng.gamma(2.0, 0.5, 13)
    return ct.Multinomial(rates, q, noise).forest(X, FREE), q, rates


def message(forest, slot):
    """Return the message of a slot, column by column."""
    values = read_messages(forest, np.array([slot]))[0]
    return np.split(values.message[0], values.start[1:-1])


def merged(forest, i, j, h, into):
    op.merge(forest, i, j, h, into, op.Pair(forest))
    forest.height[into] = h


def log_z(forest, i, j, h):
    pair = op.Pair(forest)
    op.load_pair(forest, i, j, pair)
    return op.log_z(forest, pair, h)


def log_z_at(forest, *place_of, h):
    place = op.Place(forest)
    op.load_place(forest, *place_of, place)
    return op.log_z_at(forest, place, h)


def by_formula(q, rates, one, other, t_one, t_other):
    """Return Z and the merged message of every column, after climbs of some lengths."""
    results = []
    for own_q, rate, a, b in zip(q, rates, one, other, strict=True):
        up_a = np.exp(-rate * t_one) * a + (1 - np.exp(-rate * t_one))
        up_b = np.exp(-rate * t_other) * b + (1 - np.exp(-rate * t_other))
        z = float(np.sum(own_q * up_a * up_b))
        results.append((z, up_a * up_b / z if z > 0 else np.ones(len(own_q))))
    return results


@pytest.mark.parametrize("noise", [0.0, 0.2])
@pytest.mark.parametrize("rate", ["one rate", "many rates"])
def test_site_merges_match_formula(rate, noise):
    forest, q, rates = sites(rate, noise=noise)
    for into, (i, j, h) in enumerate([(0, 1, 0.3), (2, 3, 0.1), (9, 4, 0.8), (10, 5, 2.0), (11, 12, 2.5)], N):
        climbs = h - forest.height[i], h - forest.height[j]
        expected = by_formula(q, rates, message(forest, i), message(forest, j), *climbs)
        assert log_z(forest, i, j, h) == pytest.approx(sum(np.log(z) for z, _ in expected), rel=1e-12)
        merged(forest, i, j, h, into)
        for own, (_, wanted) in zip(message(forest, into), expected, strict=True):
            np.testing.assert_allclose(own, wanted, rtol=1e-12)
        both_at_once = op.merge_and_log_z(forest, i, j, h, 16, op.Pair(forest))
        assert both_at_once == pytest.approx(log_z(forest, i, j, h), rel=1e-12)
        np.testing.assert_array_equal(np.asarray(forest.state)[16], np.asarray(forest.state)[into])
    if not noise:
        assert log_z(forest, 6, 7, 0.0) == -np.inf  # states differ, and there is no time
        assert op.merge_and_log_z(forest, 6, 7, 0.0, 16, op.Pair(forest)) == -np.inf
    op.move(forest, 12, 15)
    np.testing.assert_array_equal(np.asarray(forest.state)[15], np.asarray(forest.state)[12])


@pytest.mark.parametrize("rate", ["one rate", "many rates"])
@pytest.mark.parametrize("into", [0, 1])
def test_merge_in_place_equals_merge(rate, into):
    forest, _, _ = sites(rate)
    merged(forest, 0, 1, 0.3, 12)
    merged(forest, 0, 1, 0.3, into)
    np.testing.assert_allclose(np.asarray(forest.state)[into], np.asarray(forest.state)[12], rtol=1e-15)


@pytest.mark.parametrize("rate", ["one rate", "many rates"])
def test_regraft_density_equals_merge_and_pair(rate):
    """Attaching at a point of a branch equals merging both of its ends there, and then the third lineage."""
    forest, _, _ = sites(rate)
    merged(forest, 0, 1, 0.3, 9)
    merged(forest, 2, 3, 0.5, 10)
    turn = 1.9  # what is beyond has the way turn - h to go
    for h in (0.3, 0.31, 1.0, 1.9):
        actual = log_z_at(forest, 9, 10, turn, 5, h=h)
        op.move(forest, 10, 12)
        forest.height[12] = 2 * h - turn
        merged(forest, 9, 12, h, 11)
        assert actual == pytest.approx(log_z(forest, 11, 5, h), rel=1e-11)


def test_impossible_place_at_zero_distance_has_probability_zero():
    """Any message is possible there, as for a merge: a flat one is used."""
    forest, _, _ = sites("one rate")
    np.asarray(forest.state)[14] = forest.root_q
    assert log_z_at(forest, 0, 1, 0.0, 14, h=0.0) == pytest.approx(0.0, abs=1e-12)
    assert log_z(forest, 0, 1, 0.0) == -np.inf


@pytest.mark.parametrize("n", [1, 2, 3, 7, 8, 9, 100])
@pytest.mark.parametrize("spread", [0.5, 30.0, 200.0])
def test_sum_of_logs_handles_any_scale(n, spread):
    values = np.exp(np.random.default_rng(n).normal(0, spread, n))
    scratch = op.Rows(SimpleNamespace(n_sites=n, n_real=0, chain=np.empty((0, 0))))
    np.asarray(scratch.rows)[1] = values
    assert op.sum_of_logs(scratch, 1, 2, n) == pytest.approx(np.sum(np.log(values)), rel=1e-12, abs=1e-12)
    np.asarray(scratch.rows)[1, 0] = 0.0
    assert op.sum_of_logs(scratch, 1, 2, n) == -np.inf
