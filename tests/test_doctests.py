"""The examples in the docstrings run and say what they say."""

import doctest
import importlib
import pkgutil

import pytest

import coaltree

MODULES = [
    name for _, name, _ in pkgutil.walk_packages(coaltree.__path__, "coaltree.") if not name.endswith("__main__")
]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    failed, _ = doctest.testmod(importlib.import_module(name))
    assert failed == 0


def test_the_main_doors_have_examples():
    finder = doctest.DocTestFinder(recurse=False)
    names = ("Tree", "TreeSample", "greedy", "smc", "CoalescentClustering", "Mixed", "simulate_tree")
    for door in (getattr(coaltree, name) for name in names):
        assert any(test.examples for test in finder.find(door, door.__name__))
