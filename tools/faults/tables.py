"""Hostile table files, and the commands that read tables."""

from __future__ import annotations

import csv
import datetime as dt
import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import coaltree as ct

from .damage import BYTE_DAMAGES, choose
from .outcome import ACCEPTED, Outcome, Run, check, classify, contents, run_command

Rng = np.random.Generator

NAMES = (
    "x", "y", "literal", "^a.*$", "*", "len", "all", "", " ", "x ", "a,b", 'a"b', "a\nb", "漢字", "\u202eabc",
    "<script>alert(1)</script>",
    "=SUM(A1)", "@x", "-1", "1", "1.5", "nan", "NA", "id", "row", "cluster", "n" * 3000, "a\tb", "é", "e\u0301",
    "\ufeffx", "None", "true",
    "../../x", "%s", "{0}", "x_duplicated_0", "__index_level_0__", "\\", "'", ";", "|", "\u0000", "\u200b",
    "column_1",
)  # fmt: skip
NUMBERS = (
    "1e308", "-1e308", "1e-320", "5e-324", "0", "-0", "1e400", "-1e400", "inf", "-Infinity", "NaN", "1e5", "1E+5",
    "0x10", "1_000", "1,5",
    "1.000,5", "1 000", "$5", "5%", "٣", "½", "9007199254740993", "18446744073709551615", "9" * 400, "." , "-", "+1",
    "1.", ".5", "1e",
    "00012", "1.7976931348623157e308", "2147483648",
)  # fmt: skip
TEXTS = (
    "", " ", "NA", "?", "null", "None", "-", "yes", "No", "TRUE", "a", "A", "a ", "é", "e\u0301", "漢字", "😀",
    "\u202e", "\u200b", "<b>x</b>", "=1+1",
    "+1+1", "@SUM(A1)", "-2+3", "a,b", 'a"b', "a\nb", "a\r\nb", "a\tb", "\\N", "'", "[1, 2]", "{}", "x" * 5000,
    "2020-01-01", "01/02/2020",
    "2020-02-30", "12:30", "2020-01-01T00:00:00Z", "0000-00-00", "P1D", "\x00", "\x1b[31m", "&amp;", "%n", "{x}",
    "NaT", "(other)",
)  # fmt: skip
CHARACTERS = ("utf-8", "utf-8-sig", "utf-16", "latin-1", "cp1252", "utf-32")
MAX_TEXT = 100_000


# -- columns ---------------------------------------------------------------------------------------------------------------


def _draw_texts(rng: Rng, n: int) -> list[str]:
    """Return the cells of a column of a text file."""
    kinds: tuple[Callable[[], list[str]], ...] = (
        lambda: [f"{v:.3g}" for v in rng.normal(size=n)],
        lambda: [f"{v:.17g}" for v in rng.normal(size=n) * 10.0 ** rng.integers(-300, 300)],
        lambda: [repr(float(v)) for v in rng.choice([1e308, -1e308, 1e307, 0.0, 5e-324], size=n)],
        lambda: [f"{v:.5g}" for v in rng.standard_cauchy(size=n) ** 5],
        lambda: [str(v) for v in rng.integers(0, 4, n)],
        lambda: [str(v) for v in rng.integers(2**62, 2**63 - 1, n)],
        lambda: [str(2**63 + int(v)) for v in rng.integers(0, 2**60, n)],
        lambda: ["7"] * n,
        lambda: [""] * n,
        lambda: list(rng.choice(NUMBERS, size=n)),
        lambda: list(rng.choice(TEXTS, size=n)),
        lambda: list(rng.choice(rng.choice(TEXTS, size=3), size=n)),
        lambda: [f"text {i}" for i in range(n)],
        lambda: [f"code {i // 2}" for i in range(n)],
        lambda: list(rng.choice(["u", "v", "w"], size=n)),
        lambda: list(rng.choice(["true", "false"], size=n)),
        lambda: [str(dt.date(2000, 1, 1) + dt.timedelta(int(d))) for d in rng.integers(-700_000, 2_000_000, n)],
        lambda: [str(dt.datetime(2000, 1, 1) + dt.timedelta(seconds=int(d))) for d in rng.integers(0, 10**9, n)],
        lambda: _draw_amounts(rng, n),
        lambda: list(rng.choice(["9999-12-31", "0001-01-01", "2020-01-02", "1500-03-04", "-"], size=n)),
        lambda: ["x" * int(rng.integers(1, MAX_TEXT)), *map(str, range(n - 1))][:n],
        lambda: [*map(str, rng.normal(size=max(n - 1, 0))), str(rng.choice([*NUMBERS, *TEXTS]))][-n:] if n else [],
        lambda: ["".join(map(chr, rng.integers(1, 0xD000, size=3))) for _ in range(n)],
    )
    cells = kinds[int(rng.integers(len(kinds)))]()
    if rng.random() < 0.4:
        share, mark = rng.random(), str(rng.choice(["", "NA", "?", "NaN", "null", "-999"]))
        cells = [mark if rng.random() < share else cell for cell in cells]
    return cells


