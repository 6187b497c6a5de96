"""Ordered categories: `Ordered` against enumeration with matrix exponentials, and statistics of its draws.

Statistical tests fail for a sound library once in 100,000 runs each; their seeds are fixed.
"""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import logsumexp

import coaltree as ct
import reference
from coaltree.errors import InputError
from coaltree.process.declarations import ChainColumns
from coaltree.process.kernels import messages as op
from coaltree.process.likelihood import Beliefs
from test_parameter_draws import assert_mean

RARE = 1e-5
THREE = ct.Tree.from_newick("((a:0.4,b:0.4):0.5,c:0.9);")
SHARES = [np.array([0.3, 0.7]), np.array([0.5, 0.2, 0.3]), np.array([0.1, 0.2, 0.4, 0.25, 0.05])]


@pytest.mark.parametrize("noise", [0.0, 0.3])
@pytest.mark.parametrize("q", SHARES, ids=len)
def test_likelihoods_of_three_leaves_match_enumeration(q, noise):
    process, total = ct.Ordered(0.7, [q], noise), 0.0
    for cells in product([*range(len(q)), np.nan], repeat=3):
        X = np.array(cells)[:, None]
        value = process.log_likelihood(THREE, X)
        assert value == pytest.approx(reference.log_likelihood(THREE, X, process), abs=1e-9)
        total += 0.0 if np.isnan(X).any() else np.exp(value)
    assert total == pytest.approx(1)


def test_two_levels_mutate():
    rng = np.random.default_rng(0)
    tree, X = ct.simulate_tree(30, rng), (rng.random((30, 2)) < 0.4).astype(float)
    arguments = [0.5, 2.0], [SHARES[0], [0.1, 0.9]], [0.1, 0.4]
    ordered, mutating = ct.Ordered(*arguments), ct.Multinomial(*arguments)
    assert ordered.log_likelihood(tree, X) == pytest.approx(mutating.log_likelihood(tree, X))
    nodes = [Beliefs(tree, X, process).nodes().probability for process in (ordered, mutating)]
    np.testing.assert_allclose(*nodes, atol=1e-12)


def test_impossible_rows_have_no_likelihood():
    """Two different levels without noise, at one point of the tree."""
    tree = ct.Tree([[0, 1]], [0.0, 0.0, 0.0])
    assert ct.Ordered(1.0, SHARES[2:]).log_likelihood(tree, [[0], [4]]) == -np.inf
    assert ct.Ordered(1.0, SHARES[2:], 0.2).log_likelihood(tree, [[0], [4]]) > -np.inf


def test_levels_that_do_not_occur_keep_their_place():
    """The reverse order has the same likelihood; where a level is left out, its neighbours are nearer to each other."""
    X = np.array([[0.0], [0.0], [3.0], [4.0], [4.0]])
    tree = ct.simulate_tree(5, random_state=0)
    process = ct.Ordered().resolve(X)
    assert process.equilibrium[0] == pytest.approx([0.3, 0.1, 0.1, 0.2, 0.3])
    reverse = ct.Ordered(1.0, [process.equilibrium[0][::-1]])
    assert reverse.log_likelihood(tree, 4 - X) == pytest.approx(process.log_likelihood(tree, X))
    pair = ct.Tree([[0, 1]], [0.0, 0.0, 0.2])
    near, far = ct.Ordered(1.0, [[0.3, 0.3, 0.4]]), ct.Ordered(1.0, [[0.3, 0.1, 0.1, 0.1, 0.4]])
    assert near.log_likelihood(pair, [[0], [2]]) > far.log_likelihood(pair, [[0], [4]])


