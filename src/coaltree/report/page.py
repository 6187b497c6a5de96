"""The page of a report: facts in, one self-contained HTML file out."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._validation import escape_controls, require_package
from ..plot.style import color_nodes, distinct_colors
from ..plot.visible_tree import VisibleTree, select_visible
from ..table.labels import count
from ..table.scaling import ColumnScale
from ..tree.tree import SummaryTree
from ..workflow.profile import differences, tally
from .facts import ColumnFacts, RealFacts, ReportFacts
from .sections import (
    categorical_parameters,
    cluster_views,
    describe_held_out,
    odd_cells,
    odd_rows,
    real_parameters,
    shared_parameters,
    strongest_columns,
    support_view,
)
from .text import (
    MIN_ROWS,
    describe_few_rows,
    format_number,
    format_odds,
    restore_values,
    round_mean,
    round_significant,
    round_times,
    round_to_sd,
    shorten_name,
)
from .verdicts import verdicts

if TYPE_CHECKING:
    from jinja2 import Template

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

MAX_NAME_CHARACTERS = 8_000_000  # names of leaves in collapsed clades can be searched up to this total length
MAX_CLADE_COLUMNS = 3  # columns named for a clade
MIN_CLADE_EFFECT = 0.3


def picture_data(facts: ReportFacts) -> dict[str, Any]:
    """Return the data of the picture for JSON; nodes are numbered as in the visible tree.

    Parameters
    ----------
    facts : ReportFacts

    Returns
    -------
    dict
        ``children``, ``heights``, ``counts`` and ``names`` describe the visible tree; ``clusters`` has the cluster of each
        node, -1 for several; ``columns`` the cells by tip; ``apart`` the columns in which each clade differs.
    """
    visible = select_visible(facts.tree, "auto")
    node_colors = color_nodes(facts.tree, visible.nodes, visible.n_tips, facts.labels.tolist(), None)
    # Colours follow the clusters' first rows, as the numbers of clusters do, except for outliers, which come last.
    numbers = np.array([*dict.fromkeys(facts.labels.tolist()), -1])
    colors = dict(zip(numbers.tolist(), node_colors.shades, strict=True))
    tips = _tips_of_rows(visible)
    tallies = [tally(column.cells, tips, visible.n_tips, len(column.categories)) for column in facts.columns]
    return {
        "children": visible.tree.children.ravel().tolist(),
        "heights": [round_significant(height) for height in visible.heights.tolist()],
        "counts": visible.counts.tolist(),
        "names": _names(visible),
        "members": _members(visible, tips),
        "support": _support(visible),
        "ratios": _merge_values(visible, facts.log_ratios),
        "outliers": facts.n_clusters if facts.outliers else None,
        "clusters": numbers[node_colors.node_shades].tolist(),
        "colors": [colors[number] for number in (*range(len(numbers) - 1), -1)],
        "columns": [
            _column(column, tally_of_column, visible, facts.incomplete_rows)
            for column, tally_of_column in zip(facts.columns, tallies, strict=True)
        ],
        "apart": _clade_differences(facts.columns, tallies, visible),
    }


def _tips_of_rows(visible: VisibleTree) -> IntArray:
    """Return the tip of each row."""
    order = visible.tree.leaf_order
    tips = np.empty(visible.original.n_leaves, dtype=np.intp)
    tips[visible.original.leaf_order] = np.repeat(order, visible.counts[order])
    return tips


def _names(visible: VisibleTree) -> list[str | None]:
    nodes, counts = visible.nodes[: visible.n_tips].tolist(), visible.counts.tolist()
    names = visible.original.leaf_names
    return [escape_controls(names[node]) if n == 1 else None for node, n in zip(nodes, counts, strict=True)]


def _members(visible: VisibleTree, tips: IntArray) -> list[list[str]] | None:
    """Return the names of each tip's leaves, if the tree is collapsed and the names are not too long."""
    if visible.n_tips == visible.original.n_leaves or sum(map(len, visible.original.leaf_names)) > MAX_NAME_CHARACTERS:
        return None
    members: list[list[str]] = [[] for _ in range(visible.n_tips)]
    for tip, name in zip(tips.tolist(), visible.original.leaf_names, strict=True):
        members[tip].append(escape_controls(name))
    return members


