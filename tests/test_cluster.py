"""Fits and predictions on a Dask cluster: the same results as with threads, also when workers are lost."""

import gc
import importlib
import os
import pickle
import re
import signal
import time
from contextlib import nullcontext

import numpy as np
import polars as pl
import pytest
from sklearn.base import clone

import coaltree as ct
from coaltree.errors import ExecutorError, InputError
from coaltree.inference import neighbors
from coaltree.inference.executors import ThreadExecutor
from coaltree.predict import groups
from coaltree.predict import predictor as spread
from coaltree.predict.results import RealCells
from coaltree.table.inputs import compute_dask
from coaltree.workflow import comparison
from command_line import check_sentence, command_in
from named import check_named, refused
from test_neighbors import PROCESSES, simulated

distributed = pytest.importorskip("distributed", reason="clusters need distributed: pip install 'coaltree[dask]'")

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")

cluster = importlib.import_module("coaltree.inference.executors")
greedy = importlib.import_module("coaltree.inference.greedy")  # `from` would give the function of that name

pytestmark = [
    pytest.mark.usefixtures("short_chains", "blank_pictures"),
    pytest.mark.filterwarnings(
        "ignore::coaltree.errors.InputWarning",
        "ignore::ResourceWarning",
        "ignore:Couldn't detect a suitable IP:RuntimeWarning",
    ),
]


@pytest.fixture(scope="module", autouse=True)
def _nothing_is_left_over():
    """Collect what lost clusters leave behind here, where warnings of sockets are ignored, and not in other tests."""
    yield
    gc.collect()


