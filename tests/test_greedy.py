"""Greedy inference: every merge against a search over all pairs and all heights, and the functions it is made of."""

import warnings

import numpy as np
import pytest
import scipy.optimize
from hypothesis import given, settings
from hypothesis import strategies as st

import coaltree as ct
import reference
from coaltree.errors import InputError, InputWarning
from coaltree.inference.kernels.heights import best_height, rank_by_likeness
from coaltree.process.kernels import messages as op
from coaltree.process.kernels.messages import pair_shift
from tables import code_table

RULES = ["rate1", "max-prob", "min-duration"]


# -- tables --------------------------------------------------------------------------------------------------------


def real_table(rng, n, n_columns, missing=0.0):
    """Two or three loose groups."""
    X = rng.normal(size=(n, n_columns)) + 2.0 * rng.integers(0, 3, size=(n, 1))
    X[rng.random(X.shape) < missing] = np.nan
    return X


def equilibria(rng, n_states):
    return [rng.dirichlet(np.full(k, 3.0)) for k in n_states]


def spread_rates(rng, count):
    return np.exp(rng.uniform(np.log(0.01), np.log(50), count))


def brownian(rng, n):
    return ct.Brownian(0.5), real_table(rng, n, 3)


def brownian_noise(rng, n):
    return ct.Brownian([0.2, 1.0, 3.0], noise=rng.choice([0.02, 0.5])), real_table(rng, n, 3)


def brownian_missing(rng, n):
    X = real_table(rng, n, 4, missing=0.35)
    X[rng.integers(n)] = np.nan
    return ct.Brownian(rng.lognormal(sigma=2.0, size=4)), X


def brownian_missing_noise(rng, n):
    return ct.Brownian([0.05, 1.0, 1.0, 8.0], noise=0.2), real_table(rng, n, 4, missing=0.35)


def brownian_full(rng, n):
    a = rng.normal(size=(3, 3))
    return ct.Brownian(a @ a.T + 0.2 * np.eye(3), noise=rng.choice([0.0, 0.3])), real_table(rng, n, 3)


def brownian_noises(rng, n):
    """A noise of its own in each column: one has none, so that different cells keep their rows apart."""
    noise = rng.choice([0.0, 0.02, 0.5], size=4, p=[0.2, 0.3, 0.5])
    return ct.Brownian([0.05, 1.0, 1.0, 8.0], noise=noise), real_table(rng, n, 4, missing=rng.choice([0.0, 0.3]))


def multinomial(rng, n):
    n_states = (2, 2, 3, 4, 3)
    return ct.Multinomial(0.8, equilibria(rng, n_states)), code_table(rng, n, n_states)


def multinomial_rates(rng, n):
    n_states = (2, 3, 2, 3, 2, 4)
    return ct.Multinomial(spread_rates(rng, 6), equilibria(rng, n_states)), code_table(rng, n, n_states)


def multinomial_rare(rng, n):
    """Rows agree in states that are rare: fast columns want them close, slow ones in which they differ far apart."""
    rare = np.exp(rng.uniform(np.log(0.003), np.log(0.4), 5))
    X = (rng.random((n, 5)) < 0.4).astype(float)
    return ct.Multinomial(spread_rates(rng, 5), [[q, 1 - q] for q in rare]), X


def multinomial_missing(rng, n):
    X = code_table(rng, n, (2, 3, 4, 3, 2), missing=0.3)
    X[rng.integers(n)] = np.nan
    return ct.Multinomial(spread_rates(rng, 5)), X


def multinomial_binary(rng, n):
    """Two states at most and one rate: pairs are ruled out by their sketches."""
    shares = np.exp(rng.uniform(np.log(0.003), np.log(0.5), 23))
    X = (rng.random((n, 23)) < 0.4).astype(float)
    X[rng.random(X.shape) < rng.choice([0.0, 0.2])] = np.nan
    X[:, -1] *= 0
    equilibrium = [*([q, 1 - q] for q in shares[:-1]), [1.0]]
    return ct.Multinomial(rng.choice([0.1, 1.0]), equilibrium, rng.choice([0.0, 0.1, 0.5])), X


def multinomial_noise(rng, n):
    """A noise of its own in each column, in some none; columns mutate at one rate or at several."""
    n_states = (2, 3, 4, 3, 2, 2)
    noise = rng.choice([0.0, 0.05, 0.4, 0.9], size=6)
    rate = 0.8 if rng.random() < 0.5 else spread_rates(rng, 6)
    X = code_table(rng, n, n_states, missing=rng.choice([0.0, 0.2]))
    return ct.Multinomial(rate, equilibria(rng, n_states), noise), X


