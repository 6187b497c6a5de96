"""Names of rows, columns, categories and files do not control the terminal; files and pipes keep them as they are."""

import csv
import io
import json
import re
import sys
from pathlib import Path

import pytest

from coaltree.__main__ import main
from coaltree._validation import escape_controls
from coaltree.cli import terminal

pytestmark = pytest.mark.usefixtures("short_chains", "blank_pictures")

HOSTILE = (
    "\x1b]0;owned\x07",
    "\x1b[31mred",
    "beep\x07",
    "\x9b2J",
    "abc\u202edcba",
    "[bold red]x",
    "a\rb",
    "\u2066i\u2069",
)
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
# What a progress bar itself writes: colours, cursor movements, erased lines.
PROGRESS_BAR = re.compile(r"\x1b\[[\d;?]*[A-Za-z]|\r")


class Stream(io.TextIOWrapper):
    """A stream that says whether it is a terminal."""

    def __init__(self, is_terminal: bool) -> None:
        self.written = io.BytesIO()
        self.is_terminal = is_terminal
        super().__init__(self.written, encoding="utf-8", write_through=True, newline="")

    def isatty(self) -> bool:
        return self.is_terminal


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TERM", "xterm")
    path = tmp_path / "hostile\x1b[31m.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["name", *HOSTILE[:3]])
        for i in range(24):
            writer.writerow([f"{HOSTILE[i % 8]}{i}", i % 7 + 0.5, HOSTILE[i % 3], "" if i == 3 else (i * i) % 11])
    return path


def run(monkeypatch: pytest.MonkeyPatch, is_terminal: bool, *arguments: object) -> tuple[int, str, str]:
    out, err = Stream(is_terminal), Stream(is_terminal)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "argv", ["coaltree", *map(str, arguments)])
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", err)
        with pytest.raises(SystemExit) as ended:
            main()
    return int(ended.value.code or 0), out.written.getvalue().decode(), err.written.getvalue().decode()


def test_commands_escape_names_on_a_terminal_only(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands = [
        ["fit", table, "-o", "out\x1b[1m", "-v"],
        ["fit", table, "-o", "out\x1b[1m", "--json"],
        ["fit", table, "--dry-run"],
        ["fit", table, "--dry-run", "--json"],
        ["score", "out\x1b[1m/model.coaltree", table],
        ["place", "out\x1b[1m/model.coaltree", table, "--json"],
        ["cut", "out\x1b[1m/model.coaltree", "--n-clusters", "2"],
        ["convert", "out\x1b[1m/model.coaltree", "-", "--to", "newick"],
        ["impute", table, "-o", "-"],
        ["fit", table, "-o", "out", "--drop", "\x1b[31mabsent\u202e"],
        ["fit", "absent\x07.csv", "-o", "out"],
        ["fit", table, "--\x1b[31m", "--debug"],
    ]
    for command in commands:
        code, out, err = run(monkeypatch, True, *command)
        shown = out + PROGRESS_BAR.sub("", err)
        assert CONTROLS.search(shown) is None, (command, shown)
        plain_code, plain_out, plain_err = run(monkeypatch, False, *command)
        assert plain_code == code, plain_err
        if "--json" in command and code == 0:
            assert json.loads(out).keys() == json.loads(plain_out).keys()
        if command[0] in ("score", "impute"):
            assert HOSTILE[0] in plain_out
            assert "\\u001b]0;owned" in out


def test_columns_of_a_dry_run_are_escaped_everywhere(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their listing is for readers: names are on one line, and aligned."""
    for is_terminal in (True, False):
        code, out, _ = run(monkeypatch, is_terminal, "fit", table, "--dry-run")
        rows = [line for line in out.splitlines() if line.startswith((r"  \u001b]0;owned\u0007 ", r"  \u001b[31mred "))]
        assert (code, len(rows)) == (0, 2)
        assert len({line.index("real") if "real" in line else line.index("categorical") for line in rows}) == 1


def test_binary_results_are_not_written_to_a_terminal(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("t.nwk").write_text("((a:1,b:1):1,c:2);")
    code, out, err = run(monkeypatch, True, "convert", "t.nwk", "-", "--to", "npy", "-q")
    assert (code, out) == (2, "")
    assert "terminal" in err
    code, out, _ = run(monkeypatch, True, "convert", "t.nwk", "-", "--to", "newick", "-q")
    assert (code, out) == (0, "((a:1.0,b:1.0):1.0,c:2.0);\n")


def test_escapes_are_those_of_json() -> None:
    for character in "\x00\x07\x1b\x7f\x9b\u202e\u2069\ufeff\U000e0041":
        assert escape_controls(f"a{character}") != f"a{character}"
        assert json.loads(f'"{escape_controls(character)}"') == character
    text = 'plain, with "quotes", \\ and\ttabs\nand ünïcödé, 日本語, me\u200ckhaham'
    assert escape_controls(text) == text


def test_all_output_of_commands_goes_through_one_place() -> None:
    package = Path(terminal.__file__).parent
    for path in package.glob("*.py"):
        if path.name != "terminal.py":
            assert not re.search(r"\b(print|typer\.echo|click\.echo|print_exc)\(", path.read_text()), path.name
