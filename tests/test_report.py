"""The report on a model: its facts against independent computations, its page, and its errors."""

import base64
import hashlib
import math
import re
import sys
from dataclasses import replace
from html import unescape

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

import coaltree as ct
from coaltree.errors import MissingDependencyError
from coaltree.estimators.load import to_imputer
from coaltree.persist.model import read_model_record
from coaltree.report.build import report_facts, report_page
from coaltree.report.facts import SampleFacts
from coaltree.report.page import embedded_json, page, picture_data
from coaltree.report.text import describe_cohesion, describe_separation
from command_line import check_sentence, command_in, contents
from named import check_named, refused
from report_pages import HOSTILE, Page, mixed_frame, number

pytestmark = [
    pytest.mark.usefixtures("short_chains"),
    pytest.mark.filterwarnings("ignore::coaltree.errors.InputWarning"),
]


@pytest.fixture(scope="module")
def frame():
    return mixed_frame(names=HOSTILE)


@pytest.fixture(scope="module")
def model(frame):
    return ct.CoalescentClustering(n_clusters=3).fit(frame)


@pytest.fixture(scope="module")
def facts(model):
    return report_facts(model._model, "Animals")


@pytest.fixture(scope="module")
def document(facts):
    return Page(page(facts))


# -- the file ----------------------------------------------------------------------------------------


def test_report_is_reproducible(model, frame, tmp_path):
    model.report(tmp_path / "a.html")
    model.report(str(tmp_path / "b.html"))
    model.save(tmp_path / "model.coaltree")
    ct.load_model(tmp_path / "model.coaltree").report(tmp_path / "c.html")
    first, *others = (path.read_bytes() for path in sorted(tmp_path.glob("*.html")))
    assert len(others) == 2
    assert all(other == first for other in others)
    again = [report_page(ct.CoalescentClustering().fit(frame)._model) for _ in range(2)]
    assert again[0] == again[1]


def test_report_makes_no_requests(document):
    assert set(document.links) <= {"data:,", "#tree", "#clusters", "#support", "#parameters", "#checks"}
    assert "iframe" not in document.tags
    assert document.tags.count("link") == 1


def test_content_security_policy_allows_own_scripts_only(document, facts):
    """The policy comes before the first script and has the hash of each, computed here by the definition."""
    raw = page(facts)
    policy = re.search(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', raw)
    assert policy.start() < raw.index("<script")
    rules = dict(rule.split(maxsplit=1) for rule in unescape(policy.group(1)).split("; "))
    assert rules["default-src"] == "'none'"
    assert "http" not in policy.group(1)
    allowed = rules["script-src"].split()
    scripts = [text for name, text in document.scripts.items() if name != "data"]
    digests = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in scripts]
    assert allowed == [f"'sha256-{digest}'" for digest in digests]
    assert not [name for name in document.attributes if name.startswith("on")]


def test_hostile_names_are_escaped_everywhere():
    """Names of rows, columns and categories and the title are shown as text."""
    rng = np.random.default_rng(2)
    n = 21
    columns = {name: rng.normal(size=n) for name in HOSTILE[:3]}
    columns |= {name: rng.choice(np.array(HOSTILE, dtype=object), n) for name in HOSTILE[3:]}
    rows = [f"{HOSTILE[i % 7]} {i}" for i in range(n)]
    model = ct.CoalescentClustering().fit(pd.DataFrame(columns, index=rows))
    document = Page(report_page(model._model, HOSTILE[1]))
    assert not {"img", "iframe", "b", "i"} & set(document.tags)
    assert set(document.links) <= {"data:,", "#tree", "#clusters", "#support", "#parameters", "#checks"}
    assert not [name for name in document.attributes if name.startswith("on")]
    assert document.tags.count("script") == 4
    assert HOSTILE[1] in document.text
    assert document.data["names"] == rows


def test_names_are_escaped_as_text(facts, document, frame):
    raw = page(facts)
    for name in HOSTILE:
        assert " ".join(name.split()) in document.text
    assert "img" not in document.tags
    assert "<script>alert" not in raw
    assert "<i>years" not in raw
    assert document.data["names"] == list(frame.index)
    assert [column["name"] for column in document.data["columns"]] == [
        "mass",
        "length",
        "<i>years</i>",
        "cover",
        "flies",
    ]


