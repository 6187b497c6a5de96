"""The command ``impute``: a table with holes in, the same table without them out."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..console import Notes, hushed, progress_bar, reported
from ..errors import InputError
from .application import app
from .checks import (
    check_belonging,
    check_jobs,
    check_number,
    check_one_reader,
    check_one_writer,
    check_whole,
    given_only,
)
from .fills import by_name, cells_csv, closing_words, content, fill_facts, fills_of, n_missing
from .models import read_model_state
from .options import (
    MODEL,
    OUTPUT,
    SAMPLERS,
    STANDARD_STREAM,
    TABLE,
    CategoricalOption,
    ChainsOption,
    CovarianceOption,
    DebugOption,
    DrawParametersOption,
    FormatOption,
    IdColumnOption,
    Inference,
    JsonOption,
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
    named,
)
from .overview import introduce, parameter_listing, reasons_for_kinds
from .results import check_result, deliver, tell
from .tables import located, read_new_table, read_table, reading_settings

if TYPE_CHECKING:
    from ..estimators.imputer import CoalescentImputer
    from ..table.columns import Table
    from ..table.opening import TableFile
    from ..table.reading import FileTable

_KINDS = {".csv": "csv", ".txt": "csv", ".tsv": "tsv", ".tab": "tsv", ".parquet": "parquet", ".pq": "parquet"}


@app.command(epilog="Example: coaltree impute examples/animals.csv -o filled.csv")
def impute(
    table: Annotated[
        Path,
        typer.Argument(
            metavar="TABLE",
            help="A csv, tsv or parquet file, or a folder of parquet files, with missing cells; - is standard input.",
            parser=named,
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="OUT",
            help="The filled file, of the kind of TABLE; - is standard output.",
            rich_help_panel=OUTPUT,
            parser=named,
        ),
    ],
    model: Annotated[
        Path | None,
        typer.Option(
            metavar="MODEL",
            help="Fill from this model.coaltree. By default one is fitted to the table.",
            rich_help_panel=MODEL,
            parser=named,
        ),
    ] = None,
    draws: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Draw the cells N times instead: OUT becomes out.1.csv, out.2.csv, ...",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Seed of --draws and of --inference smc or mcmc, 0 by default.", rich_help_panel=MODEL
        ),
    ] = None,
    sd: Annotated[
        Path | None,
        typer.Option(
            "--sd",
            metavar="OUT2.csv",
            help="Also write a csv of the filled cells, with sd or probability.",
            rich_help_panel=OUTPUT,
            parser=named,
        ),
    ] = None,
    id_column: IdColumnOption = None,
    no_id: NoIdOption = False,
    categorical: CategoricalOption = None,
    drop: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Column to leave as it is and not to learn from; also NAME,NAME.",
            rich_help_panel=TABLE,
        ),
    ] = None,
    na_value: NaValueOption = None,
    table_format: FormatOption = None,
    inference: Annotated[
        Inference | None,
        typer.Option(
            metavar="HOW",
            help="greedy (default): one good tree, and 50 drawn from there on; smc or mcmc: the 50 begin at that of a sample.",
            rich_help_panel=MODEL,
        ),
    ] = None,
    search: SearchOption = None,
    refine: RefineOption = False,
    particles: ParticlesOption = None,
    runs: RunsOption = None,
    chains: ChainsOption = None,
    samples: SamplesOption = None,
    draw_parameters: DrawParametersOption = False,
    real_process: RealProcessOption = None,
    covariance: CovarianceOption = None,
    noise: NoiseOption = None,
    standardize: StandardizeOption = None,
    n_jobs: Annotated[
        int | None,
        typer.Option(metavar="N", help="Threads; -1, the default, takes all processors.", rich_help_panel=MODEL),
    ] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
    debug: DebugOption = False,
) -> None:
    """Fill the missing cells of a table.

    Real cells get their mean (with --standardize power their median), categorical ones their most probable category. All
    other cells keep their exact text; the column of row names and those of --drop stay as they are. A table without missing
    cells is copied.
    """
    with reported(debug):
        fitting = {
            "--inference": inference,
            "--search": search,
            "--particles": particles,
            "--runs": runs,
            "--chains": chains,
            "--samples": samples,
            "--refine": refine or None,
            "--draw-parameters": draw_parameters or None,
            "--real-process": real_process,
            "--covariance": covariance,
            "--noise": noise,
            "--standardize": None if standardize is None else standardize.parameter,
        }
        _check_options(fitting, draws, seed, n_jobs)
        notes = Notes(quiet, verbose)
        settings = reading_settings(id_column, no_id, drop, categorical, na_value)
        if model is not None:
            _check_fitted(fitting | {"--categorical": categorical})
        check_one_reader({"TABLE": table, "--model": model})
        check_one_writer(as_json, {"--output -": output, "--sd -": sd})
        source = located(table, table_format)
        targets = _targets(source, output, draws)
        if sd is not None and sd in targets:
            raise InputError(f"--sd and --output are both {sd}; they are two files.")
        for target in (*targets, sd):
            check_result(target, {"the table": table, "the model": model})
        if model is None:
            file, rows = read_table(source, settings, notes)
            if n_missing(rows):
                introduce(rows, source.name, reasons_for_kinds(file), notes)
            imputer = _fitted(rows, fitting, seed, n_jobs, notes)
        else:
            imputer, file, rows = _opened(model, source, n_jobs, settings, notes)
        if not n_missing(rows):
            notes.add([f"{source.name} has no missing cell in the columns that are used, and is copied as it is."])
        with hushed(quiet), notes.timed("filling"), notes.taken():
            found = fills_of(imputer, file, rows, draws, seed or 0)
            results: dict[Path | None, str | bytes] = {
                target: content(source, by_name(fills, file, rows), settings["na_values"], target)
                for target, fills in zip(targets, found or [{}] * len(targets), strict=True)
            }
            if sd is not None:
                results[sd] = cells_csv(imputer, file, rows)
        facts = fill_facts(rows, found, notes)
        deliver(results)
        if as_json:
            tell({"input": source.name, **facts, "files": list(map(str, results)), "remarks": notes.sentences})
        notes.say(closing_words(facts))


def _check_options(fitting: Mapping[str, Any], draws: int | None, seed: int | None, n_jobs: int | None) -> None:
    """Refuse options that do not go together, and numbers out of range."""
    inference = fitting["--inference"]
    for owner, names in (
        (Inference.smc, ("--particles", "--runs")),
        (Inference.mcmc, ("--chains", "--samples", "--draw-parameters")),
        (Inference.greedy, ("--search", "--refine")),
    ):
        check_belonging(inference, [owner], {name: fitting[name] for name in names})
    for option, value, least in (
        ("--particles", fitting["--particles"], 1),
        ("--runs", fitting["--runs"], 1),
        ("--chains", fitting["--chains"], 1),
        ("--samples", fitting["--samples"], 1),
        ("--draws", draws, 1),
        ("--seed", seed, 0),
    ):
        check_whole(option, value, least)
    check_number("--noise", fitting["--noise"])
    check_jobs(n_jobs)
    if seed is not None and draws is None and inference not in SAMPLERS:
        raise InputError(
            "--seed is an option of --draws and of --inference smc or mcmc; add one of them, or leave --seed out."
        )


def _check_fitted(options: Mapping[str, Any]) -> None:
    """Refuse options of a fit where there is none."""
    for option, value in options.items():
        if value is not None:
            raise InputError(f"{option} is for fitting a model, and --model has been fitted; leave one of the two out.")


def _targets(table: TableFile, output: Path, draws: int | None) -> list[Path]:
    """Return the files to write the filled tables to, which must be of the kind of the table."""
    if output == STANDARD_STREAM:
        if _KINDS[table.suffix] == "parquet":
            raise InputError(f"{table.name} is a parquet file, which is not written to standard output: name a file.")
        if draws is not None:
            raise InputError("--draws writes several files, and standard output is one: name a file with --output.")
        return [output]
    endings = output.suffixes[-2:] if output.suffix.lower() == ".gz" else output.suffixes[-1:]
    kinds = [_KINDS.get(ending.lower(), ending.lower()) for ending in endings]
    if kinds != [_KINDS[table.suffix]] + [".gz"] * table.compressed:
        raise InputError(
            f"{output.name} is to be a file of the kind of {table.name}: choose a name that ends with {table.ending}."
        )
    if draws is None:
        return [output]
    ending = "".join(endings)
    stem = output.name[: len(output.name) - len(ending)]
    return [output.with_name(f"{stem}.{k}{ending}") for k in range(1, draws + 1)]


def _fitted(
    rows: Table, fitting: Mapping[str, Any], seed: int | None, n_jobs: int | None, notes: Notes
) -> CoalescentImputer | None:
    """Fit an imputer to a table, unless there is nothing to fill."""
    from ..estimators.imputer import CoalescentImputer

    if not n_missing(rows):
        return None
    names = {"--particles": "n_particles", "--runs": "n_runs", "--chains": "n_chains", "--samples": "n_samples"}
    parameters = given_only(
        {names.get(option, option[2:].replace("-", "_")): value for option, value in fitting.items()}
    )
    random_state = 0 if seed is None and fitting["--inference"] in SAMPLERS else seed
    imputer = CoalescentImputer(**parameters, random_state=random_state, n_jobs=-1 if n_jobs is None else n_jobs)
    with notes.timed("fitting"), notes.taken(), progress_bar(not notes.quiet) as report:
        imputer._fit(rows, report)
    notes.add(imputer.remarks_)
    notes.detail(parameter_listing(imputer.parameters_))
    return imputer


def _opened(
    path: Path, table: TableFile, n_jobs: int | None, settings: dict[str, Any], notes: Notes
) -> tuple[CoalescentImputer, FileTable, Table]:
    """Return a fitted model, and the table that it is to fill."""
    from ..estimators.stored import imputer_of

    with hushed(notes.quiet), notes.timed("loading"):
        imputer = imputer_of(*read_model_state(path), n_jobs)
    imputer.add_indicator = False
    file = read_new_table(table, imputer, settings, notes)
    with notes.taken():
        return imputer, file, imputer._new_rows(file.frame).table