def _support(visible: VisibleTree) -> list[float | None] | None:
    """Return the support of each visible node; None for leaves and for merges that only resolve a polytomy."""
    if not isinstance(visible.original, SummaryTree):
        return None
    return _merge_values(visible, visible.original.support)


def _merge_values(visible: VisibleTree, values: FloatArray) -> list[float | None]:
    """Return the values of the visible nodes, given those of all merges; None where there is none."""
    known = np.concatenate([np.full(visible.original.n_leaves, np.nan), values])[visible.nodes]
    return [round_significant(value, 3) if np.isfinite(value) else None for value in known.tolist()]


def _column(column: ColumnFacts, sums: FloatArray, visible: VisibleTree, incomplete_rows: IntArray) -> dict[str, Any]:
    """Return the cells of a column: values of leaves, or sums of clades that the script combines."""
    is_complete = visible.n_tips == visible.original.n_leaves
    missing_places = np.flatnonzero(column.missing[incomplete_rows]).tolist()
    if isinstance(column, RealFacts):
        view: dict[str, Any] = {
            "name": escape_controls(column.name),
            "mean": round_significant(column.mean, 12),
            "sd": round_significant(column.sd),
            "time": column.time,
        }
        values = column.values
        if not is_complete:
            means = column.mean + column.sd * sums[:, 1] / np.maximum(sums[:, 0], 1)
            values = np.where(sums[:, 0] > 0, means, np.nan)
        view["values"] = round_times(values) if column.time else restore_values(values)
        if not is_complete:
            view["seen"] = sums[:, 0].astype(int).tolist()
        view["expected"] = [
            [int(incomplete_rows[k]), round_to_sd(mean, sd), round_to_sd(sd, sd)]
            for k in missing_places
            if (sd := float(column.filled_sd[k])) < np.inf and (mean := float(column.filled[k])) == mean
        ]
        return view
    view = {"name": escape_controls(column.name), "categories": list(map(escape_controls, column.categories))}
    if is_complete:
        view["codes"] = column.codes.tolist()
    else:
        view["tally"] = sums.astype(int).tolist()
    view["expected"] = [
        [int(incomplete_rows[k]), int(column.filled[k].argmax()), round_significant(float(column.filled[k].max()), 3)]
        for k in missing_places
    ]
    return view


def _clade_differences(
    columns: tuple[ColumnFacts, ...], tallies: list[FloatArray], visible: VisibleTree
) -> list[list[list[float | int]] | None]:
    """Return the columns in which each visible clade differs most, with mean or share inside and outside, and category."""
    tree = visible.tree
    first, last = tree.first_positions, tree.first_positions + tree.leaf_counts
    differences_by_column = []
    for column, tally_of_column in zip(columns, tallies, strict=True):
        sums = np.concatenate(
            [np.zeros((1, tally_of_column.shape[1])), np.cumsum(tally_of_column[tree.leaf_order], axis=0)]
        )
        differences_by_column.append(differences(sums[last] - sums[first], sums[-1], len(column.categories)))
    sizes = visible.original.leaf_counts[visible.nodes].tolist()
    apart: list[list[list[float | int]] | None] = []
    for node, size in enumerate(sizes):
        if size == 1:
            apart.append(None)
            continue
        best = strongest_columns(differences_by_column, node, MAX_CLADE_COLUMNS, MIN_CLADE_EFFECT)
        apart.append(
            [
                [
                    j,
                    _round_difference(columns[j], float(differences_by_column[j].inside[node])),
                    _round_difference(columns[j], float(differences_by_column[j].outside[node])),
                    int(differences_by_column[j].category[node]),
                ]
                for j in best
            ]
        )
    return apart


def _round_difference(column: ColumnFacts, mean: float) -> float:
    """Round a standardised mean, in the units of the column, or a share for display."""
    if not isinstance(column, RealFacts):
        return round_significant(mean, 4)
    return round_mean(float(ColumnScale(column.mean, column.sd).decode(np.array(mean))), column.sd)


MAX_LINE_POINTS = 300  # points of a line, which has the same width in units
_SCRIPTS = ("tree.js", "table.js", "words.js", "drawing.js", "reading.js", "search.js", "page.js")


