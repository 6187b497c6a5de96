"""Figure 3a: a tree of Indo-European languages by structural features, compared with the genera of linguists."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

import coaltree as ct
from coaltree import datasets
from coaltree.tree.clades import clade_masks

from .drawing import new_figure
from .merges import merge_rows, tree_from_rows
from .outcome import Figures, ResultTables, Setting, Tables
from .repeats import run_repeats
from .rounds import run_in_rounds

Weighted: TypeAlias = tuple[ct.Tree, float]

TABLES = ("wals_tree", "wals_languages", "wals_genera")
ROUNDS = 5  # which a passage says that the printed paper leaves out
# By their evidences one run would outweigh all others; so many runs of equal weight at least say how much runs agree.
PARTICLES, RUNS = 50, 16
#: What linguists join; the atlas names genera only.
JOINED = {"Balto-Slavic": ("Baltic", "Slavic"), "Indo-Iranian": ("Indic", "Iranian")}
#: Distinct colours, one for each genus.
COLORS = ("#332288", "#CC6677", "#44AA99", "#999933", "#0077BB", "#882255", "#117733", "#AA4499", "#CC8800", "#661100")


class Task(NamedTuple):
    """A run of the sampler."""

    states: NDArray[np.float64]
    process: ct.Process
    particles: int
    seed: int


def run(setting: Setting) -> ResultTables:
    """Grow the tree, and ask a sample of trees how sure each of its merges is."""
    languages = datasets.select_indo_european(datasets.load_wals("2008"))
    process = ct.Multinomial(np.ones(languages.states.shape[1]))
    result = run_in_rounds(languages.states, process, 1 if setting.quick else ROUNDS)
    tasks = [
        Task(languages.states, result.process, 10 if setting.quick else PARTICLES, seed)
        for seed in range(1 if setting.quick else RUNS)
    ]
    trees = [pair for pairs in run_repeats(_sample_task, tasks, len(tasks), setting, "wals_tree") for pair in pairs]
    shares = _shares(trees)
    support = [shares.get(mask, 0.0) for mask in clade_masks(result.tree)]
    return {
        "wals_tree": merge_rows(result.tree, support=support),
        "wals_languages": [
            {"language": name, "genus": genus, "known": int(known)}
            for name, genus, known in zip(
                languages.languages, languages.genera, (~np.isnan(languages.states)).sum(axis=1), strict=True
            )
        ],
        "wals_genera": _genera(result.tree, languages.genera, trees, shares),
    }


def _sample_task(task: Task) -> list[Weighted]:
    sample = ct.smc(task.states, task.process, "race", task.particles, random_state=task.seed)
    return list(zip(sample.trees, sample.weights.tolist(), strict=True))


def _shares(trees: list[Weighted]) -> dict[int, float]:
    """Return the share of the runs that have each clade, a set of leaves written as bits."""
    shares: dict[int, float] = {}
    total = sum(weight for _, weight in trees)
    for tree, weight in trees:
        for mask in clade_masks(tree):
            shares[mask] = shares.get(mask, 0.0) + weight / total
    return shares


def _genera(
    tree: ct.Tree, genera: NDArray[np.str_], trees: list[Weighted], shares: dict[int, float]
) -> list[dict[str, object]]:
    """Say of every group of at least two languages how near it is to a clade of the tree, and of sampled trees."""
    groups = {
        genus: genera == genus for genus in sorted(set(genera), key=lambda name: (-int((genera == name).sum()), name))
    }
    groups |= {name: np.isin(genera, parts) for name, parts in JOINED.items()}
    rows: list[dict[str, object]] = []
    for name, inside in groups.items():
        members = sum(1 << int(leaf) for leaf in np.flatnonzero(inside))
        if members.bit_count() > 1:
            best = max(clade_masks(tree), key=lambda mask: _jaccard(mask, members))
            sampled_shares = [max(_jaccard(mask, members) for mask in clade_masks(one)) for one, _ in trees]
            rows.append(
                {
                    "genus": name,
                    "languages": members.bit_count(),
                    "clade": best.bit_count(),
                    "shared": (best & members).bit_count(),
                    "jaccard": _jaccard(best, members),
                    "support": shares.get(members, 0.0),
                    "sampled_jaccard": float(np.average(sampled_shares, weights=[weight for _, weight in trees])),
                }
            )
    return rows


def _jaccard(a: int, b: int) -> float:
    return (a & b).bit_count() / (a | b).bit_count()


def draw(tables: Tables) -> Figures:
    """Draw the tree with genera in colours and the support of its merges."""
    rows, languages = tables["wals_tree"], tables["wals_languages"]
    tree = tree_from_rows(rows, [row["language"] for row in languages])
    genera = [row["genus"] for row in languages]
    colors = dict(zip(sorted(set(genera)), COLORS, strict=False))
    with new_figure(1, 1, (7.5, 8.5)) as (figure, axes):
        panel = axes[0]
        ct.plot_dendrogram(
            tree,
            labels=genera,
            colors=colors,
            ax=panel,
            leaf_names=True,
            support=[float(row["support"]) for row in rows],
        )
        for text, leaf in zip(panel.get_yticklabels(), tree.leaf_order, strict=True):
            text.set_color(colors[genera[leaf]])
    return {"wals_tree": figure}
