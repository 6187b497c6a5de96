"""Ascertainment: likelihoods conditioned on the columns that a table can contain."""

import itertools
import json
import math

import numpy as np
import pandas as pd
import pytest

import coaltree as ct
import exact_posterior
import reference
from coaltree.errors import InputError, InputWarning
from coaltree.inference.chain import Chain, without_ties
from coaltree.process.multinomial import MultinomialSampler, Unseen, gradients
from command_line import command_in

pytestmark = pytest.mark.usefixtures("short_chains", "blank_pictures")

nan = math.nan
THREE = ct.Tree.from_newick("((a:0.4,b:0.4):0.5,c:0.9);")
FOUR = ct.Tree.from_newick("((a:0.3,b:0.3):0.9,(c:0.7,d:0.7):0.5);")
SHARES = [[0.3, 0.7], [0.5, 0.2, 0.3]]
KINDS = ("variable", "present")


def table(n):
    """Return four columns of which two are binary; in some, cells are missing."""
    X = np.array([[0, 1, 0, 2], [1, 1, nan, 0], [0, 0, 2, 1], [nan, 1, 2, 1]])[:n]
    return X, ct.Multinomial([0.7, 1.3, 0.4, 0.9], [SHARES[0], SHARES[0], SHARES[1], SHARES[1]])


def all_columns(n_states, missing):
    """Yield every column of states, with some rows missing."""
    for column in itertools.product(*([nan] if hole else range(n_states) for hole in missing)):
        yield np.array(column)


# -- likelihood ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ascertainment", KINDS)
@pytest.mark.parametrize("tree", [THREE, FOUR])
@pytest.mark.parametrize("noise", [0.0, 0.2])
def test_probabilities_of_recordable_columns_sum_to_one(ascertainment, tree, noise):
    n = tree.n_leaves
    for q, missing in itertools.product(SHARES, [(), (0,), (n - 1,), (0, 1)]):
        if ascertainment == "variable" and n - len(missing) < 2:
            continue
        process = ct.Multinomial(0.8, [q], noise, ascertainment)
        total = 0.0
        for column in all_columns(len(q), [row in missing for row in range(n)]):
            if reference.is_recorded(column[~np.isnan(column)], ascertainment):
                total += math.exp(process.log_likelihood(tree, column[:, None]))
        assert total == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("ascertainment", KINDS)
@pytest.mark.parametrize("tree", [THREE, FOUR])
@pytest.mark.parametrize("noise", [0.0, 0.2])
def test_likelihood_matches_brute_force(ascertainment, tree, noise):
    X, process = table(tree.n_leaves)
    process = process.replace(noise=noise, ascertainment=ascertainment)
    expected = reference.log_likelihood(tree, X, process)
    assert process.log_likelihood(tree, X) == pytest.approx(expected, abs=1e-11)
    assert ct.log_joint(tree, X, process) == pytest.approx(expected + reference.log_prior(tree), abs=1e-11)
    mixed = ct.Mixed(
        (process._select_columns(np.array([0, 2])), [0, 2]), (process._select_columns(np.array([1, 3])), [1, 3])
    )
    assert mixed.log_likelihood(tree, X) == pytest.approx(expected, abs=1e-11)


def test_condition_treats_state_sets_as_missing():
    q, column = np.array(SHARES[1]), np.array([0.0, 1.0, ct.state_set(0, 2), 2.0])
    process = ct.Multinomial(0.8, [q])
    conditional = process.replace(ascertainment="variable").log_likelihood(FOUR, column[:, None])
    holes = np.array([[0.0, 1.0, nan, 2.0]]).T
    expected = reference.log_recorded(FOUR, holes, process.replace(ascertainment="variable"), [q])
    assert conditional == pytest.approx(process.log_likelihood(FOUR, column[:, None]) - expected, abs=1e-12)


def test_likelihood_is_precise_on_very_short_trees():
    """On a tree of height 0 < h << 1 only one branch has a mutation: which one is chosen in proportion to its length."""
    for scale in (1e-3, 1e-6, 1e-9):
        tree = ct.Tree(FOUR.children, scale * FOUR.heights)
        process = ct.Multinomial(1.0, [[0.5, 0.5]], ascertainment="variable")
        actual = math.exp(process.log_likelihood(tree, [[0], [1], [1], [1]]))
        # branches of 0.3, 0.3, 0.7, 0.7 and two more that are one below the root, of 0.9 + 0.5; 0 and 1 are alike
        assert actual == pytest.approx(0.5 * 0.3 / (0.3 + 0.3 + 0.7 + 0.7 + 0.9 + 0.5), rel=3 * scale + 1e-7)
    far = ct.Tree.from_newick("((a:1e-7,b:1e-7):5,c:5.0000001);")
    assert math.exp(process.log_likelihood(far, [[0], [1], [nan]])) == pytest.approx(0.5, rel=1e-6)


