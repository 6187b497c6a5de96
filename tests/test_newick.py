"""Newick text: round trips with our reader, DendroPy and Bio.Phylo, and messages for invalid text."""

import io
import re
import warnings

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from coaltree.errors import InputError
from coaltree.tree.clades import robinson_foulds
from coaltree.tree.coalescent import simulate_tree
from coaltree.tree.newick import parse_plain, parse_tokens
from coaltree.tree.sample import TreeSample
from coaltree.tree.tree import Tree
from named import refused
from tree_samples import related_sample

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import dendropy
    from Bio import Phylo
    from Bio.Phylo.NewickIO import NewickError

MARKS = "'\"()[]{}:;,_= \\\n\r\t-+.&"
any_name = st.text(st.one_of(st.characters(), st.sampled_from(MARKS)), min_size=1, max_size=8)


@st.composite
def trees(draw, names=any_name):
    labels = draw(st.lists(names, min_size=1, max_size=8, unique=True))
    n = len(labels)
    live, children = list(range(n)), []
    for k in range(n - 1):
        left = live.pop(draw(st.integers(0, len(live) - 1)))
        right = live.pop(draw(st.integers(0, len(live) - 1)))
        children.append((left, right))
        live.append(n + k)
    heights = sorted(draw(st.lists(st.floats(0, 1e6), min_size=n - 1, max_size=n - 1)))
    return Tree(children, [0.0] * n + heights, labels)


def lengths_of_clades(tree):
    """Branch length above every clade but the root's."""
    names = np.array(tree.leaf_names, dtype=object)
    return {
        frozenset(names[tree.leaves_below(node)]): tree.heights[tree.parents[node]] - tree.heights[node]
        for node in range(tree.n_nodes - 1)
    }


def names_in_order(tree):
    return [tree.leaf_names[leaf] for leaf in tree.leaf_order]


def read_with_dendropy(text):
    return dendropy.Tree.get(
        data=text,
        schema="newick",
        case_sensitive_taxon_labels=True,
        taxon_namespace=dendropy.TaxonNamespace(is_case_sensitive=True),
    )


def read_with_bio(text):
    return Phylo.read(io.StringIO(text), "newick")


def dendropy_can_read(name):
    return name not in set("(),:;")


def bio_can_read(name):
    return not (name.startswith("'") or "\n" in name or re.search(r"(?<!\\)(\\\\)*\\('|$)", name))


# -- there and back ----------------------------------------------------------------------------


@given(trees(), st.booleans())
@example(Tree([[0, 1]], [0, 0, 1], ["it's", '"']), True)
@example(Tree([[0, 1], [3, 2]], [0, 0, 0, 0, 0], ["a_b", "a b", "[x]"]), True)
def test_newick_round_trip(tree, preserve_underscores):
    back = Tree.from_newick(tree.to_newick(quote_names=True), preserve_underscores=preserve_underscores)
    assert names_in_order(back) == names_in_order(tree)
    assert back.leaf_names == tuple(names_in_order(tree))  # numbered as they appear
    again = back.reorder(tree.leaf_names)
    height = {frozenset(tree.leaves_below(i).tolist()): tree.heights[i] for i in range(tree.n_nodes)}
    for node in range(again.n_nodes):
        written = height.pop(frozenset(again.leaves_below(node).tolist()))
        assert abs(again.heights[node] - written) <= np.spacing(written)
    assert not height


@given(trees(any_name.filter(dendropy_can_read)))
def test_dendropy_reads_newick(tree):
    other = read_with_dendropy(tree.to_newick(quote_names=True))
    assert [leaf.taxon.label for leaf in other.leaf_node_iter()] == names_in_order(tree)
    lengths = {
        frozenset(leaf.taxon.label for leaf in node.leaf_iter()): node.edge.length
        for node in other.preorder_node_iter()
        if node.parent_node is not None
    }
    assert lengths == lengths_of_clades(tree)


@given(trees(any_name.filter(bio_can_read)))
def test_bio_phylo_reads_newick(tree):
    other = read_with_bio(tree.to_newick(quote_names=True))
    assert [leaf.name for leaf in other.get_terminals()] == names_in_order(tree)
    lengths = {
        frozenset(leaf.name for leaf in clade.get_terminals()): clade.branch_length
        for clade in other.find_clades()
        if clade is not other.root
    }
    assert lengths == lengths_of_clades(tree)


