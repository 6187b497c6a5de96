"""The command ``demo``: cluster an example table, and compare the clusters with the known classes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .app import Notes, app, report_errors
from .fit import add_report, check_outdir, fit_and_write
from .io import print_json
from .options import OUTPUT, DebugOption, JsonOption, QuietOption, VerboseOption, parse_path
from .summaries import describe_fit, print_table
from .terminal import write_output

if TYPE_CHECKING:
    from ..table.columns import Table
    from ..workflow.model import FittedModel

_DEMO_SEED = 0
_DEMO_MISSING = 0.3
_CULTIVARS = ("Barolo", "Grignolino", "Barbera")


@app.command(epilog="Example: coaltree demo -o wines")
def demo(
    outdir: Annotated[
        Path,
        typer.Option(
            "--outdir",
            "-o",
            metavar="OUTDIR",
            help="Folder for the results.",
            rich_help_panel=OUTPUT,
            parser=parse_path,
        ),
    ] = Path("coaltree-demo"),
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
    debug: DebugOption = False,
) -> None:
    """Cluster 178 wines after removing three in ten of their measurements.

    The wines are of three cultivars. The model sees only the measurements and chooses the number of clusters. At the end, its
    clusters and those of Ward's method are compared with the cultivars. Writes the same files as fit --report.
    """
    with report_errors(debug):
        outdir = check_outdir(outdir)
        notes = Notes(quiet, verbose)
        from .._atomic import OutputFolder
        from ..report.page import check_packages
        from ..workflow.settings import ClusterSettings

        check_packages()
        table, classes = _demo_table()
        settings = {"erased_share": _DEMO_MISSING, "erased_seed": _DEMO_SEED}
        fit_settings = ClusterSettings(n_jobs=-1)
        with OutputFolder(outdir) as folder:
            print_table(table, "wine", {}, notes)
            model, facts = fit_and_write(fit_settings, table, "wine", settings, notes, folder, True)
            add_report(model, f"{len(classes)} wines", True, notes, folder)
        agreement = _agreement(model, table, classes)
        if as_json:
            print_json(facts | agreement | {"outdir": str(outdir), "files": folder.names})
        elif not quiet:
            write_output(describe_fit(facts, folder.names, outdir))
            write_output(
                "\nAgreement of the clusters with the three cultivars (adjusted Rand index: 0 is chance, 1 is perfect):\n"
                f"coaltree       {agreement['adjusted_rand_index']:.2f}  chooses the number of clusters itself\n"
                f"Ward's method  {agreement['ward_adjusted_rand_index']:.2f}  is given the number, and missing cells filled with "
                "column means"
            )
            write_output(
                f"\nOpen {outdir / 'report.html'} in a browser to see the tree next to the table, and how the clusters differ."
            )
            write_output("To cluster your own table: coaltree fit TABLE.csv -o OUTDIR --report")


def _demo_table() -> tuple[Table, list[int]]:
    import numpy as np
    from sklearn.datasets import load_wine

    from ..table.columns import read_columns

    wine = load_wine()
    cells = wine.data.copy()
    cells[np.random.default_rng(_DEMO_SEED).random(cells.shape) < _DEMO_MISSING] = np.nan
    classes = wine.target.tolist()
    names = [f"{_CULTIVARS[c]} {classes[: i + 1].count(c)}" for i, c in enumerate(classes)]
    return read_columns(cells, feature_names=list(wine.feature_names), row_names=names), classes


def _agreement(model: FittedModel, table: Table, classes: Sequence[int]) -> dict[str, float]:
    """Compare the tree and the clusters with the cultivars; also those of Ward's method, with missing cells filled by means."""
    import numpy as np
    from sklearn.cluster import AgglomerativeClustering
    from sklearn.impute import SimpleImputer
    from sklearn.metrics import adjusted_rand_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from ..metrics import dendrogram_purity
    from ..table.columns import RealColumn

    cells = np.column_stack([column.values for column in table.columns if isinstance(column, RealColumn)])
    ward = make_pipeline(SimpleImputer(), StandardScaler(), AgglomerativeClustering(len(_CULTIVARS), linkage="ward"))
    return {
        "dendrogram_purity": dendrogram_purity(model.tree, classes),
        "adjusted_rand_index": float(adjusted_rand_score(classes, model.labels)),
        "ward_adjusted_rand_index": float(adjusted_rand_score(classes, ward.fit_predict(cells))),
    }