def test_unrecordable_columns_are_rejected_by_name():
    X = np.array([[0, 1, 0, nan], [1, 1, 0, 0], [0, 1, 0, nan]])
    process = ct.Multinomial(ascertainment="variable")
    tree = ct.simulate_tree(3, random_state=0)
    calls = [
        lambda: process.log_likelihood(tree, X),
        lambda: ct.greedy(X, process),
        lambda: ct.mcmc(X, process),
        lambda: ct.smc(X, process),
        lambda: ct.calibrate(process, tree, X),
        lambda: ct.refine(tree, X, process),
    ]
    for call in calls:
        with pytest.raises(
            InputError, match=r"3 column\(s\) show the same state .*: 1, 2, 3\. ascertainment='variable'"
        ):
            call()
    with pytest.raises(InputError, match=r"2 column\(s\) show only state 0: 2, 3\."):
        process.replace(ascertainment="present").log_likelihood(tree, X)
    mixed = ct.Mixed((ct.Multinomial(), [0, 1]), (process, [2, 3]))
    with pytest.raises(InputError, match=r"2 column\(s\) .*: '2', '3'\."):
        mixed.log_likelihood(tree, X)
    with pytest.raises(InputError, match="ascertainment is 'constant'"):
        ct.Multinomial(ascertainment="constant")


def test_process_copies_keep_ascertainment():
    process = ct.Multinomial(0.5, [[0.4, 0.6]], 0.1, "present")
    assert process.replace(rate=2.0).ascertainment == "present"
    assert process.rescale_clock(2.0).ascertainment == "present"
    assert process.with_parameter_values(process.parameter_values()).ascertainment == "present"
    assert "ascertainment='present'" in repr(process)
    again = ct.Multinomial.from_dict(process.to_dict())
    assert again.ascertainment == "present"
    assert "ascertainment" not in ct.Multinomial().to_dict()


@pytest.mark.parametrize("ascertainment", KINDS)
def test_simulated_columns_have_conditional_probabilities(ascertainment):
    """Pearson's statistic is held to its quantile of 1e-6."""
    process = ct.Multinomial(0.3, [[0.6, 0.4]] * 4000, 0.1, ascertainment)
    X = process.simulate(THREE, random_state=1)
    one, statistic = ct.Multinomial(0.3, [[0.6, 0.4]], 0.1, ascertainment), 0.0
    for column in all_columns(2, [False] * 3):
        count = np.sum(np.all(column[:, None] == X, axis=0))
        if reference.is_recorded(column, ascertainment):
            expected = 4000 * math.exp(one.log_likelihood(THREE, column[:, None]))
            statistic += (count - expected) ** 2 / expected
        else:
            assert count == 0
    assert statistic < 38  # of 6 degrees of freedom or less


def test_simulation_of_unrecordable_columns_is_rejected(monkeypatch):
    monkeypatch.setattr("coaltree.process.multinomial.MAX_REDRAWS", 3)
    with pytest.raises(InputError, match="recorded too rarely"):
        ct.Multinomial(1e-9, [[0.5, 0.5]], ascertainment="variable").simulate(THREE, random_state=0)


# -- trees -----------------------------------------------------------------------------------------------------------


def check_mean(values, expected, what):
    """Hold the mean of a chain to 5 standard errors, of means of 50 batches: a level of about 1e-5."""
    batches = np.array(np.array_split(np.asarray(values, dtype=float), 50), dtype=object)
    means = np.array([np.mean(batch) for batch in batches])
    assert abs(means.mean() - expected) < 5 * means.std(ddof=1) / math.sqrt(50) + 2e-3, (what, means.mean(), expected)


@pytest.mark.parametrize(
    ("ascertainment", "n"), [("variable", 3), ("present", 3), pytest.param("variable", 4, marks=pytest.mark.slow)]
)
def test_mcmc_posterior_matches_quadrature(ascertainment, n):
    X, process = table(n)
    process = process.replace(ascertainment=ascertainment)
    truth = exact_posterior.integrals(X, process)
    rng = np.random.default_rng(1)
    chain = Chain(X, process, without_ties(ct.simulate_tree(n, random_state=rng), rng), rng)
    results = []
    for _ in range(1000):
        chain.move(n)
        results.append(chain.sample())
    tree = chain.tree()
    assert chain.log_joint == pytest.approx(ct.log_joint(tree, X, process), abs=1e-9)
    check_mean([s.heights[-1] for s in results], sum(h.moment for h in truth.histories) / truth.evidence, "root")
    for topology in {exact_posterior.clades(h.children) for h in truth.histories}:
        mass = sum(h.mass for h in truth.histories if exact_posterior.clades(h.children) == topology)
        matches = [exact_posterior.clades(s.children.tolist()) == topology for s in results]
        check_mean(matches, mass / truth.evidence, topology)


