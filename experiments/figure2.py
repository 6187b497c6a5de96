"""Figure 2: predictions of a hidden entry by all proposals and by one greedy tree, on data from the model.

In every panel one number varies and the others keep their middle values. All settings of a run share one table: fewer columns or
rows are its first ones, which is again a draw from the model, and the hidden entry is always in the first row and column. So
methods and settings are compared on the same data, and their differences have small errors.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from scipy.stats import norm

import coaltree as ct
from coaltree.plot.style import PALETTE, PLAIN

from .drawing import new_figure, title_panels
from .outcome import Estimate, Figures, ResultTables, Setting, Tables, group_numbers
from .repeats import run_repeats

FloatArray = NDArray[np.float64]

TABLES = ("figure2",)
RUNS = 100
SMC = ("post-post", "race", "prior-post", "prior-prior")
GREEDY = "rate1"
REFERENCE, REFERENCE_PARTICLES = "reference", 500  # post-post with so many particles stands for the exact result


DRAWN = (-2.4, -0.1)  # a greedy tree of few columns may be hundreds below, and nothing else could be seen


class Case(NamedTuple):
    """What varies from panel to panel."""

    columns: int = 6
    rows: int = 8
    rate: float = 1.0  # that the model believes in; the data have 1
    particles: int = 50


#: Of each panel the number that varies, and its values.
PANELS = {
    "columns": (2, 4, 6, 10),
    "rows": (4, 6, 8, 12),
    "rate": (0.25, 1.0, 4.0),
    "particles": (5, 10, 20, 50, 100),
}
TITLES = {
    "columns": "dimensions D",
    "rows": "observations n",
    "rate": "mutation rate of the model",
    "particles": "particles S",
}
WITH_REFERENCE = tuple(Case(rows=n) for n in (4, 6, 8))


def find_case(panel: str, value: Any) -> Case:
    """Return the case in which one number has a value and the others their middle ones."""
    return Case()._replace(**{panel: value})


def cases() -> dict[Case, list[str]]:
    """Return every case once, with the panels that it is in."""
    labels: dict[Case, list[str]] = {}
    for panel, values in PANELS.items():
        for value in values:
            labels.setdefault(find_case(panel, value), []).append(panel)
    return labels


def run(setting: Setting) -> ResultTables:
    """Predict the hidden entry of every run in all cases by all methods."""
    runs = setting.n_repeats(RUNS, quick=3)
    tasks = [(seed, setting.quick) for seed in range(runs)]
    results = run_repeats(_predict_task, tasks, runs, setting, "figure2")
    return {"figure2": [row for result in results for row in result]}


def _predict_task(task: tuple[int, bool]) -> list[dict[str, object]]:
    seed, quick = task
    rng = np.random.default_rng(seed)
    tree = ct.simulate_tree(int(max(PANELS["rows"])), rng)
    table = ct.Brownian().simulate(tree, rng, n_columns=int(max(PANELS["columns"])))
    rows: list[dict[str, object]] = []
    for case in [Case(), Case(rows=4)] if quick else cases():
        X = table[: case.rows, : case.columns]
        methods = [*SMC, GREEDY] + ([REFERENCE] if case in WITH_REFERENCE and not quick else [])
        rows += [
            {"run": seed, **case._asdict(), "method": method, "log_predictive": log_predictive(X, case, method, seed)}
            for method in methods
        ]
    return rows


def log_predictive(X: FloatArray, case: Case, method: str, seed: int) -> float:
    """Return the log density of the first entry of a table, given all others."""
    process = ct.Brownian(case.rate)
    hidden = X.copy()
    hidden[0, 0] = math.nan
    if method == GREEDY:
        trees, weights = [ct.greedy(hidden, process).tree], np.ones(1)
    else:
        proposal, particles = (SMC[0], REFERENCE_PARTICLES) if method == REFERENCE else (method, case.particles)
        sample = ct.smc(hidden, process, proposal, particles, random_state=seed)
        trees, weights = list(sample.trees), sample.weights
    shares: dict[ct.Tree, float] = {}  # resampling leaves many copies of a tree
    for tree, weight in zip(trees, weights, strict=True):
        shares[tree] = shares.get(tree, 0.0) + float(weight)
    # Given the tree columns are independent: those without a hole say nothing more.
    logs = [_log_density(X[0, 0], ct.Beliefs(tree, hidden[:, :1], process)) for tree in shares]
    return float(logsumexp(logs, b=list(shares.values())))


def _log_density(value: float, beliefs: ct.Beliefs) -> float:
    leaves = beliefs.leaves()
    return float(norm.logpdf(value, leaves.mean[0, 0], leaves.sd[0, 0]))


def in_case(rows: list[dict[str, str]], case: Case) -> list[dict[str, str]]:
    """Return the rows of one case."""
    return [row for row in rows if all(float(row[name]) == value for name, value in case._asdict().items())]


def draw(tables: Tables) -> Figures:
    """Draw the four panels."""
    rows = [dict(row) for row in tables["figure2"]]
    with new_figure(1, 4, (11, 3.6), sharey=True) as (figure, axes):
        for axis, (panel, values) in zip(axes, PANELS.items(), strict=True):
            estimates: dict[str, list[tuple[float, Estimate]]] = {}
            for value in values:
                rows_of_case = in_case(rows, find_case(panel, value))
                for (method,), numbers in group_numbers(rows_of_case, ["method"], "log_predictive").items():
                    estimates.setdefault(method, []).append((value, Estimate.from_values(numbers)))
            for number, (method, points) in enumerate(estimates.items()):
                shift = 1 + 0.02 * (number - 2)
                axis.errorbar(
                    [value * shift for value, _ in points],
                    [estimate.mean for _, estimate in points],
                    yerr=[estimate.error for _, estimate in points],
                    label=method,
                    color=PLAIN if method == REFERENCE else PALETTE[number],
                    marker="D" if method == REFERENCE else "o",
                    markersize=3.5,
                    linewidth=1,
                    linestyle=":" if method == REFERENCE else "-",
                )
            axis.set_xscale("log")
            axis.set_xticks(values, [f"{value:g}" for value in values])
            axis.minorticks_off()
            axis.set_ylim(*DRAWN)
            axis.grid(axis="y", alpha=0.3)
        axes[0].set_ylabel("log predictive density of a hidden entry")
        title_panels(axes, list(TITLES.values()))
        handles, names = max((axis.get_legend_handles_labels() for axis in axes), key=lambda legend: len(legend[1]))
        figure.legend(handles, names, loc="outside lower center", ncols=6)
    return {"figure2": figure}
