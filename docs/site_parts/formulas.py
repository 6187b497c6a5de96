r"""Formulas of the pages as drawings in the page itself: nothing is loaded, from the web or from disk.

Pages write TeX between dollar signs, as GitHub shows it; ``\tag{3.2}`` gives a formula its number, which the code cites
as ``eq. (3.2)``. matplotlib turns it into one path of an SVG, of the colour of the text around it. Its TeX has no
environments of several lines.
"""

from __future__ import annotations

import html
import re
from functools import cache
from typing import Any

from matplotlib import rc_context
from matplotlib.font_manager import FontProperties
from matplotlib.path import Path
from matplotlib.textpath import TextPath, text_to_path

SIZE = 100.0  # units of the drawing to an em
LETTERS = {Path.MOVETO: "M", Path.LINETO: "L", Path.CURVE3: "Q", Path.CURVE4: "C", Path.CLOSEPOLY: "Z"}
ROLE = re.compile(r":math:<code>(.*?)</code>", re.DOTALL)  # in docstrings
WRAPPED = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)
NUMBER = re.compile(r"\\tag\{([^}]*)\}")
NUMBERED = re.compile(r"^\$\$[^$]*\\tag\{([^}]*)\}[^$]*\$\$", re.MULTILINE)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Give every numbered formula an anchor to link to, such as ``#eq-3.2``."""
    return NUMBERED.sub(r'<div id="eq-\1"></div>\n\n\g<0>', markdown)


def on_page_content(content: str, **_: Any) -> str:
    """Draw what arithmatex has wrapped, and the formulas of docstrings."""
    return WRAPPED.sub(_drawn, ROLE.sub(lambda found: svg(html.unescape(found[1])), content))


def _drawn(found: re.Match[str]) -> str:
    tex = html.unescape(found[2])
    if found[1] == "span":
        return svg(tex)
    numbers = NUMBER.findall(tex)
    picture = svg(" ".join(NUMBER.sub("", tex).split()).replace(r"\frac", r"\dfrac"))
    shown = "".join(f'<span class="number">({number})</span>' for number in numbers)
    return f'<div class="formula">{picture}{shown}</div>'


@cache
def svg(tex: str) -> str:
    """Return a formula as SVG that stands on the line of the text, in its size."""
    with rc_context({"mathtext.fontset": "cm"}):
        font = FontProperties(size=SIZE)
        width, height, depth = text_to_path.get_text_width_height_descent(f"${tex}$", font, ismath=True)
        path = TextPath((0, 0), f"${tex}$", prop=font)
    steps = []
    for points, code in path.iter_segments(curves=True, simplify=False):
        # the drawing's y goes down
        numbers = [f"{value if k % 2 == 0 else -value:.0f}" for k, value in enumerate(points)]
        steps.append(LETTERS[code] + ("" if code == Path.CLOSEPOLY else " ".join(numbers)))
    top, bottom, right = height - depth + 5, depth + 5, width + 4
    return (
        f'<svg class="tex" role="img" aria-label="{html.escape(tex)}" viewBox="0 {-top:.0f} {right:.0f} {top + bottom:.0f}" '
        f'style="width:{right / SIZE:.2f}em;height:{(top + bottom) / SIZE:.2f}em;vertical-align:{-bottom / SIZE:.2f}em">'
        f'<path d="{"".join(steps)}"/></svg>'
    )
