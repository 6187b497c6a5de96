"""The README's commands are those that run elsewhere, and its figures come from a script."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def commands():
    return [
        line.strip() for line in (ROOT / "README.md").read_text().split("\n") if line.startswith("    python3 -m venv")
    ]


def test_continuous_integration_runs_the_test_command():
    tests = [command for command in commands() if "pytest" in command]
    assert len(tests) == 1
    assert (ROOT / ".ci" / "run").read_text().strip().endswith(tests[0])


def test_one_command_runs_the_demo():
    assert len([command for command in commands() if command.endswith("coaltree demo")]) == 1


@pytest.mark.parametrize("page", ["README.md", "docs/pictures.md"])
def test_pictures_are_made_by_the_script(page):
    pictures = re.findall(r"!\[[^]]*\]\((?:docs/)?images/([^)]+)\)", (ROOT / page).read_text())
    assert pictures
    script = (ROOT / "docs" / "make_figures.py").read_text()
    for picture in pictures:
        assert picture in script
        assert (ROOT / "docs" / "images" / picture).is_file()


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", (ROOT / page).read_text()):
        assert (ROOT / target).exists(), target