def test_embedded_json_cannot_end_element():
    text = embedded_json(["</script><!--", "a & b", "\u2028\u2029", "\ud800"])
    assert not {"<", ">", "&", "\u2028", "\u2029", "\ud800"} & set(text)


def test_report_titles(model, facts, document):
    assert "<h1>Animals</h1>" in page(facts)
    assert "<h1>A table of 36 rows</h1>" in report_page(model._model)
    assert "<h1>a &lt; b</h1>" in report_page(model._model, "a < b")
    assert "36 rows, 5 columns, 6 missing cells. 3 clusters, as requested." in document.text


# -- the picture -----------------------------------------------------------------------------------


def test_report_data_have_tree_and_table(model, frame, document):
    data, tree = document.data, model.tree_
    assert data["children"] == tree.children.ravel().tolist()
    assert data["heights"] == pytest.approx(tree.heights.tolist(), rel=1e-5)
    assert data["clusters"][: len(frame)] == model.labels_.tolist()
    for column in data["columns"]:
        values = frame[column["name"]]
        if "values" in column:
            actual = pd.Series([np.nan if value is None else value for value in column["values"]], index=frame.index)
            pd.testing.assert_series_equal(actual, values, check_names=False, rtol=1e-5)
            assert column["mean"] == pytest.approx(values.mean(), rel=1e-5)
            assert column["sd"] == pytest.approx(values.std(ddof=0), rel=1e-5)
        else:
            actual = [None if code < 0 else column["categories"][code] for code in column["codes"]]
            assert actual == [None if pd.isna(value) else value for value in values]


def test_report_values_keep_all_digits(frame, document):
    years = next(column for column in document.data["columns"] if column["name"] == "<i>years</i>")
    assert years["values"] == [None if pd.isna(value) else value for value in frame["<i>years</i>"]]


def test_report_fills_missing_cells_like_imputer(model, frame, document, tmp_path):
    model.save(tmp_path / "model.coaltree")
    known = to_imputer(read_model_record(tmp_path / "model.coaltree"), "the model").predictive(frame)
    for column in document.data["columns"]:
        values = known[column["name"]]
        assert [row for row, *_ in column["expected"]] == np.flatnonzero(values.missing).tolist()
        for row, *expected in column["expected"]:
            if "values" in column:
                assert expected[0] == pytest.approx(values.mean[row], abs=0.06 * values.sd[row])
                assert expected[1] == pytest.approx(values.sd[row], rel=0.05)
            else:
                assert expected[0] == values.probability[row].argmax()
                assert expected[1] == pytest.approx(values.probability[row].max(), rel=0.01)


def test_report_shows_differences_between_clades(model, frame, document):
    data, tree = document.data, model.tree_
    columns = data["columns"]
    for node in range(tree.n_leaves, tree.n_nodes - 1):
        inside = np.isin(np.arange(len(frame)), tree.leaves_below(node))
        effects = []
        for j, column in enumerate(columns):
            values = frame[column["name"]]
            if "values" in column:
                effects.append((abs(values[inside].mean() - values[~inside].mean()) / values.std(ddof=0), j))
            else:
                parts = [values[inside], values[~inside]]
                shares = [part.value_counts(normalize=True).reindex(column["categories"]).fillna(0) for part in parts]
                angles = [2 * np.arcsin(np.sqrt(part)) for part in shares]
                effects.append(((angles[0] - angles[1]).max(), j))
        effects = [(0.0 if math.isnan(effect) else effect, j) for effect, j in effects]
        best = [j for effect, j in sorted(effects, key=lambda pair: -pair[0])[:3] if effect >= 0.3]
        assert [entry[0] for entry in data["apart"][node]] == best
        for j, mean, others, code in data["apart"][node]:
            values = frame[columns[j]["name"]]
            if code >= 0:
                values = values.where(values.isna(), values == columns[j]["categories"][code]).astype(float)
            rounding = 1e-3 if code >= 0 else 0.06 * values.std()
            assert mean == pytest.approx(values[inside].mean(), abs=rounding)
            assert others == pytest.approx(values[~inside].mean(), abs=rounding)


# -- clusters ----------------------------------------------------------------------------------------


