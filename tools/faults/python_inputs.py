"""Odd objects in the place of tables, and odd values in the place of parameters, for the Python interface."""

from __future__ import annotations

import datetime as dt
import fractions
import math
import pathlib
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import scipy.sparse as sp
import xarray as xr

import coaltree as ct

from .outcome import ACCEPTED, Outcome, check, try_call

Rng = np.random.Generator


class Hostile:
    """An object all of whose conversions fail."""

    def __repr__(self) -> str:
        raise RuntimeError("no text")

    def __float__(self) -> float:
        raise RuntimeError("no number")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no comparison")

    __hash__ = None  # type: ignore[assignment]


class Claimant:
    """An object that claims to be an array, and is none."""

    shape = (3, 2)
    ndim = 2
    dtype = "float64"

    def __len__(self) -> int:
        return 3

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise ValueError("no array")


SCALARS: tuple[Any, ...] = (
    0, 1, -1, 1.5, math.nan, math.inf, -math.inf, 1e308, 5e-324, 2**63, 10**400, True, None, "", "a", "NA", "1",
    b"a", Decimal("1.5"),
    Decimal("sNaN"), Decimal("Infinity"), fractions.Fraction(1, 3), 1 + 2j, dt.date(2020, 1, 1),
    dt.datetime(2020, 1, 1), dt.time(1),
    dt.timedelta(1), np.datetime64("NaT"), np.datetime64("2020-01-01"), np.timedelta64(1, "D"), pd.NaT, pd.NA,
    pd.Timestamp("2020-01-01", tz="UTC"),
    np.float16(1), np.uint64(2**64 - 1), np.str_("u"), np.void(b"x"), (1, 2), [1], {"a": 1}, {1}, object(),
    Hostile(), Claimant(), pathlib.Path("x"),
    "x" * 10_000, "\ud800", lambda: 1, int, ..., NotImplemented, slice(1), range(3), np.array(1.0),
    np.array([1.0, 2.0]), pl.Series([1.0]),
)  # fmt: skip

PARAMETERS = (
    "resolution", "n_clusters", "height_threshold", "min_cluster_size", "assign_outliers", "inference", "rule",
    "search", "refine", "proposal",
    "n_particles", "n_runs", "n_chains", "n_samples", "draw_parameters", "summary", "summary_heights",
    "random_state", "real_process",
    "categorical_process", "covariance", "noise", "standardize", "categorical_features", "n_jobs",
)  # fmt: skip
# Values that are allowed for some of them, so that one bad value does not hide the others.
VALUES: tuple[Any, ...] = (
    *SCALARS, 2, 3, 0.5, 0.2, "smc", "mcmc", "greedy", "exact", "neighbors", "full", "diagonal", "power", "race",
    "consensus", "brownian",
    ct.Brownian(1.0, 0.1), ct.OrnsteinUhlenbeck(0.5), np.random.default_rng(0), np.random.RandomState(0), [0], ["a"],
    [True, False], "auto",
)  # fmt: skip


# -- tables ----------------------------------------------------------------------------------------------------------------


def draw_input(rng: Rng) -> Any:
    """Return something that stands for a table."""
    makers: tuple[Callable[[Rng], Any], ...] = (
        _plain_array, _plain_array, _typed_array, _odd_array, _nested_list, _scalar, _pandas, _pandas, _polars,
        _arrow, _others, _extreme,
    )  # fmt: skip
    return makers[int(rng.integers(len(makers)))](rng)


def _shape(rng: Rng) -> tuple[int, int]:
    return int(rng.choice([0, 1, 2, 3, 7, 20], p=[0.05, 0.1, 0.1, 0.15, 0.3, 0.3])), int(
        rng.choice([0, 1, 2, 4], p=[0.05, 0.2, 0.45, 0.3])
    )


def _plain_array(rng: Rng) -> Any:
    X = rng.normal(size=_shape(rng))
    if rng.random() < 0.5:
        X[rng.random(X.shape) < rng.random()] = np.nan
    return X


def _extreme(rng: Rng) -> Any:
    X = rng.normal(size=_shape(rng))
    values = rng.choice([1e308, -1e308, 1e-308, 5e-324, 0.0, 1e154, 1e16, np.nan, np.inf], size=3)
    where = rng.random(X.shape) < rng.random()
    X[where] = rng.choice(values, size=int(where.sum()))
    with np.errstate(over="ignore"):
        return X * 10.0 ** int(rng.choice([0, 0, -300, 290]))


