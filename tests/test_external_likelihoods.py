"""IQ-TREE and MrBayes, which share nothing with this library, compute the same likelihoods of given trees.

Alignments have ambiguity codes, gaps and missing cells. Matrices of morphological characters have sets of states, and columns
that do not vary were not recorded (Mkv). DS1 is read from the folder that COALTREE_DATA names.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import coaltree as ct
import mrbayes

IQTREE = shutil.which("iqtree2") or shutil.which("iqtree")
DS1 = Path(os.environ.get("COALTREE_DATA", "")) / "phylogenetics" / "DS1.nexus"
CHANGES = 5.0  # expected changes of a base per unit of height
JUKES_CANTOR = CHANGES / mrbayes.SEEN  # the rate that makes so many

needs_iqtree = pytest.mark.skipif(IQTREE is None, reason="IQ-TREE is not here: apt install iqtree")
needs_mrbayes = pytest.mark.skipif(mrbayes.PROGRAM is None, reason="MrBayes is not here: apt install mrbayes")
needs_ds1 = pytest.mark.skipif(not DS1.is_file(), reason="DS1 is not here: COALTREE_DATA names no folder with it")


def alignment(n=12, n_sites=300, seed=0):
    """Return a tree and an alignment drawn from it, where some cells are sets of bases or missing."""
    tree = scale_tree(ct.simulate_tree(n, seed), 0.1)
    process = ct.Multinomial(JUKES_CANTOR, [[0.25] * 4] * n_sites)
    X, rng = process.simulate(tree, seed + 1), np.random.default_rng(seed)
    for i, d in zip(*np.nonzero(rng.random(X.shape) < 0.15), strict=True):
        others = rng.random(4) < 0.4
        others[int(X[i, d])] = True
        X[i, d] = np.nan if others.all() else ct.state_set(*np.flatnonzero(others).tolist())
    return tree, X


def scale_tree(tree, factor):
    return ct.Tree(tree.children, factor * tree.heights, tree.leaf_names)


def codes_of(frame):
    """Return the table of bases of a frame."""
    bases = {base: code for code, base in enumerate("ACGT")}

    def code(cell):
        if isinstance(cell, str):
            return bases[cell]
        return ct.state_set(*map(bases.get, cell)) if isinstance(cell, frozenset) else np.nan

    return np.array([[code(cell) for cell in row] for row in frame.itertuples(index=False)])


def phylip(rows):
    return f"{len(rows)} {len(rows[0])}\n" + "\n".join(f"row{i} {row}" for i, row in enumerate(rows)) + "\n"


def newick(tree):
    """Return the tree with branches in expected changes."""
    names = [f"row{i}" for i in range(tree.n_leaves)]
    return ct.Tree(tree.children, CHANGES * tree.heights, names).to_newick()


def iqtree_log_likelihood(rows, tree, folder, *options):
    (folder / "rows.phy").write_text(phylip(rows))
    (folder / "tree.nwk").write_text(newick(tree))
    command = [IQTREE, "-s", "rows.phy", "-te", "tree.nwk", "-blfix", "-nt", "1", "-redo", "-keep-ident", *options]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    match = re.search(r"BEST SCORE FOUND : (-[\d.]+)", done.stdout)
    assert match, done.stdout[-2000:] + done.stderr
    return float(match[1])


MRBAYES = """#NEXUS
begin data;
dimensions ntax={n_rows} nchar={n_columns};
format datatype={datatype} missing=? gap=-;
matrix
{matrix}
;
end;
begin trees;
tree start = [&R] {tree}
end;
begin mrbayes;
set autoclose=yes nowarnings=yes seed=1 swapseed=1 quitonerror=yes;
lset {model};
prset brlenspr=clock:uniform clockratepr=fixed(1) {prior};
startvals tau=start V=start;
mcmc nruns=1 nchains=1 ngen=1 samplefreq=1 printfreq=1 diagnfreq=1;
end;
"""


def mrbayes_log_likelihood(rows, tree, folder, datatype, model, prior):
    """Return the log likelihood of the tree at which MrBayes is told to begin."""
    width = len(re.sub(r"\{\w*\}", "x", rows[0]))
    text = MRBAYES.format(
        n_rows=len(rows),
        n_columns=width,
        datatype=datatype,
        matrix="\n".join(f"row{i} {row}" for i, row in enumerate(rows)),
        tree=newick(tree),
        model=model,
        prior=prior,
    )
    (folder / "rows.nex").write_text(text)
    done = subprocess.run(
        [mrbayes.PROGRAM, "rows.nex"], cwd=folder, capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    match = re.search(r"Initial log likelihoods and log prior probs.*?Chain 1 -- (-[\d.]+)", done.stdout, re.DOTALL)
    assert match, done.stdout[-2000:]
    return float(match[1])


@needs_iqtree
def test_iqtree_agrees_on_ambiguity_codes(tmp_path):
    tree, X = alignment()
    ours = ct.Multinomial(JUKES_CANTOR, [[0.25] * 4] * X.shape[1]).log_likelihood(tree, X)
    assert iqtree_log_likelihood(
        mrbayes.letters(X, bases=True), tree, tmp_path, "-st", "DNA", "-m", "JC"
    ) == pytest.approx(ours, abs=2e-3)
    wrong = np.where(X < 0, np.nan, X)  # sets as missing cells: the comparison can fail
    without = ct.Multinomial(JUKES_CANTOR, [[0.25] * 4] * X.shape[1]).log_likelihood(tree, wrong)
    assert abs(without - ours) > 1


@needs_iqtree
@pytest.mark.parametrize("shape", [0.3, 2.0])
def test_iqtree_agrees_on_gamma_rates(shape, tmp_path):
    tree, X = alignment()
    process = ct.Multinomial(JUKES_CANTOR, [[0.25] * 4] * X.shape[1], gamma_shape=shape)
    ours = process.mixture_log_likelihood(tree, X)
    rows = mrbayes.letters(X, bases=True)
    theirs = iqtree_log_likelihood(rows, tree, tmp_path, "-st", "DNA", "-m", "JC+G4", "-a", str(shape))
    assert theirs == pytest.approx(ours, abs=2e-3)
    assert abs(process.log_likelihood(tree, X) - ours) > 1  # with equal rates: the comparison can fail


@needs_mrbayes
def test_mrbayes_agrees_on_ambiguity_codes(tmp_path):
    tree, X = alignment()
    q = [0.1, 0.2, 0.3, 0.4]
    rate = CHANGES / (1 - np.square(q).sum())
    ours = ct.Multinomial(rate, [q] * X.shape[1]).log_likelihood(tree, X)
    theirs = mrbayes_log_likelihood(
        mrbayes.letters(X, bases=True), tree, tmp_path, "dna", "nst=1 rates=equal", "statefreqpr=fixed(0.1,0.2,0.3,0.4)"
    )
    assert theirs == pytest.approx(ours, rel=1e-5)


@pytest.fixture(scope="module")
def ds1():
    """DS1 and its greedy tree."""
    X = codes_of(ct.read_characters(DS1))
    process = ct.Multinomial(JUKES_CANTOR, [[0.25] * 4] * X.shape[1])
    return X, ct.greedy(X, process).tree, process


@needs_ds1
@needs_iqtree
def test_iqtree_agrees_on_ds1(ds1, tmp_path):
    X, tree, process = ds1
    actual = iqtree_log_likelihood(mrbayes.letters(X, bases=True), tree, tmp_path, "-st", "DNA", "-m", "JC")
    assert actual == pytest.approx(process.log_likelihood(tree, X), abs=0.01)


@needs_ds1
@needs_mrbayes
def test_mrbayes_agrees_on_ds1(ds1, tmp_path):
    X, tree, process = ds1
    actual = mrbayes_log_likelihood(
        mrbayes.letters(X, bases=True), tree, tmp_path, "dna", "nst=1 rates=equal", "statefreqpr=fixed(equal)"
    )
    assert actual == pytest.approx(process.log_likelihood(tree, X), abs=0.1)


def matrix_of_morphology(n_states, n=10, n_columns=60, seed=3):
    """Return a tree and variable columns drawn from it; each has all of its states."""
    tree = scale_tree(ct.simulate_tree(n, seed), 0.1)
    rate = CHANGES * n_states / (n_states - 1)
    process = ct.Multinomial(rate, [[1 / n_states] * n_states] * n_columns, 0.0, "variable")
    X = process.simulate(tree, seed + 1)
    return tree, X[:, [len(np.unique(column)) == n_states for column in X.T]], rate


def conditional_log_likelihood(tree, X, rate, n_states):
    return ct.Multinomial(rate, [[1 / n_states] * n_states] * X.shape[1], 0.0, "variable").log_likelihood(tree, X)


def symbols(X):
    """Return the rows of a table of states as text, sets in braces."""

    def symbol(code):
        if np.isnan(code):
            return "?"
        return str(int(code)) if code >= 0 else "{" + "".join(str(k) for k in range(53) if int(-code) >> k & 1) + "}"

    return ["".join(map(symbol, row)) for row in X]


@needs_iqtree
@pytest.mark.parametrize("n_states", [2, 3])
def test_iqtree_agrees_on_mkv(n_states, tmp_path):
    tree, X, rate = matrix_of_morphology(n_states)
    assert X.shape[1] > 10
    ours = conditional_log_likelihood(tree, X, rate, n_states)
    actual = iqtree_log_likelihood(symbols(X), tree, tmp_path, "-st", "MORPH", "-m", "MK+ASC")
    assert actual == pytest.approx(ours, abs=2e-3)


@needs_iqtree
@pytest.mark.parametrize("n_states", [2, 3])
def test_iqtree_agrees_on_mkv_with_gamma_rates(n_states, tmp_path):
    tree, X, rate = matrix_of_morphology(n_states)
    q = [[1 / n_states] * n_states] * X.shape[1]
    ours = ct.Multinomial(rate, q, 0.0, "variable", gamma_shape=0.4).mixture_log_likelihood(tree, X)
    actual = iqtree_log_likelihood(symbols(X), tree, tmp_path, "-st", "MORPH", "-m", "MK+ASC+G4", "-a", "0.4")
    assert actual == pytest.approx(ours, abs=2e-3)


@needs_mrbayes
@pytest.mark.parametrize("n_states", [2, 3])
def test_mrbayes_agrees_on_mkv(n_states, tmp_path):
    """Also with missing cells and, where there are three states, with cells that are one of two.

    MrBayes conditions on columns that vary over all rows, we on columns that vary over the rows that are known. And release
    3.2.7a takes the constant columns of two states for those of three as well; those of IQ-TREE are ours.
    """
    tree, complete, rate = matrix_of_morphology(n_states)
    n_columns = complete.shape[1]
    plain = ct.Multinomial(rate, [[1 / n_states] * n_states] * n_columns)
    X, rng = complete.copy(), np.random.default_rng(0)
    for i, d in zip(*np.nonzero(rng.random(X.shape) < 0.1), strict=True):
        others = np.delete(X[:, d], i)
        if len(np.unique(others[others >= 0])) == n_states:  # MrBayes counts the states that it sees
            both = ct.state_set(int(X[i, d]), int((X[i, d] + 1) % n_states))
            X[i, d] = both if n_states > 2 and rng.random() < 0.5 else np.nan
    assert np.isnan(X).sum() > 5
    zeros = np.zeros((len(X), 1))
    constant = 2 * np.exp(ct.Multinomial(2 * CHANGES, [[0.5, 0.5]]).log_likelihood(tree, zeros))
    for cells in (complete, X):
        actual = mrbayes_log_likelihood(
            symbols(cells), tree, tmp_path, "standard", "coding=variable rates=equal", "symdirihyperpr=fixed(infinity)"
        )
        ours = plain.log_likelihood(tree, cells) - n_columns * np.log1p(-constant)
        assert actual == pytest.approx(ours, rel=1e-5)
        if n_states == 2 and cells is complete:
            assert actual == pytest.approx(conditional_log_likelihood(tree, cells, rate, n_states), rel=1e-5)