def test_simulated_tables_have_the_likelihood():
    """Counts of all tables of three leaves against their probabilities."""
    size, q = 4_000, SHARES[1]
    process = ct.Ordered(0.7, [q], 0.2)
    tables = ct.Ordered(0.7, [q] * size, 0.2).simulate(THREE, random_state=0).astype(int)
    observed = np.bincount(tables[0] * 9 + tables[1] * 3 + tables[2], minlength=27)
    cells = np.array(list(product(range(3), repeat=3)), dtype=float)
    expected = size * np.exp([process.log_likelihood(THREE, row[:, None]) for row in cells])
    assert stats.chisquare(observed, expected * size / expected.sum()).pvalue > RARE


def test_draws_given_cells_match_enumeration():
    """The cell of one leaf given the two others, noise included."""
    process, size = ct.Ordered(0.7, [SHARES[2]], 0.2), 4_000
    X = np.array([[0.0], [np.nan], [3.0]])
    drawn = Beliefs(THREE, X, process).draw(size, np.random.default_rng(0))[:, 1, 0].astype(int)
    chances = np.exp([process.log_likelihood(THREE, np.where(np.isnan(X), k, X)) for k in range(5)])
    expected = size * chances / chances.sum()
    assert stats.chisquare(np.bincount(drawn, minlength=5), expected).pvalue > RARE
    predicted = Beliefs(THREE, X, process).leaves().probability[1]
    np.testing.assert_allclose(predicted, chances / chances.sum(), rtol=1e-9)


def test_evidence_of_two_rows_matches_quadrature():
    process, X = ct.Ordered(0.7, SHARES[1:], 0.1), np.array([[0.0, 1.0], [2.0, 4.0]])
    heights = np.arange(0.025, 20, 0.05)
    joint = [ct.log_joint(ct.Tree([[0, 1]], [0.0, 0.0, h]), X, process) for h in heights]
    expected = logsumexp(joint) + np.log(0.05)
    assert ct.smc(X, process, n_particles=400, random_state=0).log_evidence == pytest.approx(expected, abs=0.1)


def test_parameter_draws_match_quadrature():
    """One column of four cells; a failure by chance is as rare as in `test_parameter_draws`."""
    tree = ct.Tree.from_newick("((a:0.3,b:0.3):0.9,(c:0.7,d:0.7):0.5);")
    X, q = np.array([[0.0], [1.0], [4.0], [2.0]]), SHARES[2:]
    sampler, rng, draws = ct.Ordered(1.0, q, 0.2).sampler(X, False), np.random.default_rng(1), []
    process = ct.Ordered(1.0, q, 0.2)
    for _ in range(600):
        process = sampler.draw(process, tree, rng)
        draws.append([np.log(process.rate), process.noise])
    log_rate, noise = np.linspace(np.log(1e-3), np.log(30), 25), np.linspace(0.01, 0.99, 25)
    grid = [[ct.Ordered(np.exp(a), q, b).log_likelihood(tree, X) for b in noise] for a in log_rate]
    log_density = np.array(grid) + (1.1 * log_rate - np.exp(log_rate) / 1.1)[:, None] + 4 * np.log1p(-noise)
    weights = np.exp(log_density - logsumexp(log_density))
    assert_mean(np.array(draws)[:, 0], float(np.sum(weights * log_rate[:, None])), "log rate")
    assert_mean(np.array(draws)[:, 1], float(np.sum(weights * noise)), "noise")


def test_fit_finds_rate_and_noise():
    tree = ct.simulate_tree(200, random_state=0)
    X = ct.Ordered(0.3, SHARES[2:] * 10, 0.1).simulate(tree, random_state=1)
    fitted = ct.calibrate(ct.Ordered(1.0, SHARES[2:] * 10, 0.5), tree, X)
    assert 0.2 < fitted.rate < 0.45
    assert 0.05 < fitted.noise < 0.15
    own = ct.calibrate(ct.Ordered(np.ones(10)), tree, X)
    assert own.noise == 0
    assert own.log_likelihood(tree, X) > ct.Ordered(np.ones(10)).log_likelihood(tree, X)


