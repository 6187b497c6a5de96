"""``python -m experiments NAME ...``: run experiments, or write what they found into docs/experiments.md."""

from __future__ import annotations

import argparse
import importlib
import signal
import sys
import time
from pathlib import Path

from coaltree.errors import InputError, MissingDependencyError

from .outcome import RESULTS, Setting, format_tables, parse_tables, read_texts, write

EXPERIMENTS = ("figure1", "figure2", "table1", "wals_tree", "wals_restoration", "nips")
PARTIAL_RESULTS = Path("build") / "experiments"  # of few repeats: they are not committed
INTERRUPTED = 130


def main(arguments: list[str] | None = None) -> int:
    """Run the experiments named on the command line."""
    options = _options(arguments)
    for ended in (signal.SIGINT, signal.SIGTERM):  # what is done by then is kept
        signal.signal(ended, signal.default_int_handler)  # shells have jobs in the background ignore SIGINT
    try:
        return _run_all(options)
    except (InputError, MissingDependencyError) as error:
        print(f"experiments: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("experiments: interrupted; no figure was drawn, or nothing was done yet.", file=sys.stderr)
        return INTERRUPTED


def _run_all(options: argparse.Namespace) -> int:
    partial = options.quick or options.repeats is not None
    folder = options.output or (PARTIAL_RESULTS if partial else RESULTS)
    for name in EXPERIMENTS:
        if name in options.names or "all" in options.names:
            start = time.monotonic()
            setting = Setting(options.quick, options.jobs, options.repeats)
            files = run(name, folder, options.output or PARTIAL_RESULTS, setting, redraw=options.redraw)
            print(f"{name}: {time.monotonic() - start:.0f} s, {', '.join(map(str, files))}")
            if setting.interrupted.is_set():
                return INTERRUPTED
    if "page" in options.names:
        from .page import write_page

        print(f"page: {', '.join(map(str, write_page(folder)))}")
    return 0


def run(name: str, folder: Path, partial_folder: Path, setting: Setting, *, redraw: bool = False) -> list[Path]:
    """Run an experiment, or only draw its figures again, and return the files that it wrote.

    Results of a run that was interrupted go to the second folder.
    """
    experiment = importlib.import_module(f".{name}", __package__)
    texts = read_texts(folder, experiment.TABLES) if redraw else format_tables(experiment.run(setting))
    into = partial_folder if setting.interrupted.is_set() else folder
    try:
        figures = experiment.draw(parse_tables(texts))
    except BaseException:  # whatever it is, tables that took an hour are not lost
        write(texts, {}, into)
        raise
    return [into / file for file in write({} if redraw else texts, figures, into)]


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m experiments", description="Run the experiments of the paper anew.")
    parser.add_argument(
        "names",
        nargs="+",
        choices=[*EXPERIMENTS, "all", "page"],
        metavar="NAME",
        help=f"{', '.join(EXPERIMENTS)}; all of them; or page, which writes what was found into docs/experiments.md",
    )
    parser.add_argument("--quick", action="store_true", help="few repeats of small sizes, to see that everything runs")
    parser.add_argument("--redraw", action="store_true", help="only draw the figures, from tables that are there")
    parser.add_argument("--repeats", type=_count, help="fewer repeats than usual; each csv says how many there were")
    parser.add_argument(
        "--output",
        type=Path,
        help=f"folder for results; experiments/results by default, or {PARTIAL_RESULTS} for those of fewer repeats, of --quick "
        "and of runs that were interrupted",
    )
    parser.add_argument("--jobs", type=_count, default=2, help="processes; 2 by default, and no result depends on it")
    options = parser.parse_args(arguments)
    if options.quick and options.repeats is not None:
        parser.error("--quick has a number of repeats of its own: leave --repeats out")
    if "page" in options.names and (options.quick or options.repeats is not None):
        parser.error("the page is made from full runs: leave --quick and --repeats out")
    return options


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
