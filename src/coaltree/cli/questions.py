"""The commands ``score`` and ``place``: a model and new rows in, a csv out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..console import Notes, hushed, reported
from ..errors import InputError
from ..table.wording import count
from .application import app
from .options import (
    CsvOption,
    DebugOption,
    DropOption,
    IdColumnOption,
    ModelArgument,
    NaValueOption,
    NewTableArgument,
    NoIdOption,
    QuietOption,
    Unseen,
    UnseenOption,
    check_whole,
)
from .results import check_result, deliver
from .tables import read_new_table, reading_settings

if TYPE_CHECKING:
    from ..estimators.clustering import CoalescentClustering


@app.command()
def score(
    model: ModelArgument,
    table: NewTableArgument,
    output: CsvOption = None,
    unseen: UnseenOption = None,
    id_column: IdColumnOption = None,
    no_id: NoIdOption = False,
    drop: DropOption = None,
    na_value: NaValueOption = None,
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> None:
    """Write the log predictive density of new rows, in the units of the table.

    The csv has a row name and a log_density a row. Their mean goes to standard error. Missing cells are integrated out;
    columns that the fit did not have are ignored.
    """
    with reported(debug):
        settings = reading_settings(id_column, no_id, drop, None, na_value)
        check_result(output, {"the model": model, "the table": table})
        notes = Notes(quiet)
        with hushed(quiet):
            fitted, names, frame = _opened(model, table, settings, unseen, notes)
            with notes.taken():
                densities = fitted.score_samples(frame)
        from ..output.files import csv_text

        names = names or [str(i) for i in range(len(densities))]
        deliver({output: csv_text({"row": names, "log_density": densities.tolist()})})
        if not quiet:
            mean = f"{float(densities.mean()):.6g}"
            typer.echo(f"mean log density {mean} over {count(len(densities), 'row')}", err=True)


@app.command()
def place(
    model: ModelArgument,
    table: NewTableArgument,
    output: CsvOption = None,
    nearest: Annotated[int, typer.Option(metavar="K", help="How many of the nearest leaves to name.")] = 3,
    level: Annotated[float, typer.Option(metavar="P", help="Probability of the interval for the height.")] = 0.9,
    unseen: UnseenOption = None,
    id_column: IdColumnOption = None,
    no_id: NoIdOption = False,
    drop: DropOption = None,
    na_value: NaValueOption = None,
    quiet: QuietOption = False,
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
        settings = reading_settings(id_column, no_id, drop, None, na_value)
        check_result(output, {"the model": model, "the table": table})
        notes = Notes(quiet)
        with hushed(quiet):
            fitted, names, frame = _opened(model, table, settings, unseen, notes)
            with notes.taken():
                columns = fitted.place(frame, n_nearest=nearest, level=level).columns()
                shares = fitted.predict_proba(frame)
        from ..output.files import csv_text

        columns |= {"row": names} if names else {}
        columns |= {"cluster": shares.argmax(axis=1).tolist(), "cluster_probability": shares.max(axis=1).tolist()}
        deliver({output: csv_text(columns)})


def _opened(
    path: Path, table: Path, settings: dict[str, Any], unseen: Unseen | None, notes: Notes
) -> tuple[CoalescentClustering, list[str] | None, Any]:
    """Return the model, the names of the new rows if they have some, and the frame that holds them."""
    from ..estimators.clustering import CoalescentClustering
    from ..estimators.stored import load_model

    model = load_model(path)
    if not isinstance(model, CoalescentClustering):
        raise InputError(
            f"{path} holds a {type(model).__name__}, which fills cells and has neither densities nor clusters: take the "
            "model.coaltree that coaltree fit writes, or a CoalescentClustering's."
        )
    if unseen is not None:
        model.unseen_categories = unseen.value
    file = read_new_table(table, model.encoding_, settings, notes)
    return model, None if file.row_names is None else list(file.row_names), file.frame
