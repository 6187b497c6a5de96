"""``Cut``: how a tree is cut into flat clusters, declared once for Python, the command line, model files and reports.

A new rule is a field of `Cut` and an entry of `CUT_RULES` here, a function in ``tree/cut.py``, and an argument of
``CoalescentClustering.cut``. Nothing here imports NumPy: ``coaltree --help`` reads the rules.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

from ._parameters import FLAG, AnyOf, Constraint, Integer, Interval, check_parameter
from .errors import InputError


@dataclass(frozen=True)
class CutRule:
    """A rule for cutting a tree. Users choose it with a parameter of the same name.

    Parameters
    ----------
    constraint : Constraint
        The values it takes.
    kind : type
        Type of its option on the command line.
    metavar : str
        What the help shows for the value.
    help : str
        Help of the option.
    words : str
        Ends the sentence "5 clusters, ..."; ``{}`` is the value.
    for_trees : bool
        Whether it cuts trees of a file or of a sample; otherwise it needs the process of a fitted model.
    counts_rows : bool
        Whether the value is at most the number of rows.
    """

    constraint: Constraint
    kind: type
    metavar: str
    help: str
    words: str
    for_trees: bool = False
    counts_rows: bool = False


CUT_RULES = {
    "resolution": CutRule(
        Interval(0, 1, meaning="where 0 is one cluster and 1 the finest ones"),
        float,
        "X",
        "How fine the clusters are, from 0 to 1; higher gives more. The tree does not change. By default chosen by evidence.",
        "at a resolution of {}",
    ),
    "n_clusters": CutRule(
        Integer(1, as_float=True),
        int,
        "N",
        "Number of clusters. By default chosen by the model.",
        "as requested",
        for_trees=True,
        counts_rows=True,
    ),
    "height_threshold": CutRule(
        Interval(0), float, "H", "Cut the tree at this height.", "cut at a height of {}", for_trees=True
    ),
}
_SIZE = AnyOf((Integer(1, "rows", as_float=True), Interval(0, 1, open_high=True, meaning="the share of all rows")))
_CONSTRAINTS: dict[str, Constraint] = {name: rule.constraint for name, rule in CUT_RULES.items()} | {
    "min_cluster_size": _SIZE,
    "assign_outliers": FLAG,
}
DEFAULT_WORDS = {
    "one row": "because there is one row",
    "minimum size": "because no two of the given minimum size fit",
    "evidence": "by their evidence{}",
    "likelihood ratio": "where the model prefers one tree to two",
}
"""Reasons for the clusters if no rule is given: of one tree, or of a sample of trees. ``{}`` is how probable they are."""


@dataclass(kw_only=True, eq=False)
class Cut:
    """How a tree is cut into flat clusters: at most one rule, and what happens to small groups.

    See `coaltree.CoalescentClustering` for the parameters.
    """

    resolution: float | None = None
    n_clusters: int | None = None
    height_threshold: float | None = None
    min_cluster_size: float = 0.02
    assign_outliers: bool = True


CUT_PARAMETERS = tuple(field.name for field in fields(Cut))


def explicit_rule(cut: Cut, for_trees: bool = False) -> str | None:
    """Return the rule of a cut, or None for the default; `for_trees` ignores rules that need a fitted model."""
    rules = (name for name, rule in CUT_RULES.items() if rule.for_trees or not for_trees)
    return next((name for name in rules if getattr(cut, name) is not None), None)


def check_cut(cut: Cut, n_rows: int | None = None, *, limit: str = "", spell: Callable[[str], str] = str) -> None:
    """Raise unless a cut has at most one rule, and all its values are allowed.

    Parameters
    ----------
    cut : Cut
    n_rows : int, optional
        Rows of the table or leaves of the tree, if known.
    limit : str, optional
        What has so many rows, for messages; for example "the tree has 3 leaves".
    spell : callable, optional
        How messages spell a parameter.

    Raises
    ------
    InputError
        With the value and what is allowed.
    """
    rules = [name for name in CUT_RULES if getattr(cut, name) is not None]
    if len(rules) > 1:
        names = " and ".join(map(spell, rules))
        raise InputError(f"{names} exclude each other, because each cuts the tree; give one of them, or none.")
    for name in (*rules, "min_cluster_size", "assign_outliers"):
        check_parameter(spell(name), getattr(cut, name), _CONSTRAINTS[name])
    for name in rules:
        if n_rows is not None and CUT_RULES[name].counts_rows and getattr(cut, name) > n_rows:
            limit = limit or f"the table has {n_rows:,} {'row' if n_rows == 1 else 'rows'}"
            raise InputError(f"{spell(name)} is {getattr(cut, name)}, but {limit}; give 1 to {n_rows:,}.")


def change_cut(cut: Cut, **rules: Any) -> Cut:
    """Return the cut of a fit with other parameters; those that are None do not change.

    A rule that is given replaces the resolution of the fit. Its other rules are dropped.
    """
    rules = {name: value for name, value in rules.items() if value is not None}
    kept_fields = ["min_cluster_size", "assign_outliers"] + ["resolution"] * rules.keys().isdisjoint(CUT_RULES)
    return Cut(**{name: getattr(cut, name) for name in kept_fields} | rules)


def describe_cut(cut: Cut, chosen_by: str, chances: str = "") -> str:
    """Return where a tree was cut, as the end of the sentence "5 clusters, ..."; with how probable default clusters are."""
    if chosen_by in CUT_RULES:
        return CUT_RULES[chosen_by].words.format(getattr(cut, chosen_by))
    return DEFAULT_WORDS[chosen_by].format(chances)
