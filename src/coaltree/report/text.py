"""A report's judgements in plain words: how the tree was found, and how far to trust it."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import pdtrc

from ..table.messages import count
from ..tree.layout import display_name
from ..tree.summary import SummaryTree
from .facts import ChainFacts, ReportFacts, SampleFacts
from .messages import describe_zero_heights, suggest_finer_tree
from .numbers import percent, significant, written
from .sections import RARE, OddCells, OddRows, told_signal

WEAK = 0.5
MOST_WEAK = 10
NAMED = 4  # leaves of a clade that are named
WEAK_SIGNAL = 0.2  # of a column that is said to have next to nothing to do with the tree
BY_CHANCE = 0.1  # probability of so many odd cells, below which there are too many of them


class Verdict(NamedTuple):
    """One thing that was checked, how it stands, and what that means."""

    question: str
    state: str  # "good", "look" or "plain"
    answer: str
    points: tuple[str, ...] = ()


def verdicts(facts: ReportFacts, rows: OddRows, cells: OddCells) -> list[Verdict]:
    """Answer the questions that a reader should ask of a fit."""
    found = [_found(facts), _parameters(facts), _signal(facts)]
    if len(facts.examined.rows):
        found.append(_outliers(facts, rows))
    if cells.n_cells:
        found.append(_cells(facts, cells))
    level = describe_zero_heights(facts.tree)
    if level:
        advice = suggest_finer_tree(facts.parameters, facts.sample is not None, "noise=0.001", 'inference="smc"')
        found.append(Verdict("How fine is the tree?", "plain", "; ".join(filter(None, (level, advice))) + "."))
    said_already = facts.chains.verdict if facts.chains else None
    remarks = tuple(remark for remark in facts.remarks if remark != said_already)
    if remarks:
        found.append(Verdict("What was noticed about the table or the sample?", "look", "", remarks))
    return found


def _found(facts: ReportFacts) -> Verdict:
    if isinstance(facts.sample, ChainFacts):
        return _walked(facts.sample)
    return _sampled(facts.sample) if facts.sample else _searched(facts)


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
        f"{count(sample.n_trees, 'tree')} were drawn, {sample.n_distinct:,} of them distinct; by their weights they are worth "
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


def _walked(chains: ChainFacts) -> Verdict:
    state = "look" if not chains.converged else "good" if len(chains.traces) > 1 else "plain"
    apart = "not known" if math.isnan(chains.r_hat) else f"{chains.r_hat:.3f}"
    worth = "an unknown number of" if math.isnan(chains.effective_samples) else f"{chains.effective_samples:,.0f}"
    told = (
        f"{chains.verdict} R-hat, here {apart}, compares chains that began at different trees: near 1 they have forgotten where "
        f"they began. A tree resembles those before it in its chain: for heights and densities, the sample of "
        f"{count(chains.n_trees, 'tree')} is worth {worth} independent ones."
    )
    tried = [f"{move} {percent(share)}" for move, share in chains.acceptance.items() if not math.isnan(share)]
    if tried:
        told += f" Of the moves that were tried, these shares were accepted: {', '.join(tried)}."
    return Verdict("Have the Markov chains converged?", state, told)


def _parameters(facts: ReportFacts) -> Verdict:
    question = "Which parameters were used?"
    if facts.draws_parameters:
        return Verdict(
            question,
            "plain",
            "The trees were sampled together with their parameters. What is said of columns, odd rows and missing cells is "
            "averaged over trees of the sample, each with its own.",
        )
    return Verdict(
        question,
        "plain",
        "The tree and the clusters were found with fixed parameters, for which much of every column is noise: nothing was "
        "fitted. What is said of columns, odd rows and missing cells is averaged over trees that were drawn afterwards, each "
        "together with parameters of its own.",
    )


def _signal(facts: ReportFacts) -> Verdict:
    """Say which columns matter for the tree."""
    question = "Which columns matter for the tree?"
    if not facts.parameters:
        return Verdict(question, "plain", "None: no column has two different values.")
    known = [(name, of) for name, of in facts.parameters.items() if "signal" in of]
    if not known:
        return Verdict(question, "plain", "Not known: the process of these columns does not tell.")
    own = sorted(known, key=lambda item: -item[1]["signal"])
    most = ", ".join(f"{shortened(name)} {told_signal(of)}" for name, of in own[:NAMED])
    told = f"By their signal, the correlation of a cell with that of the row's nearest relative, most of all {most}."
    weak = [name for name, of in own[NAMED:] if of.get("signal_high", of["signal"]) < WEAK_SIGNAL]
    if weak:
        named = ", ".join(shortened(name) for name in weak[-NAMED:])
        rest = f" and {count(len(weak) - NAMED, 'more column')}" if len(weak) > NAMED else ""
        told += f" Next to nothing to do with it: {named}{rest}."
    return Verdict(question, "plain", told)


def _outliers(facts: ReportFacts, rows: OddRows) -> Verdict:
    question = "Are there outliers?"
    n, n_seen = facts.tree.n_leaves, len(facts.examined.rows)
    which = f"the {n:,} rows" if n_seen == n else f"{n_seen:,} rows, taken evenly from all {n:,},"
    if not rows.n_far:
        return Verdict(question, "good", f"None of {which} is far less likely than the typical row, given the others.")
    return Verdict(
        question,
        "look",
        f"Of {which} {rows.n_far:,} {'is' if rows.n_far == 1 else 'are'} far less likely than the typical row, given the "
        "others; see below.",
    )


def _cells(facts: ReportFacts, cells: OddCells) -> Verdict:
    by_chance = RARE * cells.n_cells
    n_rows = int(np.sum(facts.examined.evenly))
    where = "" if n_rows == facts.tree.n_leaves else f" of {n_rows:,} rows"
    number = "none is" if not cells.n_rare else "1 is" if cells.n_rare == 1 else f"{cells.n_rare:,} are"
    answer = (
        f"Of {cells.n_cells:,} observed cells{where}, {number} so odd that one in 1,000 would be by chance; chance alone "
        f"would make about {by_chance:,.1f}."
    )
    state = "plain" if cells.n_rare else "good"
    if cells.n_rare and pdtrc(cells.n_rare - 1, by_chance) < BY_CHANCE:
        state = "look"
    elif cells.n_rare and cells.n_cells * math.exp(cells.shown[0].log_tail) < BY_CHANCE:
        state = "look"
        answer += " The oddest is beyond what chance would make of so many."
    return Verdict("Are there cells that do not fit the rest of their row?", state, answer)


def how_examined(facts: ReportFacts) -> str:
    """Say how rows and cells were examined, and which of them."""
    examined, n = facts.examined, facts.tree.n_leaves
    if not len(examined.rows):
        return ""
    all_rows = len(examined.rows) == n
    which = "Each row was" if all_rows else f"To save time, {len(examined.rows):,} of the {n:,} rows were"
    together = "" if examined.at_once == 1 else f", up to {examined.at_once:,} of them at a time,"
    text = f"{which} taken off the tree{together} and compared with what the other rows say of {'it' if all_rows else 'them'}."
    n_even = int(np.sum(examined.evenly))
    of_rows = "" if n_even == n else f" of {n_even:,} rows, taken evenly from all, and of the oddest rows"
    if examined.hidden_at_once == 1:
        return text + f" Then each cell{of_rows} was hidden in turn and foretold from the rest of its row."
    return (
        text
        + f" Then the cells{of_rows} were hidden, up to {examined.hidden_at_once} at a time, and foretold from the rest of "
        "their row."
    )


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


def shortened(name: str, most: int = 36) -> str:
    """Return a name for a table: on one line, and of a long one its beginning and its end.

    Examples
    --------
    >>> shortened("a name"), shortened("The first of a long series of names, number 12")
    ('a name', 'The first of a long ser…s, number 12')
    """
    return display_name(name if len(name) <= most else f"{name[: most - 13]}…{name[-12:]}", most, " ")


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
        f"{sure:,} of {count(len(known), 'clade')} {'is' if sure == 1 else 'are'} in at least 95 % of the sampled trees, "
        f"{int(np.sum(known < WEAK)):,} in fewer than half."
    )
    weak = [k for k in np.argsort(support, kind="stable").tolist() if support[k] < WEAK]
    sentences = [f"{named_clade(facts, tree.n_leaves + k)}: in {percent(float(support[k]))} of the trees" for k in weak]
    return SupportView(bins, summary, sentences[:MOST_WEAK], max(len(weak) - MOST_WEAK, 0))


def named_clade(facts: ReportFacts, node: int) -> str:
    """Name a clade by some of its leaves."""
    leaves = np.sort(facts.tree.leaves_below(node))
    names = [facts.tree.leaf_names[leaf] for leaf in leaves[: NAMED + (len(leaves) == NAMED + 1)]]
    if len(names) < len(leaves):
        return f"{', '.join(names)} and {len(leaves) - len(names):,} more"
    return f"{', '.join(names[:-1])} and {names[-1]}"
