"""Table 2: flat clusters of the abstracts of NIPS 0 to 12, and the top of their tree."""

from __future__ import annotations

import time
from collections import Counter

import numpy as np
from numpy.typing import NDArray

import coaltree as ct
from coaltree import datasets
from coaltree.tree.cut import cut_by_ratio

from . import paper
from .drawing import new_figure
from .merges import merge_rows, tree_of
from .outcome import Figures, Found, Setting, Tables
from .rounds import in_rounds

TABLES = ("nips_tree", "nips_documents", "nips_clusters", "nips_time", "nips_words")
ROUNDS = 1
TOP_WORDS, TOP_AUTHORS = 5, 4
CLADES = 24  # in the figure


def run(setting: Setting) -> Found:
    """Grow the tree with one round of fitting, and cut it where the model prefers two trees to one."""
    nips = datasets.load_nips()
    chosen = np.arange(0, len(nips.occurs), 20 if setting.quick else 1)
    X = nips.occurs[chosen]
    ct.greedy(X[:4], ct.Multinomial(np.ones(X.shape[1])))  # compiles, if need be, before the clock starts
    wall, processor = time.perf_counter(), time.process_time()
    found = in_rounds(X, ct.Multinomial(np.ones(X.shape[1])), ROUNDS, jobs=setting.jobs)
    labels = cut_by_ratio(found.tree, found.log_ratios)
    took = {"wall_seconds": time.perf_counter() - wall, "processor_seconds": time.process_time() - processor}
    authors = [nips.authors[i] for i in chosen]
    return {
        "nips_tree": merge_rows(found.tree, log_ratio=found.log_ratios),
        "nips_documents": [
            {"document": name, "cluster": int(label)} for name, label in zip(nips.names[chosen], labels, strict=True)
        ],
        "nips_clusters": _clusters(found, labels, X, nips.words, authors),
        "nips_time": [{"documents": len(X), "words": X.shape[1], "threads": setting.jobs, **took}],
        "nips_words": _papers_words(),
    }


def _clusters(
    found: ct.GreedyResult,
    labels: NDArray[np.intp],
    X: NDArray[np.float64],
    words: NDArray[np.str_],
    authors: list[tuple[str, ...]],
) -> list[dict[str, object]]:
    tree, rows = found.tree, []
    for cluster in range(labels.max() + 1):
        inside = labels == cluster
        top = _top_node(tree, np.flatnonzero(inside))
        elsewhere = X[~inside].mean(axis=0) if not inside.all() else 0.0
        order = np.argsort(elsewhere - X[inside].mean(axis=0), kind="stable")
        counted = Counter(author for i in np.flatnonzero(inside) for author in authors[i])
        rows.append(
            {
                "cluster": cluster,
                "documents": int(inside.sum()),
                "log_ratio": float(found.log_ratios[top - tree.n_leaves]) if top >= tree.n_leaves else np.nan,
                "time": -float(tree.heights[top]),
                "words": " ".join(words[order[:TOP_WORDS]]),
                "authors": " ".join(f"{name.split('_')[0]} ({k})" for name, k in counted.most_common(TOP_AUTHORS)),
            }
        )
    return rows


def _papers_words() -> list[dict[str, object]]:
    """Count in how many abstracts, and in how many whole papers, the words occur that the paper's table shows."""
    abstracts, papers = datasets.load_nips(1), datasets.load_nips(1, text="papers")
    counts = [dict(zip(text.words, text.occurs.sum(axis=0), strict=True)) for text in (abstracts, papers)]
    words = dict.fromkeys(word for _, _, words, _ in paper.TABLE2 for word in words.split())
    return [
        {"word": word, "abstracts": int(counts[0].get(word, 0)), "papers": int(counts[1].get(word, 0))}
        for word in words
    ]


def _top_node(tree: ct.Tree, leaves: NDArray[np.intp]) -> int:
    """Return the last common ancestor: the first node on the way up from one leaf that has as many leaves below it."""
    node = int(leaves[0])
    while tree.leaf_counts[node] < len(leaves):
        node = int(tree.parents[node])
    return node


def draw(tables: Tables) -> Figures:
    """Draw the top of the tree, its clades coloured by the cluster that they are part of."""
    tree = tree_of(tables["nips_tree"], [row["document"] for row in tables["nips_documents"]])
    names = {row["cluster"]: ", ".join(row["words"].split()[:3]) for row in tables["nips_clusters"]}
    labels = [names[row["cluster"]] for row in tables["nips_documents"]]
    with new_figure(1, 1, (8.5, 6)) as (figure, axes):
        ct.plot_dendrogram(tree, labels=labels, ax=axes[0], collapse=CLADES)
    return {"nips": figure}
