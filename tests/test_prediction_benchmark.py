"""The benchmark of predictions: hidden cells, errors, and the tables it writes."""

import math

import numpy as np
import pandas as pd
import pytest

import prediction


class Nothing:
    """An imputer that leaves all cells as they are."""

    def fit_transform(self, X):
        return X


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "length": rng.normal(5, 2, 200),
            "colour": pd.Categorical(rng.choice(["red", "green", "blue"], 200)),
            "sex": pd.Categorical(rng.choice(["f", "m"], 200)),
        }
    )


def test_hide_keeps_a_cell_in_every_row(frame):
    holes, hidden = prediction.hide(frame, 0)
    assert (holes.isna().to_numpy() == hidden).all()
    assert holes.notna().any(axis=1).all()
    # 600 cells: the share is within four standard errors for all but 6 in 100,000 seeds
    assert abs(hidden.mean() - prediction.HIDDEN) < 4 * math.sqrt(prediction.HIDDEN * (1 - prediction.HIDDEN) / 600)


@pytest.mark.parametrize("with_indicators", [True, False])
def test_round_trip_of_imputer_input(frame, with_indicators):
    filled, _ = prediction.filling_by(Nothing(), with_indicators)(frame)
    pd.testing.assert_frame_equal(filled, frame)


def test_errors_are_in_units_of_standard_deviation(frame):
    hidden = np.zeros(frame.shape, dtype=bool)
    hidden[:4] = True
    filled = frame.copy()
    filled["length"] += 3 * frame["length"].std(ddof=0)
    filled.loc[0, "sex"] = "m" if frame.loc[0, "sex"] == "f" else "f"
    errors = prediction.cell_errors(frame, filled, hidden)
    assert errors["error"] == pytest.approx(3)
    assert errors["wrong"] == 1 / 8


def test_independent_density_matches_gaussian(frame):
    train, test = frame[["length"]][:150], frame[["length"]][150:]
    mean, sd = train["length"].mean(), train["length"].std()
    z = (test["length"] - mean) / sd
    assert prediction.independent(train, test) == pytest.approx(
        -0.5 * (z**2).mean() - math.log(sd * math.sqrt(2 * math.pi))
    )


def test_tables_are_written_between_markers(tmp_path):
    page = tmp_path / "page.md"
    prediction.write_markdown(page, {"densities": "old", "means": "kept"})
    page.write_text("before\n" + page.read_text() + "after\n")
    prediction.write_markdown(page, {"densities": "new", "coverage": "elsewhere"})
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "new" in text
    assert "kept" in text
    assert "old" not in text
    assert "elsewhere" not in text


def test_page_without_markers_is_unchanged(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("words")
    with pytest.raises(SystemExit, match="no marks"):
        prediction.write_markdown(page, {"densities": "new"})
    assert page.read_text() == "words"


def test_results_are_kept_between_runs(tmp_path):
    path = tmp_path / "figures.json"
    results = prediction.Results(path)
    for number, error in enumerate([0.5, 0.7]):
        results.add("error", "iris", "coaltree", error)
        results.finish("imputation", "iris", number, "coaltree")
    again = prediction.Results(path)
    assert again.mean("error", "iris", "coaltree") == pytest.approx(0.6)
    assert [again.is_done("imputation", "iris", number, "coaltree") for number in range(3)] == [True, True, False]
    assert not again.is_done("densities", "iris", 0, "coaltree")


def test_tables_and_methods_are_ordered():
    results = prediction.Results()
    for table, method, error in [
        ("glass", "regressions", 0.8),
        ("iris", "mean or mode", 1.0),
        ("iris", "coaltree", 0.4),
        ("glass", "coaltree", 0.5),
    ]:
        results.add("error", table, method, error)
    lines, last = prediction.lines_of(results, "error")
    assert lines[0][1:] == ["coaltree", "regressions", "mean or mode"]
    assert [line[0] for line in lines[1:]] == ["iris", "glass"]
    assert lines[2][1:] == ["0.500", "0.800", ""]
    assert last[-1][1:] == ["2", "0", "0"]


def test_published_results_are_not_counted_as_wins():
    results = prediction.Results()
    results.add("density", "rdata", "coaltree", -5.1)
    lines, last = prediction.lines_of(results, "density")
    assert lines[0][1:] == ["coaltree", "diffusion trees (Neal)", "finite mixture (Neal)"]
    assert lines[1][1:] == ["-5.100", "-5.088", "-5.172"]
    assert last[-1][1:] == ["1", "", ""]
