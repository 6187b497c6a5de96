"""Rounds of inference and fitting: which one is kept, how the clock is set, and what estimators show of it."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

import coaltree as ct
from coaltree.inference.alternate import Found, alternate, clock_factor

pytestmark = pytest.mark.filterwarnings("ignore::coaltree.errors.InputWarning")

TREE = ct.simulate_tree(12, 0)
X = ct.Brownian(2.0, 0.1).simulate(TREE, 1, n_columns=3)


class Script:
    """Inference that finds the same tree every time, with log joints as they were written down."""

    def __init__(self, log_joints):
        self.log_joints = log_joints
        self.processes = []

    def __call__(self, process, number):
        assert number == len(self.processes)
        self.processes.append(process)
        return Found(f"round {number}", process, [TREE], np.ones(1), self.log_joints[number])


def run(log_joints, process=None, rounds=None, **more):
    script = Script(log_joints)
    process = ct.Brownian(np.ones(3), 0.3) if process is None else process
    return alternate(script, process, X, len(log_joints) - 1 if rounds is None else rounds, **more), script


# The weak prior of parameters moves scores by far less than these steps.
def test_the_best_round_is_kept_and_all_are_shown():
    log_joints = [-5000.0, -3000.0, -9000.0, -1000.0, -2000.0, -8000.0]
    found, script = run(log_joints)
    assert found.best.result == "round 3"
    assert found.best.log_joint == -1000.0
    assert found.best.process is script.processes[3]
    assert found.log_joints == log_joints


def test_the_first_round_is_not_compared_and_two_failures_end_them():
    """Its parameters are not fitted, and its clock is not set."""
    found, script = run([0.0, -5000.0, -6000.0, -7000.0, -1.0])
    assert found.best.result == "round 1"
    assert found.log_joints == [0.0, -5000.0, -6000.0, -7000.0]
    assert len(script.processes) == 4


def test_no_rounds():
    found, script = run([-5.0], rounds=0)
    assert found.log_joints == [-5.0]
    assert len(script.processes) == 1
    assert script.processes[0].noise == 0.3


def test_a_round_that_brings_next_to_nothing_is_not_taken():
    """Gains count in the log posterior: the log joint and the log prior of the parameters."""
    process = ct.Brownian(np.ones(3))
    _, script = run([0.0, 0.0, 0.0], process)
    _, first, second = (own.log_parameter_prior(X, hold_noise=True) for own in script.processes)
    for gain, best in ((0.005, "round 1"), (0.02, "round 2")):
        found, _ = run([0.0, -100.0, -100.0 + first - second + gain, -1e9], process)
        assert found.best.result == best


@pytest.mark.parametrize("noise", ["tried", "held"])
@pytest.mark.parametrize("share", [0.0, 0.01, 0.3])
def test_the_share_of_noise_stays(noise, share):
    for process in (
        ct.Brownian(np.ones(3), 0.1),
        ct.Brownian(1.0, 0.1),
        ct.OrnsteinUhlenbeck(1.0, 0.0, np.ones(3), 0.1),
    ):
        start = process.with_noise_share(share, X, "held")
        _, script = run([0.0, 1000.0, 2000.0], start, noise=noise)
        assert [own.noise_share(X) for own in script.processes] == pytest.approx([share] * 3, rel=1e-6)
        assert not np.allclose(script.processes[1].variance, script.processes[2].variance) or share == 0


def test_noise_is_at_least_that_of_rounding_unless_it_is_held():
    """As far as the column's own variance goes: here that of the values 0 and 1, half of each, and of two whole numbers."""
    table = np.column_stack([np.tile([0.0, 1.0], 20), np.tile([0.0, 4.0, 5.0, 9.0], 10), np.linspace(0, 1, 40)])
    process = ct.Brownian(0.1 * table.var(axis=0), 1.0)
    share = 0.005
    found = process.with_noise_share(share, table, "tried")
    assert found.variance[0] == pytest.approx(0.25)  # its own; a fifth of it would be the noise of rounding
    assert found.noise * found.variance[1] == pytest.approx(1 / 12)
    assert found.variance[2] == pytest.approx(process.variance[2])
    assert process.with_noise_share(share, table, "held").variance == pytest.approx(process.variance)


def test_parameters_are_fitted_to_the_trees_of_the_round_before_by_their_weights():
    other = ct.simulate_tree(12, 5)
    seen = []

    def find(process, number):
        seen.append(process)
        return Found(number, process, [TREE, other], np.array([0.9, 0.1]), -5000.0 * number)

    alternate(find, ct.Brownian(np.ones(3), 0.3), X, 2)
    for before, after in pairwise(seen):
        fit = ct.calibrate(before, [TREE, other], X, [0.9, 0.1], hold_noise=True)
        total = -0.9 * ct.log_prior(TREE) - 0.1 * ct.log_prior(other)
        np.testing.assert_allclose(after.variance, fit.variance * (total + 1) / 12)