def _typed_array(rng: Rng) -> Any:
    n, d = _shape(rng)
    kind = str(
        rng.choice(
            ["bool", "i1", "u1", "i4", "u8", "f2", "f4", "g", "c16", "S3", "U3", "O", "M8[D]", "m8[s]", ">f8", "M8[ns]"]
        )
    )
    base = rng.integers(0, 4, size=(n, d))
    array = base.astype(kind) if kind != "g" else base.astype(np.longdouble)
    return np.asfortranarray(array) if rng.random() < 0.3 else array[::-1] if rng.random() < 0.3 else array


def _odd_array(rng: Rng) -> Any:
    n, d = _shape(rng)
    X = rng.normal(size=(n, d))
    arrays: tuple[Callable[[], Any], ...] = (
        lambda: X.ravel(),
        lambda: X[:, :, None],
        lambda: np.array(1.0),
        lambda: np.ma.masked_array(X, X > 0.5),
        lambda: np.ma.masked_all((n, d)),
        lambda: np.asmatrix(X),
        lambda: np.zeros(n, dtype=[("a", "f8"), ("b", "U3")]),
        lambda: np.rec.array(np.zeros(n, dtype=[("a", "f8"), ("b", "i4")])),
        lambda: sp.csr_matrix(X),
        lambda: sp.coo_array(X) if hasattr(sp, "coo_array") else sp.coo_matrix(X),
        lambda: memoryview(X) if X.size else X,
        lambda: X.view() if X.flags.writeable else X,
        lambda: np.broadcast_to(1.0, (n, d)),
        lambda: np.array(
            [[SCALARS[int(k)] for k in rng.integers(len(SCALARS), size=max(d, 1))] for _ in range(n)] or [[]],
            dtype=object,
        ),
    )
    try:
        return arrays[int(rng.integers(len(arrays)))]()
    except ValueError:  # objects that make no array
        return X


def _nested_list(rng: Rng) -> Any:
    n, d = _shape(rng)
    pool = [SCALARS[int(k)] for k in rng.integers(len(SCALARS), size=3)]
    rows: Any = [
        [pool[int(rng.integers(3))] if rng.random() < 0.1 else float(rng.normal()) for _ in range(d)] for _ in range(n)
    ]
    how = rng.random()
    if how < 0.2 and rows:
        rows[-1] = rows[-1][:-1]
    elif how < 0.3:
        rows = tuple(map(tuple, rows))
    elif how < 0.4:
        rows = [dict(enumerate(row)) for row in rows]
    elif how < 0.5:
        rows = (row for row in rows)
    elif how < 0.55:
        rows = {f"c{j}": [row[j] for row in rows] for j in range(d)}
    return rows


def _scalar(rng: Rng) -> Any:
    return SCALARS[int(rng.integers(len(SCALARS)))]


def _pandas(rng: Rng) -> Any:
    n, d = _shape(rng)
    frame = pd.DataFrame({f"c{j}": _pandas_column(rng, n) for j in range(d)}, index=range(n))
    how = rng.random()
    if how < 0.1 and d:
        frame.columns = pd.MultiIndex.from_tuples([("a", j) for j in range(d)])
    elif how < 0.2 and d:
        frame.columns = pd.Index(["c"] * d)
    elif how < 0.3 and d:
        frame.columns = pd.Index([SCALARS[int(rng.integers(20))] for _ in range(d)], dtype=object, tupleize_cols=False)
    elif how < 0.4 and n:
        frame.index = pd.MultiIndex.from_tuples([(i, "x") for i in range(n)])
    elif how < 0.5 and n:
        frame.index = pd.Index([f"r{i // 2}" for i in range(n)])
    elif how < 0.55 and n:
        frame.index = pd.date_range("2020-01-01", periods=n)
    elif how < 0.6 and d:
        return frame[frame.columns[0]]
    elif how < 0.65 and n:
        frame.index = pd.Index([SCALARS[int(rng.integers(30))] for _ in range(n)], dtype=object, tupleize_cols=False)
    return frame


