"""Estimates of the time and memory of a fit, before it begins."""

import numpy as np
import pytest

from coaltree.table.columns import read_columns
from coaltree.workflow import estimate
from coaltree.workflow.estimate import Estimate, estimate_fit
from command_line import command_in


@pytest.mark.parametrize("kind", ["real", "holes", "categorical"])
def test_estimates_grow_with_the_table(kind):
    rng = np.random.default_rng(0)

    def of(n, d):
        X = rng.choice(list("uvw"), size=(n, d)) if kind == "categorical" else rng.normal(size=(n, d))
        if kind == "holes":
            X[0, 0] = np.nan
        return estimate_fit(read_columns(X))

    small, long, wide = of(20, 4), of(200, 4), of(20, 40)
    assert long.seconds > 5 * small.seconds
    assert wide.seconds > small.seconds
    assert min(long.n_bytes, wide.n_bytes) > small.n_bytes
    assert not small.is_large


def test_estimates_in_words():
    assert "30 seconds" in Estimate(30, 1e8).describe()
    assert "100 MB" in Estimate(30, 1e8).describe()
    assert "10 minutes" in Estimate(600, 3e9).remark()
    assert "3.0 GB" in Estimate(600, 3e9).remark()
    assert "5 hours" in Estimate(18_000, 3e9).remark()
    assert "20 days" in Estimate(20 * 86400, 3e9).remark()
    assert "2.0 GB" in Estimate(1, 3e9).remark(physical_bytes=2e9)


def test_large_fits_are_announced(tmp_path, monkeypatch, capsys):
    run = command_in(tmp_path, monkeypatch, capsys)
    (tmp_path / "t.csv").write_text("x,y\n" + "".join(f"{i},{i % 3}\n" for i in range(8)))
    _, out, _ = run("fit", "t.csv", "--dry-run")
    assert "memory" in out.splitlines()[-1]
    _, _, err = run("fit", "t.csv", "-o", "small")
    assert "memory" not in err
    monkeypatch.setattr(estimate, "LARGE_BYTES", 1.0)
    _, _, err = run("fit", "t.csv", "-o", "large")
    assert any(line.startswith("note:") and "memory" in line for line in err.splitlines())
    assert (tmp_path / "small" / "summary.json").read_bytes() == (tmp_path / "large" / "summary.json").read_bytes()
