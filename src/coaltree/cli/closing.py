"""The words after a fit: what was found, and where it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..output.search_words import HELD_ENOUGH, WHY_FEW_HELD
from ..table.wording import count
from .overview import listed


def closing_words(facts: dict[str, Any], files: list[str], outdir: Path) -> str:
    """Say what was found, and where it is."""
    lines = {
        "missing": _missing(facts),
        "search": _search(facts),
        "tree": f"height {_number(facts['tree_height'])}, log joint {_number(facts['log_joint'])}",
        "ties": _ties(facts),
        "sample": _sample(facts),
        "verdict": facts.get("verdict"),
        "clusters": _clusters(facts),
        "results": f"{', '.join(files)} in {outdir}",
    }
    return "\n".join(f"{name:<10}{text}" for name, text in lines.items() if text)


def _missing(facts: dict[str, Any]) -> str:
    """Say how many cells are missing, and where that is not all of the table, of which columns."""
    n_used = sum(column["used"] for column in facts["columns"])
    if not n_used:
        return ""
    of_columns = "" if n_used == len(facts["columns"]) else f" of the {count(n_used, 'column')} in use"
    return f"{100 * facts['missing_share']:.3g} % of the cells{of_columns}"


def _ties(facts: dict[str, Any]) -> str:
    """Say that rows are not told apart, and what to do about it."""
    from ..tree.zero_heights import told_apart

    if not facts["zero_heights"]:
        return ""
    advice = told_apart(facts["parameters"], facts["inference"] != "greedy", "--noise 0.001", "--inference smc")
    return "; ".join(filter(None, (facts["zero_heights"], advice)))


def _clusters(facts: dict[str, Any]) -> str:
    """Say how many clusters there are, who chose them, and whether there was anything to choose."""
    from ..estimators.modelling import RESOLUTION
    from ..output.few_rows import FEWEST_ROWS, too_little

    reasons = {
        "n_clusters": "as asked for",
        "height": "cut at the height",
        "resolution": f"at resolution {facts['resolution']}",
        "gap": "parted by a gap in the heights of the tree",
        "no structure": "as the heights of the tree show no structure",
        "default resolution": f"at the default resolution {RESOLUTION:g}, as no gap in the heights is clear",
        "likelihood ratio": "chosen by the model",
    }
    found = (
        f"{facts['n_clusters']}, {reasons[facts['clusters_chosen_by']]}, of {listed(facts['cluster_sizes'], 12)} "
        f"{'row' if facts['cluster_sizes'] == [1] else 'rows'}"
    )
    if facts["n_outliers"]:
        found += f"; {count(facts['n_outliers'], 'outlier')}"
    return found if facts["n_rows"] >= FEWEST_ROWS else f"{found}; {too_little(facts['n_rows'])}"


def _search(facts: dict[str, Any]) -> str:
    """Say how partners were looked for, if not among all pairs, and what to do if they were hard to find."""
    held = facts["neighbors_held"]
    if facts["search"] != "neighbors":
        return ""
    if held is None:
        return "among near rows"
    found = f"among near rows; {100 * held:.0f} % of the lists held the best partner"
    return found if held >= HELD_ENOUGH else f"{found}: {WHY_FEW_HELD}"


def _sample(facts: dict[str, Any]) -> str:
    """Say what sample of trees there is, if there is one."""
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
