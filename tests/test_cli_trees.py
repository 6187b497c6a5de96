"""The commands convert, plot and simulate, with tree files of every format."""

import csv
import io
import json
import re
import sys
import warnings
import xml.etree.ElementTree as ElementTree

import numpy as np
import polars as pl
import pytest
from scipy.cluster.hierarchy import is_valid_linkage

import coaltree as ct
from coaltree.errors import InputWarning
from coaltree.persist.tree_files import tree_from_json, tree_to_json
from coaltree.tree.sample import TreeSample
from command_line import check_sentence, command_in, contents

pytestmark = pytest.mark.usefixtures("short_chains")

ODD = ("<script>alert(1)</script>", "a,b", 'it\'s "so"', "two\nlines", "🐢 turtle", "under_score", " blank ", "7")
ENDINGS = ["nwk", "newick", "tree", "nex", "nexus", "trees", "csv", "json"]


@pytest.fixture
def command(tmp_path, monkeypatch, capsys):
    return command_in(tmp_path, monkeypatch, capsys)


@pytest.fixture
def piped(tmp_path, monkeypatch, capsysbinary):
    """Run the command with something on standard input; output in bytes."""
    run = command_in(tmp_path, monkeypatch, capsysbinary)

    def through(data, *arguments):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        code, out, err = run(*arguments)
        assert code == 0, err
        return out

    return through


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Models of one tree and of a sample of trees."""
    folder = tmp_path_factory.mktemp("models")
    x = np.random.default_rng(0).normal(size=12) + np.repeat([0, 5], 6)
    table = pl.DataFrame({"x": [None, *x[1:]], "c": ["u"] * 5 + ["v"] * 7})
    ct.CoalescentClustering(n_clusters=2).fit(table).save(folder / "one.coaltree")
    sampling = {
        "inference": "smc",
        "n_particles": 15,
        "random_state": 0,
        "proposal": "race",
        "real_process": "brownian",
        "summary": "consensus",
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)  # so few particles are no good sample
        ct.CoalescentClustering(**sampling).fit(table).save(folder / "many.coaltree")
    return folder


def odd_tree():
    return ct.simulate_tree(len(ODD), random_state=3, leaf_names=ODD)


def caterpillar(n):
    children = [[0, 1], *([k + 1, n + k - 1] for k in range(1, n - 1))]
    return ct.Tree(children, [0.0] * n + list(range(1, n)))


def same(first, second):
    """Whether trees have the same clades at the same heights, to the rounding of branch lengths."""
    second = second.reorder(first.leaf_names)
    return ct.robinson_foulds(first, second) == 0 and np.allclose(first.heights, second.heights, rtol=1e-12)


# -- convert -------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ENDINGS)
def test_convert_round_trip(command, tmp_path, ending):
    tree = odd_tree()
    (tmp_path / "t.json").write_bytes(tree_to_json(tree))
    quoted = [] if ending in ("csv", "json") else ["--quote-names"]
    code, out, err = command("convert", "t.json", f"u.{ending}", *quoted)
    assert (code, out) == (0, ""), err
    assert err.startswith("8 leaves, height ")
    code, _, err = command("convert", f"u.{ending}", "back.json")
    assert code == 0, err
    tree_read = tree_from_json((tmp_path / "back.json").read_bytes())
    assert same(tree, tree_read)
    if ending in ("csv", "json"):
        assert tree_read == tree


def test_converted_files_are_read_by_other_programs(command, tmp_path):
    import dendropy

    tree = ct.simulate_tree(9, random_state=1, leaf_names=[f"leaf {i}" for i in range(9)])
    (tmp_path / "t.nwk").write_text(tree.to_newick())
    assert command("convert", "t.nwk", "t.nex")[0] == 0
    read = dendropy.Tree.get(path=tmp_path / "t.nex", schema="nexus")
    assert same(tree, ct.Tree.from_newick(read.as_string("newick", suppress_rooting=True), tree.leaf_names))
    code, _, err = command("convert", "t.nwk", "t.npy")
    assert code == 0
    assert "note: t.npy has no room for the names of leaves, which are numbered as rows from 0." in err
    Z = np.load(tmp_path / "t.npy")
    assert is_valid_linkage(Z)
    np.testing.assert_array_equal(Z, ct.Tree.from_newick(tree.to_newick()).to_linkage())
    assert command("convert", "t.npy", "u.csv")[0] == 0
    rows = list(csv.DictReader(io.StringIO((tmp_path / "u.csv").read_text())))
    assert [[float(row[name]) for name in ("left", "right", "height", "leaves")] for row in rows] == Z.tolist()
    assert {row["left_name"] for row in rows} | {row["right_name"] for row in rows} == {"", *map(str, range(9))}


def test_quote_names_option_of_convert(command, tmp_path):
    tree = ct.simulate_tree(3, random_state=0, leaf_names=["Homo sapiens", "sample_1", "it's"])
    (tmp_path / "t.json").write_bytes(tree_to_json(tree))
    for options, names in (
        ([], ["Homo_sapiens", "sample_1"]),
        (["--quote-names"], ["'Homo sapiens'", "'sample_1'"]),
    ):
        for file in ("t.nwk", "t.nex"):
            assert command("convert", "t.json", file, *options)[0] == 0
            text = (tmp_path / file).read_text()
            assert "'it''s'" in text
            for name in names:
                assert re.search(rf"(?<!['\w]){name}(?!['\w])", text)
    check_sentence(command("convert", "t.json", "u.json", "--quote-names"), "--quote-names", "json", "Newick")


def test_support_is_kept_and_drawn(command, tmp_path):
    (tmp_path / "t.nwk").write_text("((a:1,b:1)75:2,c:3)100;")
    for source, target in (("t.nwk", "t.nex"), ("t.nex", "u.nwk"), ("u.nwk", "u.json"), ("u.json", "v.nwk")):
        assert command("convert", source, target)[0] == 0
    assert tree_from_json((tmp_path / "u.json").read_bytes()).support.tolist() == [0.75, 1.0]
    assert (tmp_path / "v.nwk").read_text() == "((a:1.0,b:1.0)0.75:2.0,c:3.0)1;\n"
    axes = ct.plot_dendrogram(ct.Tree.from_newick((tmp_path / "v.nwk").read_text()))
    assert "75" in [text.get_text() for text in axes.texts]


def test_convert_reads_plain_linkage(command, tmp_path):
    Z = ct.simulate_tree(6, random_state=0).to_linkage()
    np.savetxt(tmp_path / "z.csv", Z, delimiter=",")
    assert command("convert", "z.csv", "t.json")[0] == 0
    np.testing.assert_array_equal(tree_from_json((tmp_path / "t.json").read_bytes()).to_linkage(), Z)


def test_tree_json_schema(command, tmp_path):
    (tmp_path / "t.nwk").write_text("((ape:1,man:1):2,owl:3);")
    assert command("convert", "t.nwk", "t.json", "-q") == (0, "", "")
    assert json.loads((tmp_path / "t.json").read_text()) == {
        "format": "coaltree tree",
        "format_version": 1,
        "leaf_names": ["ape", "man", "owl"],
        "children": [[0, 1], [3, 2]],
        "heights": [0, 0, 0, 1, 3],
        "support": None,
    }


@pytest.mark.parametrize("n", [1, 2, 20_000])
def test_convert_handles_small_and_deep_trees(command, tmp_path, n):
    tree = caterpillar(n) if n > 1 else ct.Tree([], [0.0])
    (tmp_path / "t.nwk").write_text(tree.to_newick())
    for there, back in (("t.nwk", "t.json"), ("t.json", "t.nex"), ("t.nex", "u.nwk")):
        code, _, err = command("convert", there, back)
        assert code == 0, err
    assert same(tree, ct.Tree.from_newick((tmp_path / "u.nwk").read_text()))


def test_convert_reads_model_files(command, models, tmp_path):
    for name in ("one", "many"):
        code, _, err = command("convert", models / f"{name}.coaltree", f"{name}.json")
        assert code == 0, err
        tree_read = tree_from_json((tmp_path / f"{name}.json").read_bytes())
        expected = ct.load_model(models / f"{name}.coaltree").tree_
        np.testing.assert_array_equal(tree_read.children, expected.children)
        np.testing.assert_array_equal(tree_read.heights, expected.heights)
        if name == "many":
            np.testing.assert_array_equal(tree_read.support, expected.support)


def test_convert_summarises_tree_sample(command, tmp_path):
    texts = ["((a:1,b:1):2,c:3);", "((a:2,b:2):2,c:4);", "((a:2,c:2):3,b:5);"]
    sample = TreeSample([ct.Tree.from_newick(text, "abc") for text in texts])
    (tmp_path / "s.trees").write_text(sample.to_nexus())
    code, _, err = command("convert", "s.trees", "t.json")
    assert code == 0
    assert re.search("s.trees has 3 trees.*CCD0", err)
    tree_read = tree_from_json((tmp_path / "t.json").read_bytes())
    np.testing.assert_array_equal(tree_read.support, sample.ccd0().support)


def test_convert_uses_standard_streams(piped, tmp_path):
    tree = odd_tree()
    text = piped(tree_to_json(tree), "convert", "-", "-", "--from", "json", "--to", "newick", "--quote-names", "-q")
    assert same(tree, ct.Tree.from_newick(text.decode()))
    linkage = piped(text, "convert", "-", "-", "--from", "newick", "--to", "npy", "-q")
    assert is_valid_linkage(np.load(io.BytesIO(linkage)))
    model = piped(text, "convert", "-", "out.foo", "--from", "newick", "--to", "linkage", "--json", "-q")
    facts = json.loads(model)
    assert (facts["from"], facts["to"], facts["input"], facts["output"]) == ("newick", "linkage", "-", "out.foo")
    assert (facts["n_leaves"], facts["tree_height"]) == (8, pytest.approx(tree.heights[-1]))
    assert [*contents(tmp_path)] == ["out.foo"]


# -- plot ----------------------------------------------------------------------------------------


def pixels(path):
    import matplotlib.image

    return matplotlib.image.imread(path)


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_plot_format_follows_extension(command, tmp_path, ending):
    (tmp_path / "t.json").write_bytes(tree_to_json(odd_tree()))
    code, out, err = command("plot", "t.json", "-o", f"p.{ending}", "--n-clusters", "3", "--title", "a $title_ 5 %")
    assert (code, out) == (0, ""), err
    assert err.splitlines()[-1].endswith(f"drawn as {ending}")
    data = (tmp_path / f"p.{ending}").read_bytes()
    assert data.startswith({"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[ending])
    assert command("plot", "t.json", "-o", f"q.{ending}", "--n-clusters", "3", "--title", "a $title_ 5 %")[0] == 0
    assert (tmp_path / f"q.{ending}").read_bytes() == data
    if ending == "svg":
        ElementTree.fromstring(data)
        assert b"<script" not in data


def test_plot_size_follows_tree_and_options(command, tmp_path):
    (tmp_path / "t.nwk").write_text(ct.simulate_tree(30, random_state=0).to_newick())
    assert command("plot", "t.nwk", "-o", "p.png", "--width", "4", "--height", "3", "--n-clusters", "4")[0] == 0
    assert pixels(tmp_path / "p.png").shape[:2] == (450, 600)
    assert command("plot", "t.nwk", "-o", "p.svg", "--width", "4", "--height", "3")[0] == 0
    assert re.search(rb'width="288(\.0*)?pt" height="216(\.0*)?pt"|height="216pt"', (tmp_path / "p.svg").read_bytes())
    shapes = {}
    for side in ("left", "right", "top", "bottom"):
        assert command("plot", "t.nwk", "-o", f"{side}.png", "--orientation", side, "--title", "t")[0] == 0
        shapes[side] = pixels(tmp_path / f"{side}.png")
    assert len({shape.tobytes() for shape in shapes.values()}) == 4
    assert command("plot", "t.nwk", "-o", "c.png", "--layout", "circular", "--n-clusters", "12", "--title", "t")[0] == 0
    height, width = pixels(tmp_path / "c.png").shape[:2]
    assert width == pytest.approx(height, rel=0.35)
    # the names around the circle, and the branches in the colours of the clusters
    assert len(np.unique(pixels(tmp_path / "c.png").reshape(-1, 4), axis=0)) > 50


def test_plot_options_reach_drawing(command, models, tmp_path, monkeypatch):
    """The options reach `plot_dendrogram`, whose own tests check their effect."""
    from coaltree.plot import dendrogram as pictures

    calls, named = [], []
    draw, write = pictures.plot_dendrogram, pictures.draw_names

    def spy(tree, **options):
        calls.append((tree, options))
        return draw(tree, **options)

    def spy_on_names(ax, visible, names, *arguments, **options):
        named.extend([names] if names else [])
        write(ax, visible, names, *arguments, **options)

    monkeypatch.setattr(pictures, "plot_dendrogram", spy)
    monkeypatch.setattr(pictures, "draw_names", spy_on_names)
    assert command("plot", models / "one.coaltree", "-o", "p.png")[0] == 0
    model = ct.load_model(models / "one.coaltree")
    tree, options = calls.pop()
    assert tree == model.tree_
    assert options["labels"] == [f"cluster {label}" for label in model.labels_]
    assert options["collapse"] == "auto"
    assert sorted(named.pop()) == sorted(tree.leaf_names)
    assert options["layout"] == "rectangular"
    arguments = ("--n-clusters", "4", "--collapse", "5", "--no-names", "--orientation", "top")
    assert command("plot", models / "one.coaltree", "-o", "p.png", *arguments)[0] == 0
    _, options = calls.pop()
    assert not named
    assert len(set(options["labels"])) == 4
    assert (options["leaf_names"], options["collapse"], options["orientation"]) == (False, 5, "top")
    assert command("plot", models / "many.coaltree", "-o", "p.png", "--layout", "circular")[0] == 0
    assert calls[0][1]["layout"] == "circular"
    assert calls[0][1]["leaf_names"] == "auto"
    assert calls[0][1]["support"]
    assert isinstance(calls.pop()[0], ct.SummaryTree)
    (tmp_path / "t.nwk").write_text("(a:1,b:1);")
    assert command("plot", "t.nwk", "-o", "p.png")[0] == 0
    assert calls.pop()[1]["labels"] is None


def test_plot_handles_small_and_large_trees(command, tmp_path):
    for n in (1, 2, 3000):
        (tmp_path / "t.nwk").write_text(ct.simulate_tree(n, random_state=0).to_newick())
        code, _, err = command("plot", "t.nwk", "-o", "p.png")
        assert code == 0, err


def test_plot_writes_to_standard_output(piped):
    assert piped(b"(a:1,b:1);", "plot", "-", "--from", "newick", "-o", "-", "-q").startswith(b"\x89PNG")
    assert piped(b"(a:1,b:1);", "plot", "-", "--from", "newick", "-o", "-", "--to", "svg").startswith(b"<?xml")


# -- simulate ------------------------------------------------------------------------------------


def test_simulate_writes_table_and_tree(command, tmp_path):
    arguments = ("--real", "5", "--categorical", "3", "--states", "4", "--missing", "0.1", "--seed", "0")
    code, out, err = command("simulate", "100", "-o", "sim.csv", "--tree", "sim.nwk", *arguments)
    assert (code, out) == (0, ""), err
    table = pl.read_csv(tmp_path / "sim.csv")
    assert table.columns == ["name", "x1", "x2", "x3", "x4", "x5", "c1", "c2", "c3"]
    assert table["name"].to_list() == [f"r{i}" for i in range(1, 101)]
    assert {*table["c1"], *table["c2"], *table["c3"]} - {None} == {"s1", "s2", "s3", "s4"}
    n_missing = sum(table.null_count().row(0))
    assert 50 < n_missing < 110  # 80 on average, with a standard deviation of 8.5
    tree = ct.Tree.from_newick((tmp_path / "sim.nwk").read_text(), table["name"].to_list())
    assert tree.n_leaves == 100
    assert err.splitlines()[-1] == (
        f"100 rows, 5 real and 3 categorical columns, {n_missing} cells missing; tree of height {tree.heights[-1]:.6g}"
    )
    first = contents(tmp_path)
    assert command("simulate", "100", "-o", "sim.csv", "--tree", "sim.nwk", *arguments)[0] == 0
    assert contents(tmp_path) == first
    assert command("simulate", "100", "-o", "sim.csv", "--tree", "sim.nwk", *arguments[:-1], "1")[0] == 0
    assert contents(tmp_path) != first


def test_simulated_columns_follow_tree(command):
    """The true tree explains the table better than the same tree with its leaves in another order."""
    for process in ("ornstein-uhlenbeck", "brownian"):
        options = ("--real", "20", "--real-process", process, "--noise", "0", "--rate", "0.3", "--json", "-q")
        code, out, err = command("simulate", "40", *options)
        assert (code, err) == (0, "")
        facts = json.loads(out)
        names = [row["name"] for row in facts["rows"]]
        X = [[row[f"x{j}"] for j in range(1, 21)] for row in facts["rows"]]
        tree = ct.Tree.from_newick(facts["newick"], names)
        law = ct.Brownian(0.3) if process == "brownian" else ct.OrnsteinUhlenbeck(0.3)
        assert law.log_likelihood(tree, X) > law.log_likelihood(tree, X[::-1]) + 100


def test_simulate_json_output(command, tmp_path):
    code, out, _ = command(
        "simulate", "3", "-o", "s.csv", "--tree", "s.json", "--real", "0", "--categorical", "2", "--json"
    )
    assert code == 0
    facts = json.loads(out)
    assert (facts["n_rows"], facts["n_real"], facts["n_categorical"], facts["rows"]) == (3, 0, 2, None)
    assert (facts["output"], facts["tree"], facts["seed"]) == ("s.csv", "s.json", 0)
    tree = tree_from_json((tmp_path / "s.json").read_bytes())
    assert facts["tree_height"] == tree.heights[-1]
    code, out, err = command("simulate", "1", "--real", "1")
    assert code == 0
    assert out.splitlines()[0] == "name,x1"
    assert "1 row, 1 real" in err
