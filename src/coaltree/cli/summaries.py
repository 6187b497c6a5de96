"""Summaries that commands print: of a table, of a fit, and of new rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._validation import quote
from ..table.labels import count, listing
from .app import Notes
from .io import print_json
from .terminal import write_output

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ..table.columns import Table
    from ..table.read_file import FileTable
    from ..workflow.model import FittedModel, NewRows
    from ..workflow.settings import Settings

MAX_NAME_CHARACTERS = 30
_TYPES = {"Boolean": "yes or no", "String": "text", "Null": "empty"}


def describe_table(table: Table, source: str) -> str:
    """Return how the table was read, in two lines."""
    characters = [column.datatype for column in table.categorical if column.datatype]
    categorical = [column for column in table.categorical if not column.datatype]
    kinds = [
        f"{len(columns)} {kind} ({join_limited([_short_name(column.name) for column in columns], 4)})"
        for kind, columns in (("real", table.real), ("categorical", categorical))
        if columns
    ]
    if characters:
        kinds.append(f"{count(len(characters), 'character')} ({', '.join(sorted(set(characters)))})")
    names = f", row names from column {quote(table.id_column)}" if table.id_column else ""
    if table.row_names is None:
        names = ", numbered from 0"
    return f"{source}: {count(table.n_rows, 'row')}{names}\ncolumns: {', '.join(kinds)}"


def print_table(table: Table, source: str, reasons: Mapping[str, str], notes: Notes) -> None:
    """Print how the table was read, before any long computation; with --verbose, column by column."""
    notes.say(describe_table(table, source))
    if notes.verbose:
        notes.detail(column_listing(column_facts(table, reasons)))


def print_dry_run(
    table: Table,
    source: str,
    reasons: Mapping[str, str],
    as_json: bool,
    notes: Notes,
    settings: Settings,
) -> None:
    """Print how a fit would read the table, which is all that a dry run does."""
    from ..table.encoding import describe
    from ..workflow.fit import prepare_table

    characters, encoding = prepare_table(table, settings)
    notes.add([*characters.remarks, *describe(characters.table, encoding)])
    facts = column_facts(table, reasons)
    if as_json:
        print_json(
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
        write_output(f"{describe_table(table, source)}\n{column_listing(facts)}")


def explain_kinds(file: FileTable) -> dict[str, str]:
    """Return for each column of a file why it is real or categorical."""
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
    """Return the name, kind, reason, categories and missing cells of each column."""
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
    """Return a listing of the columns, one per line."""
    lines = [("column", "kind", "missing", "because it is")]
    for fact in facts:
        states = (
            f", {count(fact['n_categories'], 'category', 'categories')}" if fact["n_categories"] is not None else ""
        )
        lines.append(
            (_short_name(fact["name"]), fact["kind"], f"{100 * fact['missing_share']:.3g} %", fact["reason"] + states)
        )
    widths = [max(_text_width(line[k]) for line in lines) for k in range(3)]
    return "\n".join(
        f"  {name}{' ' * (widths[0] - _text_width(name))}  {kind:<{widths[1]}}  {missing:>{widths[2]}}  {reason}"
        for name, kind, missing, reason in lines
    )


def _short_name(name: str) -> str:
    from ..tree.layout import display_name

    return display_name(name, MAX_NAME_CHARACTERS)


def _text_width(text: str) -> int:
    """Return the width of a text on a terminal."""
    from ..tree.layout import display_width

    return int(display_width(text, 2.0))


def parameter_listing(parameters: Mapping[str, Mapping[str, Any]]) -> str:
    """Return a listing of the parameters by column, one per line."""
    return "\n".join(
        f"  {_short_name(name)}: {', '.join(f'{parameter} {_format_value(value)}' for parameter, value in values.items())}"
        for name, values in parameters.items()
    )


def _format_value(value: Any) -> str:
    if isinstance(value, Mapping):
        shares = [f"{state} {share:.3g}" for state, share in value.items()]
        return f"({join_limited(shares, 8)})"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def join_limited(values: Sequence[object], limit: int) -> str:
    """Join the first values by commas, and say how many more there are."""
    if len(values) <= limit:
        return ", ".join(map(str, values))
    return f"{', '.join(map(str, values[:limit]))}, and {len(values) - limit} more"


def describe_fit(facts: dict[str, Any], files: list[str], outdir: Path) -> str:
    """Return the summary of a fit: its results and files."""
    lines = {
        "missing": _describe_missing(facts),
        "model": _describe_partitions(facts),
        "search": _describe_search(facts),
        "tree": f"height {_number(facts['tree_height'])}, log joint {_number(facts['log_joint'])}",
        "ties": _describe_ties(facts),
        "sample": _describe_sample(facts),
        "verdict": facts.get("verdict"),
        "clusters": _describe_clusters(facts),
        "evidence": _describe_evidence(facts),
        "results": f"{', '.join(files)} in {outdir}",
    }
    return "\n".join(f"{name:<10}{text}" for name, text in lines.items() if text)


def _describe_evidence(facts: dict[str, Any]) -> str:
    """Return the comparison of models, one on each line, if there is one."""
    if not facts.get("evidence"):
        return str(facts.get("evidence_in_words", ""))
    lines = [facts["evidence_in_words"]]
    for model in facts["evidence"]:
        against = "" if model["words"] == "best" else f"; log Bayes factor {model['log_bayes_factor']:.1f}"
        error = f" ± {model['bayes_factor_error']:.1g}" if against and model["bayes_factor_error"] is not None else ""
        evidence_error = (
            f" (runs differ by {model['run_range']:.2g})"
            if model["standard_error"] is None
            else f" ± {model['standard_error']:.1g}"
        )
        fitted = count(model["fitted_parameters"], "fitted parameter")
        lines.append(
            f"{model['model']}: log evidence {model['log_evidence']:.1f}{evidence_error}, "
            f"penalty {model['penalty']:.1f} for {fitted}{against}{error}; {model['words']}"
        )
    return f"\n{' ' * 10}".join(lines)


def _describe_missing(facts: dict[str, Any]) -> str:
    """Return the share of missing cells, in the columns in use."""
    n_used = sum(column["used"] for column in facts["columns"])
    if not n_used:
        return ""
    of_columns = "" if n_used == len(facts["columns"]) else f" of the {count(n_used, 'column')} in use"
    return f"{100 * facts['missing_share']:.3g} % of the cells{of_columns}"


def _describe_partitions(facts: dict[str, Any]) -> str:
    """Return the models of the partitions of characters, one on each line, if there are any."""
    from ..report.text import describe_partition

    return f"\n{' ' * 10}".join(map(describe_partition, facts["partitions"]))


def _describe_ties(facts: dict[str, Any]) -> str:
    """Return how many merges are at height 0, and what to do about it."""
    from ..report.text import suggest_finer_tree

    if not facts["zero_heights"]:
        return ""
    advice = suggest_finer_tree(facts["parameters"], facts["inference"] != "greedy", "--noise 0.001", "--inference smc")
    return "; ".join(filter(None, (facts["zero_heights"], advice)))


def _describe_clusters(facts: dict[str, Any]) -> str:
    """Return the number of clusters, the rule that chose them, and their sizes."""
    from ..report.text import MIN_ROWS, describe_few_rows

    sentence = (
        f"{facts['n_clusters']} ({join_limited(facts['cluster_sizes'], 12)} "
        f"{'row' if facts['cluster_sizes'] == [1] else 'rows'}), {facts['clusters_chosen_in_words']}"
    )
    if facts["n_outliers"]:
        sentence += f"; {count(facts['n_outliers'], 'outlier')}"
    return sentence if facts["n_rows"] >= MIN_ROWS else f"{sentence}; {describe_few_rows(facts['n_rows'])}"


def _describe_search(facts: dict[str, Any]) -> str:
    """Return how good the neighbour search was, and what to do if it was poor; empty for an exact search."""
    from ..report.text import LOW_RECALL_ADVICE, MIN_RECALL

    recall = facts["neighbor_recall"]
    if facts["search"] != "neighbors":
        return ""
    if recall is None:
        return "among near rows"
    description = f"among near rows; {100 * recall:.0f} % of the lists held the best partner"
    return description if recall >= MIN_RECALL else f"{description}: {LOW_RECALL_ADVICE}"


def _describe_sample(facts: dict[str, Any]) -> str:
    """Return the size and quality of the sample of trees, if there is one."""
    if "n_trees" not in facts:
        return ""
    if facts["inference"] == "mcmc":
        return (
            f"{facts['n_trees']} trees from {count(facts['n_chains'], 'chain')}, each after a warm-up of "
            f"{count(facts['warmup'], 'sample')}"
        )
    error = facts["log_evidence_se"]
    return (
        f"{facts['n_trees']} trees, {facts['n_distinct_trees']} distinct, as good as {facts['effective_size']:.1f} of "
        f"equal weight; log evidence {_number(facts['log_evidence'])}"
        + (f", standard error {error:.2g}" if error is not None else "")
    )


def _number(value: float | None) -> str:
    return "not finite" if value is None else f"{value:.6g}"


FAR_LOG_DENSITY = 1000.0  # a row is far away if its log density is so much lower than that of all rows of the fit
MAX_COMPARED_ROWS = 1000  # rows of the fit, evenly spaced


def describe_rows(
    model: FittedModel, rows: NewRows, names: Sequence[str], log_density: ArrayLike, instead: str
) -> list[str]:
    """Return remarks on rows without observed cells, and on rows far from the table of the fit.

    Parameters
    ----------
    model : FittedModel
    rows : NewRows
    names : sequence of str
        Their names.
    log_density : array-like of shape (n_rows,)
        Log density of each row.
    instead : str
        The answer for a row without observed cells, in words.

    Returns
    -------
    list of str
    """
    import numpy as np

    fitted = model.predictor.X
    some = fitted[np.linspace(0, len(fitted) - 1, min(len(fitted), MAX_COMPARED_ROWS)).astype(np.intp)]
    # In standard units, because the density in the units of the columns depends on which cells a row has.
    standard = np.asarray(log_density) - model.log_jacobian(rows.table)
    far = np.flatnonzero(standard < model.predictor.log_density(some).min() - FAR_LOG_DENSITY)
    unknown = np.flatnonzero(np.isnan(rows.matrix).all(axis=1))
    lines = []
    if len(unknown):
        lines.append(
            f"{count(len(unknown), 'row has', 'rows have')} no observed cell ({_list_names(names, unknown)}): "
            f"{'its' if len(unknown) == 1 else 'for each, the'} {instead}."
        )
    if len(far):
        lines.append(
            f"{count(len(far), 'row is', 'rows are')} far outside the table of the fit ({_list_names(names, far)}), with a log "
            f"density more than {FAR_LOG_DENSITY:,.0f} below that of the rows of the fit: check units and cells."
        )
    return lines


def _list_names(names: Sequence[str], rows: Any) -> str:
    return listing([names[row] for row in rows])
