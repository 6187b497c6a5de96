"""Equal rows: they merge first, and the search over the lineages that are left gives the tree of a search over all rows."""

import numpy as np
import pytest

import coaltree as ct
from coaltree.errors import InputWarning
from coaltree.inference.equal_rows import find_equal_rows, merge_equal_rows
from coaltree.tree.arrays import allocate_merges
from reference import are_equal
from test_greedy import replay

pytestmark = pytest.mark.filterwarnings("ignore::coaltree.errors.InputWarning")


def few_distinct(rng, n, n_columns, missing=0.0, n_values=3):
    """Return whole numbers in few distinct rows, some of which occur often."""
    rows = rng.integers(0, n_values, (rng.integers(1, 7), n_columns)).astype(float)
    rows[rng.random(rows.shape) < missing] = np.nan
    return rows[rng.choice(len(rows), n, p=rng.dirichlet(np.ones(len(rows))))]


# -- the order of merges of equal rows -----------------------------------------------------------------------------


def merge_one_by_one(X, noisy):
    """Always merge the first pair of equal lineages; return the merges, and the rows of the lineages that are left."""
    live = {row: [row] for row in range(len(X))}
    merges = []
    while True:
        pairs = ((i, j) for i in sorted(live) for j in sorted(live) if i < j and are_equal(X, live[i], live[j], noisy))
        pair = next(pairs, None)
        if pair is None:
            return merges, live
        live[len(X) + len(merges)] = live.pop(pair[0]) + live.pop(pair[1])
        merges.append(list(pair))


@pytest.mark.parametrize("noisy", [False, True])
def test_equal_rows_merge_in_order_of_node_numbers(noisy):
    for seed in range(150):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(1, 25))
        X = few_distinct(rng, n, int(rng.integers(1, 3)), missing=0.3)
        merges = allocate_merges(n)
        left = merge_equal_rows(X, noisy, merges)
        expected, live = merge_one_by_one(X, noisy)
        assert merges.children[: len(expected)].tolist() == expected
        assert np.all(merges.heights == 0)
        assert left.nodes.tolist() == sorted(live)
        for node, row, count in zip(*left, strict=True):
            assert len(live[node]) == count
            assert np.array_equal(X[row], X[live[node][0]], equal_nan=True)


def test_equal_rows_are_found_whatever_their_zeros_and_nans():
    X = np.array([[0.0, np.nan], [1.0, 2.0], [-0.0, -np.nan], [0.0, 2.0], [1.0, 2.0], [np.nan, 0.0]])
    members, groups = find_equal_rows(X)
    assert sorted(members[groups == groups[0]].tolist()) == [0, 2]
    assert sorted(members.tolist()) == [0, 1, 2, 4]


# -- every merge against a search over all pairs -------------------------------------------------------------------


def noise_or_none(rng):
    return rng.choice([0.0, 0.05, 0.4, 0.9], p=[0.4, 0.2, 0.2, 0.2])


def stationary(rng, missing):
    return ct.OrnsteinUhlenbeck(0.5, noise=noise_or_none(rng)), few_distinct(rng, 40, 2, missing)


def stationary_line(rng, missing):
    return ct.OrnsteinUhlenbeck(0.5, noise=noise_or_none(rng)), few_distinct(rng, 40, 1, missing)


def brownian(rng, missing):
    return ct.Brownian(noise=noise_or_none(rng)), few_distinct(rng, 40, 2, missing)


def categories(rng, missing):
    equilibrium = [rng.dirichlet(np.full(3, 3.0)) for _ in range(3)]
    return ct.Multinomial(0.7, equilibrium, noise_or_none(rng)), few_distinct(rng, 40, 3, missing)


def category_rates(rng, missing):
    equilibrium = [rng.dirichlet(np.full(3, 3.0)) for _ in range(3)]
    return ct.Multinomial([0.1, 1.0, 5.0], equilibrium, noise_or_none(rng)), few_distinct(rng, 40, 3, missing)


