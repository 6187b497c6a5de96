"""What the benchmark of predictions does to tables before and after methods see them."""

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


def test_rows_keep_a_cell(frame):
    holes, hidden = prediction.hide(frame, 0)
    assert (holes.isna().to_numpy() == hidden).all()
    assert holes.notna().any(axis=1).all()
    # 600 cells: the share is within four standard errors for all but 6 in 100,000 seeds
    assert abs(hidden.mean() - prediction.HIDDEN) < 4 * math.sqrt(prediction.HIDDEN * (1 - prediction.HIDDEN) / 600)


@pytest.mark.parametrize("with_indicators", [True, False])
def test_round_trip_of_imputer_input(frame, with_indicators):
    filled, _ = prediction.filling_by(Nothing(), with_indicators)(frame)
    pd.testing.assert_frame_equal(filled, frame)


def test_errors_are_in_standard_deviations(frame):
    hidden = np.zeros(frame.shape, dtype=bool)
    hidden[:4] = True
    filled = frame.copy()
    filled["length"] += 3 * frame["length"].std(ddof=0)
    filled.loc[0, "sex"] = "m" if frame.loc[0, "sex"] == "f" else "f"
    errors = prediction.cell_errors(frame, filled, hidden)
    assert errors["error"] == pytest.approx(3)
    assert errors["wrong"] == 1 / 8


def test_independent_columns_have_the_density_of_a_gaussian(frame):
    train, test = frame[["length"]][:150], frame[["length"]][150:]
    mean, sd = train["length"].mean(), train["length"].std()
    z = (test["length"] - mean) / sd
    assert prediction.independent(train, test) == pytest.approx(
        -0.5 * (z**2).mean() - math.log(sd * math.sqrt(2 * math.pi))
    )


def test_tables_are_written_between_marks(tmp_path):
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


def test_page_without_marks_is_unchanged(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("words")
    with pytest.raises(SystemExit, match="no marks"):
        prediction.write_markdown(page, {"densities": "new"})
    assert page.read_text() == "words"
