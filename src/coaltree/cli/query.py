"""The commands ``score``, ``place``, ``cut``, ``profile`` and ``explain``: predictions and clusters of a fitted model as csv."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .._cut import Cut, change_cut
from .._parameters import TableFormat, UnseenCategories
from ..errors import InputError
from ..table.labels import count
from .app import Notes, app, report_errors, suppress_output
from .io import (
    READABLE_KINDS,
    FromOption,
    TreeArgument,
    check_output,
    cut_leaves,
    draw_trees,
    find_tree_kind,
    load_clustering,
    locate_table,
    print_json,
    read_file_arguments,
    read_new_table,
    read_tree_file,
    write_results,
    write_rows,
)
from .options import (
    NO_RULES,
    OUTPUT,
    ColumnsOption,
    CsvOption,
    CutRules,
    DebugOption,
    DropOption,
    FormatOption,
    IdColumnOption,
    JsonOption,
    LabelOrAssignOption,
    MinClusterSizeOption,
    ModelArgument,
    NaValueOption,
    NewTableArgument,
    NoIdOption,
    QuietOption,
    UnseenOption,
    VerboseOption,
    check_cut_rows,
    check_one_reader,
    check_one_writer,
    check_options,
    parse_path,
    read_cut,
    with_cut_rules,
)
from .summaries import describe_rows, join_limited

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ..workflow.model import FittedModel, NewRows


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

    The csv has the name and the log_density of each row. The mean is printed to standard error. Missing cells are integrated
    out. Columns that were not in the fit are ignored.
    """
    with report_errors(debug):
        notes = Notes(quiet, verbose)
        settings = read_file_arguments(id_column, no_id, drop, None, na_value)
        _check_files(model, table, output, as_json)
        with suppress_output(quiet):
            fitted, names, rows = _load_model_and_rows(model, table, table_format, settings, unseen, notes)
            draw_trees(fitted, notes)
            with notes.time_step("scoring"), notes.capture_warnings():
                notes.add(fitted.describe_known_rows(rows.matrix))
                densities = fitted.log_density(rows)
                names = names or [str(i) for i in range(len(densities))]
                notes.add(describe_rows(fitted, rows, names, densities, "log density is 0"))
        mean = float(densities.mean())
        columns = {"row": names, "log_density": densities.tolist()}
        write_rows(columns, {"mean_log_density": mean}, output, as_json, notes)
        notes.say(f"mean log density {mean:.6g} over {count(len(densities), 'row')}")


