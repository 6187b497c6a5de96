"""Heat maps, densities, co-clustering and traces: the content of the axes, against the table and the model."""

import io

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import LineCollection, PathCollection, QuadMesh
from matplotlib.colors import to_rgba
from scipy.cluster.hierarchy import fcluster

import coaltree as ct
from coaltree.errors import InputError, MissingDependencyError
from coaltree.plot import density as density_module
from coaltree.plot import heatmap as heatmap_module
from coaltree.plot.heatmap import MAX_DEVIATION
from coaltree.plot.style import LIGHT, MIXED, font_fallbacks
from coaltree.process.base import merge_log_likelihoods
from coaltree.table.encoding import encoded_columns
from coaltree.workflow.model import check_fitted_model
from named import refused

pytestmark = [
    pytest.mark.usefixtures("short_chains"),
    pytest.mark.filterwarnings("ignore::coaltree.errors.InputWarning"),
]

N = 24
ODD = ["<script>alert(1)</script>", "a,b", '"quoted"', "two\nlines", "🦊", "$x_1^$", "_hidden", "  ", "x" * 200]


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(4)
    group = np.repeat([0, 1], N // 2)
    frame = pd.DataFrame(
        {
            "length": rng.normal(3 * group, 0.5),
            "colour": np.where(rng.random(N) < 0.8, np.array(["red", "blue"])[group], "green"),
            "weight": rng.normal(100 - 40 * group, 6),
            "same": 1.0,
            "wings": rng.random(N) < 0.2 + 0.6 * group,
        },
        index=[f"row {i}" for i in range(N)],
    )
    frame.loc["row 3", "length"] = np.nan
    frame.loc["row 8", "colour"] = None
    return frame


@pytest.fixture(scope="module")
def model(frame):
    return ct.CoalescentClustering(noise=0.1).fit(frame)


@pytest.fixture(scope="module")
def numbers():
    tree = ct.simulate_tree(N, 3)
    return ct.Brownian([1.0, 4.0], 0.05).simulate(tree, 2) + [10.0, -5.0]


@pytest.fixture(scope="module")
def plain(numbers):
    return ct.CoalescentClustering(noise=0.1, real_process="brownian").fit(numbers)


@pytest.fixture(scope="module")
def sampled(numbers):
    parameters = {"inference": "smc", "n_particles": 20, "n_runs": 3, "n_clusters": 3}
    return ct.CoalescentClustering(**parameters, real_process="brownian", random_state=0).fit(numbers[:12])


def drawn_colors(axes, panel="table"):
    (mesh,) = (c for c in axes[panel].collections if isinstance(c, QuadMesh))
    mesh.update_scalarmappable()
    return mesh.get_facecolor()


def cell_colors(axes, n_columns):
    return drawn_colors(axes).reshape(-1, n_columns, 4)


def save(axes):
    figure = next(iter(axes.values())).figure if isinstance(axes, dict) else axes.figure
    figure.savefig(io.BytesIO(), format="png")


def alike(color, other):
    return np.allclose(color, other, atol=1e-6)


def real_color(value):
    return mpl.colormaps["RdBu_r"](0.5 + 0.5 * value / MAX_DEVIATION)


# -- the table beside the tree ---------------------------------------------------------------------------------------


def test_heatmap_cells_follow_tree_order(model, frame):
    axes = ct.plot_heatmap(model)
    names = [text.get_text() for text in axes["table"].get_xticklabels()]
    assert names == ["length", "colour", "weight", "wings"]  # "same" is constant
    colors = cell_colors(axes, 4)
    ordered = frame.iloc[model.tree_.leaf_order]
    assert [text.get_text() for text in axes["table"].get_yticklabels()] == list(ordered.index)
    for j, name in ((0, "length"), (2, "weight")):
        z = (ordered[name] - frame[name].mean()) / frame[name].std(ddof=0)
        for color, value in zip(colors[:, j], z, strict=True):
            if value == value:
                assert alike(color, real_color(value))
    shades = {"blue": LIGHT[0], "green": LIGHT[1], "red": LIGHT[2]}
    for color, value in zip(colors[:, 1], ordered["colour"], strict=True):
        if isinstance(value, str):
            assert alike(color, to_rgba(shades[value]))
    save(axes)


def test_heatmap_rows_align_with_leaves(model):
    axes = ct.plot_heatmap(model)
    axes["table"].figure.canvas.draw()
    assert axes["table"].get_ylim() == axes["dendrogram"].get_ylim()
    boxes = [axes[name].get_window_extent() for name in ("dendrogram", "table")]
    assert boxes[0].y0 == pytest.approx(boxes[1].y0)
    assert boxes[0].y1 == pytest.approx(boxes[1].y1)


def marks(axes):
    return {(round(x), round(y)) for line in axes["table"].get_lines() for x, y in zip(*line.get_data(), strict=True)}


@pytest.mark.parametrize("missing", ["mark", "fill"])
def test_heatmap_marks_missing_cells(model, missing):
    place = model.tree_.first_positions
    assert marks(ct.plot_heatmap(model, missing=missing)) == {(0, place[3]), (1, place[8])}


def test_heatmap_shows_missing_cells_blank_or_imputed(model, frame):
    place = model.tree_.first_positions
    blank = cell_colors(ct.plot_heatmap(model), 4)
    np.testing.assert_array_equal(blank[place[3], 0], blank[place[8], 1])
    filled = cell_colors(ct.plot_heatmap(model, missing="fill"), 4)
    whole = ct.CoalescentImputer(noise=0.1, real_process="ornstein-uhlenbeck").fit_transform(frame)
    z = (whole.loc["row 3", "length"] - frame["length"].mean()) / frame["length"].std(ddof=0)
    assert alike(filled[place[3], 0], real_color(z))
    shades = {"blue": LIGHT[0], "green": LIGHT[1], "red": LIGHT[2]}
    assert alike(filled[place[8], 1], to_rgba(shades[whole.loc["row 8", "colour"]]))


def test_collapsed_heatmap_shows_means_and_modes(model, frame):
    axes = ct.plot_heatmap(model, collapse=4, columns=["weight", "colour"])
    colors = cell_colors(axes, 2)
    flat = fcluster(model.linkage_, 4, criterion="maxclust")[model.tree_.leaf_order]
    z = ((frame["weight"] - frame["weight"].mean()) / frame["weight"].std(ddof=0)).iloc[model.tree_.leaf_order]
    ordered = frame["colour"].iloc[model.tree_.leaf_order]
    shades = {"blue": LIGHT[0], "green": LIGHT[1], "red": LIGHT[2]}
    for k, clade in enumerate(dict.fromkeys(flat.tolist())):
        assert alike(colors[k, 0], real_color(z[flat == clade].mean()))
        counts = ordered[flat == clade].value_counts()
        best = counts.index[counts == counts.max()]
        expected = [
            counts.max() / counts.sum() * np.array(to_rgba(shades[name])) + (1 - counts.max() / counts.sum())
            for name in best
        ]
        assert any(alike(color, colors[k, 1]) for color in expected)
    save(axes)


def test_heatmap_key_names_clusters_and_categories(model):
    axes = ct.plot_heatmap(model, labels=["east"] * 10 + ["west"] * (N - 10))
    lines = [text.get_text() for text in axes["key"].get_legend().get_texts()]
    assert lines == ["cluster", "east", "west", "colour", "blue", "green", "red", "wings", "False", "True"]


def test_heatmap_key_has_several_columns(short_chains):
    """Up to four; what does not fit is counted."""
    rng = np.random.default_rng(0)
    for n_columns, is_full in [(9, False), (40, True)]:
        frame = pd.DataFrame({f"c{j}": rng.choice(list("vwxyz"), 60) for j in range(n_columns)})
        axes = ct.plot_heatmap(ct.CoalescentClustering(n_clusters=12).fit(frame))
        legend = axes["key"].get_legend()
        headings = [
            text.get_text() for text in legend.get_texts() if text.get_fontweight() == "bold" and text.get_text()
        ]
        if is_full:
            hidden = n_columns - (len(headings) - 2)
            assert headings[-1] == f"and {hidden} columns more"
            assert 0 < hidden < 25
        else:
            assert headings == ["cluster", *frame.columns]
        axes["key"].figure.canvas.draw()
        box = legend.get_window_extent()
        assert box.x1 <= axes["key"].figure.bbox.x1 + 1
        assert box.y0 >= axes["key"].figure.bbox.y0 - 1
        plt.close("all")


def test_density_plot_names_clusters(short_chains):
    X = np.random.default_rng(0).normal(size=(40, 2))
    model = ct.CoalescentClustering(n_clusters=10).fit(X)
    ax = ct.plot_density(model, resolution=8)
    legend = ax.get_legend()
    assert [text.get_text() for text in legend.get_texts()] == [str(k) for k in range(10)]
    assert len({line.get_color() for line in legend.get_lines()}) == 10
    ax.figure.canvas.draw()
    assert legend.get_window_extent().y1 <= ax.figure.bbox.y1
    assert ct.plot_density(model, resolution=8, tree=False).get_legend() is None
    plt.close("all")


def test_heatmap_draws_rare_categories_grey():
    frame = pd.DataFrame({"c": [f"c{i % 9}" for i in range(30)] + ["rare", "odd"], "x": np.arange(32.0)})
    model = ct.CoalescentClustering().fit(frame)
    axes = ct.plot_heatmap(model, columns="c")
    lines = [text.get_text() for text in axes["key"].get_legend().get_texts()]
    assert lines[-1] == "3 others"
    at = model.tree_.first_positions[[30, 31]]
    assert alike(cell_colors(axes, 1)[at, 0], to_rgba(MIXED))


def test_heatmap_shortens_odd_names():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(9, 9)), columns=ODD, index=[f"{name}!" for name in ODD])
    frame["<b>kind</b>"] = ODD
    model = ct.CoalescentClustering(n_clusters=2, categorical_features=["<b>kind</b>"]).fit(frame)
    with font_fallbacks():
        axes = ct.plot_heatmap(model, labels=ODD)
        save(axes)
    names = [text.get_text() for text in axes["table"].get_xticklabels()]
    assert names[:3] == ODD[:3]
    assert "\n" not in "".join(names)
    assert all(len(name) <= 30 for name in names)


