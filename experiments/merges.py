"""Trees as tables, a row for each merge, so that figures can be drawn from files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

import coaltree as ct


def merge_rows(tree: ct.Tree, **columns: ArrayLike) -> list[dict[str, object]]:
    """Return the merges of a tree, most recent first: the two nodes, the height, and what else is known of each."""
    others = {name: np.asarray(values).tolist() for name, values in columns.items()}
    return [
        # Heights in full: merges that are equal but for the seventh digit keep their order.
        {
            "left": left,
            "right": right,
            "height": repr(float(height)),
            **{name: cells[k] for name, cells in others.items()},
        }
        for k, ((left, right), height) in enumerate(zip(tree.children.tolist(), tree.merge_heights, strict=True))
    ]


def tree_from_rows(rows: Sequence[Mapping[str, str]], leaf_names: Sequence[str] | None = None) -> ct.Tree:
    """Return the tree whose merges are given."""
    children = [(int(row["left"]), int(row["right"])) for row in rows]
    heights = [0.0] * (len(rows) + 1) + [float(row["height"]) for row in rows]
    return ct.Tree(np.array(children).reshape(-1, 2), heights, leaf_names)
