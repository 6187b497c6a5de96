"""Compiled kernels and the same files as plain Python give the same results, with the same constants."""

import importlib.util
import re
import subprocess
import sys
import warnings
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import numpy as np
import pytest

import coaltree as ct
from coaltree import _constants, _extensions
from coaltree.errors import InstallationWarning
from coaltree.process.kernels import messages

PACKAGE = Path(ct.__file__).parent
ROOT = Path(__file__).parent.parent
compiled = pytest.mark.skipif(messages.__file__.endswith(".py"), reason="the kernels are not compiled here")

# Runs the source of the kernels, whatever was built, and prints trees by every kind of inference.
PROGRAM = """
import sys
import importlib.abc, importlib.util
from pathlib import Path

class Source(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        parts = name.split(".")
        if "kernels" in parts and parts[-1] != "kernels":
            file = Path(sys.argv[1], *parts[1:]).with_suffix(".py")
            return importlib.util.spec_from_file_location(name, file)
        return None

if sys.argv[2] == "source":
    sys.meta_path.insert(0, Source())
    sys.modules["cython"] = None  # as where it is not installed
import warnings
warnings.simplefilter("ignore")
import numpy as np
import coaltree as ct
from coaltree.process.kernels import messages
assert messages.__file__.endswith(".py") == (sys.argv[2] == "source"), messages.__file__
rng = np.random.default_rng(0)
real = rng.normal(size=(6, 2))
holes = np.where(rng.random((6, 2)) < 0.2, np.nan, real)
codes = rng.integers(0, [2, 3], size=(6, 2)).astype(float)
mixed = ct.Mixed((ct.OrnsteinUhlenbeck(0.5, noise=[0.1, 0.2]), [0, 1]), (ct.Multinomial([0.5, 1.0], noise=0.1), [2, 3]))
for process, X in (
    (ct.Brownian(noise=0.1), real),
    (ct.OrnsteinUhlenbeck(0.5), real),
    (ct.Brownian(), holes),
    (ct.Multinomial(), codes),
    (mixed, np.hstack([holes, codes])),
):
    for rule in ("rate1", "max-prob", "min-duration"):
        print(ct.greedy(X, process, rule).tree.to_newick())
    for proposal in ("post-post", "race"):
        print(ct.smc(X[:4], process, proposal, 3, random_state=0).log_evidence)
    print(ct.smc(X[:4], process, n_particles=3, threshold=1.0, regrafts=5, random_state=0).log_evidence)
    print(ct.mcmc(X, process, 3, 1, warmup=1, thin=5, random_state=0).trees[-1].to_newick())
found = ct.greedy(real, ct.Brownian(noise=0.1))
print(ct.refine(found.tree, real, found.process).log_joint)
from coaltree.inference import posterior_draws
posterior_draws.MIN_SWEEPS = posterior_draws.MAX_SWEEPS = 4  # as plain Python they take seconds
posterior_draws.DRAWS_PER_CHAIN = 2
print(ct.CoalescentClustering(covariance="full").fit(real).score_samples(real[:2] + 0.1).tolist())
from coaltree._extensions import are_compiled
assert are_compiled() == (sys.argv[2] == "build")
print(ct.greedy(np.repeat(real, 12, axis=0) + rng.normal(size=(72, 2)), ct.Brownian(noise=0.1), search="neighbors").log_joint)
print(ct.baselines.BayesianHierarchicalClustering().fit(real).tree_.to_newick())
"""


def run_program(which):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(PACKAGE), which], capture_output=True, text=True, check=True
    )
    return done.stdout


@compiled
def test_source_and_build_give_equal_results():
    """Bitwise equal, for every inference method."""
    assert run_program("source") == run_program("build")


def test_constants_agree_in_python_and_c():
    declared = (PACKAGE / "_constants.pxd").read_text()
    in_c = {name: float(value) for name, value in re.findall(r"#define COALTREE_(\w+) \((.*)\)", declared)}
    in_c |= {name: float(value) for name, value in re.findall(r"^    (\w+) = (\d+)$", declared, re.MULTILINE)}
    assert in_c == {name: value for name, value in vars(_constants).items() if name.isupper()}


def test_every_kernel_has_pxd_file():
    kernels = [file for file in PACKAGE.glob("**/kernels/*.py") if file.name != "__init__.py"]
    assert len(kernels) > 8
    for file in kernels:
        assert file.with_suffix(".pxd").exists(), file


