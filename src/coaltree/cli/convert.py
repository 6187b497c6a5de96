"""The command ``convert``: convert a tree to another format."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .._parameters import TreeFormat
from ..table.messages import count
from .app import Notes, app, report_errors
from .io import (
    READABLE_KINDS,
    WRITABLE_KINDS,
    FromOption,
    TreeArgument,
    check_output,
    find_tree_kind,
    print_json,
    read_tree_file,
    write_results,
)
from .options import OUTPUT, DebugOption, JsonOption, QuietOption, VerboseOption, check_one_writer, parse_path


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
        check_one_writer(as_json, {"OUT -": output})
        check_output(output, {"the tree": tree})
        found = read_tree_file(tree, kinds[0], notes)
        from ..persist.tree_files import tree_bytes

        if kinds[1] == "npy":
            notes.add([f"{output.name} has no room for the names of leaves, which are numbered as rows from 0."])
        write_results({output: tree_bytes(found, kinds[1])})
        if as_json:
            print_json(
                {
                    "input": str(tree),
                    "from": kinds[0],
                    "output": str(output),
                    "to": kinds[1],
                    "n_leaves": found.n_leaves,
                    "tree_height": float(found.heights[-1]),
                    "remarks": notes.sentences,
                }
            )
        notes.say(
            f"{count(found.n_leaves, 'leaf', 'leaves')}, height {found.heights[-1]:.6g}: {kinds[0]} to {kinds[1]}"
        )
