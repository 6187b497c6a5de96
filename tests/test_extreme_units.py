"""Columns whose numbers are near the ends of the range of floats: reports, plots and summaries of them."""

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import coaltree as ct
from coaltree.errors import InputError, InputWarning

N = 30
BASE = np.random.default_rng(0).normal(size=N)
COLUMNS = {
    "one step": np.where(BASE > 0, 5e-324, 0.0),
    "one denormal": np.append(np.zeros(N - 1), 5e-324),
    "denormal": BASE * 1e-310,
    "small": BASE * 1e-300,
    "narrow": 1 + BASE * 1e-15,
    "large": BASE * 1e299 / 3,
    "far": 1e15 + np.round(3 * BASE),
}
HUGE = {"two": np.where(BASE > 0, 1.7e308, -1.7e308), "ends": np.concatenate([BASE[2:], [1.7e308, -1.7e308]])}


def with_other_columns(values):
    frame = pd.DataFrame({"x": values, "y": BASE[::-1], "kind": np.where(BASE > 0.3, "a", "b")})
    frame.loc[3, "x"] = np.nan
    return frame


@pytest.mark.usefixtures("short_chains", "few_replicates")
@pytest.mark.parametrize(
    ("name", "standardize"),
    [*((name, True) for name in (*COLUMNS, *HUGE)), ("one step", "power"), ("large", "power"), ("far", False)],
)
def test_extreme_units_have_results_without_warnings(name, standardize, tmp_path):
    frame = with_other_columns((COLUMNS | HUGE)[name])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", InputWarning)
        model = ct.CoalescentClustering(standardize=standardize, random_state=0).fit(frame)
        model.report(tmp_path / "report.html")
        assert (tmp_path / "report.html").stat().st_size > 1e5
        described = model.parameters_["x"]
        assert 0 < described["noise_sd"] < np.inf
        assert 0 < described["sd"] < np.inf
        assert np.all(np.isfinite(model.score_samples(frame)))
        model._repr_html_()
        ct.plot_heatmap(model)["table"].figure.canvas.draw()
        if name in HUGE:
            with pytest.raises(InputError, match=r"'x'.*1\.7e\+308.*rescale"):
                ct.plot_density(model, "x", "y", resolution=8)
        else:
            ax = ct.plot_density(model, "x", "y", resolution=8)
            low, high = ax.get_xlim()
            observed = frame["x"].dropna()
            assert low <= observed.min() < observed.max() <= high
            ax.figure.canvas.draw()
    plt.close("all")


@pytest.mark.filterwarnings("ignore::coaltree.errors.InputWarning")
@pytest.mark.parametrize("name", ["one step", "denormal", "small"])
def test_range_without_squares_needs_standardising(name):
    with pytest.raises(InputError, match=r"'x'.*1e-100.*standardize=True"):
        ct.CoalescentClustering(standardize=False).fit(with_other_columns(COLUMNS[name]))
    constant = with_other_columns(np.full(N, 1e-200))
    assert ct.CoalescentClustering(standardize=False, random_state=0).fit(constant).n_clusters_ >= 1