@pytest.mark.parametrize("height", [0.01, 1.0, 30.0])
def test_the_clock_makes_trees_as_high_as_the_coalescent_expects(height):
    """Under the prior the total has mean and variance n - 1: five standard deviations, a false alarm in 1.7 million."""
    n = 2000
    tree = ct.simulate_tree(n, 3)
    tree = ct.Tree(tree.children, height * tree.heights)
    found = Found(None, ct.Brownian(), [tree], np.ones(1), 0.0)
    assert clock_factor(found) * height == pytest.approx(1.0, abs=5 / np.sqrt(n) + 0.001 + 1 / (n * height))


def test_rounds_find_the_clock_of_a_process_that_began_far_off():
    tree = ct.simulate_tree(150, 8)
    codes = ct.Multinomial(0.7, [[0.3, 0.3, 0.4]] * 40).simulate(tree, 2)
    for factor in (0.02, 1.0, 50.0):
        start = ct.Multinomial(np.full(40, 0.7 * factor), [[0.3, 0.3, 0.4]] * 40)

        def find(process, number):
            found = ct.greedy(codes, process)
            return Found(found, process, [found.tree], np.ones(1), found.log_joint)

        best = alternate(find, start, codes, 10).best
        assert 0.35 < np.median(best.process.rate) < 1.4


# -- scales --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "process",
    [
        ct.Brownian([2.0, 0.5, 1.0], 0.3),
        ct.Brownian(np.eye(3) + 0.2),
        ct.OrnsteinUhlenbeck(0.7, [1.0, 0.0, 2.0], 1.5, 0.2),
        ct.Multinomial([0.5, 1.0, 2.0], [[0.5, 0.5], [0.1, 0.9], [0.3, 0.7]]),
        ct.Mixed((ct.Brownian(2.0, 0.1), [0, 2]), (ct.Multinomial(0.6, [[0.2, 0.8]]), [1])),
    ],
    ids=["brownian", "full", "stationary", "multinomial", "mixed"],
)
@pytest.mark.parametrize("factor", [0.2, 7.0])
def test_a_slower_process_on_a_higher_tree_says_the_same(process, factor):
    table = process.simulate(TREE, 4, n_columns=3)
    higher = ct.Tree(TREE.children, factor * TREE.heights)
    expected = process.log_likelihood(TREE, table)
    assert process.rescale_clock(factor).log_likelihood(higher, table) == pytest.approx(expected, rel=1e-10)


def test_a_share_of_noise_is_in_units_of_the_table():
    process = ct.Mixed((ct.Multinomial(1.0, [[0.5, 0.5]]), [0]), (ct.Brownian([2.0, 8.0], 0.25), [1, 2]))
    table = np.column_stack([np.arange(40) % 2, np.tile([1.0, -1.0], 20), np.tile([-4.0, 4.0], 20)])
    assert process.noise_share(table) == pytest.approx(0.25 * np.mean([2.0, 0.5]))
    other = process.with_noise_share(0.6, table, "held").parts[1][0]
    np.testing.assert_allclose(other.noise * other.variance, 0.6 / 1.25 * np.array([2.0, 8.0]))
    assert ct.Multinomial(1.0, [[0.5, 0.5]]).noise_share(table[:, :1]) is None


# -- estimators --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(3)
    group = np.repeat([0, 1, 2], 10)
    table = pd.DataFrame(
        {
            "length": rng.normal(3 * group, 0.5),
            "weight": rng.normal(100 - 40 * group, 6),
            "colour": np.array(["red", "blue", "green"])[np.where(rng.random(30) < 0.8, group, 0)],
        }
    )
    table.loc[3, "length"] = np.nan
    return table


@pytest.fixture(scope="module")
def fitted(frame):
    return ct.CoalescentClustering(calibrate=10).fit(frame)


def test_rounds_of_the_estimator(fitted, frame):
    assert 1 < len(fitted.log_joints_) <= 11
    assert np.any(np.isclose(fitted.log_joints_, fitted.log_joint_, rtol=1e-12))
    none = ct.CoalescentClustering(calibrate=0).fit(frame)
    assert none.log_joints_.tolist() == [none.log_joint_]
    # the best one with fitted parameters, but for their weak prior
    assert fitted.log_joint_ > fitted.log_joints_[1:].max() - 5
    few = ct.CoalescentClustering(calibrate=1).fit(frame)
    np.testing.assert_array_equal(few.log_joints_, fitted.log_joints_[:2])


def test_noise_that_the_user_gave_is_held(frame):
    """As a share of the columns' variance, on average over them; without rounds in each of them."""
    for calibrate in (0, 3):
        for real_process in ("brownian", "ornstein-uhlenbeck"):
            settings = {"calibrate": calibrate, "real_process": real_process}
            model = ct.CoalescentClustering(noise=0.05, **settings).fit(frame)
            shares = [
                (model.parameters_[name]["noise_sd"] / frame[name].std(ddof=0)) ** 2 for name in ("length", "weight")
            ]
            assert np.mean(shares) == pytest.approx(0.05)
            assert calibrate or shares == pytest.approx([0.05, 0.05])