def _pandas_column(rng: Rng, n: int) -> Any:
    ints = rng.integers(0, 5, n)
    pool = [SCALARS[int(k)] for k in rng.integers(len(SCALARS), size=2)]
    makers: tuple[Callable[[], Any], ...] = (
        lambda: rng.normal(size=n),
        lambda: pd.array(rng.normal(size=n), dtype="Float64"),
        lambda: pd.array(ints, dtype="Int8"),
        lambda: pd.array(ints % 2 == 0, dtype="boolean"),
        lambda: pd.array([str(v) for v in ints], dtype="string"),
        lambda: pd.Categorical(ints),
        lambda: pd.Categorical([f"v{v}" for v in ints], ordered=True),
        lambda: pd.Categorical([None] * n, categories=["a"]),
        lambda: pd.date_range("2020-01-01", periods=n, tz="Europe/Berlin"),
        lambda: pd.period_range("2020-01", periods=n, freq="M"),
        lambda: pd.arrays.IntervalArray.from_breaks(range(n + 1)),
        lambda: pd.arrays.SparseArray(rng.normal(size=n)),
        lambda: pd.array(ints, dtype=pd.ArrowDtype(pa.int64())),
        lambda: pd.array([str(v) for v in ints], dtype=pd.ArrowDtype(pa.string())),
        lambda: pd.array([[v] for v in ints.tolist()], dtype=pd.ArrowDtype(pa.list_(pa.int64()))),
        lambda: pd.to_timedelta(ints, unit="D"),
        lambda: pd.Series([pool[int(v) % 2] if v == 0 else float(v) for v in ints], dtype=object).to_numpy(),
        lambda: pd.Series([None] * n, dtype=object).to_numpy(),
        lambda: np.array([f"t{i}" for i in range(n)], dtype=object),
        lambda: rng.choice(["u", "v"], size=n).astype(object),
    )
    return makers[int(rng.integers(len(makers)))]()


def _polars(rng: Rng) -> Any:
    from .tables import _draw_names, _draw_series

    n, d = _shape(rng)
    names = _draw_names(rng, d, distinct=True)
    frame = pl.DataFrame({name: series for name in names for series in [_draw_series(rng, name, n)]})
    return frame.lazy() if rng.random() < 0.05 else frame


def _arrow(rng: Rng) -> Any:
    frame = _polars(rng)
    frame = frame.collect() if isinstance(frame, pl.LazyFrame) else frame
    table = frame.to_arrow()
    how = rng.random()
    return table if how < 0.7 else table.to_batches() if how < 0.8 else table.combine_chunks()


def _others(rng: Rng) -> Any:
    import dask.array as da

    n, d = _shape(rng)
    X = rng.normal(size=(max(n, 1), max(d, 1)))
    makers: tuple[Callable[[], Any], ...] = (
        lambda: xr.DataArray(X),
        lambda: xr.DataArray(X, dims=("i", "j"), coords={"i": [f"r{k}" for k in range(len(X))]}),
        lambda: xr.Dataset({"a": ("i", X[:, 0])}),
        lambda: da.from_array(X, chunks=(2, 1)),
        lambda: da.from_array(X, chunks=(2, -1))[da.from_array(X, chunks=(2, -1))[:, 0] > 0],
        lambda: pl.Series([1.0, 2.0]),
        lambda: pl.DataFrame(X)[:, 0],
        lambda: pd.DataFrame(X).groupby(0),
        lambda: pd.DataFrame(X).style if hasattr(pd.DataFrame, "style") and False else pd.Series(X[:, 0]),
        lambda: "table.csv",
        lambda: Path("table.csv"),
        lambda: iter(X),
        lambda: zip(*X.T, strict=True),
        lambda: Claimant(),
        lambda: Hostile(),
    )
    return makers[int(rng.integers(len(makers)))]()


# -- cases -----------------------------------------------------------------------------------------------------------------


def case(rng: Rng, folder: Path) -> Outcome:
    """Give odd objects to one of the public functions, and check its result."""
    kinds = (_cluster, _cluster, _cluster, _impute, _search, _new_rows)
    return kinds[int(rng.integers(len(kinds)))](rng)


def _odd_settings(rng: Rng, share: float = 0.3) -> dict[str, Any]:
    if rng.random() > share:
        return {}
    names = rng.choice(PARAMETERS, size=int(rng.integers(1, 3)), replace=False)
    return {str(name): VALUES[int(rng.integers(len(VALUES)))] for name in names}


