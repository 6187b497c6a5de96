"""Input and output of commands: tables, models and trees from files or standard input, results into files or standard output."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from .._cut import CUT_RULES, Cut, explicit_rule
from .._parameters import Gaps, TableFormat, TreeFormat
from ..errors import InputError
from ..table.labels import count
from .app import Notes, progress_bar
from .options import (
    STANDARD_STREAM,
    TREE,
    check_cut_rows,
    parse_id_column,
    parse_path,
    spell_option,
    split_column_names,
)
from .terminal import refuse_binary, write_output

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ..persist.model import ModelRecord
    from ..table.cells import Category
    from ..table.columns import Table
    from ..table.encoding import Encoding
    from ..table.read_file import FileTable, TableFile
    from ..tree.tree import Tree
    from ..workflow.model import FittedModel


def check_output(result: Path | None, sources: Mapping[str, Path | None]) -> None:
    """Refuse an output file that cannot be written or that is an input, before any work is done.

    Parameters
    ----------
    result : Path or None
        The file to write; None or ``-`` is standard output.
    sources : mapping of str to (Path or None)
        The input files, by what they hold.
    """
    if result is None or result == STANDARD_STREAM:
        return
    from .._atomic import check_writable

    for name, source in sources.items():
        if source is not None and source.exists() and result.exists() and source.samefile(result):
            raise InputError(f"{result} is {name} itself, which is never overwritten: choose another name.")
    check_writable(result)


def write_results(results: Mapping[Path | None, str | bytes]) -> None:
    """Write all files or none of them, then print the rest to standard output."""
    from .._atomic import write_files_atomic

    files = {path: data for path, data in results.items() if path is not None and path != STANDARD_STREAM}
    printed = [data for path, data in results.items() if path is None or path == STANDARD_STREAM]
    for data in printed:
        refuse_binary(data)
    write_files_atomic(files)
    for data in printed:
        # As bytes: a file in UTF-8, whatever the encoding of the terminal.
        write_output(data.encode(errors="replace") if isinstance(data, str) else data)


def print_json(facts: Mapping[str, Any]) -> None:
    """Print facts as one JSON object."""
    from ..persist.result_files import json_text, to_plain_values

    write_results({None: json_text(to_plain_values(facts))})


def to_records(columns: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Return the rows of a table given as columns."""
    return [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]


def write_rows(
    columns: Mapping[str, Sequence[Any]], facts: Mapping[str, Any], output: Path | None, as_json: bool, notes: Notes
) -> None:
    """Write the csv, or the facts with its rows as JSON, or both."""
    from ..persist.result_files import csv_text

    columns = {
        name: [str(cell) if isinstance(cell, date) else cell for cell in cells] for name, cells in columns.items()
    }
    if output is not None or not as_json:
        write_results({output: csv_text(columns)})
    if as_json:
        rows = to_records(columns)
        written = None if output is None else str(output)
        print_json({"n_rows": len(rows), **facts, "rows": rows, "output": written, "remarks": notes.sentences})


def draw_trees(model: FittedModel, notes: Notes) -> None:
    """Draw the trees for predictions with a progress bar, unless the model has them."""
    with notes.time_step("drawing trees"), notes.capture_warnings(), progress_bar(not notes.quiet) as report:
        model.draw_trees(report)


def read_model_record(path: Path) -> tuple[ModelRecord, str]:
    """Return the record in a model file, and the name of the file for messages."""
    from ..persist.model import ModelRecord, read_model_record

    if path == STANDARD_STREAM:
        return ModelRecord.from_bytes(sys.stdin.buffer.read(), STANDARD_INPUT), STANDARD_INPUT
    return read_model_record(path), str(path)


_PURPOSES = {"CoalescentImputer": "fills cells", "CoalescentOutlierDetector": "is for coaltree outliers --model"}


def load_clustering(path: Path) -> FittedModel:
    """Read a fitted model with flat clusters."""
    from ..persist.model import restore_model

    record, source = read_model_record(path)
    model = restore_model(record, source)
    if model.labels is None:
        raise InputError(
            f"{source} holds a {record.estimator}, which {_PURPOSES[record.estimator]} and has neither densities nor "
            "clusters: use a model.coaltree of coaltree fit, or of a CoalescentClustering."
        )
    return model


STANDARD_INPUT = "standard input"


