"""The neighbour search: trees as good as those of the exact search, on tables of many kinds."""

import importlib
from itertools import pairwise

import numpy as np
import pytest
from scipy.spatial import cKDTree

import coaltree as ct
from coaltree.errors import InputError
from coaltree.inference import neighbors
from coaltree.inference.executors import ThreadExecutor
from coaltree.inference.neighbors import MAX_CELL_SIZE, find_nearest
from coaltree.process import base, brownian, gaussian

greedy = importlib.import_module("coaltree.inference.greedy")  # `from` would give the function of that name

pytestmark = pytest.mark.filterwarnings("ignore::coaltree.errors.InputWarning")

MIXED = ct.Mixed((ct.Brownian(1.0, 0.1), [0, 1, 2]), (ct.Multinomial(0.5, [[0.3, 0.7]] * 4), [3, 4, 5, 6]))
PROCESSES = {
    "brownian": ct.Brownian(1.0),
    "noise": ct.Brownian(1.0, 0.1),
    "missing": ct.Brownian(1.0, 0.1),
    "stationary": ct.OrnsteinUhlenbeck(0.5, 0.0, 1.0, 0.1),
    "multinomial": ct.Multinomial(0.5, [[0.2, 0.3, 0.5]] * 20, 0.03),
    "cities": ct.Multinomial(0.5, [np.full(60, 1 / 60)] * 8, 0.03),  # more states than coordinates
    "mixed": MIXED,
}


def simulated(name, n=700):
    process = PROCESSES[name]
    rng = np.random.default_rng(5)
    columns = {"multinomial": 20, "cities": 8, "mixed": 7}.get(name, 6)
    X = process.simulate(ct.simulate_tree(n, rng), rng, n_columns=columns)
    if name in ("missing", "mixed"):
        X[rng.random(X.shape) < 0.1] = np.nan
    return process, X


@pytest.fixture
def few_exact(monkeypatch):
    """Leave but a few lineages to the exact search, so that small tables have rounds."""
    monkeypatch.setattr(greedy, "MIN_LINEAGES", 60)
    monkeypatch.setattr(greedy, "MIN_LINEAGES_IN_SPACE", 60)


@pytest.mark.parametrize("name", PROCESSES)
def test_neighbor_tree_is_as_good_as_exact_tree(name, few_exact):
    process, X = simulated(name)
    exact = ct.greedy(X, process, search="exact")
    result = ct.greedy(X, process, search="neighbors")
    assert (exact.search, exact.neighbor_recall) == ("exact", None)
    assert result.search == "neighbors"
    if name in ("brownian", "noise", "stationary"):
        assert result.neighbor_recall > 0.9
    assert 0 < result.neighbor_recall <= 1
    # the distance that stands for the likelihood of mixed columns with holes is a rough one
    tolerance = {"mixed": 0.05, "missing": 0.02}.get(name, 0.01)
    assert result.log_joint > exact.log_joint - tolerance * len(X)
    if name == "brownian":
        np.testing.assert_array_equal(result.tree.children, exact.tree.children)
        np.testing.assert_allclose(result.tree.heights, exact.tree.heights, rtol=1e-9)


@pytest.mark.parametrize("name", ["noise", "multinomial", "mixed"])
def test_neighbor_search_is_independent_of_threads_and_row_order(name, few_exact):
    process, X = simulated(name, 400)
    names = [f"r{i}" for i in range(400)]
    result = ct.greedy(X, process, search="neighbors", leaf_names=names)
    assert ct.greedy(X, process, search="neighbors", n_jobs=2, leaf_names=names).tree == result.tree
    order = np.random.default_rng(0).permutation(400)
    moved = ct.greedy(X[order], process, search="neighbors", leaf_names=[names[i] for i in order])
    np.testing.assert_array_equal(moved.tree.heights, result.tree.heights)
    assert moved.log_joint == pytest.approx(result.log_joint, rel=1e-12)
    back = np.append(order, np.arange(400, 799))  # numbers of the nodes before the rows were moved
    same = np.sort(back[moved.tree.children], axis=1) == result.tree.children
    distinct = len(np.unique(X, axis=0))  # equal rows may change places
    assert same.all(axis=1).sum() >= 399 - 2 * (400 - distinct)


