"""Dates before 1685 and after 2255, whose microseconds are no exact floats, and dates that stand for none."""

import datetime as dt
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from coaltree.table.columns import read_columns
from coaltree.table.fill import fill_cells, fill_file
from coaltree.table.read_file import read_file

DATES = [dt.date(2020, 1, 1), dt.date(1500, 2, 3), dt.date(2300, 6, 7), None, dt.date(9000, 1, 1)]
SENTINELS = [*DATES, dt.date(9999, 12, 31), dt.date(1, 1, 1)]
SENTINEL_TIMES = [d and dt.datetime(d.year, d.month, d.day, 6) for d in SENTINELS]
EXPECTED = [math.nan if d is None else float(d.toordinal() - dt.date(1970, 1, 1).toordinal()) for d in DATES]

FRAMES: dict[str, Callable[[list[Any], list[Any]], Any]] = {
    "pandas, objects": lambda dates, _: pd.DataFrame({"when": pd.Series(dates, dtype=object)}),
    "pandas, seconds": lambda dates, _: pd.DataFrame({"when": np.array(dates, "M8[s]")}),
    "pandas, arrow dates": lambda dates, _: pd.DataFrame({"when": pd.array(dates, dtype=pd.ArrowDtype(pa.date32()))}),
    "pandas, arrow times": lambda _, times: pd.DataFrame(
        {"when": pd.array(times, dtype=pd.ArrowDtype(pa.timestamp("us", "UTC")))}
    ),
    "polars, dates": lambda dates, _: pl.DataFrame({"when": dates}),
    "polars, microseconds": lambda _, times: pl.DataFrame({"when": pl.Series(times, dtype=pl.Datetime("us"))}),
    "pyarrow, days": lambda dates, _: pa.table({"when": pa.array(dates, pa.date32())}),
    "pyarrow, 64 bits": lambda dates, _: pa.table({"when": pa.array(dates, pa.date64())}),
    "pyarrow, seconds": lambda _, times: pa.table({"when": pa.array(times, pa.timestamp("s"))}),
    "pyarrow, microseconds": lambda _, times: pa.table({"when": pa.array(times, pa.timestamp("us"))}),
    "list of dates": lambda dates, _: [[date] for date in dates],
}


@pytest.mark.parametrize("name", FRAMES)
def test_far_dates_are_read_and_those_that_stand_for_none_are_missing(name):
    table = read_columns(FRAMES[name](SENTINELS, SENTINEL_TIMES))
    days = table.columns[0].values
    assert np.array_equal(np.floor(days), [*EXPECTED, math.nan, math.nan], equal_nan=True)
    assert len(table.remarks) == 1
    assert "9999-12-31" in table.remarks[0]
    assert "2 cells" in table.remarks[0]
    assert "categorical to keep" in table.remarks[0]
    kept = read_columns(FRAMES[name](SENTINELS, SENTINEL_TIMES), categorical_features=[0])
    assert (kept.columns[0].codes[-2:] >= 0).all()
    assert kept.remarks == ()


def test_columns_without_such_dates_have_no_remark():
    assert read_columns(pl.DataFrame({"when": DATES})).remarks == ()


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_long_durations_are_read_in_days(unit):
    spans = pa.array([86_400, None, 90_000 * 86_400], pa.duration("s")).cast(pa.duration(unit))
    assert read_columns(pa.table({"for": spans})).columns[0].values[[0, 2]].tolist() == [1.0, 90_000.0]


def test_first_and_last_moments_with_a_time_zone_are_read():
    east, west = (dt.timezone(dt.timedelta(hours=hours)) for hours in (14, -12))
    cells = [
        dt.datetime(2020, 1, 2, 14, tzinfo=east),
        dt.datetime.min.replace(tzinfo=east),
        dt.datetime.max.replace(tzinfo=west),
    ]
    values = read_columns([[cell] for cell in cells]).columns[0].values
    assert values[0] == 18263.0
    assert values[1] < -719_162
    assert values[2] > 2_932_896


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_filled_files_replace_dates_that_stand_for_none(suffix, tmp_path: Path):
    path = tmp_path / f"contracts.{suffix}"
    frame = pl.DataFrame({"until": SENTINELS, "price": range(7)})
    frame.write_csv(path) if suffix == "csv" else frame.write_parquet(path)
    assert read_columns(read_file(path).frame).columns[0].values[2] == EXPECTED[2]
    path.write_bytes(fill_file(path, {"until": ([3, 5, 6], [0.0, 1.0, 2.0])}))
    filled = read_file(path).frame["until"].to_list()
    assert filled == [*DATES[:3], dt.date(1970, 1, 1), DATES[4], dt.date(1970, 1, 2), dt.date(1970, 1, 3)]


def test_filled_frames_keep_far_dates():
    filled = fill_cells(pa.table({"when": pa.array(DATES, pa.date32())}), {0: ([3], [0.0])})
    assert filled["when"].to_pylist() == [*DATES[:3], dt.date(1970, 1, 1), DATES[4]]
