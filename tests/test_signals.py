"""Which columns matter: signals, and columns that are left out of the tree because they depend on no other."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, chi2_contingency

import coaltree as ct
from coaltree.inference import posterior_draws

pytestmark = pytest.mark.filterwarnings("ignore::coaltree.errors.InputWarning")
NOISE = {
    "uniform": lambda rng, n: rng.random(n),
    "cauchy": lambda rng, n: rng.standard_cauchy(n),
    "lognormal": lambda rng, n: np.exp(2 * rng.normal(size=n)),
    "whole": lambda rng, n: rng.integers(0, 10, n),
    "count": lambda rng, n: rng.poisson(1.0, n),
    "coin": lambda rng, n: rng.choice(["h", "t"], n),
    "ten": lambda rng, n: rng.choice(list("abcdefghij"), n),
    "hundred": lambda rng, n: np.array([f"k{k}" for k in rng.integers(0, 100, n)]),
    "zip": lambda rng, n: rng.integers(10_000, 99_999, n),
    "day": lambda rng, n: pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 900, n), unit="D"),
    "text": lambda rng, n: np.array([" ".join(rng.choice(list("abcdefghijklm"), 6)) for _ in range(n)]),
}


def grouped(seed, n, n_real=4, n_categorical=3):
    """Return a table of three groups whose columns depend on them."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 3, n)
    frame = pd.DataFrame({f"x{j}": rng.normal(size=n) + rng.permuted([0, 3, 6])[group] for j in range(n_real)})
    for j in range(n_categorical):
        frame[f"c{j}"] = np.array(list("abc"))[np.where(rng.random(n) < 0.3, rng.integers(0, 3, n), group)]
    return frame, rng


def with_noise(seed, n, **sizes):
    frame, rng = grouped(seed, n, **sizes)
    return frame.assign(**{name: draw(rng, n) for name, draw in NOISE.items()})


def signals(model):
    return {name: parameters["signal"] for name, parameters in model.parameters_.items()}


def fit(frame, **parameters):
    return ct.CoalescentClustering(**parameters).fit(frame)


def remark(model):
    return " ".join(text for text in model._model.remarks if "on no other column" in text)


def test_signals_are_correlations_of_pairs_of_rows():
    """By the chi-squared statistics of scipy, and by all pairs of rows."""
    frame, rng = grouped(0, 120, n_real=2, n_categorical=1)
    frame["noise"] = rng.normal(size=120)
    levels = frame.assign(**{name: pd.qcut(frame[name], 4, labels=False) for name in ("x0", "x1", "noise")})
    names = list(signals(model := fit(frame)))
    free = {name: levels[name].nunique() - 1 for name in names}
    alike = {}
    for name in names:
        shares = levels[name].map(levels[name].value_counts(normalize=True)).to_numpy()
        same = levels[name].to_numpy()[:, None] == levels[name].to_numpy()
        alike[name] = np.where(same, 1 / shares, 0.0) - 1
    for name in names:
        others = [other for other in names if other != name]
        chi = sum(
            chi2_contingency(pd.crosstab(levels[name], levels[other]), correction=False).statistic for other in others
        )
        together = sum(alike[other] for other in others)
        assert np.sum(alike[name] * together) == pytest.approx(120 * chi)
        excess = chi - free[name] * sum(free[other] for other in others)
        squared = 120 * excess / np.sqrt(np.sum(alike[name] ** 2) * np.sum(together**2))
        assert signals(model)[name] == pytest.approx(np.sqrt(max(squared, 0)), abs=1e-4)


@pytest.mark.parametrize("sizes", [{"n_real": 6, "n_categorical": 0}, {}, {"n_real": 0, "n_categorical": 6}])
def test_planted_noise_ranks_below_informative_columns(sizes):
    ranked = []
    for seed in range(3):
        found = signals(fit(with_noise(seed, 200, **sizes)))
        informative = [value for name, value in found.items() if name not in NOISE]
        ranked += [found.get(name, 0.0) < min(informative) for name in NOISE]
    assert np.mean(ranked) >= 0.95


def test_idle_columns_leave_the_tree_as_it_is():
    frame = with_noise(1, 400)
    model, bare = fit(frame), fit(grouped(1, 400)[0])
    assert all(f"'{name}'" in remark(model) for name in ("uniform", "cauchy", "lognormal"))
    assert remark(bare) == ""
    np.testing.assert_array_equal(model.tree_.children, bare.tree_.children)
    np.testing.assert_allclose(model.tree_.heights, bare.tree_.heights, rtol=1e-9)
    np.testing.assert_array_equal(model.labels_, bare.labels_)
    np.testing.assert_array_equal(model.cut(n_clusters=7), bare.cut(n_clusters=7))
    np.testing.assert_allclose(model.log_joint_, bare.log_joint_)


def test_share_of_tables_of_noise_that_lose_columns():
    """No column depends on another, so all stay; at most one table in twenty may look otherwise."""
    lost = sum(
        bool(remark(fit(pd.DataFrame({name: NOISE[name](rng, 60) for name in ("uniform", "cauchy", "coin", "ten")}))))
        for rng in map(np.random.default_rng, range(8))
    )
    assert binom.sf(lost - 1, 8, 0.05) > 1e-3


def test_groups_of_a_single_column_stay():
    """It is independent of the two others, but its values are two groups."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 600))
    frame = pd.DataFrame({"x": x, "y": x + 0.3 * y, "groups": rng.normal(size=600) + 12 * rng.integers(0, 2, 600)})
    model = fit(frame)
    assert remark(model) == ""
    assert model.n_clusters_ == 2
    assert "'groups'" in remark(fit(frame.assign(groups=rng.normal(size=600))))


def test_idle_columns_are_predicted_and_kept_in_files(tmp_path, monkeypatch):
    monkeypatch.setattr(posterior_draws, "MAX_SWEEPS", 40)
    monkeypatch.setattr(posterior_draws, "DRAWS_PER_CHAIN", 5)
    frame, rng = grouped(2, 150, n_real=5, n_categorical=0)
    frame = frame.assign(noise=rng.normal(7, 2, 150), coin=rng.choice(["h", "t"], 150, p=[0.2, 0.8]))
    frame.loc[::5, ["noise", "coin", "x1"]] = None
    model = fit(frame)
    assert "'noise', 'coin'" in remark(model)
    model.save(tmp_path / "m.coaltree")
    again = ct.load_model(tmp_path / "m.coaltree")
    assert again.parameters_ == model.parameters_
    assert again.log_joint_ == model.log_joint_
    np.testing.assert_array_equal(again.cut(n_clusters=4), model.cut(n_clusters=4))
    known, hidden = frame["noise"].dropna(), frame["noise"].isna().to_numpy()
    filled = ct.CoalescentImputer().fit_transform(frame)
    assert set(filled["coin"]) == {"h", "t"}
    assert np.abs(filled["noise"][hidden] - known.mean()).max() < known.std()


@pytest.mark.parametrize(
    "parameters", [{"noise": 0.5}, {"real_process": ct.OrnsteinUhlenbeck(0.5)}, {"covariance": "spherical"}]
)
def test_all_columns_count_if_the_user_gives_the_model(parameters):
    frame, rng = grouped(0, 200, n_real=6, n_categorical=0)
    frame["noise"] = rng.random(200)
    assert "'noise'" in remark(fit(frame))
    assert remark(fit(frame, **parameters)) == ""