def ordered(rng, n):
    n_states = (2, 3, 5, 4)
    noise = rng.uniform(0.05, 0.6, 4)
    return ct.Ordered(spread_rates(rng, 4), equilibria(rng, n_states), noise), code_table(rng, n, n_states, 0.1)


def mixed_ordered(rng, n):
    """All four kinds of columns."""
    X = np.column_stack([real_table(rng, n, 2, 0.1), code_table(rng, n, (2, 3, 4, 5), 0.1)])
    process = ct.Mixed(
        (ct.Brownian(0.7, noise=0.2), [0]),
        (ct.OrnsteinUhlenbeck(0.5, 1.0, 2.0, 0.3), [1]),
        (ct.Multinomial(spread_rates(rng, 2), equilibria(rng, (2, 3))), [2, 3]),
        (ct.Ordered([0.5, 2.0], equilibria(rng, (4, 5)), 0.2), [4, 5]),
    )
    return process, X


def mixed_noises(rng, n):
    """Noise in all columns, of both kinds."""
    X = np.column_stack([real_table(rng, n, 2, 0.1), code_table(rng, n, (2, 3, 3), 0.1)])
    process = ct.Mixed(
        (ct.Brownian(0.7, noise=[0.3, 0.02]), [0, 1]),
        (ct.Multinomial(spread_rates(rng, 3), equilibria(rng, (2, 3, 3)), rng.uniform(0.05, 0.6, 3)), [2, 3, 4]),
    )
    return process, X


def mixed_two(rng, n):
    X = np.column_stack([real_table(rng, n, 2, 0.1), code_table(rng, n, (2, 3, 3), 0.1)])
    process = ct.Mixed(
        (ct.Multinomial(spread_rates(rng, 3), equilibria(rng, (2, 3, 3))), [2, 3, 4]),
        (ct.Brownian(0.7, noise=rng.choice([0.0, 0.1])), [0, 1]),
    )
    return process, X


def mixed_three(rng, n):
    """Two real parts that differ in noise, so that even complete columns are on clocks of their own."""
    X = np.column_stack([real_table(rng, n, 2), code_table(rng, n, (2, 3)), real_table(rng, n, 2)])
    process = ct.Mixed(
        (ct.Brownian([0.3, 3.0], noise=0.6), [0, 1]),
        (ct.Multinomial([0.2, 6.0], equilibria(rng, (2, 3))), [2, 3]),
        (ct.Brownian(1.0), [4, 5]),
    )
    return process, X


SETUPS = [
    brownian,
    brownian_noise,
    brownian_missing,
    brownian_missing_noise,
    brownian_noises,
    brownian_full,
    multinomial,
    multinomial_rates,
    multinomial_rare,
    multinomial_missing,
    multinomial_binary,
    multinomial_noise,
    ordered,
    mixed_ordered,
    mixed_noises,
    mixed_two,
    mixed_three,
]
every_setup = pytest.mark.parametrize("setup", SETUPS)
SIZES = [2, 3, 4, 5, 5, 6, 7]


# -- every merge against brute force -------------------------------------------------------------------------------


@every_setup
@pytest.mark.parametrize("rule", RULES)
def test_every_merge_is_optimal(setup, rule):
    steps = skipped = 0
    for seed, n in enumerate(SIZES):
        process, X = setup(np.random.default_rng([seed, n]), n)
        tree = ct.greedy(X, process, rule=rule).tree
        search = reference.GreedyReference(process, X, rule)
        for (i, j), height in zip(tree.children.tolist(), tree.merge_heights, strict=True):
            choice = search.choose()
            steps += 1
            assert choice.shortfall[min(i, j), max(i, j)] < 1e-8, (seed, steps)
            if choice.clear:
                assert (min(i, j), max(i, j)) == choice.pair, (seed, steps)
                assert height == pytest.approx(choice.height, rel=1e-6, abs=1e-12), (seed, steps)
            else:
                skipped += 1
            search.merge((i, j), height)
    # Under max-prob all pairs without a cell in common score 0: which of them comes first is for rounding to say.
    assert skipped <= (0.4 if rule == "max-prob" and "missing" in setup.__name__ else 0.05) * steps


