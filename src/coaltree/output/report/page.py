"""The page itself: facts in, one HTML file out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib import resources
from typing import Any

import numpy as np

from ...extras import need
from ...table.wording import count
from ..few_rows import FEWEST_ROWS, too_little
from ..palette import PALETTE
from .clusters import cluster_views
from .facts import ReportFacts
from .numbers import significant, written
from .parameters import categorical_parameters, real_parameters, shared_parameters
from .picture import picture
from .surprises import odd_cells, odd_rows
from .words import how_examined, odds, shortened, support_view, verdicts

MOST_POINTS = 300  # of a line, which is as many units wide
_SCRIPTS = ("tree.js", "table.js", "words.js", "drawing.js", "reading.js", "search.js", "page.js")
_CHOICES = {
    "n_clusters": "as many as were asked for",
    "height": "by cutting the tree at the height that was asked for",
    "resolution": "at a resolution of {}",
    "gap": "where a gap in the heights of the tree is clear",
    "no structure": "as the heights of the tree show no structure",
    "default resolution": "at the default resolution, as no gap in the heights of the tree is clear",
    "likelihood ratio": "where the model prefers one tree to two",
}


def check_packages() -> None:
    """Refuse a report that could not be written, before any work is done.

    Raises
    ------
    MissingDependencyError
        If a package is not installed.
    """
    for package in ("jinja2", "plotly"):
        need(package, "Reports need", "report")


def page(facts: ReportFacts) -> str:
    """Return the HTML of a report; the same for the same facts.

    Parameters
    ----------
    facts : ReportFacts

    Returns
    -------
    str
        All in one: styles, script and plotly.js are in it, and nothing is asked of any host.
    """
    check_packages()
    from jinja2 import DictLoader, Environment, StrictUndefined
    from markupsafe import Markup
    from plotly.offline import get_plotlyjs

    environment = Environment(
        loader=DictLoader({"report.html": _template("report.html")}),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["odds"] = odds
    environment.filters["shortened"] = shortened
    environment.filters["written"] = lambda value: written(significant(value))
    drawn = picture(facts)
    rows, cells = odd_rows(facts.columns, facts.examined), odd_cells(facts.columns, facts.examined)
    clusters, sizes = cluster_views(facts, drawn["colors"]), np.bincount(facts.labels)
    return environment.get_template("report.html").render(
        facts=facts,
        names=facts.tree.leaf_names,
        counted=count,
        enough=facts.tree.n_leaves >= FEWEST_ROWS,
        too_little=too_little(facts.tree.n_leaves),
        n_missing=sum(int(column.missing.sum()) for column in facts.columns),
        choice=_CHOICES[facts.clusters_chosen_by].format(facts.resolution),
        n_tips=len(drawn["names"]),
        searched=drawn["members"] is not None,
        clusters=clusters,
        n_shown=sum(own.number < facts.n_clusters for own in clusters),
        sizes=np.sort(sizes[: facts.n_clusters])[::-1].tolist(),
        n_outliers=int(sizes[facts.n_clusters :].sum()),
        support=support_view(facts),
        shared=shared_parameters(facts),
        real=real_parameters(facts),
        categorical=categorical_parameters(facts),
        verdicts=verdicts(facts, rows, cells),
        examined=how_examined(facts),
        traces=_traces(facts),
        odd_rows=rows,
        odd_cells=cells,
        styles=Markup(_template("report.css")),
        script=Markup("\n".join(map(_template, _SCRIPTS))),
        plotly=Markup(get_plotlyjs()),
        picture=Markup(embedded_json(drawn)),
    )


def embedded_json(data: Any) -> str:
    r"""Write data as JSON that may stand inside of a script element: nothing in it can end the element.

    Examples
    --------
    >>> embedded_json(["</script>", "a & b"])
    '["\\u003c/script\\u003e","a \\u0026 b"]'
    """
    text = json.dumps(
        data, separators=(",", ":"), allow_nan=False
    )  # in ASCII, line separators and lone surrogates escaped
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _template(name: str) -> str:
    return (resources.files(__package__) / "templates" / name).read_text(encoding="utf-8")


def _lines(series: Sequence[Sequence[float]]) -> list[list[str]]:
    """Return the points of lines through values, all by one scale, in a box of 300 by 60; none for fewer than two values."""
    finite = [[value for value in values if np.isfinite(value)] for values in series]
    every = [value for values in finite for value in values] or [0.0]
    low, span = min(every), (max(every) - min(every)) or 1.0
    return [
        [f"{300 * k / (len(values) - 1):.1f},{60 - 60 * (value - low) / span:.1f}" for k, value in enumerate(values)]
        if len(values) > 1
        else []
        for values in finite
    ]


def _traces(facts: ReportFacts) -> list[tuple[str, list[str]]]:
    """Return the colour and the line of each Markov chain, of long ones evenly some points."""
    if facts.chains is None:
        return []
    drawn = [trace[:: -(-len(trace) // MOST_POINTS)] for trace in facts.chains.traces]
    return [(PALETTE[k % len(PALETTE)], line) for k, line in enumerate(_lines(drawn)) if line]
