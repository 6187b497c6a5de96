"""Helpers for tests of the documentation: the code blocks of a page, and which of them to skip."""

import contextlib
import re
import shlex
import warnings
from typing import NamedTuple

from command_line import command_in

PATTERN = re.compile(
    r"(?:<!-- not run: (?P<reason>[^>]*) -->\n+)?"
    r"(?:```python\n(?P<python>.*?)```|(?P<shell>^    (?:\$ )?(?:coaltree|python3?|pip) [^\n]*\n(?:^    [^\n]*\n)*))",
    re.DOTALL | re.MULTILINE,
)


class Block(NamedTuple):
    """Code or commands of a page, with the reason if they are not to be run."""

    kind: str
    text: str
    reason: str | None

    @property
    def name(self):
        return self.text.strip().split("\n")[0].strip()[:60]


def blocks_of(text):
    """Return the Python code and the commands of a page, in their order."""
    return [
        Block("python" if value["python"] is not None else "shell", value["python"] or value["shell"], value["reason"])
        for value in PATTERN.finditer(text)
    ]


class Command(NamedTuple):
    """A command of a page, and what it is said to print; nothing is said without a prompt."""

    line: str
    transcript: tuple[str, ...] | None


def commands_of(block):
    """Return the commands of a block: its lines, or if it begins with a prompt, those that have one."""
    lines = [line[4:] for line in block.text.splitlines()]
    if not lines[0].startswith("$ "):
        return [Command(line, None) for line in lines]
    first, *others = "\n".join(lines)[2:].split("\n$ ")
    return [Command(line, tuple(printed)) for line, *printed in (text.split("\n") for text in (first, *others))]


def run_command(command, folder, monkeypatch, capsys):
    """Run a command in a folder, and check that it prints what it is said to."""
    name, *arguments = shlex.split(command.line)
    assert name == "coaltree", f"{command.line} cannot be run; say so with <!-- not run: reason -->"
    code, out, err = command_in(folder, monkeypatch, capsys)(*arguments)
    assert code == 0, err
    printed = tuple((err + out).splitlines())
    assert command.transcript in (None, printed)
    return printed


def run_blocks(blocks, folder, monkeypatch, capsys):
    """Run the blocks of a page in a folder, one after the other, and return how many; Python blocks share their names."""
    names = {"__name__": "page"}
    for block in blocks:
        try:
            if block.kind == "python":
                monkeypatch.chdir(folder)
                with contextlib.redirect_stdout(None), warnings.catch_warnings():
                    exec(compile(block.text, "page", "exec"), names)
            else:
                for command in commands_of(block):
                    run_command(command, folder, monkeypatch, capsys)
        except Exception as error:
            error.add_note(f"in the block that begins: {block.name}")
            raise
    return len(blocks)
