"""The verdicts of a report: each checks one aspect of a fit, and says how far to trust it and what to do.

:func:`verdicts` collects them. A verdict has a question, a state ("good", "look" or "plain") and an answer in words.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import pdtrc

from ..table.labels import count
from .facts import ChainFacts, ReportFacts, SampleFacts
from .sections import MAX_NAMES, RARE, OddCells, OddRows
from .text import (
    describe_zero_heights,
    format_number,
    format_percent,
    round_significant,
    shorten_name,
    suggest_finer_tree,
)

MIN_GOOD_RECALL = 0.9  # the search is good if at least this share of neighbour lists has the best partner
MAX_WEAK_SIGNAL = 0.2  # share of the largest signal below which a column is almost unrelated to the others
MAX_CHANCE = 0.1  # probability below which the number of odd cells is not due to chance


class Verdict(NamedTuple):
    """The answer to one question about a fit."""

    question: str
    state: str  # "good", "look" or "plain"
    answer: str
    points: tuple[str, ...] = ()


def verdicts(facts: ReportFacts, rows: OddRows, cells: OddCells) -> list[Verdict]:
    """Answer the questions that a reader should ask about a fit."""
    all_verdicts = [
        inference_verdict(facts),
        parameter_verdict(facts),
        signal_verdict(facts),
        outlier_verdict(facts, rows),
        odd_cell_verdict(facts, cells),
        zero_height_verdict(facts),
        remark_verdict(facts),
    ]
    return [verdict for verdict in all_verdicts if verdict is not None]


def inference_verdict(facts: ReportFacts) -> Verdict:
    """Judge the search, the sampler or the Markov chains, whichever found the tree."""
    if isinstance(facts.sample, ChainFacts):
        return convergence_verdict(facts.sample)
    return sampler_verdict(facts.sample) if facts.sample else search_verdict(facts)


def search_verdict(facts: ReportFacts) -> Verdict:
    """Judge the greedy search for pairs to merge."""
    question = "How was the tree searched?"
    if facts.tree.n_leaves < 3:
        return Verdict(question, "plain", "There are too few rows to search.")
    start = "The tree was built by merging pairs, each time the pair with the most recent common ancestor. "
    if facts.search != "neighbors":
        return Verdict(question, "good", start + "Every pair was compared.")
    if facts.neighbor_recall is None:
        return Verdict(question, "plain", start + "Only near neighbours were compared.")
    recall = format_percent(facts.neighbor_recall)
    answer = (
        f"{start}Only near neighbours were compared; they included the best partner in {recall} of the cases tested."
    )
    return Verdict(question, "good" if facts.neighbor_recall >= MIN_GOOD_RECALL else "look", answer)


def sampler_verdict(sample: SampleFacts) -> Verdict:
    """Judge whether sequential Monte Carlo has collapsed to a few trees."""
    size = f"{sample.effective_size:.1f}"
    sentence = (
        f"{count(sample.n_trees, 'tree')} were sampled, {sample.n_distinct:,} of them distinct; with their weights they are "
        f"worth {size} trees of equal weight."
    )
    if sample.least_ess is not None:
        sentence += f" During sampling, the effective number of particles never fell below {sample.least_ess:.1f}."
    if sample.log_evidence_se is not None:
        log_evidence = format_number(round_significant(sample.log_evidence))
        sentence += f" The log evidence is {log_evidence} ± {sample.log_evidence_se:.2g}."
    if sample.effective_size < max(0.1 * sample.n_trees, 5):
        sentence = f"Yes: {sentence} Support values are too confident; use more particles."
        return Verdict("Did the sampler collapse?", "look", sentence)
    return Verdict("Did the sampler collapse?", "good", f"No: {sentence}")


def convergence_verdict(chains: ChainFacts) -> Verdict:
    """Judge whether the Markov chains have converged."""
    state = "look" if not chains.converged else "good" if len(chains.traces) > 1 else "plain"
    r_hat = "not known" if math.isnan(chains.r_hat) else f"{chains.r_hat:.3f}"
    worth = "an unknown number of" if math.isnan(chains.effective_samples) else f"{chains.effective_samples:,.0f}"
    sentence = (
        f"{chains.verdict} R-hat, here {r_hat}, compares chains with different starting trees; near 1, they no longer depend "
        f"on where they started. Successive trees of a chain are similar: for heights and densities, the sample of "
        f"{count(chains.n_trees, 'tree')} is worth {worth} independent ones."
    )
    acceptance_rates = [
        f"{move} {format_percent(share)}" for move, share in chains.acceptance.items() if not math.isnan(share)
    ]
    if acceptance_rates:
        sentence += f" Share of proposed moves that were accepted: {', '.join(acceptance_rates)}."
    return Verdict("Have the Markov chains converged?", state, sentence)


def parameter_verdict(facts: ReportFacts) -> Verdict:
    """Say which parameters were used for the tree and for the predictions."""
    question = "Which parameters were used?"
    if facts.draws_parameters:
        return Verdict(
            question,
            "plain",
            "The trees were sampled together with their parameters. Statements about columns, odd rows and missing cells are "
            "averages over trees of the sample, each with its own parameters.",
        )
    return Verdict(
        question,
        "plain",
        "The tree and the clusters were found with fixed parameters that attribute much of every column to noise; nothing was "
        "fitted. Statements about columns, odd rows and missing cells are averages over trees sampled afterwards, each with its "
        "own parameters.",
    )


def signal_verdict(facts: ReportFacts) -> Verdict:
    """Name the columns that matter for the tree."""
    question = "Which columns matter for the tree?"
    if not facts.parameters:
        return Verdict(question, "plain", "None: no column has two different values.")
    ranked = sorted(facts.parameters.items(), key=lambda item: -item[1]["signal"])
    most = ", ".join(f"{shorten_name(name)} {values['signal']:.2f}" for name, values in ranked[:MAX_NAMES])
    sentence = (
        f"Those with the largest signal, the correlation between being alike in a column and in all others: {most}."
    )
    weak = [name for name, values in ranked[MAX_NAMES:] if values["signal"] < MAX_WEAK_SIGNAL * ranked[0][1]["signal"]]
    if weak:
        names = ", ".join(shorten_name(name) for name in weak[-MAX_NAMES:])
        rest = f" and {count(len(weak) - MAX_NAMES, 'more column')}" if len(weak) > MAX_NAMES else ""
        sentence += f" Almost unrelated to the others: {names}{rest}."
    return Verdict(question, "plain", sentence)


def outlier_verdict(facts: ReportFacts, rows: OddRows) -> Verdict | None:
    """Say how many rows are far less likely than the typical row."""
    if not len(facts.held_out.rows):
        return None
    question = "Are there outliers?"
    n, n_held_out = facts.tree.n_leaves, len(facts.held_out.rows)
    rows_in_words = f"the {n:,} rows" if n_held_out == n else f"{n_held_out:,} rows, chosen evenly from all {n:,},"
    if not rows.n_outliers:
        apart = int(np.sum(facts.labels >= facts.n_clusters))
        answer = f"None of {rows_in_words} is far less likely than the typical row, given the others"
        if apart:  # in groups too small for clusters
            answer += f", but {count(apart, 'row is', 'rows are')} outside all clusters"
        return Verdict(question, "look" if apart else "good", f"{answer}.")
    return Verdict(
        question,
        "look",
        f"Of {rows_in_words} {rows.n_outliers:,} {'is' if rows.n_outliers == 1 else 'are'} far less likely than the typical row, "
        "given the others; see below.",
    )


def odd_cell_verdict(facts: ReportFacts, cells: OddCells) -> Verdict | None:
    """Say whether more cells are odd than chance explains."""
    if not cells.n_cells:
        return None
    by_chance = RARE * cells.n_cells
    n_rows = int(np.sum(facts.held_out.evenly))
    among = "" if n_rows == facts.tree.n_leaves else f" of {n_rows:,} rows"
    number = "none is" if not cells.n_rare else "1 is" if cells.n_rare == 1 else f"{cells.n_rare:,} are"
    answer = (
        f"Of {cells.n_cells:,} observed cells{among}, {number} as odd as only one cell in 1,000 should be; about "
        f"{by_chance:,.1f} are expected by chance."
    )
    state = "plain" if cells.n_rare else "good"
    if cells.n_rare and pdtrc(cells.n_rare - 1, by_chance) < MAX_CHANCE:
        state = "look"
    elif cells.n_rare and cells.n_cells * math.exp(cells.cells[0].log_tail) < MAX_CHANCE:
        state = "look"
        answer += " The oddest is beyond what chance explains among so many cells."
    return Verdict("Are there cells that do not fit the rest of their row?", state, answer)


def zero_height_verdict(facts: ReportFacts) -> Verdict | None:
    """Say that most merges are at height 0, if they are, and what to try."""
    zero_heights = describe_zero_heights(facts.tree)
    if zero_heights is None:
        return None
    advice = suggest_finer_tree(facts.parameters, facts.sample is not None, "noise=0.001", 'inference="smc"')
    return Verdict("How fine is the tree?", "plain", "; ".join(filter(None, (zero_heights, advice))) + ".")


def remark_verdict(facts: ReportFacts) -> Verdict | None:
    """List the remarks about the table or the sample, except the one that the chains' own verdict repeats."""
    repeated = facts.chains.verdict if facts.chains else None
    remarks = tuple(remark for remark in facts.remarks if remark != repeated)
    return Verdict("What was noticed about the table or the sample?", "look", "", remarks) if remarks else None
