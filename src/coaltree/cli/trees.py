"""Trees of the command line: files of any kind that holds one, standard input and output."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..console import Notes
from ..errors import InputError
from ..table.wording import count
from .options import STANDARD_STREAM, TREE, named
from .tables import STANDARD_INPUT

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ..tree.tree import Tree


class TreeKind(StrEnum):
    """Kinds of files with trees."""

    newick = "newick"
    nexus = "nexus"
    linkage = "linkage"
    npy = "npy"
    json = "json"
    model = "model"


READ = tuple(kind.value for kind in TreeKind)
WRITTEN = tuple(kind for kind in READ if kind != "model")
"""A model holds more than a tree, and is not made from one."""


TreeArgument = Annotated[
    Path,
    typer.Argument(
        metavar="TREE",
        help="A tree: Newick (.nwk), NEXUS (.nex), linkage (.csv, .npy), JSON (.json) or a model.coaltree; - is standard "
        "input.",
        parser=named,
    ),
]
FromOption = Annotated[
    TreeKind | None,
    typer.Option(
        "--from",
        metavar="KIND",
        help="newick, nexus, linkage, npy, json or model. By default what the name ends with.",
        rich_help_panel=TREE,
    ),
]


def kind_of(path: Path, given: TreeKind | None, option: str, allowed: Sequence[str]) -> str:
    """Return the kind of a file with a tree: as given with an option, or by the ending of its name."""
    from ..output.tree_files import ENDINGS

    if given is None and path == STANDARD_STREAM:
        kinds = ", ".join(allowed)
        raise InputError(f"The kind of what - stands for is not known: say it with {option}, which is one of {kinds}.")
    ending = path.suffix.lower()
    kind = next((kind for kind, endings in ENDINGS.items() if ending in endings), "") if given is None else given.value
    if kind in allowed:
        return kind
    known = ", ".join(ending for name in allowed for ending in ENDINGS[name])
    found = path.name if given is None else f"{option} {kind}"
    raise InputError(
        f"{found} is not a kind of tree that is {'read' if option == '--from' else 'written'}: names end with {known}, "
        f"or {option} says the kind."
    )


def cut_leaves(tree: Tree, n_clusters: int | None, height_threshold: float | None) -> NDArray[np.intp]:
    """Return flat clusters of the leaves, as asked for by one of the options."""
    from ..tree.cut import cut_tree

    if n_clusters is None and height_threshold is None:
        raise InputError(
            "A tree alone does not say where to cut it: give --n-clusters or --height-threshold, or take a model.coaltree."
        )
    if n_clusters is not None and n_clusters > tree.n_leaves:
        raise InputError(f"--n-clusters is {n_clusters}, but the tree has {count(tree.n_leaves, 'leaf', 'leaves')}.")
    return cut_tree(tree, (), n_clusters=n_clusters, height=height_threshold)


def read_tree_file(path: Path, kind: str, notes: Notes) -> Tree:
    """Read the tree of a file, or of standard input."""
    from ..output.tree_files import read_tree
    from ..table.opening import read_bytes

    with notes.timed("reading"):
        if path == STANDARD_STREAM:
            tree, remarks = read_tree(sys.stdin.buffer.read(), kind, STANDARD_INPUT)
        else:
            tree, remarks = read_tree(read_bytes(path), kind, str(path))
    notes.add(remarks)
    return tree
