"""Lineages through time: the prior against its master equation, samples against brute force, plots against numbers."""

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from scipy.linalg import expm

import coaltree as ct
from coaltree.tree.coalescent import N_DRAWS, expected_lineages, live_lineages, prior_band, sample_band
from named import refused
from tree_samples import related_sample


@pytest.fixture
def ax():
    figure = Figure(figsize=(6, 4))
    FigureCanvasAgg(figure)
    return figure.subplots()


def shares_of_counts(n, time):
    """Probability of 1, 2, ..., n lineages at a time, by the exponential of the generator."""
    rates = np.arange(1, n + 1) * np.arange(n) / 2
    generator = np.diag(-rates) + np.diag(rates[1:], -1)
    return expm(time * generator)[-1]


@pytest.mark.parametrize("n", [1, 2, 5, 30])
@pytest.mark.parametrize("time", [0.0, 1e-3, 0.05, 0.7, 4.0])
def test_expected_lineages_match_master_equation(n, time):
    expected = shares_of_counts(n, time) @ np.arange(1, n + 1)
    assert expected_lineages(n, time) == pytest.approx(expected, rel=1e-9)


def test_expected_lineages_converge_for_many_leaves():
    times = np.array([0.01, 0.1, 1.0, 10.0])
    many, more = expected_lineages(100_000, times), expected_lineages(1_000_000, times)
    np.testing.assert_allclose(many, more, rtol=1e-2)
    assert expected_lineages(1_000_000, 0.0) == pytest.approx(1e6)
    assert many[-1] == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize("n", [2, 3, 12])
def test_prior_band_has_stated_probability(n):
    """Shares of draws below the ends within 5 standard errors; one correct band in a million and a half fails."""
    level = 0.9
    band = prior_band(n, level)
    assert band.counts.tolist() == list(range(n - 1, 0, -1))
    bound = 5 * np.sqrt(0.05 * 0.95 / N_DRAWS)
    for count, low, high in zip(*band, strict=True):
        for tail, time in ((0.05, low), (0.95, high)):
            assert shares_of_counts(n, time)[:count].sum() == pytest.approx(tail, abs=bound)


def test_prior_band_of_many_leaves_starts_below_1000_lineages():
    band = prior_band(50_000, 0.95)
    assert band.counts[0] == 999
    waits = 2.0 / (np.arange(501, 50_001) * np.arange(500, 50_000))
    middle, spread = waits.sum(), np.sqrt((waits**2).sum())
    at = band.counts.tolist().index(500)
    assert band.low[at] == pytest.approx(middle - 1.96 * spread, rel=0.01)
    assert band.high[at] == pytest.approx(middle + 1.96 * spread, rel=0.01)


def test_live_lineages_count_branches():
    tree = ct.simulate_tree(20, 3)
    tops = np.append(tree.heights[tree.parents[:-1]], np.inf)
    for height in (0.0, 0.01, 0.2, float(tree.heights[25]), 50.0):
        assert live_lineages(tree, height) == np.sum((tree.heights <= height) & (height < tops))


def test_sample_band_covers_stated_share_of_merges():
    sample = related_sample(9, 40, 2)
    band = sample_band(sample.trees, sample.weights, 0.8)
    heights = np.stack([tree.merge_heights for tree in sample.trees])
    for k, (low, high) in enumerate(zip(band.low, band.high, strict=True)):
        below = sample.weights[heights[:, k] < low].sum()
        upto = sample.weights[heights[:, k] <= low].sum()
        assert below < 0.1 + 1e-9 <= upto + 2e-9
        assert sample.weights[heights[:, k] < high].sum() < 0.9 + 1e-9
        assert sample.weights[heights[:, k] <= high].sum() >= 0.9 - 1e-9


def labels_of(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_plot_lineages_draws_steps_of_tree(ax):
    tree = ct.simulate_tree(15, 1)
    assert ct.plot_lineages(tree, ax=ax) is ax
    steps = next(line for line in ax.get_lines() if line.get_label() == "tree")
    x, y = steps.get_data()
    assert x[0] == 0
    assert y.tolist() == [live_lineages(tree, height) for height in x]
    assert set(tree.merge_heights) <= set(x)
    assert ax.get_yscale() == "log"
    assert labels_of(ax) == ["prior, 95 %", "prior, mean", "tree"]
    ax.figure.canvas.draw()


def test_plot_lineages_draws_sample_band_and_median(ax):
    sample = related_sample(8, 30, 4)
    ct.plot_lineages(sample, ax=ax, level=0.5, prior=False)
    assert labels_of(ax) == ["sample, 50 %", "sample, median"]
    x, y = ax.get_lines()[0].get_data()
    for k, height in enumerate(x[1:-1]):
        heights = np.array([tree.merge_heights[k] for tree in sample.trees])
        assert sample.weights[heights <= height].sum() >= 0.5 - 1e-9
        assert sample.weights[heights < height].sum() < 0.5 + 1e-9
    assert y.tolist() == [8, 7, 6, 5, 4, 3, 2, 1, 1]


@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("prior", [True, False])
def test_plot_lineages_of_one_and_two_leaves(ax, n, prior):
    tree = ct.simulate_tree(n, 0)
    ct.plot_lineages(tree, ax=ax, prior=prior)
    ax.figure.canvas.draw()
    x, y = next(line.get_data() for line in ax.get_lines() if line.get_label() == "tree")
    assert (y[0], y[-1]) == (n, 1)
    assert set(tree.merge_heights) <= set(x)


def test_plot_lineages_on_log_scale(ax):
    tree = ct.simulate_tree(50, 2)
    ct.plot_lineages(tree, ax=ax, log_heights=True)
    assert ax.get_xscale() == "log"
    assert ax.get_xlim()[0] == tree.merge_heights[0]
    ax.figure.canvas.draw()


def test_plot_lineages_of_several_and_flat_trees(ax):
    flat = ct.Tree([[0, 1], [2, 3]], [0.0] * 5)
    ct.plot_lineages([flat, ct.simulate_tree(3, 1)], ax=ax)
    ax.figure.canvas.draw()
    n_lines = len(ax.get_lines())
    assert n_lines >= 2
    ct.plot_lineages(flat, ax=ax, prior=False, log_heights=True)
    ax.figure.canvas.draw()
    assert len(ax.get_lines()) > n_lines


@pytest.mark.parametrize(
    ("trees", "options", "sentence"),
    [
        ("((a:1,b:1);", {}, "trees type str Tree"),
        ([], {}, "trees type list Tree"),
        ([ct.simulate_tree(3, 0), 4], {}, "trees[1] type int Tree"),
        ([ct.simulate_tree(3, 0), ct.simulate_tree(4, 0)], {}, "trees[1] 4 leaves trees[0] 3"),
        (ct.simulate_tree(3, 0), {"level": 1.5}, "level 1.5 0 1"),
        (ct.simulate_tree(3, 0), {"level": "wide"}, "level wide"),
        (ct.simulate_tree(3, 0), {"ax": 3}, "ax type int matplotlib Axes"),
    ],
)
def test_plot_lineages_rejects_invalid_options(trees, options, sentence):
    with refused(sentence):
        ct.plot_lineages(trees, **options)
