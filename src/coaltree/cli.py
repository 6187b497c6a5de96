"""The command line: tables in files, results in a folder.

What takes long to import is imported inside the commands, so that ``coaltree --help`` answers at once.
"""

from __future__ import annotations

import csv
import io
import math
import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import __version__
from .console import Notes, progress_bar, reported
from .errors import InputError
from .table.wording import count

if TYPE_CHECKING:
    from .estimators.clustering import CoalescentClustering
    from .table.columns import Table

_DEMO_SEED = 0
_DEMO_MISSING = 0.1
_CULTIVARS = ("Barolo", "Grignolino", "Barbera")

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Bayesian hierarchical clustering of tables, missing cells and mixed columns welcome.",
)


class Rule(StrEnum):
    """Which pair merges next."""

    rate1 = "rate1"
    max_prob = "max-prob"
    min_duration = "min-duration"


class Inference(StrEnum):
    """One tree, or a sample of trees."""

    greedy = "greedy"
    smc = "smc"


class Proposal(StrEnum):
    """How sequential Monte Carlo draws merges."""

    post_post = "post-post"
    race = "race"
    prior_post = "prior-post"
    prior_prior = "prior-prior"


class Summary(StrEnum):
    """Which tree stands for a sample."""

    mcc = "mcc"
    consensus = "consensus"


QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]
DebugOption = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]