def _draw_amounts(rng: Rng, n: int) -> list[str]:
    """Return numbers with a currency, a percent sign or a unit, in one notation, and perhaps other cells among them."""
    prefix, suffix = (
        str(rng.choice(["", "$", "$ ", "US$", "EUR "])),
        str(rng.choice(["", "%", " EUR", "€", " kg", "kg"])),
    )
    group, decimal = str(rng.choice(["", ",", ".", " ", "'"])), str(rng.choice([".", ","]))
    cells = []
    for value in rng.normal(scale=10.0 ** rng.integers(0, 7), size=n).tolist():
        whole, _, decimals = f"{abs(value):,.{int(rng.integers(0, 4))}f}".partition(".")
        number = whole.replace(",", group) + (decimal + decimals if decimals else "")
        cells.append(f"{'-' if value < 0 else ''}{prefix}{number}{suffix}")
    if rng.random() < 0.4:
        others = ["-", "unknown", "5 USD", "35,165.38 EUR", "12.5", "0"]
        cells = [str(rng.choice(others)) if rng.random() < 0.1 else cell for cell in cells]
    return cells


def _draw_series(rng: Rng, name: str, n: int) -> pl.Series:
    """Return a column of a parquet file, of any type."""
    day, base = dt.date(2000, 1, 1), dt.datetime(2000, 1, 1)
    ints = [int(v) for v in rng.integers(0, 100, n)]
    kinds: tuple[Callable[[], pl.Series], ...] = (
        lambda: pl.Series(rng.normal(size=n)),
        lambda: pl.Series(rng.normal(size=n).astype(np.float32)),
        lambda: pl.Series(rng.choice([np.nan, np.inf, 1.0, 2.0], size=n)),
        lambda: pl.Series(rng.choice([1e308, -1e308, 5e-324], size=n)),
        lambda: pl.Series(ints, dtype=pl.UInt8),
        lambda: pl.Series([2**63 + v for v in ints], dtype=pl.UInt64),
        lambda: pl.Series([2**53 + v for v in ints], dtype=pl.Int64),
        lambda: pl.Series([bool(v % 2) for v in ints]),
        lambda: pl.Series([day + dt.timedelta(v) for v in ints]),
        lambda: pl.Series([base + dt.timedelta(v) for v in ints]),
        lambda: pl.Series([dt.timedelta(v) for v in ints]),
        lambda: pl.Series([dt.time(v % 24) for v in ints]),
        lambda: pl.Series([str(v % 4) for v in ints], dtype=pl.Categorical),
        lambda: pl.Series([str(v % 2) for v in ints], dtype=pl.Enum(["0", "1", "2"])),
        lambda: pl.Series([bytes([v % 3]) for v in ints]),
        lambda: pl.Series([[v] for v in ints]),
        lambda: pl.Series([{"a": v} for v in ints]),
        lambda: pl.Series([None] * n),
        lambda: pl.Series([None] * n, dtype=pl.Float64),
        lambda: pl.Series(ints).cast(pl.Decimal(20, 2)),
        lambda: pl.Series(list(rng.choice(TEXTS, size=n)), dtype=pl.String),
        lambda: pl.Series(list(rng.choice(["u", "v"], size=n)), dtype=pl.String),
        lambda: pl.Series([f"t{i}" for i in range(n)], dtype=pl.String),
    )
    series = kinds[int(rng.integers(len(kinds)))]() if n else pl.Series([], dtype=pl.Float64)
    if rng.random() < 0.4 and n:
        keep = pl.Series(rng.random(n) > rng.random())
        series = pl.select(pl.when(keep).then(series).otherwise(None)).to_series()
    return series.rename(name)


def _draw_names(rng: Rng, k: int, distinct: bool) -> list[str]:
    if rng.random() < 0.6:
        return [f"c{j}" for j in range(k)]
    names = [str(name) for name in rng.choice(NAMES, size=k)]
    if distinct or rng.random() < 0.7:
        names = [name if names.index(name) == j else f"{name}{j}" for j, name in enumerate(names)]
    return names