def test_setups_have_pairs_with_several_maxima():
    """Otherwise the test above would not show that the best of several maxima is found."""
    several = 0
    for seed, n in enumerate(SIZES):
        process, X = multinomial_rare(np.random.default_rng([seed, n]), n)
        several += reference.GreedyReference(process, X, "rate1").choose().n_peaks > 1
    assert several >= 3


def test_greedy_chooses_closer_of_two_maxima():
    """A shared rare state favours a low merge; a slow column in which the rows differ favours a high one."""
    process = ct.Multinomial([10.0, 0.001], [[0.0067, 0.9933], [0.5, 0.5]])
    X = np.array([[0.0, 0.0], [0.0, 1.0]])
    model = reference.Model(process, X)
    near, far = reference.peaks(model, model.leaf(0), model.leaf(1), 1.0, 0.0)
    assert near.height < far.height
    assert near.value > far.value + 1
    for rule in RULES:
        assert ct.greedy(X, process, rule=rule).tree.heights[-1] == pytest.approx(near.height, rel=1e-9)


@every_setup
@pytest.mark.parametrize("rule", RULES)
def test_result_attributes_match_tree(setup, rule):
    for seed in range(3):
        process, X = setup(np.random.default_rng([7, seed]), 12)
        result = ct.greedy(X, process, rule=rule)
        expected = reference.climb(result.tree, X, process)
        assert result.log_likelihood == pytest.approx(expected.log_likelihood, rel=1e-8, abs=1e-8)
        assert result.log_joint == pytest.approx(
            expected.log_likelihood + reference.log_prior(result.tree), rel=1e-8, abs=1e-8
        )
        assert result.log_ratios == pytest.approx(expected.log_ratios, rel=1e-7, abs=1e-7)
        assert result.log_likelihood == process.log_likelihood(result.tree, X)
        assert result.log_joint == ct.log_joint(result.tree, X, process)
        assert result.log_joint == result.log_likelihood + ct.log_prior(result.tree)
        assert np.all(np.diff(result.tree.merge_heights) >= 0)


def test_result_process_is_resolved():
    result = ct.greedy([[0], [1], [1]], ct.Multinomial(2.0))
    assert result.process.equilibrium[0] == pytest.approx([2 / 5, 3 / 5])
    assert result.process.rate == 2.0


# -- one pair ------------------------------------------------------------------------------------------------------

# The kernels' own functions are called in this section and in `replay` only.


class Problem:
    """A forest whose slots were merged at random, and the same lineages in the reference."""

    def __init__(self, setup, seed, n=8, n_merges=4):
        rng = np.random.default_rng(seed)
        process, X = setup(rng, n)
        self.rng = rng
        self.model = reference.Model(process, X)
        self.forest = process.resolve(X).forest(X, n, scan=True)
        self.scratch = op.Pair(self.forest)
        self.lineages = [self.model.leaf(row) for row in range(n)]
        height, live = 0.0, list(range(n))
        scale = 10.0 ** rng.uniform(-3, 0.5)
        for _ in range(rng.integers(0, n_merges + 1)):
            i, j = sorted(int(slot) for slot in rng.choice(live, 2, replace=False))
            height += rng.exponential() * scale
            self.merge(i, j, height)
            live.remove(j)
        # No slot of a block may stand higher than the one it is weighed against: the tallest comes last.
        self.slots = sorted(live, key=lambda slot: self.lineages[slot].height)

    def merge(self, i, j, height):
        with np.errstate(all="ignore"):
            op.merge(self.forest, i, j, height, i, self.scratch)
        self.forest.height[i] = height
        self.lineages[i] = self.model.merge(self.lineages[i], self.lineages[j], height)

    def pair(self):
        """Return the tallest lineage and a random other: slots, scratch array, shift and lowest height."""
        i, j = self.slots[-1], self.slots[self.rng.integers(len(self.slots) - 1)]
        return i, j, self.load(i, j), pair_shift(self.forest, i, j), max(self.forest.height[i], self.forest.height[j])

    def load(self, i, j):
        pair = op.Pair(self.forest)
        op.load_pair(self.forest, i, j, pair)
        return pair


seeds = st.integers(0, 2**32 - 1)
setups = st.sampled_from(SETUPS[:-1])
patient = settings(deadline=None, max_examples=150, derandomize=True)


@settings(patient, max_examples=100)
@given(setups, seeds, st.sampled_from([1.0, 3.0, 28.0]))
def test_search_height_is_optimal(setup, seed, c):
    check_best_height(Problem(setup, seed), c, np.logspace(-9, 4, 3000))


