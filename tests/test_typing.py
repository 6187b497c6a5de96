"""The types of the package reach a user's type checker."""

import subprocess
import sys

import pytest

USER = """
import coaltree as ct
reveal_type(ct.greedy([[0.0], [1.0]], ct.Brownian()))
reveal_type(ct.CoalescentClustering().fit([[0.0]]))
ct.simulate_tree("three")
"""
# only our types: those of other packages take mypy five times as long
OPTIONS = """
[mypy]
follow_imports = skip
ignore_missing_imports = True
[mypy-coaltree.*]
follow_imports = silent
"""


def test_mypy_of_a_user_sees_our_types(tmp_path):
    pytest.importorskip("mypy")
    (tmp_path / "user.py").write_text(USER)
    (tmp_path / "mypy.ini").write_text(OPTIONS)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "user.py", "--cache-dir", "cache"], cwd=tmp_path, capture_output=True, text=True
    )
    lines = done.stdout.splitlines()
    assert 'Revealed type is "coaltree.inference.greedy.GreedyResult"' in lines[0]
    assert 'Revealed type is "coaltree.estimators.clustering.CoalescentClustering"' in lines[1]
    assert all(word in lines[2] for word in ("simulate_tree", "str", "int")), done.stdout
