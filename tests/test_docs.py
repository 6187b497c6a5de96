"""The pages of docs/: their code runs, their links are valid, and they cover all public names."""

import ast
import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from matplotlib import pyplot

import coaltree as ct
from coaltree.persist import model, tree_files
from documents import Block, Command, blocks_of, commands_of, run_blocks

pytestmark = pytest.mark.usefixtures("short_chains")

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(page.name for page in DOCS.glob("*.md"))
BLOCKS = {page: blocks_of((DOCS / page).read_text()) for page in PAGES}


def pages_to_run():
    """Leave out, by default, pages with samples of trees, which take long."""
    for page, blocks in BLOCKS.items():
        run = [block for block in blocks if block.reason is None]
        if run:
            slow = any(re.search(r"\b(smc|mcmc)\b", block.text) for block in run)
            yield pytest.param(run, id=page, marks=[pytest.mark.slow] if slow else [])


@pytest.mark.filterwarnings("ignore::coaltree.errors.InputWarning")
@pytest.mark.parametrize("blocks", list(pages_to_run()))
def test_docs_code_blocks_run(blocks, tmp_path, monkeypatch, capsys):
    pyplot.switch_backend("agg")
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    try:
        assert run_blocks(blocks, tmp_path, monkeypatch, capsys) == len(blocks)
    finally:
        pyplot.close("all")


NOT_RUN = [
    pytest.param(block, id=f"{page}: {block.name}")
    for page, blocks in BLOCKS.items()
    for block in blocks
    if block.reason is not None
]


@pytest.mark.parametrize("block", NOT_RUN)
def test_skipped_blocks_are_valid_code(block):
    if block.kind == "python":
        assert ast.parse(block.text).body
    else:
        assert all(
            command.line.split()[0] in ("coaltree", "python", "python3", "pip") for command in commands_of(block)
        )
    pytest.skip(block.reason)


def test_code_blocks_are_parsed_from_page():
    text = (
        "\n```python\nx = 1\n```\nand\n\n    coaltree demo\n    coaltree --help\n\n"
        "    $ coaltree fit\n    a: 1\n    $ coaltree -h\n\n"
        "<!-- not run: long -->\n\n    pip install x\n\n    log Z = 0\n"
    )
    assert blocks_of(text) == [
        Block("python", "x = 1\n", None),
        Block("shell", "    coaltree demo\n    coaltree --help\n", None),
        Block("shell", "    $ coaltree fit\n    a: 1\n    $ coaltree -h\n", None),
        Block("shell", "    pip install x\n", "long"),
    ]
    assert commands_of(blocks_of(text)[1]) == [Command("coaltree demo", None), Command("coaltree --help", None)]
    assert commands_of(blocks_of(text)[2]) == [Command("coaltree fit", ("a: 1",)), Command("coaltree -h", ())]


def test_failing_block_is_named(tmp_path, monkeypatch, capsys):
    with pytest.raises(ZeroDivisionError) as caught:
        run_blocks(blocks_of("```python\nx = 0\n```\n```python\n1 / x\n```\n"), tmp_path, monkeypatch, capsys)
    assert caught.value.__notes__ == ["in the block that begins: 1 / x"]
    with pytest.raises(AssertionError, match="not run: reason"):
        run_blocks(blocks_of("\n    pip install x\n"), tmp_path, monkeypatch, capsys)
    with pytest.raises(AssertionError):
        run_blocks(blocks_of("\n    $ coaltree --version\n    coaltree 0\n"), tmp_path, monkeypatch, capsys)


def test_navigation_has_every_page():
    navigation = (ROOT / "mkdocs.yml").read_text().split("\nnav:\n")[1]
    assert sorted(re.findall(r": (\w+\.md)$", navigation, re.MULTILINE)) == PAGES


@pytest.mark.parametrize("page", PAGES)
def test_links_and_images_are_valid(page):
    script = (DOCS / "make_figures.py").read_text()
    text = (DOCS / page).read_text()
    for target in re.findall(r"\]\((?!http)([^)#]+)", text):
        assert (DOCS / target).is_file(), target
        if target.startswith("images/") and not target.startswith("images/experiments/"):
            assert f'"{Path(target).name}"' in script or f"--picture docs/{target}" in text


def test_glossary_is_sorted():
    words = re.findall(r"^\*\*(.+?)\*\*:", (DOCS / "glossary.md").read_text(), re.MULTILINE)
    assert len(words) > 30
    assert words == sorted(words, key=str.lower)


def reference():
    pytest.importorskip("typer")
    spec = importlib.util.spec_from_file_location("reference", DOCS / "site_parts" / "reference.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_reference_has_every_public_name():
    listed = re.findall(r"^::: coaltree\.(?:.*\.)?(\w+)$", reference().public_names(), re.MULTILINE)
    assert sorted(listed) == sorted(ct.__all__)


def test_reference_has_every_command_and_option(tmp_path, monkeypatch, capsys):
    """The commands and options are those of the program's help."""
    from command_line import command_in

    text = reference().commands()
    run = command_in(tmp_path, monkeypatch, capsys)
    names = re.findall(r"^## coaltree ([\w-]+)$", text, re.MULTILINE)
    overview = run("--help")[1]
    assert {"fit", "impute", "score", "place"} <= set(names)
    for name in names:
        assert re.search(rf"\b{name}\b", overview)
        part = text.split(f"## coaltree {name}\n")[1].split("\n## ")[0]
        options = set(re.findall(r"(?<![\w-])--[a-z][\w-]+", run(name, "--help")[1])) - {"--help"}
        assert options
        for option in options:
            assert option in part, (name, option)


@pytest.mark.slow
def test_mkdocs_builds_site(tmp_path):
    for package in ("mkdocs", "material", "mkdocstrings"):
        if importlib.util.find_spec(package) is None:
            pytest.skip("the site needs the extra 'docs'")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", tmp_path / "site"],
        capture_output=True, text=True, check=False, cwd=ROOT,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "site" / "mathematics.html").read_text()
    numbers = re.findall(r"\\tag\{([\d.]+)\}", (DOCS / "mathematics.md").read_text())
    for number in numbers:
        assert f'id="eq-{number}"' in page
    assert "$" not in re.sub(r"<(svg|script|code)\b.*?</\1>", "", page, flags=re.DOTALL)
    loading = re.compile(r'<(?:script|img|iframe) [^>]*src="([^"]*)|<link [^>]*rel="stylesheet"[^>]*href="([^"]*)')
    for built in (tmp_path / "site").glob("*.html"):
        addresses = [address for pair in loading.findall(built.read_text()) for address in pair]
        assert addresses
        assert not [address for address in addresses if address.startswith(("http", "//"))]


def test_shell_guide_shows_every_command():
    commands = {command.line.split()[1] for block in BLOCKS["shell.md"] for command in commands_of(block)}
    assert commands >= {"fit", "report", "impute", "score", "place", "cut", "plot", "convert", "simulate"}


def test_page_on_files_names_format_versions():
    page = (DOCS / "files.md").read_text()
    assert re.findall(r"The format is version (\d+)\.", page) == [str(model.FORMAT_VERSION)]
    assert re.findall(r'"format_version": (\d+)', page) == [str(tree_files.FORMAT_VERSION)]
