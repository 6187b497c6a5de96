"""Model files and checkpoints that are damaged, mixed with others, or altered and given a new digest."""

from __future__ import annotations

import contextlib
import tracemalloc
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import coaltree as ct
from coaltree.errors import InputWarning
from coaltree.estimators.load import to_estimator
from coaltree.persist.archive import pack
from coaltree.persist.model import ModelRecord, make_record

from .damage import ARCHIVE_DAMAGES, BYTE_DAMAGES, alter_array, choose, mix_two_archives, unpack
from .outcome import ACCEPTED, REJECTED, Outcome, check, classify, run_command, try_call

SOURCE = "m.coaltree"
FORGED_SHARE, MIXED_SHARE, COMMANDS_SHARE = 0.2, 0.05, 0.03
MAX_MEMORY = 100e6  # bytes
JSON_VALUES = (b"null", b"-1", b"0", b"1e308", b"2147483648", b'"x"', b"[]", b"{}", b"true", b"1.5", b"NaN", b'""')
NEW_ROWS = np.array([[0.0, 1.0, 2.0], [np.nan, 0.5, 0.1]])


@cache
def model_files() -> list[bytes]:
    """Return the files of greedy trees, of samples by both methods, with draws and mixed columns, and of an imputer."""
    rng = np.random.default_rng(8)
    X = rng.normal(np.repeat([0.0, 4.0], 6)[:, None], 1.0, size=(12, 3))
    X[2, 1] = np.nan
    settings: list[dict[str, Any]] = [
        {},
        {"inference": "smc", "n_particles": 10, "n_runs": 2},
        {"inference": "mcmc", "n_chains": 2, "n_samples": 40},
        {"standardize": "power"},
        {"categorical_features": [2]},
    ]
    models: list[Any] = []
    for options in settings:
        table = X if "categorical_features" not in options else np.column_stack([X[:, :2], np.arange(12) % 3])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InputWarning)
            models.append(ct.CoalescentClustering(random_state=1, **options).fit(table))
    models[0].score_samples(NEW_ROWS)  # draws trees, which the file then has
    models.append(ct.CoalescentImputer(random_state=1).fit(X))
    return [make_record(model._model).to_bytes() for model in models]


def case(rng: np.random.Generator, folder: Path) -> Outcome:
    """Load one file. Damage must be rejected; a file with a new digest may hold another model, which then works."""
    files = model_files()
    which = int(rng.integers(len(files)))
    data, how = files[which], rng.random()
    if how < FORGED_SHARE:
        return _load_forged(_forge(data, rng))
    if how < FORGED_SHARE + MIXED_SHARE:
        changed = mix_two_archives(data, rng, files[(which + 1) % len(files)])
    else:
        changed = choose(rng, ARCHIVE_DAMAGES)(data, rng)
    if rng.random() < COMMANDS_SHARE:
        outcome = _query_by_command(changed, rng, folder)
    else:
        outcome = try_call(lambda: to_estimator(ModelRecord.from_bytes(changed, SOURCE), SOURCE))
        check(
            outcome.kind == ACCEPTED or SOURCE in outcome.words, f"the message does not name the file: {outcome.words}"
        )
    check((changed == data) == (outcome.kind == ACCEPTED), f"{outcome.kind}, although damaged is {changed != data}")
    return outcome


def _query_by_command(data: bytes, rng: np.random.Generator, folder: Path) -> Outcome:
    (folder / SOURCE).write_bytes(data)
    (folder / "t.csv").write_text("x0,x1,x2\n1,2,1\n0,,2\n")
    commands = (
        ["score", SOURCE, "t.csv"],
        ["place", SOURCE, "t.csv"],
        ["cut", SOURCE, "--n-clusters", 2],
        ["impute", "t.csv", "--model", SOURCE, "-o", "o.csv"],
        ["convert", SOURCE, "o.nwk"],
        ["plot", SOURCE, "-o", "o.svg"],
    )
    return classify(run_command(commands[int(rng.integers(len(commands)))]))


