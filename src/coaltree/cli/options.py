"""Options that several commands share, and checks of their values."""

from __future__ import annotations

import csv
import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from .._cut import CUT_RULES, Cut, CutRule, change_cut, check_cut
from .._parameters import (
    ASCERTAINMENTS,
    Covariance,
    Gaps,
    Inference,
    Model,
    Rates,
    RealProcess,
    Search,
    TableFormat,
    UnseenCategories,
    check_option,
)
from ..errors import InputError

STANDARD_STREAM = Path("-")
"""Standard input where a file is read, standard output where one is written."""

TABLE, TREE, MODEL, CLUSTERS, OUTPUT = "Table", "Tree", "Model", "Clusters", "Output"
"""The panels of the help."""


SAMPLERS: tuple[Inference, ...] = ("smc", "mcmc")

Standardize = Literal["yes", "power", "no"]
STANDARDIZE: dict[Standardize, bool | Literal["power"]] = {"yes": True, "power": "power", "no": False}
"""The parameter of the estimators for each value of the option."""


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
    TableFormat | None,
    typer.Option(
        "--format", metavar="KIND", rich_help_panel=TABLE,
        help="csv, tsv, parquet, nexus, fasta or phylip. By default from the file extension, or for - from the content.",
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
        help="Column to read as categorical although it looks like numbers; also NAME,NAME, and patterns such as 'site_*'.",
        rich_help_panel=TABLE,
    ),
]
RealOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="Column to read as real although it looks like text or yes/no; also NAME,NAME, and patterns such as 'temp_*'.",
        rich_help_panel=TABLE,
    ),
]  # fmt: skip
DropOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="Column or charset to ignore; also NAME,NAME, and patterns such as 'temp_*'.",
        rich_help_panel=TABLE,
    ),
]
NaValueOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="TEXT", help="Text that marks a missing cell, in addition to NA, ?, null, ...", rich_help_panel=TABLE
    ),
]
GapsOption = Annotated[
    Gaps | None,
    typer.Option(
        metavar="KIND",
        help="Gaps of alignments are missing cells (missing, the default) or a state of their own (state).",
        rich_help_panel=TABLE,
    ),
]

CutRules = dict[str, Any]
"""The parameter of a command that `with_cut_rules` replaces: the value of each rule for clusters, None if not given."""
NO_RULES: CutRules = {}


def with_cut_rules(for_trees: bool = False) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command an option for each rule of `CUT_RULES`, in place of its parameter ``cut_rules``.

    Parameters
    ----------
    for_trees : bool, default False
        Whether to leave out the rules that need a fitted model.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        rules = {name: rule for name, rule in CUT_RULES.items() if rule.for_trees or not for_trees}

        @functools.wraps(command)
        def run(**arguments: Any) -> None:
            command(cut_rules={name: arguments.pop(name) for name in rules}, **arguments)

        signature = inspect.signature(command, eval_str=True)
        parameters = list(signature.parameters.values())
        at = next(i for i, parameter in enumerate(parameters) if parameter.name == "cut_rules")
        parameters[at : at + 1] = [_rule_option(name, rule) for name, rule in rules.items()]
        run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        return run

    return decorate


def _rule_option(name: str, rule: CutRule) -> inspect.Parameter:
    """Return the parameter of a command for a rule."""
    option = typer.Option(spell_option(name), metavar=rule.metavar, help=rule.help, rich_help_panel=CLUSTERS)
    kind = Annotated[rule.kind | None, option]  # type: ignore[name-defined]
    return inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None, annotation=kind)


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
LabelOrAssignOption = Annotated[
    bool | None,
    typer.Option(
        "--label-outliers/--assign-outliers",
        help="Label outliers -1, or let them join the most probable cluster. By default as in the fit.",
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
HeatedOption = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="mcmc: heated chains next to each chain, 0 by default; for chains that do not agree on clades.",
        rich_help_panel=MODEL,
    ),
]


def parse_samples(value: str) -> int | str:
    """Return a number of samples, or "auto"."""
    if value == "auto":
        return value
    try:
        return int(value)
    except ValueError:
        raise typer.BadParameter(f"{value!r} is neither a whole number nor 'auto'.") from None


