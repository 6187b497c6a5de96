"""Tree files: valid ones, odd but valid ones, and damaged ones, in every format that is read."""

from __future__ import annotations

import warnings
from functools import cache
from pathlib import Path

import numpy as np

import coaltree as ct
from coaltree.errors import InputWarning
from coaltree.persist.tree_files import read_tree, tree_bytes

from .damage import BYTE_DAMAGES, choose
from .outcome import REJECTED, Outcome, check, classify, run_command, try_call

KINDS = {"newick": "nwk", "nexus": "nex", "linkage": "csv", "npy": "npy", "json": "json"}
# Pieces that mean something to one parser or another.
TOKENS = (
    *"(),:;[]'\"_ \t\n\\/#=&%{}0123456789eE.-+",
    "nan", "inf", "-1", "1e308", "1e-320", "1e999", "0x1", "''", "[&R]", "[&U]", "[&&NHX:S=x]", "[", "]]", "((",
    "))", ",,", "::",
    "#NEXUS", "BEGIN TREES;", "END;", "TREE t = ", "TRANSLATE", "Begin taxa;", "DIMENSIONS NTAX=3;", "\0", "\r\n",
    "\ufeff", "é",
    "漢字", "\u202e", "<script>", "=1+1", "null", "true", "[]", "{}", "1_000", "٣", "()", "a:b", "A" * 300,
)  # fmt: skip
NAMES = (
    "a",
    "b c",
    "it's",
    "x_y",
    "",
    "(",
    "漢字",
    "<b>",
    "a\tb",
    "1",
    "1.5",
    "nan",
    "=A1",
    "n" * 200,
    "\u202ea",
    "a;b",
    "[c]",
)
MAX_DEPTH = 20_000
COMMANDS_SHARE = 0.05


def case(rng: np.random.Generator, folder: Path) -> Outcome:
    """Read one file; what is read must be written and read again unchanged."""
    kind = str(rng.choice(list(KINDS), p=[0.4, 0.35, 0.1, 0.05, 0.1]))
    data = draw_file(rng, kind)
    path = folder / f"tree.{KINDS[kind]}"
    if rng.random() < COMMANDS_SHARE:
        path.write_bytes(data)
        return _run_a_command(rng, path, folder)
    trees = []

    def read() -> None:
        trees.append(read_tree(data, kind, path.name)[0])

    outcome = try_call(read)
    if outcome.kind == REJECTED:
        check(path.name in outcome.words, f"the message does not name the file: {outcome.words}")
        return outcome
    _check_tree(trees[0], kind)
    return outcome


def _run_a_command(rng: np.random.Generator, path: Path, folder: Path) -> Outcome:
    commands = (
        ["convert", path, folder / f"out.{rng.choice(list(KINDS.values()))}"],
        ["cut", path, "--n-clusters", rng.integers(1, 5), "-o", folder / "out.csv"],
        ["cut", path, "--height-threshold", "0.5"],
        ["plot", path, "-o", folder / "out.svg"],
    )
    command = commands[int(rng.integers(len(commands)))]
    outcome = classify(run_command(command))
    left = sorted(file.name for file in folder.iterdir())
    expected = 1 if outcome.kind == REJECTED or ("-o" not in command and command[0] != "convert") else 2
    check(len(left) == expected, f"{outcome.kind}, but the folder has {left}")
    return outcome


def _check_tree(tree: ct.Tree, kind: str) -> None:
    n = tree.n_leaves
    check(np.isfinite(tree.heights).all() and (np.diff(tree.heights[n:]) >= 0).all(), "heights out of order")
    check(len(set(tree.leaf_names)) == n, "equal names")
    for to in {kind, "json", "nexus"}:
        if to == "npy" or (to == "linkage" and n == 1):  # has no names, and no merges
            continue
        reread, _ = read_tree(tree_bytes(tree, to), to, "again")
        # blanks are written as underscores, unless names are quoted
        written, read = (
            {name.replace(" ", "_") if to in ("newick", "nexus") else name for name in names}
            for names in (tree.leaf_names, reread.leaf_names)
        )
        check(read == written, f"other names by {to}")
        close = np.allclose(np.sort(reread.heights), np.sort(tree.heights), rtol=1e-6, atol=1e-9 * tree.heights[-1])
        check(close, f"other heights by {to}")


