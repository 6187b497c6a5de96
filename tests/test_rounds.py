"""Rounds of inference and fitting: which one is kept, how noise is searched, and what estimators show of it."""

import math

import numpy as np
import pandas as pd
import pytest

import coaltree as ct
from coaltree.inference.rounds import Found, alternate, noise_of, with_noise
from coaltree.process.calibration import log_parameter_prior

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

    @property
    def factors(self):
        """What noise was tried, in units of the first."""
        return [noise_of(process) / noise_of(self.processes[0]) for process in self.processes]


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


def test_the_first_round_may_be_the_best():
    found, script = run([0.0, -5000.0, -6000.0, -7000.0])
    assert found.best.result == "round 0"
    assert len(found.log_joints) == len(script.processes) == 4


def test_no_rounds():
    found, script = run([-5.0], rounds=0)
    assert found.log_joints == [-5.0]
    assert len(script.processes) == 1
    assert noise_of(script.processes[0]) == 0.3


def test_noise_is_tried_both_ways_by_shorter_steps_until_they_are_short():
    found, script = run([0.0] + [-5000.0] * 30)
    root, fourth = math.sqrt(3), 3**0.25
    expected = [1, 3, 1 / 3, root, 1 / root, fourth, 1 / fourth]
    assert script.factors == pytest.approx(expected)
    assert len(found.log_joints) == 7


def test_noise_goes_on_in_the_direction_that_helped():
    _, script = run([0.0, 1000.0, 2000.0, 3000.0])
    assert script.factors == pytest.approx([1, 3, 9, 27])
    _, script = run([0.0, -1000.0, 2000.0, 3000.0, 1000.0, 1500.0])
    assert script.factors == pytest.approx([1, 3, 1 / 3, 1 / 9, 1 / 27, 1 / 3])


def test_a_round_that_brings_next_to_nothing_is_not_taken():
    """Gains count in the log posterior: the log joint and the log prior of the parameters."""
    process = ct.Brownian(np.ones(3))
    first = log_parameter_prior(process, X, hold_noise=True)
    second = log_parameter_prior(ct.calibrate(process, TREE, X, hold_noise=True), X, hold_noise=True)
    for gain, best in ((0.005, "round 0"), (0.02, "round 1")):
        found, _ = run([-100.0, -100.0 + first - second + gain, -1e9], process, hold_noise=True)
        assert found.best.result == best


def test_where_there_is_no_noise_to_search_rounds_end_with_the_first_that_fails():
    codes = ct.Multinomial(1.0, [[0.5, 0.5]] * 3).simulate(TREE, 0)
    script = Script([0.0, 1000.0, 500.0, 9000.0])
    found = alternate(script, ct.Multinomial(1.0, [[0.5, 0.5]] * 3), codes, 3)
    assert found.best.result == "round 1"
    assert found.log_joints == [0.0, 1000.0, 500.0]
    found = alternate(Script([0.0, 1000.0, 2000.0, 3000.0]), script.processes[0], codes, 3)
    assert found.best.result == "round 3"


def test_noise_that_is_given_is_held():
    found, script = run([0.0, 1000.0, 2000.0, 1500.0, 9000.0], hold_noise=True)
    assert [noise_of(process) for process in script.processes] == [0.3] * 4
    assert found.best.result == "round 2"
    found, script = run([0.0, 1000.0, 500.0, 9000.0], ct.Brownian(np.ones(3)), hold_noise=True)
    assert [noise_of(process) for process in script.processes] == [0.0] * 3
    assert found.best.result == "round 1"


def test_other_parameters_are_fitted_to_the_best_tree_at_the_noise_that_is_tried():
    _, script = run([0.0, -1000.0, -1000.0])
    for process in script.processes[1:]:
        expected = ct.calibrate(with_noise(script.processes[0], process.noise), TREE, X, hold_noise=True)
        np.testing.assert_allclose(process.variance, expected.variance)


def test_the_trees_of_the_best_round_are_those_that_count():
    """Fitting after a failure goes back to the tree of the best round, with its weights."""
    other = ct.simulate_tree(12, 5)
    seen = []

    def find(process, number):
        seen.append(process)
        trees, weights = ([TREE, other], np.array([0.9, 0.1])) if number == 0 else ([other], np.ones(1))
        return Found(number, process, trees, weights, -5000.0 * number)

    alternate(find, ct.Brownian(np.ones(3), 0.3), X, 2)
    start = with_noise(seen[0], seen[2].noise)
    expected = ct.calibrate(start, [TREE, other], X, [0.9, 0.1], hold_noise=True)
    np.testing.assert_allclose(seen[2].variance, expected.variance)


