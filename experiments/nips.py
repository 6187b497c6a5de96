"""Table 2: flat clusters of NIPS 0 to 12 by the words of abstracts and of whole papers, and the tops of both trees."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

import coaltree as ct
from coaltree import datasets
from coaltree.tree.cut import cut_by_ratio

from . import paper
from .drawing import new_figure
from .merges import merge_rows, tree_from_rows
from .outcome import Figures, ResultTables, Row, Setting, Tables
from .rounds import run_in_rounds

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TEXTS = ("abstracts", "papers")
PARTS = ("tree", "documents", "clusters")  # a table for each text
TABLES = (
    *(f"nips_{text}_{part}" for text in TEXTS for part in PARTS),
    "nips_authors",
    "nips_noise",
    "nips_time",
    "nips_words",
)
LEAST_DOCUMENTS = 100  # that have a word which documents are clustered by
ROUNDS = 1
RATE, NOISE = 1.0, 0.1  # of whole papers, nothing fitted
NOISES = (0.0, 0.05, 0.1, 0.2, 0.3)  # which are tried as well, of either text
TOP_WORDS, TOP_AUTHORS = 5, 4
WHOLE = 250  # documents, above which the two halves of a clade of papers are shown as well
CLADES, FIGURE_WORDS = 24, 2  # in a figure

BoolArray = NDArray[np.bool_]
Rows: TypeAlias = Sequence[Mapping[str, str]]
Words: TypeAlias = Callable[[BoolArray], NDArray[np.str_]]  # of some documents


def run(setting: Setting) -> ResultTables:
    """Grow both trees, and cut them where the model prefers two trees to one."""
    abstracts, papers = datasets.load_nips(LEAST_DOCUMENTS), datasets.load_nips(1, text="papers")
    documents = np.arange(0, len(papers.names), 20 if setting.quick else 1)
    common = papers.occurs.sum(axis=0) >= LEAST_DOCUMENTS
    occurs = {
        "abstracts": abstracts.occurs[documents],
        "papers": papers.occurs[np.ix_(documents, np.flatnonzero(common))],
    }
    authors = [papers.authors[i] for i in documents]

    def grow_abstracts(X: NDArray[np.float64]) -> ct.GreedyResult:
        return run_in_rounds(X, ct.Multinomial(np.ones(X.shape[1])), ROUNDS, jobs=setting.jobs)

    def grow_papers(X: NDArray[np.float64], noise: float = NOISE) -> ct.GreedyResult:
        return ct.greedy(X, ct.Multinomial(RATE, noise=noise), n_jobs=setting.jobs)

    def row_of_noise(text: str, X: NDArray[np.float64], noise: float) -> Row:
        result = grow_papers(X, noise)
        sizes = np.bincount(cut_by_ratio(result.tree, result.log_ratios)).tolist()
        away = [row[f"{text}_away"] for row in _nearest_clades({text: result.tree}, authors)]
        return {"text": text, "noise": noise, "sizes": " ".join(map(str, sizes)), "away": sum(away)}

    names = papers.names[documents]
    tables: dict[str, Sequence[Row]] = {}
    trees, times = {}, []
    for text, grow in (("abstracts", grow_abstracts), ("papers", grow_papers)):
        X = occurs[text]
        grow(X[:4])  # compiles, if need be, before the clock starts
        wall, processor = time.perf_counter(), time.process_time()
        result = grow(X)
        labels = cut_by_ratio(result.tree, result.log_ratios)
        took = {"wall_seconds": time.perf_counter() - wall, "processor_seconds": time.process_time() - processor}
        times.append({"text": text, "documents": len(X), "words": X.shape[1], "threads": setting.jobs, **took})
        clades = _top_of_clades(result.tree, labels)
        if text == "abstracts":
            words = _words_above(X, abstracts.words)
        else:
            words = _words_by_information(papers.occurs[documents], papers.words)
            clades = list(_with_halves(result.tree, clades))
        trees[text] = result.tree
        tables[f"nips_{text}_tree"] = merge_rows(result.tree, log_ratio=result.log_ratios)
        tables[f"nips_{text}_documents"] = [
            {"document": name, "cluster": int(label)} for name, label in zip(names, labels, strict=True)
        ]
        tables[f"nips_{text}_clusters"] = [
            {"cluster": cluster, "depth": depth, **_clade(result, node, words, authors)}
            for cluster, depth, node in clades
        ]
    return {
        **tables,
        "nips_authors": _nearest_clades(trees, authors),
        "nips_noise": [row_of_noise(text, X, noise) for text, X in occurs.items() for noise in NOISES],
        "nips_time": times,
        "nips_words": _papers_words(papers),
    }


# -- clades ------------------------------------------------------------------------------------------------------------


def _top_of_clades(tree: ct.Tree, labels: NDArray[np.intp]) -> list[tuple[int, int, int]]:
    """Return number, depth and top node of each cluster."""
    return [(cluster, 0, _top_node(tree, np.flatnonzero(labels == cluster))) for cluster in range(labels.max() + 1)]


def _with_halves(tree: ct.Tree, tops: list[tuple[int, int, int]]) -> Iterator[tuple[int, int, int]]:
    """Follow up each clade that is large by the two that it is made of, the larger one first."""
    for cluster, depth, node in tops:
        yield cluster, depth, node
        if tree.leaf_counts[node] > WHOLE:
            halves = sorted(map(int, tree.children[node - tree.n_leaves]), key=lambda half: -tree.leaf_counts[half])
            yield from _with_halves(tree, [(cluster, depth + 1, half) for half in halves])


def _leaves_below(tree: ct.Tree, node: int) -> BoolArray:
    inside = np.zeros(tree.n_leaves, dtype=bool)
    first = tree.first_positions[node]
    inside[tree.leaf_order[first : first + tree.leaf_counts[node]]] = True
    return inside


def _clade(result: ct.GreedyResult, node: int, words: Words, authors: list[tuple[str, ...]]) -> dict[str, object]:
    tree = result.tree
    inside = _leaves_below(tree, node)
    counts = Counter(author for i in np.flatnonzero(inside) for author in authors[i])
    return {
        "documents": int(inside.sum()),
        "log_ratio": float(result.log_ratios[node - tree.n_leaves]) if node >= tree.n_leaves else np.nan,
        "time": -float(tree.heights[node]),
        "words": " ".join(words(inside)),
        "authors": " ".join(f"{_surname(name)} ({k})" for name, k in counts.most_common(TOP_AUTHORS)),
    }


def _top_node(tree: ct.Tree, leaves: NDArray[np.intp]) -> int:
    """Return the last common ancestor: the first node on the way up from one leaf that has as many leaves below it."""
    node = int(leaves[0])
    while tree.leaf_counts[node] < len(leaves):
        node = int(tree.parents[node])
    return node


# -- words -------------------------------------------------------------------------------------------------------------


def _words_above(occurs: NDArray[np.float64], words: NDArray[np.str_]) -> Words:
    """Tell words by how much their share inside is above their share elsewhere."""

    def top(inside: BoolArray) -> NDArray[np.str_]:
        elsewhere = occurs[~inside].mean(axis=0) if not inside.all() else 0.0
        return words[np.argsort(elsewhere - occurs[inside].mean(axis=0), kind="stable")[:TOP_WORDS]]

    return top


def _words_by_information(occurs: NDArray[np.float64], words: NDArray[np.str_]) -> Words:
    """Tell words by their share inside times the log of its ratio to their share in all documents."""
    overall = occurs.mean(axis=0)

    def top(inside: BoolArray) -> NDArray[np.str_]:
        share = occurs[inside].mean(axis=0)
        ratio = np.divide(share, overall, out=np.ones_like(share), where=share > 0)
        return words[np.argsort(-share * np.log(ratio), kind="stable")[:TOP_WORDS]]

    return top


def _papers_words(papers: datasets.Nips) -> list[Row]:
    """Count in how many abstracts, and in how many whole papers, the words occur that the paper's table shows."""
    counts = [dict(zip(text.words, text.occurs.sum(axis=0), strict=True)) for text in (datasets.load_nips(1), papers)]
    words = dict.fromkeys(word for _, _, words, _ in paper.TABLE2 for word in words.split())
    return [
        {"word": word, "abstracts": int(counts[0].get(word, 0)), "papers": int(counts[1].get(word, 0))}
        for word in words
    ]


