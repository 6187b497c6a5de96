"""Kernels: cached on disk, announced when compiled, the same with compilation switched off."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import coaltree as ct
from coaltree.compiled import Operation, _forget_stale_kernels, jit, kernel
from coaltree.process._brownian_kernels import CompleteForest

TABLE = """
import json
import numpy as np
import coaltree as ct

rng = np.random.default_rng(5)
X = np.column_stack([rng.normal(size=(9, 3)), rng.integers(0, 3, size=(9, 2))])
X[rng.random(X.shape) < 0.15] = np.nan
process = ct.Mixed((ct.Brownian([1.0, 2.0, 0.5], noise=0.1), [0, 1, 2]), (ct.Multinomial([0.5, 3.0]), [3, 4]))
"""
LIKELIHOOD = TABLE + "print(json.dumps(process.log_likelihood(ct.simulate_tree(9, 0), X)))"
RULES = ["rate1", "max-prob", "min-duration"]
TREES = f"""{TABLE}
trees = {{}}
for rule in {RULES}:
    result = ct.greedy(X, process, rule)
    trees[rule] = [result.tree.children.tolist(), result.tree.heights.tolist(), result.log_joint]
print(json.dumps(trees))
"""


def run(program, **environment):
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | environment,
    )
    return json.loads(done.stdout), done.stderr


def test_the_second_process_loads_what_the_first_compiled(tmp_path):
    first, said = run(LIKELIHOOD, NUMBA_CACHE_DIR=str(tmp_path))
    assert "compiling kernels" in said
    assert any(tmp_path.rglob("*.nbi"))
    second, said = run(LIKELIHOOD, NUMBA_CACHE_DIR=str(tmp_path))
    assert said == ""
    assert first == second


@pytest.fixture(scope="module")
def compiled():
    """What a process finds that leaves its kernels where the tests keep theirs."""
    return run(TREES)[0]


def test_kernels_of_every_rule_are_loaded(compiled):
    assert run(TREES) == (compiled, "")


def test_everything_works_without_compilation(compiled):
    plain, said = run(TREES, NUMBA_DISABLE_JIT="1")
    assert "compiling" not in said
    for rule in RULES:
        assert plain[rule][0] == compiled[rule][0]
        np.testing.assert_allclose(plain[rule][1], compiled[rule][1], rtol=1e-12)
        assert plain[rule][2] == pytest.approx(compiled[rule][2], rel=1e-12)


def test_an_edited_kernel_is_not_served_from_the_cache(tmp_path, monkeypatch):
    package = tmp_path / "package"
    cache = package / "process" / "__pycache__"
    cache.mkdir(parents=True)
    (package / "compiled.py").write_text("1")
    (package / "inner_code.py").write_text("1")
    monkeypatch.setattr("coaltree.compiled.__file__", str(package / "compiled.py"))
    _forget_stale_kernels()
    (cache / "kernel.nbi").write_text("index")
    _forget_stale_kernels()
    assert (cache / "kernel.nbi").exists()  # nothing changed
    (package / "process" / "kernel.py").write_text("2")
    _forget_stale_kernels()
    assert not (cache / "kernel.nbi").exists()


def test_an_operation_that_is_not_supplied_names_itself():
    def wave(forest):
        """Declared, but supplied by nobody."""

    forest = ct.Brownian().forest(np.zeros((2, 1)), 2, np.zeros(2))
    assert isinstance(forest, CompleteForest)
    with pytest.raises(TypeError, match="CompleteForest does not supply the operation 'wave'"):
        Operation(wave).function(forest)


def test_one_signature_for_each_kind_of_table():
    """The same kind of table must not compile again because of an array's layout or type."""
    from coaltree.inference.greedy import rate1_merges

    X = np.random.default_rng(0).normal(size=(8, 3))
    ct.greedy(X, ct.Brownian())
    before = len(rate1_merges.signatures)
    for other in (np.asfortranarray(X), X[::-1], X.astype(np.float32), np.round(X).astype(int), X.tolist()):
        ct.greedy(other, ct.Brownian([1.0, 2.0, 3.0], noise=1))
    assert len(rate1_merges.signatures) == before


def test_inner_functions_have_no_machine_code_of_their_own():
    @jit
    def doubled(x):
        return 2 * x

    @jit
    def deeper(x):
        return doubled(x) + 1

    @kernel
    def outer(x):
        return deeper(x) + doubled(x)

    assert outer(3.0) == 13.0
    for inner in (doubled, deeper):
        (compiled,) = inner.overloads.values()
        assert not getattr(compiled.library, "_compiled", False)
    (compiled,) = outer.overloads.values()
    assert compiled.library._compiled


def test_an_inner_function_that_python_calls_answers():
    @jit
    def halved(x):
        return x / 2

    @kernel
    def outer(x):
        return halved(x)

    assert outer(1.0) == 0.5
    assert halved(1.0) == 0.5
    assert halved(3) == 1.5
    assert [halved(x) for x in (2.0, 4.0)] == [1.0, 2.0]