def check_best_height(problem, c, climbs):
    """No height on a grid has a larger ``log Z(h) - c h`` than the one of the search."""
    i, j, pair, shift, lowest = problem.pair()
    a, b = problem.lineages[i], problem.lineages[j]
    best = best_height(problem.forest, pair, shift, c, lowest, np.inf)
    assert best >= lowest
    heights = lowest + np.concatenate([[0.0], climbs])
    values = problem.model.log_z(a, b, heights) - c * (heights - lowest)
    value = problem.model.log_z(a, b, best) - c * (best - lowest)
    assert value >= np.nanmax(values) - 1e-9


@settings(patient, max_examples=120)
@given(seeds)
def test_search_height_is_optimal_for_rare_shared_states(seed):
    check_best_height(Problem(multinomial_rare, seed, n=3, n_merges=1), 1.0, np.logspace(-6, 3, 1000))


@patient
@given(setups, seeds, st.sampled_from([1.0, 28.0]), st.floats(1e-6, 1e3))
def test_search_height_respects_limit(setup, seed, c, factor):
    problem = Problem(setup, seed)
    *_, pair, shift, lowest = problem.pair()
    free = best_height(problem.forest, pair, shift, c, lowest, np.inf)
    for limit in (
        lowest + factor * max(free - lowest, 1e-3),
        lowest + (free - lowest) * (1 - 1e-6),
        free * (1 + 1e-6) + 1e-12,
    ):
        if limit <= lowest or abs(limit - free) < 1e-9 * free:
            continue
        limited = best_height(problem.forest, pair, shift, c, lowest, limit)
        if free < limit:
            assert limited == pytest.approx(free, rel=1e-9, abs=1e-15)
        else:
            assert limited == np.inf


@patient
@given(setups, seeds)
def test_slopes_match_derivative_of_log_z(setup, seed):
    check_slopes(Problem(setup, seed))


def check_slopes(problem):
    """``log Z`` and its derivative are those of the reference, and the falls are the derivatives of rise and drop."""
    i, j, pair, _, lowest = problem.pair()
    a, b = problem.lineages[i], problem.lineages[j]
    previous = np.inf, np.inf
    for climb in np.logspace(-4, 2, 13):
        h = lowest + climb
        assert op.log_z(problem.forest, pair, h) == pytest.approx(
            float(problem.model.log_z(a, b, h)), rel=1e-9, abs=1e-9
        )
        rise, drop, rise_falls, drop_falls = op.slopes(problem.forest, pair, h)
        assert problem.forest.n_chains or min(rise, drop, rise_falls, drop_falls) >= 0
        assert rise - drop == pytest.approx(
            float(problem.model.slope(a, b, h)), rel=1e-7, abs=1e-7 * abs(rise + drop) + 1e-12
        )
        step = 1e-5 * climb
        below, above = op.slopes(problem.forest, pair, h - step), op.slopes(problem.forest, pair, h + step)
        tiny = 1e-12 * abs(rise + drop) / step + 1e-12
        assert (below[0] - above[0]) / (2 * step) == pytest.approx(rise_falls, rel=1e-5, abs=tiny)
        assert (below[1] - above[1]) / (2 * step) == pytest.approx(drop_falls, rel=1e-5, abs=tiny)
        assert rise <= previous[0] * (1 + 1e-12)
        assert problem.forest.n_chains or drop <= previous[1] * (1 + 1e-12)
        previous = rise, drop


@patient
@given(setups, seeds, st.floats(-5, 2), st.floats(-5, 2), st.booleans())
def test_least_slope_is_a_lower_bound(setup, seed, log_low, log_width, from_lowest):
    check_least_slope(Problem(setup, seed), log_low, log_width, from_lowest)


def check_least_slope(problem, log_low, log_width, from_lowest):
    """No slope inside an interval is below the bound, in units of the path at its upper end."""
    i, j, pair, shift, lowest = problem.pair()
    low = lowest if from_lowest else lowest + 10.0**log_low
    high = low + 10.0**log_width
    tops = problem.forest.height[i] + problem.forest.height[j]
    for s in {shift, 0.0}:
        bound = op.least_slope(problem.forest, pair, low, high, s)
        for h in inside(low, high):
            path = 2 * h - tops
            if path + s <= 0:
                continue
            with np.errstate(over="ignore"):  # at a pole the rise falls without bound
                rise, drop, _, _ = op.slopes(problem.forest, pair, h)
            factor = (path + s) / (2 * high - tops + s)
            assert bound <= factor * (rise - drop) + 1e-9 * (1 + factor * abs(rise + drop))


