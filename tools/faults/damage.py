"""Damage to bytes and to archives, drawn from a generator."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable

import numpy as np

from coaltree.persist.archive import array_to_bytes

EXTREMES = (0, 1, -1, 2**31 - 1, -(2**31), np.nan, np.inf, -np.inf, 1e308, 5e-324)

Damage = Callable[[bytes, np.random.Generator], bytes]


def flip_bytes(data: bytes, rng: np.random.Generator) -> bytes:
    """Change one to eight bytes."""
    changed = bytearray(data)
    for place in rng.integers(0, len(data), size=rng.integers(1, 9)).tolist():
        changed[place] ^= int(rng.integers(1, 256))
    return bytes(changed)


def truncate(data: bytes, rng: np.random.Generator) -> bytes:
    """Keep the beginning."""
    return data[: rng.integers(1, len(data))]


def remove_a_piece(data: bytes, rng: np.random.Generator) -> bytes:
    """Remove a piece from the middle."""
    begin, end = sorted(rng.integers(0, len(data), size=2).tolist())
    return data[:begin] + data[end + 1 :]


def repeat_a_piece(data: bytes, rng: np.random.Generator) -> bytes:
    """Insert a copy of a piece somewhere else."""
    begin, end = sorted(rng.integers(0, len(data), size=2).tolist())
    place = int(rng.integers(0, len(data)))
    return data[:place] + data[begin : min(end, begin + 1000)] + data[place:]


def append_bytes(data: bytes, rng: np.random.Generator) -> bytes:
    """Append noise."""
    return data + rng.bytes(int(rng.integers(1, 200)))


def overwrite_bytes(data: bytes, rng: np.random.Generator) -> bytes:
    """Overwrite a piece by zeros or noise."""
    begin, size = int(rng.integers(0, len(data))), int(rng.integers(1, 64))
    piece = bytes(size) if rng.random() < 0.5 else rng.bytes(size)
    return data[:begin] + piece + data[begin + size :]


BYTE_DAMAGES: tuple[Damage, ...] = (
    flip_bytes,
    truncate,
    remove_a_piece,
    repeat_a_piece,
    append_bytes,
    overwrite_bytes,
)


def unpack(data: bytes) -> tuple[dict[str, bytes], bytes]:
    """Return the members of a zip file, and its comment."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}, archive.comment


def zip_again(members: dict[str, bytes], comment: bytes) -> bytes:
    """Return a zip file with correct checksums, and the digest that the original file had."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name), data)
        archive.comment = comment
    return packed.getvalue()


def alter_array(data: bytes, rng: np.random.Generator) -> bytes:
    """Replace one to three numbers of an array by others, some of them extreme."""
    array = np.load(io.BytesIO(data), allow_pickle=False)
    flat = array.ravel().copy()
    if flat.size == 0:
        return data
    for place in rng.integers(0, flat.size, size=rng.integers(1, 4)).tolist():
        value = rng.choice(EXTREMES) if rng.random() < 0.6 else rng.choice(flat) + rng.integers(-2, 3)
        if flat.dtype.kind in "iub":
            limits = np.iinfo(flat.dtype if flat.dtype.kind != "b" else np.uint8)
            value = np.clip(np.nan_to_num(value), max(limits.min, -(2**31)), min(limits.max, 2**31 - 1))
        flat[place] = value
    return array_to_bytes(flat.reshape(array.shape), array.dtype.str)


def swap_members(data: bytes, rng: np.random.Generator) -> bytes:
    """Swap the content of two members."""
    members, comment = unpack(data)
    first, second = rng.choice(list(members), size=2, replace=False)
    members[first], members[second] = members[second], members[first]
    return zip_again(members, comment)


def reorder_members(data: bytes, rng: np.random.Generator) -> bytes:
    """Write the members in another order."""
    members, comment = unpack(data)
    return zip_again({name: members[name] for name in rng.permutation(list(members))}, comment)


def drop_a_member(data: bytes, rng: np.random.Generator) -> bytes:
    """Leave a member out."""
    members, comment = unpack(data)
    del members[rng.choice(list(members))]
    return zip_again(members, comment)


def alter_a_member(data: bytes, rng: np.random.Generator) -> bytes:
    """Alter numbers of one array."""
    members, comment = unpack(data)
    name = rng.choice([name for name in members if name.endswith(".npy")])
    members[name] = alter_array(members[name], rng)
    return zip_again(members, comment)


def mix_two_archives(data: bytes, rng: np.random.Generator, other: bytes) -> bytes:
    """Replace a member by that of another archive."""
    members, comment = unpack(data)
    others, _ = unpack(other)
    shared = sorted(members.keys() & others.keys())
    name = rng.choice(shared)
    members[name] = others[name]
    return zip_again(members, comment)


ARCHIVE_DAMAGES: tuple[Damage, ...] = (
    *BYTE_DAMAGES,
    swap_members,
    reorder_members,
    drop_a_member,
    alter_a_member,
)


def choose(rng: np.random.Generator, options: tuple[Damage, ...]) -> Damage:
    """Draw one of several functions."""
    return options[int(rng.integers(len(options)))]
