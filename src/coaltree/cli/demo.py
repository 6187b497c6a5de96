"""The command ``demo``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..console import Notes, reported
from .application import app
from .closing import closing_words
from .fitting import checked_folder, fit_and_draw
from .options import OUTPUT, DebugOption, JsonOption, QuietOption, VerboseOption, named
from .overview import introduce
from .results import tell

if TYPE_CHECKING:
    from ..estimators.clustering import CoalescentClustering
    from ..table.columns import Table

_DEMO_SEED = 0
_DEMO_MISSING = 0.1
_CULTIVARS = ("Barolo", "Grignolino", "Barbera")


@app.command(epilog="Example: coaltree demo -o wines")
def demo(
    outdir: Annotated[
        Path,
        typer.Option(
            "--outdir", "-o", metavar="OUTDIR", help="Folder for the results.", rich_help_panel=OUTPUT, parser=named
        ),
    ] = Path("coaltree-demo"),
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
    debug: DebugOption = False,
) -> None:
    """Cluster 178 wines, a tenth of whose measurements have been erased.

    The wines are of three cultivars. The model sees the measurements only and is asked for three clusters;
    tree and clusters are compared with the cultivars at the end. Writes the same files as fit.
    """
    with reported(debug):
        outdir = checked_folder(outdir)
        notes = Notes(quiet, verbose)
        from ..estimators.clustering import CoalescentClustering
        from ..whole import OutputFolder

        table, classes = _demo_table()
        settings = {"erased_share": _DEMO_MISSING, "erased_seed": _DEMO_SEED, "n_clusters": len(_CULTIVARS)}
        model = CoalescentClustering(n_clusters=len(_CULTIVARS), n_jobs=-1)
        with OutputFolder(outdir) as folder:
            introduce(table, "wine", {}, notes)
            facts = fit_and_draw(model, table, "wine", settings, notes, folder)
        purity, rand_index = _agreement(model, classes)
        if as_json:
            tell(
                facts
                | {"dendrogram_purity": purity, "adjusted_rand_index": rand_index}
                | {"outdir": str(outdir), "files": folder.names}
            )
        elif not quiet:
            typer.echo(closing_words(facts, folder.names, outdir))
            typer.echo(
                "\nAgainst the three cultivars, which the model has not seen: dendrogram purity of the tree "
                f"{purity:.3f},\nadjusted Rand index of the clusters {rand_index:.2f}."
            )
            typer.echo("\nWith a table of your own: coaltree fit TABLE.csv -o OUTDIR")


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


def _agreement(model: CoalescentClustering, classes: Sequence[int]) -> tuple[float, float]:
    """Compare tree and clusters with the cultivars."""
    from sklearn.metrics import adjusted_rand_score

    from ..metrics import dendrogram_purity

    return dendrogram_purity(model.tree_, classes), float(adjusted_rand_score(classes, model.labels_))
