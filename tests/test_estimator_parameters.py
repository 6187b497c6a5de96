"""Parameters that the estimators use and report, by column and in its units."""

import numpy as np
import pandas as pd
import pytest

import coaltree as ct
from coaltree.process.gaussian_columns import scale_to_range

pytestmark = pytest.mark.filterwarnings("ignore::coaltree.errors.InputWarning")

TREE = ct.simulate_tree(12, 0)


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
def test_rescale_clock_keeps_likelihood(process, factor):
    table = process.simulate(TREE, 4, n_columns=3)
    higher = ct.Tree(TREE.children, factor * TREE.heights)
    expected = process.log_likelihood(TREE, table)
    assert process.rescale_clock(factor).log_likelihood(higher, table) == pytest.approx(expected, rel=1e-10)


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


@pytest.mark.usefixtures("short_chains")
def test_noise_parameter_is_held_fixed(frame):
    """As a share of each column's variance."""
    for real_process in ("brownian", "ornstein-uhlenbeck"):
        model = ct.CoalescentClustering(noise=0.05, real_process=real_process).fit(frame)
        if real_process == "ornstein-uhlenbeck":
            shares = [
                (model.parameters_[name]["noise_sd"] / frame[name].std(ddof=0)) ** 2 for name in ("length", "weight")
            ]
            assert shares == pytest.approx([0.05, 0.05])
        ratio = [
            draw.process.parts[0][0].noise for draw in model._model.predictor.ensemble.draws
        ]  # in units of the diffusion, whatever its variance
        assert np.ptp(ratio) == 0
        assert {float(draw.process.parts[1][0].noise[0]) for draw in model._model.predictor.ensemble.draws} == {0.2}


def test_real_columns_are_scaled_to_range(frame):
    """By default the variance of every column is the same share of its squared range; the mean precision is kept."""
    for real_process in ("brownian", "ornstein-uhlenbeck"):
        model = ct.CoalescentClustering(real_process=real_process).fit(frame)
        real = frame[["length", "weight"]]
        sizes = np.array([model.parameters_[name]["sd"] ** 2 for name in real])
        assert np.ptp(sizes / (real.max() - real.min()) ** 2) == pytest.approx(0, abs=1e-12)
    noise = np.array([model.parameters_[name]["noise_sd"] ** 2 for name in real])
    assert np.mean(real.var(ddof=0) / (2 * noise)) == pytest.approx(1)


def test_extreme_cell_reduces_column_weight():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 4))
    before = scale_to_range(X, X.var(axis=0))
    X[3, 0] = 1e6
    X[5, 1] = np.nan
    after = scale_to_range(X, np.nanvar(X, axis=0))
    weight = np.nanvar(X, axis=0) / after
    assert weight[0] < 0.5 * weight[1:].min()
    assert weight.mean() == pytest.approx(1)
    assert np.all(np.abs(np.log(before)) < 0.7)
    constant = np.column_stack([X[:, 2], np.ones(100)])
    assert scale_to_range(constant, np.array([2.0, 1.0])).tolist() == [2.0, 1.0]


def test_parameters_have_column_names_and_units(fitted, frame):
    actual = {
        name: {key: value for key, value in parameters.items() if key != "signal"}
        for name, parameters in fitted.parameters_.items()
    }
    assert list(actual) == ["length", "weight", "colour"]
    (real, columns), (mutation, _) = fitted.process_.parts
    assert columns == (0, 1)
    for d, name in enumerate(["length", "weight"]):
        scale, centre = frame[name].std(ddof=0), frame[name].mean()
        assert actual[name] == pytest.approx(
            {
                "process": "ornstein-uhlenbeck",
                "sd": scale * np.sqrt(real.variance[d]),
                "noise_sd": scale * np.sqrt(real.variance[d] * real.noise),
                "mean": centre + scale * real.mean[d],
                "rate": real.rate,
            }
        )
    assert actual["colour"]["process"] == "multinomial"
    assert actual["colour"]["rate"] == pytest.approx(mutation.rate[0])
    assert actual["colour"]["equilibrium"] == pytest.approx(
        dict(zip(["blue", "green", "red"], mutation.equilibrium[0], strict=True))
    )
    # sd and noise together are the spread of the column, since the process is at equilibrium
    for name in ("length", "weight"):
        total = np.hypot(actual[name]["sd"], actual[name]["noise_sd"])
        assert 0.5 < total / frame[name].std() < 2


def test_parameters_follow_column_units(fitted, frame):
    other = ct.CoalescentClustering().fit(frame.assign(weight=1000 * frame["weight"] + 7)).parameters_
    for name, value in fitted.parameters_["weight"].items():
        factor, shift = {"sd": (1000, 0), "noise_sd": (1000, 0), "mean": (1000, 7)}.get(name, (1, 0))
        expected = value if name == "process" else pytest.approx(factor * value + shift, rel=1e-6)
        assert other["weight"][name] == expected
    assert other["length"]["sd"] == pytest.approx(fitted.parameters_["length"]["sd"], rel=1e-6)
    shares = fitted.parameters_["colour"]["equilibrium"]
    assert other["colour"]["equilibrium"] == pytest.approx(shares, rel=1e-6)


def test_smc_uses_same_parameters_as_greedy(frame):
    numbers = frame[["length", "weight"]][::2]
    model = ct.CoalescentClustering(inference="smc", n_particles=30, random_state=0).fit(numbers)
    white = (numbers - numbers.mean()) / numbers.std(ddof=0)
    expected = ct.smc(white.to_numpy(), model.process_, n_particles=30, random_state=0)
    assert model.log_evidence_ == pytest.approx(expected.log_evidence, rel=1e-9)
    assert model.parameters_ == ct.CoalescentClustering().fit(numbers).parameters_


@pytest.mark.parametrize(
    ("name", "nearest"),
    [("k", "n_clusters"), ("n_cluster", "n_clusters"), ("random_stat", "random_state"), ("zzz", "noise")],
)
def test_unknown_parameters_are_named_with_the_nearest(name, nearest):
    for estimator in (ct.CoalescentClustering, ct.CoalescentImputer):
        with pytest.raises(TypeError) as error:
            estimator(**{name: 3})
        for word in (estimator.__name__, repr(name), nearest if "cluster" not in nearest else "Coalescent"):
            assert word in str(error.value)
        assert "Settings" not in str(error.value)
        with pytest.raises(TypeError, match=f"^{estimator.__name__} takes named parameters"):
            estimator(3)
    with pytest.raises(TypeError, match="n_clusters"):
        ct.CoalescentClustering(n_cluster=3)