def _forge(data: bytes, rng: np.random.Generator) -> bytes:
    """Alter members, and give the file a new digest, so that only what the members say can be wrong."""
    members, _ = unpack(data)
    name = str(rng.choice(list(members)))
    if name.endswith(".npy"):
        members[name] = alter_array(members[name], rng)
        return pack(members)
    text = members[name]
    pieces = [k for k in range(len(text)) if text[k : k + 1] in (b":", b",")]
    place = int(rng.choice(pieces)) + 1
    end = place
    while end < len(text) and text[end : end + 1] not in (b",", b"}", b"]"):
        end += 1
    members[name] = text[:place] + JSON_VALUES[int(rng.integers(len(JSON_VALUES)))] + text[end:]
    return pack(members)


def _load_forged(data: bytes) -> Outcome:
    """Load a file that someone altered: it is rejected, or the model works, within little memory."""
    tracemalloc.start()
    try:
        outcome = try_call(lambda: _query_model(ModelRecord.from_bytes(data, SOURCE)))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    check(peak < MAX_MEMORY, f"{peak / 1e6:.0f} MB")
    return outcome


def _query_model(state: ModelRecord) -> None:
    model = to_estimator(state, SOURCE)
    model.tree_.to_newick()
    if isinstance(model, ct.CoalescentClustering):
        model.cut(n_clusters=2)
        model.to_frame()


# -- checkpoints -----------------------------------------------------------------------------------------------------------


@cache
def _chain_run() -> tuple[bytes, list[str]]:
    """Return a checkpoint of chains half way, and the trees of the whole run."""
    import tempfile

    X, process = _chain_table()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "c"
        _stop_midway(lambda report: ct.mcmc(X, process, 40, 2, random_state=3, checkpoint=path, progress=report), path)
        data = path.read_bytes()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)
        result = ct.mcmc(X, process, 40, 2, random_state=3)
    return data, [tree.to_newick() for tree in result.trees]


def _chain_table() -> tuple[Any, ct.Process]:
    return np.random.default_rng(1).normal(size=(8, 2)), ct.OrnsteinUhlenbeck(0.5, noise=0.2)


class _StopError(Exception):
    """Ends a run half way."""


def _stop_midway(run: Any, path: Path) -> None:
    def report(*facts: Any) -> None:
        if path.exists():
            raise _StopError

    with contextlib.suppress(_StopError):
        run(report)


@cache
def _search_run() -> tuple[bytes, str]:
    """Return a checkpoint of a search by neighbours, and the tree of the whole run."""
    import tempfile

    X, process = _search_table()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "c"
        _stop_midway(lambda report: ct.greedy(X, process, search="neighbors", checkpoint=path, progress=report), path)
        data = path.read_bytes()
    return data, ct.greedy(X, process, search="neighbors").tree.to_newick()


def _search_table() -> tuple[Any, ct.Process]:
    rng = np.random.default_rng(1)
    X = rng.normal(rng.integers(0, 9, 1200)[:, None], 1.0, size=(1200, 3))
    X[rng.random(X.shape) < 0.05] = np.nan
    X[np.isnan(X).all(axis=1)] = 0.0
    return X, ct.OrnsteinUhlenbeck(0.5, noise=0.2)


def checkpoint_case(rng: np.random.Generator, folder: Path) -> Outcome:
    """Resume from a checkpoint: the damaged one is rejected, and any result equals that of the whole run."""
    chains = rng.random() < 0.9
    data: bytes
    data, expected = _chain_run() if chains else _search_run()  # type: ignore[assignment]
    changed = data if rng.random() < 0.02 else choose(rng, ARCHIVE_DAMAGES if chains else BYTE_DAMAGES)(data, rng)
    path = folder / "checkpoint"
    path.write_bytes(changed)
    results: list[Any] = []

    def resume() -> None:
        if chains:
            X, process = _chain_table()
            sample = ct.mcmc(X, process, 40, 2, random_state=3, checkpoint=path)
            results.append([tree.to_newick() for tree in sample.trees])
        else:
            X, process = _search_table()
            results.append(ct.greedy(X, process, search="neighbors", checkpoint=path).tree.to_newick())

    outcome = try_call(resume)
    if outcome.kind == REJECTED:
        check(str(path) in outcome.words, f"the message does not name the file: {outcome.words}")
    else:
        check(results[0] == expected, "another result than that of the whole run")
    return outcome