@pytest.mark.parametrize("name", ["(", ")", ",", ":", ";"])
def test_bio_phylo_reads_names_that_dendropy_cannot(name):
    """The limits stated in the module are still those of the other readers."""
    text = Tree([[0, 1], [3, 2]], [0, 0, 0, 1, 2], ["x", name, "z"]).to_newick()
    assert [leaf.name for leaf in read_with_bio(text).get_terminals()] == ["x", name, "z"]
    with pytest.raises(Exception, match=r"Unbalanced|Incomplete|Invalid edge length|no attribute"):
        [leaf.taxon.label for leaf in read_with_dendropy(text).leaf_node_iter()]


@pytest.mark.parametrize("name", ["'a", "''", "a\nb", "a \nb", "a\\", "a\\'b"])
def test_dendropy_reads_names_that_bio_phylo_cannot(name):
    text = Tree([[0, 1], [3, 2]], [0, 0, 0, 1, 2], ["x", name, "z z"]).to_newick()
    assert [leaf.taxon.label for leaf in read_with_dendropy(text).leaf_node_iter()] == ["x", name, "z z"]
    try:
        names = [leaf.name for leaf in read_with_bio(text).get_terminals()]
    except NewickError:
        names = []
    assert names != ["x", name, "z z"]


@given(trees(st.sampled_from("abcdefgh")))
def test_newick_of_dendropy_is_read(tree):
    text = read_with_dendropy(tree.to_newick()).as_string("newick", suppress_rooting=True)
    back = Tree.from_newick(text, tree.leaf_names)
    assert lengths_of_clades(back).keys() == lengths_of_clades(tree).keys()
    np.testing.assert_allclose(np.sort(back.heights), tree.heights, rtol=1e-12)


def test_to_newick_writes_expected_text():
    tree = Tree([[1, 0], [2, 3]], [0, 0, 0, 0.1, 0.30000000000000004], ["a", "b_c", "it's"])
    assert tree.to_newick() == "('it''s':0.30000000000000004,(b_c:0.1,a:0.1):0.20000000000000004);"
    assert Tree([], [0.0], ["a b"]).to_newick() == "a_b;"
    assert Tree([[0, 1]], [0, 0, -0.0]).to_newick() == "(0:0.0,1:0.0);"
    assert Tree([[0, 1]], [0, 0, 1e-300]).to_newick() == "(0:1e-300,1:1e-300);"


# What is written with quote_names=False and True, for a tree with the names.
SPELLINGS = [
    (["Homo sapiens"], ["Homo_sapiens"], ["'Homo sapiens'"]),
    (["sample_1", "x y"], ["sample_1", "x_y"], ["'sample_1'", "'x y'"]),
    (["a b", "a_b"], *[["'a b'", "'a_b'"]] * 2),
    (["it's so", "f(x)", " ", "_"], *[["'it''s so'", "'f(x)'", "' '", "'_'"]] * 2),
    (["Español", "NC1.1|Homo+x-2@3"], *[["Español", "NC1.1|Homo+x-2@3"]] * 2),
]


@pytest.mark.parametrize(("names", "default", "quoted"), SPELLINGS)
def test_spelling_of_names_in_newick_and_nexus(names, default, quoted):
    tree = simulate_tree(len(names), 0, leaf_names=names)
    for quote_names, labels in ((False, default), (True, quoted)):
        words = re.findall(
            r"'(?:[^']|'')*'|[^(),:;]+", re.sub(r":[0-9.e-]+", "", tree.to_newick(quote_names=quote_names))
        )
        assert sorted(words) == sorted(labels)
        nexus = TreeSample([tree]).to_nexus(quote_names=quote_names)
        assert nexus.split("Taxlabels\n")[1].split(";")[0].split("\n")[:-1] == [f"        {label}" for label in labels]
        for preserve_underscores in (True, False):
            back = TreeSample.from_nexus(nexus, preserve_underscores=preserve_underscores).leaf_names
            assert not quote_names or back == tuple(names)
            assert not preserve_underscores or back == tuple(label.strip("'").replace("''", "'") for label in labels)
        text = tree.to_newick(quote_names=quote_names)
        assert Tree.from_newick(text, names).leaf_names == tuple(names)
    with pytest.raises(InputError, match="quote_names is 'no'"):
        tree.to_newick(quote_names="no")