def _draw_size(rng: Rng) -> tuple[int, int]:
    n = int(rng.choice([0, 1, 2, 3, 5, 12, 40], p=[0.03, 0.05, 0.07, 0.1, 0.2, 0.35, 0.2]))
    return n, int(rng.choice([0, 1, 2, 3, 5, 8], p=[0.02, 0.18, 0.2, 0.3, 0.2, 0.1]))


# -- files -----------------------------------------------------------------------------------------------------------------


def draw_table(rng: Rng, folder: Path, stem: str = "t") -> tuple[Path, list[str]]:
    """Write a table file; return its path and the names of its columns."""
    n, k = _draw_size(rng)
    if rng.random() < 0.25:
        names = _draw_names(rng, k, distinct=True)
        columns = [_draw_series(rng, name, n) for name in names]
        written = io.BytesIO()
        pl.DataFrame(dict(zip(names, columns, strict=True))).write_parquet(written)
        data, path = written.getvalue(), folder / f"{stem}.parquet"
        if rng.random() < 0.3:
            data = choose(rng, BYTE_DAMAGES)(data, rng)
        if rng.random() < 0.1:
            path = folder / stem / "part.parquet"
            path.parent.mkdir()
            path.write_bytes(data)
            return path.parent, names
        path.write_bytes(data)
        return path, names
    names = _draw_names(rng, k, distinct=False)
    data = _to_text(rng, names, [_draw_texts(rng, n) for _ in range(k)], n)
    if rng.random() < 0.15 and data:
        data = choose(rng, BYTE_DAMAGES)(data, rng)
    path = folder / f"{stem}.{'tsv' if rng.random() < 0.1 else 'csv'}"
    if rng.random() < 0.05:
        data = gzip.compress(data, mtime=0)
        if rng.random() < 0.4:
            data = choose(rng, BYTE_DAMAGES)(data, rng)
        path = path.with_name(path.name + ".gz")
    path.write_bytes(data)
    return path, names


def _to_text(rng: Rng, names: list[str], columns: list[list[str]], n: int) -> bytes:
    delimiter = str(rng.choice([",", ";", "\t", "|"], p=[0.7, 0.1, 0.15, 0.05]))
    text = io.StringIO()
    writer = csv.writer(
        text,
        delimiter=delimiter,
        quoting=csv.QUOTE_ALL if rng.random() < 0.2 else csv.QUOTE_MINIMAL,
        lineterminator=str(rng.choice(["\n", "\r\n", "\r"], p=[0.7, 0.25, 0.05])),
    )
    rows = [list(row) for row in zip(*columns, strict=True)] if columns else [[] for _ in range(n)]
    if rng.random() < 0.05 and rows:  # a row of another length
        row = rows[int(rng.integers(len(rows)))]
        row.append("more") if rng.random() < 0.5 or not row else row.pop()
    if rng.random() < 0.95:
        writer.writerow(names)
    writer.writerows(rows)
    if rng.random() < 0.05:
        text.write("\n\n# a comment\n")
    encoding = str(rng.choice(CHARACTERS, p=[0.85, 0.05, 0.03, 0.03, 0.02, 0.02]))
    return text.getvalue().encode(encoding, errors="replace")


# -- commands --------------------------------------------------------------------------------------------------------------


def case(rng: Rng, folder: Path) -> Outcome:
    """Run one command on a table, and others on the model and another table."""
    table, names = draw_table(rng, folder)
    how = rng.random()
    if how < 0.1:
        return _run_checked(["fit", table, "--dry-run", *_reading_options(rng, names, fit=True)], folder, [])
    if how < 0.3:
        outcome = _run_checked(
            ["impute", table, "-o", folder / f"o{table.suffix}", *_reading_options(rng, names)], folder, ["o"]
        )
        return outcome
    outdir = folder / "out"
    options = [*_reading_options(rng, names, fit=True), *_model_options(rng)]
    if rng.random() < 0.1:
        options.append("--report")
    outcome = _run_checked(["fit", table, "-o", outdir, *options], folder, ["out"])
    if outcome.kind == ACCEPTED:
        _check_results(outdir)
        if how > 0.6:
            return _query_model(rng, folder, table, outdir / "model.coaltree")
    return outcome


