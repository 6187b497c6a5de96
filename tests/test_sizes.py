"""Numbers that no computer has memory for are refused before any work."""

import numpy as np
import pytest

import coaltree as ct
from coaltree.cli.app import _is_out_of_memory, report_errors
from coaltree.errors import InputError
from command_line import check_sentence, command_in

X = np.random.default_rng(0).normal(size=(30, 3))
PROCESS = ct.OrnsteinUhlenbeck(0.5, noise=0.2)
TREE = ct.simulate_tree(30, 0)
HOLES = np.where(np.random.default_rng(1).random(X.shape) < 0.1, np.nan, X)
IMPUTER = ct.CoalescentImputer().fit(HOLES)
HUGE = (10**12, 2**63, 2**70)

CALLS = {
    "mcmc, n_samples": lambda size: ct.mcmc(X, PROCESS, size),
    "mcmc, n_chains": lambda size: ct.mcmc(X, PROCESS, 10, n_chains=size),
    "mcmc, n_heated": lambda size: ct.mcmc(X, PROCESS, 10, n_heated=size),
    "mcmc, thin": lambda size: ct.mcmc(X, PROCESS, 10, thin=size),
    "evidence, n_runs": lambda size: ct.evidence(X, PROCESS, size),
    "evidence, n_chains": lambda size: ct.evidence(X, PROCESS, n_chains=size),
    "evidence, n_samples": lambda size: ct.evidence(X, PROCESS, n_samples=size),
    "evidence, thin": lambda size: ct.evidence(X, PROCESS, thin=size),
    "smc, n_particles": lambda size: ct.smc(X, PROCESS, n_particles=size),
    "smc, n_runs": lambda size: ct.smc(X, PROCESS, n_runs=size),
    "smc, regrafts": lambda size: ct.smc(X, PROCESS, regrafts=size),
    "simulate_tree": lambda size: ct.simulate_tree(size),
    "Beliefs.draw": lambda size: ct.Beliefs(TREE, X, PROCESS).draw(size, np.random.default_rng(0)),
    "chains of the estimator": lambda size: ct.CoalescentClustering(inference="mcmc", n_samples=9, n_chains=size).fit(
        X
    ),
    "heated chains of the estimator": lambda size: ct.CoalescentClustering(
        inference="mcmc", n_samples=9, n_heated=size
    ).fit(X),
    "particles of the estimator": lambda size: ct.CoalescentClustering(inference="smc", n_particles=size).fit(X),
    "draws of the imputer": lambda size: IMPUTER.sample(HOLES, size),
    "n_clusters": lambda size: ct.CoalescentClustering(n_clusters=size).fit(X),
}


@pytest.mark.parametrize("size", HUGE)
@pytest.mark.parametrize("name", CALLS)
def test_huge_numbers_are_refused(name, size):
    with pytest.raises(InputError, match=r"GB of memory|must be|rows|fewer"):
        CALLS[name](size)


def test_many_heated_chains_are_refused():
    with pytest.raises(InputError, match="1,000,001,000 chains"):
        ct.mcmc(X, PROCESS, 10, n_chains=1000, n_heated=10**6)


@pytest.mark.parametrize(
    ("error", "lacks"),
    [
        (MemoryError(), True),
        (OSError(12, "Cannot allocate memory"), True),
        (ImportError("x.so: failed to map segment from shared object"), True),
        (RuntimeError("can't start new thread"), True),
        (OSError(28, "No space left on device"), False),
        (ImportError("no module named x"), False),
    ],
)
def test_lack_of_memory_is_named(error, lacks, capsys):
    assert _is_out_of_memory(error) == lacks
    with pytest.raises(Exception) as caught, report_errors(False):  # noqa: PT011  of typer
        raise error
    assert (caught.value.exit_code, "not enough memory" in capsys.readouterr().err) == (
        2 if lacks or isinstance(error, OSError) else 1,
        lacks,
    )


@pytest.mark.parametrize("size", [10**8, *HUGE])
def test_huge_numbers_of_files_are_refused(size, tmp_path, monkeypatch, capsys):
    command = command_in(tmp_path, monkeypatch, capsys)
    (tmp_path / "t.csv").write_text("x,y\n" + "".join(f"{a:g},{b:g}\n" for a, b in X[:, :2]) + "1,\n")
    check_sentence(command("impute", "t.csv", "-o", "o.csv", "--draws", size), f"{size:,} files like t.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]
