"""A small fault campaign: a few hundred cases with fixed seeds; ``tools/campaign.py`` runs thousands."""

import sys
from types import SimpleNamespace

import campaign
import numpy as np
import pytest
from faults.outcome import FAILED, Failure, Outcome, Run, classify, run_case, try_call

from coaltree.errors import InputError

pytestmark = [
    pytest.mark.usefixtures("short_chains"),
    pytest.mark.filterwarnings("ignore::coaltree.errors.InputWarning"),
]

NUMBERS = {
    "alignments": 400,
    "tables": 60,
    "few-rows": 40,
    "python-inputs": 120,
    "options": 400,
    "dates": 60,
    "orders": 40,
    "terminals": 16,
    "trees": 150,
    "models": 100,
    "checkpoints": 30,
    "kills": 1,
    "disk": 2,
    "double interrupts": 2,
}
N_PIECES = 2  # so that several processes can share the cases of a kind


@pytest.mark.parametrize("piece", range(N_PIECES))
@pytest.mark.parametrize("kind", sorted(NUMBERS))
def test_campaign_has_no_failures(kind, piece):
    numbers = range(piece * NUMBERS[kind] // N_PIECES, (piece + 1) * NUMBERS[kind] // N_PIECES)
    assert campaign.run_campaign(kind, numbers, seed=0).failures == []


def test_campaign_classifies_outcomes():
    """The campaign detects each kind of failure."""

    def fail():
        raise ZeroDivisionError

    def refuse():
        raise InputError("no")

    def parse():
        float("x")

    assert run_case(lambda rng, folder: try_call(fail), [0]).kind == FAILED
    assert run_case(lambda rng, folder: try_call(parse), [0]).kind == FAILED
    assert run_case(lambda rng, folder: try_call(refuse), [0]) == Outcome("rejected", "no")
    assert run_case(lambda rng, folder: try_call(lambda: np.log(-1.0)), [0]).kind == FAILED  # a warning
    assert classify(Run(0, b"", "note: x\n")).kind == "accepted"
    assert classify(Run(2, b"", "note: x\ncoaltree: no.\n")).kind == "rejected"
    for run in (
        Run(1, b"", "coaltree: unexpected error.\n"),
        Run(2, b"", "Traceback\ncoaltree: no.\n"),
        Run(2, b"half", "coaltree: no.\n"),
        Run(2, b"", "coaltree: no.\nmore\n"),
        Run(2, b"", f"coaltree: {'x' * 10_000}\n"),
        Run(0, b"", "x.py:1: RuntimeWarning: overflow\n"),
    ):
        with pytest.raises(Failure):
            classify(run)


def test_campaign_notices_errors_that_kernels_ignored():
    def case(rng, folder):
        sys.unraisablehook(SimpleNamespace(exc_value=IndexError("Out of bounds"), object="coaltree.kernel"))
        return Outcome("accepted")

    outcome = run_case(case, [0])
    assert outcome.kind == FAILED
    assert "Out of bounds" in outcome.words