@pytest.mark.parametrize("n", [1, 2])
def test_heatmap_of_one_and_two_rows(n):
    model = ct.CoalescentClustering().fit(np.array([[0.0, 1.0], [2.0, 5.0]])[:n])
    if n == 1:
        with refused("column table"):
            ct.plot_heatmap(model)
        with refused("x y real columns none"):
            ct.plot_density(model)
    else:
        save(ct.plot_heatmap(model))
        save(ct.plot_density(model, resolution=8))


def test_heatmap_axes_option(model):
    figure = plt.figure(figsize=(8, 5))
    panels = figure.subplot_mosaic([["dendrogram", "table", "key"]])
    assert ct.plot_heatmap(model, axes=panels) == panels
    save(panels)
    with refused("axes mapping dendrogram table key matplotlib Axes"):
        ct.plot_heatmap(model, axes=panels["table"])
    with pytest.raises(InputError, match=r"axes\['key'\] is of type int"):
        ct.plot_heatmap(model, axes=panels | {"key": 3})


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"missing": "hide"}, "missing hide mark fill"),
        ({"columns": ["length", "same"]}, "columns same"),
        ({"columns": []}, "columns none"),
        ({"collapse": 0}, "collapse 0"),
        ({"labels": [1, 2]}, "label"),
    ],
)
def test_invalid_heatmap_options_are_rejected(model, options, sentence):
    with refused(sentence):
        ct.plot_heatmap(model, **options)


