"""Figure 3b: prediction of hidden cells of the language atlas, by a tree and by baselines."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import coaltree as ct
from coaltree import baselines as baselines
from coaltree import datasets
from coaltree.baselines.imputation import StateImputer
from coaltree.plot.style import PALETTE
from coaltree.predict.results import CategoricalCells
from coaltree.process.predictions import Predictions

from .drawing import new_figure, title_panels
from .outcome import Estimate, Figures, ResultTables, Setting, Tables, group_numbers
from .repeats import run_repeats
from .rounds import run_in_rounds

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

TABLES = ("wals_restoration",)
SHARES = (0.1, 0.2, 0.3, 0.4, 0.5)
FOLDS, HIDDEN = 5, 0.05
DRAWN_SHARE = 0.2  # of the tables that are drawn from the model
ATLAS, DRAWN = "atlas", "drawn from the model"
ROUNDS = 3
COMPONENTS = (5, 10, 20, 40)
SAMPLES, WARM_UP, MOVES = 250, 80, 2  # of one chain; those left out; moves for each row from one to the next
LEAST_PROBABILITY = 1e-3  # baselines are often sure and wrong, which would cost them an infinite log score

FIRST_NOISE = 0.2  # of each feature, where the chain begins

#: Ours: languages where they stand in the tree; the imputer, with its default settings; a longer chain of trees and parameters,
#: a noise for each feature among them.
TREE, IMPUTER, SAMPLE = "one greedy tree", "CoalescentImputer()", "trees and parameters sampled"


class Task(NamedTuple):
    """A table with hidden cells, and what they held."""

    table: str
    share: float
    fold: int
    X: FloatArray
    rows: IntArray
    columns: IntArray
    truth: IntArray


def run(setting: Setting) -> ResultTables:
    """Hide cells and restore them by all methods."""
    tasks = list(_tasks(setting))
    results = run_repeats(_restore_task, tasks, len(tasks), setting, "wals_restoration")
    results.sort(key=lambda rows: (rows[0]["table"], rows[0]["share"], rows[0]["fold"]))
    return {"wals_restoration": [row for result in results for row in result]}


def _tasks(setting: Setting) -> Iterator[Task]:
    atlas = datasets.load_wals("2008")
    # Fold by fold, for a run that is interrupted; the largest tables first, so that all processes have work to the end.
    shares = SHARES[:1] if setting.quick else sorted(SHARES, reverse=True)
    parts = {share: datasets.select_densest(atlas, share).states[:: 5 if setting.quick else 1] for share in shares}
    drawn_share = shares[0] if setting.quick else DRAWN_SHARE
    model = _fit_tree(parts[drawn_share])
    for fold in range(setting.n_repeats(FOLDS, quick=1)):
        for share, states in parts.items():
            yield _make_task(ATLAS, share, fold, states)
            if share == drawn_share:
                simulated = model.process.simulate(model.tree, fold)
                yield _make_task(DRAWN, share, fold, np.where(np.isnan(states), np.nan, simulated))


def _fit_tree(X: FloatArray) -> ct.GreedyResult:
    """Find a tree with mutation rates of columns that fit it."""
    return run_in_rounds(X, ct.Multinomial(np.ones(X.shape[1])), ROUNDS)


def _make_task(table: str, share: float, fold: int, states: FloatArray) -> Task:
    known = np.argwhere(~np.isnan(states))
    rng = np.random.default_rng(fold)
    rows, columns = known[rng.choice(len(known), round(HIDDEN * len(known)), replace=False)].T
    X = states.copy()
    X[rows, columns] = np.nan
    return Task(table, share, fold, X, rows, columns, states[rows, columns].astype(np.intp))


def _restore_task(task: Task) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for method, restore in _methods(task).items():
        start = time.process_time()
        probabilities = restore(task)
        seconds = time.process_time() - start
        at_truth = np.array(
            [
                distribution[k] if k < len(distribution) else 0.0
                for distribution, k in zip(probabilities, task.truth, strict=True)
            ]
        )
        best = np.array([distribution.argmax() for distribution in probabilities])
        rows.append(
            {
                "table": task.table,
                "share": task.share,
                "fold": task.fold,
                "method": method,
                "languages": task.X.shape[0],
                "features": task.X.shape[1],
                "cells": len(task.truth),
                "accuracy": float(np.mean(best == task.truth)),
                "log_score": float(np.mean(np.log(np.maximum(at_truth, LEAST_PROBABILITY)))),
                "processor_seconds": seconds,
            }
        )
    return rows


Restore = Callable[[Task], list[FloatArray]]


def _methods(task: Task) -> dict[str, Restore]:
    result = _fit_tree(task.X)
    methods: dict[str, Restore] = {
        "mode": partial(_by_rival, rival=baselines.ColumnMode()),
        "nearest neighbour": partial(_by_rival, rival=baselines.NearestRow()),
        "average link": partial(_by_rival, rival=baselines.NearestInTree()),
        TREE: partial(_by_trees, trees=[result.tree], weights=np.ones(1), process=result.process),
        IMPUTER: _by_imputer,
        SAMPLE: partial(_by_chain, result=result),
    }
    for k in COMPONENTS:
        components = baselines.PrincipalComponentCells(k, max_rounds=100, tolerance=1e-4)
        methods[f"PPCA, {k} dimensions"] = partial(_by_rival, rival=components)
    return methods


def _by_rival(task: Task, rival: StateImputer) -> list[FloatArray]:
    return list(rival.fit(task.X).predict_proba(task.rows, task.columns))


def _by_trees(task: Task, trees: Sequence[ct.Tree], weights: FloatArray, process: ct.Process) -> list[FloatArray]:
    """Average what trees say of the cells where the languages stand in them."""
    cells = [_cells(ct.Beliefs(tree, task.X, process).leaves().take(task.rows), task.columns) for tree in trees]
    return [np.average(cell, axis=0, weights=weights) for cell in zip(*cells, strict=True)]


def _by_imputer(task: Task) -> list[FloatArray]:
    n_columns = task.X.shape[1]
    imputer = ct.CoalescentImputer(categorical_features=np.ones(n_columns, dtype=bool), random_state=task.fold)
    columns = list(imputer.fit(task.X).predictive(task.X).values())
    n_states = 1 + int(np.nanmax(task.X))
    probabilities = []
    for row, column in zip(task.rows, task.columns, strict=True):
        cells = columns[column]
        assert isinstance(cells, CategoricalCells)
        distribution = np.zeros(n_states)
        distribution[np.array(cells.categories, dtype=float).astype(np.intp)] = cells.probability[row]
        probabilities.append(distribution)
    return probabilities


def _by_chain(task: Task, result: ct.GreedyResult) -> list[FloatArray]:
    fitted_process = result.process
    assert isinstance(fitted_process, ct.Multinomial)
    process = ct.Multinomial(fitted_process.rate, fitted_process.equilibrium, np.full(task.X.shape[1], FIRST_NOISE))
    thin = MOVES * len(task.X)
    sample = ct.mcmc(
        task.X, process, SAMPLES, 1, draw_parameters=True, warmup=WARM_UP, thin=thin, random_state=task.fold
    )
    draws = zip(sample.trees, sample.processes(), strict=True)
    predictions = [_by_trees(task, [tree], np.ones(1), drawn_process) for tree, drawn_process in draws]
    return [np.mean(cells, axis=0) for cells in zip(*predictions, strict=True)]


def _cells(predictions: Predictions, columns: IntArray) -> list[FloatArray]:
    """Return the probabilities of the states of one column in each row."""
    start = predictions.start
    return [
        distribution[start[column] : start[column + 1]]
        for distribution, column in zip(predictions.probability, columns, strict=True)
    ]


def best_components(rows: list[dict[str, str]]) -> dict[str, str]:
    """Return for each share the number of components that does best, which looks at the hidden cells, as the paper does."""
    best: dict[str, str] = {}
    for (share,), _ in group_numbers(rows, ["share"], "accuracy").items():
        ppca_rows = [row for row in rows if row["share"] == share and row["method"].startswith("PPCA")]
        means = {
            method: Estimate.from_values(values).mean
            for (method,), values in group_numbers(ppca_rows, ["method"], "accuracy").items()
        }
        best[share] = max(means, key=lambda method: means[method])
    return best


def with_best_components(rows: list[dict[str, str]], table: str = ATLAS) -> list[dict[str, str]]:
    """Return the rows of one kind of table, with one PPCA for each share, the best."""
    rows = [row for row in rows if row["table"] == table]
    best = best_components(rows)
    selected = [row for row in rows if not row["method"].startswith("PPCA") or row["method"] == best[row["share"]]]
    return [{**row, "method": "PPCA, best"} if row["method"].startswith("PPCA") else row for row in selected]


def draw(tables: Tables) -> Figures:
    """Draw accuracy and log score against the size of the table."""
    rows = with_best_components([dict(row) for row in tables["wals_restoration"]])
    methods = list(dict.fromkeys(row["method"] for row in rows))
    with new_figure(1, 2, (10, 4.2)) as (figure, axes):
        for axis, score in zip(axes, ("accuracy", "log_score"), strict=True):
            for number, method in enumerate(methods):
                groups = group_numbers([row for row in rows if row["method"] == method], ["share"], score)
                estimates = [Estimate.from_values(numbers) for numbers in groups.values()]
                axis.errorbar(
                    [100 * float(share) + 0.3 * (number - 3) for (share,) in groups],
                    [estimate.mean for estimate in estimates],
                    yerr=np.nan_to_num([estimate.error for estimate in estimates]),
                    color=PALETTE[number],
                    marker="o",
                    markersize=4,
                    linewidth=1,
                    label=method,
                )
            axis.set_xlabel("densest part of languages and of features, per cent")
            axis.set_ylabel(score.replace("_", " ") + " of a hidden cell")
            axis.grid(axis="y", alpha=0.3)
        title_panels(axes, ["accuracy", "log score"])
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return {"wals_restoration": figure}
