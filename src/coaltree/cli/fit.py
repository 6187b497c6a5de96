"""The command ``fit``: from a table to a folder with a tree, clusters, a picture and the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .._cut import CUT_PARAMETERS
from .._parameters import Inference, Model, Proposal, Rates, Rule, Summary, SummaryHeights
from ..errors import InputError
from ..table.labels import count
from .app import Notes, app, progress_bar, report_errors, suppress_output
from .io import draw_trees, locate_table, print_json, read_file_arguments, read_table
from .options import (
    MODEL,
    NO_RULES,
    OUTPUT,
    SAMPLERS,
    STANDARD_STREAM,
    STANDARDIZE,
    TABLE,
    CategoricalOption,
    ChainsOption,
    CovarianceOption,
    CutRules,
    DaskOption,
    DebugOption,
    DrawParametersOption,
    DropOption,
    FormatOption,
    GapsOption,
    HeatedOption,
    IdColumnOption,
    JsonOption,
    LabelOutliersOption,
    MaxSecondsOption,
    MinClusterSizeOption,
    NaValueOption,
    NoIdOption,
    NoiseOption,
    ParticlesOption,
    QuietOption,
    QuoteNamesOption,
    RealOption,
    RealProcessOption,
    RefineOption,
    RunsOption,
    SamplesOption,
    SearchOption,
    StandardizeOption,
    VerboseOption,
    character_parameters,
    check_cut_rows,
    check_dask,
    check_fit_options,
    check_jobs,
    fit_parameters,
    parse_path,
    read_cut,
    with_cut_rules,
)
from .summaries import describe_fit, explain_kinds, parameter_listing, print_dry_run, print_table
from .terminal import write_output

if TYPE_CHECKING:
    from .._atomic import OutputFolder
    from ..table.columns import Table
    from ..workflow.comparison import ComparedModel
    from ..workflow.model import FittedModel
    from ..workflow.settings import ClusterSettings

# Parameters that the summary always lists.
_SUMMARY_PARAMETERS = (
    "real_process",
    "covariance",
    "noise",
    "standardize",
    *CUT_PARAMETERS,
)
_SUMMARY_PARAMETERS_OF = {
    "greedy": ("rule", "search", "refine"),
    "smc": ("inference", "proposal", "n_particles", "n_runs", "summary", "summary_heights", "random_state"),
    "mcmc": (
        "inference",
        "n_chains",
        "n_heated",
        "n_samples",
        "draw_parameters",
        "summary",
        "summary_heights",
        "random_state",
    ),
}


@app.command(epilog="Example: coaltree fit examples/animals.csv -o results --report")
@with_cut_rules()
def fit(
    table: Annotated[
        Path,
        typer.Argument(
            metavar="TABLE",
            help="A csv, tsv or parquet file, or a folder of parquet files, with one row per item; characters of taxa in NEXUS, "
            "FASTA or PHYLIP, or a CLDF folder; - is standard input.",
            parser=parse_path,
        ),
    ],
    outdir: Annotated[
        Path | None,
        typer.Option(
            "--outdir",
            "-o",
            metavar="OUTDIR",
            help="Folder for the results. Required, except with --dry-run.",
            rich_help_panel=OUTPUT,
            parser=parse_path,
        ),
    ] = None,
    id_column: IdColumnOption = None,
    no_id: NoIdOption = False,
    categorical: CategoricalOption = None,
    real: RealOption = None,
    drop: DropOption = None,
    na_value: NaValueOption = None,
    gaps: GapsOption = None,
    table_format: FormatOption = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Show how the columns are read, and stop.", rich_help_panel=TABLE),
    ] = False,
    cut_rules: CutRules = NO_RULES,
    min_cluster_size: MinClusterSizeOption = None,
    label_outliers: LabelOutliersOption = False,
    inference: Annotated[
        Inference,
        typer.Option(
            metavar="HOW",
            help="greedy: one good tree; smc or mcmc: a sample of trees with support values.",
            rich_help_panel=MODEL,
        ),
    ] = "greedy",
    rule: Annotated[
        Rule | None,
        typer.Option(
            metavar="RULE",
            help="greedy: rule for the next merge, rate1 (default), max-prob or min-duration.",
            rich_help_panel=MODEL,
        ),
    ] = None,
    search: SearchOption = None,
    refine: RefineOption = False,
    particles: ParticlesOption = None,
    runs: RunsOption = None,
    proposal: Annotated[
        Proposal | None,
        typer.Option(
            metavar="HOW",
            help="smc: proposal, post-post (default), race (faster), prior-post or prior-prior.",
            rich_help_panel=MODEL,
        ),
    ] = None,
    chains: ChainsOption = None,
    heated: HeatedOption = None,
    samples: SamplesOption = None,
    max_seconds: MaxSecondsOption = None,
    summary: Annotated[
        Summary | None,
        typer.Option(
            metavar="TREE",
            help="smc, mcmc: the summary tree of the sample, ccd0 (default), mcc or consensus.",
            rich_help_panel=MODEL,
        ),
    ] = None,
    heights: Annotated[
        SummaryHeights | None,
        typer.Option(
            metavar="WHICH",
            help="smc, mcmc: heights of the summary tree's clades, mean (default) or median of the sample.",
            rich_help_panel=MODEL,
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(metavar="N", help="smc, mcmc: random seed, 0 by default.", rich_help_panel=MODEL),
    ] = None,
    draw_parameters: DrawParametersOption = False,
    real_process: RealProcessOption = None,
    covariance: CovarianceOption = None,
    noise: NoiseOption = None,
    model: Annotated[
        Model | None,
        typer.Option(
            metavar="NAME",
            help="Model of characters: jc or mk (equally likely states), f81 (frequencies are fitted). By default mk for "
            "morphology and f81 for all others. For other tables, columns of categories and of whole numbers from 0 to 9 become "
            "characters.",
            rich_help_panel=MODEL,
        ),
    ] = None,
    rates: Annotated[
        Rates | None,
        typer.Option(
            metavar="NAME",
            help="Rates of the characters of a partition: equal (the default), or gamma (four categories; the shape is fitted).",
            rich_help_panel=MODEL,
        ),
    ] = None,
    partitions: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Partitions of the characters, each with its own rate and frequencies, as for RAxML or IQ-TREE.",
            rich_help_panel=MODEL,
            parser=parse_path,
        ),
    ] = None,
    ascertainment: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WHICH",
            help="Characters that were recorded: variable (no constant ones, the default for morphology), present (none that "
            "are 0 or absent in all rows, the default for cognates) or all; for a partition NAME=WHICH.",
            rich_help_panel=MODEL,
        ),
    ] = None,
    standardize: StandardizeOption = None,
    no_standardize: Annotated[
        bool,
        typer.Option("--no-standardize", help="The same as --standardize no.", rich_help_panel=MODEL),
    ] = False,
    evidence: Annotated[
        bool,
        typer.Option(
            "--evidence",
            help="Also compare models of the table by their evidence, and write evidence.csv; for up to 300 rows, takes minutes.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    report: Annotated[
        bool,
        typer.Option("--report", help="Also write report.html, a report that works offline.", rich_help_panel=OUTPUT),
    ] = False,
    n_jobs: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="Number of threads; -1 uses all processors. The result is the same.",
            rich_help_panel=MODEL,
        ),
    ] = -1,
    dask: DaskOption = None,
    quote_names: QuoteNamesOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
    debug: DebugOption = False,
) -> None:
    """Cluster the rows of a table.

    Writes tree.nwk, clusters.csv, dendrogram.png, summary.json and model.coaltree (for score, place and impute) to OUTDIR.
    With --inference smc or mcmc it also writes tree.nex (for FigTree and iTOL) and sample.trees (all trees with their weights);
    with mcmc also trace_1.log and so on (for Tracer); with --evidence also evidence.csv; with --report also report.html.
    """
    with report_errors(debug):
        cut = read_cut(cut_rules, min_cluster_size, label_outliers)
        if no_standardize and standardize not in (None, "no"):
            raise InputError(
                f"--no-standardize and --standardize {standardize} exclude each other; leave one of them out."
            )
        scaling = STANDARDIZE["no" if no_standardize else standardize or "yes"]
        check_jobs(n_jobs)
        check_dask(dask)
        characters = character_parameters(model, rates, ascertainment)
        options = {
            "--rule": rule,
            "--search": search,
            "--refine": refine or None,
            "--proposal": proposal,
            "--particles": particles,
            "--runs": runs,
            "--chains": chains,
            "--heated": heated,
            "--samples": samples,
            "--max-seconds": max_seconds,
            "--summary": summary,
            "--heights": heights,
            "--seed": seed,
            "--draw-parameters": draw_parameters or None,
            "--real-process": real_process,
            "--covariance": covariance,
            "--noise": noise,
        }
        check_fit_options(inference, options)
        if report:
            from ..report.page import check_packages

            check_packages()
        folder_path = check_outdir(outdir, dry_run)
        settings = read_file_arguments(id_column, no_id, drop, categorical, na_value, real, gaps)
        notes = Notes(quiet, verbose)
        located_table = locate_table(table, table_format, notes)
        file, rows = read_table(located_table, settings, notes)
        reasons, source, datatypes = explain_kinds(file), located_table.name, file.datatypes
        del file, located_table  # frees memory during the fit: `rows` has the cells too
        check_cut_rows(cut, rows.n_rows, f"{source} has {count(rows.n_rows, 'row')}")
        if evidence:
            from ..workflow.comparison import check_rows_for_evidence

            check_rows_for_evidence(rows.n_rows, "--evidence")
        # Imported after the table is read, so that problems with the table are reported at once.
        from .._atomic import OutputFolder
        from ..inference.executors import open_client
        from ..workflow.fit import read_characters_as_asked
        from ..workflow.settings import ClusterSettings

        parameters = fit_parameters(options)
        if inference in SAMPLERS:
            parameters.setdefault("random_state", 0)
        if partitions is not None:
            from ..table.partition_file import read_partitions

            kept = set(rows.column_names)
            divided = read_partitions(partitions, list(datatypes) or rows.column_names)
            characters["partitions"] = {
                name: [column for column in columns if column in kept] for name, columns in divided.items()
            }
        fit_settings = ClusterSettings(
            inference=inference, standardize=scaling, n_jobs=n_jobs, **parameters, **characters, **asdict(cut)
        )
        rows = read_characters_as_asked(rows, fit_settings)
        if dry_run:
            print_dry_run(rows, source, reasons, as_json, notes, fit_settings)
            return
        method_settings = {
            name: getattr(fit_settings, name) for name in (*_SUMMARY_PARAMETERS, *_SUMMARY_PARAMETERS_OF[inference])
        }
        method_settings |= {name: str(value) for name, value in characters.items() if name != "partitions"}
        if partitions is not None:
            method_settings["partitions"] = str(partitions)
        checkpoint = None if dask is None else _checkpoint_path(folder_path)
        with OutputFolder(folder_path) as folder, open_client(dask) as fit_settings.client:
            print_table(rows, source, reasons, notes)
            if fit_settings.client is not None:
                notes.say(f"cluster   {dask}, dashboard at {fit_settings.client.dashboard_link}")
            fitted, facts = fit_and_write(
                fit_settings, rows, source, settings | method_settings, notes, folder, report, checkpoint, quote_names
            )
            comparison = add_evidence(fitted, seed or 0, evidence, facts, notes, folder, fit_settings.client)
            add_report(fitted, source, report, notes, folder, comparison)
        if checkpoint is not None:
            checkpoint.unlink(missing_ok=True)
        if as_json:
            print_json(facts | {"outdir": str(folder_path), "files": folder.names})
        elif not quiet:
            write_output(describe_fit(facts, folder.names, folder_path))


def fit_and_write(
    settings: ClusterSettings,
    table: Table,
    source: str,
    summary_settings: dict[str, Any],
    notes: Notes,
    folder: OutputFolder,
    with_trees: bool,
    checkpoint: Path | None = None,
    quote_names: bool = False,
) -> tuple[FittedModel, dict[str, Any]]:
    """Fit a model and put its files into the folder; return the model and the facts of the summary.

    With `with_trees`, the trees for predictions are drawn first, so that the model file holds them.
    """
    from ..persist.model import make_record
    from ..persist.result_files import clusters_csv, dendrogram_png, fit_summary, json_text
    from ..tree.tree import SummaryTree
    from ..workflow.fit import fit_model

    with notes.time_step("fitting"), notes.capture_warnings(), progress_bar(not notes.quiet) as report:
        model = fit_model(table, settings, report, checkpoint)
    if with_trees:
        draw_trees(model, notes)
    notes.add(model.remarks)
    notes.detail(parameter_listing(model.parameters))
    facts = fit_summary(model, table, source=source, remarks=notes.sentences, settings=summary_settings)
    tree, labels = model.tree, model.labels
    assert labels is not None
    folder.add("tree.nwk", tree.to_newick(quote_names=quote_names) + "\n")
    folder.add("clusters.csv", clusters_csv(tree.leaf_names, labels.tolist()))
    with notes.time_step("drawing"):
        folder.add("dendrogram.png", dendrogram_png(tree, labels, f"{source}: {count(table.n_rows, 'row')}"))
    folder.add("summary.json", json_text(facts))
    folder.add("model.coaltree", make_record(model).to_bytes())
    if isinstance(tree, SummaryTree) and model.sample is not None:
        folder.add("tree.nex", tree.to_nexus(quote_names=quote_names))
        folder.add("sample.trees", model.sample.to_nexus(quote_names=quote_names))
    else:
        folder.discard("tree.nex")
        folder.discard("sample.trees")
    _add_traces(model, folder)
    return model, facts


def _add_traces(model: FittedModel, folder: OutputFolder) -> None:
    """Put a trace file for each Markov chain into the folder, and discard those of an earlier fit."""
    from ..inference.results import MCMCResult
    from ..persist.result_files import trace_log

    sample = model.sample
    if isinstance(sample, MCMCResult):
        for chain in range(sample.n_chains):
            folder.add(f"trace_{chain + 1}.log", trace_log(sample, chain))
    for path in sorted(folder.path.glob("trace_*.log")):
        if path.stem.removeprefix("trace_").isdecimal() and path.name not in folder.names:
            folder.discard(path.name)


def add_evidence(
    model: FittedModel,
    seed: int,
    compare: bool,
    facts: dict[str, Any],
    notes: Notes,
    folder: OutputFolder,
    client: Any,
) -> list[ComparedModel]:
    """Compare models, and put the table into the folder and the summary; or discard that of an earlier fit."""
    if not compare:
        folder.discard("evidence.csv")
        return []
    from ..persist.result_files import evidence_csv, json_text
    from ..workflow.comparison import compare_models, describe_comparison

    with notes.time_step("evidence"), progress_bar(not notes.quiet) as report:
        comparison = compare_models(model, seed, report, client)
    facts["evidence"] = [candidate.facts() for candidate in comparison]
    facts["evidence_in_words"] = describe_comparison(comparison)
    folder.add("evidence.csv", evidence_csv(facts["evidence"]))
    folder.add("summary.json", json_text(facts))
    return comparison


def add_report(
    model: FittedModel,
    source: str,
    should_write: bool,
    notes: Notes,
    folder: OutputFolder,
    comparison: Sequence[ComparedModel] = (),
) -> None:
    """Put the report into the folder, or discard that of an earlier fit."""
    if not should_write:
        folder.discard("report.html")
        return
    from ..report.build import report_page

    with suppress_output(notes.quiet), notes.time_step("report"):
        folder.add("report.html", report_page(model, source, comparison))


def _checkpoint_path(folder: Path) -> Path:
    """Return the file next to a folder that keeps an unfinished fit."""
    folder = folder.resolve()
    return folder.with_name(f"{folder.name}.checkpoint")


def check_outdir(outdir: Path | None, dry_run: bool = False) -> Path:
    """Return the folder for the results; a dry run needs none."""
    if outdir == STANDARD_STREAM:
        raise InputError("--outdir is -, but several files cannot go to standard output: name a folder.")
    if outdir is None and not dry_run:
        raise InputError(
            "--outdir is missing: name a folder for the results, or give --dry-run to see how the table is read."
        )
    return outdir or Path()
