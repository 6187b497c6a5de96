"""Print the oldest supported version of every dependency, as constraints for pip.

    python tools/oldest_requirements.py > oldest.txt
    pip install -c oldest.txt ".[test]"

Continuous integration runs the tests against these and, without constraints, against the newest ones. The versions are the lower
bounds in ``pyproject.toml``, so that they are stated once.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).parents[1] / "pyproject.toml"
# What a tool of a contributor needs not be old.
NEWEST = ("ruff", "mypy", "setuptools", "cython", "playwright")


def oldest_versions(project: Mapping[str, Any]) -> dict[str, str]:
    """Return the lower bound of each dependency of a project, by its name.

    Raises
    ------
    ValueError
        If a dependency has no lower bound, or two different ones.
    """
    versions: dict[str, str] = {}
    for line in _requirements(project):
        match = re.fullmatch(r"([A-Za-z0-9._-]+)(?:\[[^]]*\])?\s*(>=|==)\s*([^,;\s]+).*", line)
        if match is None:
            raise ValueError(f"{line} has no lower bound")
        name, _, version = match.groups()
        if versions.setdefault(name, version) != version:
            raise ValueError(f"{name} has two lower bounds, {versions[name]} and {version}")
    return versions


def _requirements(project: Mapping[str, Any]) -> Iterator[str]:
    project_name = project["name"]
    for group in (project["dependencies"], *project["optional-dependencies"].values()):
        for line in group:
            if not line.startswith(f"{project_name}["):
                yield line


def main() -> int:
    """Print the constraints."""
    project = tomllib.loads(PROJECT.read_text())["project"]
    for name, version in sorted(oldest_versions(project).items()):
        if name not in NEWEST:
            print(f"{name}=={version}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
