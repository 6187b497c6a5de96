"""Sketches of sites are lower bounds of the slopes of messages, and do not change trees."""

import numpy as np
import pytest

import coaltree as ct
from coaltree.inference.kernels import sketch as sketches
from coaltree.process.kernels import messages as op

N, COLUMNS = 24, 150


def table(rng, n=N, n_columns=COLUMNS, missing=0.0, max_states=2):
    """Rows of three groups, in which different words, or other states of two up to `max_states`, are common."""
    shares = rng.beta(0.5, 1.0, size=(3, n_columns))
    X = (rng.random((n, n_columns)) < shares[rng.integers(0, 3, n)]).astype(float)
    if max_states > 2:
        X += rng.integers(0, rng.integers(1, max_states, n_columns), (n, n_columns))
    X[rng.random(X.shape) < missing] = np.nan
    return X


def merged_forest(rng, process, X, scale):
    """Return a forest in which some lineages were merged, and its live slots, the lowest first."""
    forest = process.resolve(X).forest(X, len(X), scan=True)
    scratch, live, height = op.Pair(forest), list(range(len(X))), 0.0
    for _ in range(len(X) // 2):
        i, j = (int(slot) for slot in rng.choice(live, 2, replace=False))
        height += scale * rng.exponential()
        op.merge(forest, i, j, height, i, scratch)
        forest.height[i] = height
        live.remove(j)
    return forest, sorted(live, key=lambda slot: forest.height[slot])


def sketch_of(forest, slots):
    sketch, glance = sketches.Sketch(forest, forest.height.shape[0]), sketches.Glance(forest)
    for slot in slots:
        sketches.enter(forest, sketch, slot, glance)
    return sketch


def slope(forest, i, j, h):
    pair = op.Pair(forest)
    op.load_pair(forest, i, j, pair)
    rise, drop, *_ = op.slopes(forest, pair, h)
    return rise - drop


@pytest.mark.parametrize("noise", [0.0, 0.1])
@pytest.mark.parametrize("rate", [0.3, 2.0])
@pytest.mark.parametrize(
    ("n_columns", "max_states"), [(1, 2), (2, 2), (3, 2), (7, 2), (150, 2), (3, 4), (150, 3), (150, 9)]
)
def test_sketch_slopes_are_tight_lower_bounds(noise, rate, n_columns, max_states):
    rng = np.random.default_rng([int(10 * rate), n_columns])
    X = table(rng, n_columns=n_columns, missing=0.2, max_states=max_states)
    forest, slots = merged_forest(rng, ct.Multinomial(rate, noise=noise), X, 0.05)
    sketch, glance = sketch_of(forest, slots), sketches.Glance(forest)
    tallest = slots[-1]
    for climb in (1e-3, 0.1, 1.0, 5.0):
        limit = forest.height[tallest] + climb
        sketches.start(forest, sketch, tallest, limit, glance)
        for slot in slots[:-1]:
            bound, exact = sketches.slope(forest, sketch, slot, glance), slope(forest, tallest, slot, limit)
            terms = 2 * rate * sketch.n_sites + abs(exact)
            margin = 5e-5 if max_states == 2 else 5e-3  # of larger terms of both signs some digits are lost
            assert exact - margin * terms <= bound <= exact or (climb == 1e-3 and 1 < bound <= exact)


def test_sketch_slopes_of_very_short_paths_are_lower_bounds():
    """Without noise the slope has a pole at height 0 for rows that differ."""
    X = np.eye(6)
    forest = ct.Multinomial(1.0).resolve(X).forest(X, 6, scan=True)
    sketch, glance = sketch_of(forest, range(6)), sketches.Glance(forest)
    for limit in (1e-300, 1e-12, 1e-5):
        sketches.start(forest, sketch, 5, limit, glance)
        assert 1 < sketches.slope(forest, sketch, 0, glance) < slope(forest, 5, 0, limit)


@pytest.mark.parametrize("share", [1e-6, 1e-9, 1e-15, 1e-40, 1e-90])
def test_sketch_slopes_of_rare_states_are_lower_bounds(share):
    """Pairs beyond single precision are ruled out correctly or not at all."""
    rng = np.random.default_rng(1)
    X = table(rng, 12, 10)
    for order in ([share, 1 - share], [1 - share, share], [share, 0.3, 0.7 - share], [0.3, 0.7 - share, share]):
        process = ct.Multinomial(1.0, [order] * 10, 0.1)
        forest, slots = merged_forest(rng, process, X, 0.1)
        sketch, glance = sketch_of(forest, slots), sketches.Glance(forest)
        for limit in forest.height[slots[-1]] + np.array([0.01, 1.0, 10.0]):
            sketches.start(forest, sketch, slots[-1], limit, glance)
            for slot in slots[:-1]:
                bound = sketches.slope(forest, sketch, slot, glance)
                assert np.isnan(bound) or bound <= slope(forest, slots[-1], slot, limit)


def test_high_lineages_have_no_sketch():
    X = np.eye(4)
    forest = ct.Multinomial(1.0).resolve(X).forest(X, 4, scan=True)
    forest.height[2] = 41.0
    sketch = sketch_of(forest, range(4))
    assert np.isnan(np.asarray(sketch.rows)).all(axis=1).tolist() == [False, False, True, False]


@pytest.mark.parametrize(
    ("process", "X"),
    [
        (ct.Multinomial([1.0, 2.0]), [[0, 1], [1, 0]]),
        (ct.Multinomial(1.0), [[0, 0], [0, 0]]),
        (ct.Brownian(1.0), [[0, 1], [1, 0]]),
    ],
)
def test_only_sites_of_one_rate_are_sketched(process, X):
    X = np.array(X, dtype=float)
    sketch = sketches.Sketch(process.resolve(X).forest(X, 2, scan=True), 2)
    assert sketch.n_sites == 0
    assert np.asarray(sketch.rows).size == 0


@pytest.mark.parametrize("noise", [0.0, 0.1, 0.4])
@pytest.mark.parametrize("missing", [0.0, 0.1])
@pytest.mark.parametrize(("rate", "max_states"), [(0.05, 2), (1.0, 2), (30.0, 2), (0.05, 4), (1.0, 5)])
def test_sketches_do_not_change_tree(noise, missing, rate, max_states):
    """An empty real column prevents sketches and does not change the tree."""
    rng = np.random.default_rng([int(100 * noise), int(100 * missing)])
    X = table(rng, 60, missing=missing, max_states=max_states)
    process = ct.Multinomial(rate, noise=noise).resolve(X)
    wider = ct.Mixed((process, range(COLUMNS)), (ct.Brownian(rate), [COLUMNS]))
    result = ct.greedy(X, process).tree
    expected = ct.greedy(np.column_stack([X, np.full(len(X), np.nan)]), wider).tree
    assert result.children.tolist() == expected.children.tolist()
    assert result.heights == pytest.approx(expected.heights, rel=1e-11, abs=1e-14)


@pytest.mark.parametrize("max_states", [2, 3])
def test_sketches_do_not_change_very_tall_trees(max_states):
    """The last lineages merge so high that their states are independent."""
    X = table(np.random.default_rng(2), 16, max_states=max_states)
    process = ct.Multinomial(1e40, noise=0.1).resolve(X)
    result = ct.greedy(X, process).tree
    assert 1e40 * result.heights[-1] > 40
    expected = ct.greedy(
        np.column_stack([X, np.full(len(X), np.nan)]),
        ct.Mixed((process, range(COLUMNS)), (ct.Brownian(1e40), [COLUMNS])),
    ).tree
    assert result.children.tolist() == expected.children.tolist()


@pytest.mark.parametrize("noise", [0.0, 0.1])
@pytest.mark.parametrize("max_states", [2, 4])
def test_sketched_tree_matches_general_search(noise, max_states):
    """With different rates, even if only in the last digits, the search uses other code."""
    X = table(np.random.default_rng(4), 100, missing=0.1, max_states=max_states)
    rates = np.ones(COLUMNS)
    rates[0] += 1e-13
    result = ct.greedy(X, ct.Multinomial(1.0, noise=noise)).tree
    expected = ct.greedy(X, ct.Multinomial(rates, noise=noise)).tree
    assert result.children.tolist() == expected.children.tolist()
    assert result.heights == pytest.approx(expected.heights, rel=1e-9, abs=1e-12)
