"""Options that several commands share, and checks of their values."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from .._parameters import check_option
from ..errors import InputError

STANDARD_STREAM = Path("-")
"""Standard input where a file is read, standard output where one is written."""

TABLE, TREE, MODEL, CLUSTERS, OUTPUT = "Table", "Tree", "Model", "Clusters", "Output"
"""The panels of the help."""


class Inference(StrEnum):
    """How trees are found: one tree, or a sample of trees."""

    greedy = "greedy"
    smc = "smc"
    mcmc = "mcmc"


SAMPLERS = (Inference.smc, Inference.mcmc)


class Covariance(StrEnum):
    """Covariance of real columns."""

    diagonal = "diagonal"
    spherical = "spherical"
    full = "full"


class Search(StrEnum):
    """Where greedy inference searches for partners."""

    auto = "auto"
    exact = "exact"
    neighbors = "neighbors"


class RealProcess(StrEnum):
    """How real columns diffuse."""

    ornstein_uhlenbeck = "ornstein-uhlenbeck"
    brownian = "brownian"


class Standardize(StrEnum):
    """How real columns are transformed first."""

    yes = "yes"
    power = "power"
    no = "no"

    @property
    def parameter(self) -> bool | Literal["power"]:
        """The parameter of the estimators."""
        return "power" if self is Standardize.power else self is Standardize.yes


class Unseen(StrEnum):
    """Treatment of categories that did not occur in the fit."""

    missing = "missing"
    error = "error"


class TableKind(StrEnum):
    """Formats of tables."""

    csv = "csv"
    tsv = "tsv"
    parquet = "parquet"


def parse_path(text: str | Path) -> Path:
    """Return a path; an empty one, which would be the current folder, is refused."""
    if text == "":
        raise typer.BadParameter("the name is empty; name a file or a folder, or . for the current folder.")
    return Path(text)


QuietOption = Annotated[
    bool, typer.Option("--quiet", "-q", help="Print only results and errors.", rich_help_panel=OUTPUT)
]
VerboseOption = Annotated[
    bool,
    typer.Option(
        "--verbose", "-v", help="Also print how columns were read, the fitted parameters and timings.",
        rich_help_panel=OUTPUT,
    ),
]  # fmt: skip
JsonOption = Annotated[
    bool,
    typer.Option("--json", help="Print the results as one JSON object, for programs.", rich_help_panel=OUTPUT),
]
DebugOption = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.", rich_help_panel=OUTPUT)]

FormatOption = Annotated[
    TableKind | None,
    typer.Option(
        "--format", metavar="KIND", rich_help_panel=TABLE,
        help="csv, tsv or parquet. By default from the file extension, or for - from the content.",
    ),
]  # fmt: skip
IdColumnOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Column with the row names. By default the first column, if it is text without duplicates.",
        rich_help_panel=TABLE,
    ),
]
NoIdOption = Annotated[bool, typer.Option("--no-id", help="Use no column as row names.", rich_help_panel=TABLE)]
CategoricalOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="Column to read as categorical although it looks like numbers; also NAME,NAME.",
        rich_help_panel=TABLE,
    ),
]
RealOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME", help="Column to read as real although it looks like text or yes/no; also NAME,NAME.",
        rich_help_panel=TABLE,
    ),
]  # fmt: skip
DropOption = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="Column to ignore; also NAME,NAME.", rich_help_panel=TABLE),
]
NaValueOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="TEXT", help="Text that marks a missing cell, in addition to NA, ?, null, ...", rich_help_panel=TABLE
    ),
]

ClusterCountOption = Annotated[
    int | None,
    typer.Option(
        "--n-clusters",
        metavar="N",
        help="Number of clusters. By default chosen by the model.",
        rich_help_panel=CLUSTERS,
    ),
]
HeightThresholdOption = Annotated[
    float | None,
    typer.Option("--height-threshold", metavar="H", help="Cut the tree at this height.", rich_help_panel=CLUSTERS),
]

ResolutionOption = Annotated[
    float | None,
    typer.Option(
        metavar="X",
        help="How fine the clusters are, from 0 to 1; higher gives more. Does not change the tree. By default chosen from "
        "the tree.",
        rich_help_panel=CLUSTERS,
    ),
]
MinClusterSizeOption = Annotated[
    float | None,
    typer.Option(
        metavar="N",
        help="Minimum number of rows in a cluster, or below 1 a share of all rows. 0.02 by default.",
        rich_help_panel=CLUSTERS,
    ),
]
LabelOutliersOption = Annotated[
    bool,
    typer.Option(
        "--label-outliers",
        help="Label outliers -1. By default they join the most probable cluster.",
        rich_help_panel=CLUSTERS,
    ),
]

SearchOption = Annotated[
    Search | None,
    typer.Option(
        metavar="HOW",
        help="greedy: consider all pairs (exact) or only near neighbours (neighbors). By default chosen by table size (auto).",
        rich_help_panel=MODEL,
    ),
]
ParticlesOption = Annotated[
    int | None, typer.Option(metavar="N", help="smc: particles per run, 50 by default.", rich_help_panel=MODEL)
]
RunsOption = Annotated[
    int | None, typer.Option(metavar="N", help="smc: independent runs, 1 by default.", rich_help_panel=MODEL)
]
ChainsOption = Annotated[
    int | None, typer.Option(metavar="N", help="mcmc: Markov chains, 4 by default.", rich_help_panel=MODEL)
]
SamplesOption = Annotated[
    int | None,
    typer.Option(metavar="N", help="mcmc: trees sampled by each chain, 1000 by default.", rich_help_panel=MODEL),
]
RefineOption = Annotated[
    bool,
    typer.Option("--refine", help="greedy: finally move subtrees to where they fit better.", rich_help_panel=MODEL),
]


DrawParametersOption = Annotated[
    bool,
    typer.Option(
        "--draw-parameters",
        help="mcmc: draw the parameters together with the trees; predictions are then averaged over this sample.",
        rich_help_panel=MODEL,
    ),
]
CovarianceOption = Annotated[
    Covariance | None,
    typer.Option(
        metavar="HOW",
        help="Real columns in predictions: full (default for up to 100 columns), covariance matrices; diagonal, a variance "
        "each; spherical, one for all.",
        rich_help_panel=MODEL,
    ),
]
RealProcessOption = Annotated[
    RealProcess | None,
    typer.Option(
        metavar="HOW",
        help="Process of real columns: ornstein-uhlenbeck (default), which returns to a mean, or brownian.",
        rich_help_panel=MODEL,
    ),
]
NoiseOption = Annotated[
    float | None,
    typer.Option(
        metavar="X",
        help="Share of the real columns' variance that is noise, from 0 to less than 1. By default 0.5 for the tree, and "
        "drawn for predictions.",
        rich_help_panel=MODEL,
    ),
]

StandardizeOption = Annotated[
    Standardize | None,
    typer.Option(
        metavar="HOW",
        help="Real columns: yes (default) scales to mean 0 and sd 1; power first applies a power transform, for heavy tails; no "
        "leaves them as they are.",
        rich_help_panel=MODEL,
    ),
]
DaskOption = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Run on a Dask cluster: tcp://host:8786, or local:2 for two local processes. The result is the same.",
        rich_help_panel=MODEL,
    ),
]

ModelArgument = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL", help="A model.coaltree written by coaltree fit or model.save; - is standard input.",
        parser=parse_path,
    ),
]  # fmt: skip
NewTableArgument = Annotated[
    Path,
    typer.Argument(
        metavar="TABLE",
        help="A csv, tsv or parquet file, or a folder of parquet files, with the column names of the fit; - is standard input.",
        parser=parse_path,
    ),
]
CsvOption = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", metavar="OUT.csv", help="File to write. By default, and for -, standard output.",
        rich_help_panel=OUTPUT, parser=parse_path,
    ),
]  # fmt: skip
UnseenOption = Annotated[
    Unseen | None,
    typer.Option(
        metavar="HOW",
        help="Categories that did not occur in the fit: missing or error. By default as set in the fit.",
        rich_help_panel=MODEL,
    ),
]


def split_column_names(given: Sequence[str] | None, option: str) -> list[str]:
    """Split names at commas; a name with a comma is in double quotes."""
    names = [name.strip() for line in csv.reader(given or [], skipinitialspace=True) for name in line]
    if "" in names or "" in (given or []):
        raise InputError(f"{option} was given an empty column name; name columns as in the table's header.")
    return list(dict.fromkeys(names))


def parse_id_column(id_column: str | None, no_id: bool) -> str | None:
    """Return the column of row names as an argument of `read_file`."""
    if no_id and id_column is not None:
        raise InputError("--no-id and --id-column were both given; give one of them, or neither.")
    if id_column == "":
        raise InputError("--id-column was given an empty column name; give --no-id to take no column as row names.")
    return "" if no_id else id_column


def keep_given(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that were given, so that the defaults of the settings hold for the others."""
    return {
        name: value.value if isinstance(value, StrEnum) else value
        for name, value in options.items()
        if value is not None
    }