@pytest.mark.parametrize("picture", [ct.plot_heatmap, ct.plot_density])
def test_plots_reject_invalid_models(picture):
    with pytest.raises(InputError, match="has not been fitted; call its fit"):
        picture(ct.CoalescentClustering())
    with refused("model type Tree fitted CoalescentClustering"):
        picture(ct.simulate_tree(3, 0))


def test_heatmap_rejects_too_many_columns(model, monkeypatch):
    monkeypatch.setattr(heatmap_module, "MAX_COLUMNS", 2)
    with refused("4 columns 2"):
        ct.plot_heatmap(model)
    ct.plot_heatmap(model, columns=["length", "wings"])


# -- densities ---------------------------------------------------------------------------------------------------------


def test_plot_density_matches_score_samples(model, frame):
    columns = {column.name: column for column in encoded_columns(model.encoding_)}
    pair = columns["weight"], columns["length"]
    codes = [np.array([-1.0, 0.5]), np.array([0.0, 0.3, 1.0])]
    units = [column.scale.decode(code) for column, code in zip(pair, codes, strict=True)]
    predicted = density_module._density(check_fitted_model(model), pair, units, 4)
    densities = np.empty((3, 2))
    for i, length in enumerate(units[1]):
        for j, weight in enumerate(units[0]):
            new = frame.iloc[:1].assign(length=length, weight=weight, colour=None, wings=None)
            densities[i, j] = np.exp(model.score_samples(new)[0])
    np.testing.assert_allclose(predicted, densities / densities.max())