# -- authors -----------------------------------------------------------------------------------------------------------


def _surname(author: str) -> str:
    return author.split("_")[0]


def _nearest_clades(trees: dict[str, ct.Tree], authors: list[tuple[str, ...]]) -> list[dict[str, Any]]:
    """Find, for each cluster of the paper's, the clade of each tree whose top authors are most nearly the same."""
    totals = Counter(author for names_of_paper in authors for author in names_of_paper)
    names = {author: k for k, author in enumerate(totals)}
    authorship = np.zeros((len(authors), len(names)), dtype=np.intp)
    for i, names_of_paper in enumerate(authors):
        authorship[i, [names[author] for author in names_of_paper]] = 1
    ours = {text: count_below(tree, authorship) for text, tree in trees.items()}
    rows = []
    for _, _, words, printed in paper.TABLE2:
        theirs = {_author_called(surname, totals): count for surname, count in printed_counts(printed).items()}
        listed = {names[author]: count for author, count in theirs.items() if author in names}
        row: dict[str, Any] = {"words": words, "authors": printed}
        for text, tree in trees.items():
            away = distances(ours[text], listed)
            node = int(np.argmin(away))
            counts_of_authors = (
                (author, ours[text][node, names[author]] if author in names else 0) for author in theirs
            )
            row |= {
                f"{text}_documents": int(tree.leaf_counts[node]),
                f"{text}_authors": " ".join(f"{_surname(author)} ({count})" for author, count in counts_of_authors),
                f"{text}_away": int(away[node]),
            }
        rows.append(row)
    return rows