def check_packages() -> None:
    """Raise if a package that reports need is missing, before any work is done.

    Raises
    ------
    MissingDependencyError
        With the extra that installs it.
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
        Self-contained: styles, scripts and plotly.js are included, and nothing is loaded from outside.
    """
    check_packages()
    from markupsafe import Markup
    from plotly.offline import get_plotlyjs

    theme_script, plotly = _template("theme.js"), get_plotlyjs().replace("\r\n", "\n").replace("\r", "\n")
    page_script = '"use strict";\n(() => {\n' + "\n".join(map(_template, _SCRIPTS)) + "\n})();\n"
    drawing = picture_data(facts)
    rows, cells = odd_rows(facts.columns, facts.held_out), odd_cells(facts.columns, facts.held_out)
    clusters, sizes = cluster_views(facts, drawing["colors"]), np.bincount(facts.labels)
    return _page_template().render(
        facts=facts,
        names=facts.tree.leaf_names,
        counted=count,
        enough=facts.tree.n_leaves >= MIN_ROWS,
        too_few_rows=describe_few_rows(facts.tree.n_leaves),
        n_missing=sum(int(column.missing.sum()) for column in facts.columns),
        choice=facts.cut_words,
        n_tips=len(drawing["names"]),
        searched=drawing["members"] is not None,
        clusters=clusters,
        n_shown=sum(cluster.number < facts.n_clusters for cluster in clusters),
        sizes=np.sort(sizes[: facts.n_clusters])[::-1].tolist(),
        n_outliers=int(sizes[facts.n_clusters :].sum()),
        support=support_view(facts),
        shared=shared_parameters(facts),
        real=real_parameters(facts),
        categorical=categorical_parameters(facts),
        verdicts=verdicts(facts, rows, cells),
        held_out=describe_held_out(facts),
        traces=_chain_lines(facts),
        odd_rows=rows,
        odd_cells=cells,
        styles=Markup(_template("report.css")),
        theme_script=Markup(theme_script),
        plotly=Markup(plotly),
        page_script=Markup(page_script),
        policy=content_security_policy([theme_script, plotly, page_script]),
        picture=Markup(embedded_json(drawing)),
    )


@cache
def _page_template() -> Template:
    """Return the template of the page, cached because compiling it takes longer than filling it in."""
    from jinja2 import DictLoader, Environment, StrictUndefined

    environment = Environment(
        loader=DictLoader({"report.html": _template("report.html")}),
        autoescape=True,
        finalize=lambda value: escape_controls(value) if type(value) is str else value,  # not the markup of this page
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["format_odds"] = format_odds
    environment.filters["shorten_name"] = shorten_name
    environment.filters["format_number"] = lambda value: format_number(round_significant(value))
    return environment.get_template("report.html")


def content_security_policy(scripts: Sequence[str]) -> str:
    """Return a policy under which a page runs these inline scripts only, and loads nothing from outside.

    Names are escaped wherever the page shows them. If one is not, the browser still does not run it. Styles are
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
    r"""Write data as JSON for a script element; no text in it can end the element.

    Examples
    --------
    >>> embedded_json(["</script>", "a & b"])
    '["\\u003c/script\\u003e","a \\u0026 b"]'
    """
    # ASCII: line separators and lone surrogates are escaped.
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _template(name: str) -> str:
    return (resources.files(__package__) / "templates" / name).read_text(encoding="utf-8")


def _line_points(series: Sequence[Sequence[float]]) -> list[list[str]]:
    """Return the points of lines on one scale, in a box of 300 by 60; no points for fewer than two values."""
    finite = [[value for value in values if np.isfinite(value)] for values in series]
    every = [value for values in finite for value in values] or [0.0]
    low, span = min(every), (max(every) - min(every)) or 1.0
    return [
        [f"{300 * k / (len(values) - 1):.1f},{60 - 60 * (value - low) / span:.1f}" for k, value in enumerate(values)]
        if len(values) > 1
        else []
        for values in finite
    ]


def _chain_lines(facts: ReportFacts) -> list[tuple[str, list[str]]]:
    """Return the colour and the line of each Markov chain; long chains are thinned."""
    if facts.chains is None:
        return []
    visible = [trace[:: -(-len(trace) // MAX_LINE_POINTS)] for trace in facts.chains.traces]
    colors = distinct_colors(len(visible))
    return [(color, line) for color, line in zip(colors, _line_points(visible), strict=True) if line]
