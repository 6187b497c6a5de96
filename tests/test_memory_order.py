"""The memory order of an array changes nothing: every entry copies to one order, and results are equal bit by bit."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import coaltree as ct

pytestmark = pytest.mark.usefixtures("short_chains")

ROWS, COLUMNS = 24, 4


def draw_table() -> np.ndarray:
    """Return a rounded table with holes, in which the last bit of a sum decides on ties."""
    rng = np.random.default_rng(0)
    table = np.round(rng.normal(size=(ROWS, COLUMNS)), 1)
    table[rng.random(table.shape) < 0.1] = np.nan
    return table


def arrangements(table: np.ndarray, folder: Path) -> Iterator[tuple[str, Any]]:
    """Yield arrays and frames with the same cells."""
    n, k = table.shape
    wide = np.full((2 * n, 3 * k), -5.0)
    wide[::2, 1::3] = table
    frozen = np.array(table)
    frozen.setflags(write=False)
    np.save(folder / "table.npy", np.asfortranarray(table))
    yield "columns first", np.asfortranarray(table)
    yield "strided", wide[::2, 1::3]
    yield "reversed", np.ascontiguousarray(table[::-1, ::-1])[::-1, ::-1]
    yield "byte-swapped", table.astype(">f8" if np.little_endian else "<f8")
    yield "read-only", frozen
    yield "memory-mapped", np.load(folder / "table.npy", mmap_mode="r")
    yield "masked", np.ma.masked_array(np.asfortranarray(np.nan_to_num(table, nan=999.0)), np.isnan(table))
    yield "pandas", pd.DataFrame(table)
    yield "pandas, column by column", pd.DataFrame({f"x{j}": table[:, j] for j in range(k)})
    yield "polars", pl.DataFrame(np.asfortranarray(table), schema=[f"x{j}" for j in range(k)])


TABLE = draw_table()
PROCESS = ct.OrnsteinUhlenbeck()
TREE = ct.greedy(TABLE, PROCESS).tree
FITTED = ct.CoalescentClustering(random_state=0).fit(pd.DataFrame(TABLE).add_prefix("x"))


def tree_parts(tree: ct.Tree) -> list[Any]:
    return [tree.children, tree.heights]


def greedy_parts(result: ct.GreedyResult) -> list[Any]:
    return [*tree_parts(result.tree), result.log_joint, result.log_likelihood, result.log_ratios]


def clustering_parts(X: Any) -> list[Any]:
    model = ct.CoalescentClustering().fit(X)
    return [*tree_parts(model.tree_), model.labels_, model.log_joint_]


CALLS: dict[str, Callable[[Any], list[Any]]] = {
    "greedy": lambda X: greedy_parts(ct.greedy(X, PROCESS)),
    "greedy, Brownian": lambda X: greedy_parts(ct.greedy(X, ct.Brownian())),
    "greedy, neighbours": lambda X: greedy_parts(ct.greedy(X, PROCESS, search="neighbors")),
    "smc": lambda X: [ct.smc(X, ct.Brownian(), n_particles=10, random_state=0).log_evidence],
    "mcmc": lambda X: [ct.mcmc(X, ct.Brownian(), 20, 2, random_state=0).log_joints],
    "refine": lambda X: greedy_parts(ct.refine(TREE, X, ct.Brownian())),
    "log_likelihood": lambda X: [ct.Brownian().log_likelihood(TREE, X)],
    "log_joint": lambda X: [ct.log_joint(TREE, X, ct.Brownian())],
    "calibrate": lambda X: [ct.calibrate(ct.Brownian(), TREE, X).log_likelihood(TREE, X)],
    "Beliefs": lambda X: [ct.Beliefs(TREE, X, ct.Brownian()).nodes().mean],
    "clustering": clustering_parts,
    "imputer": lambda X: [ct.CoalescentImputer(random_state=0).fit(X)._model.matrix],
    "hierarchical clustering": lambda X: [ct.baselines.BayesianHierarchicalClustering().fit(X).tree_.heights],
    "linkage": lambda X: tree_parts(ct.baselines.linkage_tree(X)),
}
QUERIES: dict[str, Callable[[Any], list[Any]]] = {
    "score_samples": lambda X: [FITTED.score_samples(X)],
    "predict": lambda X: [FITTED.predict(X)],
    "place": lambda X: [getattr(FITTED.place(X), name) for name in ("branch", "probability", "height", "log_density")],
}


def bits(parts: list[Any]) -> list[bytes]:
    return [np.ascontiguousarray(part, dtype=np.float64).tobytes() for part in parts]


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.filterwarnings("ignore")
def test_result_does_not_depend_on_memory_order(name: str, tmp_path: Path) -> None:
    table = np.nan_to_num(TABLE) if name in ("linkage", "hierarchical clustering") else TABLE
    expected = bits(CALLS[name](np.ascontiguousarray(table)))
    for arrangement, X in arrangements(table, tmp_path):
        assert bits(CALLS[name](X)) == expected, arrangement


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.filterwarnings("ignore")
def test_answers_for_new_rows_do_not_depend_on_memory_order(name: str, tmp_path: Path) -> None:
    rows = TABLE[:6] + 0.25
    expected = bits(QUERIES[name](np.ascontiguousarray(rows)))
    for arrangement, X in arrangements(rows, tmp_path):
        assert bits(QUERIES[name](X)) == expected, arrangement


def test_parameters_may_have_any_memory_order() -> None:
    covariance = np.cov(np.random.default_rng(1).normal(size=(COLUMNS, 50)))
    nearly = covariance + np.triu(np.full_like(covariance, 1e-17))  # symmetric to the last bit but one
    results = [
        ct.Brownian(matrix).log_likelihood(TREE, np.nan_to_num(TABLE)) for matrix in (nearly, np.asfortranarray(nearly))
    ]
    assert results[0] == results[1]
    children = np.asfortranarray(TREE.children)
    assert ct.Tree(children, TREE.heights).children.flags["C_CONTIGUOUS"]
    assert ct.Tree(children, TREE.heights) == ct.Tree(TREE.children, TREE.heights)