def test_parameters_have_the_names_and_units_of_the_columns(fitted, frame):
    found = fitted.parameters_
    assert list(found) == ["length", "weight", "colour"]
    (real, columns), (mutation, _) = fitted.process_.parts
    assert columns == (0, 1)
    for d, name in enumerate(["length", "weight"]):
        scale, centre = frame[name].std(ddof=0), frame[name].mean()
        assert found[name] == pytest.approx(
            {
                "process": "ornstein-uhlenbeck",
                "sd": scale * np.sqrt(real.variance[d]),
                "noise_sd": scale * np.sqrt(real.variance[d] * real.noise),
                "mean": centre + scale * real.mean[d],
                "rate": real.rate,
            }
        )
    assert found["colour"]["process"] == "multinomial"
    assert found["colour"]["rate"] == pytest.approx(mutation.rate[0])
    assert found["colour"]["equilibrium"] == pytest.approx(
        dict(zip(["blue", "green", "red"], mutation.equilibrium[0], strict=True))
    )
    # sd and noise together are the spread of the column, since the process is at equilibrium
    for name in ("length", "weight"):
        total = np.hypot(found[name]["sd"], found[name]["noise_sd"])
        assert 0.5 < total / frame[name].std() < 2


def test_units_of_a_column_are_those_of_its_parameters(fitted, frame):
    other = ct.CoalescentClustering(calibrate=10).fit(frame.assign(weight=1000 * frame["weight"] + 7)).parameters_
    for name, value in fitted.parameters_["weight"].items():
        factor, shift = {"sd": (1000, 0), "noise_sd": (1000, 0), "mean": (1000, 7)}.get(name, (1, 0))
        expected = value if name == "process" else pytest.approx(factor * value + shift, rel=1e-6)
        assert other["weight"][name] == expected
    assert other["length"]["sd"] == pytest.approx(fitted.parameters_["length"]["sd"], rel=1e-6)
    shares = fitted.parameters_["colour"]["equilibrium"]
    assert other["colour"]["equilibrium"] == pytest.approx(shares, rel=1e-6)


def test_threads_do_not_change_the_rounds(fitted, frame):
    twin = ct.CoalescentClustering(calibrate=10, n_jobs=2).fit(frame)
    np.testing.assert_array_equal(twin.log_joints_, fitted.log_joints_)
    assert twin.tree_ == fitted.tree_
    assert twin.parameters_ == fitted.parameters_


@pytest.fixture(scope="module")
def numbers(frame):
    return frame[["length", "weight"]][::2]


@pytest.fixture(scope="module")
def sampled(numbers):
    settings = {"inference": "smc", "calibrate": 4, "noise": 0.1, "n_particles": 30}
    return ct.CoalescentClustering(**settings, random_state=0).fit(numbers)


def test_the_round_with_the_best_evidence_is_kept(sampled):
    assert 1 < len(sampled.log_joints_) <= 5
    assert sampled.log_evidence_ in sampled.log_joints_
    # the best one with fitted parameters, but for their weak prior
    assert sampled.log_evidence_ > sampled.log_joints_[1:].max() - 5
    assert sampled.sample_.log_evidence == sampled.log_evidence_
    assert set(sampled.parameters_) == {"length", "weight"}


def test_a_seed_gives_the_same_rounds_on_any_number_of_threads(sampled, numbers):
    settings = {"inference": "smc", "calibrate": 4, "noise": 0.1, "n_particles": 30}
    again = ct.CoalescentClustering(**settings, random_state=0, n_jobs=2).fit(numbers)
    np.testing.assert_array_equal(again.log_joints_, sampled.log_joints_)
    assert again.tree_ == sampled.tree_
    other = ct.CoalescentClustering(**settings, random_state=1).fit(numbers)
    assert not np.array_equal(other.log_joints_, sampled.log_joints_)


def test_without_rounds_it_is_plain_sequential_monte_carlo(numbers):
    settings = {"inference": "smc", "calibrate": 0, "n_particles": 30, "random_state": 0}
    model = ct.CoalescentClustering(**settings).fit(numbers)
    assert model.log_joints_.tolist() == [model.log_evidence_]
    white = (numbers - numbers.mean()) / numbers.std(ddof=0)
    expected = ct.smc(white.to_numpy(), model.process_, n_particles=30, random_state=0)
    assert model.log_evidence_ == pytest.approx(expected.log_evidence, rel=1e-9)


def test_parameters_of_many_rows_are_those_of_a_part_of_them(monkeypatch):
    """However the tree of all rows is then looked for, and whatever their order."""
    monkeypatch.setattr("coaltree.estimators.base.MOST_CALIBRATED", 60)
    rng = np.random.default_rng(3)
    X = ct.Brownian(1.0, 0.1).simulate(ct.simulate_tree(150, rng), rng, n_columns=3)

    def fitted(table, search="exact"):
        return ct.CoalescentClustering(real_process="brownian", calibrate=2, search=search).fit(table)

    exact = fitted(X)
    np.testing.assert_array_equal(fitted(X, "neighbors").process_.variance, exact.process_.variance)
    np.testing.assert_allclose(fitted(X[::-1]).process_.variance, exact.process_.variance, rtol=1e-9)
    assert exact.log_joints_[-1] == exact.log_joint_