@patient
@given(st.sampled_from([ordered, mixed_ordered]), seeds, st.floats(-5, 2), st.floats(-5, 2))
def test_slopes_of_chains_stay_within_bounds(setup, seed, log_low, log_width):
    """The drop, less what chains may add, and its derivative are bounded between two heights."""
    problem = Problem(setup, seed)
    *_, pair, _, lowest = problem.pair()
    low = lowest + 10.0**log_low
    high = low + 10.0**log_width
    least, most = op.drop_falls_range(problem.forest, pair, low, high)
    smallest = op.slopes(problem.forest, pair, high)[1] - op.chain_gap(problem.forest, pair, low, high)
    for h in inside(low, high):
        _, drop, _, drop_falls = op.slopes(problem.forest, pair, h)
        assert drop >= smallest - 1e-9 * (1 + abs(drop))
        assert least - 1e-9 * (1 + abs(drop_falls)) <= drop_falls <= most + 1e-9 * (1 + abs(drop_falls))


def inside(low, high):
    """Return heights in an interval, more of them near its lower end."""
    return np.concatenate([np.linspace(low, high, 40), low + (high - low) * np.logspace(-8, 0, 40)])


@patient
@given(setups, seeds, st.sampled_from([0.0, 0.01, 1.0]), st.floats(-4, 2))
def test_scanned_slopes_match_pair_slopes(setup, seed, start, log_width):
    check_scanned_slopes(Problem(setup, seed), start, log_width)


def check_scanned_slopes(problem, start, log_width):
    """The fast bound of all partners of one slot is that of each pair; complete tables are scanned otherwise."""
    forest, slots = problem.forest, problem.slots
    if forest.complete:
        return
    i = slots[-1]
    low = float(forest.height[i] + start)
    high = low + 10.0**log_width
    scan = op.Pair(forest)
    op.start_scan(forest, i, low, high, scan)
    for j in slots[:-1]:
        shift = pair_shift(forest, i, j)
        actual = op.scan_slope(forest, i, j, low, high, shift, scan)
        if forest.n_real == 0 and forest.common_rate > 0:
            rise, drop, _, _ = op.slopes(forest, problem.load(i, j), high)
            expected = rise - drop
        else:
            expected = op.least_slope(forest, problem.load(i, j), low, high, shift)
        assert actual == pytest.approx(expected, rel=1e-8, abs=1e-8)


# -- many rows: the bookkeeping of partners ------------------------------------------------------------------------


def replay(process, X, tree, equal_first=True):
    """Weigh all live pairs before every merge of a `rate1` tree; equal lineages come first, whatever their similarity.

    Returns how many merges had baselines of exactly the same best height, in how many of these the pair was not the smaller
    one, and how many took a pair whose best height is larger than the least in the last digits only.
    """
    n = len(X)
    resolved = process.resolve(X)
    forest = resolved.forest(X, 2 * n - 1)
    pair = op.Pair(forest)
    op.set_log_norms(forest, n)
    best = np.full((2 * n - 1, 2 * n - 1), np.inf)  # [older, younger]
    rows = [[row] for row in range(n)]

    def weigh(older, younger):
        op.load_pair(forest, older, younger, pair)
        shift = pair_shift(forest, older, younger)
        floor = float(forest.height[younger])
        best[older, younger] = best_height(forest, pair, shift, 1.0, floor, np.inf)
        if forest.noisy and best[older, younger] == floor:
            cosine = op.log_cosine(forest, older, younger, pair, floor)
            best[older, younger] = rank_by_likeness(cosine)  # the most alike of these first
        if equal_first and reference.are_equal(X, rows[older], rows[younger], forest.noisy):
            assert floor == 0
            assert best[older, younger] <= 0
            best[older, younger] = -np.inf

    for younger in range(n):
        for older in range(younger):
            weigh(older, younger)
    live = list(range(n))
    ties = wrong = rounded = 0
    for k, ((i, j), height) in enumerate(zip(tree.children.tolist(), tree.merge_heights, strict=True)):
        least = best.min()
        i, j = min(i, j), max(i, j)
        assert best[i, j] == pytest.approx(least, rel=1e-11, abs=1e-14), k
        lowest = max(forest.height[i], forest.height[j])
        assert height == pytest.approx(max(least, lowest), rel=1e-11, abs=1e-14), k
        first = np.unravel_index(np.argmin(best), best.shape)  # the first in the order of (older, younger)
        ties += np.count_nonzero(best == least) > 1
        wrong += best[i, j] == least and (i, j) != first
        rounded += best[i, j] > least
        new = n + k
        op.merge(forest, i, j, float(height), new, pair)
        forest.height[new] = height
        rows.append(rows[i] + rows[j])
        op.set_log_norm(forest, new, pair)
        for dead in (i, j):
            best[dead, :] = best[:, dead] = np.inf
            live.remove(dead)
        for older in live:
            weigh(older, new)
        live.append(new)
    return ties, wrong, rounded