def test_report_cards_show_the_profile_in_words(model, frame, facts):
    """The three columns with the greatest evidence, then the others; means, shares and effects are those of pandas."""
    profile = model.profile()
    for cluster, card in enumerate(re.findall("<article.*?</article>", page(facts), re.DOTALL)):
        inside = model.labels_ == cluster
        tables = Page(card).tables_headed("Column", "Here", "Others")
        assert len(tables[0]) == 3
        lines = [row for table in tables for row in table]
        defining = profile[(profile.cluster == cluster) & (profile.evidence > 0)]
        assert [name.partition(" = ")[0] for name, *_ in lines] == defining.column.tolist()
        assert [number(row[-1]) for row in lines] == pytest.approx(defining.evidence.tolist(), rel=0.01)
        for name, here, others, effect, _ in lines:
            column, _, category = name.partition(" = ")
            values = frame[column]
            if category:
                values = values.where(values.isna(), values == category).astype(float)
            mean, other = values[inside].mean(), values[~inside].mean()
            center, _, spread = here.partition(" ± ")
            assert number(center) == pytest.approx(mean, rel=0.02, abs=0.06 * values.std())
            assert number(others) == pytest.approx(other, rel=0.02, abs=0.06 * values.std())
            if not category:
                assert number(spread) == pytest.approx(values[inside].std(ddof=0), rel=0.06)
            expected = (
                (mean - other) / values.std(ddof=0)
                if not category
                else 2 * (np.arcsin(mean**0.5) - np.arcsin(other**0.5))
            )
            assert number(effect) == pytest.approx(expected, abs=0.06)


def test_report_names_a_typical_row_and_the_probability_of_each_cluster(model, frame, document):
    """The typical row is near the middle of its cluster in every number."""
    for cluster in range(3):
        rows = frame[model.labels_ == cluster]
        name = re.search(rf"Cluster {cluster} .*?Typical row: (.*?) \. ", document.text)[1]
        assert name in rows.index
        for column in ("mass", "length"):
            assert abs(rows.loc[name, column] - rows[column].mean()) < 1.5 * rows[column].std()
        together = model.cluster_probabilities_[model.labels_ == cluster, cluster].mean()
        shown = re.search(
            rf"Cluster {cluster} {len(rows)} rows \(.*?\), together with probability (> )?([\d.]+) %", document.text
        )
        assert float(shown[2]) == pytest.approx(100 * together, abs=0.1)


def test_report_shows_cluster_cohesion(model):
    """For samples of trees; for a single tree the report gives heights instead."""
    document = Page(page(replace(report_facts(model._model), sample=SampleFacts(1, 1, 1.0, 0.0, None, None))))
    tree, ratios = model.tree_, model.log_ratios_
    for cluster in range(3):
        rows = np.flatnonzero(model.labels_ == cluster)
        top = next(k for k in range(tree.n_nodes) if set(tree.leaves_below(k)) == set(rows))
        above = tree.parents[top]
        inside, outside = ratios[top - tree.n_leaves], ratios[above - tree.n_leaves]
        messages = f"Separation from the rows next to it in the tree: {strength_of(-outside, outside)}."
        assert f"Cohesion: {strength_of(inside, inside)}. {messages}" in document.text
    assert document.data["ratios"][: tree.n_leaves] == [None] * tree.n_leaves
    assert document.data["ratios"][tree.n_leaves :] == pytest.approx(ratios.tolist(), rel=0.01, abs=0.01)


def strength_of(log_odds, log_ratio):
    factor = math.exp(min(log_odds, 50))
    if factor < 1.05:
        return f"none ({words_of(log_ratio)})"
    word = "weak" if factor < 3 else "clear" if factor < 20 else "strong" if factor < 100 else "very strong"
    return (
        f"{word} ({words_of(abs(log_ratio)).removeprefix('one tree explains them ').removesuffix(' better than two')})"
    )


@pytest.mark.parametrize(
    ("factor", "together", "apart"),
    [
        (24, "strong 24", "none 24"),
        (1 / 240, "none 240", "very strong 240"),
        (2.9, "weak 2.9", "none 2.9"),
        (3.1, "clear 3.1", "none 3.1"),
        (1, "none as well", "none as well"),
        (1e300, "very strong million", "none million"),
    ],
)
def test_cohesion_is_described_in_words(factor, together, apart):
    check_named(describe_cohesion(math.log(factor)), together)
    check_named(describe_separation(math.log(factor)), apart)
    assert ("very" in describe_cohesion(math.log(factor))) == ("very" in together)


