"""The command ``impute``: fill the missing cells of a table file."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from .._parameters import Inference
from .._validation import check_memory
from ..errors import InputError
from ..table.labels import count, listing
from .app import Notes, app, progress_bar, report_errors, suppress_output
from .io import (
    check_output,
    locate_table,
    print_json,
    read_file_arguments,
    read_model_record,
    read_new_table,
    read_table,
    write_results,
)
from .options import (
    MODEL,
    OUTPUT,
    SAMPLERS,
    STANDARD_STREAM,
    STANDARDIZE,
    TABLE,
    CategoricalOption,
    ChainsOption,
    CovarianceOption,
    DebugOption,
    DrawParametersOption,
    FormatOption,
    GapsOption,
    HeatedOption,
    IdColumnOption,
    JsonOption,
    MaxSecondsOption,
    NaValueOption,
    NoIdOption,
    NoiseOption,
    ParticlesOption,
    QuietOption,
    RealProcessOption,
    RefineOption,
    RunsOption,
    SamplesOption,
    SearchOption,
    StandardizeOption,
    VerboseOption,
    check_fit_options,
    check_jobs,
    check_no_fit_options,
    check_one_reader,
    check_one_writer,
    check_options,
    fit_parameters,
    parse_path,
)
from .summaries import explain_kinds, parameter_listing, print_table

if TYPE_CHECKING:
    from ..estimators.imputer import CoalescentImputer
    from ..table.cells import Category
    from ..table.columns import Table
    from ..table.fill import NamedFills
    from ..table.read_file import FileTable, TableFile

FILE_BYTES = sys.getsizeof(Path()) + sys.getsizeof({})  # least memory of a file's name and what it is filled with
INTERVAL_LEVEL = 0.9  # of the intervals that --sd writes

Fills: TypeAlias = "dict[int, tuple[list[int], list[Category]]]"
"""Rows and their new values, by the position of the column in the model."""


def n_missing(rows: Table) -> int:
    """Return the number of missing and partly known cells of a table; unseen categories do not count."""
    from ..table.columns import incomplete_cells

    return sum(int(incomplete_cells(column).sum()) for column in rows.columns)


def find_fills(
    imputer: CoalescentImputer | None, file: FileTable, rows: Table, draws: int | None, seed: int
) -> list[Fills]:
    """Return the fills of the missing cells: once, or for each draw; none if no cell is missing."""
    if imputer is None or not n_missing(rows):
        return []
    frames = [imputer.transform(file.frame)] if draws is None else imputer.sample(file.frame, draws, seed)
    return [_fills(rows, imputer._read_rows(frame).table) for frame in frames]


def _fills(before: Table, after: Table) -> Fills:
    """Return for each column the rows that were filled, and their values."""
    import numpy as np

    from ..table.columns import RealColumn, incomplete_cells

    fills: Fills = {}
    for j, (old, new) in enumerate(zip(before.columns, after.columns, strict=True)):
        rows = np.flatnonzero(incomplete_cells(old) & ~incomplete_cells(new))
        if len(rows):
            fills[j] = (
                rows.tolist(),
                new.values[rows].tolist()
                if isinstance(new, RealColumn)
                else [new.categories[code] for code in new.codes[rows]],
            )
    return fills


def name_fills(fills: Fills, file: FileTable, rows: Table) -> NamedFills:
    """Return fills by the names of the columns in the file; the model of an array has no names."""
    return {file.frame.columns[rows.columns[j].index]: fill for j, fill in fills.items()}


def filled_bytes(table: TableFile, file: FileTable, fills: NamedFills, na_values: Sequence[str], target: Path) -> bytes:
    """Return the bytes of a filled file; without anything to fill, those of the table. Characters become a csv."""
    from ..table.fill import fill_file
    from ..table.read_file import decompress

    if table.is_characters:
        return characters_csv(file, fills).encode()
    data = fill_file(table, fills, na_values=na_values) if fills else table.read_raw()
    is_text = target == STANDARD_STREAM and table.compressed
    return decompress(data, table.name) if is_text else data


def characters_csv(file: FileTable, fills: NamedFills) -> str:
    """Return the characters of taxa as csv, with filled cells; a set of states that is not filled as A/G."""
    import numpy as np

    from ..persist.result_files import csv_text
    from ..table.inputs import TAXON_COLUMN

    columns: dict[str, list[Any]] = {TAXON_COLUMN: list(file.row_names or ())}
    for name in file.frame.columns:
        cells = file.frame.get_column(name).to_list()
        if name in fills:
            rows, values = fills[name]
            for row, value in zip(np.asarray(rows).tolist(), values, strict=True):
                cells[row] = value
        columns[name] = ["/".join(sorted(cell)) if isinstance(cell, frozenset) else cell for cell in cells]
    return csv_text(columns)


def cells_csv(imputer: CoalescentImputer | None, file: FileTable, rows: Table) -> str:
    """Return a csv of the filled cells with their uncertainty, row by row. Ends of intervals have the type of their column."""
    import numpy as np

    from ..persist.result_files import csv_text
    from ..predict.results import DateCells, RealCells
    from ..table.fill import FIRST_DAY, LAST_DAY, fill_cells
    from ..table.scaling import LARGEST

    cells: list[tuple[int, int, Any, float | None, Any, Any, float | None]] = []
    if imputer is not None and n_missing(rows):
        known, filled = imputer.predictive(file.frame), imputer.transform(file.frame)
        for j, (at, values) in _fills(rows, imputer._read_rows(filled).table).items():
            values_shown, predicted = filled.to_series(rows.columns[j].index)[at].to_list(), known[rows.columns[j].name]
            sds: list[float | None] = [None] * len(at)
            shares: list[float | None] = [None] * len(at)
            ends: list[list[Any]] = [[None] * len(at)] * 2
            predicted = predicted.days if isinstance(predicted, DateCells) else predicted
            if isinstance(predicted, RealCells):
                sds, index = predicted.sd[at].tolist(), rows.columns[j].index
                # Ends that the type of the column can hold, of dates those of Python.
                limits = (FIRST_DAY, LAST_DAY) if file.frame.dtypes[index].is_temporal() else (-LARGEST, LARGEST)
                bounds = np.clip([end[at] for end in predicted.interval(INTERVAL_LEVEL)], *limits)
                ends = [fill_cells(file.frame, {index: (at, end)}).to_series(index)[at].to_list() for end in bounds]
            else:
                code = {category: k for k, category in reversed([*enumerate(predicted.categories)])}
                shares = predicted.probability[at, [code[value] for value in values]].tolist()
            cells += zip(at, [j] * len(at), values_shown, sds, *ends, shares, strict=True)
    cells.sort(key=lambda cell: cell[:2])
    names = file.row_names or tuple(map(str, range(rows.n_rows)))
    return csv_text(
        {
            "row": [names[cell[0]] for cell in cells],
            "column": [file.frame.columns[rows.columns[cell[1]].index] for cell in cells],
            "value": [cell[2] for cell in cells],
            "sd": [cell[3] for cell in cells],
            "low": [cell[4] for cell in cells],
            "high": [cell[5] for cell in cells],
            "probability": [cell[6] for cell in cells],
        }
    )


def count_fills(rows: Table, filled: Sequence[Fills], notes: Notes) -> dict[str, Any]:
    """Return the numbers of filled cells, and note columns with cells that stay missing."""
    from ..table.columns import incomplete_cells

    fills = filled[0] if filled else {}
    n_unfilled = {
        column.name: int(incomplete_cells(column).sum()) - len(fills[j][1] if j in fills else ())
        for j, column in enumerate(rows.columns)
    }
    unknown = [name for name, n_left in n_unfilled.items() if n_left]
    if unknown:
        notes.add(
            [
                f"{count(sum(n_unfilled.values()), 'cell stays', 'cells stay')} missing, in columns without any observed cell in "
                f"the fit: {listing(unknown)}."
            ]
        )
    by_column = {rows.columns[j].name: len(values) for j, (_, values) in fills.items()}
    return {
        "n_rows": rows.n_rows,
        "n_filled": sum(by_column.values()),
        "filled_by_column": by_column,
        "n_left_missing": sum(n_unfilled.values()),
        "n_tables": len(filled),
    }


def describe_fills(facts: Mapping[str, Any]) -> str:
    """Return the closing line: how many cells were filled."""
    times = f", {count(facts['n_tables'], 'draw')}" if facts["n_tables"] > 1 else ""
    return f"filled {count(facts['n_filled'], 'cell')} in {count(len(facts['filled_by_column']), 'column')}{times}"


_KINDS = {".csv": "csv", ".txt": "csv", ".tsv": "tsv", ".tab": "tsv", ".parquet": "parquet", ".pq": "parquet"}


@app.command(epilog="Example: coaltree impute examples/animals.csv -o filled.csv")
def impute(
    table: Annotated[
        Path,
        typer.Argument(
            metavar="TABLE",
            help="A table as for fit, with missing cells; characters of taxa are written as csv; - is standard input.",
            parser=parse_path,
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="OUT",
            help="The filled file, in the format of TABLE; - is standard output.",
            rich_help_panel=OUTPUT,
            parser=parse_path,
        ),
    ],
    model: Annotated[
        Path | None,
        typer.Option(
            metavar="MODEL",
            help="Fill from this model.coaltree. By default a model is fitted to the table.",
            rich_help_panel=MODEL,
            parser=parse_path,
        ),
    ] = None,
    draws: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Fill the cells N times at random (multiple imputation): OUT becomes out.1.csv, out.2.csv, ...",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Random seed of --draws and of --inference smc or mcmc, 0 by default.",
            rich_help_panel=MODEL,
        ),
    ] = None,
    sd: Annotated[
        Path | None,
        typer.Option(
            "--sd",
            metavar="OUT2.csv",
            help="Also write a csv of the filled cells with their sd and 90 % interval, or their probability.",
            rich_help_panel=OUTPUT,
            parser=parse_path,
        ),
    ] = None,
    id_column: IdColumnOption = None,
    no_id: NoIdOption = False,
    categorical: CategoricalOption = None,
    drop: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Column to leave unchanged and not to use; also NAME,NAME.",
            rich_help_panel=TABLE,
        ),
    ] = None,
    na_value: NaValueOption = None,
    gaps: GapsOption = None,
    table_format: FormatOption = None,
    inference: Annotated[
        Inference | None,
        typer.Option(
            metavar="HOW",
            help="Tree that the 50 draws start from: the greedy tree (greedy, default) or the summary of a sample (smc, mcmc).",
            rich_help_panel=MODEL,
        ),
    ] = None,
    search: SearchOption = None,
    refine: RefineOption = False,
    particles: ParticlesOption = None,
    runs: RunsOption = None,
    chains: ChainsOption = None,
    heated: HeatedOption = None,
    samples: SamplesOption = None,
    max_seconds: MaxSecondsOption = None,
    draw_parameters: DrawParametersOption = False,
    real_process: RealProcessOption = None,
    covariance: CovarianceOption = None,
    noise: NoiseOption = None,
    standardize: StandardizeOption = None,
    n_jobs: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Number of threads; -1, the default, uses all processors.", rich_help_panel=MODEL
        ),
    ] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
    debug: DebugOption = False,
) -> None:
    """Fill the missing cells of a table.

    Real cells are filled with their mean (with --standardize power, their median), categorical cells with their most probable
    category. All other cells keep their exact text. The column of row names and the columns of --drop stay unchanged. A table
    without missing cells is copied.
    """
    with report_errors(debug):
        fitting = {
            "--inference": inference,
            "--search": search,
            "--particles": particles,
            "--runs": runs,
            "--chains": chains,
            "--heated": heated,
            "--samples": samples,
            "--max-seconds": max_seconds,
            "--refine": refine or None,
            "--draw-parameters": draw_parameters or None,
            "--real-process": real_process,
            "--covariance": covariance,
            "--noise": noise,
            "--standardize": None if standardize is None else STANDARDIZE[standardize],
        }
        if model is not None:
            check_no_fit_options(fitting | {"--categorical": categorical, "--gaps": gaps})
        _check_options(fitting, draws, seed, n_jobs)
        notes = Notes(quiet, verbose)
        settings = read_file_arguments(id_column, no_id, drop, categorical, na_value, gaps=gaps)
        check_one_reader({"TABLE": table, "--model": model})
        check_one_writer(as_json, {"--output -": output, "--sd -": sd})
        source = locate_table(table, table_format, notes)
        _check_files(source, draws)
        targets = _target_paths(source, output, draws)
        if sd is not None and sd in targets:
            raise InputError(f"--sd and --output are both {sd}; they are two files.")
        for target in (*targets, sd):
            check_output(target, {"the table": table, "the model": model})
        if model is None:
            file, rows = read_table(source, settings, notes)
            if n_missing(rows):
                print_table(rows, source.name, explain_kinds(file), notes)
            imputer = _fit_imputer(rows, fitting, seed, n_jobs, notes)
        else:
            imputer, file, rows = _load_imputer(model, source, n_jobs, settings, notes)
        if not n_missing(rows):
            done = "written as csv" if source.is_characters else "copied as it is"
            notes.add([f"{source.name} has no missing cell in the columns that are used, and is {done}."])
        with suppress_output(quiet), notes.time_step("filling"), notes.capture_warnings():
            fills_by_draw = find_fills(imputer, file, rows, draws, seed or 0)
            results: dict[Path | None, str | bytes] = {
                target: filled_bytes(source, file, name_fills(fills, file, rows), settings["na_values"], target)
                for target, fills in zip(targets, fills_by_draw or [{}] * len(targets), strict=True)
            }
            if sd is not None:
                results[sd] = cells_csv(imputer, file, rows)
        facts = count_fills(rows, fills_by_draw, notes)
        write_results(results)
        if as_json:
            print_json({"input": source.name, **facts, "files": list(map(str, results)), "remarks": notes.sentences})
        notes.say(describe_fills(facts))


def _check_options(fitting: Mapping[str, Any], draws: int | None, seed: int | None, n_jobs: int | None) -> None:
    """Refuse options that exclude each other, and numbers out of range."""
    inference = fitting["--inference"]
    check_fit_options(inference, fitting)
    check_options({"--draws": draws, "--seed": seed})
    check_jobs(n_jobs)
    if seed is not None and draws is None and inference not in SAMPLERS:
        raise InputError(
            "--seed is an option of --draws and of --inference smc or mcmc; add one of them, or leave --seed out."
        )


def _check_files(table: TableFile, draws: int | None) -> None:
    """Refuse more files than the memory can hold before they are written, each with its name and a frame of its own."""
    if draws is not None:
        check_memory(
            float(draws) * (table.n_bytes + FILE_BYTES), f"{draws:,} files like {table.name}", "take fewer --draws"
        )


def _target_paths(table: TableFile, output: Path, draws: int | None) -> list[Path]:
    """Return the files to write the filled tables to: in the format of the table, of characters as csv."""
    kind = "csv" if table.is_characters else _KINDS[table.suffix]
    if output == STANDARD_STREAM:
        if kind == "parquet":
            raise InputError(
                f"{table.name} is a parquet file, which cannot be written to standard output: name a file."
            )
        if draws is not None:
            raise InputError(
                "--draws writes several files, which cannot go to standard output: name a file with --output."
            )
        return [output]
    endings = output.suffixes[-2:] if output.suffix.lower() == ".gz" else output.suffixes[-1:]
    kinds = [_KINDS.get(ending.lower(), ending.lower()) for ending in endings]
    if table.is_characters and kinds != ["csv"]:
        raise InputError(
            f"{output.name}: the filled characters of {table.name} are written as csv; choose a name that ends with .csv."
        )
    if not table.is_characters and kinds != [kind] + [".gz"] * table.compressed:
        raise InputError(
            f"{output.name} must have the format of {table.name}: choose a name that ends with {table.ending}."
        )
    if draws is None:
        return [output]
    ending = "".join(endings)
    stem = output.name[: len(output.name) - len(ending)]
    return [output.with_name(f"{stem}.{k}{ending}") for k in range(1, draws + 1)]


def _fit_imputer(
    rows: Table, fitting: Mapping[str, Any], seed: int | None, n_jobs: int | None, notes: Notes
) -> CoalescentImputer | None:
    """Fit an imputer to a table; None if no cell is missing."""
    from ..estimators.imputer import CoalescentImputer

    if not n_missing(rows):
        return None
    random_state = 0 if seed is None and fitting["--inference"] in SAMPLERS else seed
    imputer = CoalescentImputer(
        **fit_parameters(fitting), random_state=random_state, n_jobs=-1 if n_jobs is None else n_jobs
    )
    with notes.time_step("fitting"), notes.capture_warnings(), progress_bar(not notes.quiet) as report:
        imputer._fit_table(rows, report)
    notes.add(imputer.remarks_)
    notes.detail(parameter_listing(imputer.parameters_))
    return imputer


def _load_imputer(
    path: Path, table: TableFile, n_jobs: int | None, settings: dict[str, Any], notes: Notes
) -> tuple[CoalescentImputer, FileTable, Table]:
    """Return a fitted imputer from a file, and the table to fill."""
    from ..estimators.load import to_imputer

    with suppress_output(notes.quiet), notes.time_step("loading"):
        imputer = to_imputer(*read_model_record(path), n_jobs)
    imputer.add_indicator = False
    file = read_new_table(table, imputer._model, settings, notes)
    with notes.capture_warnings():
        return imputer, file, imputer._read_rows(file.frame).table