def test_noise_of_a_stationary_process_takes_from_its_variance():
    process = ct.OrnsteinUhlenbeck(0.5, [1.0, 2.0], [3.0, 4.0], 0.5)
    other = with_noise(process, 2.0)
    np.testing.assert_allclose(other.variance * (1 + other.noise), process.variance * (1 + process.noise))
    assert other.noise == 2.0
    assert other.rate == 0.5
    np.testing.assert_array_equal(other.mean, process.mean)
    mixed = ct.Mixed((ct.Multinomial(), [0]), (ct.Brownian(2.0, 0.1), [1]), (process, [2, 3]))
    assert noise_of(mixed) == 0.1
    assert noise_of(ct.Multinomial()) == 0.0
    assert [part.noise for part, _ in with_noise(mixed, 0.7).parts[1:]] == [0.7, 0.7]


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
    return ct.CoalescentClustering().fit(frame)


def test_rounds_of_the_estimator(fitted, frame):
    assert 1 < len(fitted.log_joints_) <= 11
    assert np.any(np.isclose(fitted.log_joints_, fitted.log_joint_, rtol=1e-12))
    # the first round is what there is without any, but for where noise begins
    none = ct.CoalescentClustering(calibrate=0, noise=0.3).fit(frame)
    assert none.log_joints_.tolist() == [none.log_joint_]
    assert fitted.log_joints_[0] == pytest.approx(none.log_joint_)
    assert fitted.log_joint_ > none.log_joint_
    few = ct.CoalescentClustering(calibrate=2).fit(frame)
    np.testing.assert_array_equal(few.log_joints_, fitted.log_joints_[:3])


def test_noise_that_the_user_gave_is_held(frame):
    model = ct.CoalescentClustering(noise=0.05, calibrate=3).fit(frame)
    assert noise_of(model.process_) == 0.05
    real = model.parameters_["length"]
    assert real["noise_sd"] == pytest.approx(np.sqrt(0.05) * real["sd"])


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
    other = ct.CoalescentClustering().fit(frame.assign(weight=1000 * frame["weight"] + 7)).parameters_
    for name, value in fitted.parameters_["weight"].items():
        factor, shift = {"sd": (1000, 0), "noise_sd": (1000, 0), "mean": (1000, 7)}.get(name, (1, 0))
        expected = value if name == "process" else pytest.approx(factor * value + shift, rel=1e-6)
        assert other["weight"][name] == expected
    assert other["length"]["sd"] == pytest.approx(fitted.parameters_["length"]["sd"], rel=1e-6)
    shares = fitted.parameters_["colour"]["equilibrium"]
    assert other["colour"]["equilibrium"] == pytest.approx(shares, rel=1e-6)


def test_threads_do_not_change_the_rounds(fitted, frame):
    twin = ct.CoalescentClustering(n_jobs=2).fit(frame)
    np.testing.assert_array_equal(twin.log_joints_, fitted.log_joints_)
    assert twin.tree_ == fitted.tree_
    assert twin.parameters_ == fitted.parameters_


@pytest.fixture(scope="module")
def numbers(frame):
    return frame[["length", "weight"]][::2]


@pytest.fixture(scope="module")
def sampled(numbers):
    return ct.CoalescentClustering(inference="smc", calibrate=4, n_particles=30, random_state=0).fit(numbers)


def test_the_round_with_the_best_evidence_is_kept(sampled):
    assert 1 < len(sampled.log_joints_) <= 5
    assert sampled.log_evidence_ in sampled.log_joints_
    assert sampled.log_evidence_ > sampled.log_joints_[0]
    # the best one, but for the weak prior of the parameters
    assert sampled.log_evidence_ > sampled.log_joints_.max() - 5
    assert sampled.sample_.log_evidence == sampled.log_evidence_
    assert set(sampled.parameters_) == {"length", "weight"}


def test_a_seed_gives_the_same_rounds_on_any_number_of_threads(sampled, numbers):
    settings = {"inference": "smc", "calibrate": 4, "n_particles": 30}
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