def test_means_of_different_size_keep_significant_digits():
    table = pd.DataFrame({"x": [4.61, 4.7, 4.67, 4.66, 1e6, 1e6 + 3], "y": [0.0, 0.1, 0.2, 0.1, 9.0, 9.2]})
    document = report_of(table, n_clusters=2)
    rows = [row for values in document.tables_headed("Column", "Here", "Others") for row in values if row[0] == "x"]
    assert sorted([row[1].split()[0], row[2]] for row in rows) == [["1000000", "4.66"], ["4.66", "1000000"]]
    assert {entry[1] for values in document.data["apart"] if values for entry in values if entry[0] == 0} >= {4.66}


def test_long_category_names_are_shortened():
    long = "<b>" + "x" * 150 + " the end"
    cover = [long, "b", "b", "a", "a", long] * 4
    raw = report_page(ct.CoalescentClustering().fit(pd.DataFrame({"c": cover, "d": list("uvuvvv") * 4}))._model)
    (row,) = [row for row in Page(raw).tables_headed("Column", "Half height")[0] if row[0] == "c"]
    assert re.search("<b>xxxxxxxxxxxxxxxxxxxx…xxxx the end [0-9.]+ %", row[3])
    assert f'<span title="{long.replace("<", "&lt;").replace(">", "&gt;")}">' in raw
    words = [word for table in Page(raw).tables for line in table for cell in line for word in cell.split()]
    assert max(map(len, words)) < 40


def words_of(log_ratio):
    if abs(math.exp(abs(log_ratio)) - 1) < 0.05:
        return "one tree explains them as well as two"
    one, two = ("one tree explains", "two") if log_ratio > 0 else ("two trees explain", "one")
    factor = math.exp(abs(log_ratio))
    times = "more than a million" if factor > 1e6 else f"{float(f'{factor:.1e}'):,g}"
    return f"{one} them {times} times better than {two}"


def test_report_names_cluster_members(model, frame, document):
    for cluster in range(3):
        assert f"Cluster {cluster} {np.sum(model.labels_ == cluster)} rows" in document.text


# -- tables of all kinds -----------------------------------------------------------------------------


def report_of(table, **parameters):
    model = ct.CoalescentClustering(**parameters).fit(table)
    return Page(report_page(model._model))


def test_report_of_one_row():
    document = report_of(pd.DataFrame({"x": [1.0], "c": ["u"]}, index=["alone"]))
    assert "1 row, 2 columns" in document.text
    assert "too few to cluster" in document.text
    assert document.data["names"] == ["alone"]
    assert document.data["children"] == []
    assert not {"#tree", "#clusters", "#parameters", "#checks"} & set(document.links)


def test_report_of_two_rows():
    document = report_of(pd.DataFrame({"x": [1.0, 2.0]}, index=["a", "b"]))
    assert "2 rows, 1 column" in document.text
    assert document.data["children"] == [0, 1]
    assert "too few to cluster" in document.text
    assert "cluster," not in document.text
    assert document.tables == []


def test_report_lists_unused_columns(frame):
    table = frame[["mass", "cover"]].assign(empty=np.nan, same="earth", seven=7.0)
    document = report_of(table)
    assert "2 columns and 3 not used, 3 missing cells in the columns in use." in document.text
    assert "Not used, because all observed cells are the same or none is observed: empty, same, seven." in document.text


def test_report_of_identical_rows():
    document = report_of(pd.DataFrame({"x": [1.0, 1.0, 1.0]}))
    assert document.data["columns"] == []
    assert "No column has two different values, so there is nothing to fit." in document.text


def test_report_of_numbers_of_extreme_size(frame):
    rng = np.random.default_rng(0)
    table = frame[["cover"]].assign(
        huge=rng.choice([-1e300, 1e300], len(frame)),
        close=1 + 1e-15 * np.arange(len(frame)),
        tiny=rng.normal(0, 1e-300, len(frame)),
    )
    table.iloc[3] = None
    data = report_of(table).data
    huge = next(column for column in data["columns"] if column["name"] == "huge")
    assert set(huge["values"]) == {-1e300, 1e300, None}
    tiny = next(column for column in data["columns"] if column["name"] == "tiny")
    assert tiny["values"][0] == pytest.approx(table["tiny"].iloc[0], rel=1e-4, abs=0)


def test_report_with_empty_row(frame):
    table = frame[["mass", "cover"]].copy()
    table.iloc[5] = None
    data = report_of(table).data
    assert 5 in [row for row, *_ in data["columns"][0]["expected"]]


