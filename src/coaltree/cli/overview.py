"""How a table was understood: in two lines, or column by column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer

from ..console import Notes
from ..table.wording import count
from ..tree.drawn_names import name_width, shown_name
from .results import tell

if TYPE_CHECKING:
    from ..table.columns import Table
    from ..table.reading import FileTable

_NAME_CHARACTERS = 30
_TYPES = {"Boolean": "yes or no", "String": "text", "Null": "empty"}


def opening_words(table: Table, source: str) -> str:
    """Say how the table was understood."""
    kinds = [
        f"{len(columns)} {kind} ({listed([_shown_name(column.name) for column in columns], 4)})"
        for kind, columns in (("real", table.real), ("categorical", table.categorical))
        if columns
    ]
    names = f", row names from column {table.id_column!r}" if table.id_column else ""
    if table.row_names is None:
        names = ", numbered from 0"
    return f"{source}: {count(table.n_rows, 'row')}{names}\ncolumns: {', '.join(kinds)}"


def introduce(table: Table, source: str, reasons: Mapping[str, str], notes: Notes) -> None:
    """Say how the table was understood before anything long begins, and to those who ask for more, column by column."""
    notes.say(opening_words(table, source))
    if notes.verbose:
        notes.detail(column_listing(column_facts(table, reasons)))


def show_only(
    table: Table,
    source: str,
    reasons: Mapping[str, str],
    as_json: bool,
    notes: Notes,
    standardize: bool | str = True,
) -> None:
    """Write how a fit would understand the table, which is all that a dry run does."""
    from ..table.encoding import describe, fit_encoding

    notes.add(describe(table, fit_encoding(table, standardize)))
    facts = column_facts(table, reasons)
    if as_json:
        tell(
            {
                "input": source,
                "n_rows": table.n_rows,
                "n_columns": len(facts),
                "id_column": table.id_column,
                "columns": facts,
                "remarks": notes.sentences,
            }
        )
    else:
        typer.echo(f"{opening_words(table, source)}\n{column_listing(facts)}")


def reasons_for_kinds(file: FileTable) -> dict[str, str]:
    """Say for each column of a file what makes it real or categorical."""
    reasons = {name: _type_in_words(dtype) for name, dtype in file.frame.schema.items()}
    reasons |= dict.fromkeys(file.categorical, "declared by --categorical")
    return reasons | dict.fromkeys(file.real, "declared by --real")


def _type_in_words(dtype: Any) -> str:
    if dtype.is_temporal():
        return "dates or times"
    if dtype.is_numeric():
        return "numbers"
    return _TYPES.get(str(dtype), "of a category type")


def column_facts(table: Table, reasons: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return for each column its name, its kind and why, its categories and its missing cells."""
    from ..table.columns import CategoricalColumn, missing_cells

    facts = []
    for column in table.columns:
        n_missing = int(missing_cells(column).sum())
        categorical = isinstance(column, CategoricalColumn)
        facts.append(
            {
                "name": column.name,
                "kind": "categorical" if categorical else "real",
                "reason": reasons.get(column.name, "numbers"),
                "n_categories": len(column.categories) if isinstance(column, CategoricalColumn) else None,
                "n_missing": n_missing,
                "missing_share": n_missing / table.n_rows,
            }
        )
    return facts


def column_listing(facts: Sequence[Mapping[str, Any]]) -> str:
    """Write what is known of the columns, one a line."""
    lines = [("column", "kind", "missing", "because it is")]
    for fact in facts:
        states = (
            f", {count(fact['n_categories'], 'category', 'categories')}" if fact["n_categories"] is not None else ""
        )
        lines.append(
            (_shown_name(fact["name"]), fact["kind"], f"{100 * fact['missing_share']:.3g} %", fact["reason"] + states)
        )
    widths = [max(_columns(line[k]) for line in lines) for k in range(3)]
    return "\n".join(
        f"  {name}{' ' * (widths[0] - _columns(name))}  {kind:<{widths[1]}}  {missing:>{widths[2]}}  {reason}"
        for name, kind, missing, reason in lines
    )


def _shown_name(name: str) -> str:
    return shown_name(name, _NAME_CHARACTERS, " ")


def _columns(text: str) -> int:
    """Return the room of a text on a terminal."""
    return int(name_width(text, 2.0))


def parameter_listing(parameters: Mapping[str, Mapping[str, Any]]) -> str:
    """Write the fitted parameters of the columns, one a line."""
    return "\n".join(
        f"  {_shown_name(name)}: {', '.join(f'{what} {_shown(value)}' for what, value in own.items())}"
        for name, own in parameters.items()
    )


def _shown(value: Any) -> str:
    if isinstance(value, Mapping):
        shares = [f"{state} {share:.3g}" for state, share in value.items()]
        return f"({listed(shares, 8)})"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def listed(values: Sequence[object], limit: int) -> str:
    """List the first of some values, and say how many more there are."""
    if len(values) <= limit:
        return ", ".join(map(str, values))
    return f"{', '.join(map(str, values[:limit]))}, and {len(values) - limit} more"