@app.command(epilog="Example: coaltree place results/model.coaltree examples/new_animals.csv -o places.csv")
def place(
    model: ModelArgument,
    table: NewTableArgument,
    output: CsvOption = None,
    nearest: Annotated[
        int, typer.Option(metavar="K", help="Number of nearest leaves to list.", rich_help_panel=OUTPUT)
    ] = 3,
    level: Annotated[
        float, typer.Option(metavar="P", help="Probability of the height interval.", rich_help_panel=OUTPUT)
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
    """Write where new rows attach to the tree, and their clusters.

    For each row the csv has the most probable branch (the node below it and its number of leaves), its probability, the
    height with an interval, the log density, the nearest leaves, and the cluster with its probability. The cluster is -1 for
    outliers if the model was fitted with --label-outliers; its probability is then that of being outside of all clusters.
    """
    with report_errors(debug):
        check_options({"--nearest": nearest, "--level": level})
        notes = Notes(quiet, verbose)
        settings = read_file_arguments(id_column, no_id, drop, None, na_value)
        _check_files(model, table, output, as_json)
        with suppress_output(quiet):
            fitted, names, rows = _load_model_and_rows(model, table, table_format, settings, unseen, notes)
            draw_trees(fitted, notes)
            with notes.time_step("placing"), notes.capture_warnings():
                placements = fitted.place(rows, nearest, level)
                names = names or list(placements.row_names)
                notes.add(describe_rows(fitted, rows, names, placements.log_density, "place is that of the prior"))
        columns = placements.columns() | {"row": names}
        write_rows(columns, {"level": level}, output, as_json, notes)
        notes.say(f"placed {count(len(placements), 'row')}")


def _check_files(model: Path, table: Path, output: Path | None, as_json: bool) -> None:
    check_one_reader({"MODEL": model, "TABLE": table})
    check_one_writer(as_json, {"--output -": output})
    check_output(output, {"the model": model, "the table": table})


def _load_model(path: Path, notes: Notes) -> FittedModel:
    notes.announce(f"loading {path}")
    with notes.time_step("loading"):
        return load_clustering(path)


def _load_model_and_rows(
    path: Path,
    table: Path,
    kind: TableFormat | None,
    settings: dict[str, Any],
    unseen: UnseenCategories | None,
    notes: Notes,
) -> tuple[FittedModel, list[str] | None, NewRows]:
    """Return the model, the names of the new rows if they have some, and the rows."""
    model = _load_model(path, notes)
    file = read_new_table(locate_table(table, kind, notes), model, settings, notes)
    with notes.capture_warnings():
        rows = model.read_rows(file.frame, unseen)
    return model, None if file.row_names is None else list(file.row_names), rows


@app.command(epilog="Example: coaltree profile results/model.coaltree --columns 3")
def profile(
    model: ModelArgument,
    output: CsvOption = None,
    columns: ColumnsOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
    debug: DebugOption = False,
) -> None:
    """Write what defines each cluster: how its rows differ from all others in every column.

    The csv has a line for each cluster and column, the columns with the greatest evidence first: the typical value (mean or most
    frequent category), its spread (standard deviation or share of that category), its value elsewhere, the share of missing
    cells, the effect (difference of means in standard deviations, or Cohen's h of a category, the level), and the evidence.
    """
    with report_errors(debug):
        check_options({"--columns": columns})
        notes = Notes(quiet, verbose)
        check_one_writer(as_json, {"--output -": output})
        check_output(output, {"the model": model})
        with suppress_output(quiet):
            fitted = _load_model(model, notes)
            lines = fitted.profile.lines(columns)
        facts = {"n_rows": fitted.tree.n_leaves, "n_clusters": fitted.n_clusters}
        write_rows(lines, facts, output, as_json, notes)
        notes.say(f"{count(fitted.n_clusters, 'cluster')}, {count(len(fitted.profile.columns), 'column')}")


@app.command(epilog="Example: coaltree explain results/model.coaltree --row eagle --row trout --columns 3")
def explain(
    model: ModelArgument,
    table: Annotated[
        Path | None,
        typer.Argument(
            metavar="TABLE",
            help="New rows, with the column names of the fit; - is standard input. By default, rows of the fit are explained.",
            parser=parse_path,
            show_default=False,
        ),
    ] = None,
    output: CsvOption = None,
    row: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="A row of the fit, by name or number; repeat for several. By default all rows.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    columns: ColumnsOption = None,
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
    """Write why rows are in their clusters and not in the next best ones, column by column.

    The csv has a line for each row and column, the strongest columns first: the row's value, the typical value in its cluster
    and in the next best one, and the log ratio of the probabilities of the value in both. With that of the sizes of the clusters,
    the log ratios of a row add up to how much more probable it is in its cluster.
    """
    with report_errors(debug):
        check_options({"--columns": columns})
        notes = Notes(quiet, verbose)
        if table is not None and row:
            raise InputError("--row names rows of the fit, so it cannot be used together with a table of new rows.")
        settings = read_file_arguments(id_column, no_id, drop, None, na_value)
        if table is None:
            check_one_writer(as_json, {"--output -": output})
            check_output(output, {"the model": model})
            with suppress_output(quiet):
                fitted = _load_model(model, notes)
                known = set(fitted.tree.leaf_names)
                chosen = [int(name) if name.isdecimal() and name not in known else name for name in row or ()]
                lines = fitted.explain(chosen or range(fitted.tree.n_leaves), columns)
        else:
            _check_files(model, table, output, as_json)
            with suppress_output(quiet):
                fitted, names, rows = _load_model_and_rows(model, table, table_format, settings, unseen, notes)
                draw_trees(fitted, notes)
                with notes.time_step("placing"), notes.capture_warnings():
                    lines = fitted.explain_new(rows, columns, names=names)
        from ..workflow.profile import SIZE

        n_rows = lines["column"].count(SIZE)
        write_rows(lines, {"n_rows": n_rows}, output, as_json, notes)
        notes.say(f"explained {count(n_rows, 'row')}")


@app.command(epilog="Example: coaltree cut results/model.coaltree --n-clusters 5 -o five.csv")
@with_cut_rules()
def cut(
    tree: TreeArgument,
    output: CsvOption = None,
    from_kind: FromOption = None,
    cut_rules: CutRules = NO_RULES,
    min_cluster_size: MinClusterSizeOption = None,
    label_outliers: LabelOrAssignOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
    debug: DebugOption = False,
) -> None:
    """Cut a fitted tree into other flat clusters, without refitting.

    The csv has the name and the cluster of each row, like clusters.csv of fit. A model can be cut at another --resolution; other
    trees need --n-clusters or --height-threshold. If the model has a sample of trees, each tree is cut, and rows that share a
    cluster in most trees form a cluster.
    """
    with report_errors(debug):
        notes = Notes(quiet, verbose)
        read_cut(cut_rules, min_cluster_size)
        kind = find_tree_kind(tree, from_kind, "--from", READABLE_KINDS)
        check_one_writer(as_json, {"--output -": output})
        check_output(output, {"the tree": tree})
        with suppress_output(quiet):
            assign = None if label_outliers is None else not label_outliers
            parameters = cut_rules | {"min_cluster_size": min_cluster_size, "assign_outliers": assign}
            names, labels = _cut_labels(tree, kind, parameters, notes)
        from ..persist.result_files import clusters_csv

        if output is not None or not as_json:
            write_results({output: clusters_csv(names, labels.tolist())})
        sizes = [int((labels == k).sum()) for k in range(int(labels.max()) + 1)]
        if as_json:
            print_json(
                {
                    "input": str(tree),
                    "n_rows": len(names),
                    "n_clusters": len(sizes),
                    "cluster_sizes": sizes,
                    "clusters": dict(zip(names, labels.tolist(), strict=True)) if output is None else None,
                    "output": None if output is None else str(output),
                    "remarks": notes.sentences,
                }
            )
        notes.say(f"{count(len(sizes), 'cluster')} of {join_limited(sizes, 12)} {'row' if sizes == [1] else 'rows'}")


def _cut_labels(path: Path, kind: str, rules: dict[str, Any], notes: Notes) -> tuple[Sequence[str], NDArray[np.intp]]:
    """Return the names of the rows and their clusters."""
    if kind != "model":
        tree = read_tree_file(path, kind, notes)
        return tree.leaf_names, cut_leaves(tree, change_cut(Cut(), **rules))
    model = _load_model(path, notes)
    cut = change_cut(model.cluster_settings, **rules)
    check_cut_rows(cut, model.tree.n_leaves, f"the model has {count(model.tree.n_leaves, 'row')}")
    labels = model.cut(cut)
    notes.add(model.describe_small_groups(cut, labels))
    return model.tree.leaf_names, labels
