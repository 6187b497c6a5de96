"""The text of a report: numbers, times, probabilities and names, and sentences that commands and warnings share."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..table.labels import count
from ..tree.arrays import count_zero_heights
from ..tree.layout import display_name
from ..tree.tree import Tree

MIN_ROWS = 3  # fewer rows cannot be clustered
MIN_RECALL = 0.5  # share of neighbour lists with the best partner, below which users are warned
LOW_RECALL_ADVICE = (
    "many partners are about equally good, as with much noise, or the lists are too short; for up to some 50,000 rows try "
    "--search exact"
)
# In a smaller tree merges at height 0 are easy to see.
_MIN_LEAVES = 21

_MAX_EXACT = 9  # characters of a value that is written with all digits
_DIGITS = 6
_FIRST_DAY, _LAST_DAY = -719_528, 2_932_896  # days of the years 0 to 9999
_EVEN = math.log(1.05)  # log odds below which neither side is better
_STRENGTHS = ((100, "very strong"), (20, "strong"), (3, "clear"), (1, "weak"))  # words by the smallest factor
MINUS = "\N{MINUS SIGN}"


def describe_partition(part: Mapping[str, Any]) -> str:
    """Describe the model of a partition of characters, see `FittedModel.partitions`."""
    recorded = {"all": "all recorded", "variable": "variable ones recorded", "present": "present ones recorded"}
    shape = "" if part["gamma_shape"] is None else f", gamma shape {part['gamma_shape']:.2g}"
    return (
        f"{part['partition']}: {count(part['n_columns'], 'character')}, {part['model']} ({part['frequencies']} frequencies), "
        f"{recorded[part['ascertainment']]}, rate {part['rate']:.3g}{shape}"
    )


def describe_few_rows(n_rows: int) -> str:
    """Say why one or two rows cannot be clustered.

    Examples
    --------
    >>> describe_few_rows(1)
    'one row is too few to cluster: there is nothing to compare it with'
    """
    if n_rows == 1:
        return "one row is too few to cluster: there is nothing to compare it with"
    return "two rows are too few to cluster: they have one merge, and there is nothing to compare it with"


def describe_low_recall(recall: float | None) -> list[str]:
    """Warn if few neighbour lists contained the best partner.

    Parameters
    ----------
    recall : float or None
        The share of lists that did; None if unknown.

    Returns
    -------
    list of str
        One sentence, or none.

    Examples
    --------
    >>> describe_low_recall(0.9), describe_low_recall(None)
    ([], [])
    >>> describe_low_recall(0.02)[0][:54]
    'Only 2 % of the neighbour lists had the best partner: '
    """
    if recall is None or recall >= MIN_RECALL:
        return []
    return [f"Only {100 * recall:.0f} % of the neighbour lists had the best partner: {LOW_RECALL_ADVICE}."]


def describe_zero_heights(tree: Tree) -> str | None:
    """Say how many merges are at height 0, if most of them are.

    Examples
    --------
    >>> from coaltree import Tree
    >>> describe_zero_heights(Tree([[0, 1], [2, 3]], [0.0, 0.0, 0.0, 0.0, 1.0]))  # a small tree
    >>> merges = [[0, 1], *([k, 19 + k] for k in range(2, 21))]
    >>> describe_zero_heights(Tree(merges, [0.0] * 40 + [1.0]))
    '19 of 20 merges are at height 0: these rows are equal or differ by less than the noise'
    """
    at_zero, n_merges = count_zero_heights(tree.merge_heights), tree.n_leaves - 1
    if tree.n_leaves < _MIN_LEAVES or 2 * at_zero < n_merges:
        return None
    return f"{at_zero:,} of {n_merges:,} merges are at height 0: these rows are equal or differ by less than the noise"


def suggest_finer_tree(parameters: Mapping[str, Mapping[str, Any]], sampled: bool, noise: str, sampling: str) -> str:
    """Suggest how to separate rows that merge at height 0; an empty string if nothing helps.

    Parameters
    ----------
    parameters : mapping
        Parameters of every column, as ``parameters_`` of the estimators.
    sampled : bool
        Whether trees were sampled already.
    noise, sampling : str
        The options for less noise and for a sample of trees, as the user would write them.

    Examples
    --------
    >>> suggest_finer_tree({"x": {"noise_sd": 0.1}}, False, "noise=0.001", 'inference="smc"')
    'to separate them, try less noise (noise=0.001), or a sample of trees (inference="smc", for a few hundred rows)'
    >>> suggest_finer_tree({"x": {"noise_sd": 0.0}}, True, "noise=0.001", 'inference="smc"')
    ''
    """
    has_noise = any(column.get("noise_sd", 0.0) > 0 for column in parameters.values())
    options = [f"less noise ({noise})"] * has_noise
    options += [f"a sample of trees ({sampling}, for a few hundred rows)"] * (not sampled)
    return f"to separate them, try {', or '.join(options)}" if options else ""


def restore_values(values: NDArray[np.float64]) -> list[float | None]:
    """Return values as the user wrote them, long ones with six digits; None for NaN.

    Standardising and undoing it changes the last digits, which are rounded off.

    Examples
    --------
    >>> import numpy as np
    >>> restore_values(np.array([0.1 + 0.2, np.nan, 90000.0, 5e-6, 1 / 3]))
    [0.3, None, 90000.0, 5e-06, 0.3333333]
    """
    observed = values[~np.isnan(values)]
    largest = float(np.max(np.abs(observed))) if len(observed) else 0.0
    places = 12 - math.ceil(math.log10(largest)) if largest > 0 else 0
    restored: list[float | None] = []
    for value in values.tolist():
        if value != value:
            restored.append(None)
            continue
        cleaned = round(value, places) if abs(places) < 300 else value
        restored.append(cleaned if len(repr(cleaned)) <= _MAX_EXACT else round_significant(value))
    return restored


def round_times(days: NDArray[np.float64]) -> list[float | None]:
    """Return times in days, rounded to the second; None for NaN."""
    return [None if day != day else round(day, 5) for day in days.tolist()]


def round_significant(value: float, digits: int = _DIGITS) -> float:
    """Round a number to significant digits.

    Examples
    --------
    >>> round_significant(1234567.0), round_significant(0.00123456789, 3)
    (1234570.0, 0.00123)
    """
    return float(f"{value:.{digits}g}")


def round_to_sd(value: float, sd: float) -> float:
    """Round a number to the digits that its standard deviation supports.

    Examples
    --------
    >>> round_to_sd(3.21456, 0.4), round_to_sd(1234.6, 87.0), round_to_sd(1.5, 0.0)
    (3.21, 1235.0, 1.5)
    """
    if not 0 < sd < math.inf or not math.isfinite(value):
        return round_significant(value)
    places = 1 - math.floor(math.log10(sd))
    return float(round(value, places)) if abs(places) < 300 else round_significant(value)


def round_mean(value: float, sd: float) -> float:
    """Round a mean to the digits that matter in a column with the given standard deviation.

    A small mean keeps three significant digits.

    Examples
    --------
    >>> round_mean(3.21456, 0.4), round_mean(4.6612, 2e5), round_mean(1e6, 2e5), round_mean(1e-17, 0.4)
    (3.215, 4.66, 1000000.0, 0.0)
    """
    if abs(value) < 1e-9 * sd:  # rounding error of 0
        return 0.0
    return min(round_to_sd(value, 0.1 * sd), round_significant(value, 3), key=lambda rounded: abs(rounded - value))


def format_number(value: float) -> str:
    """Write a number without an unnecessary decimal point or sign.

    Examples
    --------
    >>> format_number(3.0), format_number(-0.25), format_number(-0.0), format_number(1234567.0)
    ('3', '−0.25', '0', '1234567')
    """
    return f"{value + 0.0:.12g}".replace("-", MINUS)


def format_time(days: float, only_day: bool | None = None) -> str:
    """Write a time, given as days since 1970-01-01.

    Parameters
    ----------
    days : float
    only_day : bool, optional
        Whether to omit the time of day; by default if it is midnight.

    Examples
    --------
    >>> format_time(18627.0), format_time(18627.75), format_time(18627.75, only_day=True), format_time(1e9)
    ('2020-12-31', '2020-12-31 18:00', '2020-12-31', '1000000000 days after 1970-01-01')
    """
    if not _FIRST_DAY <= days < _LAST_DAY:
        return f"{format_number(days)} days after 1970-01-01"
    minutes = round(days * 1440)
    day, clock = str(np.datetime64(minutes, "m")).split("T")
    omit_clock = minutes % 1440 == 0 if only_day is None else only_day
    return day if omit_clock else f"{day} {clock}"


def describe_ratio(log_ratio: float) -> str:
    """Say how much better one tree explains rows than two, or two than one.

    Examples
    --------
    >>> describe_ratio(5.4), describe_ratio(-0.7)
    ('one tree explains them 220 times better than two', 'two trees explain them 2 times better than one')
    >>> describe_ratio(0.01), describe_ratio(300.0)
    ('one tree explains them as well as two', 'one tree explains them more than a million times better than two')
    """
    if abs(log_ratio) < _EVEN:
        return "one tree explains them as well as two"
    if log_ratio > 0:
        return f"one tree explains them {_format_factor(log_ratio)} better than two"
    return f"two trees explain them {_format_factor(-log_ratio)} better than one"


def describe_cohesion(log_ratio: float) -> str:
    """Say how strongly rows belong together.

    Examples
    --------
    >>> describe_cohesion(3.2), describe_cohesion(0.7), describe_cohesion(-0.7)
    ('strong (25 times)', 'weak (2 times)', 'none (two trees explain them 2 times better than one)')
    """
    return _strength(log_ratio, log_ratio)


def describe_separation(log_ratio: float) -> str:
    """Say how clearly rows are separate from their neighbours.

    Examples
    --------
    >>> describe_separation(-5.5), describe_separation(-2.0), describe_separation(0.0)
    ('very strong (240 times)', 'clear (7.4 times)', 'none (one tree explains them as well as two)')
    """
    return _strength(-log_ratio, log_ratio)


def _strength(log_odds: float, log_ratio: float) -> str:
    if log_odds < _EVEN:
        return f"none ({describe_ratio(log_ratio)})"
    strength = next(word for least, word in _STRENGTHS if log_odds >= math.log(least))
    return f"{strength} ({_format_factor(log_odds)})"


def _format_factor(log_factor: float) -> str:
    factor = "more than a million" if log_factor > math.log(1e6) else f"{round_significant(math.exp(log_factor), 2):,g}"
    return f"{factor} times"


def format_percent(share: float) -> str:
    """Write a share in per cent; only exact 0 and 1 become 0 % and 100 %.

    Examples
    --------
    >>> format_percent(0.4), format_percent(1.0), format_percent(0.9996), format_percent(1e-5), format_percent(0.0)
    ('40 %', '100 %', '> 99.9 %', '< 0.1 %', '0 %')
    """
    if 0 < share < 0.001:
        return "< 0.1 %"
    if 0.999 < share < 1:
        return "> 99.9 %"
    return f"{100 * share:.3g} %"


def format_odds(log_tail: float) -> str:
    """Say how rare something is.

    Examples
    --------
    >>> import math
    >>> format_odds(math.log(0.25)), format_odds(math.log(0.00012)), format_odds(-1000.0)
    ('1 in 4', '1 in 8,300', 'less than 1 in a million')
    """
    if log_tail < math.log(1e-6):
        return "less than 1 in a million"
    return f"1 in {round_significant(math.exp(-log_tail), 2):,g}"


def shorten_name(name: str, max_length: int = 36) -> str:
    """Return a name on one line; of a long name, its beginning and its end.

    Examples
    --------
    >>> shorten_name("a name"), shorten_name("The first of a long series of names, number 12")
    ('a name', 'The first of a long ser…s, number 12')
    """
    return display_name(name, max_length)