def check_options(options: Mapping[str, Any]) -> None:
    """Refuse values that the parameters of the options do not allow."""
    for option, value in options.items():
        check_option(option, value)


def check_jobs(n_jobs: int | None) -> None:
    """Refuse 0 threads."""
    if n_jobs == 0:
        raise InputError("--n-jobs is 0; it must be a number of threads, or -1 for all processors.")


def check_dask(address: str | None) -> None:
    """Refuse a text that is not the address of a cluster."""
    from ..inference.thread_executor import is_cluster_address

    if address is not None and not is_cluster_address(address):
        raise InputError(
            f"--dask is {address}; it must be the address of a scheduler such as tcp://host:8786, or local:2 for two worker "
            "processes on this machine."
        )


def check_inference_options(
    inference: Inference | None, owners: Sequence[Inference], options: Mapping[str, Any]
) -> None:
    """Refuse options that belong to another inference; greedy inference is the default."""
    if (inference or Inference.greedy) in owners:
        return
    for option, value in options.items():
        if value is not None:
            which = "that" if len(owners) == 1 else "one of them"
            advice = "leave it out" if Inference.greedy in owners else f"add {which}, or leave {option} out"
            raise InputError(f"{option} is an option of --inference {' or '.join(owners)}; {advice}.")


def check_cut(
    n_clusters: int | None,
    height_threshold: float | None,
    resolution: float | None = None,
    min_cluster_size: float | None = None,
) -> None:
    """Refuse invalid ways to cut a tree, before any work is done."""
    given = {"--resolution": resolution, "--n-clusters": n_clusters, "--height-threshold": height_threshold}
    ways = [option for option, value in given.items() if value is not None]
    if len(ways) > 1:
        raise InputError(
            f"{' and '.join(ways)} exclude each other, because each cuts the tree; give one of them, or none."
        )
    check_options(given | {"--min-cluster-size": min_cluster_size})


def check_one_reader(sources: Mapping[str, Path | None]) -> None:
    """Refuse to read two inputs from standard input."""
    given = [what for what, path in sources.items() if path == STANDARD_STREAM]
    if len(given) > 1:
        raise InputError(
            f"{' and '.join(given)} are both -, but standard input can be read once: name a file for one of them."
        )


def check_one_writer(as_json: bool, targets: Mapping[str, Path | None]) -> None:
    """Refuse to write two results to standard output."""
    given = [what for what, path in targets.items() if path == STANDARD_STREAM] + ["--json"] * as_json
    if len(given) > 1:
        raise InputError(f"{' and '.join(given)} both write to standard output: name a file, or leave one of them out.")