@given(trees(st.text("ab_ -(", min_size=1, max_size=4)), st.booleans())
def test_other_programs_see_distinct_names_without_blanks(tree, quote_names):
    """Programs that keep underscores, and those that read them as blanks, find the same number of names."""
    text = tree.to_newick(quote_names=quote_names)
    for preserve_underscores in (True, False):
        back = Tree.from_newick(text, preserve_underscores=preserve_underscores)
        assert back.n_leaves == tree.n_leaves  # equal names would be refused
        assert {name.replace("_", " ") for name in back.leaf_names} == {
            name.replace("_", " ") for name in tree.leaf_names
        }


def test_bio_phylo_and_bio_nexus_see_names_without_quotes():
    names = ["Homo sapiens", "Pan", "sample_1"]
    tree = simulate_tree(3, 0, leaf_names=names)
    for text, kind in ((tree.to_newick(), "newick"), (TreeSample([tree]).to_nexus(), "nexus")):
        found = {leaf.name for leaf in Phylo.read(io.StringIO(text), kind).get_terminals()}
        assert found == {"Homo_sapiens", "Pan", "sample_1"}


def test_newick_round_trip_of_deep_caterpillar():
    n = 100_000
    children = [(0, 1)] + [(n + k - 1, k + 1) for k in range(1, n - 1)]
    tree = Tree(children, np.concatenate([np.zeros(n), np.cumsum(np.full(n - 1, 0.1))]))
    back = Tree.from_newick(tree.to_newick())
    assert np.array_equal(back.children, tree.children)
    np.testing.assert_allclose(back.heights, tree.heights, rtol=1e-14)


# -- what is understood ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "((a:1,b:1):2,c:3);",
        "((a:1,b:1):2,c:3)",
        "((a:1,b:1)inner:2,c:3)root:7;",
        "((a:1,b:1)'in ner'[&x=1]:2,c:3);\n\n",
        " ( ( a : 1 ,\n b:\t1 ) : 2 , c : 3 ) ; ",
        "[&R] ((a[&rate={1,2}]:[&x]1,b:1[c])[p]:2,c:3)[&height=3];[the end]",
        "[nested [comment] here]((a:1,b:1):2,c:3);",
        "[it's]((a:1,b:1):2,c:3);",
        "(('a':1,\"b\":1):2,c:3);",
        "((a:1e0,b:+1):0.2E+1,c:.3e1);",
        "((a:1.,b:1):2,c:3):-0;",
        "\ufeff((a:1,b:1):2,c:3);",
    ],
)
def test_newick_variants_of_one_tree_are_equal(text):
    tree = Tree.from_newick(text)
    assert tree == Tree([[0, 1], [3, 2]], [0, 0, 0, 1, 3], ["a", "b", "c"])


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("'it''s'", "it's"),
        ("''''", "'"),
        ('"say ""x"""', 'say "x"'),
        ('"it\'s"', "it's"),
        ("O'Brien", "O'Brien"),
        ("Homo_sapiens", "Homo_sapiens"),
        ("'Homo_sapiens'", "Homo_sapiens"),
        ("'a(b[c],d:e;'", "a(b[c],d:e;"),
        ("'a\nb'", "a\nb"),
        ("12.5", "12.5"),
        ("名前", "名前"),
    ],
)
def test_newick_labels_are_unquoted(label, name):
    assert Tree.from_newick(f"({label}:1,other:1);").leaf_names == (name, "other")


def test_underscores_are_blanks_by_the_standard():
    assert Tree.from_newick("(a_b:1,'c_d':1);", preserve_underscores=False).leaf_names == ("a b", "c_d")


# -- support -----------------------------------------------------------------------------------

# ((a, b), c) with a support of three quarters, as programs write it.
SUPPORTED = {
    "shares": "((a:1,b:1)0.75:2,c:3);",
    "per cents": "((a:1,b:1)75:2,c:3)100;",
    "quoted": "((a:1,b:1)'0.75':2,c:3);",
    "IQ-TREE": "((a:1,b:1)88.1/75:2,c:3);",
    "RAxML": "((a:1,b:1):2[75],c:3);",
    "BEAST": "[&R] ((a[&height=0]:1,b:1)[&height=1.0,height_95%_HPD={0.5,2},posterior=0.75]:[&rate=1]2,c:3)[&posterior=1.0];",
    "MrBayes": '((a[&prob=1.0]:1,b:1)[&prob=7.5e-01,prob_stddev=0.01,prob(percent)="75"]:2[&length_mean=3],c:3);',
    "NHX": "((a:1,b:1):2[&&NHX:S=x:B=75],c:3);",
}


