"""The command ``report``: a model in, one HTML file out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..console import Notes, hushed, reported
from ..table.wording import count
from .application import app
from .models import draw_trees, load_clustering
from .options import OUTPUT, DebugOption, ModelArgument, QuietOption, VerboseOption, named
from .results import check_result, deliver


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
            parser=named,
        ),
    ],
    title: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT", help="Heading of the report; by default the number of rows.", rich_help_panel=OUTPUT
        ),
    ] = None,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
    debug: DebugOption = False,
) -> None:
    """Write a report on a model: one HTML file that works offline.

    It shows the tree beside the table, the clusters and what sets them apart, the fitted parameters, and rows and cells
    that do not fit the rest.
    """
    with reported(debug):
        check_result(output, {"the model": model})
        notes = Notes(quiet, verbose)
        with hushed(quiet):
            with notes.timed("loading"):
                fitted = load_clustering(model)
            draw_trees(fitted, notes)
            from ..estimators.reporting import report_page

            with notes.timed("report"):
                page = report_page(fitted, title)
        deliver({output: page})
        notes.say(
            f"{count(fitted.tree_.n_leaves, 'row')}, {count(fitted.n_clusters_, 'cluster')}: one page, to be opened in a browser"
        )