def run() -> None:
    """Run the command line on the arguments of the process."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a name must not end the run.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    app(prog_name="coaltree")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"coaltree {__version__}")
        raise typer.Exit()


@app.callback()
def _coaltree(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    pass


@app.command()
def fit(
    table: Annotated[
        Path, typer.Argument(metavar="TABLE", help="A csv, tsv or parquet file with a row for each leaf.")
    ],
    outdir: Annotated[Path, typer.Option("--outdir", "-o", metavar="OUTDIR", help="Folder for the results.")],
    id_column: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Column with the row names. By default the first, if it is text that differs in every row.",
        ),
    ] = None,
    no_id: Annotated[bool, typer.Option("--no-id", help="Take no column as row names.")] = False,
    categorical: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Column of categories that look like numbers; also NAME,NAME."),
    ] = None,
    drop: Annotated[list[str] | None, typer.Option(metavar="NAME", help="Column to leave out; also NAME,NAME.")] = None,
    na_value: Annotated[
        list[str] | None,
        typer.Option(metavar="TEXT", help="Also take this text as a missing cell, besides NA, ?, null, ..."),
    ] = None,
    n_clusters: Annotated[
        int | None, typer.Option(metavar="N", help="Number of clusters. By default the model decides.")
    ] = None,
    height_threshold: Annotated[
        float | None, typer.Option(metavar="H", help="Cut the tree at this height instead.")
    ] = None,
    inference: Annotated[
        Inference,
        typer.Option(metavar="HOW", help="greedy: one good tree; smc: a sample of trees, with support values."),
    ] = Inference.greedy,
    rule: Annotated[
        Rule | None,
        typer.Option(metavar="RULE", help="greedy: which pair merges next, rate1 (default), max-prob or min-duration."),
    ] = None,
    particles: Annotated[
        int | None, typer.Option(metavar="N", help="smc: particles in each run, 50 by default.")
    ] = None,
    runs: Annotated[int | None, typer.Option(metavar="N", help="smc: independent runs, 1 by default.")] = None,
    proposal: Annotated[
        Proposal | None,
        typer.Option(metavar="HOW", help="smc: post-post (default), race (faster), prior-post or prior-prior."),
    ] = None,
    summary: Annotated[
        Summary | None,
        typer.Option(metavar="TREE", help="smc: the tree that stands for the sample, mcc (default) or consensus."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(metavar="N", help="smc: seed of the random numbers, 0 by default.")
    ] = None,
    noise: Annotated[
        float,
        typer.Option(metavar="X", help="Variance of measurement noise on real columns; for repeated rows."),
    ] = 0.0,
    no_standardize: Annotated[
        bool, typer.Option("--no-standardize", help="Take real columns in the units they are in.")
    ] = False,
    n_jobs: Annotated[
        int, typer.Option(metavar="N", help="Threads; -1 takes all processors. The result is the same.")
    ] = -1,
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> None:
    """Cluster the rows of a table.

    Writes tree.nwk, clusters.csv, dendrogram.png and summary.json into OUTDIR; with --inference smc also tree.nex, for
    FigTree and iTOL, and sample.trees, the whole sample with its weights.
    """
    with reported(debug):
        _check_numbers(n_clusters, height_threshold, noise, n_jobs)
        sampling = {
            "proposal": proposal and proposal.value,
            "n_particles": particles,
            "n_runs": runs,
            "summary": summary and summary.value,
            "random_state": seed,
        }
        _check_inference(inference, rule, sampling)
        if no_id and id_column is not None:
            raise InputError("--no-id and --id-column were both given; give one of them, or neither.")
        from .estimators.clustering import CoalescentClustering
        from .output.files import OutputFolder
        from .table.columns import read_columns
        from .table.reading import DEFAULT_NA, read_file

        settings: dict[str, Any] = {
            "id_column": "" if no_id else id_column,
            "drop": _names(drop, "--drop"),
            "categorical": _names(categorical, "--categorical"),
            "na_values": [*DEFAULT_NA, *(na_value or [])],
        }
        notes = Notes(quiet)
        with notes.taken():
            file = read_file(table, **settings)
            rows = read_columns(file.frame, row_names=file.row_names)
        if n_clusters is not None and n_clusters > rows.n_rows:
            raise InputError(f"--n-clusters is {n_clusters}, but {table.name} has {count(rows.n_rows, 'row')}.")
        parameters: dict[str, Any] = {
            "rule": (rule or Rule.rate1).value,
            "noise": noise,
            "standardize": not no_standardize,
            "n_clusters": n_clusters,
            "height_threshold": height_threshold,
        }
        if inference is Inference.smc:
            del parameters["rule"]
            given = {name: value for name, value in sampling.items() if value is not None}
            parameters |= {"inference": "smc", "random_state": 0} | given
        model = CoalescentClustering(**parameters, n_jobs=n_jobs)
        with OutputFolder(outdir) as folder:
            facts = _fit_and_draw(model, rows, table.name, file.id_column, settings | parameters, notes, folder)
        if not quiet:
            typer.echo(_closing_words(facts, outdir))


@app.command()
def demo(
    outdir: Annotated[Path, typer.Option("--outdir", "-o", metavar="OUTDIR", help="Folder for the results.")] = Path(
        "coaltree-demo"
    ),
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> None:
    """Cluster 178 wines, a tenth of whose measurements have been erased.

    The wines are of three cultivars. The model sees the measurements only and is asked for three clusters;
    tree and clusters are compared with the cultivars at the end. Writes the same four files as fit.
    """
    with reported(debug):
        from .estimators.clustering import CoalescentClustering
        from .output.files import OutputFolder

        table, classes = _demo_table()
        settings = {"erased_share": _DEMO_MISSING, "erased_seed": _DEMO_SEED, "n_clusters": len(_CULTIVARS)}
        notes = Notes(quiet)
        model = CoalescentClustering(n_clusters=len(_CULTIVARS), n_jobs=-1)
        with OutputFolder(outdir) as folder:
            facts = _fit_and_draw(model, table, "wine", None, settings, notes, folder)
        if not quiet:
            typer.echo(_closing_words(facts, outdir))
            typer.echo("\n" + _comparison(model, classes))
            typer.echo("\nWith a table of your own: coaltree fit TABLE.csv -o OUTDIR")


def _fit_and_draw(
    model: CoalescentClustering,
    table: Table,
    source: str,
    id_column: str | None,
    settings: dict[str, Any],
    notes: Notes,
    folder: Any,
) -> dict[str, Any]:
    """Fit the model and put the four files into the folder; returns what stands in the summary."""
    from .output.files import cluster_table, dendrogram_png, facts_of, json_text
    from .tree.summary import SummaryTree

    if not notes.quiet:
        typer.echo(_opening_words(table, source, id_column), err=True)
    with notes.taken(), progress_bar(not notes.quiet) as report:
        model._fit(table, report)
    notes.add(model.remarks_)
    facts = facts_of(model, table, source=source, id_column=id_column, remarks=notes.sentences, settings=settings)
    tree, labels = model.tree_, model.labels_
    folder.add("tree.nwk", tree.to_newick() + "\n")
    folder.add("clusters.csv", cluster_table(tree.leaf_names, labels.tolist()))
    folder.add("dendrogram.png", dendrogram_png(tree, labels, f"{source}: {count(table.n_rows, 'row')}"))
    folder.add("summary.json", json_text(facts))
    if isinstance(tree, SummaryTree):
        folder.add("tree.nex", tree.to_nexus())
        folder.add("sample.trees", model.sample_.to_nexus())
    else:
        folder.leave_out("tree.nex")
        folder.leave_out("sample.trees")
    return facts


def _opening_words(table: Table, source: str, id_column: str | None) -> str:
    """Say how the table was understood."""
    kinds = [
        f"{len(columns)} {kind} ({_listed([column.name for column in columns], 4)})"
        for kind, columns in (("real", table.real), ("categorical", table.categorical))
        if columns
    ]
    names = f", row names from column {id_column!r}" if id_column else ""
    if table.row_names is None:
        names = ", numbered from 0"
    return f"{source}: {count(table.n_rows, 'row')}{names}\ncolumns: {', '.join(kinds)}"


def _closing_words(facts: dict[str, Any], outdir: Path) -> str:
    reasons = {
        "n_clusters": "as asked for",
        "height": "cut at the height",
        "likelihood ratio": "chosen by the model",
    }
    lines = {
        "rows": f"{facts['n_rows']}",
        "columns": f"{facts['n_columns']}, of which {sum(c['used'] for c in facts['columns'])} used",
        "missing": f"{100 * facts['missing_share']:.3g} % of the cells",
        "tree height": _number(facts["tree_height"]),
        "log joint": _number(facts["log_joint"]),
        "clusters": f"{facts['n_clusters']}, {reasons[facts['clusters_chosen_by']]}",
        "cluster sizes": _listed(facts["cluster_sizes"], 12),
        "results": f"tree.nwk, clusters.csv, dendrogram.png, summary.json in {outdir}",
    }
    if facts["inference"] == "smc":
        error = facts["log_evidence_se"]
        del lines["results"]  # it stays the last line
        lines |= {
            "log evidence": _number(facts["log_evidence"])
            + (f", standard error {error:.2g}" if error is not None else ""),
            "sample": f"{facts['n_trees']} trees, {facts['n_distinct_trees']} distinct, as good as "
            f"{facts['effective_size']:.1f} of equal weight",
            "results": f"tree.nwk, tree.nex, sample.trees, clusters.csv, dendrogram.png, summary.json in {outdir}",
        }
    return "\n".join(f"{name:<15}{text}" for name, text in lines.items())


def _listed(values: Sequence[object], limit: int) -> str:
    if len(values) <= limit:
        return ", ".join(map(str, values))
    return f"{', '.join(map(str, values[:limit]))}, and {len(values) - limit} more"


def _number(value: float | None) -> str:
    return "not finite" if value is None else f"{value:.6g}"


def _check_numbers(n_clusters: int | None, height_threshold: float | None, noise: float, n_jobs: int) -> None:
    """Refuse numbers out of range before any work is done."""
    if n_clusters is not None and height_threshold is not None:
        raise InputError("--n-clusters and --height-threshold were both given; give one of them, or neither.")
    if n_clusters is not None and n_clusters < 1:
        raise InputError(f"--n-clusters is {n_clusters}; it must be at least 1.")
    for option, value in (("--height-threshold", height_threshold), ("--noise", noise)):
        if value is not None and not (math.isfinite(value) and value >= 0):
            raise InputError(f"{option} is {value:g}; it must be a number of at least 0.")
    if n_jobs == 0:
        raise InputError("--n-jobs is 0; it must be a number of threads, or -1 for all processors.")


def _check_inference(inference: Inference, rule: Rule | None, sampling: dict[str, Any]) -> None:
    """Refuse options of the inference that was not asked for, and numbers out of range."""
    options = {
        "proposal": "--proposal",
        "n_particles": "--particles",
        "n_runs": "--runs",
        "summary": "--summary",
        "random_state": "--seed",
    }
    for name, value in sampling.items():
        if value is None:
            continue
        if inference is not Inference.smc:
            raise InputError(
                f"{options[name]} is an option of --inference smc; add that, or leave {options[name]} out."
            )
        least = 0 if name == "random_state" else 1
        if isinstance(value, int) and value < least:
            raise InputError(f"{options[name]} is {value}; it must be a whole number of at least {least}.")
    if rule is not None and inference is not Inference.greedy:
        raise InputError("--rule is an option of --inference greedy; leave it out.")


def _names(given: Sequence[str] | None, option: str) -> list[str]:
    """Split what was given at commas; a name that has one stands in double quotes."""
    names = [name.strip() for line in csv.reader(given or [], skipinitialspace=True) for name in line]
    if "" in names:
        raise InputError(f"{option} was given an empty column name; name columns as in the table's header.")
    return list(dict.fromkeys(names))


def _demo_table() -> tuple[Table, list[int]]:
    import numpy as np
    from sklearn.datasets import load_wine

    from .table.columns import read_columns

    wine = load_wine()
    cells = wine.data.copy()
    cells[np.random.default_rng(_DEMO_SEED).random(cells.shape) < _DEMO_MISSING] = np.nan
    classes = wine.target.tolist()
    names = [f"{_CULTIVARS[c]} {classes[: i + 1].count(c)}" for i, c in enumerate(classes)]
    return read_columns(cells, feature_names=list(wine.feature_names), row_names=names), classes


def _comparison(model: CoalescentClustering, classes: Sequence[int]) -> str:
    """Compare tree and clusters with the cultivars."""
    from sklearn.metrics import adjusted_rand_score

    from .metrics import dendrogram_purity

    return (
        "Against the three cultivars, which the model has not seen: dendrogram purity of the tree "
        f"{dendrogram_purity(model.tree_, classes):.3f},\nadjusted Rand index of the clusters "
        f"{adjusted_rand_score(classes, model.labels_):.2f}."
    )