@pytest.mark.parametrize("power", [1, 3])
def test_density_contours_contain_stated_shares(power):
    x = np.linspace(-1, 1, 201)
    x, y = 5 * np.sign(x) * np.abs(x) ** power, 5 * x  # at even distances and at others
    density = np.exp(-0.5 * (y[:, None] ** 2 + x**2))
    levels = density_module._levels(density, [x, y], np.array([0.5, 0.9]))
    # of two standard normals, the area that holds a share p is a disc: the density at its edge is (1 - p) / 2 pi
    assert levels == pytest.approx([0.1, 0.5], rel=0.03)


@pytest.mark.usefixtures("short_chains")
@pytest.mark.parametrize("standardize", [True, "power"])
def test_plot_density_stays_on_the_side_of_zero_of_the_column(standardize):
    rng = np.random.default_rng(0)
    mass = np.exp(1.5 * rng.normal(size=40))
    frame = pd.DataFrame({"mass": mass, "debt": -mass[::-1], "change": rng.normal(size=40)})
    model = ct.CoalescentClustering(standardize=standardize).fit(frame)
    ax = ct.plot_density(model, "mass", "debt", resolution=8)
    assert ax.get_xlim()[0] == 0
    assert ax.get_xlim()[1] > mass.max()
    assert ax.get_ylim()[0] < -mass.max()
    assert ax.get_ylim()[1] == 0
    low, high = ct.plot_density(model, "change", "mass", resolution=8).get_xlim()
    assert low < frame["change"].min() < frame["change"].max() < high


def test_plot_density_places_leaves_and_merges(plain, numbers):
    ax = ct.plot_density(plain, resolution=12)
    (points,) = (c for c in ax.collections if isinstance(c, PathCollection))
    np.testing.assert_allclose(points.get_offsets(), numbers)
    scale = numbers.std(axis=0)
    table = (numbers - numbers.mean(axis=0)) / scale
    states = ct.Beliefs(plain.tree_, table, plain.process_).nodes().mean * scale + numbers.mean(axis=0)
    states[:N] = numbers
    (lines,) = (c for c in ax.collections if isinstance(c, LineCollection))
    expected = [[states[child], states[N + k]] for k, pair in enumerate(plain.children_) for child in pair]
    np.testing.assert_allclose(lines.get_segments(), expected)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("x0", "x1")
    save(ax)


def test_plot_density_column_options(model):
    ax = ct.plot_density(model, "weight", "length", resolution=8, tree=False)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("weight", "length")
    assert not any(isinstance(c, LineCollection) and not hasattr(c, "levels") for c in ax.collections)
    save(ax)
    save(ct.plot_density(model, resolution=8))  # there are just two real columns


@pytest.mark.parametrize(
    ("arguments", "options", "sentence"),
    [
        (("weight",), {}, "x y real columns"),
        (("weight", "colour"), {}, "y colour real columns length weight"),
        (("weight", "weight"), {}, "x y weight columns"),
        ((), {"resolution": 1}, "resolution 1 points 2 1000"),
        ((), {"shares": [0.5, 2]}, "shares [0.5 2] 0 1"),
        ((), {"ax": "here"}, "ax type str"),
    ],
)
def test_invalid_density_plot_options_are_rejected(model, arguments, options, sentence):
    with refused(sentence):
        ct.plot_density(model, *arguments, **options)


# -- samples -----------------------------------------------------------------------------------------------------------


def test_plot_co_clustering_follows_tree_order(sampled):
    axes = ct.plot_co_clustering(sampled)
    (mesh,) = (c for c in axes["matrix"].collections if isinstance(c, QuadMesh))
    order = sampled.tree_.leaf_order
    expected = sampled.sample_.co_clustering(n_clusters=3)
    draws = np.asarray(mesh.get_array()).reshape(12, 12)
    for i in range(12):
        for j in range(12):
            assert draws[i, j] == expected[order[i], order[j]]
    assert [text.get_text() for text in axes["matrix"].get_yticklabels()] == [str(i) for i in order]
    save(axes)


