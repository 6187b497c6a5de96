"""Tables of few distinct rows: constant ones, two values, whole numbers, a few categories; each is ordinary data."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl

import coaltree as ct

from .outcome import ACCEPTED, Failure, Outcome, check, try_call

Rng = np.random.Generator


def draw_table(rng: Rng) -> pd.DataFrame:
    """Return a frame of few distinct rows, some of which occur often."""
    n = int(rng.choice([2, 3, 7, 60, 400, 2_000, 6_000], p=[0.1, 0.15, 0.2, 0.25, 0.2, 0.08, 0.02]))
    k = int(rng.choice([1, 2, 3, 5, 12, 30]))
    frame = pd.DataFrame({f"c{j}": _draw_column(rng, k) for j in range(int(rng.integers(1, 5)))})
    if rng.random() < 0.4:
        frame = frame.mask(rng.random(frame.shape) < rng.choice([0.1, 0.5]))
    return frame.iloc[rng.choice(k, n, p=rng.dirichlet(np.full(k, rng.choice([0.3, 3.0]))))].reset_index(drop=True)


def _draw_column(rng: Rng, k: int) -> Any:
    """Return the cells of k rows."""
    makers: tuple[Callable[[], Any], ...] = (
        lambda: rng.integers(0, 3, k).astype(float),
        lambda: rng.integers(0, 2, k),
        lambda: np.arange(float(k)),
        lambda: rng.normal(size=k),
        lambda: rng.normal(size=k) * 10.0 ** rng.integers(-12, 12),
        lambda: 1e6 + rng.normal(size=k) * 1e-6,
        lambda: np.full(k, 7.0),
        lambda: rng.choice([0.0, 1e9], k),
        lambda: rng.random(k) < 0.5,
        lambda: rng.choice(["u", "v", "w"], k),
        lambda: [f"kind {i}" for i in range(k)],
        lambda: ["same"] * k,
        lambda: pd.Categorical(rng.choice(["low", "high"], k), categories=["low", "high", "never"]),
        lambda: pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 4, k), unit="D"),
    )
    return makers[int(rng.integers(len(makers)))]()


def case(rng: Rng, folder: Path) -> Outcome:
    """Fit a model to a table of few distinct rows; all but an empty table must have one."""
    frame = draw_table(rng)
    settings: dict[str, Any] = {}
    if rng.random() < 0.5:
        settings["noise"] = float(rng.choice([0.0, 0.05, 0.9]))
    if rng.random() < 0.2:
        settings["real_process"] = "brownian"
    if rng.random() < 0.2:
        settings["n_clusters"] = int(rng.integers(1, len(frame) + 1))
    table = pl.from_pandas(frame) if rng.random() < 0.3 else frame
    models: list[ct.CoalescentClustering] = []
    outcome = try_call(lambda: models.append(ct.CoalescentClustering(**settings).fit(table)))
    if outcome.kind == ACCEPTED:
        _check(models[0], frame)
    elif not frame.isna().all().any():
        raise Failure(f"{settings}, {frame.drop_duplicates().to_dict('list')}: {outcome.words}")
    return outcome


def _check(model: ct.CoalescentClustering, frame: pd.DataFrame) -> None:
    tree = model.tree_
    check(tree.n_leaves == len(frame), f"{tree.n_leaves} leaves for {len(frame)} rows")
    check(np.all(np.isfinite(tree.heights)), "a height that is not finite")
    check(np.all(np.diff(tree.merge_heights) >= 0), "heights out of order")
    check(not np.isnan(model.log_joint_), "the log joint is NaN")
    check(model.labels_.shape == (len(frame),), f"labels of shape {model.labels_.shape}")
    check(model.n_clusters_ <= len(frame), f"{model.n_clusters_} clusters")
