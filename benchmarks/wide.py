"""Time and memory of default fits of wide and of messy tables, compared with scikit-learn's Ward.

Run with ``python benchmarks/wide.py`` after ``pip install ".[bench]"``; it takes some minutes on two cores. ``--quick`` is a
smoke run with tables of a hundredth of the rows, names of tables run those alone, and ``--write`` puts the figures into the page
on messy tables.

Every measurement is a process of its own: a small fit comes before the clock starts, memory is what the process had at its peak.
Ward's method takes complete real tables only. Wall clock and processor time are given, because machines are busy.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np

GROUPS = 8
PAGE = Path(__file__).parents[1] / "docs" / "messy_table.md"
BEGIN, END = "<!-- begin: wide tables, by benchmarks/wide.py -->", "<!-- end: wide tables -->"


def real(n, n_columns):
    """Return clustered real rows."""
    rng = np.random.default_rng(0)
    return rng.normal(rng.normal(size=(GROUPS, n_columns))[rng.integers(GROUPS, size=n)], 1.0)


def categorical(n, n_columns):
    """Return clustered rows of three categories: half of the cells are those of the row's cluster."""
    rng = np.random.default_rng(0)
    prototypes = rng.integers(0, 3, size=(GROUPS, n_columns))[rng.integers(GROUPS, size=n)]
    codes = np.where(rng.random((n, n_columns)) < 0.5, prototypes, rng.integers(0, 3, size=(n, n_columns)))
    return np.array(list("uvw"))[codes]


def unstructured(n, n_columns):
    """Return categories at random, of which no pair of rows can be ruled out early."""
    return np.random.default_rng(0).choice(list("uvw"), size=(n, n_columns))


def business(n, n_columns):
    """Return amounts, dates, kinds, flags, places, an identifier and comments, with 15 % of the cells missing."""
    import pandas as pd

    rng = np.random.default_rng(0)
    group = rng.integers(0, GROUPS, n)
    day = pd.Timestamp("2020-01-01")
    columns = {f"amount {j}": np.exp(rng.normal(0.3 * group * (j % 3), 1)) for j in range(10)}
    columns |= {f"date {j}": day + pd.to_timedelta(rng.integers(0, 1500, n) + 100 * group, unit="D") for j in range(4)}
    columns |= {f"kind {j}": np.array(list("abcdefgh"))[(group + rng.integers(0, 3, n)) % 8] for j in range(6)}
    columns |= {f"flag {j}": rng.random(n) < 0.2 + 0.6 * (group % 2) for j in range(4)}
    columns |= {f"city {j}": [f"city {v}" for v in rng.zipf(1.5, n) % 5000] for j in range(3)}
    columns |= {"invoice": [f"I{i:08d}" for i in range(n)], "comment": [f"comment {i}" for i in range(n)]}
    columns["count"] = rng.poisson(3 + group)
    table = pd.DataFrame(columns)
    return table.mask(rng.random(table.shape) < 0.15)


# name: table, rows, columns, whether Ward takes it, target in seconds
TABLES = {
    "real 1,000 x 10,000": (real, 1_000, 10_000, True, 20),
    "real 5 x 10,000": (real, 5, 10_000, True, None),
    "real 2 x 100,000": (real, 2, 100_000, True, None),
    "categorical 500 x 20,000": (categorical, 500, 20_000, False, 60),
    "random categories 500 x 20,000": (unstructured, 500, 20_000, False, None),
    "categorical 5 x 10,000": (categorical, 5, 10_000, False, None),
    "business 5,000 x 30": (business, 5_000, 30, False, 10),
    "business 100,000 x 30": (business, 100_000, 30, False, 180),
}


def measure(name, method, share):
    """Print the times and the memory of one method with one table, as JSON."""
    make, n, n_columns, _, _ = TABLES[name]
    if method == "ours":
        import coaltree as ct

        model = ct.CoalescentClustering()
    else:
        from sklearn.cluster import AgglomerativeClustering

        model = AgglomerativeClustering(n_clusters=None, distance_threshold=0, compute_full_tree=True)
    warnings.simplefilter("ignore")
    X = make(max(2, round(n * share)), n_columns)
    model.fit(make(20, 5) if make is not business else make(20, 30))  # what is imported late is there then
    wall, cpu = time.perf_counter(), time.process_time()
    model.fit(X)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024  # kilobytes on Linux
    print(json.dumps([time.perf_counter() - wall, time.process_time() - cpu, peak]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="*", help=f"of {', '.join(TABLES)}")
    parser.add_argument("--quick", action="store_true", help="a hundredth of the rows")
    parser.add_argument("--write", action="store_true", help="put the figures into docs/messy_table.md")
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    share = 0.01 if options.quick else 1.0
    if options.measure:
        measure(*options.measure, share)
        return
    print(f"{'table':<32}{'method':>8}{'wall s':>9}{'CPU s':>9}{'peak MB':>9}{'target s':>10}")
    rows = []
    for name in options.tables or TABLES:
        target = TABLES[name][-1]
        for method in ("ours", "Ward") if TABLES[name][3] else ("ours",):
            command = [sys.executable, __file__, "--measure", name, method, *(["--quick"] if options.quick else [])]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            wall, cpu, peak = json.loads(done.stdout)
            target_text = "" if target is None or method != "ours" else target
            print(f"{name:<32}{method:>8}{wall:>9.1f}{cpu:>9.1f}{peak:>9.0f}{target_text:>10}", flush=True)
            rows.append((name, method, cpu, peak))
    if options.write:
        write_page(rows)


def write_page(rows):
    """Put a table of processor time and memory into the documentation, Ward's beside ours."""
    results = {}
    for name, method, cpu, peak in rows:
        results.setdefault(name, {})[method] = f"{cpu:.1f} s", f"{peak:,.0f} MB"
    lines = ["| table | time | memory | Ward's time | Ward's memory |", "|---|---|---|---|---|"]
    for name, cells in results.items():
        lines.append(f"| {name} | {' | '.join((*cells['ours'], *cells.get('Ward', ('', ''))))} |")
    text = PAGE.read_text()
    begin, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    PAGE.write_text(f"{text[:begin]}\n\n" + "\n".join(lines) + f"\n\n{text[end:]}")


if __name__ == "__main__":
    main()
