"""Helpers for tests of reports: tables, and a parser of their pages."""

import json
from html.parser import HTMLParser

import numpy as np
import pandas as pd

from coaltree.report.sections import odd_cells, odd_rows
from coaltree.report.verdicts import verdicts

HOSTILE = (
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(1)>",
    "a,b",
    "\"quoted\" & 'single'",
    "two\nlines",
    "emoji 🦉",
    "<b>bold</b> &lt;",
)


def mixed_frame(n=36, seed=3, names=()):
    """Three groups, real and categorical columns, with holes."""
    rng = np.random.default_rng(seed)
    group = np.arange(n) % 3
    frame = pd.DataFrame(
        {
            "mass": rng.normal([2.0, 9.0, 30.0], 1.0, (n, 3))[np.arange(n), group],
            "cover": np.array(["hair", "feathers", "scales"])[np.where(rng.random(n) < 0.9, group, 0)],
            "length": rng.normal([0.0, -5.0, 3.0], 0.6, (n, 3))[np.arange(n), group],
            "<i>years</i>": rng.normal(100.0, 15.0, n).round(1),
            "flies": np.where(rng.random(n) < 0.1 + 0.8 * (group == 1), "yes", "no"),
        },
        index=[*names, *(f"row {i}" for i in range(len(names), n))],
    )
    cells = [(1, "mass"), (4, "cover"), (7, "length"), (7, "flies"), (12, "mass"), (20, "<i>years</i>")]
    for row, column in cells:
        frame.iloc[row, frame.columns.get_loc(column)] = None
    return frame


class Page(HTMLParser):
    """The text, tables and outward links of a page."""

    def __init__(self, text):
        super().__init__()
        self.words, self.tables, self.tags, self.links, self.scripts = [], [], [], [], {}
        self.headings, self._open, self._cell = {}, [], None
        self.attributes = set()
        self.feed(text)
        self.close()
        self.text = " ".join(" ".join(self.words).split())

    @property
    def data(self):
        return json.loads(self.scripts["data"])

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.tags.append(tag)
        self.attributes.update(attributes)
        self.links += [attributes[name] for name in ("src", "href", "action", "data") if name in attributes]
        if tag == "script":
            self._open.append(attributes.get("id", f"script {len(self.scripts)}"))
            self.scripts[self._open[-1]] = ""
        elif tag == "style":
            self._open.append("style")
        elif tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self._cell = len(self.tables[-1][-1])
            self.tables[-1][-1].append("")

    def handle_endtag(self, tag):
        if tag in ("script", "style"):
            self._open.pop()
        elif tag in ("td", "th"):
            self._cell = None

    def handle_data(self, data):
        if self._open:
            if self._open[-1] in self.scripts:
                self.scripts[self._open[-1]] += data
            return
        self.words.append(data)
        if self._cell is not None:
            self.tables[-1][-1][self._cell] += data

    def tables_headed(self, *head):
        """Return the rows of the tables that begin with these headings."""
        return [table[1:] for table in self.tables if table[0][: len(head)] == list(head)]


def number(text):
    """Read a number as the page writes it."""
    return float(text.replace("\N{MINUS SIGN}", "-").replace(",", "").replace(" %", "e-2").replace(" points", "e-2"))


def odd(facts):
    return odd_rows(facts.columns, facts.held_out), odd_cells(facts.columns, facts.held_out)


def verdict(facts, question):
    values = [candidate for candidate in verdicts(facts, *odd(facts)) if question in candidate.question]
    assert len(values) == 1
    return values[0]