@pytest.mark.parametrize("program", SUPPORTED)
def test_support_of_other_programs_is_read(program):
    tree = Tree.from_newick(SUPPORTED[program])
    assert tree.support.tolist() == [0.75, 1.0]
    assert tree.to_newick() == "((a:1.0,b:1.0)0.75:2.0,c:3.0)1;"
    text = f"#NEXUS begin trees; tree T = {SUPPORTED[program]} end;"
    assert TreeSample.from_nexus(text).trees[0] == tree
    assert tree.height_hpd[0].tolist() == ([0.5, 2.0] if program == "BEAST" else [1.0, 1.0])


@pytest.mark.parametrize("label", ["clade", "-1", "101", "nan", "1e999", "[&posterior=x]", "[&rate=0.5]", ""])
def test_other_labels_and_comments_are_no_support(label):
    assert Tree.from_newick(f"((a:1,b:1){label}:2,c:3);") == Tree([[0, 1], [3, 2]], [0, 0, 0, 1, 3], ["a", "b", "c"])


def test_merges_without_a_number_are_clades_of_unknown_support():
    text = "(((a:1.0,b:1.0):1.0,c:2.0)0.5:1.0,d:3.0)1;"
    tree = Tree.from_newick(text)
    np.testing.assert_array_equal(tree.support, [np.nan, 0.5, 1.0])
    assert tree.to_newick() == text
    assert tree.reorder("dcba").to_newick() == text
    assert robinson_foulds(tree, Tree.from_newick(tree.to_newick(support=False))) == 0


@pytest.mark.parametrize("kind", ["newick", "nexus"])
def test_support_survives_files_as_biopython_reads_them(kind):
    """Clades with their shares of a sample, read by our reader and by another; Newick text has four digits."""
    sample = related_sample(9, 40, 3)
    tree = sample.ccd0()
    text = tree.to_newick() if kind == "newick" else tree.to_nexus()
    back = Tree.from_newick(text) if kind == "newick" else TreeSample.from_nexus(text).trees[0]
    shares = sample.clade_probabilities()
    found = {
        frozenset(np.array(back.leaf_names)[back.leaves_below(node)].tolist()): share
        for node, share in enumerate(back.support.tolist(), back.n_leaves)
    }
    assert len(found) == 8
    assert len({*found.values()}) > 3
    for clade, share in found.items():
        assert share == pytest.approx(shares[clade], abs=5e-5)
    if kind == "nexus":
        np.testing.assert_allclose(back.height_hpd, tree.height_hpd, rtol=1e-12)
        np.testing.assert_allclose(back.mean_heights, tree.mean_heights, rtol=1e-12)
        np.testing.assert_allclose(back.median_heights, tree.median_heights, rtol=1e-12)
        return
    other = Phylo.read(io.StringIO(text), "newick")
    theirs = {
        frozenset(leaf.name for leaf in clade.get_terminals()): clade.confidence for clade in other.get_nonterminals()
    }
    assert theirs == found


def test_newick_of_single_leaf():
    assert Tree.from_newick("a;") == Tree([], [0.0], ["a"])
    assert Tree.from_newick("'a':3;") == Tree([], [0.0], ["a"])


def test_merges_are_numbered_by_height_then_position():
    tree = Tree.from_newick("((a:5,b:5):1,((c:1,d:1):1,e:2):4);")
    assert tree.children.tolist() == [[2, 3], [5, 4], [0, 1], [7, 6]]
    assert tree.heights.tolist() == [0] * 5 + [1, 2, 5, 6]
    tied = Tree.from_newick("(((a:1,b:1):0,c:1):0,(d:1,e:1):0);")
    assert tied.children.tolist() == [[0, 1], [5, 2], [3, 4], [6, 7]]


