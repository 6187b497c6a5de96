"""Text and HTML representations: short, with all text of users escaped."""

import sys
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import sklearn

import coaltree as ct
from coaltree import _progress
from coaltree._html import facts_html, rows_html, shorten_value
from coaltree.predict.results import CategoricalCells, RealCells

pytestmark = [
    pytest.mark.usefixtures("short_chains"),
    pytest.mark.filterwarnings("ignore::coaltree.errors.InputWarning"),
]

EVIL = "<script>alert(1)</script>"
SHOWN = [EVIL, "a,b", '"quoted"', "two\nlines", "🦊", "x" * 500, "y", "z", "w", "v", "u", "t"]


class Tags(HTMLParser):
    """Notes the tags of a text and whether all are closed."""

    def __init__(self, text):
        super().__init__()
        self.seen, self.open = set(), []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.seen.add(tag)
        if tag not in ("br", "path", "input"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen.add(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def check(text, most=20_000):
    tags = Tags(text)
    assert not tags.open
    assert "script" not in tags.seen
    assert len(text) < most


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {EVIL: rng.normal(size=12), "kind": [EVIL, "a,b"] * 6, "size": rng.normal(size=12)}, index=SHOWN
    )
    frame.iloc[0, 2] = np.nan
    return frame


@pytest.fixture(scope="module")
def model(frame):
    return ct.CoalescentClustering().fit(frame)


@pytest.fixture(scope="module")
def imputer(frame):
    return ct.CoalescentImputer().fit(frame)


def test_html_representations(model, imputer, frame):
    X = np.random.default_rng(0).normal(size=(len(SHOWN), 2))
    result = ct.greedy(X, ct.Brownian(), leaf_names=SHOWN)
    sample = ct.smc(X, ct.Brownian(), n_particles=3, n_runs=2, leaf_names=SHOWN, random_state=0)
    cells = imputer.predictive(frame)
    displayed = [result, sample, ct.TreeSample(sample.trees), result.tree, model.place(frame), cells, *cells.values()]
    for thing in [*displayed, model.process_, *(part for part, _ in model.process_.parts)]:
        check(thing._repr_html_())
        assert len(repr(thing)) < 600
        assert "\n" not in repr(thing)


def test_html_of_results():
    X = np.array([[0.0], [0.2], [3.0]])
    result = ct.greedy(X, ct.Brownian(2.0, 0.25))
    text = result._repr_html_()
    assert shorten_value(result.log_joint) in text
    assert "Brownian(variance=2, noise=0.25)" in text
    assert "<svg" in text
    sample = ct.smc(X, ct.Brownian(), n_particles=4, n_runs=2, random_state=0)
    assert shorten_value(sample.log_evidence) in sample._repr_html_()
    assert shorten_value(sample.log_evidence_se) in sample._repr_html_()


def test_html_of_large_objects_is_short():
    n = 1_000_000
    cells = RealCells(np.zeros(n), np.zeros(n), np.zeros(n, dtype=bool))
    assert repr(cells) == "<RealCells: 1,000,000 rows, 0 missing>"
    check(cells._repr_html_(), 2_000)
    assert "999,990 more rows" in cells._repr_html_()
    states = ct.Beliefs(ct.simulate_tree(200, 0), np.zeros((200, 1)), ct.Brownian(noise=1.0)).nodes()
    assert repr(states) == "<Predictions: 399 rows, 1 real and 0 categorical columns>"


def test_repr_of_column_without_categories():
    cells = CategoricalCells((), np.zeros((2, 0)), np.ones(2, dtype=bool))
    assert repr(cells) == "<CategoricalCells: 2 rows, 2 missing, categories []>"
    check(cells._repr_html_())


def test_process_repr_shows_parameters():
    assert repr(ct.Brownian([1.0, 2.5], 0.1)) == "Brownian(variance=[1, 2.5], noise=0.1)"
    assert repr(ct.Brownian(np.ones(50))) == "Brownian(variance=<(50,) array>, noise=0)"
    assert repr(ct.Multinomial([0.5, 2.0])) == "Multinomial(rate=[0.5, 2], equilibrium=None)"
    text = ct.OrnsteinUhlenbeck(0.5, [1.0, -2.0])._repr_html_()
    assert "[1, -2]" in text
    check(ct.Multinomial(1.0, [[0.5, 0.5], [0.1, 0.9]])._repr_html_())
    assert "[0.1, 0.9]" in ct.Multinomial(1.0, [[0.5, 0.5], [0.1, 0.9]])._repr_html_()


def test_html_has_no_control_characters():
    hostile = "ab\u202ecd23\x1b[31m"
    tree = ct.simulate_tree(3, random_state=0).rename([f"{hostile}{k}" for k in range(3)])
    for text in [tree._repr_html_(), facts_html(hostile, {hostile: hostile}), rows_html("", {hostile: [hostile]}, 1)]:
        assert text.count(r"ab\u202ecd23\u001b[31m") >= 2
        assert text.isprintable()


def test_shorten_value_shortens_numbers_and_texts():
    assert shorten_value("x" * 100) == "x" * 79 + "…"
    assert shorten_value([1, 2.0, "a"]) == "[1, 2, a]"
    assert shorten_value(list(range(100))) == "<100 values>"
    assert shorten_value(np.float64(1e-9)) == "1e-09"
    assert shorten_value(None) == "None"


def test_html_tables_are_truncated():
    text = facts_html("t", {f"fact {k}": k for k in range(100)})
    assert "fact 19" in text
    assert "fact 20" not in text
    assert "and 80 more" in text
    text = rows_html("t", {f"c{j}": range(50) for j in range(40)}, 50)
    assert "<th>c11</th>" in text
    assert "<th>c12</th>" not in text
    assert "40 more rows and 28 more columns" in text


# -- estimators ---------------------------------------------------------------------------------------------------------


def test_estimator_html_keeps_scikit_learn_diagram(model):
    fresh = ct.CoalescentClustering(n_clusters=2)
    assert repr(fresh) == "CoalescentClustering(n_clusters=2)"
    plain = fresh._repr_html_()
    assert "sk-" in plain
    assert "root height" not in plain
    for text in (model._repr_html_(), model._repr_mimebundle_()["text/html"]):
        assert "sk-" in text
        assert "rows 12, columns 3, root height" in text
        assert f"clusters {model.n_clusters_}" in text
        assert EVIL not in text
    assert "text/plain" in model._repr_mimebundle_()


def test_text_display_has_no_html(model):
    with sklearn.config_context(display="text"):
        assert list(model._repr_mimebundle_()) == ["text/plain"]
        assert not hasattr(model, "_repr_html_")


def test_imputer_html_omits_clusters(imputer):
    assert "root height" in imputer._repr_html_()
    assert "clusters" not in imputer._repr_html_().rsplit("<div>", 1)[1]


def test_html_shows_merges_at_height_zero(model, imputer):
    same = ct.CoalescentClustering(noise=0).fit(np.repeat([[0.0], [1.0], [7.0]], 10, axis=0))
    assert "merges at height 0 27, clusters" in same._repr_html_()
    assert "merges at height 0" not in model._repr_html_()
    assert "merges at height 0" not in imputer._repr_html_()


def test_display_does_not_sample_trees():
    """The diagram of scikit-learn 1.9 asks for the value of every name that `dir` lists."""
    model = ct.CoalescentClustering().fit(np.random.default_rng(0).normal(size=(30, 3)))
    assert "labels_" in dir(model)
    model._repr_html_()
    model._repr_mimebundle_()
    assert model._model.known_predictor is None
    model.predict([[0.0, 0.0, 0.0]])
    assert "prediction_parameters_" in dir(model)
    assert "labels_" not in dir(ct.CoalescentClustering())


def test_progress_is_one_line_with_the_remaining_time(monkeypatch, capsys):
    seconds = iter([0.0, 1.0, 30.0, 40.0])
    monkeypatch.setattr(_progress.time, "monotonic", lambda: next(seconds))
    show = _progress.print_progress("Fit")
    show(0.1, "merging")  # after a second
    show(0.75, "merging")
    show(1.0, "")
    assert capsys.readouterr().err == "\r[Fit]  75 % merging, about 10 s left\r[Fit] 100 % after 40 s\n"


def test_progress_changes_one_output_of_a_notebook(monkeypatch, capsys):
    outputs = []

    class Handle:
        def __init__(self, content):
            outputs.append(content["text/plain"])

        def update(self, content, raw):
            outputs[-1] = content["text/plain"]

    module = SimpleNamespace(
        get_ipython=lambda: SimpleNamespace(kernel=1),
        display=SimpleNamespace(display=lambda content, raw, display_id: Handle(content)),
    )
    monkeypatch.setitem(sys.modules, "IPython", module)
    monkeypatch.setattr(_progress, "QUIET_SECONDS", 0.0)
    show = _progress.print_progress("Fit")
    for share in (0.2, 0.4, 1.0):
        show(share, "merging")
    assert len(outputs) == 1
    assert outputs[0].startswith("[Fit] 100 %")
    assert capsys.readouterr().err == ""