def large_brownian(rng):
    return ct.Brownian(noise=0.05), real_table(rng, 200, 2)


def large_missing(rng):
    return ct.Brownian([0.3, 1.0, 4.0]), real_table(rng, 120, 3, missing=0.3)


def large_rates(rng):
    n_states = (2, 3, 2, 4, 3, 2, 2, 3)
    return ct.Multinomial(spread_rates(rng, 8), equilibria(rng, n_states)), code_table(rng, 120, n_states, 0.1)


def large_noises(rng):
    return ct.Brownian([0.3, 1.0, 4.0], noise=[0.5, 0.01, 0.1]), real_table(rng, 120, 3, missing=0.1)


def large_noise_of_states(rng):
    n_states = (2, 3, 2, 4, 3, 2, 2, 3)
    noise = rng.choice([0.05, 0.3, 0.6], size=8)
    return ct.Multinomial(spread_rates(rng, 8), equilibria(rng, n_states), noise), code_table(rng, 120, n_states, 0.1)


def large_mixed(rng):
    X = np.column_stack([real_table(rng, 100, 2), code_table(rng, 100, (2, 3, 3), 0.2)])
    return ct.Mixed((ct.Brownian(noise=0.1), [0, 1]), (ct.Multinomial([0.2, 1.0, 5.0]), [2, 3, 4])), X


@pytest.mark.parametrize(
    "setup", [large_brownian, large_missing, large_noises, large_rates, large_noise_of_states, large_mixed]
)
def test_exact_search_finds_best_pairs(setup):
    process, X = setup(np.random.default_rng(3))
    tree = ct.greedy(X, process).tree
    _, wrong, rounded = replay(process, X, tree)
    assert (wrong, rounded) == (0, 0)
    assert np.all(np.diff(tree.heights) >= 0)


def few_values(rng):
    return ct.Brownian(noise=0.2), rng.integers(0, 4, (120, 2)).astype(float)


def few_values_missing(rng):
    X = rng.integers(0, 3, (90, 3)).astype(float)
    X[rng.random(X.shape) < 0.2] = np.nan
    return ct.Brownian(noise=0.2), X


def few_states(rng):
    return ct.Multinomial(0.7, [[0.5, 0.5]] * 4), rng.integers(0, 2, (100, 4)).astype(float)


def few_states_rates(rng):
    X = rng.integers(0, 2, (90, 4)).astype(float)
    X[rng.random(X.shape) < 0.1] = np.nan
    return ct.Multinomial([0.05, 0.5, 5.0, 50.0], [[0.5, 0.5]] * 4), X


def few_states_noise(rng):
    X = rng.integers(0, 2, (90, 4)).astype(float)
    X[rng.random(X.shape) < 0.1] = np.nan
    return ct.Multinomial(0.7, [[0.5, 0.5]] * 4, [0.0, 0.1, 0.3, 0.6]), X


def few_of_both(rng):
    X = np.column_stack([rng.integers(0, 3, (80, 1)), rng.integers(0, 2, (80, 2))]).astype(float)
    return ct.Mixed((ct.Brownian(noise=0.3), [0]), (ct.Multinomial(0.7, [[0.5, 0.5]] * 2), [1, 2])), X


@pytest.mark.parametrize(
    "setup", [few_values, few_values_missing, few_states, few_states_rates, few_states_noise, few_of_both]
)
@pytest.mark.parametrize("seed", [0, 1])
def test_ties_prefer_smaller_node_numbers(setup, seed):
    process, X = setup(np.random.default_rng(seed))
    tree = ct.greedy(X, process).tree
    ties, wrong, rounded = replay(process, X, tree)
    assert ties > len(X) // 4
    assert wrong == 0
    assert rounded <= len(X) // 20