@pytest.fixture(scope="module")
def client():
    with (
        # a local cluster gives up a worker that happens to be away so long after one of its name has died
        dask.config.set(
            {
                "distributed.deploy.lost-worker-timeout": "1 hour",
                "distributed.worker.multiprocessing-method": "forkserver",  # which imports distributed once
            }
        ),
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as workers,
        distributed.Client(workers, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture
def small_blocks(monkeypatch):
    """Let small tables have several rounds, and their points several blocks of several cells."""
    monkeypatch.setattr(greedy, "MIN_LINEAGES", 60)
    monkeypatch.setattr(greedy, "MIN_LINEAGES_IN_SPACE", 60)
    monkeypatch.setattr(neighbors, "MAX_CELL_SIZE", 20)
    monkeypatch.setattr(cluster, "BLOCK_POINTS", 64)


def assert_same_result(actual, expected):
    np.testing.assert_array_equal(actual.tree.children, expected.tree.children)
    np.testing.assert_array_equal(actual.tree.heights, expected.tree.heights)
    assert actual.log_joint == expected.log_joint
    assert actual.neighbor_recall == expected.neighbor_recall


# -- neighbours -------------------------------------------------------------------------------------


def points_of(kind, rng):
    points = rng.normal(size=(3, 700)).astype(np.float32)
    if kind == "ties":
        points = np.round(points)  # many at the same distance: which of them is kept depends on their order
    elif kind == "holes":
        points[rng.random(points.shape) < 0.3] = np.nan
    return points


@pytest.mark.parametrize("kind", ["plain", "ties", "holes"])
@pytest.mark.parametrize("block", [50, 200])
def test_dask_neighbors_equal_threads(client, small_blocks, monkeypatch, kind, block):
    monkeypatch.setattr(cluster, "BLOCK_POINTS", block)
    points = points_of(kind, np.random.default_rng(3))
    expected = neighbors.find_nearest(points, 16, ThreadExecutor(2), 7)
    sent = []
    submit = client.submit
    monkeypatch.setattr(
        client, "submit", lambda *args, **options: sent.append(len(args[1])) or submit(*args, **options)
    )
    nearest = neighbors.find_nearest(points, 16, cluster.DaskExecutor(client, 1), 7)
    np.testing.assert_array_equal(nearest, expected)
    assert len(sent) >= neighbors.MIN_DIVISIONS * 700 / block
    assert max(sent) < 20 * block + 2_000  # bytes of three coordinates and the bounds: of its block, not of all points


def test_small_jobs_run_locally(client, small_blocks, monkeypatch):
    monkeypatch.setattr(client, "submit", None)
    points = points_of("plain", np.random.default_rng(3))[:, : 3 * 64 - 1]
    nearest = neighbors.find_nearest(points, 16, cluster.DaskExecutor(client, 1), 7)
    np.testing.assert_array_equal(nearest, neighbors.find_nearest(points, 16, ThreadExecutor(1), 7))


@pytest.mark.parametrize("name", ["noise", "multinomial", "mixed"])
def test_dask_tree_equals_threads(client, small_blocks, name):
    process, X = simulated(name)
    expected = ct.greedy(X, process, search="neighbors")
    shares = []
    result = ct.greedy(X, process, search="neighbors", client=client, progress=lambda share, live: shares.append(share))
    assert_same_result(result, expected)
    assert shares[-1] == 1.0
    assert np.all(np.diff(shares) >= 0)


@pytest.mark.parametrize("n", [1, 2])
def test_dask_fit_of_few_rows(client, n):
    X = np.arange(float(n))[:, None]
    assert ct.greedy(X, ct.Brownian(), search="neighbors", client=client).tree.n_leaves == n


# -- faults -----------------------------------------------------------------------------------------


def test_lost_worker_does_not_change_result(client, small_blocks):
    process, X = simulated("noise")
    expected = ct.greedy(X, process, search="neighbors")
    pids = client.run(os.getpid)
    killed = []

    def kill(share, live):
        if live < len(X) and not killed:
            killed.append(next(iter(pids.values())))
            os.kill(killed[0], signal.SIGKILL)

    result = ct.greedy(X, process, search="neighbors", client=client, progress=kill)
    assert killed
    assert_same_result(result, expected)
    client.wait_for_workers(2, timeout=60)
    assert killed[0] not in client.run(os.getpid).values()


class StoppedError(Exception):
    pass


@pytest.fixture
def doomed():
    """A cluster that a test may end."""
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, dashboard_address=":0", processes=False
    ) as workers:
        yield workers


@pytest.mark.parametrize("has_checkpoint", [True, False])
def test_lost_cluster_is_reported_and_checkpoint_resumes(doomed, small_blocks, tmp_path, has_checkpoint):
    process, X = simulated("noise")
    path = tmp_path / "rounds.npz"
    options = {"search": "neighbors", "checkpoint": path if has_checkpoint else None}

    def close(share, live):
        if live < 0.6 * len(X) and doomed.status.name == "running":
            doomed.close()

    with distributed.Client(doomed, set_as_default=False) as client, pytest.raises(ExecutorError) as raised:
        ct.greedy(X, process, client=client, progress=close, **options)
    sentence = str(raised.value)
    assert sentence.startswith(f"The cluster at {doomed.scheduler_address} was lost (")
    if has_checkpoint:
        assert str(path) in sentence
        check_named(sentence, "resume")
        live = []
        result = ct.greedy(X, process, progress=lambda share, n_live: live.append(n_live), **options)
        assert max(live) <= 0.5 * len(X)  # the first round was not done again
        assert_same_result(result, ct.greedy(X, process, search="neighbors"))
    else:
        check_named(sentence, "nothing saved checkpoint")


@pytest.mark.parametrize("name", ["brownian", "multinomial", "mixed"])
def test_search_resumes_from_checkpoint(small_blocks, tmp_path, name):
    process, X = simulated(name)
    expected = ct.greedy(X, process, search="neighbors")
    path = tmp_path / "rounds.npz"

    def stop(share, live):
        if live < 0.4 * len(X):
            raise StoppedError

    with pytest.raises(StoppedError):
        ct.greedy(X, process, search="neighbors", checkpoint=path, progress=stop)
    order = np.random.default_rng(0).permutation(len(X))
    again = ct.greedy(X[order], process, search="neighbors", checkpoint=path)  # the search has an order of its own
    np.testing.assert_array_equal(again.tree.heights, expected.tree.heights)
    assert_same_result(ct.greedy(X, process, search="neighbors", checkpoint=path), expected)


def test_foreign_checkpoints_are_rejected(small_blocks, tmp_path):
    process, X = simulated("noise", 100)
    path = tmp_path / "rounds.npz"
    options = {"search": "neighbors", "checkpoint": path}
    path.write_text("not a file of numpy")
    with refused("rounds.npz checkpoint search neighbours"):
        ct.greedy(X, process, **options)
    np.save(path.open("wb"), np.zeros(3))
    with pytest.raises(InputError, match="is not a checkpoint of a search"):
        ct.greedy(X, process, **options)
    path.unlink()
    ct.greedy(X, process, **options)
    with refused("checkpoint table process settings"):
        ct.greedy(X + 1, process, **options)
    with pytest.raises(InputError, match="is the checkpoint of another"):
        ct.greedy(X, PROCESSES["brownian"], **options)


def test_cluster_without_workers_is_reported(monkeypatch):
    monkeypatch.setattr(cluster, "WORKER_SECONDS", 0.2)
    with (
        distributed.LocalCluster(n_workers=0, dashboard_address=":0", processes=False) as none,
        distributed.Client(none, set_as_default=False) as client,
        refused("lost worker 0.2 seconds", ExecutorError),
    ):
        list(cluster.DaskExecutor(client, 1).run(abs, [(-1,)]))


# -- tasks ------------------------------------------------------------------------------------------


def test_executor_returns_results_in_order(client):
    def tasks():
        for k in range(30):
            yield ([0.2 if k == 0 else 0.0, k],)

    executor = cluster.DaskExecutor(client, 1)
    assert list(executor.run(_sleep, tasks())) == [([0.0, k + 1], k) for k in range(30)]
    assert list(executor.run(_sleep, [])) == []


def _sleep(numbers):
    time.sleep(numbers[0])
    numbers[0] = 0.0
    numbers[1] += 1
    return numbers, numbers[1] - 1


def _refuse(counter):
    with open(counter, "a") as file:
        file.write("x")
    raise InputError("This is no table.")


def test_rejected_tasks_are_not_retried(client, tmp_path):
    with pytest.raises(InputError, match=r"This is no table\."):
        list(cluster.DaskExecutor(client, 1).run(_refuse, [(tmp_path / "calls",)]))
    assert (tmp_path / "calls").read_text() == "x"


def _without_coaltree():
    raise ModuleNotFoundError("No module named 'coaltree'")


def _kill_worker():
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        (
            _without_coaltree,
            r"tcp://.* cannot run coaltree \(No module named 'coaltree'\): install",
        ),
        pytest.param(_kill_worker, r"tcp://.* workers died again and again.* more mem", marks=pytest.mark.slow),
    ],
)
def test_incompatible_workers_are_reported(client, function, sentence):
    with pytest.raises(ExecutorError, match=sentence):
        list(cluster.DaskExecutor(client, 1).run(function, [()]))
    client.wait_for_workers(2, timeout=60)