def _small(settings: dict[str, Any]) -> dict[str, Any]:
    """Keep samples small, and n_jobs a number of threads that the machine has."""
    return {"n_samples": 20, "n_chains": 2, "n_particles": 5} | settings


def _cluster(rng: Rng) -> Outcome:
    X, settings = draw_input(rng), _odd_settings(rng)
    models: list[ct.CoalescentClustering] = []
    outcome = try_call(lambda: models.append(ct.CoalescentClustering(**_small(settings)).fit(X)))
    if outcome.kind == ACCEPTED:
        model = models[0]
        n = len(model.labels_)
        check(n == _length(X), f"{n} labels of {_length(X)} rows")
        check(np.isfinite(model.tree_.heights).all(), "heights that are not finite")
        check(model.tree_.n_leaves == n and len(model.linkage_) == n - 1, "a tree of another size")
        numbers = [v for values in model.parameters_.values() for v in values.values() if isinstance(v, float)]
        check(np.isfinite(numbers).all(), "parameters that are not finite")
        check(repr(model) and model._repr_html_() is not None, "no text")
    return outcome


def _impute(rng: Rng) -> Outcome:
    X, settings = draw_input(rng), _odd_settings(rng, 0.15)
    settings = {
        k: v
        for k, v in settings.items()
        if k not in ("resolution", "n_clusters", "height_threshold", "min_cluster_size", "assign_outliers")
    }
    filled: list[Any] = []
    outcome = try_call(lambda: filled.append(ct.CoalescentImputer(**_small(settings)).fit_transform(X)))
    if outcome.kind == ACCEPTED:
        check(len(filled[0]) == _length(X), f"{len(filled[0])} filled rows of {_length(X)}")
    return outcome


def _search(rng: Rng) -> Outcome:
    X = draw_input(rng)
    processes: tuple[Any, ...] = (
        ct.Brownian(1.0),
        ct.Brownian(1.0, 0.1),
        ct.OrnsteinUhlenbeck(0.5),
        ct.OrnsteinUhlenbeck(0.5, noise=0.3),
        1,
        None,
    )
    process = processes[int(rng.integers(len(processes)))]
    calls: tuple[Callable[[], object], ...] = (
        lambda: ct.greedy(X, process),
        lambda: ct.smc(X, process, n_particles=4, random_state=0),
        lambda: ct.mcmc(X, process, 10, 2, random_state=0),
        lambda: ct.log_joint(ct.simulate_tree(3, random_state=0), X, process),
        lambda: ct.calibrate(ct.simulate_tree(3, random_state=0), X, process),
    )
    return try_call(calls[int(rng.integers(len(calls)))])


_MODELS: dict[str, Any] = {}


def _new_rows(rng: Rng) -> Outcome:
    """Ask fitted models about odd new rows."""
    if not _MODELS:
        X = np.random.default_rng(0).normal(size=(12, 2))
        _MODELS["array"] = ct.CoalescentClustering(random_state=0).fit(X)
        frame = pd.DataFrame({"c0": X[:, 0], "c1": list("uvw") * 4})
        _MODELS["frame"] = ct.CoalescentClustering(random_state=0).fit(frame)
        _MODELS["imputer"] = ct.CoalescentImputer(random_state=0).fit(frame)
    name = str(rng.choice(list(_MODELS)))
    model, X = _MODELS[name], draw_input(rng)
    if name == "imputer":
        return try_call(lambda: model.transform(X))
    results: list[Any] = []
    outcome = try_call(lambda: results.append(getattr(model, rng.choice(["predict", "score_samples", "place"]))(X)))
    if outcome.kind == ACCEPTED:
        check(len(results[0]) == _length(X), f"{len(results[0])} results about {_length(X)} rows")
        if isinstance(results[0], np.ndarray):
            check(np.isfinite(results[0]).all(), "results that are not finite")
    return outcome


def _length(X: Any) -> int:
    if isinstance(X, pl.LazyFrame):
        return int(X.collect().height)
    if hasattr(X, "shape") and not math.isnan(float(X.shape[0])):
        return int(X.shape[0])
    if type(X).__module__.startswith("dask"):
        return len(X.compute())
    return len(X)
