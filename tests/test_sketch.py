"""The picture in a notebook: safe, small, the same every time."""

import os
import re
import subprocess
import sys
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coaltree.tree.kingman import simulate_tree
from coaltree.tree.tree import Tree


def texts(page):
    return [element.text for element in ElementTree.fromstring(page).iter("text")]


def brackets(page):
    """Number of strokes in the one path of the page."""
    (path,) = re.findall(r'<path d="([^"]*)"', page)
    return path.count("M")


def test_one_line_of_text_and_one_path():
    page = Tree.from_newick("((ape:1,man:1):2,owl:3);")._repr_html_()
    root = ElementTree.fromstring(page)
    assert root.find("div").text == "Tree: 3 leaves, root height 3"
    assert brackets(page) == 2
    assert texts(page) == ["ape", "man", "owl", "3", "0"]


def test_brackets_are_to_scale():
    page = Tree.from_newick("((ape:1,man:1):3,owl:4);")._repr_html_()
    strokes = re.findall(r"M([\d.]+) ([\d.]+)H([\d.]+)V([\d.]+)H([\d.]+)", page)
    (leaf, top, first, bottom, other), (inner, middle, root, last, tip) = [[float(x) for x in s] for s in strokes]
    assert leaf == other == tip  # the present
    assert inner == first
    assert (leaf - first) / (leaf - root) == pytest.approx(1 / 4, abs=1e-3)
    assert middle == (top + bottom) / 2
    assert last > bottom > top


def test_names_are_escaped():
    names = ["<script>alert('x')</script>", '"&amp;', "</svg>"]
    page = Tree([[0, 1], [3, 2]], [0, 0, 0, 1, 2], names)._repr_html_()
    assert "<script" not in page
    assert page.count("</svg>") == 1
    assert texts(page)[:3] == names


@given(st.lists(st.text(st.characters(exclude_categories=()), min_size=1), min_size=2, max_size=2, unique=True))
def test_any_names_make_a_page_that_can_be_stored(names):
    page = Tree([[0, 1]], [0, 0, 1], names)._repr_html_()
    # XML, which is read here in place of HTML, does not know these two.
    root = ElementTree.fromstring(re.sub("[\ufffe\uffff]", "", page).encode("utf-8"))
    assert len(list(root.iter("text"))) == 4


def test_nothing_is_fetched_and_colours_follow_the_page():
    page = simulate_tree(30, 0)._repr_html_()
    assert not re.search(r"http|url\(|src=|href|@import|<script|<link", page)
    assert not re.search(r"#[0-9a-fA-F]{3}|rgb|black|white", page)
    assert 'stroke="currentColor"' in page


def test_the_same_tree_gives_the_same_bytes():
    script = "from coaltree.tree.kingman import simulate_tree; print(ascii(simulate_tree(40, 5)._repr_html_()))"
    here = ascii(simulate_tree(40, 5)._repr_html_())
    for seed in ("1", "2"):
        run = subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        )
        assert run.stdout.strip() == here


@pytest.mark.parametrize(("n", "named", "merges"), [(60, 60, 59), (61, 0, 60), (201, 0, 200), (202, 0, 200)])
def test_names_and_merges_are_left_out_of_large_trees(n, named, merges):
    page = simulate_tree(n, 1)._repr_html_()
    assert len(texts(page)) == named + 2  # and the two ends of the scale
    assert brackets(page) == merges
    assert ("the 200 oldest merges are drawn" in page) == (n > 201)


def test_large_trees_make_small_pages():
    page = simulate_tree(5000, 2)._repr_html_()
    assert len(page) < 20_000
    assert "5,000 leaves" in page
    assert len(simulate_tree(50_000, 2)._repr_html_()) < 20_000


def test_the_oldest_merges_are_those_drawn():
    tree = simulate_tree(1000, 3)
    page = tree._repr_html_()
    ends = [float(x) for x in re.findall(r"H([\d.]+)V", page)]
    span = max(float(x) for x in re.findall(r"M([\d.]+) ", page)) - min(ends)
    heights = [(max(map(float, re.findall(r"M([\d.]+) ", page))) - end) / span * tree.heights[-1] for end in ends]
    assert sorted(heights) == pytest.approx(tree.heights[-200:].tolist(), abs=1e-3 * tree.heights[-1])


@pytest.mark.parametrize("text", ["alone;", "((a:0,b:0):0,c:0);"])
def test_trees_without_height(text):
    page = Tree.from_newick(text)._repr_html_()
    assert "nan" not in page
    assert "inf" not in page
    assert texts(page)[-1] == "0"
    assert brackets(page) == max(1, Tree.from_newick(text).n_leaves - 1)


def test_long_names_are_shortened():
    page = Tree([[0, 1]], [0, 0, 1], ["x" * 500, "y"])._repr_html_()
    assert "x" * 39 + "…" in page
    assert "x" * 40 not in page


def test_a_deep_tree_is_sketched_without_recursion():
    n = 5000
    children = [(0, 1)] + [(n + k - 1, k + 1) for k in range(1, n - 1)]
    assert "5,000 leaves" in Tree(children, [0.0] * n + list(range(1, n)))._repr_html_()