@pytest.mark.filterwarnings("ignore::coaltree.errors.InputWarning")  # they are short
def test_chains_draw_trees_and_parameters():
    X = ct.Ordered(0.5, SHARES * 2, 0.1).simulate(ct.simulate_tree(8, 0), random_state=1)
    result = ct.mcmc(X, ct.Ordered(np.ones(6), noise=0.1), 20, 2, draw_parameters=True, random_state=0)
    assert {"rate[5]", "noise"} <= set(result.parameters)
    assert np.isfinite(result.parameters["rate[5]"]).all()


def test_attaching_a_leaf_multiplies_the_likelihood():
    """The kernel that Markov chains over trees read, at points of a branch and of the stem above the root."""
    X = np.array([[0.0, 2.0, 4.0], [1.0, np.nan, 3.0], [0.0, 1.0, 0.0]])
    process = ct.Ordered([0.5, 1.0, 3.0], SHARES, [0.0, 0.2, 0.1])
    forest = process.forest(X, 3)
    place, constant = op.Place(forest), process.leaf_log_likelihoods(X[2:])[0]
    without = process.log_likelihood(ct.Tree([[0, 1]], [0.0, 0.0, 0.7]), X[:2])
    op.load_place(forest, 0, 1, 1.4, 2, place)
    for h in (0.01, 0.3, 0.7):
        tree = ct.Tree([[0, 2], [1, 3]], [0.0, 0.0, 0.0, h, 0.7])
        expected = process.log_likelihood(tree, X) - without - constant
        assert op.log_z_at(forest, place, h) == pytest.approx(expected, abs=1e-9)


def test_estimator_takes_ordered_categories(tmp_path):
    levels = ["never", "seldom", "often", "always"]
    tree = ct.simulate_tree(15, random_state=3)
    codes = ct.Ordered(0.3, [[0.3, 0.3, 0.2, 0.2]] * 4, 0.1).simulate(tree, 4).astype(int)
    frame = pd.DataFrame({f"q{d}": pd.Categorical.from_codes(codes[:, d], levels, ordered=True) for d in range(4)})
    frame.iloc[::5, 0] = None
    model = ct.CoalescentClustering(n_clusters=3, categorical_process=ct.Ordered(noise=0.3)).fit(frame)
    model.save(tmp_path / "model.coaltree")
    again = ct.load_model(tmp_path / "model.coaltree")
    assert again.tree_.to_newick() == model.tree_.to_newick()
    np.testing.assert_array_equal(again.labels_, model.labels_)


def test_wrong_ordered_processes_are_rejected():
    with pytest.raises(InputError, match="column 0 holds 1e-09"):
        ct.Ordered(equilibrium=[[1e-9, 1 - 1e-9]])
    with pytest.raises(InputError, match=r"Row 1, column 0 .*several levels"):
        ct.Ordered().resolve(np.array([[0.0], [ct.state_set(0, 1)]]))


CHAIN = {
    "message": np.ones((4, 2)),
    "equilibrium": [[0.2, 0.8]],
    "generator": [[[-4.0, 4.0], [1.0, -1.0]]],
    "noisy": True,
}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"message": np.ones((4, 3))}, ["message", "(4, 3)"]),
        ({"generator": []}, ["generator", "0", "1 column(s)"]),
        ({"generator": [[[0.0]]]}, ["generator[0]", "(1, 1)", "(2, 2)"]),
        ({"generator": [[[-4.0, 4.0], [1.0, 1.0]]]}, ["generator[0]", "add up to 0"]),
        ({"generator": [[[4.0, -4.0], [-1.0, 1.0]]]}, ["generator[0]", "0 or more"]),
        ({"generator": [[[-1.0, 1.0], [1.0, -1.0]]]}, ["generator[0]", "not reversible"]),
        ({"path": -1.0}, ["path", "-1", "0 or more"]),
    ],
)
def test_wrong_chain_columns_are_rejected(changes, words):
    ChainColumns(**CHAIN)
    with pytest.raises(InputError) as caught:
        ChainColumns(**CHAIN | changes)
    assert all(word in str(caught.value) for word in words), caught.value
