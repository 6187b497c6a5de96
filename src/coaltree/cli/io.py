"""Results of the command line: into files, whole or not at all, or onto standard output."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InputError
from ..table.messages import count
from .console import Notes, progress_bar
from .options import STANDARD_STREAM, TREE, TableKind, column_names, id_setting, named

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ..persist.model import ModelState
    from ..table.cells import Category
    from ..table.columns import Table
    from ..table.read_file import FileTable, TableFile
    from ..tree.tree import Tree
    from ..workflow.model import FittedModel


def check_result(result: Path | None, sources: Mapping[str, Path | None]) -> None:
    """Refuse, before any work is done, a file that cannot be written or that the work begins with.

    Parameters
    ----------
    result : Path or None
        The file to write; None or ``-`` is standard output.
    sources : mapping of str to (Path or None)
        The files that are read, by what they are.
    """
    if result is None or result == STANDARD_STREAM:
        return
    from .._atomic import check_writable

    for what, source in sources.items():
        if source is not None and source.exists() and result.exists() and source.samefile(result):
            raise InputError(f"{result} is {what} itself, which is not written over: choose another name.")
    check_writable(result)


def deliver(results: Mapping[Path | None, str | bytes]) -> None:
    """Write all files or none of them, and after that what goes to standard output."""
    from .._atomic import write_files_atomic

    files = {path: data for path, data in results.items() if path is not None and path != STANDARD_STREAM}
    write_files_atomic(files)
    for path, data in results.items():
        if path is None or path == STANDARD_STREAM:
            # The bytes of a file, in whatever letters the terminal would have it.
            typer.echo(data.encode(errors="replace") if isinstance(data, str) else data, nl=False)


def tell(facts: Mapping[str, Any]) -> None:
    """Write facts as the one JSON object on standard output."""
    from ..persist.results import json_text, to_plain_values

    deliver({None: json_text(to_plain_values(facts))})


def records(columns: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Return the rows of a table that is given by its columns."""
    return [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]


def draw_trees(model: FittedModel, notes: Notes) -> None:
    """Draw the trees that answer questions about rows, unless the model has them, and show how it goes."""
    with notes.timed("drawing trees"), notes.taken(), progress_bar(not notes.quiet) as report:
        model.draw_trees(report)


def read_model_state(path: Path) -> tuple[ModelState, str]:
    """Return what the file of a model holds, and what the file is called in messages."""
    from ..persist.model import ModelState, read_model_state

    if path == STANDARD_STREAM:
        return ModelState.from_bytes(sys.stdin.buffer.read(), STANDARD_INPUT), STANDARD_INPUT
    return read_model_state(path), str(path)


def load_clustering(path: Path) -> FittedModel:
    """Read a fitted model with flat clusters."""
    from ..persist.model import from_state

    state, source = read_model_state(path)
    model = from_state(state, source)
    if model.labels is None:
        raise InputError(
            f"{source} holds a {state.estimator}, which fills cells and has neither densities nor clusters: take the "
            "model.coaltree that coaltree fit writes, or a CoalescentClustering's."
        )
    return model


STANDARD_INPUT = "standard input"


def reading_settings(
    id_column: str | None,
    no_id: bool,
    drop: Sequence[str] | None,
    categorical: Sequence[str] | None,
    na_value: Sequence[str] | None,
    real: Sequence[str] | None = None,
) -> dict[str, Any]:
    """Return the options on reading as `read_file` takes them."""
    id_column = id_setting(id_column, no_id)
    dropped, declared = column_names(drop, "--drop"), column_names(categorical, "--categorical")
    numbers = column_names(real, "--real")
    from ..table.read_file import DEFAULT_NA

    return {
        "id_column": id_column,
        "drop": dropped,
        "categorical": declared,
        "real": numbers,
        "na_values": [*DEFAULT_NA, *(na_value or [])],
    }


def located(path: Path, kind: TableKind | None) -> TableFile:
    """Return the file of a table, or what standard input holds."""
    from ..table.read_file import open_bytes, open_table

    wanted = None if kind is None else kind.value
    if path == STANDARD_STREAM:
        return open_bytes(sys.stdin.buffer.read(), STANDARD_INPUT, wanted)
    return open_table(path, wanted)


def read_table(table: TableFile, settings: Mapping[str, Any], notes: Notes) -> tuple[FileTable, Table]:
    """Read a table to fit a model to."""
    from ..table.columns import read_columns
    from ..table.read_file import read_file

    with notes.timed("reading"), notes.taken():
        file = read_file(table, **settings)
        columns = read_columns(file.frame, row_names=file.row_names)
    return file, replace(columns, id_column=file.id_column)


def read_new_table(table: TableFile, model: FittedModel, settings: Mapping[str, Any], notes: Notes) -> FileTable:
    """Read a table for a model that has been fitted, as the table of the fit was read.

    Row names are in the column that held them in the fit, unless another or none is asked for. What was categorical in the fit
    is so here, in the letters of the file: numbers are categories then, and a column of distinct texts is not taken for row
    names. Numbers that stand in a column of text are numbers, if they were in the fit.
    """
    from ..table.read_file import get_column, import_polars, read_file, read_header, replace_columns, to_numbers

    encoding = model.encoding
    known = encoding.categories_by_name
    header, id_column = read_header(table), settings["id_column"]
    if id_column is None and model.id_column in header and model.id_column not in settings["drop"]:
        id_column = model.id_column
    spoken_for = {*settings["drop"], id_column}
    declared = [name for name in header if name in known and name not in spoken_for]
    with notes.timed("reading"), notes.taken():
        file = read_file(table, **{**settings, "id_column": id_column, "categorical": declared})
    frame, polars = file.frame, import_polars()
    for name in declared:
        frame = replace_columns(frame, {name: _in_known_letters(get_column(frame, name), known[name])})
    for name in encoding.column_names:
        if (
            name not in known
            and name in frame.columns
            and frame[name].dtype in (polars.String, polars.Categorical, polars.Enum)
        ):
            column = to_numbers(polars, get_column(frame, name), name, file.row_names)
            frame = replace_columns(frame, {name: column})
    return type(file)(frame, file.row_names, file.id_column, file.categorical)


def _in_known_letters(column: Any, known: Sequence[Category]) -> Any:
    """Write numbers as the fit has written them, where it has the same ones: 1.0 may be 1 there."""
    from ..table.columns import category_finder

    texts = column.cast(str)
    find = category_finder(known)
    letters: dict[str, str] = {}
    for text in texts.drop_nulls().unique().to_list():
        if find(text) < 0:
            try:
                code = find(float(text))
            except ValueError:
                continue
            if code >= 0:
                letters[text] = str(known[code])
    return texts.replace(letters) if letters else column


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
    from ..persist.tree_files import ENDINGS

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
    from ..persist.tree_files import read_tree
    from ..table.read_file import read_bytes

    with notes.timed("reading"):
        if path == STANDARD_STREAM:
            tree, remarks = read_tree(sys.stdin.buffer.read(), kind, STANDARD_INPUT)
        else:
            tree, remarks = read_tree(read_bytes(path), kind, str(path))
    notes.add(remarks)
    return tree
