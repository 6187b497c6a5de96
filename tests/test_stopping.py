"""Long work ends when it is told to, whatever thread works and whatever it is doing."""

import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import coaltree as ct
from coaltree import _stop
from coaltree.inference import posterior_draws
from coaltree.inference.executors import Workers, in_threads

RNG = np.random.default_rng(0)
REAL = RNG.normal(size=(6000, 12))
HOLED = np.where(RNG.random(REAL.shape) < 0.1, np.nan, REAL)
SITES = RNG.integers(4, size=(3000, 200)).astype(float)
SPHERE = ct.OrnsteinUhlenbeck(0.5, noise=0.2)
# A process that hangs is ended, and the test fails.
PATIENCE = 60

# Each takes many seconds.
WORKS = {
    "exact search": lambda: ct.greedy(HOLED, SPHERE, search="exact"),
    "exact search in threads": lambda: ct.greedy(HOLED, SPHERE, search="exact", n_jobs=2),
    "exact search in space": lambda: ct.greedy(REAL, ct.Brownian(), search="exact"),
    "exact search of sites": lambda: ct.greedy(SITES, ct.Multinomial(), search="exact"),
    "all pairs": lambda: ct.greedy(HOLED, SPHERE, "max-prob"),
    "neighbour search": lambda: ct.greedy(HOLED, SPHERE, search="neighbors"),
    "refinement": lambda: ct.refine(ct.simulate_tree(6000, 0), HOLED, SPHERE),
    "chains": lambda: ct.mcmc(REAL[:200], SPHERE, 10_000, random_state=0),
    "chains in threads": lambda: ct.mcmc(REAL[:200], SPHERE, 10_000, random_state=0, n_jobs=2),
    "evidence": lambda: ct.evidence(HOLED[:300], SPHERE, random_state=0),
    "beliefs": lambda: [ct.Beliefs(ct.simulate_tree(6000, k), HOLED, SPHERE).leaves() for k in range(99)],
    "mixtures of rows": lambda: ct.baselines.BayesianHierarchicalClustering().fit(REAL[:1000]),
    **{
        f"particles, {proposal}": lambda proposal=proposal: ct.smc(REAL[:1000], ct.Brownian(), proposal, random_state=0)
        for proposal in ("post-post", "prior-post", "prior-prior", "race")
    },
}


@pytest.mark.parametrize("name", WORKS)
def test_kernels_look_whether_they_are_to_end(name, monkeypatch):
    """The first look by a kernel raises, as a handler of a signal does; the whole work would take far longer."""

    def stop():
        raise KeyboardInterrupt

    monkeypatch.setattr(_stop, "look", stop)
    with pytest.raises(KeyboardInterrupt):
        WORKS[name]()


@pytest.fixture(scope="module")
def model():
    table = np.where(RNG.random((150, 10)) < 0.1, np.nan, RNG.normal(size=(150, 10)))
    model = ct.CoalescentClustering(random_state=0).fit(table)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"MIN_SWEEPS": 12, "MAX_SWEEPS": 12, "N_TREE_SWEEPS": 2}.items():
            patch.setattr(posterior_draws, name, value)
        model.score_samples(table[:1])
    return model


@pytest.mark.parametrize("method", ["score_samples", "place", "predict_proba"])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_predictions_look_whether_they_are_to_end(method, n_jobs, model, monkeypatch):
    def stop():
        raise KeyboardInterrupt

    model.set_params(n_jobs=n_jobs)
    monkeypatch.setattr(_stop, "look", stop)
    with pytest.raises(KeyboardInterrupt):
        getattr(model, method)(np.resize(HOLED[:, :10], (100_000, 10)))


def wait_for_stop(begun, ended):
    begun.set()
    try:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            _stop.look()
            time.sleep(0.001)
    except _stop.Stopped:
        ended.append(True)
        raise


def test_threads_end_with_the_block_that_started_them():
    begun, ended = threading.Event(), []
    tasks = [(begun.wait, PATIENCE), (wait_for_stop, begun, ended)]

    def work():
        with Workers(2) as workers:
            next(workers.run(lambda function, *rest: function(*rest), tasks))
            raise ValueError("of the caller")

    with pytest.raises(ValueError, match="of the caller"):
        work()
    assert ended


def test_failure_of_one_thread_ends_the_others():
    begun, ended = threading.Event(), []

    def fail(*_):
        begun.wait(PATIENCE)
        raise ValueError("of a thread")

    tasks = [(fail, begun, ended), (wait_for_stop, begun, ended), (wait_for_stop, begun, ended)]
    with pytest.raises(ValueError, match="of a thread"):
        list(in_threads(3, lambda function, *rest: function(*rest), tasks))
    assert ended


def test_nested_threads_end_with_the_outer_ones():
    begun, ended = threading.Event(), []

    def inner(*arguments):
        list(in_threads(2, wait_for_stop, [arguments, arguments]))

    def fail(*_):
        begun.wait(PATIENCE)
        raise ValueError("of a thread")

    with pytest.raises(ValueError, match="of a thread"):
        list(in_threads(2, lambda function, *rest: function(*rest), [(fail, begun, ended), (inner, begun, ended)]))
    assert len(ended) == 2


def test_threads_give_results_in_order():
    assert list(in_threads(3, lambda x: x * x, ((k,) for k in range(50)))) == [k * k for k in range(50)]


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent otherwise there")
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_command_ends_while_its_threads_work(sent, model, tmp_path):
    """Placing these rows takes minutes."""
    model.save(tmp_path / "m.coaltree")
    header = ",".join(f"x{d}" for d in range(10))
    rows = "\n".join(",".join("" if np.isnan(x) else f"{x:.3f}" for x in row) for row in HOLED[:3000, :10])
    (tmp_path / "t.csv").write_text(f"{header}\n" + f"{rows}\n" * 40)
    command = [sys.executable, "-m", "coaltree", "place", "m.coaltree", "t.csv", "-o", "o.csv"]
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE)
    finally:
        signal.signal(signal.SIGINT, handler)
    try:
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(3)
        process.send_signal(sent)
        _, err = process.communicate(timeout=PATIENCE / 3)
    finally:
        process.kill()
    assert process.returncode == 130
    assert err.splitlines()[-1] == b"coaltree: interrupted."
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.coaltree", "t.csv"]