@cache
def _samples() -> list[ct.TreeSample]:
    """Samples of trees, to make NEXUS files of."""
    X = np.random.default_rng(0).normal(size=(5, 2))
    process = ct.OrnsteinUhlenbeck(0.5, noise=0.2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)
        return [ct.smc(X, process, n_particles=k, random_state=k) for k in (2, 6)]


def draw_file(rng: np.random.Generator, kind: str) -> bytes:
    """Return the content of a file of some kind, damaged in some way in four of five cases."""
    n = int(rng.choice([1, 2, 3, 5, 8, 30]))
    names = [f"leaf{i}" for i in range(n)]
    if rng.random() < 0.3:
        names = [f"{name} {i}" for i, name in enumerate(rng.choice(NAMES, size=n))]
    tree = ct.Tree.from_newick("a;") if n == 1 else ct.simulate_tree(n, random_state=rng, leaf_names=names)
    if kind in ("linkage", "npy") and n == 1:
        tree = ct.simulate_tree(2, random_state=rng)
    if kind == "nexus" and rng.random() < 0.5:
        data = _samples()[int(rng.integers(2))].to_nexus().encode()
    elif kind == "newick" and rng.random() < 0.3:
        data = _odd_newick(rng).encode(errors="replace")
    else:
        data = tree_bytes(tree, kind)
    if rng.random() < 0.2:
        return data
    if kind == "npy" or rng.random() < 0.25:
        return choose(rng, BYTE_DAMAGES)(data, rng)
    return _edit(data.decode(), rng).encode(errors="surrogatepass" if rng.random() < 0.5 else "replace")


def _edit(text: str, rng: np.random.Generator) -> str:
    """Insert, replace, remove and move pieces of a text."""
    for _ in range(int(rng.integers(1, 5))):
        place = int(rng.integers(0, len(text) + 1))
        size = int(rng.choice([0, 1, 2, 10]))
        token = TOKENS[int(rng.integers(len(TOKENS)))]
        how = int(rng.integers(4))
        if how == 0:
            text = text[:place] + token + text[place:]
        elif how == 1:
            text = text[:place] + token + text[place + size :]
        elif how == 2:
            text = text[:place] + text[place + max(size, 1) :]
        else:
            other = int(rng.integers(0, len(text) + 1))
            text = text[:place] + text[other : other + 3 * size] + text[place:]
    return text


def _odd_newick(rng: np.random.Generator) -> str:
    """Return Newick text that is odd: polytomies, comments, supports, long ladders, lengths that are no clock."""
    how = int(rng.integers(7))
    if how == 0:
        n = int(rng.integers(2, 40))
        return "(" + ",".join(f"t{i}:1" for i in range(n)) + ");"
    if how == 1:
        depth = int(rng.choice([10, 1000, MAX_DEPTH], p=[0.6, 0.35, 0.05]))
        return "(" * depth + "a:1" + "".join(f",b{i}:{i + 1}):1" for i in range(depth)) + ";"
    if how == 2:
        depth = int(rng.choice([10, 1000, MAX_DEPTH]))
        return "(" * depth + ")" * int(rng.integers(0, depth + 2)) + ";"
    if how == 3:
        lengths = rng.choice(["1", "0", "-1", "1e308", "1e-320", "nan", "", "1e400", " 2 "], size=4)
        return "((a:{},b:{}):{},c:{});".format(*lengths)
    if how == 4:
        return "[comment [nested]](('it''s':1[&rate=2],b:1)0.98:1,'c d':2)root:0;"
    if how == 5:
        return "".join(rng.choice(list("(),:;ab1.'[]"), size=int(rng.integers(1, 30))))
    n = int(rng.integers(2, 8))
    return "\n".join(ct.simulate_tree(n, random_state=rng).to_newick() for _ in range(int(rng.integers(2, 4))))