def _author_called(surname: str, totals: Counter[str]) -> str:
    """Return the author of a name, of several the one with most documents."""
    called = [author for author in totals if _surname(author) == surname]
    return max(called, key=totals.__getitem__, default=surname)


def distances(counts: NDArray[np.intp], listed: dict[int, int]) -> NDArray[np.intp]:
    """Return how far each row of counts is from a list of the largest: by how much those on it differ, and others exceed it."""
    columns, theirs = np.array(list(listed), dtype=np.intp), np.array(list(listed.values()), dtype=np.intp)
    beyond = np.maximum(counts - theirs.min(initial=counts.max()), 0)
    beyond[:, columns] = np.abs(counts[:, columns] - theirs)
    total: NDArray[np.intp] = beyond.sum(axis=1)
    return total


def printed_counts(printed: str) -> dict[str, int]:
    """Read names and counts, such as ``Koch (30) Bower (11)``."""
    cells = printed.replace("(", "").replace(")", "").split()
    return dict(zip(cells[::2], map(int, cells[1::2]), strict=True))


def count_below(tree: ct.Tree, counts: NDArray[np.intp]) -> NDArray[np.intp]:
    """Add up the counts of the leaves below every node."""
    below = np.vstack([counts, np.zeros((tree.n_leaves - 1, counts.shape[1]), dtype=counts.dtype)])
    for node, (left, right) in enumerate(tree.children.tolist(), start=tree.n_leaves):
        below[node] = below[left] + below[right]
    return below


# -- figures -----------------------------------------------------------------------------------------------------------


def draw(tables: Tables) -> Figures:
    """Draw the tops of the trees, their clades coloured by the cluster that they are part of."""
    return {f"nips_{text}": _top_of_tree(*(tables[f"nips_{text}_{part}"] for part in PARTS)) for text in TEXTS}


def _top_of_tree(merges: Rows, documents: Rows, clusters: Rows) -> Figure:
    tree = tree_from_rows(merges, [row["document"] for row in documents])
    names = {row["cluster"]: ", ".join(row["words"].split()[:FIGURE_WORDS]) for row in clusters if row["depth"] == "0"}
    with new_figure(1, 1, (8.5, 6)) as (figure, axes):
        ct.plot_dendrogram(tree, labels=[names[row["cluster"]] for row in documents], ax=axes[0], collapse=CLADES)
    return figure
