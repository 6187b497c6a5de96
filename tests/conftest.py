import os
import pickle
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).parent.parent

# Before anything imports scipy: scikit-learn's check of array API input is skipped without it.
os.environ.setdefault("SCIPY_ARRAY_API", "1")
# No window may open, whatever the machine has.
os.environ.setdefault("MPLBACKEND", "Agg")

# No deadline, machines are busy; on the server the same examples every time.
settings.register_profile("coaltree", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("coaltree")


def stale_kernels():
    """Return the kernels of a source checkout that were changed after they were compiled."""
    for source in sorted((ROOT / "src" / "coaltree").glob("**/kernels/*.py")):
        newest = max(file.stat().st_mtime for file in (source, source.with_suffix(".pxd")) if file.exists())
        for built in [*source.parent.glob(f"{source.stem}.*.so"), *source.parent.glob(f"avx2/{source.stem}.*.so")]:
            if built.stat().st_mtime < newest:
                yield str(source.relative_to(ROOT))


def pytest_configure(config):
    if hasattr(config.option, "loadscopereorder"):
        # Files in their order: by default those with the fewest tests come last, which are the ones that take longest.
        config.option.loadscopereorder = False
    stale = sorted(set(stale_kernels()))
    if stale:
        raise pytest.UsageError(
            f"{', '.join(stale)} changed after the last build: run python setup.py build_ext --inplace first"
        )


_NOISES = {}


@pytest.fixture
def remembered_noise(monkeypatch):
    """Find the noise that predicts a table best once for each table: pages fit the same ones again and again."""
    from coaltree.estimators import base

    find = base.predictive_noise

    def remembered(process, X, n_real, **options):
        key = pickle.dumps((process, X, n_real))
        if key not in _NOISES:
            _NOISES[key] = find(process, X, n_real, **options)
        return _NOISES[key]

    monkeypatch.setattr(base, "predictive_noise", remembered)


@pytest.fixture
def short_chains(monkeypatch):
    """Draw eight trees after few sweeps for predictions, for tests of what is done with them and not of how good they are."""
    from coaltree.inference import posterior_draws

    monkeypatch.setattr(posterior_draws, "KEPT", 4)
    monkeypatch.setattr(posterior_draws, "MOST_SWEEPS", 20)
    monkeypatch.setattr(posterior_draws, "FEWEST_SWEEPS", 20)


@pytest.fixture
def published_data(monkeypatch):
    """The folder with the published data sets, for tests of what is in them."""
    folder = Path(os.environ.get("COALTREE_DATA") or ROOT.parent / "shared" / "data")
    if not folder.is_dir():
        pytest.skip("the published data sets are not here: name their folder in COALTREE_DATA")
    monkeypatch.setenv("COALTREE_DATA", str(folder))
    return folder
