"""Try an installed wheel: compiled kernels are there, and every kind of inference runs on a small table.

Run with the Python of an environment that has coaltree and its base dependencies only.
"""

from __future__ import annotations

import warnings
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import numpy as np

import coaltree as ct
from coaltree.errors import InstallationWarning

warnings.simplefilter("error", InstallationWarning)
from coaltree.process.kernels import messages  # noqa: E402

assert Path(ct.__file__).with_name("py.typed").exists(), "type checkers would overlook the package's types"
kernels = Path(ct.__file__).parent.glob("**/kernels/*.py")
for source in (file for file in kernels if file.name != "__init__.py"):
    built = [source.with_name(source.stem + suffix) for suffix in EXTENSION_SUFFIXES]
    assert any(file.exists() for file in built), f"{source} was not compiled"
assert not messages.__file__.endswith(".py"), messages.__file__

warnings.simplefilter("ignore", ct.errors.InputWarning)
rng = np.random.default_rng(0)
X = np.hstack([rng.normal(size=(40, 3)), rng.integers(0, 3, size=(40, 2))])
X[rng.random(X.shape) < 0.1] = np.nan
process = ct.Mixed((ct.OrnsteinUhlenbeck(noise=0.1), [0, 1, 2]), (ct.Multinomial(noise=0.1), [3, 4]))
tree = ct.greedy(X, process).tree
assert tree.n_leaves == 40
assert np.isfinite(ct.smc(X[:10], process, n_particles=10, random_state=0).log_evidence)
assert len(ct.mcmc(X[:10], process, 20, 2, random_state=0).trees) > 0
model = ct.CoalescentClustering(categorical_features=[3, 4]).fit(X)
assert np.isfinite(model.score_samples(X[:5])).all()
assert not np.isnan(ct.CoalescentImputer(categorical_features=[3, 4]).fit_transform(X).astype(float)).any()
print(f"coaltree {ct.__version__} works, with {messages.__file__}")
