"""The fault campaign: hostile input and interruptions, any number of cases, each repeatable by its seed.

    python tools/campaign.py tables 3000 --seed 0
    python tools/campaign.py all --scale 0.1
    python tools/campaign.py tables --only 1234

Every case is *accepted* (a result that passes its checks), *rejected* (a message of ours, exit code 2, nothing changed) or
*failed* (anything else: a traceback, a warning of a library, a wrong or damaged result, a minute of processor time). The table
that is printed counts them, and failures are listed with their numbers, by which one can be run again with ``--only``.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

os.environ.setdefault("MPLBACKEND", "Agg")
sys.path.insert(0, str(Path(__file__).parent))

from faults import alignments, few_rows, frames, interruptions, models, options, python_inputs, tables, terminals, trees
from faults.outcome import ACCEPTED, FAILED, REJECTED, Case, Outcome, run_case


class Kind(NamedTuple):
    """A kind of cases."""

    case: Case
    number: int  # of them, by default and before a release
    words: str


KINDS: dict[str, Kind] = {
    "tables": Kind(tables.case, 3_000, "hostile table files, for fit, impute, score, place and cut"),
    "few-rows": Kind(few_rows.case, 1_000, "tables of few distinct rows, of any type"),
    "python-inputs": Kind(python_inputs.case, 2_000, "odd objects as tables and parameters of the Python interface"),
    "options": Kind(options.case, 5_000, "odd values for parameters of all functions, such as arrays as flags"),
    "dates": Kind(frames.dates_case, 3_000, "dates of any century, some missing, in frames of all libraries"),
    "orders": Kind(frames.order_case, 2_000, "arrays of every memory order, with equal results"),
    "terminals": Kind(terminals.case, 500, "hostile names and cells in tables whose results go to a terminal"),
    "trees": Kind(trees.case, 10_000, "files with trees: Newick, NEXUS, linkage, JSON"),
    "alignments": Kind(alignments.case, 5_000, "alignments as other programs write them, whole and damaged"),
    "models": Kind(models.case, 10_000, "model files that are damaged or forged"),
    "checkpoints": Kind(models.checkpoint_case, 500, "damaged checkpoints of chains and of searches"),
    "kills": Kind(interruptions.kill_case, 200, "commands that are killed or interrupted at random moments"),
    "double interrupts": Kind(
        interruptions.double_interrupt_case, 300, "commands that are interrupted two or three times while they write"
    ),
    "memory limits": Kind(interruptions.memory_case, 100, "commands in little memory"),
    "disk": Kind(
        interruptions.disk_case, 500, "calls of the file system that fail or are interrupted, removed folders"
    ),
    "processes": Kind(
        interruptions.process_case, 100, "limited file sizes, full or closed outputs, two writers of one path"
    ),
}

MAX_LISTED = 40  # failures
CASES_PER_TASK = 20


class Tally(NamedTuple):
    """The outcomes of the cases of one kind."""

    tried: int
    counts: Mapping[str, int]
    failures: list[tuple[int, str]]  # number of the case and what happened
    seconds: float


def shorten_chains() -> None:
    """Draw few trees for predictions, by short chains: the campaign is about input, not about the quality of predictions."""
    from coaltree.inference import posterior_draws

    for name, value in {
        "DRAWS_PER_CHAIN": 4,
        "MIN_SWEEPS": 12,
        "MAX_SWEEPS": 12,
        "N_TREE_SWEEPS": 2,
        "N_CELL_DRAWS": 3,
    }.items():
        setattr(posterior_draws, name, value)


def run_cases(kind: str, numbers: Iterable[int], seed: int) -> list[tuple[int, Outcome]]:
    """Run the cases with some numbers."""
    return [(number, run_case(KINDS[kind].case, [seed, number, *kind.encode()])) for number in numbers]


def run_campaign(kind: str, numbers: range, seed: int, n_jobs: int = 1) -> Tally:
    """Run many cases of one kind, by several processes if wanted."""
    begin = time.perf_counter()
    outcomes: list[tuple[int, Outcome]] = []
    if n_jobs == 1:
        outcomes = run_cases(kind, numbers, seed)
    else:
        pieces = [numbers[k : k + CASES_PER_TASK] for k in range(0, len(numbers), CASES_PER_TASK)]
        with ProcessPoolExecutor(n_jobs, initializer=shorten_chains) as pool:
            for done in pool.map(run_cases, *zip(*((kind, piece, seed) for piece in pieces), strict=True)):
                outcomes += done
    counts = Counter(outcome.kind for _, outcome in outcomes)
    failures = [(number, outcome.words) for number, outcome in outcomes if outcome.kind == FAILED]
    return Tally(len(outcomes), counts, failures, time.perf_counter() - begin)


def main() -> int:
    """Run the campaign that the arguments name, and print its table."""
    parser = argparse.ArgumentParser(description="Run the fault campaign.")
    parser.add_argument(
        "kind", choices=[*KINDS, "all"], help="; ".join(f"{name}: {kind.words}" for name, kind in KINDS.items())
    )
    parser.add_argument("number", nargs="?", type=int, help="number of cases; by default that of a release")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--scale", type=float, default=1.0, help="multiply the default numbers of cases")
    parser.add_argument(
        "--only", type=int, metavar="NUMBER", help="run one case, by its number, and say what came of it"
    )
    parser.add_argument("--n-jobs", type=int, default=1, help="processes")
    options = parser.parse_args()
    shorten_chains()
    if options.only is not None:
        print(*run_cases(options.kind, [options.only], options.seed)[0][1])
        return 0
    kinds = list(KINDS) if options.kind == "all" else [options.kind]
    n_failed = 0
    print(f"{'kind':<20}{'tried':>8}{'rejected':>10}{'accepted':>10}{'failed':>8}{'seconds':>9}", flush=True)
    for kind in kinds:
        number = options.number or max(1, round(options.scale * KINDS[kind].number))
        tally = run_campaign(kind, range(number), options.seed, options.n_jobs)
        counts = [tally.counts.get(outcome, 0) for outcome in (REJECTED, ACCEPTED, FAILED)]
        print(f"{kind:<20}{tally.tried:>8}{counts[0]:>10}{counts[1]:>10}{counts[2]:>8}{tally.seconds:>9.0f}")
        for case, words in tally.failures[:MAX_LISTED]:
            print(f"  --seed {options.seed} --only {case}: {words}", flush=True)
        n_failed += len(tally.failures)
    return 1 if n_failed else 0


if __name__ == "__main__":
    sys.exit(main())
