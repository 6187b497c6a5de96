"""Damaged and altered model files are rejected with a message, without allocating much memory."""

import io
import tracemalloc

import numpy as np
import pytest
from faults.damage import ARCHIVE_DAMAGES, alter_array, mix_two_archives, unpack

import coaltree as ct
from coaltree.errors import InputError
from coaltree.estimators.load import to_estimator
from coaltree.persist.archive import array_to_bytes, pack
from coaltree.persist.model import ModelRecord
from model_files import model_bytes

pytestmark = pytest.mark.filterwarnings("ignore::coaltree.errors.InputWarning")

N_FILES = 60  # of each kind of damage


@pytest.fixture(scope="module")
def models():
    """The files of a greedy tree, of a sample by sequential Monte Carlo and of a sample by Markov chains."""
    rng = np.random.default_rng(8)
    X = rng.normal(np.repeat([0.0, 4.0], 6)[:, None], 1.0, size=(12, 3))
    X[2, 1] = np.nan
    settings = [
        {},
        {"inference": "smc", "n_particles": 10, "n_runs": 2},
        {"inference": "mcmc", "n_chains": 2, "n_samples": 40},
    ]
    return [model_bytes(ct.CoalescentClustering(random_state=1, **setting).fit(X)) for setting in settings]


def check_refused(data):
    with pytest.raises(InputError) as caught:
        ModelRecord.from_bytes(data, "m.coaltree")
    assert "m.coaltree" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("damage", ARCHIVE_DAMAGES, ids=lambda damage: damage.__name__)
def test_damage_is_reported(models, damage):
    for seed in range(N_FILES):
        rng = np.random.default_rng([seed, ARCHIVE_DAMAGES.index(damage)])
        data = models[seed % len(models)]
        changed = damage(data, rng)
        if changed != data:
            check_refused(changed)


def test_parts_of_two_models_are_reported(models):
    for seed in range(N_FILES):
        rng = np.random.default_rng(seed)
        check_refused(mix_two_archives(models[seed % 3], rng, models[(seed + 1) % 3]))


def test_altered_arrays_with_valid_digest_need_little_memory(models):
    """A file with an altered member and a valid digest is read or rejected, without other errors or large arrays."""
    messages = []
    for seed in range(N_FILES):
        rng = np.random.default_rng([seed, 99])
        members, _ = unpack(models[seed % len(models)])
        name = rng.choice([name for name in members if name.endswith(".npy")])
        members[name] = alter_array(members[name], rng)
        tracemalloc.start()
        try:
            to_estimator(ModelRecord.from_bytes(pack(members), "m.coaltree"), "m.coaltree")
        except InputError as error:
            messages.append(str(error))
        finally:
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
        assert peak < 50e6, (seed, name)
    assert len(messages) > N_FILES // 3
    assert all("m.coaltree" in message for message in messages)


@pytest.mark.parametrize("label", [2**31 - 1, 12, 10**6])
def test_huge_labels_are_rejected_before_allocation(models, label):
    members, _ = unpack(models[0])
    labels = np.load(io.BytesIO(members["labels.npy"]))
    labels[3] = label
    members["labels.npy"] = array_to_bytes(labels, "<i4")
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match=r"labels\.npy"):
            ModelRecord.from_bytes(pack(members), "m.coaltree")
        assert tracemalloc.get_traced_memory()[1] < 10e6
    finally:
        tracemalloc.stop()
