"""The exact search through boxes gives the same tree as comparing all pairs."""

import numpy as np
import pytest

import coaltree as ct
from coaltree.inference.kernels.heights import key_up_to
from coaltree.inference.kernels.partners import (
    Partners,
    Scratch,
    enter_all,
    find_partners,
    rate1_merges,
    slots_for,
    start_tournament,
)
from coaltree.process.kernels.messages import Pair, pair_shift, set_log_norms

N = 200

pytestmark = pytest.mark.filterwarnings("ignore::coaltree.errors.InputWarning")


def tree_by_all_pairs(X, noise):
    """Return the merges of `rate1` for Brownian motion of variance 1: all pairs compared before each, in plain numpy."""
    n, n_columns = X.shape
    mean, variance, height, node = X - X.mean(axis=0), np.full(n, float(noise)), np.zeros(n), np.arange(n)
    children, heights = [], []
    for k in range(n - 1):
        square = ((mean[:, None] - mean[None]) ** 2).sum(axis=2)
        path = 2 * square / (np.sqrt(n_columns**2 + 4 * square) + n_columns)
        best = (path + (height - variance)[:, None] + (height - variance)[None]) / 2
        floor = np.maximum(height[:, None], height[None])
        spread = variance[:, None] + variance[None] + 2 * floor - height[:, None] - height[None]
        at_once = best <= floor * (1 + 1e-12)
        with np.errstate(divide="ignore", invalid="ignore"):
            norms = np.sqrt(variance[:, None] * variance[None])
            log_cosine = -0.5 * (n_columns * np.log(spread / (2 * norms)) + square / spread)
        order = np.where(at_once & (noise > 0), -np.inf, np.maximum(best, floor))
        candidates = np.triu(np.ones((len(mean), len(mean)), dtype=bool), 1)
        first = candidates & (order == order[candidates].min())
        if noise > 0 and order[first][0] == -np.inf:
            first &= log_cosine >= log_cosine[first].max() - 1e-12
        i, j = min(zip(*np.nonzero(first), strict=True), key=lambda pair: sorted(node[list(pair)]))
        h = max(best[i, j], floor[i, j])
        reach_i, reach_j = variance[i] + h - height[i], variance[j] + h - height[j]
        weight = reach_j / (reach_i + reach_j) if reach_i + reach_j > 0 else 0.5
        children.append(sorted((node[i], node[j])))
        heights.append(h)
        remaining = np.delete(np.arange(len(mean)), [i, j])
        merged = weight * mean[i] + (1 - weight) * mean[j]
        mean = np.vstack([mean[remaining], merged])
        variance = np.append(variance[remaining], weight * reach_i)
        height, node = np.append(height[remaining], h), np.append(node[remaining], n + k)
    return np.array(children), np.array(heights)


def table(kind):
    rng = np.random.default_rng(3)
    if kind == "clusters":
        return 5 * rng.normal(size=(40, 4))[rng.integers(40, size=N)] + 0.3 * rng.normal(size=(N, 4))
    if kind == "line":
        return rng.normal(size=(N, 1)).cumsum(axis=0)
    if kind == "clump and outliers":
        return np.vstack([0.01 * rng.normal(size=(N - 20, 3)), 10 * rng.normal(size=(20, 3))])
    if kind == "many columns":
        return rng.normal(size=(N, 40)) + 8 * rng.normal(size=(10, 40))[rng.integers(10, size=N)]
    if kind == "no structure":
        return rng.normal(size=(N, 30))
    return ct.Brownian(1.0).simulate(ct.simulate_tree(N, rng), rng, n_columns=6)


@pytest.mark.parametrize("noise", [0.0, 0.05])
@pytest.mark.parametrize(
    "kind", ["clusters", "line", "clump and outliers", "many columns", "no structure", "from the model"]
)
def test_tree_matches_exhaustive_search(kind, noise):
    X = table(kind)
    result = ct.greedy(X, ct.Brownian(1.0, noise), search="exact").tree
    children, heights = tree_by_all_pairs(X, noise)
    np.testing.assert_allclose(result.heights[N:], heights, rtol=1e-9)
    np.testing.assert_array_equal(np.sort(result.children, axis=1), children)


