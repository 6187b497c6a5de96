"""The commands ``score`` and ``place``: a model and new rows in, a csv out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..console import Notes, hushed, reported
from ..errors import InputError
from ..table.wording import count
from .application import app
from .checks import check_one_reader, check_one_writer, check_whole
from .models import draw_trees, load_clustering
from .new_rows import remarks_on_rows
from .options import (
    OUTPUT,
    CsvOption,
    DebugOption,
    DropOption,
    FormatOption,
    IdColumnOption,
    JsonOption,
    ModelArgument,
    NaValueOption,
    NewTableArgument,
    NoIdOption,
    QuietOption,
    TableKind,
    Unseen,
    UnseenOption,
    VerboseOption,
)
from .results import check_result, deliver, records, tell
from .tables import located, read_new_table, reading_settings

if TYPE_CHECKING:
    from ..estimators.clustering import CoalescentClustering


@app.command(epilog="Example: coaltree score results/model.coaltree examples/new_animals.csv")
def score(
    model: ModelArgument,
    table: NewTableArgument,
    output: CsvOption = None,
    unseen: UnseenOption = None,
    id_column: IdColumnOption = None,
    no_id: NoIdOption = False,
    drop: DropOption = None,
    na_value: NaValueOption = None,
    table_format: FormatOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
    debug: DebugOption = False,
) -> None:
    """Write the log predictive density of new rows, in the units of the table.

    The csv has a row name and a log_density a row. Their mean goes to standard error. Missing cells are integrated out;
    columns that the fit did not have are ignored.
    """
    with reported(debug):
        notes = Notes(quiet, verbose)
        settings = reading_settings(id_column, no_id, drop, None, na_value)
        _check_files(model, table, output, as_json)
        with hushed(quiet):
            fitted, names, frame = _opened(model, table, table_format, settings, unseen, notes)
            draw_trees(fitted, notes)
            with notes.timed("scoring"), notes.taken():
                densities = fitted.score_samples(frame)
                names = names or [str(i) for i in range(len(densities))]
                notes.add(remarks_on_rows(fitted, frame, names, densities, "log density is 0"))
        mean = float(densities.mean())
        columns = {"row": names, "log_density": densities.tolist()}
        _answer(columns, {"mean_log_density": mean}, output, as_json, notes)
        notes.say(f"mean log density {mean:.6g} over {count(len(densities), 'row')}")


@app.command(epilog="Example: coaltree place results/model.coaltree examples/new_animals.csv -o places.csv")
def place(
    model: ModelArgument,
    table: NewTableArgument,
    output: CsvOption = None,
    nearest: Annotated[
        int, typer.Option(metavar="K", help="How many of the nearest leaves to name.", rich_help_panel=OUTPUT)
    ] = 3,
    level: Annotated[
        float, typer.Option(metavar="P", help="Probability of the interval for the height.", rich_help_panel=OUTPUT)
    ] = 0.9,
    unseen: UnseenOption = None,
    id_column: IdColumnOption = None,
    no_id: NoIdOption = False,
    drop: DropOption = None,
    na_value: NaValueOption = None,
    table_format: FormatOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
    debug: DebugOption = False,
) -> None:
    """Write where new rows attach to the tree, and the cluster that they belong to.

    The csv has for each row the most probable branch (the node below it, and how many leaves that has), its probability,
    the height with an interval, the log density, the nearest leaves, the cluster and its probability.
    """
    with reported(debug):
        check_whole("--nearest", nearest, 0)
        if not 0 < level < 1:
            raise InputError(f"--level is {level:g}; it must be a number between 0 and 1.")
        notes = Notes(quiet, verbose)
        settings = reading_settings(id_column, no_id, drop, None, na_value)
        _check_files(model, table, output, as_json)
        with hushed(quiet):
            fitted, names, frame = _opened(model, table, table_format, settings, unseen, notes)
            draw_trees(fitted, notes)
            with notes.timed("placing"), notes.taken():
                placements = fitted.place(frame, n_nearest=nearest, level=level)
                names = names or list(placements.row_names)
                notes.add(remarks_on_rows(fitted, frame, names, placements.log_density, "place is that of the prior"))
        columns = placements.columns() | {"row": names}
        _answer(columns, {"level": level}, output, as_json, notes)
        notes.say(f"placed {count(len(placements), 'row')}")


def _check_files(model: Path, table: Path, output: Path | None, as_json: bool) -> None:
    check_one_reader({"MODEL": model, "TABLE": table})
    check_one_writer(as_json, {"--output -": output})
    check_result(output, {"the model": model, "the table": table})


def _opened(
    path: Path,
    table: Path,
    kind: TableKind | None,
    settings: dict[str, Any],
    unseen: Unseen | None,
    notes: Notes,
) -> tuple[CoalescentClustering, list[str] | None, Any]:
    """Return the model, the names of the new rows if they have some, and the frame that holds them."""
    with notes.timed("loading"):
        model = load_clustering(path)
    if unseen is not None:
        model.unseen_categories = unseen.value
    file = read_new_table(located(table, kind), model, settings, notes)
    return model, None if file.row_names is None else list(file.row_names), file.frame


def _answer(
    columns: Mapping[str, Sequence[Any]], facts: Mapping[str, Any], output: Path | None, as_json: bool, notes: Notes
) -> None:
    """Write the csv, or the facts with the rows of the csv in them, or both."""
    from ..output.files import csv_text

    if output is not None or not as_json:
        deliver({output: csv_text(columns)})
    if as_json:
        rows = records(columns)
        written = None if output is None else str(output)
        tell({"n_rows": len(rows), **facts, "rows": rows, "output": written, "remarks": notes.sentences})