def mixed(rng, missing):
    noise = noise_or_none(rng)
    process = ct.Mixed(
        (ct.OrnsteinUhlenbeck(0.5, noise=noise), [0, 1]), (ct.Multinomial(0.7, [[0.2, 0.3, 0.5]] * 2, noise), [2, 3])
    )
    return process, few_distinct(rng, 40, 4, missing)


def noise_in_some_columns(rng, missing):
    process = ct.Mixed((ct.Brownian(noise=0.3), [0, 1]), (ct.Multinomial(0.7, [[0.2, 0.3, 0.5]] * 2), [2, 3]))
    return process, few_distinct(rng, 40, 4, missing)


SETUPS = [stationary, stationary_line, brownian, categories, category_rates, mixed, noise_in_some_columns]


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("setup", SETUPS)
def test_tree_of_few_distinct_rows_is_that_of_all_pairs(setup, missing):
    merges = inexact = 0
    for seed in range(6):
        process, X = setup(np.random.default_rng(seed), missing)
        _, wrong, rounded = replay(process, X, ct.greedy(X, process).tree)  # fails for a pair that is not the best
        merges += len(X) - 1
        inexact += wrong + rounded
    assert inexact <= 0.05 * merges  # of distinct lineages, as good but for rounding


NORMED = [
    (setup, missing)
    for setup in SETUPS
    for missing in (0.0, 0.3)
    if setup is not noise_in_some_columns and not (setup is brownian and missing)
]


@pytest.mark.parametrize(("setup", "missing"), NORMED)
def test_equal_rows_are_the_most_similar(setup, missing):
    """Without being told so, the search over all pairs finds that equal rows are best, or as good as the best."""
    for seed in range(6):
        process, X = setup(np.random.default_rng(seed), missing)
        replay(process, X, ct.greedy(X, process).tree, equal_first=False)


# -- the work ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", [0.0, 0.3])
@pytest.mark.parametrize("kind", ["real", "categorical", "mixed"])
def test_search_compares_distinct_lineages_only(kind, noise):
    """A group of m equal rows leaves as many lineages as m has binary digits that are 1."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, (40_000, 1)).astype(float)
    if kind == "mixed":
        X = np.column_stack([X, X])
    process = {
        "real": ct.OrnsteinUhlenbeck(0.5, noise=noise),
        "categorical": ct.Multinomial(noise=noise),
        "mixed": ct.Mixed((ct.OrnsteinUhlenbeck(0.5, noise=noise), [0]), (ct.Multinomial(noise=noise), [1])),
    }[kind]
    seen = []
    result = ct.greedy(X, process, progress=lambda share, live: seen.append(live))
    counts = np.bincount(X[:, 0].astype(int)).tolist()
    assert max(seen) == sum(count.bit_count() if noise else 1 for count in counts)
    assert result.search == "exact"
    assert result.neighbor_recall is None
    assert np.isfinite(result.log_joint)
    if noise == 0:
        assert np.count_nonzero(result.tree.merge_heights) == 2


def test_default_fit_of_many_equal_rows():
    """A column of 0, 1 and 2: three clusters are the three values, in any order of the rows."""
    rng = np.random.default_rng(1)
    column, order = rng.integers(0, 3, 5_000), rng.permutation(5_000)
    log_joints = []
    for values in (column, column[order]):
        model = ct.CoalescentClustering(n_clusters=3).fit(values[:, None].astype(float))
        assert len(set(zip(model.labels_.tolist(), values.tolist(), strict=True))) == 3
        log_joints.append(model.log_joint_)
    assert log_joints[1] == pytest.approx(log_joints[0], rel=1e-12)


def test_equal_rows_without_noise_are_reported():
    with pytest.warns(InputWarning, match=r"^7 merge\(s\)"):
        ct.greedy(np.repeat([[0.0, 1.0], [3.0, 5.0]], [3, 6], axis=0), ct.OrnsteinUhlenbeck(0.5))
