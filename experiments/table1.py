"""Table 1: agreement of trees with known classes, for digits and e-mails."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import coaltree as ct
from coaltree import baselines as baselines
from coaltree import datasets, metrics
from coaltree.plot.style import PALETTE

from . import paper
from .drawing import new_figure, title_panels
from .outcome import Estimate, Figures, ResultTables, Setting, Tables, group_numbers
from .repeats import run_repeats
from .rounds import run_in_rounds

FloatArray = NDArray[np.float64]

TABLES = ("table1",)
MNIST_REPEATS, SPAMBASE_REPEATS = 50, 20
SLOW_REPEATS = 5  # of methods that take seconds
PARTICLES = 20
#: Which of ours is closest to each of the paper's rows.
PAPERS_METHODS = {
    ("MNIST", "average link"): "average link",
    ("MNIST", "BHC"): "BHC, within 0.5",
    ("MNIST", "coalescent"): "coalescent, 10 rounds",
    ("SPAMBASE", "average link"): "average link",
    ("SPAMBASE", "BHC"): "BHC, 2 prior rows",
    ("SPAMBASE", "coalescent"): "coalescent, 10 rounds",
}
SCORES = {
    "purity": metrics.dendrogram_purity,
    "subtree": metrics.subtree_score,
    "leave_one_out": metrics.leave_one_out_accuracy,
}


class Method(NamedTuple):
    """A way to grow a tree over a table."""

    name: str
    grow: Callable[[FloatArray], ct.Tree]


class Task(NamedTuple):
    """A table drawn for one repeat, and what to do with it."""

    data: str
    repeat: int
    X: FloatArray
    classes: NDArray[np.generic]
    methods: list[Method]


def run(setting: Setting) -> ResultTables:
    """Score the trees of all methods on all tables."""
    n_digits, n_mails = (setting.n_repeats(n, quick=2) for n in (MNIST_REPEATS, SPAMBASE_REPEATS))
    n_slow = setting.n_repeats(SLOW_REPEATS, quick=1)
    # What takes long comes last, so that a run that is interrupted has most of the rest.
    tasks = chain(
        _digits(setting.quick, n_digits, slow=False),
        _mails(setting.quick, n_mails, slow=False),
        _digits(setting.quick, n_slow, slow=True),
        _mails(setting.quick, n_slow, slow=True),
    )
    results = run_repeats(_score_task, tasks, 2 * (n_digits + n_mails + 2 * n_slow), setting, "table1")
    return {"table1": [row for result in results for row in result]}


def _digits(quick: bool, repeats: int, slow: bool) -> Iterator[Task]:
    mnist = datasets.load_mnist()
    for repeat in range(repeats):
        rows = datasets.sample_balanced_rows(mnist.digits, 4 if quick else 20, random_state=repeat)
        pixels = mnist.images[rows].reshape(len(rows), -1).astype(np.float64)
        components = datasets.principal_components(pixels, 20)
        unit, scaled = components / components.std(axis=0), components / np.sqrt(components.var(axis=0).mean())
        yield Task("MNIST, unit variance", repeat, unit, mnist.digits[rows], _real_methods(True, slow))
        # One number for all columns: Brownian motion of variance 1 is then in the units of the table.
        yield Task("MNIST, own variance", repeat, scaled, mnist.digits[rows], _real_methods(False, slow))


def _mails(quick: bool, repeats: int, slow: bool) -> Iterator[Task]:
    mails = datasets.load_spambase()
    for repeat in range(repeats):
        rows = datasets.sample_balanced_rows(mails.spam, 10 if quick else 50, random_state=repeat)
        for data, run_lengths in (("SPAMBASE, above 0", "positive"), ("SPAMBASE, medians", "median")):
            X = datasets.binarize_attributes(mails.attributes[rows], run_lengths)
            yield Task(data, repeat, X, mails.spam[rows], _binary_methods(slow))


def _real_methods(scaled: bool, slow: bool) -> list[Method]:
    if slow:
        return [
            Method("coalescent, max-prob", partial(_brownian, rounds=10, rule="max-prob")),
            Method("coalescent, min-duration", partial(_brownian, rounds=10, rule="min-duration")),
            Method("coalescent, smc", _brownian_sample),
        ]
    methods = [
        Method("average link", baselines.linkage_tree),
        Method("Ward", partial(baselines.linkage_tree, method="ward")),
        *_genie_if_installed(),
        Method("coalescent, 0 rounds", partial(_brownian, rounds=0)),
        Method("coalescent, 1 round", partial(_brownian, rounds=1)),
        Method("coalescent, 10 rounds", partial(_brownian, rounds=10)),
    ]
    if scaled:  # these take each column in its own units, so that scaling changes nothing
        methods += [
            *(Method(f"BHC, within {share:g}", partial(_bhc, within=share)) for share in (0.25, 0.5, 0.95)),
            Method("CoalescentClustering()", _fit_estimated),
        ]
    return methods


def _binary_methods(slow: bool) -> list[Method]:
    if slow:
        return [
            Method("coalescent, max-prob", partial(_fit_mutation, rounds=0, rule="max-prob")),
            Method("coalescent, min-duration", partial(_fit_mutation, rounds=0, rule="min-duration")),
            Method("coalescent, smc", _mutating_sample),
        ]
    return [
        Method("average link", baselines.linkage_tree),
        Method("Ward", partial(baselines.linkage_tree, method="ward")),
        *_genie_if_installed(),
        *(Method(f"BHC, {rows:g} prior rows", partial(_bhc, state_strength=rows)) for rows in (0.5, 2.0, 8.0)),
        Method("coalescent, 0 rounds", partial(_fit_mutation, rounds=0)),
        Method("coalescent, 1 round", partial(_fit_mutation, rounds=1)),
        Method("coalescent, 10 rounds", partial(_fit_mutation, rounds=10)),
        Method("CoalescentClustering()", partial(_fit_estimated, categorical=True)),
    ]


def _brownian(X: FloatArray, rounds: int, rule: str = "rate1") -> ct.Tree:
    return run_in_rounds(X, ct.Brownian(np.ones(X.shape[1])), rounds, rule).tree


def _fit_mutation(X: FloatArray, rounds: int, rule: str = "rate1") -> ct.Tree:
    return run_in_rounds(X, ct.Multinomial(np.ones(X.shape[1])), rounds, rule).tree


def _brownian_sample(X: FloatArray) -> ct.Tree:
    return _sample_tree(X, run_in_rounds(X, ct.Brownian(np.ones(X.shape[1])), 10).process)


def _mutating_sample(X: FloatArray) -> ct.Tree:
    return _sample_tree(X, run_in_rounds(X, ct.Multinomial(np.ones(X.shape[1])), 1).process)


def _sample_tree(X: FloatArray, process: ct.Process) -> ct.Tree:
    return ct.smc(X, process, "race", PARTICLES, random_state=0).mcc()


def _bhc(X: FloatArray, **options: Any) -> ct.Tree:
    model = "bernoulli" if "state_strength" in options else "gaussian"
    tree: ct.Tree = baselines.BayesianHierarchicalClustering(model=model, **options).fit(X).tree_
    return tree


def _fit_estimated(X: FloatArray, categorical: bool = False) -> ct.Tree:
    features = np.full(X.shape[1], True) if categorical else None
    tree: ct.Tree = ct.CoalescentClustering(categorical_features=features).fit(X).tree_
    return tree


def _genie_if_installed() -> list[Method]:
    return [Method("genie", _genie_tree)] if find_spec("genieclust") else []


def _genie_tree(X: FloatArray) -> ct.Tree:
    import genieclust

    clusterer = genieclust.Genie(n_clusters=1).fit(X)
    n = len(X)
    # Genie does not merge in the order of distance, so the order itself is the height.
    heights = np.concatenate([np.zeros(n), np.arange(1.0, n)])
    return ct.Tree(clusterer.children_, heights)


def _score_task(task: Task) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for method in task.methods:
        tree = method.grow(task.X)
        scores = {name: score(tree, task.classes.tolist()) for name, score in SCORES.items()}
        rows.append({"data": task.data, "method": method.name, "repeat": task.repeat, **scores})
    return rows


def draw(tables: Tables) -> Figures:
    """Draw all scores with their standard errors, and the paper's as open circles."""
    rows = tables["table1"]
    data = list(dict.fromkeys(row["data"] for row in rows))
    with new_figure(2, 2, (10.5, 8.5), sharex=True) as (figure, axes):
        for panel in axes[len(data) :]:  # of a run that was interrupted
            panel.set_visible(False)
        for panel, name in zip(axes, data, strict=False):
            rows_of_data = [row for row in rows if row["data"] == name]
            methods = list(dict.fromkeys(row["method"] for row in rows_of_data))
            for number, (score, color) in enumerate(zip(SCORES, PALETTE, strict=False)):
                places = np.arange(len(methods)) + 0.22 * (number - 1)
                estimates = [
                    Estimate.from_values(numbers) for numbers in group_numbers(rows_of_data, ["method"], score).values()
                ]
                means, errors = [e.mean for e in estimates], [e.error for e in estimates]
                panel.errorbar(
                    means, places, xerr=np.nan_to_num(errors), fmt=".", color=color, label=_format_name(score)
                )
                for (group, method), published in paper.TABLE1.items():
                    method_of_ours = PAPERS_METHODS[group, method]
                    if name.startswith(group) and method_of_ours in methods:
                        at = published[number][0], places[methods.index(method_of_ours)]
                        panel.plot(*at, "o", markerfacecolor="none", markeredgecolor=color, markersize=8)
            panel.set_yticks(range(len(methods)), methods)
            panel.invert_yaxis()
            panel.grid(axis="x", alpha=0.3)
        axes[0].plot([], [], "o", markerfacecolor="none", markeredgecolor="black", markersize=8, label="the paper")
        title_panels(axes, data)
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return {"table1": figure}


def _format_name(name: str) -> str:
    return name.replace("_", "-")