@pytest.mark.parametrize("rule", RULES)
def test_equal_rows_merge_in_row_order(rule):
    """All pairs tie at height 0, before and after every merge of leaves."""
    process = ct.Brownian(noise=0.5)
    X = np.full((6, 2), 3.0)
    assert ct.greedy(X, process, rule=rule).tree.merge_heights.tolist() == [0.0] * 5
    X = np.repeat([[0.0, 0.0], [50.0, 0.0], [0.0, 70.0]], 2, axis=0)
    tree = ct.greedy(X, process, rule=rule).tree
    assert np.sort(tree.children[:3], axis=1).tolist() == [[0, 1], [2, 3], [4, 5]]


def test_tie_rule_for_equal_rows():
    tree = ct.greedy(np.full((6, 2), 3.0), ct.Brownian(noise=0.5)).tree
    # groups of one size are most alike
    assert tree.children.tolist() == [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9]]


@pytest.mark.parametrize(
    "setup", [large_brownian, large_missing, large_rates, large_mixed, few_values, few_states_rates]
)
def test_greedy_is_independent_of_threads(setup):
    process, X = setup(np.random.default_rng(4))
    X = np.vstack([X, X[:80]]) + np.zeros(X.shape[1])  # more ties, and more than one block of rows to share
    results = []
    for n_jobs in (1, 2, 4, None):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InputWarning)  # repeated rows
            results.append(ct.greedy(X, process, n_jobs=n_jobs))
    for other in results[1:]:
        assert other.tree == results[0].tree
        assert other.log_joint == results[0].log_joint
        assert np.array_equal(other.log_ratios, results[0].log_ratios)


def test_exact_and_auto_search_agree():
    process, X = large_rates(np.random.default_rng(5))
    assert ct.greedy(X, process, search="exact").tree == ct.greedy(X, process, search="auto").tree


# -- identical and empty rows --------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("with_missing", [False, True])
def test_identical_rows_are_reported_with_advice(rule, with_missing):
    X = np.random.default_rng(0).normal(size=(7, 3))
    X[[2, 5]] = X[0]
    X[6] = X[1]
    if with_missing:
        X[4, 1] = np.nan
    with pytest.warns(InputWarning, match=r"^3 merge\(s\) join rows that are identical.*noise=0\.01") as caught:
        result = ct.greedy(X, ct.Brownian(), rule=rule)
    assert len(caught) == 1
    assert np.isfinite(result.log_joint)
    assert np.all(np.isfinite(result.log_ratios))
    assert result.tree.merge_heights[:3].tolist() == [0.0] * 3
    assert result.tree.merge_heights[3] > 0


@pytest.mark.parametrize("rule", RULES)
def test_recommended_noise_removes_warning(rule):
    X = np.random.default_rng(0).normal(size=(7, 3))
    X[[2, 5]] = X[0]
    result = ct.greedy(X, ct.Brownian(noise=0.01), rule=rule)  # warnings are errors here
    assert np.isfinite(result.log_joint)


def test_identical_rows_in_mixed_part_are_counted():
    X = np.column_stack([[1.0, 1.0, 2.0, 3.5], [0, 0, 1, 0]])
    process = ct.Mixed((ct.Brownian(), [0]), (ct.Multinomial(), [1]))
    with pytest.warns(InputWarning, match=r"^1 merge\(s\)"):
        ct.greedy(X, process)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(
    ("process", "X"),
    [
        (ct.Brownian(), [[0.0, 1.0], [np.nan, np.nan], [0.3, 1.1], [np.nan, np.nan], [4.0, -1.0]]),
        (ct.Multinomial(), [[0, 1], [np.nan, np.nan], [0, 1], [np.nan, np.nan], [1, 0]]),
        (
            ct.Mixed((ct.Brownian(), [0]), (ct.Multinomial(), [1])),
            [[0.0, 1], [np.nan, np.nan], [0.2, 1], [np.nan, np.nan], [3.0, 0]],
        ),
    ],
)
def test_empty_rows_do_not_warn(rule, process, X):
    result = ct.greedy(X, process, rule=rule)
    assert np.isfinite(result.log_joint)
    assert result.log_joint == pytest.approx(
        reference.climb(result.tree, np.array(X), process).log_likelihood + reference.log_prior(result.tree)
    )
    if rule != "max-prob":  # an empty row says nothing: it joins at once
        assert result.tree.merge_heights[0] == 0.0


