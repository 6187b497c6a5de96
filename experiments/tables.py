"""The tables of docs/experiments.md, made from csv files: our numbers next to the paper's."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from . import figure2, nips, paper, table1, wals_restoration
from .outcome import Estimate, group_numbers, parse_tables, read_texts

Rows = list[dict[str, str]]
RESTORATION_SCORES = ("accuracy", "log_score")
HEADINGS = {"purity": "purity", "subtree": "subtree", "leave_one_out": "leave-one-out"}


def markdown(heading: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table in Markdown."""
    lines = [list(heading), ["---"] * len(heading), *([str(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def read(folder: Path, name: str) -> Rows:
    """Read a table of results."""
    return [dict(row) for row in parse_tables(read_texts(folder, [name]))[name]]


def separation(a: Estimate, b: Estimate) -> float:
    """Return the difference of independent estimates in standard errors of it; one without an error counts as exact."""
    errors = [0.0 if math.isnan(estimate.error) else estimate.error for estimate in (a, b)]
    return (a.mean - b.mean) / math.hypot(*errors)


def paired(rows: Rows, methods: tuple[str, str], keys: Sequence[str], column: str) -> Estimate:
    """Return the mean difference of two methods over the cases that both were run on."""
    first, second = (
        {tuple(row[key] for key in keys): float(row[column]) for row in rows if row["method"] == method}
        for method in methods
    )
    return Estimate.from_values(first[key] - second[key] for key in first if key in second)


def format_signed(estimate: Estimate) -> str:
    """Return a difference as text, with its sign."""
    error = "" if math.isnan(estimate.error) else f" ± {estimate.error:.3f}"
    return f"{estimate.mean:+.3f}{error}"


# -- Table 1 ----------------------------------------------------------------------------------------------------------


def scores(rows: Rows, data: str, method: str) -> dict[str, Estimate]:
    """Return the scores of a method on a kind of table."""
    selected = [row for row in rows if row["data"] == data and row["method"] == method]
    return (
        {score: Estimate.from_values(float(row[score]) for row in selected) for score in HEADINGS} if selected else {}
    )


def published(data: str, method: str) -> dict[str, Estimate]:
    """Return the published scores of a method."""
    repeats = table1.MNIST_REPEATS if data == "MNIST" else table1.SPAMBASE_REPEATS
    return {
        score: Estimate(*numbers, repeats) for score, numbers in zip(HEADINGS, paper.TABLE1[data, method], strict=True)
    }


def table1_paper(folder: Path) -> str:
    """Compare our numbers with the paper's, with their differences in standard errors."""
    rows, lines = read(folder, "table1"), []
    for (group, method), ours in table1.PAPERS_METHODS.items():
        paper_scores = published(group, method)
        lines.append([f"**{group}, {method}**, the paper", *paper_scores.values()])
        for data in dict.fromkeys(row["data"] for row in rows if row["data"].startswith(group)):
            own_scores = scores(rows, data, ours)
            if own_scores:
                cells = [
                    f"{own_scores[score]} ({separation(own_scores[score], paper_scores[score]):+.1f})"
                    for score in HEADINGS
                ]
                lines.append([f"{data.removeprefix(group + ', ')}: {ours}", *cells])
    return markdown(["", *HEADINGS.values()], lines)


def table1_all(folder: Path, group: str) -> str:
    """Show all methods on one data set."""
    rows = [row for row in read(folder, "table1") if row["data"].startswith(group)]
    lines = []
    for data, method in dict.fromkeys((row["data"], row["method"]) for row in rows):
        values = scores(rows, data, method)
        lines.append([data.removeprefix(f"{group}, "), method, values["purity"].repeats, *values.values()])
    return markdown(["table", "method", "repeats", *HEADINGS.values()], lines)


# -- Figure 2 ---------------------------------------------------------------------------------------------------------


def figure2_middle(folder: Path) -> str:
    """Show all methods at the middle values, and their differences from post-post on the same tables."""
    rows = figure2.in_case(read(folder, "figure2"), figure2.Case())
    lines = []
    for (method,), numbers in group_numbers(rows, ["method"], "log_predictive").items():
        difference = paired(rows, (figure2.SMC[0], method), ["run"], "log_predictive")
        lines.append(
            [
                method,
                len(numbers),
                Estimate.from_values(numbers),
                "" if method == figure2.SMC[0] else format_signed(difference),
            ]
        )
    return markdown(["method", "runs", "log predictive density", "post-post minus this"], lines)


def figure2_post_post(folder: Path) -> str:
    """Show the paired differences between post-post and the others in every case."""
    rows, lines = read(folder, "figure2"), []
    others = [*figure2.SMC[1:], figure2.GREEDY]
    for panel, values in figure2.PANELS.items():
        for value in values:
            rows_of_case = figure2.in_case(rows, figure2.find_case(panel, value))
            differences = [paired(rows_of_case, (figure2.SMC[0], other), ["run"], "log_predictive") for other in others]
            lines.append([figure2.TITLES[panel], f"{value:g}", *map(format_signed, differences)])
    return markdown(["varied", "value", *(f"minus {other}" for other in others)], lines)


def gain(rows: Rows, panel: str, method: str) -> Estimate:
    """Return by how much a method is better at the last value of a panel than at the first, on the same runs."""
    first, last = (
        {row["run"]: float(row["log_predictive"]) for row in rows_of_case if row["method"] == method}
        for rows_of_case in (figure2.in_case(rows, figure2.find_case(panel, figure2.PANELS[panel][k])) for k in (0, -1))
    )
    return Estimate.from_values(last[run] - first[run] for run in last if run in first)


def figure2_gains(folder: Path) -> str:
    """Show the gain from more columns, rows and particles."""
    rows, lines = read(folder, "figure2"), []
    for panel in ("columns", "rows", "particles"):
        methods = figure2.SMC if panel == "particles" else (*figure2.SMC, figure2.GREEDY)
        first, last = figure2.PANELS[panel][0], figure2.PANELS[panel][-1]
        gains = {method: format_signed(gain(rows, panel, method)) for method in methods}
        cells = [gains.get(method, "") for method in (*figure2.SMC, figure2.GREEDY)]
        lines.append([f"{figure2.TITLES[panel]}, from {first} to {last}", *cells])
    return markdown(["", *figure2.SMC, figure2.GREEDY], lines)


# -- WALS -------------------------------------------------------------------------------------------------------------


def wals_genera(folder: Path) -> str:
    """Show how close every genus is to a clade."""
    lines = [
        [
            row["genus"],
            row["languages"],
            f"{row['shared']} of them in a clade of {row['clade']}",
            f"{float(row['jaccard']):.2f}",
            f"{float(row['sampled_jaccard']):.2f}",
            f"{float(row['support']):.2f}",
        ]
        for row in read(folder, "wals_genera")
    ]
    return markdown(
        [
            "genus",
            "languages",
            "nearest clade",
            "Jaccard",
            "Jaccard in the sample",
            "support of the genus in the sample",
        ],
        lines,
    )


def wals_restoration_table(folder: Path, score: str) -> str:
    """Show a score of all methods for every share of the atlas."""
    rows = wals_restoration.with_best_components(read(folder, "wals_restoration"))
    shares = list(dict.fromkeys(row["share"] for row in rows))
    groups = group_numbers(rows, ["method", "share"], score)
    lines = []
    for method in dict.fromkeys(row["method"] for row in rows):
        cells = [groups.get((method, share)) for share in shares]
        lines.append([method, *("" if numbers is None else Estimate.from_values(numbers) for numbers in cells)])
    folds = [str(len(groups["mode", share])) for share in shares]
    return markdown(["method", *(f"{float(share):.0%}" for share in shares)], [["folds", *folds], *lines])


def restoration_lead(rows: Rows, share: str) -> tuple[str, str, Estimate]:
    """Return the best method of coaltree, the best baseline, and their difference on the same hidden cells."""
    rows_of_share = [row for row in rows if row["share"] == share]
    means = {
        method: Estimate.from_values(numbers).mean
        for (method,), numbers in group_numbers(rows_of_share, ["method"], "accuracy").items()
    }
    ours = [m for m in means if m in (wals_restoration.TREE, wals_restoration.IMPUTER, wals_restoration.SAMPLE)]
    best, rival = (max(names, key=lambda m: means[m]) for names in (ours, [m for m in means if m not in ours]))
    return best, rival, paired(rows_of_share, (best, rival), ["fold"], "accuracy")


def wals_leads(folder: Path) -> str:
    """Compare the best method of coaltree with the best baseline."""
    rows = wals_restoration.with_best_components(read(folder, "wals_restoration"))
    lines = []
    for share in dict.fromkeys(row["share"] for row in rows):
        ours, rival, lead = restoration_lead(rows, share)
        lines.append([f"{float(share):.0%}", ours, rival, format_signed(lead)])
    return markdown(["part", "best of coaltree", "best baseline", "difference in accuracy"], lines)


def wals_drawn_table(folder: Path) -> str:
    """Compare a part of the atlas with tables simulated from the model."""
    rows, share = read(folder, "wals_restoration"), f"{wals_restoration.DRAWN_SHARE:g}"
    kinds = (wals_restoration.ATLAS, wals_restoration.DRAWN)
    headings = ["method", *(f"{kind}: {score.replace('_', ' ')}" for kind in kinds for score in RESTORATION_SCORES)]
    estimates_by_method: dict[str, list[Estimate]] = {}
    for kind in kinds:
        rows_of_share = [row for row in wals_restoration.with_best_components(rows, kind) if row["share"] == share]
        for score in RESTORATION_SCORES:
            for (method,), numbers in group_numbers(rows_of_share, ["method"], score).items():
                estimates_by_method.setdefault(method, []).append(Estimate.from_values(numbers))
    return markdown(headings, [[method, *estimates] for method, estimates in estimates_by_method.items()])


# -- NIPS -------------------------------------------------------------------------------------------------------------


def nips_clusters(folder: Path) -> str:
    """Show our clusters for both texts, then the paper's."""
    heading = ["", "documents", "log ratio", "time", "top words", "top authors"]
    ours = [
        [
            f"ours, {text}" if row["depth"] == "0" else "grand" * (int(row["depth"]) - 1) + "child clade",
            row["documents"],
            f"{float(row['log_ratio']):.3g}",
            f"{float(row['time']):.2f}",
            row["words"],
            row["authors"],
        ]
        for text in nips.TEXTS
        for row in read(folder, f"nips_{text}_clusters")
    ]
    theirs = [
        ["the paper", "", f"{ratio:g}", f"{time:.2f}", words, authors] for ratio, time, words, authors in paper.TABLE2
    ]
    return markdown(heading, [*ours, *theirs])


def nips_authors(folder: Path) -> str:
    """Show, for each cluster of the paper, the clades of our trees with the most similar top authors."""
    headings = ["the paper's words", "the paper's authors"]
    for text in reversed(nips.TEXTS):
        headings += [f"nearest clade, {text}", "documents", "distance"]
    rows = read(folder, "nips_authors")
    lines = [
        [
            row["words"],
            row["authors"],
            *(row[f"{text}_{cell}"] for text in reversed(nips.TEXTS) for cell in ("authors", "documents", "away")),
        ]
        for row in rows
    ]
    total: list[object] = ["all", sum(sum(nips.printed_counts(row["authors"]).values()) for row in rows)]
    for text in reversed(nips.TEXTS):
        total += ["", "", sum(int(row[f"{text}_away"]) for row in rows)]
    return markdown(headings, [*lines, total])


def nips_words(folder: Path) -> str:
    """List the words of the paper's table that are rarer in abstracts than the paper's own limit."""
    rows = sorted(read(folder, "nips_words"), key=lambda row: int(row["abstracts"]))
    lines = [
        [row["word"], row["abstracts"], row["papers"]] for row in rows if int(row["abstracts"]) < nips.LEAST_DOCUMENTS
    ]
    return markdown(["word in the paper's table", "abstracts with this word", "whole papers with this word"], lines)


def nips_noise(folder: Path) -> str:
    """Show the clusters without fitted parameters, for both texts and several noise levels."""
    rows = read(folder, "nips_noise")
    lines = [[row["text"], row["noise"], row["sizes"].replace(" ", ", "), row["away"]] for row in rows]
    return markdown(["text", "noise", "documents in each cluster", "total distance"], lines)


def nips_time(folder: Path) -> str:
    """Show the times."""
    return markdown(
        ["text", "documents", "words", "threads", "seconds", "processor seconds"],
        [
            [
                row["text"],
                row["documents"],
                row["words"],
                row["threads"],
                f"{float(row['wall_seconds']):.0f}",
                f"{float(row['processor_seconds']):.0f}",
            ]
            for row in read(folder, "nips_time")
        ],
    )


TABLES: dict[str, Callable[[Path], str]] = {
    "table1-paper": table1_paper,
    "table1-mnist": lambda folder: table1_all(folder, "MNIST"),
    "table1-spambase": lambda folder: table1_all(folder, "SPAMBASE"),
    "figure2-middle": figure2_middle,
    "figure2-post-post": figure2_post_post,
    "figure2-gains": figure2_gains,
    "wals-genera": wals_genera,
    "wals-accuracy": lambda folder: wals_restoration_table(folder, "accuracy"),
    "wals-log-score": lambda folder: wals_restoration_table(folder, "log_score"),
    "wals-leads": wals_leads,
    "wals-drawn": wals_drawn_table,
    "nips-clusters": nips_clusters,
    "nips-authors": nips_authors,
    "nips-noise": nips_noise,
    "nips-words": nips_words,
    "nips-time": nips_time,
}
