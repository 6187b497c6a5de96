"""NEXUS files: round trips with our reader and DendroPy, dialects, and messages for invalid files."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import coaltree as ct
from coaltree.errors import InputError
from coaltree.tree.sample import TreeSample
from named import refused
from test_newick import any_name, dendropy_can_read
from tree_samples import dendropy, heights_of_clades, related_sample

ABC = ct.Tree([[0, 1], [3, 2]], [0, 0, 0, 1, 3], ["a", "b", "c"])


@st.composite
def samples(draw, names=any_name):
    labels = draw(st.lists(names, min_size=1, max_size=6, unique=True))
    seeds = draw(st.lists(st.integers(0, 5), min_size=1, max_size=5))
    weights = draw(st.lists(st.floats(0.01, 1e6), min_size=len(seeds), max_size=len(seeds)))
    return TreeSample([ct.simulate_tree(len(labels), seed, leaf_names=labels) for seed in seeds], weights)


def assert_same_heights(tree, other):
    """The same clades, as high up to rounding."""
    mine, theirs = heights_of_clades(tree), heights_of_clades(other)
    assert mine.keys() == theirs.keys()
    for clade, height in mine.items():
        assert theirs[clade] == pytest.approx(height, rel=1e-9)


# -- there and back ----------------------------------------------------------------------------


@given(samples())
def test_nexus_round_trip(sample):
    back = TreeSample.from_nexus(sample.to_nexus(quote_names=True))
    assert back.leaf_names == sample.leaf_names
    assert back.weights.tolist() == sample.weights.tolist()
    assert back.n_distinct == sample.n_distinct
    for tree, other in zip(sample.trees, back.trees, strict=True):
        assert_same_heights(tree, other)


@given(samples(any_name.filter(dendropy_can_read)))
def test_dendropy_reads_nexus(sample):
    actual = dendropy.TreeList.get(
        data=sample.to_nexus(quote_names=True),
        schema="nexus",
        store_tree_weights=True,
        case_sensitive_taxon_labels=True,
        taxon_namespace=dendropy.TaxonNamespace(is_case_sensitive=True),
    )
    assert [taxon.label for taxon in actual.taxon_namespace] == list(sample.leaf_names)
    assert [tree.weight for tree in actual] == sample.weights.tolist()
    assert [tree.label for tree in actual] == [f"TREE {k}" for k in range(len(sample))]  # as the standard reads TREE_0
    assert all(tree.is_rooted for tree in actual)
    for tree, other in zip(sample.trees, actual, strict=True):
        clades = {
            frozenset(leaf.taxon.label for leaf in node.leaf_iter()): node.edge.length
            for node in other.preorder_node_iter()
            if node.parent_node is not None
        }
        names = np.array(tree.leaf_names, dtype=object)
        assert clades == {
            frozenset(names[tree.leaves_below(node)]): tree.heights[tree.parents[node]] - tree.heights[node]
            for node in range(tree.n_nodes - 1)
        }


@given(samples(st.sampled_from(["a", "b c", "d_e", "it's", "10", "x-y"])))
def test_nexus_of_dendropy_is_read(sample):
    actual = dendropy.TreeList.get(data=sample.to_nexus(quote_names=True), schema="nexus", store_tree_weights=True)
    for options in ({}, {"translate_tree_taxa": True}):
        text = actual.as_string("nexus", store_tree_weights=True, **options)
        back = TreeSample.from_nexus(text, preserve_underscores=False)
        assert back.leaf_names == sample.leaf_names
        np.testing.assert_allclose(back.weights, sample.weights, rtol=1e-12)
        for tree, other in zip(sample.trees, back.trees, strict=True):
            assert_same_heights(tree, other)


def test_to_nexus_writes_expected_text():
    sample = TreeSample([ABC.rename(["a", "b_c", "it's"])], [7])
    assert sample.to_nexus() == (
        "#NEXUS\n\nBegin taxa;\n    Dimensions ntax=3;\n    Taxlabels\n        a\n        b_c\n        'it''s'\n"
        "        ;\nEnd;\n\nBegin trees;\n    Translate\n        1 a,\n        2 b_c,\n        3 'it''s'\n        ;\n"
        "tree TREE_0 = [&W 1.0] [&R] ((1:1.0,2:1.0):2.0,3:3.0);\nEnd;\n"
    )


def test_equal_trees_share_one_object():
    back = TreeSample.from_nexus(TreeSample([ABC, ABC, ABC]).to_nexus())
    assert back.trees[0] is back.trees[2]


def test_resolved_summary_is_read_as_sample_of_one():
    sample = related_sample(7, 15, 1)
    tree = sample.mcc()
    assert_same_heights(tree, TreeSample.from_nexus(tree.to_nexus()).trees[0])


# -- what is understood ------------------------------------------------------------------------

TREE = "((a:1,b:1):2,c:3);"
KEYED = "((1:1,2:1):2,3:3);"
TAXA = "begin taxa; dimensions ntax=3; taxlabels a b c; end;\n"
TABLE = "translate 1 a, 2 b, 3 c;\n"


@pytest.mark.parametrize(
    "text",
    [
        f"#NEXUS\nbegin trees;\ntree T = {TREE}\nend;\n",
        f"\ufeff \n#nexus\nBEGIN TREES;\nTREE T = [&R] {TREE}\nENDBLOCK;",
        f"#NEXUS begin trees; tree * T = [&U] {TREE} end;",
        f"#NEXUS begin trees; utree *'my; tree' = {TREE} end;",
        f"#NEXUS begin trees; tree STATE_0 [&lnP=-3.5,x={{1;2}}] = [&R] [&W 1/3] {TREE} end;",
        f"#NEXUS [begin trees; [nested;] it's] {TAXA} [c] begin [d] trees [e]; [f] tree [g] T [h] = [i] {TREE} [j] end;",
        f"#NEXUS\r\n{TAXA}\r\nbegin trees;\r\n{TABLE}\r\ntree T = [&R] {KEYED}\r\nend;\r\n",
        f"#NEXUS begin trees; {TABLE} tree T = {KEYED} end;",
        f"#NEXUS begin trees; {TABLE} tree T = {TREE} end;",
        f"#NEXUS {TAXA} begin trees; tree T = {KEYED} end;",
        f"#NEXUS begin trees; title x; translate [c] '1' 'a', 2 \"b\", [d] 3 c,; tree T={KEYED} end;",
        "#NEXUS begin trees; translate k_1 a, 'k 2' b, z c; tree T=((k_1:1,'k 2':1):2,z:3); end;",
        "#NEXUS begin trees; tree T = ((a[&r={1,2}]:[&x]1,b:1[y;])[&rate=1]:2,c:3)[&height=3]; end;",
        f"#NEXUS begin data; dimensions nchar=2; matrix a 01 b 1? c --; end; begin trees; tree T = {TREE} end;",
        f"#NEXUS begin mrbayes; set x=y; tree S = (d:1,e:1); end; begin trees; tree T = {TREE} end;",
        f"#NEXUS begin trees; tree T = {TREE} end; begin notes; text t='x; tree y'; end;",
    ],
)
def test_nexus_variants_of_one_tree_are_equal(text):
    sample = TreeSample.from_nexus(text)
    assert sample.trees == (ABC,)
    assert sample.weights.tolist() == [1.0]


def test_nexus_tree_weights_are_read():
    lines = [f"tree T = {comment} {TREE}" for comment in ("[&W 1/4]", "[&R] [&w 0.5]", "[&W 2.5e-1 ][&R]", "")]
    sample = TreeSample.from_nexus("#NEXUS begin trees;" + "\n".join(lines) + "end;")
    assert sample.weights.tolist() == [0.125, 0.25, 0.125, 0.5]


def test_nexus_blocks_may_have_different_translate_tables():
    text = (
        f"#NEXUS begin trees; {TABLE} tree T = {KEYED} end; begin trees; translate 1 c, 2 b, 3 a; tree U = {KEYED} end;"
    )
    sample = TreeSample.from_nexus(text)
    other = ct.Tree([[2, 1], [3, 0]], ABC.heights, ABC.leaf_names)
    assert sample.trees == (ABC, other)
    text = (
        f"#NEXUS {TAXA} begin trees; translate 1 c, 2 b, 3 a; tree T = {KEYED} end; begin trees; tree U = {KEYED} end;"
    )
    assert TreeSample.from_nexus(text).trees == (other, ABC)


def test_leaves_follow_taxa_block_order():
    taxa = TAXA.replace("a b c", "c a b")
    body = f"begin trees; translate 1 b, 2 a, 3 c; tree T = ((2:1,1:1):2,3:3); tree U = {TREE} end;"
    assert TreeSample.from_nexus("#NEXUS " + taxa + body).leaf_names == ("c", "a", "b")
    assert TreeSample.from_nexus("#NEXUS " + body).leaf_names == ("b", "a", "c")
    assert TreeSample.from_nexus("#NEXUS " + taxa + body).trees[1] == ABC.reorder("cab")


def test_nexus_underscores_are_blanks_by_the_standard():
    text = "#NEXUS begin taxa; taxlabels a_b 'c_d'; end; begin trees; tree T = (a_b:1,'c_d':1); end;"
    assert TreeSample.from_nexus(text).leaf_names == ("a_b", "c_d")
    assert TreeSample.from_nexus(text, preserve_underscores=False).leaf_names == ("a b", "c_d")
    assert TreeSample.from_nexus(text.replace("taxlabels a_b", "taxlabels 'a b'")).leaf_names == ("a b", "c_d")


def test_nexus_names_that_are_numbers_of_other_rows():
    sample = TreeSample([ct.simulate_tree(6, 3)])
    assert_same_heights(sample.trees[0], TreeSample.from_nexus(sample.to_nexus()).trees[0])


# -- what is refused ---------------------------------------------------------------------------


def in_block(lines, before=""):
    return f"#NEXUS\n{before}begin trees;\n{lines}\nend;"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "string NoneType"),
        ("", "NEXUS file"),
        (TREE, "(a:1 NEXUS file Tree.from_newick"),
        ("sample.trees", "sample.trees NEXUS file"),
        ("#NEXUS\n" + TAXA, "trees block"),
        ("#NEXUS begin trees; end;", "trees block without tree"),
        (f"#NEXUS begin trees; tree T = {TREE}", "trees block closed cut off tree T End"),
        (
            f"#NEXUS\nbegin trees;\ntree T = {TREE}\ntree U = ((a:1,b",
            "tree U = line 4 semicolon",
        ),
        (f"#NEXUS begin trees; tree T = {TREE} en", "en line 1 semicolon"),
        ("#NEXUS\nbegin trees;\ntree T = [&R ((a:1,b:1):2,c:3); end;", "[ line 3 closed"),
        ("#NEXUS\nbegin trees;\ntree T = &R] ((a:1,b:1):2,c:3); end;", "bracket ] line 3 closes comment"),
        ("#NEXUS\nbegin trees;\ntree 'T = ((a:1,b:1):2,c:3); end;", "quote line 3 closed"),
        (in_block(f"tree T {TREE}"), "Tree 1 file = line 3"),
        (in_block(f"tree T = {TREE}\ntree U = ((a:1,b:1):2,d:3);"), "Tree U 2 lacks c d"),
        (in_block(f"tree T = {TREE}\ntree U = (a:1,b:1);"), "Tree U lacks c trees"),
        (in_block("tree T = (a:1,b:1);", TAXA), "Tree T lacks c"),
        (in_block("tree T = ((1:1,2:1):2,4:3);", TAXA), "Tree T lacks c 4"),
        (in_block(f"{TABLE}tree T = ((1:1,2:1):2,4:3);"), "Tree T leaf 4 key"),
        (in_block(f"{TABLE}tree T = ((1:1,a:1):2,3:3);"), "Tree T lacks b"),
        (in_block(f"{TABLE}tree T = (((1:1,a:1):1,2:2):2,3:4);"), "Tree T 'a' twice"),
        (
            in_block(f"translate 1 a, 2 b c;\ntree T = {KEYED}"),
            "entry 2 b c translate table line 3 commas",
        ),
        (in_block(f"translate 1 a 2 b;\ntree T = {KEYED}"), "entry 1 2 b translate table"),
        (in_block(f"translate 1 a, 1 b;\ntree T = {KEYED}"), "key 1 twice"),
        (in_block(f"translate 1 a, 2 a;\ntree T = {KEYED}"), "'a' twice translate table"),
        (in_block(f"tree T = {TREE}", TAXA.replace("b c", "b b")), "b twice list taxa"),
        (in_block(f"tree T = [&W x] {TREE}"), "Tree T weight x weights finite"),
        (in_block(f"tree T = [&W 1/0] {TREE}"), "weight 1/0"),
        (in_block(f"tree T = [&W 1/2/3] {TREE}"), "weight 1/2/3"),
        (in_block(f"tree T = [&W -1] {TREE}"), "weight -1"),
        (in_block(f"tree T = [&W nan] {TREE}"), "weight nan"),
        (in_block(f"tree T = [&W 0] {TREE}"), "weights 0"),
        (in_block("tree T = ;"), "Tree T file tree"),
        (
            in_block("tree T = [&R] (a:1,b:1,c:1);"),
            "Tree T node 3 children character 35 line column 15",
        ),
        (in_block("tree T =\n(a:1,b);"), "leaf b character 35 line 4 column 6 branch length"),
        ("\n" + in_block("tree T = (a:1,b);"), "leaf b character 36 line 4 column 15 branch length"),
        (in_block("tree T = ((a:1,b:1.5):2,c:3);"), "Tree T ultrametric"),
        (in_block("tree T = (a:1,a:1);"), "leaf 'a' twice"),
    ],
)
def test_invalid_nexus_is_rejected_with_message(text, message):
    with refused(message):
        TreeSample.from_nexus(text)


def test_nexus_tolerance_equals_newick_tolerance():
    text = in_block("tree T = ((a:1,b:1.0000001):2,c:3);")
    assert TreeSample.from_nexus(text).n_leaves == 3
    with pytest.raises(InputError, match="not ultrametric"):
        TreeSample.from_nexus(text, tolerance=1e-9)


@given(st.text(st.sampled_from("#NEXUS begintrs;=()[]&W,:'\"1a\n*"), max_size=40), st.booleans())
def test_random_nexus_text_is_read_or_rejected(noise, inside):
    try:
        TreeSample.from_nexus(in_block(noise) if inside else "#NEXUS " + noise)
    except InputError as error:
        refusal = str(error)
    else:
        refusal = ""
    assert len(refusal) < 500


def test_truncated_nexus_is_rejected():
    text = TreeSample([ABC, ABC]).to_nexus()
    for end in range(len(text) - 2):
        with pytest.raises(InputError):
            TreeSample.from_nexus(text[:end])