# -- clients ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", [3, "host:8786", "local:0", "local:two", "tcp://", "", "tcp://a b"])
def test_invalid_clients_are_rejected(wrong):
    with refused("distributed.Client address scheduler tcp://host"):
        ct.greedy(np.zeros((3, 1)), ct.Brownian(), client=wrong)


def test_unreachable_scheduler_is_reported(monkeypatch):
    monkeypatch.setattr(cluster, "CONNECT_SECONDS", 0.5)
    with refused("Dask scheduler answers tcp://127.0.0.1:9 check address", ExecutorError):
        ct.greedy(np.zeros((3, 1)), ct.Brownian(), client="tcp://127.0.0.1:9")


def test_closed_client_is_rejected(doomed):
    with distributed.Client(doomed, set_as_default=False) as closed:
        pass
    with refused("distributed.Client closed running address"):
        ct.greedy(np.zeros((3, 1)), ct.Brownian(), client=closed)


def test_open_client_closes_only_new_clients(client):
    with cluster.open_client(client.scheduler.address) as opened:
        assert opened is not client
        assert list(cluster.DaskExecutor(opened, 1).run(abs, [(-1,)])) == [1]
    assert opened.status == "closed"
    with cluster.open_client(client) as opened:
        assert opened is client
    assert client.status == "running"


