"""Flowcharts of the pages as drawings in the page itself: nothing is loaded, from the web or from disk.

Pages write ``mermaid`` blocks, which GitHub draws. This draws their plainest form, ``a --> b`` on each line, from top to
bottom: a node stands one step below the lowest of those that point at it.
"""

from __future__ import annotations

import re
from html import escape
from typing import Any

BLOCK = re.compile(r"^```mermaid\nflowchart LR\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EDGE = re.compile(r"(\w+) --> (\w+)")
WIDTH, HEIGHT, GAP = 110, 28, 18


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace every flowchart by its drawing."""
    return BLOCK.sub(lambda found: draw(EDGE.findall(found[1])), markdown)


def draw(edges: list[tuple[str, str]]) -> str:
    """Return a flowchart as SVG, in the colours of the page.

    Parameters
    ----------
    edges : list of (str, str)
        In an order in which a node is pointed at before it points at others.
    """
    levels: dict[str, int] = {}
    for start, end in edges:
        levels.setdefault(start, 0)
        levels[end] = max(levels.get(end, 0), levels[start] + 1)
    columns = {name: sum(levels[other] == levels[name] for other in list(levels)[:i]) for i, name in enumerate(levels)}
    corners = {name: (columns[name] * (WIDTH + GAP) + 1, levels[name] * (HEIGHT + GAP) + 1) for name in levels}
    width = (max(columns.values()) + 1) * (WIDTH + GAP)
    height = (max(levels.values()) + 1) * (HEIGHT + GAP)
    lines = [
        f'<line x1="{corners[start][0] + WIDTH / 2}" y1="{corners[start][1] + HEIGHT}" '
        f'x2="{corners[end][0] + WIDTH / 2}" y2="{corners[end][1] - 3}" marker-end="url(#arrow)"></line>'
        for start, end in edges
    ]
    boxes = [
        f'<rect x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="4"></rect>'
        f'<text x="{x + WIDTH / 2}" y="{y + HEIGHT / 2 + 5}">{escape(name)}</text>'
        for name, (x, y) in corners.items()
    ]
    arrow = (
        '<marker id="arrow" viewBox="0 0 8 8" refX="6" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0,0L8,4L0,8Z"></path></marker>'
    )
    return (
        f'<svg class="flowchart" role="img" aria-label="{escape(", ".join(" to ".join(edge) for edge in edges))}" '
        f'width="{width}" height="{height}" viewBox="0 0 {width} {height}">{arrow}{"".join(lines + boxes)}</svg>'
    )