def test_leaf_names_option_orders_rows():
    tree = Tree.from_newick("((a:1,b:1):2,c:3);", ["c", "b", "a"])
    assert tree.children.tolist() == [[2, 1], [3, 0]]
    with pytest.raises(InputError, match="missing 'b'; unknown 'x'"):
        Tree.from_newick("((a:1,b:1):2,c:3);", ["c", "x", "a"])


def test_unequal_path_lengths_within_tolerance_use_larger():
    tree = Tree.from_newick("((a:1,b:1.0000001):2,c:3);")
    assert tree.heights.tolist() == [0, 0, 0, 1.0000001, 1.0000001 + 2]
    with pytest.raises(InputError, match="not ultrametric"):
        Tree.from_newick("((a:1,b:1.0000001):2,c:3);", tolerance=1e-9)
    assert Tree.from_newick("((a:1,b:2):2,c:3);", tolerance=0.25).heights[-1] == 4
    with pytest.raises(InputError, match="not ultrametric"):
        Tree.from_newick("((a:1,b:2):2,c:3);", tolerance=0.24)


# -- what is refused ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "Newick empty"),
        (" \n[only a comment]", "Newick empty"),
        (";", "Newick empty"),
        (None, "string NoneType"),
        (b"(a:1,b:1);", "string bytes"),
        ("tree.nwk", "tree.nwk parentheses semicolon"),
        ("#NEXUS\nbegin trees;", "NEXUS file"),
        ("((a:1,b:1):1,c:2", "Unbalanced parentheses character 1 open"),
        ("((a:1,b:1;", "tree character 10 2 open"),
        ("(a:1,b:1));", "Unbalanced parentheses character 10 closes"),
        ("a:1,b:1;", "comma character 4 outside parentheses"),
        ("(a:1,'b:1);", "quote character 6 closed"),
        ('(a:1,"b:1);', "quote character 6 closed"),
        ("(a:1,b[x:1);", "comment [ character 7 closed"),
        ("(a:1,b]:1);", "bracket ] character 7 closes comment"),
        ("((a:1):1,c:2);", "node 1 child character 2 suppress_unifurcations"),
        ("((a:1,b:1,c:1):1,d:2);", "node 3 children character 2 binary resolve_polytomies"),
        ("(a:1,b:1,c:1,d:1);", "node 4 children character 1 resolve_polytomies()"),
        ("(a:1,b:1,c:1);", "node 3 children character 1 root unrooted tree"),
        ("(a:1,b);", "leaf b character 6 branch length"),
        ("((a:1,b:1),c:2);", "node opens character 2 branch length"),
        ("((a:1,b:1)x,c:2);", "node opens character 2 branch length"),
        ("(a:1,b:);", "branch length missing character 8"),
        ("(a:1,b:1):", "branch length missing end"),
        ("(a:1,b:-1);", "branch length -1 character 8 negative"),
        ("(a:1,b:x);", "branch length x character 8"),
        ("(a:1,b:1_0);", "branch length 1_0 character 8"),
        ("(a:1,b:'1');", "branch length 1 character 8"),
        ("(a:1,b:inf);", "branch length inf character 8 finite"),
        ("(a:1,b:nan);", "branch length nan character 8 finite"),
        ("(a:1,b:1e999);", "branch length 1e999 character 8 finite"),
        ("((a:1e308,b:1e308):1e308,c:1);", "node character 1 add"),
        ("(a:1,b:1:1);", "character 9"),
        ("(a::1,b:1);", "character 4"),
        ("((a:1,b:1.5):2,c:3);", "leaf b 3.5 root 'a' 3"),
        ("(a:1,b:2);", "ultrametric leaf b 2 root 'a' 1"),
        ("(a:1,a:1);", "leaf 'a' twice character 2 6"),
        ("(a_b:1,'a_b':1);", "leaf 'a_b' twice"),
        ("(a:1,:1);", "leaf without character 6"),
        ("(a:1,);", "leaf without character 6"),
        ("(,a:1);", "leaf without character 2"),
        ("();", "leaf without character 2"),
        ("(a:1,'':1);", "leaf without character 6"),
        ("(a:1,b:1);(c:1,d:1);", "semicolon character 11 tree"),
        ("(a:1,b:1);;", "semicolon character 11"),
        ("(Homo sapiens:1,b:1);", "label sapiens character 7 quote"),
        ("('a'b:1,c:1);", "label b character 5"),
        ("(a:1 b,c:1);", "comma missing b character 6"),
        ("(a:1(b:1,c:1):1);", "parenthesis character 5 follows node"),
        ("(a:1,\nb:1,\n c:x);", "x character 15 line 3 column 4"),
        ("\n(a:1,{}:1,{}:1);", "leaf {} twice character 7 12"),
        ("(\n(a:1,b:1),c:2);", "character 3 line 2 column 1 branch length"),
    ],
)
def test_invalid_newick_is_rejected_with_location(text, message):
    with refused(message):
        Tree.from_newick(text)