SamplesOption = Annotated[
    str | None,
    typer.Option(
        metavar="N",
        parser=parse_samples,
        help="mcmc: trees sampled by each chain with its warm-up, 1000 by default; auto: until the chains have converged.",
        rich_help_panel=MODEL,
    ),
]
MaxSecondsOption = Annotated[
    float | None,
    typer.Option(metavar="S", help="mcmc: time limit of --samples auto, 600 by default.", rich_help_panel=MODEL),
]
RefineOption = Annotated[
    bool,
    typer.Option(
        "--refine", help="greedy: after the search, move subtrees to where they fit better.", rich_help_panel=MODEL
    ),
]


DrawParametersOption = Annotated[
    bool,
    typer.Option(
        "--draw-parameters",
        help="mcmc: sample the parameters together with the trees; predictions are then averages over this sample.",
        rich_help_panel=MODEL,
    ),
]
CovarianceOption = Annotated[
    Covariance | None,
    typer.Option(
        metavar="HOW",
        help="Covariance of real columns in predictions: full (default for up to 100 columns), diagonal (one variance per "
        "column) or spherical (one variance for all).",
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
        "sampled for predictions.",
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
QuoteNamesOption = Annotated[
    bool,
    typer.Option(
        "--quote-names",
        help="In Newick and NEXUS files, put names with blanks or underscores in quotes. By default blanks are underscores.",
        rich_help_panel=OUTPUT,
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
        help="A table as for fit, with the column names of the fit; - is standard input.",
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
ColumnsOption = Annotated[
    int | None,
    typer.Option(
        metavar="K", help="Number of columns to list, the strongest first. By default all.", rich_help_panel=OUTPUT
    ),
]
UnseenOption = Annotated[
    UnseenCategories | None,
    typer.Option(
        metavar="HOW",
        help="Categories that did not occur in the fit: missing or error. By default as set in the fit.",
        rich_help_panel=MODEL,
    ),
]


def split_column_names(lists: Sequence[str] | None, option: str) -> list[str]:
    """Split names at commas; a name with a comma is in double quotes."""
    try:
        names = [name.strip() for line in csv.reader(lists or [], skipinitialspace=True) for name in line]
    except csv.Error:
        raise InputError(
            f"{option} was given a name with a line break: put it in double quotes within the quotes of the shell."
        ) from None
    if "" in names or "" in (lists or []):
        raise InputError(f"{option} was given an empty column name; name columns as in the table's header.")
    return list(dict.fromkeys(names))


def parse_id_column(id_column: str | None, no_id: bool) -> str | None:
    """Return the column of row names as an argument of `read_file`."""
    if no_id and id_column is not None:
        raise InputError("--no-id and --id-column were both given; give one of them, or neither.")
    if id_column == "":
        raise InputError("--id-column was given an empty column name; give --no-id to take no column as row names.")
    return "" if no_id else id_column


def check_options(options: Mapping[str, Any]) -> None:
    """Refuse values that the parameters of the options do not allow."""
    for option, value in options.items():
        check_option(option, value)


def check_no_fit_options(options: Mapping[str, Any]) -> None:
    """Refuse options of a fit if there is a fitted model."""
    for option, value in options.items():
        if value is not None:
            raise InputError(
                f"{option} is an option of fitting, but --model is already fitted; leave one of the two out."
            )


_OPTIONS_BY_INFERENCE: tuple[tuple[tuple[Inference, ...], tuple[str, ...]], ...] = (
    (("smc",), ("--proposal", "--particles", "--runs")),
    (("mcmc",), ("--chains", "--heated", "--samples", "--draw-parameters", "--max-seconds")),
    (SAMPLERS, ("--summary", "--heights", "--seed")),
    (("greedy",), ("--rule", "--search", "--refine")),
)
_NUMBERS = ("--particles", "--runs", "--chains", "--heated", "--samples", "--max-seconds", "--noise", "--seed")
_PARAMETERS = {  # with other names than their options
    "--particles": "n_particles",
    "--runs": "n_runs",
    "--chains": "n_chains",
    "--heated": "n_heated",
    "--samples": "n_samples",
    "--heights": "summary_heights",
    "--seed": "random_state",
}


def check_fit_options(inference: Inference | None, options: Mapping[str, Any]) -> None:
    """Refuse options that belong to another inference, and numbers out of range; greedy inference is the default."""
    for owners, names in _OPTIONS_BY_INFERENCE:
        if (inference or "greedy") in owners:
            continue
        for option in names:
            if options.get(option) is not None:
                addition = "that" if len(owners) == 1 else "one of them"
                advice = "leave it out" if "greedy" in owners else f"add {addition}, or leave {option} out"
                raise InputError(f"{option} is an option of --inference {' or '.join(owners)}; {advice}.")
    check_options({option: options[option] for option in _NUMBERS if option in options})
    max_seconds = options["--max-seconds"]
    if max_seconds is not None and options["--samples"] != "auto":
        raise InputError(
            f"--max-seconds is {max_seconds:g}, without --samples auto; add it, or leave --max-seconds out."
        )


def fit_parameters(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a fit for the options that were given; the others keep their defaults."""
    return {
        _PARAMETERS.get(option, option[2:].replace("-", "_")): value
        for option, value in options.items()
        if value is not None
    }


def character_parameters(
    model: Model | None, rates: Rates | None, ascertainment: Sequence[str] | None
) -> dict[str, Any]:
    """Return the parameters of the model of characters that were given: for all partitions, or for some of them."""
    parameters: dict[str, Any] = {} if model is None else {"model": model}
    parameters |= {} if rates is None else {"rates": rates}
    by_partition: dict[str, str] = {}
    for text in [word.strip() for words in ascertainment or () for word in words.split(",")]:
        name, equals, which = text.rpartition("=")
        if which not in ASCERTAINMENTS or bool(equals) != bool(name):
            raise InputError(
                f"--ascertainment is {text}; it must be one of {', '.join(ASCERTAINMENTS)}, or such as NAME=variable for a "
                "partition."
            )
        by_partition[name] = which
    if "" in by_partition and len(by_partition) > 1:
        raise InputError(
            "--ascertainment was given for all partitions and for some of them; give one for all, or NAME=WHICH only."
        )
    if by_partition:
        parameters["ascertainment"] = by_partition.get("") or by_partition
    return parameters


def check_jobs(n_jobs: int | None) -> None:
    """Refuse 0 threads."""
    if n_jobs == 0:
        raise InputError("--n-jobs is 0; it must be a number of threads, or -1 for all processors.")


def check_dask(address: str | None) -> None:
    """Refuse a text that is not the address of a cluster."""
    from ..inference.executors import is_cluster_address

    if address is not None and not is_cluster_address(address):
        raise InputError(
            f"--dask is {address}; it must be the address of a scheduler such as tcp://host:8786, or local:2 for two worker "
            "processes on this machine."
        )


def read_cut(rules: CutRules, min_cluster_size: float | None = None, label_outliers: bool = False) -> Cut:
    """Return the cut that the options ask for; refuse one that is not allowed, before any work is done."""
    cut = change_cut(Cut(), **rules, min_cluster_size=min_cluster_size, assign_outliers=not label_outliers)
    check_cut(cut, spell=spell_option)
    return cut


def check_cut_rows(cut: Cut, n_rows: int, limit: str) -> None:
    """Refuse a cut that a table or tree has too few rows for; `limit` says how many it has."""
    check_cut(cut, n_rows, limit=limit, spell=spell_option)


def spell_option(parameter: str) -> str:
    """Return the option of a parameter."""
    return f"--{parameter.replace('_', '-')}"


def check_one_reader(sources: Mapping[str, Path | None]) -> None:
    """Refuse to read two inputs from standard input."""
    readers = [name for name, path in sources.items() if path == STANDARD_STREAM]
    if len(readers) > 1:
        raise InputError(
            f"{' and '.join(readers)} are both -, but standard input can be read once: name a file for one of them."
        )


def check_one_writer(as_json: bool, targets: Mapping[str, Path | None]) -> None:
    """Refuse to write two results to standard output."""
    writers = [name for name, path in targets.items() if path == STANDARD_STREAM] + ["--json"] * as_json
    if len(writers) > 1:
        raise InputError(
            f"{' and '.join(writers)} both write to standard output: name a file, or leave one of them out."
        )
