"""The README: its commands and code run, and its figures come from a script."""

import ast
import importlib.util
import re
import runpy
import shlex
import shutil
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import coaltree as ct
from coaltree.cli import app
from documents import blocks_of, commands_of, run_command

pytestmark = pytest.mark.usefixtures("short_chains")

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
BLOCKS = blocks_of(README)
PYTHON = [block.text for block in BLOCKS if block.kind == "python"]
SHELL = [command for block in BLOCKS if block.kind == "shell" for command in commands_of(block)]
COMMANDS = [command for command in SHELL if command.line.startswith("coaltree ")]
BENCHMARKS = sorted(
    set(re.findall(r"python (benchmarks/\w+\.py)", README + (ROOT / "docs" / "benchmarks.md").read_text()))
)


@pytest.fixture(scope="module")
def few_replicates():
    """None here: the README shows what a whole fit prints."""


def marked(examples, slow):
    """Leave out, by default, what takes long."""
    return [pytest.param(example, marks=[pytest.mark.slow] if slow(example) else []) for example in examples]


def is_sampling(command):
    return "smc" in command.line


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the example data, and what the first command makes of it and prints."""
    folder = tmp_path_factory.mktemp("readme")
    shutil.copytree(ROOT / "examples", folder / "examples")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        done = CliRunner().invoke(app, shlex.split(COMMANDS[0].line)[1:])
    assert done.exit_code == 0, done.output
    (folder / "printed.txt").write_text(done.stderr + done.stdout)
    return folder


def test_readme_first_command_runs(folder):
    printed = (folder / "printed.txt").read_text().splitlines()
    assert COMMANDS[0].transcript in (None, tuple(printed))
    assert printed


@pytest.mark.parametrize("command", marked(COMMANDS[1:], is_sampling), ids=lambda command: command.line[:40])
def test_readme_shell_commands_run(command, folder, monkeypatch, capsys):
    assert run_command(command, folder, monkeypatch, capsys)


@pytest.fixture(scope="module")
def names(folder):
    """What the first block of code defines, and what the reader is to bring along."""
    namespace = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        exec(PYTHON[0], namespace)
    return namespace


def samples_trees(block):
    return "smc" in block


@pytest.mark.filterwarnings("ignore::coaltree.errors.InputWarning")
@pytest.mark.parametrize("block", marked(PYTHON[1:], samples_trees), ids=lambda block: block.split("\n")[0][:40])
def test_readme_python_code_runs(block, names, folder, monkeypatch, request):
    if "ct.datasets" in block:
        request.getfixturevalue("published_data")
    monkeypatch.chdir(folder)
    namespace = dict(names)
    exec(block, namespace)
    stored = [
        node for node in ast.walk(ast.parse(block)) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    ]
    assert all(namespace[node.id] is not None for node in stored)


def test_readme_shell_and_python_agree(names, folder):
    """The first command and the first block are about the same table."""
    actual = ct.load_model(folder / "results" / "model.coaltree")
    assert names["model"].labels_.tolist() == actual.labels_.tolist()
    assert ct.robinson_foulds(names["model"].tree_, actual.tree_) == 0


@pytest.mark.parametrize("script", BENCHMARKS)
def test_benchmarks_have_descriptions(script, monkeypatch, capsys):
    if importlib.util.find_spec("fastcluster") is None:
        pytest.skip("benchmarks need the extra 'bench'")
    monkeypatch.setattr(sys, "argv", [script, "--help"])
    with pytest.raises(SystemExit, match="0"):
        runpy.run_path(str(ROOT / script), run_name="__main__")
    assert capsys.readouterr().out.startswith("usage: ")


def installations():
    return [command.line for command in SHELL if command.line.startswith("python3 -m venv")]


def test_continuous_integration_runs_the_test_command():
    tests = [command for command in installations() if "pytest" in command]
    assert len(tests) == 1
    assert (ROOT / ".ci" / "run").read_text().strip().endswith(tests[0])


def test_readme_has_one_demo_command():
    assert len([command for command in installations() if command.endswith("coaltree demo")]) == 1


def test_readme_pictures_are_made_by_script():
    pictures = re.findall(r"!\[[^]]*\]\(docs/images/([^)]+)\)", README)
    assert pictures
    script = (ROOT / "docs" / "make_figures.py").read_text()
    for picture in pictures:
        assert picture in script
        assert (ROOT / "docs" / "images" / picture).is_file()


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_readme_links_are_valid(page):
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", (ROOT / page).read_text()):
        assert (ROOT / target).exists(), target
