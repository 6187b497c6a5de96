"""Wrong arguments of plots, metrics and tree functions: one message that names the argument."""

import numpy as np
import pandas as pd
import pytest

import coaltree as ct
from coaltree.errors import InputError

TREE = ct.simulate_tree(8, 0)
ARRAY, OBJECT = np.zeros((2, 2)), object()


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=8), "b": rng.normal(size=8), "c": list("xyxyxyxy")})
    return ct.CoalescentClustering(n_clusters=2, random_state=0).fit(frame)


@pytest.fixture(scope="module")
def sample():
    return ct.TreeSample([ct.simulate_tree(8, k) for k in range(6)])


CASES = [
    *(("dendrogram", name, ARRAY) for name in ("orientation", "layout", "leaf_names", "max_leaf_names", "linewidth")),
    *(("dendrogram", "support", value) for value in (3, {"a": 1}, [0.5] * 8, "yes")),
    *(("dendrogram", "labels", value) for value in (3, "ab", [1, 2], ARRAY, OBJECT, {0: 1}, [None] * 8)),
    *(("dendrogram", "colors", value) for value in ("no colour", 3, ARRAY)),
    *(("heatmap", "columns", value) for value in (3, ARRAY, ["d"], [], [None])),
    *(("heatmap", "labels", value) for value in (3, "ab", [1, 2], OBJECT)),
    *(
        ("heatmap", "colors", value)
        for value in ("no colour", 3, b"x", ARRAY, {0: "red"}, {0: "red", 1: "no colour"}, [])
    ),
    ("heatmap", "missing", ARRAY),
    ("heatmap", "model", ct.CoalescentClustering()),
    *(("density", name, value) for name in ("x", "y") for value in ([], 3, None, "c", OBJECT)),
    *(("density", "tree", value) for value in (ARRAY, 3, "yes")),
    ("density", "model", None),
    *(("lineages", name, value) for name in ("prior", "log_heights") for value in (ARRAY, "yes")),
    *(("lineages", "color", value) for value in (3, ARRAY, "no colour")),
    *(("lineages", "level", value) for value in (ARRAY, 1, "0.5")),
    *(("tanglegram", "titles", value) for value in (3, ARRAY, [1, 2], "ab", ["a"])),
    *(("tanglegram", "labels", value) for value in (3, [1, 2], OBJECT)),
    ("tanglegram", "untangle", ARRAY),
    *(("trees", "alpha", value) for value in ("x", ARRAY, 0, 2)),
    *(("trees", name, ARRAY) for name in ("orientation", "leaf_names", "summary", "max_trees")),
    *(("co_clustering", "sample", value) for value in (None, TREE, 3)),
    *(("traces", "result", value) for value in (None, TREE, 3)),
    *(("evidence", "result", value) for value in (None, TREE, 3)),
]


@pytest.mark.parametrize(("plot", "name", "value"), CASES)
def test_wrong_argument_of_plot_is_named(model, sample, plot, name, value):
    right = {
        "dendrogram": {"tree": TREE},
        "heatmap": {"model": model},
        "density": {"model": model, "x": "a", "y": "b", "resolution": 4},
        "lineages": {"trees": TREE},
        "tanglegram": {"left": TREE, "right": TREE},
        "trees": {"sample": sample},
    }
    if name == "colors":
        right["dendrogram"]["labels"] = [0, 1] * 4
    with pytest.raises(InputError) as error:
        getattr(ct, f"plot_{plot}")(**right.get(plot, {}) | {name: value})
    assert name.removesuffix("s") in str(error.value)


def test_number_of_filled_tables_is_limited_by_memory():
    table = pd.DataFrame({"a": [0.0, 1.0, np.nan, 3.0], "b": [1.0, 2.0, 3.0, 5.0]})
    imputer = ct.CoalescentImputer(random_state=0).fit(table)
    with pytest.raises(InputError, match=r"draws.*memory"):
        imputer.sample(table, n_draws=10**15)


@pytest.mark.parametrize("value", [3, "ab", [1, 2], ARRAY, OBJECT])
def test_wrong_names_and_labels_are_rejected(value, sample):
    for call, word in (
        (lambda: TREE.rename(value), "leaf"),
        (lambda: TREE.reorder(value), "leaf"),
        (lambda: ct.metrics.subtree_score(TREE, value), "label"),
        (lambda: ct.metrics.dendrogram_purity(TREE, [0, 1] * 4, weighting=value), "weighting"),
        (lambda: ct.Tree.from_linkage(value), "linkage matrix"),
        (lambda: sample.summarize(value), "summary"),
        (lambda: sample.mcc(heights=value), "heights"),
    ):
        with pytest.raises(InputError, match=word):
            call()