def read_file_arguments(
    id_column: str | None,
    no_id: bool,
    drop: Sequence[str] | None,
    categorical: Sequence[str] | None,
    na_value: Sequence[str] | None,
    real: Sequence[str] | None = None,
    gaps: Gaps | None = None,
) -> dict[str, Any]:
    """Return the reading options as arguments of `read_file`."""
    id_column = parse_id_column(id_column, no_id)
    dropped_columns, categorical_columns = (
        split_column_names(drop, "--drop"),
        split_column_names(categorical, "--categorical"),
    )
    numbers = split_column_names(real, "--real")
    from ..table.read_file import DEFAULT_NA

    return {
        "id_column": id_column,
        "drop": dropped_columns,
        "categorical": categorical_columns,
        "real": numbers,
        "na_values": [*DEFAULT_NA, *(na_value or [])],
        "gaps": gaps,
    }


def locate_table(path: Path, kind: TableFormat | None, notes: Notes) -> TableFile:
    """Return the file of a table, or the table on standard input."""
    notes.announce(f"reading {STANDARD_INPUT if path == STANDARD_STREAM else path}")
    from ..table.read_file import open_bytes, open_table

    if path == STANDARD_STREAM:
        return open_bytes(sys.stdin.buffer.read(), STANDARD_INPUT, kind)
    return open_table(path, kind)


def read_table(table: TableFile, settings: Mapping[str, Any], notes: Notes) -> tuple[FileTable, Table]:
    """Read a table to fit a model to."""
    from ..table.columns import read_columns
    from ..table.notation import strays_error
    from ..table.read_file import text_cells
    from ..table.shape_hints import describe_transposed_table

    with notes.time_step("reading"), notes.capture_warnings():
        file = read_any_file(table, settings)
        hints = [] if table.is_characters else describe_transposed_table(file.id_column, text_cells(file.frame))
        try:
            if file.strays:
                raise strays_error(file.strays, file.row_names, options=True)
            columns = read_columns(
                file.frame,
                row_names=file.row_names,
                datatypes=file.datatypes,
                notations=file.notations,
                real=file.real,
            )
        except InputError as error:
            raise InputError(" ".join([str(error), *hints])) from None
    notes.add(hints)
    return file, replace(columns, id_column=file.id_column)


def read_any_file(table: TableFile, settings: Mapping[str, Any]) -> FileTable:
    """Read a table or characters of taxa."""
    from ..table.read_file import read_file

    if not table.is_characters:
        if settings["gaps"] is not None:
            raise InputError(f"--gaps is for character files, and {table.name} is a table: leave it out.")
        return read_file(table, **{name: value for name, value in settings.items() if name != "gaps"})
    from ..table.characters import read_character_table

    return read_character_table(table, **settings)


def read_new_table(table: TableFile, model: FittedModel, settings: Mapping[str, Any], notes: Notes) -> FileTable:
    """Read a table for a fitted model, in the same way as the table of the fit.

    Row names come from the same column as in the fit, unless an option says otherwise. Categorical columns of the fit are
    read as text: numbers are categories then, and a column of distinct texts does not become row names. Real columns of the
    fit are read from text as in the fit, by `read_new_rows`.
    """
    from ..table.read_file import get_column, match_columns, read_header, replace_columns
    from ..table.symbols import GAP_STATE

    encoding = model.encoding
    categories_by_name = encoding.categories_by_name
    if table.is_characters:
        # Gaps are read as in the fit.
        are_states = any(GAP_STATE in categories for categories in categories_by_name.values())
        with notes.time_step("reading"), notes.capture_warnings():
            file = read_any_file(table, {**settings, "gaps": "state" if are_states else "missing"})
        encoding.check_datatypes(file.datatypes)
        return file
    header, id_column = read_header(table), settings["id_column"]
    dropped_columns = match_columns(header, settings["drop"], "--drop", table.name)
    if id_column is None and model.id_column in header and model.id_column not in dropped_columns:
        id_column = model.id_column
    user_assigned = {*dropped_columns, id_column}
    categorical_columns = [name for name in header if name in categories_by_name and name not in user_assigned]
    with notes.time_step("reading"), notes.capture_warnings():
        settings = {**settings, "id_column": id_column, "categorical": categorical_columns}
        file = read_any_file(table, {**settings, "as_text": encoding.notations})
    frame = file.frame
    for name in categorical_columns:
        frame = replace_columns(frame, {name: _match_categories(get_column(frame, name), categories_by_name[name])})
    frame = replace_columns(frame, _read_real_text(file, encoding))
    return type(file)(frame, file.row_names, file.id_column, file.categorical)


