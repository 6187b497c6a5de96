"""The page itself: facts in, one HTML file out."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._optional import require_package
from ..plot.style import PALETTE, color_nodes
from ..plot.visible_tree import VisibleTree, select_visible
from ..table.messages import count
from ..tree.summary import SummaryTree
from .facts import ColumnFacts, RealFacts, ReportFacts
from .messages import MIN_ROWS, describe_few_rows
from .numbers import beside, given_values, mean_beside, moments, significant, written
from .sections import (
    categorical_parameters,
    cluster_views,
    differences,
    odd_cells,
    odd_rows,
    real_parameters,
    shared_parameters,
    strongest,
    tally,
)
from .text import how_examined, odds, shortened, support_view, verdicts

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

MOST_CHARACTERS = 8_000_000  # of leaves in collapsed clades, up to which their names can be searched for
MOST_APART = 3  # columns that are named for a clade
LEAST_EFFECT = 0.3


def picture(facts: ReportFacts) -> dict[str, Any]:
    """Return what is drawn, as JSON knows it; tips are numbered as in the drawn tree.

    Parameters
    ----------
    facts : ReportFacts

    Returns
    -------
    dict
        Its ``children``, ``heights``, ``counts`` and ``names`` are the drawn tree; ``clusters`` has that of each node, -1 for
        several; ``columns`` the cells by tip; ``apart`` what sets each clade apart.
    """
    visible = select_visible(facts.tree, "auto")
    painted = color_nodes(facts.tree, visible.nodes, visible.n_tips, facts.labels.tolist(), None)
    # Colours are in the order of the clusters' first rows, as clusters are numbered, but for outliers, whose number is the last.
    numbers = np.array([*dict.fromkeys(facts.labels.tolist()), -1])
    colors = dict(zip(numbers.tolist(), painted.shades, strict=True))
    tips = _tips_of_rows(visible)
    tallies = [tally(column, tips, visible.n_tips) for column in facts.columns]
    return {
        "children": visible.tree.children.ravel().tolist(),
        "heights": [significant(height) for height in visible.heights.tolist()],
        "counts": visible.counts.tolist(),
        "names": _names(visible),
        "members": _members(visible, tips),
        "support": _support(visible),
        "ratios": _of_merges(visible, facts.log_ratios),
        "outliers": facts.n_clusters if facts.outliers else None,
        "clusters": numbers[painted.of_nodes].tolist(),
        "colors": [colors[number] for number in (*range(len(numbers) - 1), -1)],
        "columns": [
            _column(column, own, visible, facts.holes) for column, own in zip(facts.columns, tallies, strict=True)
        ],
        "apart": _apart(facts.columns, tallies, visible),
    }


def _tips_of_rows(visible: VisibleTree) -> IntArray:
    """Return the tip that each row is at or below."""
    order = visible.tree.leaf_order
    tips = np.empty(visible.original.n_leaves, dtype=np.intp)
    tips[visible.original.leaf_order] = np.repeat(order, visible.counts[order])
    return tips


def _names(visible: VisibleTree) -> list[str | None]:
    nodes, counts = visible.nodes[: visible.n_tips].tolist(), visible.counts.tolist()
    return [visible.original.leaf_names[node] if n == 1 else None for node, n in zip(nodes, counts, strict=True)]


def _members(visible: VisibleTree, tips: IntArray) -> list[list[str]] | None:
    """Return the leaves of each tip, if it takes several and there are not too many."""
    if visible.n_tips == visible.original.n_leaves or sum(map(len, visible.original.leaf_names)) > MOST_CHARACTERS:
        return None
    members: list[list[str]] = [[] for _ in range(visible.n_tips)]
    for tip, name in zip(tips.tolist(), visible.original.leaf_names, strict=True):
        members[tip].append(name)
    return members


def _support(visible: VisibleTree) -> list[float | None] | None:
    """Return the support of each drawn node; None for leaves and for what only resolves a polytomy."""
    if not isinstance(visible.original, SummaryTree):
        return None
    return _of_merges(visible, visible.original.support)


def _of_merges(visible: VisibleTree, values: FloatArray) -> list[float | None]:
    """Return what is known of each drawn node, given what is known of each merge of the whole tree; None for the rest."""
    known = np.concatenate([np.full(visible.original.n_leaves, np.nan), values])[visible.nodes]
    return [significant(value, 3) if np.isfinite(value) else None for value in known.tolist()]


def _column(column: ColumnFacts, own: FloatArray, visible: VisibleTree, with_holes: IntArray) -> dict[str, Any]:
    """Return the cells of a column: of leaves as they are, of clades what their script can add up."""
    whole = visible.n_tips == visible.original.n_leaves
    holes = np.flatnonzero(column.missing[with_holes]).tolist()
    if isinstance(column, RealFacts):
        found: dict[str, Any] = {
            "name": column.name,
            "mean": significant(column.mean, 12),
            "sd": significant(column.sd),
            "time": column.time,
        }
        values = column.values
        if not whole:
            means = column.mean + column.sd * own[:, 1] / np.maximum(own[:, 0], 1)
            values = np.where(own[:, 0] > 0, means, np.nan)
        found["values"] = moments(values) if column.time else given_values(values)
        if not whole:
            found["seen"] = own[:, 0].astype(int).tolist()
        found["expected"] = [
            [int(with_holes[k]), beside(mean, sd), beside(sd, sd)]
            for k in holes
            if (sd := float(column.filled_sd[k])) < np.inf and (mean := float(column.filled[k])) == mean
        ]
        return found
    found = {"name": column.name, "categories": list(column.categories)}
    if whole:
        found["codes"] = column.codes.tolist()
    else:
        found["tally"] = own.astype(int).tolist()
    found["expected"] = [
        [int(with_holes[k]), int(column.filled[k].argmax()), significant(float(column.filled[k].max()), 3)]
        for k in holes
    ]
    return found


def _apart(
    columns: tuple[ColumnFacts, ...], tallies: list[FloatArray], visible: VisibleTree
) -> list[list[list[float | int]] | None]:
    """Return for each drawn node the columns that set it apart: column, mean or share inside and outside, category."""
    tree = visible.tree
    first, last = tree.first_positions, tree.first_positions + tree.leaf_counts
    found = []
    for column, own in zip(columns, tallies, strict=True):
        sums = np.concatenate([np.zeros((1, own.shape[1])), np.cumsum(own[tree.leaf_order], axis=0)])
        found.append(differences(column, sums[last] - sums[first], sums[-1]))
    sizes = visible.original.leaf_counts[visible.nodes].tolist()
    apart: list[list[list[float | int]] | None] = []
    for node, size in enumerate(sizes):
        if size == 1:
            apart.append(None)
            continue
        best = strongest(found, node, MOST_APART, LEAST_EFFECT)
        apart.append(
            [
                [
                    j,
                    _shortened(columns[j], float(found[j].inside[node])),
                    _shortened(columns[j], float(found[j].outside[node])),
                    int(found[j].category[node]),
                ]
                for j in best
            ]
        )
    return apart


def _shortened(column: ColumnFacts, mean: float) -> float:
    """Return a mean or a share to as many digits as are read."""
    return mean_beside(mean, column.sd) if isinstance(column, RealFacts) else significant(mean, 4)


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
        require_package(package, "Reports need", "report")


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
    theme_script, plotly = _template("theme.js"), get_plotlyjs().replace("\r\n", "\n").replace("\r", "\n")
    page_script = '"use strict";\n(() => {\n' + "\n".join(map(_template, _SCRIPTS)) + "\n})();\n"
    drawing = picture(facts)
    rows, cells = odd_rows(facts.columns, facts.examined), odd_cells(facts.columns, facts.examined)
    clusters, sizes = cluster_views(facts, drawing["colors"]), np.bincount(facts.labels)
    return environment.get_template("report.html").render(
        facts=facts,
        names=facts.tree.leaf_names,
        counted=count,
        enough=facts.tree.n_leaves >= MIN_ROWS,
        too_few_rows=describe_few_rows(facts.tree.n_leaves),
        n_missing=sum(int(column.missing.sum()) for column in facts.columns),
        choice=_CHOICES[facts.clusters_chosen_by].format(facts.resolution),
        n_tips=len(drawing["names"]),
        searched=drawing["members"] is not None,
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
        theme_script=Markup(theme_script),
        plotly=Markup(plotly),
        page_script=Markup(page_script),
        policy=content_security_policy([theme_script, plotly, page_script]),
        picture=Markup(embedded_json(drawing)),
    )


def content_security_policy(scripts: Sequence[str]) -> str:
    """Return a policy under which a page runs these inline scripts only, and loads nothing from outside.

    Names are escaped wherever the page shows them; should one escape anyway, the browser does not run it. Styles are
    inline because plotly writes them; without a host to load from they cannot leak anything. Plotly makes pictures for
    download as blobs.

    Parameters
    ----------
    scripts : sequence of str
        The text of each script element as browsers see it, without carriage returns.

    Returns
    -------
    str
        The content of the meta element, which works for files opened from disk too.
    """
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in scripts]
    sources = " ".join(f"'sha256-{digest}'" for digest in hashes)
    return (
        f"default-src 'none'; script-src {sources}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
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
    visible = [trace[:: -(-len(trace) // MOST_POINTS)] for trace in facts.chains.traces]
    return [(PALETTE[k % len(PALETTE)], line) for k, line in enumerate(_lines(visible)) if line]