def test_fit_on_local_cluster(small_blocks):
    process, X = simulated("noise", 300)
    result = ct.greedy(X, process, search="neighbors", client="local:1")
    assert_same_result(result, ct.greedy(X, process, search="neighbors"))


# -- samples of trees -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(4)
    return ct.Brownian(1.0, 0.1).simulate(ct.simulate_tree(12, rng), rng, n_columns=3)


def test_smc_runs_on_cluster_equal_threads(client, table):
    settings = {"n_particles": 20, "n_runs": 4, "random_state": 1}
    expected = ct.smc(table, ct.Brownian(1.0, 0.1), **settings, n_jobs=1)
    reports = []
    sample = ct.smc(
        table, ct.Brownian(1.0, 0.1), **settings, client=client, progress=lambda *facts: reports.append(facts)
    )
    assert sample.trees == expected.trees
    np.testing.assert_array_equal(sample.weights, expected.weights)
    assert sample.log_evidence == expected.log_evidence
    assert [share for share, _, _ in reports] == [0.25, 0.5, 0.75, 1.0]
    one = ct.smc(table[:1], ct.Brownian(1.0, 0.1), n_particles=3, client=client, progress=lambda *facts: None)
    assert one.trees[0].n_leaves == 1


def test_smc_reports_lost_cluster(doomed, table):
    def close(share, *facts):
        if doomed.status.name == "running":
            doomed.close()

    with (
        distributed.Client(doomed, set_as_default=False) as client,
        refused("lost nothing saved start again", ExecutorError),
    ):
        ct.smc(table, ct.Brownian(1.0, 0.1), n_particles=5, n_runs=20, client=client, progress=close)


def test_mcmc_chains_on_cluster_equal_threads(client, table, tmp_path):
    settings = {"n_samples": 20, "n_chains": 4, "random_state": 1}
    expected = ct.mcmc(table, ct.Brownian(1.0, 0.1), **settings, n_jobs=1)
    pids, killed = client.run(os.getpid), []

    def kill(share, *facts):
        if share > 0.3 and not killed:
            killed.append(next(iter(pids.values())))
            os.kill(killed[0], signal.SIGKILL)

    path = tmp_path / "chains.npz"
    sample = ct.mcmc(table, ct.Brownian(1.0, 0.1), **settings, client=client, checkpoint=path, progress=kill)
    assert killed
    assert path.exists()
    assert sample.trees == expected.trees
    assert sample.acceptance == expected.acceptance
    for name, trace in expected.traces.items():
        np.testing.assert_array_equal(sample.traces[name], trace)
    client.wait_for_workers(2, timeout=60)


# -- estimators -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def mixed():
    """Real and categorical columns with holes, 60 rows of the fit and 40 others."""
    rng = np.random.default_rng(6)
    kinds = rng.integers(4, size=100)
    frame = pl.DataFrame(
        {
            "x": 4.0 * kinds + rng.normal(size=100),
            "<script>alert(1)</script>": rng.normal(size=100) - kinds,
            "a,b": np.where(rng.random(100) < 0.8, kinds, 0).astype(str),
        }
    )
    holes = rng.random((3, 100)) < 0.1
    frame = frame.select(
        pl.when(pl.Series(~hole)).then(pl.col(name)).alias(name)
        for name, hole in zip(frame.columns, holes, strict=True)
    )
    return frame[:60], frame[60:]


def answers(model, rows):
    yield model.score_samples(rows)
    yield model.predict_proba(rows)
    placed = model.place(rows).to_pandas()
    yield placed.to_numpy()