@pytest.mark.parametrize("tolerance", [-1, float("nan"), "small"])
def test_invalid_tolerances_are_rejected(tolerance):
    with pytest.raises(InputError, match="tolerance is"):
        Tree.from_newick("(a:1,b:1);", tolerance=tolerance)


def test_newick_error_messages_are_short():
    with pytest.raises(InputError) as error:
        Tree.from_newick("x" * 100_000)
    assert len(str(error.value)) < 300


# -- the reader of plain texts -----------------------------------------------------------------


def read_by_tokens(text, preserve_underscores, tolerance=1e-6):
    """What the reader makes of a text that knows all of Newick, None if it refuses it."""
    try:
        return parse_tokens(text, preserve_underscores, tolerance)
    except InputError:
        return None


def same(a, b):
    notes = [parsed.notes.get("support", np.zeros(0)) for parsed in (a, b)]
    return (
        np.array_equal(a[0], b[0])
        and np.array_equal(a[1], b[1])
        and a[2] == b[2]
        and np.array_equal(*notes, equal_nan=True)
    )


@given(trees().filter(lambda tree: tree.n_leaves > 1), st.booleans())
def test_plain_and_full_reader_agree_on_written_newick(tree, preserve_underscores):
    text = tree.to_newick()
    assert same(parse_plain(text, preserve_underscores, 1e-6), read_by_tokens(text, preserve_underscores))


@given(trees(st.text("ab'_ (", min_size=1, max_size=3)), st.booleans(), st.data())
def test_plain_reader_accepts_only_what_full_reader_accepts(tree, preserve_underscores, data):
    text = tree.to_newick()
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text)))
        gone = data.draw(st.integers(0, 3))
        text = text[:at] + data.draw(st.text("(),:;'_e-+.1a [", max_size=3)) + text[at + gone :]
    plain = parse_plain(text, preserve_underscores, 1e-6)
    if plain is not None:
        assert same(plain, read_by_tokens(text, preserve_underscores))


@pytest.mark.parametrize(
    "text",
    [
        "((a:1,b:1)x:2,c:3)'the root':4;",
        "(((a:1,b:1)97:1,d:2)'12':1,c:3)'the root':4;",
        "((a:1,b:1)'':2,'c''d':3);\n",
        "((O'Brien:1,b_c:1):2,c:3)",
        "((a:1e0,b:-0):0.0,c:1);",
    ],
)
def test_plain_newick_is_read_equally_by_both_readers(text):
    for preserve_underscores in (False, True):
        tolerance = 10.0  # depths may differ
        plain = parse_plain(text, preserve_underscores, tolerance)
        assert same(plain, read_by_tokens(text, preserve_underscores, tolerance))


@pytest.mark.parametrize(
    "text",
    [
        "a;",
        "(a:1,b:1,c:1);",
        "((a:1):1,b:2);",
        "(a:1,a:1);",
        "(a:1,b:2);",
        "(a:-1,b:-1);",
        "(a:1e999,b:1e999);",
        "(a:1,b:1):1,(c:1,d:1):1;",
        "(a:1,b:1));",
        "((a:1,b:1);",
        "(a:1,:1);",
        "(a:1,'':1);",
        "(a:1,b:1):1e;",
        "(a:1,b:1)(c:1,d:1);",
        "(a:1,b:1);;",
    ],
)
def test_plain_reader_leaves_errors_to_full_reader(text):
    assert parse_plain(text, False, 1e-6) is None


def test_plain_reader_rejects_deep_text_in_linear_time():
    assert parse_plain("(" * 300_000 + " a:1", False, 1e-6) is None
    assert parse_plain("('" + "a''" * 300_000, False, 1e-6) is None