def test_plot_co_clustering_of_sample(sampled):
    axes = ct.plot_co_clustering(sampled.sample_, n_clusters=2)
    (mesh,) = (c for c in axes["matrix"].collections if isinstance(c, QuadMesh))
    order = sampled.sample_.ccd0().leaf_order
    expected = sampled.sample_.co_clustering(n_clusters=2)[np.ix_(order, order)]
    np.testing.assert_array_equal(np.asarray(mesh.get_array()).reshape(12, 12), expected)


def test_invalid_co_clustering_options_are_rejected(plain):
    with refused("sample trees TreeSample"):
        ct.plot_co_clustering(plain)
    huge = ct.TreeSample([ct.simulate_tree(3001, 0)])
    with refused("sample 3,001 rows 3,000"):
        ct.plot_co_clustering(huge, n_clusters=2)
    with pytest.raises(InputError, match="n_clusters or height"):
        ct.plot_co_clustering(ct.TreeSample([ct.simulate_tree(3, 0)]))
    save(ct.plot_co_clustering(ct.TreeSample([ct.simulate_tree(1, 0)]), n_clusters=1))


def test_evidence_trace_of_one_particle_sums_merges(numbers):
    process = ct.Brownian([1.0, 4.0], 0.1)
    result = ct.smc(numbers[:8], process, "prior-prior", 1, threshold=0.0, random_state=5)
    log_z = merge_log_likelihoods(process, result.trees[0], numbers[:8]).log_z
    np.testing.assert_allclose(result.log_evidence_traces[0], np.cumsum(log_z))


def test_evidence_traces_end_at_evidence(sampled):
    sample = sampled.sample_
    np.testing.assert_array_equal(sample.log_evidence_traces[:, -1], sample.run_log_evidences)
    assert sample.runs.tolist() == [0] * 20 + [1] * 20 + [2] * 20


def test_plot_evidence_draws_traces(sampled):
    sample = sampled.sample_
    axes = ct.plot_evidence(sampled)
    for panel, expected in (("evidence", sample.log_evidence_traces), ("ess", sample.run_ess)):
        lines = [line.get_ydata() for line in axes[panel].get_lines() if line.get_linestyle() != "None"]
        np.testing.assert_array_equal(lines, expected)
    dots = [line.get_xdata() for line in axes["ess"].get_lines() if line.get_linestyle() == "None"]
    assert [(x - 1).tolist() for x in dots] == [np.flatnonzero(run).tolist() for run in sample.resampled]
    assert f"{sample.log_evidence:.6g}" in axes["evidence"].get_title(loc="left")
    save(axes)
    for n in (1, 2):
        save(ct.plot_evidence(ct.smc(np.zeros((n, 1)), ct.Brownian(noise=1.0), n_particles=2, random_state=0)))


def test_plot_evidence_rejects_results_without_traces(sampled):
    with refused("result type Tree smc"):
        ct.plot_evidence(ct.simulate_tree(3, 0))
    with refused("result type TreeSample smc"):
        ct.plot_evidence(ct.TreeSample(sampled.sample_.trees))


def test_plot_evidence_of_loaded_model(sampled, tmp_path):
    sampled.save(tmp_path / "m")
    before, after = (ct.plot_evidence(model) for model in (sampled, ct.load_model(tmp_path / "m")))
    for panel in ("evidence", "ess"):
        draws = [[line.get_xydata().tolist() for line in axes[panel].get_lines()] for axes in (before, after)]
        assert draws[0] == draws[1]
        assert len(draws[0]) >= 3
    assert before["evidence"].get_title(loc="left") == after["evidence"].get_title(loc="left")


@pytest.mark.parametrize(
    "draw",
    [
        lambda model: ct.plot_heatmap(model),
        lambda model: ct.plot_density(model),
        lambda model: ct.plot_lineages(model.tree_),
    ],
)
def test_missing_matplotlib_has_install_hint(plain, monkeypatch, draw):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    with refused("matplotlib pip install coaltree[plot]", MissingDependencyError):
        draw(plain)