def test_chain_samples_powered_posterior():
    """The root's height of two leaves, by quadrature."""
    X, process = (
        np.array([[0.0, 1.0, 0.0], [1.0, 1.0, 2.0]]),
        ct.Multinomial(0.5, [SHARES[0]] * 2 + [SHARES[1]], 0, "present"),
    )
    power, heights = 0.4, np.exp(np.linspace(-12, 3.5, 200))
    trees = [ct.Tree([[0, 1]], [0, 0, h]) for h in heights]
    density = np.exp([power * process.log_likelihood(tree, X) - tree.heights[-1] for tree in trees]) * heights
    rng = np.random.default_rng(2)
    chain = Chain(X, process, without_ties(trees[100], rng), rng, power=power)
    results = []
    for _ in range(1000):
        chain.move(2)
        results.append(chain.tree().heights[-1])
    check_mean(results, density @ heights / density.sum(), "root")
    joint = power * process.log_likelihood(chain.tree(), X) - chain.tree().heights[-1]
    assert chain.log_joint == pytest.approx(joint, abs=1e-10)


def test_smc_evidence_is_exact():
    """Means over 30 runs are held to 6 standard errors, as in ``test_smc.py``."""
    X, process = table(3)
    process = process.replace(ascertainment="variable")
    truth = exact_posterior.integrals(X, process)
    for what, (mean, error, value) in exact_posterior.sampled(X, process, "post-post", truth).items():
        assert abs(mean - value) < 6 * error + 1e-3 * truth.evidence, what
    sample = ct.smc(X, process, n_particles=20, random_state=0)
    expected = [ct.log_joint(tree, X, process) for tree in sample.trees]
    np.testing.assert_allclose(sample.log_joints, expected, atol=1e-9)
    assert sample.log_evidence_traces[0, -1] == pytest.approx(sample.log_evidence)


def test_greedy_log_joint_is_correct_and_refine_improves_it():
    process = ct.Multinomial(0.4, [[0.5, 0.5]] * 60, ascertainment="variable")
    X = process.simulate(ct.simulate_tree(12, random_state=3), random_state=4)
    result = ct.greedy(X, process)
    assert result.log_joint == pytest.approx(ct.log_joint(result.tree, X, process), abs=1e-9)
    better = ct.refine(result.tree, X, process)
    assert better.log_joint > result.log_joint
    assert better.log_joint == pytest.approx(ct.log_joint(better.tree, X, process), abs=1e-9)
    # no height can be better by itself
    for k in range(12, 23):
        for factor in (0.98, 1.02):
            heights = better.tree.heights.copy()
            heights[k] *= factor
            if np.all(np.diff(heights[11:]) > 0):
                other = ct.Tree(better.tree.children, heights)
                assert ct.log_joint(other, X, process) < better.log_joint + 1e-2


# -- parameters ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ascertainment", KINDS)
def test_gradients_match_finite_differences(ascertainment):
    X, process = table(4)
    process = process.replace(ascertainment=ascertainment, noise=0.1)
    by_rate, _ = gradients(process, FOUR, X)
    for d in range(4):
        step = np.zeros(4)
        step[d] = 1e-5
        up, down = (process.replace(rate=process.rate + s).log_likelihood(FOUR, X) for s in (step, -step))
        assert by_rate[d] == pytest.approx((up - down) / 2e-5, abs=1e-6)


@pytest.mark.parametrize("ascertainment", KINDS)
@pytest.mark.parametrize("pooled", [True, False])
def test_calibrate_reaches_local_maximum(ascertainment, pooled):
    tree = ct.simulate_tree(12, random_state=5)
    true = ct.Multinomial(0.3, [[0.6, 0.4]] * 15, ascertainment=ascertainment)
    X = true.simulate(tree, random_state=6)
    X[np.random.default_rng(7).random(X.shape) < 0.1] = nan
    X = X[:, true._is_recorded(X)]
    process = ct.Multinomial(1.0 if pooled else np.ones(X.shape[1]), ascertainment=ascertainment).resolve(X)

    def density(candidate):
        return candidate.log_likelihood(tree, X) + candidate.log_parameter_prior(X)

    fitted = ct.calibrate(process, tree, X)
    assert fitted.ascertainment == ascertainment
    assert density(fitted) > density(process)
    for factor in (0.9, 1.1):
        assert density(fitted.replace(rate=fitted.rate * factor)) < density(fitted) + 1e-3
    step = np.array([0.02, -0.02])
    for sign in (-1, 1):
        moved = [q + sign * step[: len(q)] for q in fitted.equilibrium]
        assert density(fitted.replace(equilibrium=moved)) < density(fitted) + 0.05