@pytest.mark.parametrize("rule", RULES)
def test_greedy_of_empty_table(rule):
    result = ct.greedy(np.full((5, 2), np.nan), ct.Brownian(), rule=rule)
    assert result.log_joint == 0.0
    assert result.tree.merge_heights.tolist() == [0.0] * 4


# -- manners -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("setup", [brownian, brownian_missing_noise, multinomial_rates, mixed_two])
def test_greedy_of_one_and_two_rows(setup, rule):
    process, X = setup(np.random.default_rng(1), 1)
    one = ct.greedy(X, process, rule=rule)
    assert one.tree.n_leaves == 1
    assert one.log_ratios.shape == (0,)
    assert one.log_joint == pytest.approx(reference.climb(one.tree, X, process).log_likelihood)
    process, X = setup(np.random.default_rng(2), 2)
    two = ct.greedy(X, process, rule=rule)
    assert sorted(two.tree.children[0].tolist()) == [0, 1]
    model = reference.Model(process, X)
    best = reference.peaks(model, model.leaf(0), model.leaf(1), 1.0, 0.0)[0]
    assert two.tree.heights[-1] == pytest.approx(best.height, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("n", [1, 2, 300])
def test_progress_increases_to_one(rule, n):
    n = min(n, 90) if rule != "rate1" else n
    shares = []
    X = np.random.default_rng(0).normal(size=(n, 2))
    quiet = ct.greedy(X, ct.Brownian(noise=0.1), rule=rule)
    result = ct.greedy(X, ct.Brownian(noise=0.1), rule=rule, progress=lambda share, live: shares.append(share))
    assert result.tree == quiet.tree
    assert shares[-1] == 1.0
    assert shares == sorted(shares)
    assert all(0 <= share <= 1 for share in shares)
    if n > 2:
        assert len(set(shares)) > 2


def test_leaf_names_option_names_leaves():
    tree = ct.greedy([[0.0], [9.0], [0.1]], ct.Brownian(), leaf_names=["x", "y", "z"]).tree
    assert tree.leaf_names == ("x", "y", "z")
    assert sorted(tree.children[0].tolist()) == [0, 2]


def test_greedy_does_not_modify_table():
    process, X = mixed_two(np.random.default_rng(0), 9)
    before = X.copy()
    ct.greedy(X, process)
    assert np.array_equal(X, before, equal_nan=True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rule": "rate2"}, "rule is 'rate2'.*'rate1'.*'max-prob'.*'min-duration'"),
        ({"search": "fast"}, "search is 'fast'.*'exact'"),
        ({"leaf_names": ["a", "b"]}, "2 leaf names were given for 3 leaves"),
    ],
)
def test_invalid_greedy_options_are_rejected(options, message):
    with pytest.raises(InputError, match=message):
        ct.greedy([[0.0], [1.0], [3.0]], ct.Brownian(), **options)


@pytest.mark.parametrize(
    ("process", "X", "message"),
    [
        (ct.Brownian([1.0, 2.0]), [[0.0], [1.0]], r"1 column\(s\).*describes 2"),
        (ct.Brownian(np.eye(2)), [[0.0, np.nan], [1.0, 1.0]], "full covariance"),
        (ct.Multinomial(), [[0.5], [1.0]], r"Row 0, column 0 holds 0\.5"),
        (ct.Brownian(), [[np.inf], [1.0]], "infinite"),
        (ct.Brownian(), [], "dimension"),
    ],
)
def test_invalid_tables_are_rejected(process, X, message):
    with pytest.raises(InputError, match=message):
        ct.greedy(X, process)


@pytest.mark.parametrize("n_real", [1, 2, 3])
def test_best_height_of_equal_numbers_with_different_categories(n_real):
    """The columns pull the best height in opposite directions; the search must still end with a finite height."""
    X = np.zeros((2, n_real + 1))
    X[1, -1] = 1
    process = ct.Mixed((ct.Brownian(), range(n_real)), (ct.Multinomial(1.0, [[0.5, 0.5]]), [n_real]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)
        height = ct.greedy(X, process).tree.heights[-1]
    if n_real == 1:  # log(1 - u) - log(g) / 2 - h, with u = exp(-g) and g = 2 h: the slope is 2 u / (1 - u) - 1 / g - 1
        g = scipy.optimize.brentq(lambda g: 2 * np.exp(-g) / -np.expm1(-g) - 1 / g - 1, 1e-3, 10)
        assert height == pytest.approx(g / 2, rel=1e-9)
    else:
        assert 0 < height < 1e-9
