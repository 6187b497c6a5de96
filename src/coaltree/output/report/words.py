"""A report's judgements in plain words: how the tree was found, and how far to trust it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...table.wording import count
from ...tree.summary import SummaryTree
from .facts import ReportFacts, SampleFacts
from .numbers import percent, significant, written
from .surprises import FAR_BELOW, Oddity, n_beyond

WEAK = 0.5
MOST_WEAK = 10
NAMED = 4  # leaves of a clade that are named
SMALL_GAIN = 0.5  # of the log joint density over the last rounds, below which fitting is called settled
RARE = 0.001


class Verdict(NamedTuple):
    """One thing that was checked, how it stands, and what that means."""

    question: str
    state: str  # "good", "look" or "plain"
    answer: str


def verdicts(facts: ReportFacts, odd_rows: Sequence[Oddity]) -> list[Verdict]:
    """Answer the questions that a reader should ask of a fit."""
    found = [_sampled(facts.sample) if facts.sample else _searched(facts)]
    settled = _settled(facts)
    if settled:
        found.append(settled)
    if len(facts.examined.rows):
        found.append(_outliers(odd_rows))
        if facts.examined.hidden_at_once:
            found.append(_cells(facts))
    found += [Verdict("What was noticed about the table or the sample?", "look", remark) for remark in facts.remarks]
    return found


def _searched(facts: ReportFacts) -> Verdict:
    question = "How was the tree searched?"
    if facts.tree.n_leaves < 3:
        return Verdict(question, "plain", "With so few rows there was nothing to search.")
    start = "The tree was built by merging one pair after the other, each time the pair whose common ancestor is most recent. "
    if facts.search != "neighbors":
        return Verdict(question, "good", start + "Every pair was looked at.")
    if facts.neighbors_held is None:
        return Verdict(question, "plain", start + "Only pairs of near neighbours were looked at.")
    held = percent(facts.neighbors_held)
    answer = (
        f"{start}Only pairs of near neighbours were looked at: in {held} of the cases tried the best partner was one."
    )
    return Verdict(question, "good" if facts.neighbors_held >= 0.9 else "look", answer)


def _sampled(sample: SampleFacts) -> Verdict:
    size = f"{sample.effective_size:.1f}"
    told = (
        f"{count(sample.n_trees, 'tree')} were drawn, {sample.n_distinct} of them distinct; by their weights they are worth "
        f"{size} trees of equal weight."
    )
    if sample.least_ess is not None:
        told += f" On the way, the effective number of candidates never fell below {sample.least_ess:.1f}."
    if sample.log_evidence_se is not None:
        told += f" The log evidence is {written(significant(sample.log_evidence))} ± {sample.log_evidence_se:.2g}."
    if sample.effective_size < max(0.1 * sample.n_trees, 5):
        told = f"Yes: {told} Support values are surer than they should be; take more particles."
        return Verdict("Did the sampler collapse?", "look", told)
    return Verdict("Did the sampler collapse?", "good", f"No: {told}")


def _settled(facts: ReportFacts) -> Verdict | None:
    question = "Did fitting the parameters settle?"
    rounds = facts.rounds
    if not rounds:
        return Verdict(question, "plain", "Parameters were not fitted; the tree was built with those that were given.")
    n_rounds = count(len(rounds), "round")
    part = ", on a part of the rows," if facts.fitted_to_part else ""
    if len(rounds) < facts.most_rounds:
        return Verdict(
            question,
            "good",
            f"Yes: after {n_rounds} of finding a tree and fitting parameters to it{part} nothing was gained.",
        )
    gain = max(rounds) - max(rounds[:-2], default=-math.inf)
    if gain <= SMALL_GAIN:
        return Verdict(question, "good", f"Yes: the last of {n_rounds}{part} gained next to nothing.")
    return Verdict(
        question,
        "look",
        f"Perhaps not: what was allowed, {n_rounds}{part}, was used up. Try calibrate={2 * facts.most_rounds}.",
    )


def _outliers(rows: Sequence[Oddity]) -> Verdict:
    question = "Are there outliers?"
    n_far = sum(row.below > FAR_BELOW for row in rows)
    if not n_far:
        return Verdict(question, "good", "No row is far less likely than the others, given the rest of the table.")
    return Verdict(
        question,
        "look",
        f"{count(n_far, 'row is', 'rows are')} far less likely than the typical row, given the rest of the table; see below.",
    )


def _cells(facts: ReportFacts) -> Verdict:
    beyond, looked_at = n_beyond(facts.columns, facts.examined, RARE)
    by_chance = RARE * looked_at
    answer = (
        f"Of {looked_at:,} observed cells, {beyond:,} {'is' if beyond == 1 else 'are'} so odd that one in 1,000 would be "
        f"by chance; chance alone would make about {by_chance:.1f}."
    )
    state = "look" if beyond > by_chance + 3 * math.sqrt(by_chance + 1) else "good"
    return Verdict("Are there cells that do not fit the rest of their row?", state, answer)


def how_examined(facts: ReportFacts) -> str:
    """Say how rows and cells were examined, and which of them."""
    examined, n = facts.examined, facts.tree.n_leaves
    if not len(examined.rows):
        return ""
    all_rows = len(examined.rows) == n
    which = "Each row was" if all_rows else f"To save time, {len(examined.rows):,} of the {n:,} rows were"
    them, its = ("it", "its") if all_rows else ("them", "their")
    together = "" if examined.at_once == 1 else f", up to {examined.at_once} of them at a time,"
    text = f"{which} taken off the tree{together} and compared with what the other rows say of {them}."
    if examined.hidden_at_once == 1:
        text += f" Then each of {its} cells was hidden in turn and foretold from the rest of the row."
    elif examined.hidden_at_once > 1:
        text += (
            f" Then {its} cells were hidden, up to {examined.hidden_at_once} at a time, and foretold from the others."
        )
    else:
        text += " With a full covariance matrix no cell can be hidden, so cells were not examined."
    return text


def odds(log_tail: float) -> str:
    """Say how rare something is.

    Examples
    --------
    >>> import math
    >>> odds(math.log(0.25)), odds(math.log(0.00012)), odds(-1000.0)
    ('1 in 4', '1 in 8,300', 'less than 1 in a million')
    """
    if log_tail < math.log(1e-6):
        return "less than 1 in a million"
    return f"1 in {significant(math.exp(-log_tail), 2):,g}"


class SupportView(NamedTuple):
    """How sure the sample is of the clades of the tree."""

    bins: list[tuple[str, int, float]]  # range of support, number of clades, share of the highest bin
    summary: str
    weak: list[str]
    n_more: int


def support_view(facts: ReportFacts) -> SupportView | None:
    """Return the support values in words and numbers; None without a sample of trees."""
    tree = facts.tree
    if not isinstance(tree, SummaryTree) or facts.sample is None or tree.n_leaves < 3:
        return None
    support = tree.support[:-1]  # every tree has the root's clade
    known = support[~np.isnan(support)]
    if not len(known):
        return None
    counts, _ = np.histogram(known, bins=10, range=(0.0, 1.0))
    bins = [
        (f"{10 * k} to {10 * k + 10} %", number, number / max(int(counts.max()), 1))
        for k, number in enumerate(counts.tolist())
    ]
    sure = int(np.sum(known >= 0.95))
    summary = (
        f"{sure} of {count(len(known), 'clade')} {'is' if sure == 1 else 'are'} in at least 95 % of the sampled trees, "
        f"{int(np.sum(known < WEAK))} in fewer than half."
    )
    weak = [k for k in np.argsort(support, kind="stable").tolist() if support[k] < WEAK]
    sentences = [f"{named_clade(facts, tree.n_leaves + k)}: in {percent(float(support[k]))} of the trees" for k in weak]
    return SupportView(bins, summary, sentences[:MOST_WEAK], max(len(weak) - MOST_WEAK, 0))


def named_clade(facts: ReportFacts, node: int) -> str:
    """Name a clade by some of its leaves."""
    leaves = np.sort(facts.tree.leaves_below(node))
    names = [facts.tree.leaf_names[leaf] for leaf in leaves[: NAMED + (len(leaves) == NAMED + 1)]]
    if len(names) < len(leaves):
        return f"{', '.join(names)} and {len(leaves) - len(names)} more"
    return f"{', '.join(names[:-1])} and {names[-1]}"
