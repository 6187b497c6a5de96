"""Tables whose cells or arrangement in memory are unusual: far and nullable dates, and arrays of every memory order."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

import coaltree as ct
from coaltree.table.columns import read_columns

from .outcome import ACCEPTED, Outcome, check, try_call

Rng = np.random.Generator

_EPOCH = dt.date(1970, 1, 1).toordinal()
_SENTINELS = (dt.date(1, 1, 1), dt.date(9999, 12, 31))


def dates_case(rng: Rng, folder: Path) -> Outcome:
    """Read dates of any century, some missing, from a frame of any library; the days must be those of the calendar."""
    n = int(rng.integers(1, 12))
    dates: list[dt.date | None] = [dt.date.fromordinal(int(day)) for day in rng.integers(2, dt.date.max.toordinal(), n)]
    for i in np.flatnonzero(rng.random(n) < 0.3):
        dates[int(i)] = None if rng.random() < 0.5 else _SENTINELS[int(rng.integers(2))]
    times = [None if day is None else dt.datetime(day.year, day.month, day.day) for day in dates]
    unit = str(rng.choice(["s", "ms", "us"]))
    frames: tuple[Any, ...] = (
        pd.DataFrame({"when": pd.Series(dates, dtype=object)}),
        pd.DataFrame({"when": np.array(times, f"M8[{unit}]")}),
        pd.DataFrame({"when": pd.array(dates, dtype=pd.ArrowDtype(pa.date32()))}),
        pd.DataFrame({"when": pd.array(times, dtype=pd.ArrowDtype(pa.timestamp(unit, "UTC")))}),
        pl.DataFrame({"when": pl.Series(dates, dtype=pl.Date)}),
        pl.DataFrame({"when": pl.Series(times, dtype=pl.Datetime("ms" if unit == "s" else unit))}),
        pa.table({"when": pa.array(dates, pa.date32())}),
        pa.table({"when": pa.array(dates, pa.date64())}),
        pa.table({"when": pa.array(times, pa.timestamp(unit))}),
        [[day] for day in dates],
    )
    values = read_columns(frames[int(rng.integers(len(frames)))]).columns[0].values
    expected = [np.nan if day is None or day in _SENTINELS else float(day.toordinal() - _EPOCH) for day in dates]
    check(np.array_equal(values, expected, equal_nan=True), f"{values.tolist()} in place of {expected}")
    return Outcome(ACCEPTED)


def order_case(rng: Rng, folder: Path) -> Outcome:
    """Search trees for the same table in two arrangements in memory; they must agree bit by bit."""
    n, k = int(rng.integers(2, 20)), int(rng.integers(1, 6))
    table = np.round(rng.normal(size=(n, k)), int(rng.integers(0, 3)))
    table[rng.random(table.shape) < 0.1] = np.nan
    wide = np.full((2 * n, 3 * k), 7.0)
    wide[::2, 1::3] = table
    np.save(folder / "table.npy", np.asfortranarray(table))
    other = (
        np.asfortranarray(table),
        wide[::2, 1::3],
        np.ascontiguousarray(table[::-1, ::-1])[::-1, ::-1],
        table.astype(">f8"),
        np.load(folder / "table.npy", mmap_mode="r"),
        np.ma.masked_array(np.nan_to_num(table, nan=9.0), np.isnan(table)),
        pd.DataFrame(table),
    )[int(rng.integers(7))]
    process = (ct.Brownian(), ct.OrnsteinUhlenbeck(), ct.Brownian(noise=0.1))[int(rng.integers(3))]
    trees: list[ct.GreedyResult] = []
    outcome = try_call(lambda: trees.extend(ct.greedy(X, process) for X in (table, other)))
    if outcome.kind == ACCEPTED:
        check(trees[0].tree == trees[1].tree, "another tree")
        check(trees[0].log_joint == trees[1].log_joint, f"{trees[0].log_joint!r} and {trees[1].log_joint!r}")
    return outcome