def test_predictions_on_cluster_equal_threads(client, mixed, monkeypatch):
    monkeypatch.setattr(spread, "ROWS_PER_TASK", 7)
    table, new = mixed
    model = ct.CoalescentClustering().fit(table)
    imputer = ct.CoalescentImputer(real_process="ornstein-uhlenbeck").fit(table)
    expected, filled = list(answers(model, new)), imputer.transform(new)
    requests = []
    run_on = cluster.DaskExecutor.run_on
    monkeypatch.setattr(
        cluster.DaskExecutor, "run_on", lambda self, *args: requests.append(args[0][1]) or run_on(self, *args)
    )
    model.client = imputer.client = client
    for value, theirs in zip(expected, answers(model, new), strict=True):
        np.testing.assert_array_equal(value, theirs)
    assert filled.equals(imputer.transform(new))
    # a placement comes with its cluster; few rows to fill are not worth sending
    assert requests == ["log_density", "cluster_shares", "place", "cluster_shares"]
    monkeypatch.setattr(spread, "ROWS_PER_TASK", 2)
    assert filled.equals(imputer.transform(new))
    assert requests[-1] == "cells"
    predicted = imputer.predictive(new)
    imputer.client = None
    for name, cells in imputer.predictive(new).items():
        if isinstance(cells, RealCells):
            np.testing.assert_array_equal(predicted[name].interval(0.9), cells.interval(0.9))