def test_avx2_build_is_preferred(tmp_path, monkeypatch):
    (tmp_path / "avx2").mkdir()
    (tmp_path / f"messages{EXTENSION_SUFFIXES[0]}").touch()
    monkeypatch.setattr(_extensions, "_has_avx2", lambda: True)
    assert _extensions.kernel_path([str(tmp_path)]) == [str(tmp_path / "avx2"), str(tmp_path)]
    monkeypatch.setattr(_extensions, "_has_avx2", lambda: False)
    assert _extensions.kernel_path([str(tmp_path)]) == [str(tmp_path)]


def test_missing_build_warns_once(tmp_path, monkeypatch):
    monkeypatch.setattr(_extensions, "_warned", False)
    (tmp_path / "messages.py").touch()
    (tmp_path / "avx2").mkdir()
    (tmp_path / "avx2" / f"messages{EXTENSION_SUFFIXES[0]}").touch()
    monkeypatch.setattr(_extensions, "_has_avx2", lambda: False)  # which that build needs
    with pytest.warns(InstallationWarning, match=r"without a C compiler.*gcc"):
        _extensions.kernel_path([str(tmp_path)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _extensions.kernel_path([str(tmp_path)])


@compiled
@pytest.mark.parametrize("slot", [-1, 6, 10**9])
def test_checked_build_notices_index_out_of_bounds(slot, monkeypatch):
    options = ROOT / "build" / "options.txt"
    if not options.exists() or "COALTREE_CHECKED=1\n" not in options.read_text():
        pytest.skip("bounds are not checked here; see Memory errors in CONTRIBUTING.md")
    ignored = []
    monkeypatch.setattr(sys, "unraisablehook", lambda found: ignored.append(found.exc_type))
    forest = ct.Brownian(1.0).forest(np.zeros((4, 2)), 6)
    messages.load_pair(forest, 1, 0, messages.Pair(forest))
    assert ignored == []
    messages.load_pair(forest, slot, 0, messages.Pair(forest))
    assert ignored == [IndexError]


@pytest.fixture
def checkout(tmp_path):
    """A folder with a compiled kernel, and the build script for it."""
    kernels = tmp_path / "coaltree" / "process" / "kernels" / "avx2"
    kernels.mkdir(parents=True)
    (kernels / "messages.so").touch()
    spec = importlib.util.spec_from_file_location("coaltree_setup", ROOT / "setup.py")
    build = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(build)
    return build, tmp_path, kernels / "messages.so"


def test_other_build_options_discard_kernels(checkout, monkeypatch):
    """Kernels of an ordinary and of a checked build are never mixed up."""
    build, folder, kernel = checkout
    for options, stays in ((None, True), (None, True), ("COALTREE_CHECKED", False), ("CFLAGS", False)):
        if options:
            monkeypatch.setenv(options, "1")
        build.discard_other_builds(folder, folder / "build" / "options.txt", build.build_options())
        assert kernel.exists() == stays, options
        kernel.touch()


def test_ignored_errors_of_kernels_end_processes():
    """What a kernel had to ignore fails tests that run in processes of their own, too."""
    program = """
class Kernel:
    def __call__(self): raise IndexError
    def __str__(self): return "{}"
class Error: __del__ = Kernel()
Error()
"""
    for where, code in (("coaltree.process.kernels.messages.merge", 70), ("other", 0)):
        done = subprocess.run([sys.executable, "-c", program.format(where)], capture_output=True)
        assert done.returncode == code, done.stderr


@compiled
@pytest.mark.slow
def test_all_builds_give_equal_results():
    """Trees of the AVX2 build and of the generic build are bitwise equal."""
    folder = PACKAGE / "process" / "kernels"
    builds = [*folder.glob(f"messages*{EXTENSION_SUFFIXES[0]}"), *folder.glob(f"avx2/messages*{EXTENSION_SUFFIXES[0]}")]
    if len(builds) < 2 or not _extensions._has_avx2():
        pytest.skip("there is one build only; COALTREE_ALL_BUILDS=1 pip install -e . makes all")
    program = PROGRAM.replace(
        "import coaltree as ct\n",
        "import coaltree._extensions as e; e._has_avx2 = lambda: False\nimport coaltree as ct\n",
        1,
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(PACKAGE), "build"], capture_output=True, text=True, check=True
    )
    assert done.stdout == run_program("build")
