"""Categorical messages as Markov chains hold them say the same as those of the other searches."""

import numpy as np
import pytest

import coaltree as ct
from coaltree.process import operations as op
from coaltree.process._multinomial_kernels import sum_of_logs
from coaltree.process._site_kernels import as_sites

N, FREE = 9, 20  # leaves; slots


def forests(rate, seed=0):
    rng = np.random.default_rng(seed)
    n_states = rng.integers(1, 5, 13)  # one state is a column that says nothing
    q = [rng.dirichlet(np.full(k, 2.0)) for k in n_states]
    X = np.column_stack([rng.integers(0, k, N) for k in n_states]).astype(float)
    X[rng.random(X.shape) < 0.2] = np.nan
    rates = np.full(13, 0.7) if rate == "one rate" else rng.gamma(2.0, 0.5, 13)
    process = ct.Multinomial(rates, q)
    plain = process.forest(X, FREE, np.zeros(FREE))
    return plain, as_sites(process.forest(X, FREE, np.zeros(FREE)))


def in_plain_order(plain, sites, slot):
    """The message of a slot of the sites, state by state of the plain order."""
    counts = np.diff(plain.start)
    columns = np.argsort(-counts, kind="stable")
    found = np.empty(plain.m.shape[0])
    for rank in range(counts.max()):
        own = columns[counts[columns] > rank]
        found[plain.start[own] + rank] = sites.m[sites.first[rank] : sites.first[rank + 1], slot]
    return found


def merged(forest, i, j, h, into):
    op.merge(forest, i, j, h, into)
    forest.height[into] = h


def log_z(forest, i, j, h):
    pair = np.zeros(op.pair_size(forest))
    op.load_pair(forest, i, j, pair)
    return op.log_z(forest, pair, h), op.highest(forest, pair, 0.5)


def log_z_at(forest, *place_of, h):
    place = np.zeros(op.place_size(forest))
    op.load_place(forest, *place_of, place)
    return op.log_z_at(forest, place, h)


@pytest.mark.parametrize("rate", ["one rate", "many rates"])
def test_the_same_messages(rate):
    plain, sites = forests(rate)
    for into, (i, j, h) in enumerate([(0, 1, 0.3), (2, 3, 0.0), (9, 4, 0.8), (10, 5, 2.0)], N):
        for forest in (plain, sites):
            merged(forest, i, j, h, into)
        np.testing.assert_allclose(in_plain_order(plain, sites, into), plain.m[:, into], rtol=1e-12)
    for i, j, h in [(6, 7, 0.4), (11, 12, 2.1), (6, 7, 0.0), (11, 8, 1e-9 + 0.8)]:
        np.testing.assert_allclose(log_z(sites, i, j, h), log_z(plain, i, j, h), rtol=1e-12)
    assert log_z(sites, 6, 7, 0.0)[0] == -np.inf  # states differ, and there is no time
    op.move(sites, 12, 15)
    np.testing.assert_array_equal(sites.m[:, 15], sites.m[:, 12])


@pytest.mark.parametrize("rate", ["one rate", "many rates"])
@pytest.mark.parametrize("into", [0, 1])
def test_a_message_may_be_written_over(rate, into):
    _, sites = forests(rate)
    merged(sites, 0, 1, 0.3, 12)
    merged(sites, 0, 1, 0.3, into)
    np.testing.assert_array_equal(sites.m[:, into], sites.m[:, 12])


@pytest.mark.parametrize("rate", ["one rate", "many rates"])
def test_a_place_is_a_merge_and_a_pair(rate):
    """Hanging from a point of a branch is merging both of its ends there, and then the third."""
    plain, sites = forests(rate)
    for forest in (plain, sites):
        merged(forest, 0, 1, 0.3, 9)
        merged(forest, 2, 3, 0.5, 10)
    turn = 1.9  # what is beyond has the way turn - h to go
    for h in (0.3, 0.31, 1.0, 1.9):
        found = log_z_at(sites, 9, 10, turn, 5, 15, h=h)
        plain.height[10] = 2 * h - turn
        merged(plain, 9, 10, h, 11)
        assert found == pytest.approx(log_z(plain, 11, 5, h)[0], rel=1e-11)


def test_a_place_where_states_meet_that_no_time_parts():
    """Any message will do there, as for a merge: one that says nothing is taken."""
    _, sites = forests("one rate")
    sites.m[:, 14] = sites.root_q
    assert log_z_at(sites, 0, 1, 0.0, 14, 15, h=0.0) == pytest.approx(0.0, abs=1e-12)
    assert log_z(sites, 0, 1, 0.0)[0] == -np.inf


@pytest.mark.parametrize("n", [1, 2, 3, 7, 8, 9, 100])
@pytest.mark.parametrize("spread", [0.5, 30.0, 200.0])
def test_a_sum_of_logs_holds_whatever_the_sizes(n, spread):
    logs = np.random.default_rng(n).normal(0, spread, n)
    values = np.exp(logs)
    assert sum_of_logs(values, np.empty(n)) == pytest.approx(np.sum(np.log(values)), rel=1e-12, abs=1e-12)
    values[0] = 0.0
    assert sum_of_logs(values, np.empty(n)) == -np.inf