def test_predictions_are_independent_of_chunks(monkeypatch):
    """With and without bounds that rule out attachment points, and with correlated columns."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(80, 3)) @ rng.normal(size=(3, 3))
    for always in (10**9, 0):
        monkeypatch.setattr(groups, "MIN_POINTS_TO_PRUNE", always)
        monkeypatch.setattr(groups, "MAX_CACHED_NUMBERS", 10**9 if always else 0)
        predictor = ct.CoalescentClustering(noise=0.1, real_process="brownian").fit(X[:50])._model.predictor
        for question in ("log_density", "cells"):
            whole = getattr(predictor, question)(X[50:])
            parts = [getattr(predictor, question)(X[k : k + 4]) for k in range(50, 80, 4)]
            joined = spread._concatenate(parts)
            for value, theirs in zip(
                *(value if isinstance(value, tuple) else (value,) for value in (whole, joined)), strict=True
            ):
                np.testing.assert_array_equal(value, theirs)


def test_estimator_fits_on_cluster(client, small_blocks, mixed):
    _, X = simulated("noise", 300)
    options = {"real_process": "brownian", "noise": 0.1, "search": "neighbors", "n_clusters": 3}
    expected = ct.CoalescentClustering(**options).fit(X)
    result = ct.CoalescentClustering(**options, client=client).fit(X)
    assert result.tree_ == expected.tree_
    assert result.search_ == "neighbors"
    assert result.client is client
    at = ct.CoalescentClustering(**options, client=client.scheduler.address).fit(X)
    assert at.tree_ == expected.tree_
    assert at.client == client.scheduler.address


def test_estimator_samplers_run_on_cluster(client, table):
    for options in (
        {"inference": "smc", "n_particles": 5, "n_runs": 2},
        {"inference": "mcmc", "n_samples": 20, "n_chains": 2},
    ):
        options |= {"noise": 0.1, "real_process": "brownian", "random_state": 3}
        expected = ct.CoalescentClustering(**options).fit(table)
        result = ct.CoalescentClustering(**options, client=client).fit(table)
        assert result.sample_.trees == expected.sample_.trees


def test_estimator_accepts_client_parameter(client, table, tmp_path):
    model = ct.CoalescentClustering(client=client, n_clusters=2)
    assert model.get_params()["client"] is client
    assert clone(model).client is client
    assert clone(model).n_clusters == 2
    assert clone(clone(model).set_params(client="local:2")).client == "local:2"
    model.fit(table)
    again = pickle.loads(pickle.dumps(model))
    assert again.client is None
    assert again.tree_ == model.tree_
    assert pickle.loads(pickle.dumps(ct.CoalescentImputer(client="local:2"))).client == "local:2"
    model.save(tmp_path / "model.coaltree")
    assert ct.load_model(tmp_path / "model.coaltree").client is None
    with refused("client host distributed.Client"):
        ct.CoalescentClustering(client="host").fit(table)


# -- tables in blocks -------------------------------------------------------------------------------


def test_dask_arrays_are_accepted(client, table):
    blocks = da.from_array(table, chunks=(5, 2))
    result = ct.greedy(blocks, ct.Brownian(1.0, 0.1))
    assert result.tree == ct.greedy(table, ct.Brownian(1.0, 0.1)).tree
    unknown = blocks[blocks[:, 0] > -1e9]  # Dask does not know how many rows that leaves
    assert np.isnan(unknown.shape[0])
    np.testing.assert_array_equal(compute_dask(unknown), table)
    np.testing.assert_array_equal(
        compute_dask(da.from_array(np.arange(4).reshape(2, 2), chunks=1)), [[0.0, 1.0], [2.0, 3.0]]
    )
    model = ct.CoalescentClustering(noise=0.1, real_process="brownian").fit(table)
    same = ct.CoalescentClustering(noise=0.1, real_process="brownian").fit(blocks)
    assert same.tree_ == model.tree_
    np.testing.assert_array_equal(same.score_samples(blocks), model.score_samples(table))
    assert same.place(blocks).row_names == model.place(table).row_names
    holes = np.where(np.arange(36).reshape(12, 3) % 7 == 0, np.nan, table)
    imputer = ct.CoalescentImputer(noise=0.1).fit(da.from_array(holes, chunks=(4, 3)))
    np.testing.assert_array_equal(imputer.transform(da.from_array(holes, chunks=(4, 3))), imputer.transform(holes))
    with pytest.raises(InputError, match="1 dimension"):
        ct.greedy(da.zeros(3), ct.Brownian())


# -- the command line -------------------------------------------------------------------------------


@pytest.fixture
def command(tmp_path, monkeypatch, capsys):
    return command_in(tmp_path, monkeypatch, capsys)


def folder_of(path, X):
    """Write a table as three parquet files, and what other programs leave beside them."""
    path.mkdir()
    frame = pl.DataFrame(X, schema=["x", "y", "z"][: X.shape[1]])
    for k, rows in enumerate(np.array_split(np.arange(len(X)), 3)):
        part = frame[rows.tolist()]
        part.select(part.columns[::-1] if k == 1 else part.columns).write_parquet(path / f"part.{k}.parquet")
    (path / "_SUCCESS").write_text("")
    (path / "_metadata.parquet").write_text("")
    frame.write_csv(path.with_suffix(".csv"))


@pytest.mark.parametrize("inference", [[], ["--inference", "mcmc", "--samples", "20", "--chains", "2"]])
def test_fit_command_reads_parquet_folder_on_cluster(client, command, table, tmp_path, inference):
    folder_of(tmp_path / "big", table)
    options = ["--noise", "0.1", "--real-process", "brownian", "--no-id", *inference]
    assert command("fit", "big.csv", "-o", "one", *options)[0] == 0
    code, _, err = command("fit", "big/", "-o", "two", *options, "--dask", client.scheduler.address)
    assert code == 0
    assert re.search(rf"^cluster   {client.scheduler.address}, dashboard at http://", err, re.MULTILINE)
    assert "big: 12 rows" in err
    for name in ("tree.nwk", "clusters.csv"):
        assert (tmp_path / "two" / name).read_bytes() == (tmp_path / "one" / name).read_bytes()
    assert ct.load_model(tmp_path / "two" / "model.coaltree").client is None
    assert not list(tmp_path.glob("*.checkpoint"))


@pytest.mark.slow
def test_interrupted_cluster_fit_resumes(client, doomed, small_blocks, command, tmp_path, monkeypatch):
    _, X = simulated("noise")
    folder_of(tmp_path / "big", X[:, :3])
    options = ["--noise", "0.1", "--real-process", "brownian", "--search", "neighbors", "--no-id"]
    merge, live = greedy.merge_neighbors, []

    def watched(*arguments):
        *settings, report, checkpoint_path = arguments

        def closing(share, n_live):
            live.append(n_live)
            if n_live < 0.6 * len(X) and doomed.status.name == "running":
                doomed.close()
            report(share, n_live)

        return merge(*settings, closing, checkpoint_path)

    with monkeypatch.context() as patched, distributed.Client(doomed, set_as_default=False) as short_lived:
        patched.setattr(greedy, "merge_neighbors", watched)
        patched.setattr(cluster, "open_client", lambda address: nullcontext(short_lived))
        outcome = command("fit", "big", "-o", "out", *options, "--dask", "tcp://host:8786")
        check_sentence(outcome, "was lost (", "out.checkpoint", "resume")
        assert sorted(path.name for path in tmp_path.iterdir()) == ["big", "big.csv", "out.checkpoint"]
        live.clear()
        patched.setattr(cluster, "open_client", lambda address: nullcontext(client))
        assert command("fit", "big", "-o", "out", *options, "--dask", "tcp://host:8786")[0] == 0
    assert max(live) <= 0.5 * len(X)
    assert not (tmp_path / "out.checkpoint").exists()
    assert command("fit", "big.csv", "-o", "whole", *options)[0] == 0
    assert (tmp_path / "out" / "tree.nwk").read_bytes() == (tmp_path / "whole" / "tree.nwk").read_bytes()


def test_commands_read_parquet_folder(command, table, tmp_path):
    holes = np.where(np.arange(36).reshape(12, 3) % 7 == 0, np.nan, table)
    folder_of(tmp_path / "big", holes)
    options = ["--noise", "0.1", "--real-process", "brownian", "--no-id"]
    assert command("fit", "big", "-o", "out", *options)[0] == 0
    one, other = (command("score", "out/model.coaltree", name, "--no-id") for name in ("big", "big.csv"))
    assert one[1] == other[1]
    assert len(one[1].splitlines()) == 13
    assert command("impute", "big", "-o", "filled.parquet", *options[:4], "--no-id")[0] == 0
    filled = pl.read_parquet(tmp_path / "filled.parquet")
    assert filled.null_count().row(0) == (0, 0, 0)
    assert not np.isnan(filled.to_numpy()).any()
    folder_of(tmp_path / "whole", table)
    assert command("impute", "whole", "-o", "copied.parquet", *options[:4], "--no-id")[0] == 0
    np.testing.assert_array_equal(pl.read_parquet(tmp_path / "copied.parquet").to_numpy(), table)


def test_fit_command_computes_evidence_on_cluster(client, tmp_path, monkeypatch, capsys):
    pytest.importorskip("typer")
    for name in ("N_RUNS", "N_CHAINS", "N_SAMPLES"):
        monkeypatch.setattr(comparison, name, 2)
    addresses = []

    def evidence(*arguments, client, **options):
        addresses.append(client and client.scheduler.address)
        return ct.evidence(*arguments, client=client, **options)

    monkeypatch.setattr(comparison, "evidence", evidence)
    (tmp_path / "t.csv").write_text("x\n1\n2\n4\n8\n")
    run = command_in(tmp_path, monkeypatch, capsys)
    fit = ["fit", "t.csv", "--evidence", "--no-id", "-o"]
    assert run(*fit, "here")[0] == 0
    assert set(addresses) == {None}
    addresses.clear()
    assert run(*fit, "there", "--dask", client.scheduler.address)[0] == 0
    assert set(addresses) == {client.scheduler.address}
    assert (tmp_path / "there" / "evidence.csv").read_bytes() == (tmp_path / "here" / "evidence.csv").read_bytes()
