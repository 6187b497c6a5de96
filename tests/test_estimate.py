"""Estimates of the time and memory of a fit."""

import numpy as np
import pytest

import coaltree as ct
from coaltree.table.columns import read_columns
from coaltree.workflow import estimate
from coaltree.workflow.estimate import Estimate, estimate_fit
from coaltree.workflow.settings import ClusterSettings
from command_line import command_in
from named import refused


@pytest.mark.parametrize("kind", ["real", "holes", "categorical"])
def test_estimates_grow_with_table(kind):
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


def test_estimates_are_described_in_words():
    assert "30 seconds" in Estimate(30, 1e8).describe()
    assert "100 MB" in Estimate(30, 1e8).describe()
    assert "10 minutes" in Estimate(600, 3e9).remark()
    assert "3.0 GB" in Estimate(600, 3e9).remark()
    assert "5 hours" in Estimate(18_000, 3e9).remark()
    assert "20 days" in Estimate(20 * 86400, 3e9).remark()
    assert "2.0 GB" in Estimate(1, 3e9).remark(physical_bytes=2e9)


@pytest.mark.parametrize("inference", ["mcmc", "smc"])
def test_estimates_grow_with_sample_size(inference):
    table = read_columns(np.random.default_rng(0).normal(size=(50, 4)))

    def of(**settings):
        return estimate_fit(table, ClusterSettings(inference=inference, **settings))

    number = {"mcmc": "n_samples", "smc": "n_particles"}[inference]
    few, many = of(**{number: 1000}), of(**{number: 100_000})
    assert many.seconds > 30 * few.seconds > 30 * estimate_fit(table).seconds
    assert many.n_bytes > few.n_bytes
    assert many.is_large
    assert of(**{number: 1000}, **{{"mcmc": "n_chains", "smc": "n_runs"}[inference]: 8}).seconds > 1.5 * few.seconds


def test_estimates_depend_on_proposal_and_time_limit():
    table = read_columns(np.random.default_rng(0).normal(size=(300, 4)))
    seconds = [
        estimate_fit(table, ClusterSettings(inference="smc", proposal=proposal)).seconds
        for proposal in ("prior-prior", "race", "post-post")
    ]
    assert seconds == sorted(seconds)
    limited = estimate_fit(table, ClusterSettings(inference="mcmc", n_samples="auto", max_seconds=77))
    assert 77 <= limited.seconds < 80


def test_dry_run_estimates_chosen_inference(tmp_path, monkeypatch, capsys):
    run = command_in(tmp_path, monkeypatch, capsys)
    (tmp_path / "t.csv").write_text("x,y\n" + "".join(f"{i},{i % 3}\n" for i in range(8)))
    _, out, _ = run("fit", "t.csv", "--dry-run", "--inference", "mcmc", "--samples", "100000000")
    assert "mcmc" in out.splitlines()[-1]
    assert "hours" in out.splitlines()[-1]
    code, _, err = run("fit", "t.csv", "--inference", "mcmc", "--samples", "1000000000000", "-o", "out")
    assert code == 2
    assert "GB" in err.splitlines()[-1]


def test_samples_beyond_memory_are_rejected():
    X = np.random.default_rng(0).normal(size=(5, 2))
    for number in (10**12, 2**70):
        with refused("GB memory samples"):
            ct.mcmc(X, ct.Brownian(1.0, 0.1), n_samples=number)
        with refused("GB memory chains"):
            ct.mcmc(X, ct.Brownian(1.0, 0.1), n_chains=number)
        with refused("GB memory particles"):
            ct.smc(X, ct.Brownian(1.0, 0.1), n_particles=number)
        with refused("GB memory runs"):
            ct.smc(X, ct.Brownian(1.0, 0.1), n_runs=number)
        with refused("GB memory leaves"):
            ct.simulate_tree(number)


def test_large_fits_are_noted(tmp_path, monkeypatch, capsys):
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
