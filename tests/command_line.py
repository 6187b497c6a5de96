"""Helpers for tests of the command line: run it in this process and check how it ends."""

import sys

import pytest

from coaltree.__main__ import main


def command_in(folder, monkeypatch, capsys):
    """Return a function that runs the command in this process, and gives exit code, output and error output."""
    monkeypatch.chdir(folder)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["coaltree", *map(str, arguments)])
        with pytest.raises(SystemExit) as exit:
            main()
        captured = capsys.readouterr()
        return exit.value.code or 0, captured.out, captured.err

    return run


def check_sentence(outcome, *parts, code=2):
    """Check that a run ended with one sentence and nothing else to read."""
    actual, out, err = outcome
    assert actual == code, err
    assert out == ""
    lines = [line for line in err.splitlines() if line.startswith("coaltree: ")]
    assert len(lines) == 1, err
    assert err.splitlines()[-1] == lines[0]
    assert "Traceback" not in err
    for part in parts:
        assert part in lines[0]


def contents(folder):
    """Everything in a folder and below, by its name."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
    }