@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_equal_rows_merge_in_row_order(noise):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(12, 3))[rng.integers(12, size=N)]
    result = ct.greedy(X, ct.Brownian(1.0, noise), search="exact").tree
    children, heights = tree_by_all_pairs(X, noise)
    if noise == 0:
        np.testing.assert_array_equal(result.children[: N - 12], children[: N - 12])
    np.testing.assert_allclose(result.heights[N:], heights, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("kind", "worthwhile"), [("clusters", True), ("line", True), ("no structure", False)])
def test_boxes_are_used_only_where_worthwhile(kind, worthwhile):
    X = np.tile(table(kind), (16, 1)) + 1e-3 * np.random.default_rng(0).normal(size=(16 * N, 1))
    n = len(X)
    forest = ct.Brownian(1.0).resolve(X).forest(X, 2 * n)
    partners = Partners(forest, n)
    enter_all(forest, partners, Scratch(forest))
    assert bool(partners.space.boxes) == worthwhile


def hard_for_single_precision(kind, n=300):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(n, 7))
    if kind == "tight clusters":  # far from one another: distances within them have few digits in single precision
        return 1e-6 * X + 3 * rng.normal(size=(9, 7))[rng.integers(9, size=n)]
    if kind == "huge":  # squares are infinite in single precision
        return 1e30 * X
    if kind == "tiny":
        return 1e-30 * X
    if kind == "ties":
        return np.round(2 * X)
    if kind == "outlier":
        return np.vstack([X[1:], np.full((1, 7), 1e8)])
    return X


def wrong_lists(forest, partners):
    """Return the live slots whose lists are not those of the smallest keys, found pair by pair."""
    live, lists = np.asarray(partners.live), zip(np.asarray(partners.keys), np.asarray(partners.slots), strict=True)
    pair, wrong = Pair(forest), []
    for i, (keys, slots) in enumerate(lists):
        values = [(key, j) for key, j in zip(keys, slots, strict=True) if j >= 0 and live[j]]
        if live[i] and values:
            older = np.nonzero(live[:i])[0]
            best = sorted((key_up_to(forest, i, j, pair_shift(forest, i, j), np.inf, pair), j) for j in older)
            same = [j for _, j in best[: len(values)]] == [j for _, j in values]
            close = np.allclose([key for key, _ in best[: len(values)]], [key for key, _ in values], rtol=1e-12, atol=0)
            ties = len({key for key, _ in best}) < len(best)  # keys are rounded in two ways, so that ties may differ
            if not (close and (same or ties)):
                wrong.append(i)
    return wrong


@pytest.mark.parametrize("kind", ["ordinary", "tight clusters", "huge", "tiny", "ties", "outlier"])
@pytest.mark.parametrize(
    "process",
    [
        ct.Brownian(1.0),
        ct.Brownian(1.0, 0.5),
        ct.OrnsteinUhlenbeck(0.5, 0.0, 1.0),
        ct.OrnsteinUhlenbeck(0.5, 0.0, 0.7, 0.4),
        ct.OrnsteinUhlenbeck(3.0, 0.0, 1.0, 1e-5),
    ],
    ids=str,
)
def test_partner_lists_match_exhaustive_search(process, kind):
    X = hard_for_single_precision(kind)
    n = len(X)
    forest = process.resolve(X).forest(X, slots_for(n), scan=True)
    set_log_norms(forest, n)
    partners, scratch = Partners(forest, n), Scratch(forest)
    enter_all(forest, partners, scratch)
    find_partners(forest, partners, np.arange(n), scratch)
    assert wrong_lists(forest, partners) == []
    start_tournament(partners)
    children, heights = np.zeros((n - 1, 2), dtype=np.intp), np.zeros(2 * n - 1)
    rate1_merges(forest, partners, 0, n // 2, children, heights, scratch)
    assert wrong_lists(forest, partners) == []
