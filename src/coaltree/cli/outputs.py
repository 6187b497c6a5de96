"""The commands ``plot``, ``report`` and ``convert``: pictures, reports and files of a model or a tree."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast, get_args

import typer

from .._cut import explicit_rule
from .._parameters import Integer, Layout, Orientation, PictureFormat, TreeFormat, check_option
from ..errors import InputError
from ..table.labels import count
from .app import Notes, app, report_errors, suppress_output
from .io import (
    READABLE_KINDS,
    WRITABLE_KINDS,
    FromOption,
    TreeArgument,
    check_output,
    cut_leaves,
    draw_trees,
    find_tree_kind,
    load_clustering,
    print_json,
    read_model_record,
    read_tree_file,
    write_results,
)
from .options import (
    NO_RULES,
    OUTPUT,
    STANDARD_STREAM,
    CutRules,
    DebugOption,
    JsonOption,
    ModelArgument,
    QuietOption,
    QuoteNamesOption,
    VerboseOption,
    check_one_writer,
    parse_path,
    read_cut,
    with_cut_rules,
)

if TYPE_CHECKING:
    from ..tree.tree import Tree

_SMALLEST, _LARGEST = 1, 60


@app.command(epilog="Example: coaltree plot results/model.coaltree -o animals.svg --n-clusters 4")
@with_cut_rules(for_trees=True)
def plot(
    tree: TreeArgument,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="OUT",
            help="Image file to write: .png, .svg or .pdf; - is standard output.",
            rich_help_panel=OUTPUT,
            parser=parse_path,
        ),
    ],
    from_kind: FromOption = None,
    to_kind: Annotated[
        PictureFormat | None,
        typer.Option(
            "--to",
            metavar="KIND",
            help="png, svg or pdf. By default from the file extension, and png for -.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    cut_rules: CutRules = NO_RULES,
    collapse: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Collapse the tree to its N oldest clades. By default 50 for trees with more than 2,000 leaves.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    orientation: Annotated[
        Orientation,
        typer.Option(metavar="SIDE", help="Side of the root: left, right, top or bottom.", rich_help_panel=OUTPUT),
    ] = "left",
    layout: Annotated[
        Layout,
        typer.Option(
            metavar="LAYOUT", help="rectangular, or circular with the root in the centre.", rich_help_panel=OUTPUT
        ),
    ] = "rectangular",
    width: Annotated[
        float | None,
        typer.Option(
            metavar="INCHES", help="Width of the plot. By default what the names need.", rich_help_panel=OUTPUT
        ),
    ] = None,
    height: Annotated[
        float | None,
        typer.Option(
            metavar="INCHES", help="Height of the plot. By default what the names need.", rich_help_panel=OUTPUT
        ),
    ] = None,
    no_names: Annotated[
        bool, typer.Option("--no-names", help="Do not show leaf names.", rich_help_panel=OUTPUT)
    ] = False,
    title: Annotated[str, typer.Option(metavar="TEXT", help="Title above the tree.", rich_help_panel=OUTPUT)] = "",
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
    debug: DebugOption = False,
) -> None:
    """Draw a tree.

    Branches are coloured by cluster: the clusters of the model, or those of the options. Merges show their support if the
    tree has it. Leaf names are left out if there is no room for them.
    """
    with report_errors(debug):
        notes = Notes(quiet, verbose)
        cut = read_cut(cut_rules)
        check_option("--collapse", collapse, Integer(1))
        for option, inches in (("--width", width), ("--height", height)):
            if inches is not None and not _SMALLEST <= inches <= _LARGEST:
                raise InputError(
                    f"{option} is {inches:g}; it must be a number of inches from {_SMALLEST} to {_LARGEST}."
                )
        from_name, to_name = find_tree_kind(tree, from_kind, "--from", READABLE_KINDS), _picture_kind(output, to_kind)
        check_output(output, {"the tree": tree})
        parsed_tree, labels = _read_labelled_tree(tree, from_name, notes)
        if explicit_rule(cut) is not None:
            labels = cut_leaves(parsed_tree, cut)
        from ..plot.dendrogram import dendrogram_bytes

        with notes.time_step("drawing"):
            picture = dendrogram_bytes(
                parsed_tree,
                labels=labels,
                title=title,
                kind=to_name,
                width=width,
                height=height,
                orientation=orientation,
                layout=layout,
                names=not no_names,
                collapse="auto" if collapse is None else collapse,
            )
        write_results({output: picture})
        notes.say(
            f"{count(parsed_tree.n_leaves, 'leaf', 'leaves')}, height {parsed_tree.heights[-1]:.6g}: drawn as {to_name}"
        )


def _picture_kind(output: Path, picture_format: PictureFormat | None) -> PictureFormat:
    """Return the kind of a picture: as given, or by the ending of its name."""
    if picture_format is not None:
        return picture_format
    if output == STANDARD_STREAM:
        return "png"
    ending = output.suffix.lower().removeprefix(".")
    for kind in get_args(PictureFormat):
        if ending == kind:
            return cast(PictureFormat, kind)
    raise InputError(
        f"{output.name}: unsupported format of a picture; supported are .png, .svg and .pdf. For another name, give --to."
    )


def _read_labelled_tree(path: Path, kind: str, notes: Notes) -> tuple[Tree, Any]:
    """Return a tree, and the clusters of its leaves if it comes from a model that has clusters."""
    if kind == "model":
        with notes.time_step("loading"):
            record, _ = read_model_record(path)
            return record.tree, record.labels
    return read_tree_file(path, kind, notes), None


@app.command(epilog="Example: coaltree report results/model.coaltree -o report.html")
def report(
    model: ModelArgument,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE.html",
            help="File to write; - is standard output.",
            rich_help_panel=OUTPUT,
            parser=parse_path,
        ),
    ],
    title: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT", help="Title of the report. By default the number of rows.", rich_help_panel=OUTPUT
        ),
    ] = None,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
    debug: DebugOption = False,
) -> None:
    """Write a report on a model: one HTML file that works offline.

    It shows what defines each cluster, the tree next to the table, the parameters, and rows and cells that do not fit the rest.
    """
    with report_errors(debug):
        check_output(output, {"the model": model})
        notes = Notes(quiet, verbose)
        with suppress_output(quiet):
            with notes.time_step("loading"):
                fitted = load_clustering(model)
            draw_trees(fitted, notes)
            from ..report.build import report_page

            with notes.time_step("report"):
                page = report_page(fitted, title)
        write_results({output: page})
        notes.say(
            f"{count(fitted.tree.n_leaves, 'row')}, {count(fitted.n_clusters, 'cluster')}: one page, to be opened in a browser"
        )


@app.command(epilog="Example: coaltree convert results/model.coaltree animals.nex")
def convert(
    tree: TreeArgument,
    output: Annotated[
        Path,
        typer.Argument(
            metavar="OUT",
            help="The file to write: .nwk, .nex, .csv or .npy (linkage) or .json; - is standard output.",
            parser=parse_path,
        ),
    ],
    from_kind: FromOption = None,
    to_kind: Annotated[
        TreeFormat | None,
        typer.Option(
            "--to",
            metavar="KIND",
            help="newick, nexus, linkage, npy or json. By default from the file extension.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    quote_names: QuoteNamesOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
    debug: DebugOption = False,
) -> None:
    """Convert a tree to another format.

    Reads rooted binary trees whose leaves all have the same height, and the tree of a model. Leaf names are kept, except in
    .npy, which cannot store them. SciPy linkage has heights as distances; as .csv it has two more columns with leaf names.
    Support values are kept in Newick, NEXUS and JSON.
    """
    with report_errors(debug):
        notes = Notes(quiet, verbose)
        kinds = (
            find_tree_kind(tree, from_kind, "--from", READABLE_KINDS),
            find_tree_kind(output, to_kind, "--to", WRITABLE_KINDS),
        )
        if quote_names and kinds[1] not in ("newick", "nexus"):
            raise InputError(f"--quote-names is for Newick and NEXUS files, and OUT is {kinds[1]}: leave it out.")
        check_one_writer(as_json, {"OUT -": output})
        check_output(output, {"the tree": tree})
        parsed_tree = read_tree_file(tree, kinds[0], notes)
        from ..persist.tree_files import tree_bytes

        if kinds[1] == "npy":
            notes.add([f"{output.name} has no room for the names of leaves, which are numbered as rows from 0."])
        write_results({output: tree_bytes(parsed_tree, kinds[1], quote_names)})
        if as_json:
            print_json(
                {
                    "input": str(tree),
                    "from": kinds[0],
                    "output": str(output),
                    "to": kinds[1],
                    "n_leaves": parsed_tree.n_leaves,
                    "tree_height": float(parsed_tree.heights[-1]),
                    "remarks": notes.sentences,
                }
            )
        notes.say(
            f"{count(parsed_tree.n_leaves, 'leaf', 'leaves')}, height {parsed_tree.heights[-1]:.6g}: {kinds[0]} to {kinds[1]}"
        )
