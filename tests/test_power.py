"""The power transform of real columns: the transform itself, and results in the units of the table."""

import io
import json
import zipfile

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import lognorm, skew
from sklearn.preprocessing import PowerTransformer

import coaltree as ct
from coaltree.errors import InputError
from coaltree.persist.archive import pack
from coaltree.table.encoding import encoded_columns
from coaltree.table.scaling import ColumnScale, PowerTransform
from command_line import check_sentence, command_in

pytestmark = pytest.mark.usefixtures("short_chains", "blank_pictures")

EXPONENTS = (-1.3, -0.2, 0.0, 0.4, 1.0, 1.7, 2.0, 2.6)


def heavy(n=60, seed=0):
    """Two clusters by logarithms, and a column of noise."""
    rng = np.random.default_rng(seed)
    logs = 4 * (np.arange(n) % 2) + rng.normal(size=n)
    return pd.DataFrame(
        {"mass": np.exp(logs), "loss": -np.exp(0.5 * logs + rng.normal(size=n)), "x": rng.normal(size=n)}
    )


def with_holes(table, share=0.2, seed=1):
    hidden = np.random.default_rng(seed).random(table.shape) < share
    return table.mask(hidden & ~hidden.all(axis=1, keepdims=True))


@pytest.fixture(scope="module")
def holes():
    return with_holes(heavy())


@pytest.fixture(scope="module")
def clustering(holes):
    return ct.CoalescentClustering(standardize="power").fit(holes)


@pytest.fixture(scope="module")
def imputer(holes):
    return ct.CoalescentImputer(standardize="power").fit(holes)


# -- the transform -----------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::coaltree.errors.InputWarning")
@pytest.mark.parametrize("share", [0.0, 0.3])
def test_power_transform_matches_scikit_learn(share):
    table = with_holes(heavy(), share)
    model = ct.CoalescentClustering(standardize="power").fit(table)
    peer = PowerTransformer().fit(table)
    np.testing.assert_allclose(model._model.matrix, peer.transform(table), rtol=1e-9, atol=1e-9)
    assert [power.exponent for power in model.encoding_.powers] == pytest.approx(peer.lambdas_)
    assert [parameters["power"] for parameters in model.parameters_.values()] == pytest.approx(peer.lambdas_)
    new = np.nanmin(table, axis=0) + np.linspace(0, 1, 7)[:, None] * np.ptp(
        table.to_numpy()[table.notna().all(axis=1)], axis=0
    )
    actual = model._read_rows(pd.DataFrame(new, columns=table.columns)).matrix
    np.testing.assert_allclose(actual, peer.transform(pd.DataFrame(new, columns=table.columns)), rtol=1e-9, atol=1e-9)


def test_power_transform_reduces_tail():
    values = np.random.default_rng(0).lognormal(2, 1, 500)
    scale, _ = ColumnScale.fit(values, "power")
    assert abs(skew(scale.encode(values))) < 0.1 < skew(values)


@pytest.mark.parametrize("exponent", EXPONENTS)
def test_power_transform_round_trip_and_slope(exponent):
    power = PowerTransform(exponent, 0.3, 2.0, -4.0, 5.0)
    values = np.array([-1e3, -30.0, -9.0, -2.0, -0.1, 0.3, 0.31, 1.0, 8.0, 20.0, 1e3])  # also beyond low and high
    created = power.apply(values)
    assert np.all(np.diff(created) > 0)
    np.testing.assert_allclose(power.invert(created), values, rtol=1e-9)
    step = 1e-6 * np.maximum(np.abs(values), 1.0)
    slopes = (power.apply(values + step) - power.apply(values - step)) / (2 * step)
    np.testing.assert_allclose(np.exp(power.log_slope(values)), slopes, rtol=1e-4)
    assert np.isnan(power.apply(np.array([np.nan])))
    assert np.isnan(power.invert(np.array([np.nan])))


