"""The criteria for the experiments, written down before they were run, and whether they are met."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

from . import figure2, wals_restoration
from .outcome import Estimate
from .tables import (
    HEADINGS,
    format_signed,
    gain,
    markdown,
    paired,
    published,
    read,
    restoration_lead,
    scores,
    separation,
)

Verdict = tuple[str, str, bool]


def verdicts(folder: Path) -> str:
    """Return all criteria with their results, as a table in Markdown."""
    lines = [*_table1(folder), *_figure2(folder), *_wals(folder), *_nips(folder)]
    return markdown(
        ["criterion", "result", "met"],
        [[what, result, "yes" if is_met else "**no**"] for what, result, is_met in lines],
    )


def _table1(folder: Path) -> Iterator[Verdict]:
    rows = read(folder, "table1")
    for method, ours in (("average link", "average link"), ("coalescent", "coalescent, 10 rounds")):
        own_score, paper_score = (
            scores(rows, "MNIST, unit variance", ours)["purity"],
            published("MNIST", method)["purity"],
        )
        what = f"MNIST, unit variance: purity of {method} within two standard errors of the paper"
        yield what, f"{own_score}, paper {paper_score}", abs(separation(own_score, paper_score)) <= 2
    for data in ("above 0", "medians"):
        own_scores, paper_scores = (
            scores(rows, f"SPAMBASE, {data}", "coalescent, 10 rounds"),
            published("SPAMBASE", "coalescent"),
        )
        differences = [separation(own_scores[score], paper_scores[score]) for score in HEADINGS]
        what = f"SPAMBASE, {data}: all scores of the coalescent within two standard errors of the paper, or better"
        yield (
            what,
            ", ".join(f"{difference:+.1f}" for difference in differences) + " standard errors",
            min(differences) >= -2,
        )


def _figure2(folder: Path) -> Iterator[Verdict]:
    rows = read(folder, "figure2")
    differences = [
        paired(figure2.in_case(rows, case), (figure2.SMC[0], other), ["run"], "log_predictive")
        for case in figure2.cases()
        for other in (*figure2.SMC[1:], figure2.GREEDY)
    ]
    worst = min(differences, key=lambda difference: difference.mean / difference.error)
    what = f"Figure 2: post-post at least as good as the others within two standard errors, in all {len(differences)} comparisons"
    yield what, f"worst difference {format_signed(worst)}", worst.mean >= -2 * worst.error
    gains = [
        gain(rows, panel, method)
        for panel in ("columns", "rows", "particles")
        for method in (*figure2.SMC, figure2.GREEDY)
        if (panel, method) != ("particles", figure2.GREEDY)
    ]
    least = min(gains, key=lambda estimate: estimate.mean)
    yield (
        "Figure 2: every method improves with more columns, rows and particles",
        f"smallest gain {format_signed(least)}",
        least.mean > 0,
    )


def _wals(folder: Path) -> Iterator[Verdict]:
    genera = {row["genus"]: row for row in read(folder, "wals_genera")}
    for name in ("Germanic", "Romance", "Slavic"):
        row = genera[name]
        description = f"{row['shared']} of {row['languages']} languages in a clade of {row['clade']}"
        yield f"Languages: {name} is a clade, or nearly", description, float(row["jaccard"]) > 0.8
    rows = wals_restoration.with_best_components(read(folder, "wals_restoration"))
    for share in ("0.2", "0.3", "0.4"):
        what = f"WALS imputation, {float(share):.0%}: coaltree best, or within one standard error of the best baseline"
        if all(row["share"] != share for row in rows):
            yield what, "not run yet", False
            continue
        ours, rival, lead = restoration_lead(rows, share)
        yield what, f"{ours} minus {rival}: {format_signed(lead)}", lead.mean >= -_error(lead)


def _error(estimate: Estimate) -> float:
    return 0.0 if math.isnan(estimate.error) else estimate.error


def _nips(folder: Path) -> Iterator[Verdict]:
    for row in read(folder, "nips_time"):
        seconds = float(row["wall_seconds"])
        what = f"NIPS, words of {row['text']}: less than a minute with two threads"
        yield what, f"{seconds:.0f} seconds", seconds < 60
