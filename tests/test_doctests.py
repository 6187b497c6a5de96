"""The examples in docstrings run, and every public name has one."""

import doctest
import importlib
from pathlib import Path

import pytest

import coaltree

PACKAGE = Path(coaltree.__file__).parent
FILES = [path for path in sorted(PACKAGE.rglob("*.py")) if ">>> " in path.read_text(encoding="utf-8")]
MODULES = [".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__") for path in FILES]


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples_run(name):
    failed, tried = doctest.testmod(importlib.import_module(name))
    assert failed == 0
    assert tried > 0


def test_public_names_have_examples():
    finder = doctest.DocTestFinder(recurse=False)
    names = ("Tree", "TreeSample", "greedy", "smc", "CoalescentClustering", "Mixed", "simulate_tree")
    for door in (getattr(coaltree, name) for name in names):
        assert any(test.examples for test in finder.find(door, door.__name__))