def test_report_of_categorical_table(frame):
    document = report_of(frame[["cover", "flies"]])
    assert [column["name"] for column in document.data["columns"]] == ["cover", "flies"]
    assert document.tables_headed("Column", "Half height", "Signal", "Long-run shares")
    assert not document.tables_headed("Column", "Mean")


def test_report_of_real_table(frame):
    complete = frame[["mass", "length"]].dropna()
    document = report_of(complete)
    assert not document.tables_headed("Column", "Half height", "Signal", "Long-run shares")
    assert "no missing cell" in document.text
    brownian = report_of(complete, real_process="brownian")
    assert brownian.tables_headed("Column", "Fitted standard deviation", "In the table")
    assert "half height" not in brownian.text


def test_report_with_full_covariance_hides_cells(frame):
    document = report_of(frame[["mass", "length"]].dropna(), covariance="full")
    assert "was hidden in turn" in document.text


def test_report_parameters_have_column_units(model, frame, document):
    rows = {row[0]: row[1:] for row in document.tables_headed("Column", "Mean")[0]}
    values = model.prediction_parameters_["mass"]
    assert number(rows["mass"][0]) == pytest.approx(values["mean"], abs=0.06 * values["sd"])
    assert number(rows["mass"][1]) == pytest.approx(values["sd"], rel=0.01)
    assert number(rows["mass"][2]) == pytest.approx(frame["mass"].std(ddof=0), rel=0.01)
    assert number(rows["mass"][3]) == pytest.approx(model.parameters_["mass"]["signal"], abs=0.01)
    assert len(rows["mass"]) == 4


def test_parameters_are_plain_numbers(model):
    values = {name: parameters for name, parameters in model.parameters_.items() if "sd" in parameters}
    assert {
        type(value) for parameters in values.values() for name, value in parameters.items() if name != "process"
    } == {float}
    assert {len(parameters) for parameters in values.values()} == {6}


def test_shared_parameters_are_listed_once(frame):
    model = ct.CoalescentClustering(covariance="diagonal").fit(frame)
    document, parameters = Page(report_page(model._model)), model.prediction_parameters_
    noise = {name: values["noise_sd"] / values["sd"] for name, values in parameters.items() if "sd" in values}
    assert len({round(ratio, 9) for ratio in noise.values()}) == 1
    share = noise["mass"] ** 2 / (1 + noise["mass"] ** 2)
    messages = re.findall("does not follow the tree: (.*?) of the variance of a cell", document.text)
    assert [number(text.strip("<> ")) for text in messages] == [pytest.approx(share, abs=1e-3, rel=0.01)]
    half = re.findall("the half height, (.*?): how far back", document.text)
    assert [float(text) for text in half] == [pytest.approx(math.log(2) / 2 / parameters["mass"]["rate"], rel=0.01)]


def test_report_collapses_thousands_of_leaves():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2500, 2)) + 8 * rng.integers(0, 3, (2500, 1))
    model = ct.CoalescentClustering(n_clusters=3, real_process="brownian").fit(X)
    document = Page(report_page(model._model))
    data = document.data
    assert len(data["names"]) == 50
    assert sum(data["counts"]) == 2500
    assert "2,500 leaves" in document.text
    assert "50 oldest clades" in document.text
    assert "2,500 rows" in document.text
    members = data["members"]
    assert sorted(name for values in members for name in values) == sorted(model.tree_.leaf_names)
    for tip, values in enumerate(members):
        assert len(values) == data["counts"][tip]
        rows = [int(name) for name in values]
        for j, column in enumerate(data["columns"]):
            assert column["values"][tip] == pytest.approx(X[rows, j].mean(), rel=1e-4, abs=1e-5)
    assert f"and {np.bincount(model.labels_)[0] - 300:,} more" in document.text


def test_report_of_deep_caterpillar(facts):
    n = 1500
    children = [[0, 1], *([n + k, k + 2] for k in range(n - 2))]
    tree = ct.Tree(children, np.concatenate([np.zeros(n), np.arange(1.0, n)]))
    nothing = replace(facts, tree=tree, labels=np.zeros(n, dtype=int), columns=(), log_ratios=np.zeros(n - 1))
    assert len(picture_data(nothing)["children"]) == 2 * (n - 1)