@pytest.mark.parametrize("ascertainment", ["variable", pytest.param("present", marks=pytest.mark.slow)])
def test_parameter_draws_match_quadrature(ascertainment):
    """Given a tree, the means of the rate and of shares are those of quadrature."""
    X = np.array([[0, 1, 1], [1, 1, 0], [0, 0, nan], [1, nan, 1]])
    process = ct.Multinomial(0.8, [[0.4, 0.6]] * 3, 0.15, ascertainment)
    sampler, rng = MultinomialSampler(process, X, True), np.random.default_rng(3)
    draws = []
    for _ in range(300):
        process = sampler.draw(process, FOUR, rng)
        draws.append([float(process.rate), process.equilibrium[0][0], process.equilibrium[2][0]])
    rates, shares = np.exp(np.linspace(-7, 2.5, 18)), (np.arange(10) + 0.5) / 10
    density = np.empty((18, 3, 10))  # columns are independent given the rate
    for (r, rate), (s, share) in itertools.product(enumerate(rates), enumerate(shares)):
        one = ct.Multinomial(rate, [[share, 1 - share]], 0.15, ascertainment)
        prior = 0.5 * math.log(share * (1 - share))
        density[r, :, s] = [math.exp(prior + one.log_likelihood(FOUR, X[:, [d]])) for d in range(3)]
    sums = density.sum(axis=2)
    of_rate = rates**1.1 * np.exp(-rates / 1.1) * sums.prod(axis=1)
    of_rate /= of_rate.sum()
    target = [of_rate @ rates, *(of_rate @ ((density[:, d] @ shares) / sums[:, d]) for d in (0, 2))]
    for column, expected, what in zip(np.array(draws).T, target, ("rate", "first share", "third share"), strict=True):
        check_mean(column, expected, what)


@pytest.mark.parametrize("ascertainment", ["variable", pytest.param("present", marks=pytest.mark.slow)])
def test_joint_draws_leave_prior_invariant(ascertainment):
    """Draws of tree and parameters, then a table given them, then both given the table, return the prior (Geweke, 2004).

    Means are held to 5 standard errors of batches.
    """
    rng, n = np.random.default_rng(11), 3
    tree = ct.simulate_tree(n, random_state=rng)
    process = ct.Multinomial(1.0, [[0.5, 0.5]] * 2, 0.2, ascertainment)
    draws = []
    for _ in range(200):
        X = process.simulate(tree, random_state=rng)
        chain = Chain(X, process, without_ties(tree, rng), rng, process.sampler(X, False))
        chain.move(n)
        tree, process = chain.tree(), chain.process
        draws.append([float(process.rate), tree.heights[-1], process.equilibrium[0][0], float(process.noise)])
    target = {"rate": 1.1 * 1.1, "root": 2 * (1 - 1 / n), "share": 0.5, "noise": 1 / 6}
    for column, (what, expected) in zip(np.array(draws).T, target.items(), strict=True):
        check_mean(column, expected, what)


def test_unrecorded_columns_are_drawn_with_expected_counts():
    X, process = table(4)
    process = process.replace(ascertainment="variable", noise=0.2)
    unseen = Unseen.from_table(process, X)
    rng = np.random.default_rng(0)
    counts = np.mean([unseen.columns.draw_counts(FOUR.children, FOUR.heights, rng) for _ in range(4000)], axis=0)
    expected = unseen.columns.expected_counts(FOUR.children, FOUR.heights)
    # the variance of a geometric variable, or of the sum of several
    np.testing.assert_allclose(counts, expected, atol=0.1)
    chances = unseen.columns.probabilities(FOUR.children, FOUR.heights)[0]
    brute = [
        np.exp(unseen.process._select_columns(np.array([u])).log_likelihood(FOUR, unseen.X[:, [u]]))
        for u in range(len(chances))
    ]
    np.testing.assert_allclose(chances, brute, rtol=1e-10)


# -- what it is for --------------------------------------------------------------------------------------------------


