"""The draws that predictions are averaged over, in the file of a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..inference.posterior_draws import Draw
from ..process.parameters import parameter_values, with_parameters
from ..table.encoding import Encoding
from ..tree.tree import Tree
from .archive import Archive, array_bytes
from .checked_json import member, read_list, read_whole
from .stored_parts import check_process, read_process, written_process

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]


def draw_members(draws: Sequence[Draw], matrix: FloatArray) -> dict[str, bytes]:
    """Return trees, parameters and tables of draws as members of an archive.

    The draws of a chain differ in cells that are missing from the table alone, so that each table is kept once for a chain.
    """
    missing = np.isnan(matrix)
    return {
        "draw_children.npy": array_bytes(np.stack([draw.tree.children for draw in draws]), "<i4"),
        "draw_heights.npy": array_bytes(np.stack([draw.tree.merge_heights for draw in draws]), "<f8"),
        "draw_parameters.npy": array_bytes(np.stack([parameter_values(draw.process) for draw in draws]), "<f8"),
        "draw_tables.npy": array_bytes(np.stack([draws[k].X[~missing] for k in _firsts(draws, missing)]), "<f8"),
        "draw_missing.npy": array_bytes(np.stack([draw.X[missing] for draw in draws]), "<f8"),
    }


def written_draws(draws: Sequence[Draw], matrix: FloatArray) -> dict[str, Any]:
    """Return what else there is to know of draws, for JSON."""
    return {
        "n_draws": len(draws),
        "first_of_each_table": _firsts(draws, np.isnan(matrix)),
        "process": written_process(draws[0].process),
    }


def _firsts(draws: Sequence[Draw], missing: NDArray[np.bool_]) -> list[int]:
    """Return which draws are the first with their table."""
    firsts = [0]
    for k, draw in enumerate(draws):
        if not np.array_equal(draw.X[~missing], draws[firsts[-1]].X[~missing]):
            firsts.append(k)
    return firsts


def read_draws(
    archive: Archive, written: Any, encoding: Encoding, matrix: FloatArray, names: Sequence[str]
) -> list[Draw]:
    """Return the draws that `draw_members` and `written_draws` have written.

    Parameters
    ----------
    archive : Archive
    written : object
        What `written_draws` returned.
    encoding : Encoding
    matrix : ndarray of shape (n_rows, n_columns)
        The encoded rows that the draws are over.
    names : sequence of str
        Of these rows.
    """
    count = read_whole(member(written, "n_draws", "draws"), "n_draws", 1)
    firsts = [
        read_whole(entry, "first_of_each_table")
        for entry in read_list(member(written, "first_of_each_table", "draws"), "")
    ]
    if not firsts or firsts[0] != 0 or sorted(set(firsts)) != firsts or firsts[-1] >= count:
        raise InputError("first_of_each_table of its draws does not number them")
    first = read_process(member(written, "process", "draws"))
    check_process(first, encoding)
    missing = np.isnan(matrix)
    n, n_missing = len(matrix), int(missing.sum())
    children = archive.read_array("draw_children.npy", "<i4", (count, n - 1, 2)).astype(np.intp)
    heights = archive.read_array("draw_heights.npy", "<f8", (count, n - 1))
    parameters = archive.read_array("draw_parameters.npy", "<f8", (count, len(parameter_values(first))))
    tables = archive.read_array("draw_tables.npy", "<f8", (len(firsts), matrix.size - n_missing))
    cells = archive.read_array("draw_missing.npy", "<f8", (count, n_missing))
    for name, numbers in (("draw_parameters", parameters), ("draw_tables", tables)):
        if not np.isfinite(numbers).all():
            raise InputError(f"its {name}.npy holds NaN or infinite numbers")
    if np.isinf(cells).any():
        raise InputError("its draw_missing.npy holds infinite numbers")
    draws = []
    for k in range(count):
        X = np.empty_like(matrix)
        X[~missing], X[missing] = tables[np.searchsorted(firsts, k, side="right") - 1], cells[k]
        process = with_parameters(first, parameters[k]).resolve(X)
        draws.append(Draw(Tree(children[k], np.append(np.zeros(n), heights[k]), names), process, X))
    return draws