@pytest.mark.parametrize("n", [100, 3000])
@pytest.mark.parametrize("columns", [1, 8])
def test_find_nearest_finds_nearest_points(n, columns):
    points = np.random.default_rng(n).normal(size=(columns, n)).astype(np.float32)
    nearest = find_nearest(points, 10, ThreadExecutor(2), 0)
    _, true = cKDTree(points.T).query(points.T, 11)
    held = np.mean([len(set(a) & set(b)) for a, b in zip(nearest, true[:, 1:], strict=True)]) / 10
    assert held == 1.0 if n <= MAX_CELL_SIZE else held > 0.95
    assert np.mean(nearest[:, 0] == true[:, 1]) > 0.98
    assert not np.any(nearest == np.arange(n)[:, None])
    gaps = np.linalg.norm(points[:, nearest] - points[:, :, None], axis=0)
    assert np.all(np.diff(gaps, axis=1) >= -1e-6)


def test_find_nearest_pads_short_lists():
    nearest = find_nearest(np.array([[0.0, 1.0, 5.0]], dtype=np.float32), 12, ThreadExecutor(1), 0)
    assert nearest[:, :2].tolist() == [[1, 2], [0, 2], [1, 0]]
    assert np.all(nearest[:, 2:] == -1)


def equal_rows(rng):
    return rng.normal(size=(10, 3))[rng.integers(10, size=2000)]


def a_line(rng):
    return np.outer(np.arange(2000.0), [1.0, -2.0, 0.5])


def a_clump_and_far_ones(rng):
    X = 1e-3 * rng.normal(size=(2000, 3))
    X[::250] = 1e6 * rng.normal(size=(8, 3))
    return X


def heavy_tails(rng):
    return rng.standard_cauchy(size=(2000, 2))


def one_column(rng):
    return rng.normal(size=(2000, 1))


def empty_rows(rng):
    X = rng.normal(size=(2000, 2))
    X[:750] = np.nan
    return X


@pytest.mark.parametrize("noise", [0.0, 0.1])
@pytest.mark.parametrize(
    "shape", [equal_rows, a_line, a_clump_and_far_ones, heavy_tails, one_column, empty_rows], ids=lambda f: f.__name__
)
def test_neighbor_search_of_degenerate_tables(shape, noise, monkeypatch):
    monkeypatch.setattr(greedy, "MIN_LINEAGES", 250)
    monkeypatch.setattr(greedy, "MIN_LINEAGES_IN_SPACE", 250)
    X = shape(np.random.default_rng(1))
    process = ct.Brownian(1.0, noise)
    result = ct.greedy(X, process, search="neighbors")
    assert result.tree.n_leaves == len(X)
    assert np.all(np.diff(result.tree.merge_heights) >= 0)
    assert np.isfinite(result.log_joint)
    exact = ct.greedy(X[::4], process, search="exact"), ct.greedy(X[::4], process, search="neighbors")
    assert exact[1].log_joint > exact[0].log_joint - 1e-3 * max(abs(exact[0].log_joint), 10 * len(X[::4]))


