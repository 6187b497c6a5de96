"""Compiled kernels and the same files as plain Python give the same results, with the same constants."""

import re
import subprocess
import sys
import warnings
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

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
