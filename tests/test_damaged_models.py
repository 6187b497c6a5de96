"""Damaged and altered model files: every one is refused with a message, and none costs more memory than its size warrants."""

import io
import tracemalloc
import zipfile

import numpy as np
import pytest

import coaltree as ct
from coaltree.errors import InputError
from coaltree.estimators.load import to_estimator
from coaltree.persist.archive import array_to_bytes, pack
from coaltree.persist.model import ModelState
from model_files import model_bytes

pytestmark = pytest.mark.filterwarnings("ignore::coaltree.errors.InputWarning")

N_FILES = 60  # of each kind of damage
EXTREMES = (0, 1, -1, 2**31 - 1, -(2**31), np.nan, np.inf, -np.inf, 1e308, 5e-324)


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
    return [model_bytes(ct.CoalescentClustering(random_state=1, **own).fit(X)) for own in settings]


def unpack(data):
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}, archive.comment


def zip_again(members, comment):
    """A zip file with correct checksums, and the digest that the original file had."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name), data)
        archive.comment = comment
    return packed.getvalue()


def alter_array(data, rng):
    """Replace one to three numbers of an array by others, some of them extreme."""
    array = np.load(io.BytesIO(data), allow_pickle=False)
    flat = array.ravel().copy()
    if flat.size == 0:
        return data
    for place in rng.integers(0, flat.size, size=rng.integers(1, 4)).tolist():
        value = rng.choice(EXTREMES) if rng.random() < 0.6 else rng.choice(flat) + rng.integers(-2, 3)
        if flat.dtype.kind in "ib":
            value = np.clip(np.nan_to_num(value), -(2**31), 2**31 - 1)
        flat[place] = value
    return array_to_bytes(flat.reshape(array.shape), array.dtype.str)


def flip_bytes(data, rng):
    changed = bytearray(data)
    for place in rng.integers(0, len(data), size=rng.integers(1, 9)).tolist():
        changed[place] ^= int(rng.integers(1, 256))
    return bytes(changed)


def truncate(data, rng):
    return data[: rng.integers(1, len(data))]


def remove_a_piece(data, rng):
    begin, end = sorted(rng.integers(0, len(data), size=2).tolist())
    return data[:begin] + data[end + 1 :]


def append_bytes(data, rng):
    return data + rng.bytes(int(rng.integers(1, 200)))


def swap_members(data, rng):
    members, comment = unpack(data)
    first, second = rng.choice(list(members), size=2, replace=False)
    members[first], members[second] = members[second], members[first]
    return zip_again(members, comment)


def reorder_members(data, rng):
    members, comment = unpack(data)
    return zip_again({name: members[name] for name in rng.permutation(list(members))}, comment)


def drop_a_member(data, rng):
    members, comment = unpack(data)
    del members[rng.choice(list(members))]
    return zip_again(members, comment)


def alter_a_member(data, rng):
    members, comment = unpack(data)
    name = rng.choice([name for name in members if name.endswith(".npy")])
    members[name] = alter_array(members[name], rng)
    return zip_again(members, comment)


def mix_two_models(data, rng, other):
    """Members of another model in place of this one's."""
    members, comment = unpack(data)
    others, _ = unpack(other)
    shared = sorted(members.keys() & others.keys())
    name = rng.choice(shared)
    members[name] = others[name]
    return zip_again(members, comment)


KINDS = [
    flip_bytes, truncate, remove_a_piece, append_bytes, swap_members, reorder_members, drop_a_member, alter_a_member,
]  # fmt: skip


def check_refused(data):
    with pytest.raises(InputError) as caught:
        ModelState.from_bytes(data, "m.coaltree")
    assert "m.coaltree" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("damage", KINDS, ids=lambda damage: damage.__name__)
def test_damage_is_reported(models, damage):
    for seed in range(N_FILES):
        rng = np.random.default_rng([seed, KINDS.index(damage)])
        data = models[seed % len(models)]
        changed = damage(data, rng)
        if changed != data:
            check_refused(changed)


def test_parts_of_two_models_are_reported(models):
    for seed in range(N_FILES):
        rng = np.random.default_rng(seed)
        check_refused(mix_two_models(models[seed % 3], rng, models[(seed + 1) % 3]))


def test_altered_arrays_with_a_new_digest_cost_no_memory(models):
    """Whoever alters a file and its digest may get another model, or a refusal, but no other error and no large arrays."""
    messages = []
    for seed in range(N_FILES):
        rng = np.random.default_rng([seed, 99])
        members, _ = unpack(models[seed % len(models)])
        name = rng.choice([name for name in members if name.endswith(".npy")])
        members[name] = alter_array(members[name], rng)
        tracemalloc.start()
        try:
            to_estimator(ModelState.from_bytes(pack(members), "m.coaltree"), "m.coaltree")
        except InputError as error:
            messages.append(str(error))
        finally:
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
        assert peak < 50e6, (seed, name)
    assert len(messages) > N_FILES // 3
    assert all("m.coaltree" in message for message in messages)


@pytest.mark.parametrize("label", [2**31 - 1, 12, 10**6])
def test_huge_labels_are_refused_before_memory_is_allocated(models, label):
    members, _ = unpack(models[0])
    labels = np.load(io.BytesIO(members["labels.npy"]))
    labels[3] = label
    members["labels.npy"] = array_to_bytes(labels, "<i4")
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match=r"labels\.npy"):
            ModelState.from_bytes(pack(members), "m.coaltree")
        assert tracemalloc.get_traced_memory()[1] < 10e6
    finally:
        tracemalloc.stop()
