"""The command ``outliers``: which rows of a table are unusual, and why."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .._parameters import check_option
from ..table.labels import count
from .app import Notes, app, progress_bar, report_errors, suppress_output
from .io import (
    check_output,
    locate_table,
    read_file_arguments,
    read_model_record,
    read_new_table,
    read_table,
    write_rows,
)
from .options import (
    MODEL,
    OUTPUT,
    STANDARDIZE,
    CategoricalOption,
    CsvOption,
    DebugOption,
    DropOption,
    FormatOption,
    GapsOption,
    IdColumnOption,
    JsonOption,
    NaValueOption,
    NoIdOption,
    QuietOption,
    StandardizeOption,
    VerboseOption,
    check_no_fit_options,
    check_one_reader,
    check_one_writer,
    parse_path,
)
from .summaries import explain_kinds, print_table

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ..estimators.outliers import CoalescentOutlierDetector
    from ..table.read_file import TableFile

    FloatArray = NDArray[np.float64]

MAX_LISTED = 10  # outliers that are printed


@app.command(epilog="Example: coaltree outliers examples/animals.csv -o outliers.csv")
def outliers(
    table: Annotated[
        Path,
        typer.Argument(metavar="TABLE", help="A table as for fit; - is standard input.", parser=parse_path),
    ],
    output: CsvOption = None,
    model: Annotated[
        Path | None,
        typer.Option(
            metavar="MODEL",
            help="Compare with the rows of this model.coaltree. By default a model is fitted to the table.",
            rich_help_panel=MODEL,
            parser=parse_path,
        ),
    ] = None,
    contamination: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="Share of outliers in the fit, at most 0.5. By default, a limit that one typical row in 100 exceeds.",
            rich_help_panel=MODEL,
        ),
    ] = None,
    cells: Annotated[
        int,
        typer.Option(metavar="K", help="Number of cells to name for each outlier, at most.", rich_help_panel=OUTPUT),
    ] = 3,
    id_column: IdColumnOption = None,
    no_id: NoIdOption = False,
    categorical: CategoricalOption = None,
    drop: DropOption = None,
    na_value: NaValueOption = None,
    gaps: GapsOption = None,
    table_format: FormatOption = None,
    standardize: StandardizeOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
    debug: DebugOption = False,
) -> None:
    """Find unusual rows of a table, and name the cells that make them so.

    The csv has the name and the score of each row (0 for a typical row, the lower the more unusual), whether it is an outlier,
    and for outliers their most unusual cells with what the rest of the row leads to expect. Each row is compared with the others,
    without itself. Missing cells are allowed.
    """
    with report_errors(debug):
        check_option("--contamination", contamination)
        check_option("--cells", cells)
        if model is not None:
            check_no_fit_options({"--categorical": categorical, "--gaps": gaps, "--standardize": standardize})
        notes = Notes(quiet, verbose)
        settings = read_file_arguments(id_column, no_id, drop, categorical, na_value, gaps=gaps)
        check_one_reader({"TABLE": table, "--model": model})
        check_one_writer(as_json, {"--output -": output})
        check_output(output, {"the table": table, "the model": model})
        source = locate_table(table, table_format, notes)
        parameters: dict[str, Any] = {} if contamination is None else {"contamination": contamination}
        if model is None:
            if standardize is not None:
                parameters["standardize"] = STANDARDIZE[standardize]
            detector, names, matrix = _fit(source, parameters, settings, notes)
        else:
            detector, names, matrix = _load(model, source, parameters, settings, notes)
        with suppress_output(quiet), notes.time_step("scoring"), notes.capture_warnings():
            facts, columns = _score(detector, matrix, names, cells)
        write_rows(columns, facts, output, as_json, notes)
        for name, reason in _listed(columns):
            notes.say(f"{name}: {reason}")
        more = facts["n_outliers"] - MAX_LISTED
        notes.say(
            f"{count(facts['n_outliers'], 'outlier')} in {count(len(names), 'row')}"
            + (f", {more} more" if more > 0 else "")
        )


def _fit(
    source: TableFile, parameters: dict[str, Any], settings: Mapping[str, Any], notes: Notes
) -> tuple[CoalescentOutlierDetector, list[str], FloatArray]:
    """Return a detector that was fitted to the table, the names of its rows, and the rows."""
    from ..estimators.outliers import CoalescentOutlierDetector

    file, rows = read_table(source, settings, notes)
    print_table(rows, source.name, explain_kinds(file), notes)
    detector = CoalescentOutlierDetector(**parameters, n_jobs=-1)
    with notes.time_step("fitting"), notes.capture_warnings(), progress_bar(not notes.quiet) as report:
        detector._fit_table(rows, report)
    notes.add(detector.remarks_)
    return detector, list(detector.tree_.leaf_names), detector._model.matrix


def _load(
    path: Path, source: TableFile, parameters: dict[str, Any], settings: dict[str, Any], notes: Notes
) -> tuple[CoalescentOutlierDetector, list[str], FloatArray]:
    """Return a detector over the rows of a model, the names of the rows of the table, and the rows."""
    from ..estimators.load import to_detector

    with suppress_output(notes.quiet), notes.time_step("loading"), progress_bar(not notes.quiet) as report:
        detector = to_detector(*read_model_record(path), parameters, report)
    file = read_new_table(source, detector._model, settings, notes)
    with notes.capture_warnings():
        rows = detector._read_rows(file.frame)
    return detector, list(file.row_names or map(str, range(rows.table.n_rows))), rows.matrix


def _score(
    detector: CoalescentOutlierDetector, matrix: FloatArray, names: list[str], n_cells: int
) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    """Return facts for JSON, and the columns of the csv."""
    import numpy as np

    from ..report.explanations import explain_rows

    scores = detector._model.outlier_scores(matrix)
    found = np.flatnonzero(scores < detector.offset_)
    reasons = [""] * len(names)
    for k, row in zip(
        found.tolist(), explain_rows(detector._model, matrix[found], [""] * len(found), n_cells), strict=True
    ):
        reasons[k] = str(row)
    is_outlier = (scores < detector.offset_).tolist()
    columns = {"row": names, "score": scores.tolist(), "outlier": is_outlier, "why": reasons}
    return {"n_rows": len(names), "n_outliers": len(found), "offset": detector.offset_}, columns


def _listed(columns: Mapping[str, list[Any]]) -> list[tuple[str, str]]:
    """Return the names of the most unusual outliers and why they are."""
    lines = sorted(zip(columns["score"], columns["row"], columns["why"], columns["outlier"], strict=True))
    return [(name, why) for _, name, why, is_outlier in lines[:MAX_LISTED] if is_outlier]