def _query_model(rng: Rng, folder: Path, table: Path, model: Path) -> Outcome:
    """Ask the fitted model about its own table or another one."""
    if rng.random() < 0.3:
        table, _ = draw_table(rng, folder, "other")
    commands: tuple[list[Any], ...] = (
        ["score", model, table],
        ["place", model, table],
        ["impute", table, "--model", model, "-o", folder / f"o{table.suffix}"],
        ["cut", model, "--n-clusters", int(rng.integers(1, 4))],
    )
    command = commands[int(rng.integers(len(commands)))]
    run = run_command(command)
    outcome = classify(run)
    if outcome.kind == ACCEPTED and command[0] in ("score", "place"):
        rows = list(csv.reader(io.StringIO(run.out.decode(), newline="")))
        check(len(rows) > 1 and len({len(row) for row in rows}) == 1, f"not a table: {run.out[:200]!r}")
        if command[0] == "score":
            check(all(np.isfinite(float(row[1])) for row in rows[1:]), f"not finite: {run.out[:300]!r}")
    return outcome


def _run_checked(command: list[Any], folder: Path, expected: list[str]) -> Outcome:
    """Run a command that writes what is expected if it succeeds, and nothing otherwise."""
    before = contents(folder)
    run: Run = run_command(command)
    outcome = classify(run)
    after = contents(folder)
    if outcome.kind == ACCEPTED:
        new = {name.split("/")[0].split(".")[0] for name in after.keys() - before.keys()}
        check(new == set(expected), f"wrote {sorted(new)} in place of {expected}")
    else:
        check(after == before and not (folder / "out").exists(), "rejected, but the folder changed")
    return outcome


def _check_results(outdir: Path) -> None:
    """Check that the files of a fit belong together and hold numbers."""

    def refuse(text: str) -> None:
        raise ValueError(f"{text} in summary.json")

    facts = json.loads((outdir / "summary.json").read_text(), parse_constant=refuse)
    with (outdir / "clusters.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    check(len(rows) - 1 == facts["n_rows"], f"{len(rows) - 1} clusters of {facts['n_rows']} rows")
    check(sum(facts["cluster_sizes"]) + facts["n_outliers"] == facts["n_rows"], "cluster sizes")
    tree = ct.Tree.from_newick((outdir / "tree.nwk").read_text())
    check(tree.n_leaves == facts["n_rows"], "leaves")
    numbers = [v for values in facts["parameters"].values() for v in values.values() if isinstance(v, float)]
    check(np.isfinite(numbers).all() and facts["log_joint"] is not None, "parameters that are not finite")
    loaded = ct.load_model(outdir / "model.coaltree")
    check(loaded.labels_.tolist() == [int(row[1]) for row in rows[1:]], "labels of the model")
    leftover = [path.name for path in outdir.iterdir() if path.name.startswith(".")]
    check(not leftover, f"left behind: {leftover}")


def _reading_options(rng: Rng, names: list[str], fit: bool = False) -> list[str]:
    options: list[str] = []
    usable = [name for name in names if name and "\0" not in name and len(name) < 1000] or ["c0"]
    for option in ("--categorical", *(["--real"] if fit else []), "--drop", "--id-column"):
        if rng.random() < 0.1:
            options += [option, str(rng.choice([*usable, "absent"]))]
    if rng.random() < 0.05:
        options.append("--no-id")
    if rng.random() < 0.1:
        options += ["--na-value", str(rng.choice(["-999", "7", "u", "missing"]))]
    if rng.random() < 0.03:
        options += ["--format", str(rng.choice(["csv", "tsv", "parquet"]))]
    return options


def _model_options(rng: Rng) -> list[str]:
    choices = (
        [],
        [],
        [],
        ["--standardize", str(rng.choice(["yes", "no", "power"]))],
        ["--n-clusters", str(rng.integers(0, 6))],
        ["--noise", str(rng.choice(["0", "0.5", "0.999", "1", "-1", "nan"]))],
        ["--real-process", "brownian"],
        ["--real-process", "brownian", "--noise", "0"],
        ["--inference", "smc", "--particles", "5"],
        ["--inference", "mcmc", "--chains", "2", "--samples", "20"],
        ["--inference", "mcmc", "--chains", "2", "--samples", "20", "--draw-parameters"],
        ["--rule", str(rng.choice(["max-prob", "min-duration"]))],
        ["--refine"],
        ["--covariance", str(rng.choice(["full", "diagonal"]))],
        ["--height-threshold", str(rng.choice(["0", "1e-300", "1", "inf", "-1"]))],
    )
    return list(choices[int(rng.integers(len(choices)))])