def _read_real_text(file: FileTable, encoding: Encoding) -> dict[str, Any]:
    """Return the real columns of the fit that are text in a file, read as in the fit."""
    from ..table.cells import TextCells
    from ..table.columns import read_as_fit
    from ..table.notation import PLAIN, strays_error
    from ..table.read_file import get_column, import_polars

    polars, columns, strays = import_polars(), {}, []
    for name, kind in zip(encoding.column_names, encoding.kinds, strict=True):
        if kind == "real" and name in file.frame.columns and file.frame[name].dtype == polars.String:
            texts = get_column(file.frame, name).to_list()
            cells, found = read_as_fit(TextCells(texts, True), name, encoding.formats.get(name, PLAIN))
            numbers = polars.Series(cells.values).fill_nan(None)
            if name in encoding.times:
                numbers = (numbers * 86_400_000_000).round().cast(polars.Int64).cast(polars.Datetime("us"))
            columns[name] = numbers
            strays += [] if found is None else [found]
    if strays:
        raise strays_error(strays, file.row_names, options=True, fitted=True)
    return columns


def _match_categories(column: Any, categories: Sequence[Category]) -> Any:
    """Return categories that are numbers in the notation of the fit: 1.0 may be 1 there."""
    from ..table.columns import category_finder

    texts = column.cast(str)
    find = category_finder(categories)
    letters: dict[str, str] = {}
    for text in texts.drop_nulls().unique().to_list():
        if find(text) < 0:
            try:
                code = find(float(text))
            except ValueError:
                continue
            if code >= 0:
                letters[text] = str(categories[code])
    return texts.replace(letters) if letters else column


READABLE_KINDS: tuple[str, ...] = get_args(TreeFormat)
WRITABLE_KINDS = tuple(kind for kind in READABLE_KINDS if kind != "model")
"""All kinds but the model, which contains more than a tree."""


TreeArgument = Annotated[
    Path,
    typer.Argument(
        metavar="TREE",
        help="A tree: Newick (.nwk), NEXUS (.nex), linkage (.csv, .npy), JSON (.json) or a model.coaltree; - is standard "
        "input.",
        parser=parse_path,
    ),
]
FromOption = Annotated[
    TreeFormat | None,
    typer.Option(
        "--from",
        metavar="KIND",
        help="newick, nexus, linkage, npy, json or model. By default from the file extension.",
        rich_help_panel=TREE,
    ),
]


def find_tree_kind(path: Path, kind_option: TreeFormat | None, option: str, allowed: Sequence[str]) -> str:
    """Return the format of a tree file: as an option says, or by the file extension."""
    from ..persist.tree_files import ENDINGS

    if kind_option is None and path == STANDARD_STREAM:
        kinds = ", ".join(allowed)
        raise InputError(f"The format of - is unknown: give {option}, one of {kinds}.")
    ending = path.suffix.lower()
    kind = (
        next((kind for kind, endings in ENDINGS.items() if ending in endings), "")
        if kind_option is None
        else kind_option
    )
    if kind in allowed:
        return kind
    known = ", ".join(ending for name in allowed for ending in ENDINGS[name])
    source = path.name if kind_option is None else f"{option} {kind}"
    raise InputError(
        f"{source}: unsupported format of a tree to {'read' if option == '--from' else 'write'}; supported are {known}. For "
        f"another name, give {option}."
    )


def cut_leaves(tree: Tree, cut: Cut) -> NDArray[np.intp]:
    """Return flat clusters of the leaves of a tree alone."""
    from ..tree.cut import cut_tree

    if explicit_rule(cut, for_trees=True) is None:
        options = " or ".join(spell_option(name) for name, rule in CUT_RULES.items() if rule.for_trees)
        raise InputError(f"A tree alone does not say where to cut it: give {options}, or use a model.coaltree.")
    check_cut_rows(cut, tree.n_leaves, f"the tree has {count(tree.n_leaves, 'leaf', 'leaves')}")
    return cut_tree(tree, cut, ())


def read_tree_file(path: Path, kind: str, notes: Notes) -> Tree:
    """Read the tree of a file, or of standard input."""
    from ..persist.tree_files import read_tree
    from ..table.read_file import read_bytes

    with notes.time_step("reading"):
        if path == STANDARD_STREAM:
            tree, remarks = read_tree(sys.stdin.buffer.read(), kind, STANDARD_INPUT)
        else:
            tree, remarks = read_tree(read_bytes(path), kind, str(path))
    notes.add(remarks)
    return tree