@pytest.mark.parametrize("exponent", EXPONENTS)
def test_decoded_predictions_are_finite(exponent):
    """Predictions up to three standard deviations beyond the data are at most some thousand times as far out."""
    scale = ColumnScale(1.0, 0.5, PowerTransform(exponent, 0.0, 1.0, -10.0, 10.0))
    codes = np.array([-1e150, -1e10, -40.0, 40.0, 1e10, 1e150])
    assert np.isfinite(scale.decode(codes)).all()
    assert np.all(np.diff(scale.decode(codes)) >= 0)
    ends = scale.encode(np.array([-10.0, 10.0]))
    assert np.all(np.abs(scale.decode(ends + [-3.0, 3.0])) < 1e4)
    mean, sd = scale.decode_moments(np.array([0.0, 1e100]), np.array([1e3, np.inf]))
    assert np.isfinite(mean).all()
    assert sd[0] < np.inf == sd[1]


def test_decoded_moments_match_lognormal():
    scale = ColumnScale(2.0, 0.5, PowerTransform(0.0, 0.0, 1.0, 0.1, 50.0))  # log(1 + x) is normal
    mean, sd = scale.decode_moments(np.array([1.0, 4.0]), np.array([0.8, 0.4]))
    logs = [2.5, 4.0], [0.4, 0.2]
    distribution = lognorm(s=np.array(logs[1]), scale=np.exp(logs[0]))
    np.testing.assert_allclose(mean, distribution.mean() - 1, rtol=1e-6)
    np.testing.assert_allclose(sd, distribution.std(), rtol=1e-6)


@pytest.mark.parametrize(
    "values",
    [
        [1.0, 1.0, 5.0, 5.0],  # any transform of two values says the same
        [0.0] * 50 + [1.0, 2.0],
        [1e300, 2e300, 5e300, 1.5e308, -1.7e308],
        [1e-310, 2e-310, 7e-310],
        [1e-300, 1.0, 1e300],
        [*np.linspace(0, 1, 30), 1e6],
        [*np.linspace(0, 1, 30), 1e250],
        [2001.0, 2002.0, 2003.0, 2010.0, 2011.0],  # for which the plain transform has no digits left
        [*(1e9 + np.arange(20.0))],
    ],
)
def test_power_transform_of_columns_of_any_scale(values):
    values = np.array(values)
    scale, varies = ColumnScale.fit(values, "power")
    assert varies
    codes = scale.encode(values)
    assert np.isfinite(codes).all()
    assert np.array_equal(np.argsort(codes, kind="stable"), np.argsort(values, kind="stable"))
    assert np.std(codes) == pytest.approx(1.0)
    assert np.max(np.abs(scale.decode(codes) / 2 - values / 2)) <= 1e-11 * np.ptp(values / 2)
    assert np.isfinite(
        scale.decode(np.array([-30.0, 30.0])) / 2 if scale.power is None else scale.decode(np.array([-1e9, 1e9]))
    ).all()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(-1e15, 1e15), min_size=3, max_size=30))
def test_power_transform_round_trip_of_any_column(values):
    values = np.array(values)
    scale, _ = ColumnScale.fit(values, "power")
    codes = scale.encode(values)
    assert np.isfinite(codes).all()
    np.testing.assert_allclose(scale.decode(codes), values, rtol=1e-9, atol=1e-9 * max(np.ptp(values), 1e-300))


# -- densities ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("column", ["mass", "loss", "x"])
def test_density_with_power_transform_integrates_to_one(clustering, holes, column):
    """By quadrature over the column's own units, in pieces that are even for the model and end where the density jumps."""
    scale = {encoded_column.name: encoded_column.scale for encoded_column in encoded_columns(clustering.encoding_)}[
        column
    ]
    scores = clustering._model.predictor.ensemble.draws[-1].scores
    knots = np.concatenate([scores.marginals[list(holes.columns).index(column)].knots, np.linspace(-9, 9, 73)])
    ends = scale.decode(np.unique(knots[np.abs(knots) <= 9]))
    nodes, weights = np.polynomial.legendre.leggauss(8)
    middles, halves = (ends[1:] + ends[:-1]) / 2, (ends[1:] - ends[:-1]) / 2
    values = (middles[:, None] + halves[:, None] * nodes).ravel()
    rows = pd.DataFrame({name: values if name == column else np.nan for name in holes.columns})
    density = np.exp(clustering.score_samples(rows)).reshape(-1, len(nodes))
    assert float(halves @ density @ weights) == pytest.approx(1.0, abs=1e-4)


