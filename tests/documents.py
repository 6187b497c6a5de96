"""Pages of documentation as tests see them: what they tell readers to run, and what they leave out."""

import contextlib
import re
import shlex
import warnings
from typing import NamedTuple

from command_line import command_in

PATTERN = re.compile(
    r"(?:<!-- not run: (?P<reason>[^>]*) -->\n+)?"
    r"(?:```python\n(?P<python>.*?)```|(?P<shell>(?:^    (?:\$ )?(?:coaltree|python3?|pip) [^\n]*\n)+))",
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
        Block("python" if found["python"] is not None else "shell", found["python"] or found["shell"], found["reason"])
        for found in PATTERN.finditer(text)
    ]


def commands_of(block):
    """Return the lines of a block of commands, without prompts."""
    return [line.strip().removeprefix("$ ") for line in block.text.splitlines()]


def run_blocks(blocks, folder, monkeypatch, capsys):
    """Run the blocks of a page in a folder, one after the other; Python blocks share their names."""
    names = {"__name__": "page"}
    for block in blocks:
        try:
            if block.kind == "python":
                monkeypatch.chdir(folder)
                with contextlib.redirect_stdout(None), warnings.catch_warnings():
                    exec(compile(block.text, "page", "exec"), names)
            else:
                for line in commands_of(block):
                    command, *arguments = shlex.split(line)
                    assert command == "coaltree", f"{line} cannot be run; say so with <!-- not run: reason -->"
                    code, _, err = command_in(folder, monkeypatch, capsys)(*arguments)
                    assert code == 0, err
        except Exception as error:
            error.add_note(f"in the block that begins: {block.name}")
            raise