def test_report_shows_dates(frame, tmp_path):
    table = frame[["mass", "cover"]].copy()
    days = pd.Timestamp("2020-02-27") + pd.to_timedelta(
        np.arange(len(table)) % 3 * 40 + np.arange(len(table)), unit="D"
    )
    table["day"] = days.where(np.arange(len(table)) != 7)
    table["moment"] = days + pd.to_timedelta(np.arange(len(table)) * 91, unit="min")
    model = ct.CoalescentClustering(n_clusters=3).fit(table)
    document = Page(report_page(model._model))
    by_name = {column["name"]: column for column in document.data["columns"]}
    assert [by_name[name]["time"] for name in ("mass", "day", "moment")] == [False, True, True]
    epoch = pd.Timestamp("1970-01-01")
    for name in ("day", "moment"):
        results = [None if value is None else epoch + pd.Timedelta(days=value) for value in by_name[name]["values"]]
        assert [None if time is None else time.round("min") for time in results] == [
            None if pd.isna(time) else time for time in table[name]
        ]
    rows = {row[0]: row[1:] for row in document.tables_headed("Column", "Mean")[0]}
    column_values = model.prediction_parameters_["day"]
    assert abs(pd.Timestamp(rows["day"][0]) - epoch - pd.Timedelta(days=column_values["mean"])) < pd.Timedelta(days=1)
    assert rows["day"][1].endswith(" days")
    matches = [row for table in document.tables_headed("Column", "Here", "Others") for row in table if row[0] == "day"]
    assert matches
    for _, here, others, *_ in matches:
        mean, _, spread = here.partition(" ± ")
        rows = table["day"].groupby(model.labels_).agg(["mean", "std"])
        near = rows.iloc[(rows["mean"] - pd.Timestamp(mean)).abs().argmin()]
        assert abs(near["mean"] - pd.Timestamp(mean)) <= pd.Timedelta(days=1)
        assert number(spread.removesuffix(" days")) == pytest.approx(near["std"] / pd.Timedelta(days=1), rel=0.1)
        assert re.fullmatch(r"2020-\d\d-\d\d", others)
    values = dict(row[1:3] for row in document.tables_headed("Row", "Column", "Value")[0])
    assert {"day", "moment"} & set(values)
    assert all(re.fullmatch(r"2020-\d\d-\d\d( \d\d:\d\d)?", values[name]) for name in {"day", "moment"} & set(values))
    model.save(tmp_path / "model.coaltree")
    assert report_page(ct.load_model(tmp_path / "model.coaltree")._model) == report_page(model._model)


def test_report_shortens_long_names_with_full_title(frame):
    table = frame[["mass", "cover"]].set_axis([f"the very long name of one of the rows, number {i}" for i in range(36)])
    raw = report_page(ct.CoalescentClustering().fit(table)._model)
    row = Page(raw).tables_headed("Row", "Column", "Value")[0][0][0]
    assert row.startswith("the very long name of o…")
    assert row.endswith(f"number {row.split()[-1]}")
    assert len(row) == 36
    assert f'title="the very long name of one of the rows, number {row.split()[-1]}"' in raw


def test_report_shows_control_characters_as_escapes(frame):
    """Also in the data that scripts write into the page."""
    hostile = "ab\u202ecd23\x1b[31m"
    table = frame[["mass", "cover"]].set_axis([f"{hostile}{i}" for i in range(36)])
    table = table.rename(columns={"mass": f"mass{hostile}", "cover": f"cover{hostile}"})
    table.iloc[:, 1] = [f"{cell}{hostile}" for cell in table.iloc[:, 1]]
    raw = report_page(ct.CoalescentClustering().fit(table)._model, title=hostile)
    own = re.sub("<script>.*?</script>", "", raw, flags=re.DOTALL)
    assert r"<title>ab\u202ecd23\u001b[31m</title>" in own
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]", own)
    data = Page(raw).data
    shown = [*data["names"], *(column["name"] for column in data["columns"])]
    shown += [name for column in data["columns"] for name in column.get("categories", [])]
    assert len(shown) > 38
    assert all(r"ab\u202ecd23\u001b[31m" in name for name in shown)


# -- errors ------------------------------------------------------------------------------------------


def test_report_requires_fitted_model(tmp_path):
    with pytest.raises(NotFittedError):
        ct.CoalescentClustering().report(tmp_path / "report.html")
    assert not list(tmp_path.iterdir())


def test_unwritable_report_is_reported(model, tmp_path):
    with refused("written folder"):
        model.report(tmp_path)
    with refused("written file directory"):
        model.report(tmp_path / "nowhere" / "report.html")