def test_density_includes_power_jacobian(clustering, holes):
    """The density of the transformed row times the slopes of the transform, which are taken by differences."""
    peer = PowerTransformer().fit(holes)
    rows = 1.003 * holes.iloc[:12]  # knots of the normal scores are at the rows of the fit
    step = 1e-5
    up, down = (peer.transform(rows * (1 + sign * step)) for sign in (1, -1))
    slopes = (up - down) / (2 * step * rows.to_numpy())
    expected = clustering._model.predictor.log_density(peer.transform(rows)) + np.nansum(np.log(slopes), axis=1)
    np.testing.assert_allclose(clustering.score_samples(rows), expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(clustering.place(rows).log_density, expected, rtol=1e-5, atol=1e-5)
    assert clustering.score(rows) == pytest.approx(expected.mean(), rel=1e-5)


@pytest.mark.filterwarnings("ignore:.*far from all others")
def test_power_transform_raises_density_of_heavy_tails():
    table, new = heavy(80), heavy(80, seed=5)
    plain, power = (ct.CoalescentClustering(standardize=how).fit(table).score(new) for how in (True, "power"))
    assert power > plain + 0.2  # normal scores tell tails too


# -- cells -------------------------------------------------------------------------------------------------------------


def test_imputed_cells_are_in_table_units(imputer, holes):
    filled, cells = imputer.transform(holes), imputer.predictive(holes)
    for name in holes.columns:
        missing = holes[name].isna().to_numpy()
        values = cells[name]
        np.testing.assert_array_equal(filled[name][~missing], holes[name][~missing])
        np.testing.assert_allclose(filled[name], values.median)
        low, high = values.interval(0.5)
        assert np.all(low[missing] < values.median[missing])
        assert np.all(values.median[missing] < high[missing])
        np.testing.assert_array_equal(values.mean[~missing], holes[name][~missing])
        np.testing.assert_array_equal((low[~missing], high[~missing]), [holes[name][~missing]] * 2)
        assert np.all(values.sd[missing] > 0)
        assert np.all(values.sd[~missing] == 0)
    missing = holes["mass"].isna()
    assert np.all(filled["mass"][missing] > -1)
    assert np.all(filled["mass"][missing] < 3 * holes["mass"].max())


def test_draws_match_interval_quantiles(imputer, holes):
    draws = np.array([table["mass"] for table in imputer.sample(holes, 30, random_state=0)])
    low, high = imputer.predictive(holes)["mass"].interval(0.9)
    missing = holes["mass"].isna().to_numpy()
    inside = (draws >= low) & (draws <= high)
    assert 0.8 < inside[:, missing].mean() < 0.99
    np.testing.assert_array_equal(draws[:, ~missing], np.tile(holes["mass"][~missing], (30, 1)))


def test_report_shows_values_in_table_units(clustering, holes):
    pytest.importorskip("jinja2")
    from coaltree.report.build import report_facts
    from coaltree.report.page import page

    facts = report_facts(clustering._model)
    for column in facts.real:
        np.testing.assert_allclose(column.values, holes[column.name], rtol=1e-9)
        observed = ~column.missing[facts.held_out.inspected]
        assert np.isfinite(column.deviations(facts.held_out.inspected)[observed]).all()
    assert "mass" in page(facts)


def test_plots_show_values_in_table_units(clustering, holes):
    pytest.importorskip("matplotlib")
    import matplotlib.pyplot as plt

    ax = ct.plot_density(clustering, "mass", "x", resolution=8)
    observed = holes[["mass", "x"]].dropna().to_numpy()
    assert ax.get_xlim()[0] < observed[:, 0].min() < observed[:, 0].max() < ax.get_xlim()[1]
    points = ax.collections[-1].get_offsets()
    np.testing.assert_allclose(points[holes[["mass", "x"]].notna().all(axis=1)], observed, rtol=1e-9)
    plt.close(ax.figure)


# -- files, commands, refusals -----------------------------------------------------------------------------------------


def test_model_file_keeps_power_transform(clustering, imputer, holes, tmp_path):
    clustering.save(tmp_path / "a.coaltree")
    again = ct.load_model(tmp_path / "a.coaltree")
    assert again.standardize == "power"
    assert again.encoding_.powers == clustering.encoding_.powers
    np.testing.assert_array_equal(again.score_samples(holes), clustering.score_samples(holes))
    assert again.parameters_ == clustering.parameters_
    imputer.save(tmp_path / "b.coaltree")
    pd.testing.assert_frame_equal(ct.load_model(tmp_path / "b.coaltree").transform(holes), imputer.transform(holes))


@pytest.mark.parametrize("part", [{"unit": 0.0}, {"low": 9.0, "high": 9.0}, {"exponent": "x"}])
def test_invalid_power_transform_in_file_is_rejected(clustering, tmp_path, part):
    clustering.save(tmp_path / "a.coaltree")
    with zipfile.ZipFile(tmp_path / "a.coaltree") as file:
        members = {name: file.read(name) for name in file.namelist()}
    facts = json.loads(members["model.json"])
    facts["columns"][0]["power"] |= part
    members["model.json"] = json.dumps(facts).encode()
    (tmp_path / "b.coaltree").write_bytes(pack(members))
    with pytest.raises(InputError, match="power of column 'mass'"):
        ct.load_model(tmp_path / "b.coaltree")


@pytest.mark.parametrize("value", ["no", "log", None, 1, 0.5])
@pytest.mark.parametrize("kind", [ct.CoalescentClustering, ct.CoalescentImputer])
def test_invalid_standardize_is_rejected(kind, value):
    with pytest.raises(InputError, match=f"standardize is {value!r}; it must be True, False or 'power'"):
        kind(standardize=value).fit([[0.0], [1.0], [2.0]])


@pytest.fixture
def command(tmp_path, monkeypatch, capsys):
    return command_in(tmp_path, monkeypatch, capsys)


def test_commands_accept_standardize_power(command, holes, imputer, tmp_path):
    holes.to_csv(tmp_path / "t.csv", index=False)
    code, _, err = command("fit", "t.csv", "-o", "out", "--standardize", "power", "--no-id", "-q")
    assert code == 0, err
    assert json.loads((tmp_path / "out" / "summary.json").read_text())["settings"]["standardize"] == "power"
    assert ct.load_model(tmp_path / "out" / "model.coaltree").encoding_.powers
    code, out, err = command("score", "out/model.coaltree", "t.csv", "--no-id")
    assert code == 0, err
    scores = pd.read_csv(io.StringIO(out))["log_density"]
    np.testing.assert_allclose(
        scores, ct.load_model(tmp_path / "out" / "model.coaltree").score_samples(holes), rtol=1e-9
    )
    code, _, err = command("impute", "t.csv", "-o", "f.csv", "--standardize", "power", "--no-id", "-q")
    assert code == 0, err
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "f.csv"), imputer.transform(holes), rtol=1e-5)


def test_incompatible_standardize_options_are_rejected(command, holes, tmp_path):
    holes.to_csv(tmp_path / "t.csv", index=False)
    check_sentence(
        command("fit", "t.csv", "-o", "out", "--standardize", "power", "--no-standardize"), "exclude each other"
    )
    code, _, err = command("fit", "t.csv", "-o", "out", "--standardize", "log")
    assert code == 2
    assert all(f"'{how}'" in err for how in ("yes", "power", "no"))
    code, _, err = command("fit", "t.csv", "-o", "out", "--standardize", "no", "--no-standardize", "--no-id", "-q")
    assert code == 0, err
