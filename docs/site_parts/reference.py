"""The parts of the reference that come from the code itself: all public names, and all commands with their options."""

from __future__ import annotations

import re
from typing import Any

import coaltree

GROUPS = {
    "estimators": "Estimators",
    "table": "Tables and character files",
    "tree": "Trees and samples of trees",
    "process": "Processes",
    "inference": "Inference",
    "plot": "Plots",
    "": "Modules",
}
NAMES, COMMANDS = "<!-- all public names -->", "<!-- all commands -->"


ROLE = re.compile(r":(?:func|class|meth):(?=<code>)")


def on_page_content(content: str, **_: Any) -> str:
    """Remove Sphinx roles from docstrings."""
    return ROLE.sub("", content)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put the generated parts where a page asks for them."""
    if NAMES in markdown:
        markdown = markdown.replace(NAMES, public_names())
    return markdown.replace(COMMANDS, commands()) if COMMANDS in markdown else markdown


def public_names() -> str:
    """Return a heading for every layer of the library, and below it what it makes public."""
    homes: dict[str, str] = coaltree._HOMES
    unknown = {home.split(".")[0] for home in homes.values()} - set(GROUPS)
    if unknown:
        raise ValueError(f"{', '.join(sorted(unknown))}: layers without a heading; add one to GROUPS.")
    lines = []
    for layer, heading in GROUPS.items():
        lines += [f"## {heading}", ""]
        for name in sorted(coaltree.__all__, key=str.lower):
            if homes[name].split(".")[0] == layer:
                path = f"coaltree.{homes[name]}.{name}" if layer else f"coaltree.{name}"
                lines += [f"::: {path}", *([] if layer else ["    options: {show_submodules: false}"]), ""]
    return "\n".join(lines)


def commands() -> str:
    """Return every command with its usage, its text and its options."""
    import typer

    from coaltree.cli import app

    group: Any = typer.main.get_command(app)
    context = group.make_context("coaltree", [], resilient_parsing=True)
    return "\n".join(_command(group.commands[name], context) for name in sorted(group.commands))


def _command(command: Any, parent: Any) -> str:
    context = command.make_context(command.name, [], parent=parent, resilient_parsing=True)
    usage = " ".join(piece.strip("{}") for piece in command.collect_usage_pieces(context))
    lines = [f"## coaltree {command.name}", "", "```text", f"coaltree {command.name} {usage}", "```", ""]
    lines += [" ".join(part.split()) + "\n" for part in (command.help or "").split("\n\n")]
    lines += ["| option | description |", "|---|---|"]
    for parameter in command.params:
        record = parameter.get_help_record(context)
        if record is None:
            text = getattr(parameter, "help", None)
            record = (parameter.make_metavar(context), text) if text else None
        if record is not None:
            name, text = (part.replace("|", "\\|") for part in record)
            lines.append(f"| `{name.split(' <')[0]}` | {' '.join(text.split())} |")
    return "\n".join([*lines, ""])