@pytest.mark.parametrize("name", ["jinja2", "plotly"])
def test_missing_package_has_install_hint(model, tmp_path, monkeypatch, name):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingDependencyError) as error:
        model.report(tmp_path / "report.html")
    assert str(error.value) == (f'Reports need {name}, which is not installed; run: pip install "coaltree[report]"')
    assert not list(tmp_path.iterdir())


# -- the command line --------------------------------------------------------------------------------


@pytest.fixture
def command(model, tmp_path, monkeypatch, capsys):
    model.save(tmp_path / "model.coaltree")
    return command_in(tmp_path, monkeypatch, capsys)


def test_report_command_matches_python(command, model, tmp_path):
    assert command("report", "model.coaltree", "-o", "report.html", "--title", "Animals", "-q") == (0, "", "")
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == report_page(model._model, "Animals")


def test_report_command_rejects_invalid_models(command, frame, tmp_path):
    ct.CoalescentImputer().fit(frame).save(tmp_path / "imputer.coaltree")
    before = contents(tmp_path)
    check_sentence(
        command("report", "imputer.coaltree", "-o", "r.html"), "CoalescentImputer", "neither densities nor clusters"
    )
    check_sentence(command("report", "nothing.coaltree", "-o", "r.html"), "nothing.coaltree does not exist")
    check_sentence(command("report", "model.coaltree", "-o", "model.coaltree"), "is the model itself")
    check_sentence(command("report", "model.coaltree", "-o", "no/r.html"), "cannot be written")
    assert contents(tmp_path) == before


def test_fit_report_option_writes_report(command, frame, tmp_path, monkeypatch):
    frame.to_csv(tmp_path / "t.csv", index_label="name")
    code, out, err = command("fit", "t.csv", "-o", "out", "--report")
    assert code == 0, err
    assert "report.html in out" in out
    assert "<h1>t.csv</h1>" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert command("fit", "t.csv", "-o", "out")[0] == 0
    assert "report.html" not in contents(tmp_path / "out")  # it would be of an earlier fit
    monkeypatch.setitem(sys.modules, "plotly", None)
    before = contents(tmp_path)
    check_sentence(
        command("fit", "t.csv", "-o", "out", "--report"), "Reports need plotly", 'pip install "coaltree[report]"'
    )
    assert contents(tmp_path) == before


# -- fits without any fitting, and rows in no cluster ---------------------------------------------------


def test_report_of_default_tree_shows_merge_heights(frame):
    model = ct.CoalescentClustering(n_clusters=3).fit(frame)
    document = Page(page(report_facts(model._model)))
    assert "Which parameters were used?" in document.text
    values = max(model.prediction_parameters_.items(), key=lambda item: item[1]["signal"])
    assert "Which columns matter for the tree?" in document.text
    assert f"{values[0]} {values[1]['signal']:.2f}" in document.text
    assert "settle" not in document.text
    assert "Cohesion" not in document.text
    tree = model.tree_
    for cluster in range(3):
        rows = set(np.flatnonzero(model.labels_ == cluster))
        top = [k for k in range(tree.n_nodes) if set(tree.leaves_below(k)) == rows]
        if top:  # a row that was left over may have joined
            low, high = (f"{tree.heights[k]:.3g}" for k in (top[0], tree.parents[top[0]]))
            assert f"Its rows merge at height {low} or below; it merges with the next rows at {high}." in document.text


def test_report_lists_outliers_apart_from_clusters(frame):
    table = frame.copy()
    table.loc["row 8", ["mass", "length"]] = [-200.0, 60.0]  # before the first rows of some other clusters
    model = ct.CoalescentClustering(resolution=0.6, min_cluster_size=3, assign_outliers=False).fit(table)
    beside = model.labels_ == -1
    assert beside[8]
    raw = page(report_facts(model._model))
    document = Page(raw)
    outliers = f"{beside.sum()} outlier{'s' if beside.sum() > 1 else ''}"
    assert f"{model.n_clusters_} clusters, at a resolution of 0.6, and {outliers}." in document.text
    assert "Outliers" in document.text
    assert f"Cluster {model.n_clusters_} " not in document.text
    assert document.data["outliers"] == model.n_clusters_
    labels = np.where(beside, model.n_clusters_, model.labels_)
    assert document.data["clusters"][: len(table)] == labels.tolist()
    colors = [document.data["colors"][k] for k in range(model.n_clusters_ + 1)]
    assert re.findall(r'<article class="card" style="--c: (#\w+)">', raw) == colors
