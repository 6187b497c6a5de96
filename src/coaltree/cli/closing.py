"""The words after a fit: what was found, and where it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..table.wording import count
from .overview import listed

_HELD_ENOUGH = 0.5  # share of lists of neighbours that held the best partner
_FEW_HELD = (
    "many partners are about equally good, as with much noise, or the lists are too short; for up to some 50,000 rows try "
    "--search exact"
)


def closing_words(facts: dict[str, Any], files: list[str], outdir: Path) -> str:
    """Say what was found, and where it is."""
    reasons = {
        "n_clusters": "as asked for",
        "height": "cut at the height",
        "likelihood ratio": "chosen by the model",
    }
    lines = {
        "missing": f"{100 * facts['missing_share']:.3g} % of the cells",
        "search": _search(facts),
        "tree": f"height {_number(facts['tree_height'])}, log joint {_number(facts['log_joint'])}",
        "ties": facts["zero_heights"],
        "sample": _sample(facts),
        "verdict": facts.get("verdict"),
        "clusters": f"{facts['n_clusters']}, {reasons[facts['clusters_chosen_by']]}, of "
        f"{listed(facts['cluster_sizes'], 12)} {'row' if facts['cluster_sizes'] == [1] else 'rows'}",
        "results": f"{', '.join(files)} in {outdir}",
    }
    return "\n".join(f"{name:<10}{text}" for name, text in lines.items() if text)


def _search(facts: dict[str, Any]) -> str:
    """Say how partners were looked for, if not among all pairs, and what to do if they were hard to find."""
    held = facts["neighbors_held"]
    if facts["search"] != "neighbors":
        return ""
    if held is None:
        return "among near rows"
    found = f"among near rows; {100 * held:.0f} % of the lists held the best partner"
    return found if held >= _HELD_ENOUGH else f"{found}: {_FEW_HELD}"


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
