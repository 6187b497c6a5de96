"""Options that several commands have, and what they refuse before any work is done."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import InputError

STANDARD_OUTPUT = Path("-")


class Inference(StrEnum):
    """One tree, or a sample of trees."""

    greedy = "greedy"
    smc = "smc"


class RealProcess(StrEnum):
    """How real columns diffuse."""

    ornstein_uhlenbeck = "ornstein-uhlenbeck"
    brownian = "brownian"


class Unseen(StrEnum):
    """What becomes of categories that did not occur in the fit."""

    missing = "missing"
    error = "error"


QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]
DebugOption = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]

IdColumnOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="Column with the row names. By default the first, if it is text that differs in every row."
    ),
]
NoIdOption = Annotated[bool, typer.Option("--no-id", help="Take no column as row names.")]
CategoricalOption = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="Column of categories that look like numbers; also NAME,NAME."),
]
DropOption = Annotated[list[str] | None, typer.Option(metavar="NAME", help="Column to leave out; also NAME,NAME.")]
NaValueOption = Annotated[
    list[str] | None,
    typer.Option(metavar="TEXT", help="Also take this text as a missing cell, besides NA, ?, null, ..."),
]

ParticlesOption = Annotated[int | None, typer.Option(metavar="N", help="smc: particles in each run, 50 by default.")]
RunsOption = Annotated[int | None, typer.Option(metavar="N", help="smc: independent runs, 1 by default.")]
CalibrateOption = Annotated[
    int | None,
    typer.Option(metavar="N", help="Rounds, at most, of fitting the model's parameters, 10 by default; 0 for none."),
]
RealProcessOption = Annotated[
    RealProcess | None,
    typer.Option(
        metavar="HOW", help="Real columns: ornstein-uhlenbeck (default), which stay near a mean, or brownian."
    ),
]
NoiseOption = Annotated[
    float | None,
    typer.Option(
        metavar="X", help="Variance of noise on real cells, as a share of the column's. By default it is fitted."
    ),
]

ModelArgument = Annotated[
    Path, typer.Argument(metavar="MODEL", help="A model.coaltree, as coaltree fit and model.save write it.")
]
NewTableArgument = Annotated[
    Path, typer.Argument(metavar="TABLE", help="A csv, tsv or parquet file with the columns of the fit, by name.")
]
CsvOption = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="OUT.csv", help="File to write; by default, and for -, standard output."),
]
UnseenOption = Annotated[
    Unseen | None,
    typer.Option(
        metavar="HOW", help="Categories that the fit did not know: missing or error; by default as the fit said."
    ),
]


def column_names(given: Sequence[str] | None, option: str) -> list[str]:
    """Split what was given at commas; a name that has one stands in double quotes."""
    names = [name.strip() for line in csv.reader(given or [], skipinitialspace=True) for name in line]
    if "" in names:
        raise InputError(f"{option} was given an empty column name; name columns as in the table's header.")
    return list(dict.fromkeys(names))


def id_setting(id_column: str | None, no_id: bool) -> str | None:
    """Return the column of row names as `read_file` takes it."""
    if no_id and id_column is not None:
        raise InputError("--no-id and --id-column were both given; give one of them, or neither.")
    return "" if no_id else id_column


def given_only(options: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out what was not given, so that the estimators' own defaults hold."""
    return {
        name: value.value if isinstance(value, StrEnum) else value
        for name, value in options.items()
        if value is not None
    }


def check_whole(option: str, value: int | None, least: int) -> None:
    """Refuse a number that is too small."""
    if value is not None and value < least:
        raise InputError(f"{option} is {value}; it must be a whole number of at least {least}.")


def check_number(option: str, value: float | None) -> None:
    """Refuse a number that is negative or not finite."""
    if value is not None and not (math.isfinite(value) and value >= 0):
        raise InputError(f"{option} is {value:g}; it must be a number of at least 0.")


def check_jobs(n_jobs: int | None) -> None:
    """Refuse no threads."""
    if n_jobs == 0:
        raise InputError("--n-jobs is 0; it must be a number of threads, or -1 for all processors.")


def check_sampling(inference: Inference | None, options: Mapping[str, Any]) -> None:
    """Refuse options of sequential Monte Carlo where it was not asked for."""
    for option, value in options.items():
        if value is not None and inference is not Inference.smc:
            raise InputError(f"{option} is an option of --inference smc; add that, or leave {option} out.")