def test_neighbor_search_work_grows_subquadratically(monkeypatch):
    """Ten tight groups of rows: each round halves the lineages, and few are left for the exact search."""
    rng = np.random.default_rng(0)
    X = rng.normal(rng.integers(10, size=10_000), 1e-3)[:, None]
    searched, shares, left = [], [], []
    find, merge = neighbors.find_nearest, greedy.merge_neighbors

    def find_nearest(points, *rest):
        searched.append(points.shape[1])
        return find(points, *rest)

    def merge_neighbors(forest, process, nodes, *rest):
        lists, done, rounds = merge(forest, process, nodes, *rest)
        left.append(len(nodes) - done)
        return lists, done, rounds

    monkeypatch.setattr(neighbors, "find_nearest", find_nearest)
    monkeypatch.setattr(greedy, "merge_neighbors", merge_neighbors)
    monkeypatch.setattr(greedy, "MIN_LINEAGES_IN_SPACE", 200)
    monkeypatch.setattr(greedy, "MIN_LINEAGES", 200)
    ct.greedy(X, ct.Brownian(1.0, 0.1), search="neighbors", progress=lambda share, live: shares.append(share))
    assert searched[0] == 10_000
    assert all(after <= 0.6 * before for before, after in pairwise(searched))
    assert searched[-1] <= 400
    assert left == [200]
    assert shares[-1] == 1.0
    assert np.all(np.diff(shares) >= 0)


def test_auto_search_uses_neighbors_for_many_rows_only(monkeypatch, few_exact):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    monkeypatch.setattr(base, "MAX_EXACT_ROWS", 100)
    monkeypatch.setattr(brownian, "MAX_EXACT_ROWS_IN_SPACE", 200)
    monkeypatch.setattr(gaussian, "MAX_EXACT_ROWS_IN_BLOCKS", 150)
    assert ct.greedy(X, ct.Brownian()).search == "neighbors"
    assert ct.greedy(X[:200], ct.Brownian()).search == "exact"
    assert ct.greedy(X[:, :3], ct.Brownian()).search == "exact"  # however many there are
    assert ct.greedy(X[:50], ct.Brownian(), rule="max-prob").search == "exact"
    holes = np.where(rng.random((150, 4)) < 0.1, np.nan, X[:150])
    assert ct.greedy(holes, ct.Brownian()).search == "neighbors"
    assert ct.greedy(holes[:100], ct.Brownian()).search == "exact"
    assert ct.greedy(X[:151], ct.OrnsteinUhlenbeck(0.5)).search == "neighbors"
    assert ct.greedy(X[:150], ct.OrnsteinUhlenbeck(0.5, noise=0.1)).search == "exact"
    assert ct.greedy(X[:150], ct.OrnsteinUhlenbeck(0.5, noise=[0.1, 0.2, 0.3, 0.4])).search == "neighbors"
    assert ct.greedy(holes, ct.OrnsteinUhlenbeck(0.5)).search == "neighbors"


def test_neighbors_of_rows_with_missing_cells_share_cluster():
    """The clusters are far apart: with any cells missing, the neighbours of a row are in its cluster."""
    rng = np.random.default_rng(2)
    labels = rng.integers(20, size=3000)
    points = 30 * rng.normal(size=(20, 6))[labels] + rng.normal(size=(3000, 6))
    points[rng.random(points.shape) < 0.2] = np.nan
    points[np.isnan(points).all(axis=1), 0] = 0.0
    nearest = find_nearest(np.ascontiguousarray(points.T, dtype=np.float32), 10, ThreadExecutor(2), 0)
    whole = np.isnan(points).sum(axis=1) < 3  # of others one column or two may not tell the cluster
    messages = whole[nearest] & whole[:, None]
    assert np.mean((labels[nearest] == labels[:, None])[messages]) > 0.99
    assert not np.any(nearest == np.arange(3000)[:, None])


def test_neighbor_search_requires_rate1():
    with pytest.raises(InputError, match="rate1"):
        ct.greedy(np.zeros((3, 1)), ct.Brownian(), rule="max-prob", search="neighbors")


@pytest.mark.parametrize("n", [1, 2, 3])
def test_neighbor_search_of_few_rows(n):
    X = np.arange(float(n))[:, None]
    assert ct.greedy(X, ct.Brownian(), search="neighbors").tree == ct.greedy(X, ct.Brownian(), search="exact").tree