def test_ascertainment_removes_height_bias():
    """The mean log ratio of the most likely height of a tree to the true one, over 12 tables, is held to 4.5 standard errors."""
    factors = np.linspace(-1.5, 2.5, 15)
    errors = {None: [], "variable": []}
    for seed in range(12):
        tree = ct.simulate_tree(10, random_state=seed)
        process = ct.Multinomial(0.3, [[0.5, 0.5]] * 100, ascertainment="variable")
        X = process.simulate(tree, random_state=100 + seed)
        for ascertainment, log_ratios in errors.items():
            conditional = process.replace(ascertainment=ascertainment)
            logs = [conditional.rescale_clock(math.exp(-factor)).log_likelihood(tree, X) for factor in factors]
            best = int(np.argmax(logs))
            near = slice(best - 1, best + 2)
            log_ratios.append(np.roots(np.polyder(np.polyfit(factors[near], logs[near], 2)))[0])
    means = {
        key: (np.mean(log_ratios), np.std(log_ratios, ddof=1) / math.sqrt(12)) for key, log_ratios in errors.items()
    }
    assert means[None][0] > 0.5
    assert means[None][0] > 10 * means[None][1]
    assert abs(means["variable"][0]) < 4.5 * means["variable"][1]


# -- the estimator ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def matrix():
    process = ct.Multinomial(0.3, [[0.5, 0.5]] * 12, ascertainment="variable")
    X = process.simulate(ct.simulate_tree(8, random_state=0), random_state=1)
    return pd.DataFrame(X.astype(int).astype(str), columns=[f"c{d}" for d in range(12)])


def test_estimator_supports_ascertainment(matrix, tmp_path):
    process = ct.Multinomial(ascertainment="variable")
    model = ct.CoalescentClustering(
        inference="mcmc", n_samples=20, n_chains=2, categorical_process=process, draw_parameters=True, random_state=0
    )
    with pytest.warns(InputWarning):
        model.fit(matrix)
    model.save(tmp_path / "model.coaltree")
    again = ct.load_model(tmp_path / "model.coaltree")
    assert again.categorical_process.ascertainment == "variable"
    assert again.process_.ascertainment == "variable"
    np.testing.assert_array_equal(model.score_samples(matrix), again.score_samples(matrix))


def test_predictions_with_row_subset_ignore_ascertainment(matrix, monkeypatch):
    monkeypatch.setattr("coaltree.workflow.model.max_rows", lambda n_columns: 4)
    model = ct.CoalescentClustering(categorical_process=ct.Multinomial(ascertainment="variable")).fit(matrix)
    assert np.isfinite(model.score_samples(matrix)).all()


def test_estimator_rejects_unrecordable_columns_by_name(matrix):
    table = matrix.assign(same="1", other="0")
    process = ct.Multinomial(ascertainment="present")
    with pytest.raises(InputError, match=r"2 column\(s\) have a single category: 'same', 'other'.*Give the parameter"):
        ct.CoalescentClustering(categorical_process=process).fit(table)
    variable = ct.CoalescentClustering(categorical_process=ct.Multinomial(ascertainment="variable"))
    with pytest.warns(InputWarning, match="2 columns are constant and ignored"):  # as such columns are not recorded
        variable.fit(table)
    either = matrix.assign(either=["0"] * 6 + [{"0", "1"}, {"1", "2"}])
    with pytest.raises(InputError, match=r"1 column\(s\) show the same state .*: 'either'"):
        ct.CoalescentClustering(categorical_process=ct.Multinomial(ascertainment="variable")).fit(either)


def test_fit_command_supports_ascertainment(matrix, tmp_path, monkeypatch, capsys):
    """From a NEXUS file, whose characters are categorical."""
    rows = "\n".join(f"row{i} {''.join(row)}" for i, row in enumerate(matrix.to_numpy()))
    header = (
        '#NEXUS\nbegin data;\ndimensions ntax=8 nchar=12;\nformat datatype=standard symbols="01" missing=?;\nmatrix\n'
    )
    (tmp_path / "matrix.nex").write_text(f"{header}{rows}\n;\nend;\n")
    command = command_in(tmp_path, monkeypatch, capsys)
    code, _, error = command("fit", tmp_path / "matrix.nex", "--ascertainment", "variable", "-o", tmp_path / "out")
    assert code == 0, error
    assert json.loads((tmp_path / "out" / "summary.json").read_text())["settings"]["ascertainment"] == "variable"
    assert ct.load_model(tmp_path / "out" / "model.coaltree").process_.ascertainment == "variable"
