import base64
import os
import sys
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).parent.parent

# Before anything imports scipy: scikit-learn's check of array API input is skipped without it.
os.environ.setdefault("SCIPY_ARRAY_API", "1")
# No window may open, whatever the machine has.
os.environ.setdefault("MPLBACKEND", "Agg")

# Many tests start Python, which would compile the package again each time if it may not keep what it compiled.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# pytest turns errors that kernels had to ignore into failures, and this folder does so in the processes that tests start.
os.environ["PYTHONPATH"] = os.pathsep.join(
    filter(None, [str(ROOT / "tests" / "checked"), os.environ.get("PYTHONPATH")])
)

# No deadline, machines are busy; on the server the same examples every time.
settings.register_profile("coaltree", deadline=None, max_examples=50, derandomize="CI" in os.environ)
settings.load_profile("coaltree")


PIXEL = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mP4DwABAQEAHLCMmQAAAABJRU5ErkJggg==")


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


@pytest.fixture(scope="module")
def few_replicates():
    """Average greedy trees over few replicates; modules that show trees of whole fits replace this fixture."""
    from coaltree.inference import averaging

    with pytest.MonkeyPatch.context() as patch:
        for name in ("MIN_TREES", "MAX_TREES", "MAX_TREES_FILLED"):
            patch.setattr(averaging, name, 4)
        yield


@pytest.fixture(scope="module")
def short_chains(few_replicates):
    """Draw few trees for predictions, by short chains: for tests of what is done with them, not of how good they are."""
    from coaltree.inference import posterior_draws
    from coaltree.predict import hidden_cells, predictor
    from coaltree.report import held_out

    with pytest.MonkeyPatch.context() as patch:
        for name, value in (
            ("MAX_CELLS", 0),
            ("MIN_SWEEPS", 6),
            ("MAX_SWEEPS", 6),
            ("N_TREE_SWEEPS", 2),
            ("N_CELL_DRAWS", 2),
        ):
            patch.setattr(posterior_draws, name, value)
        patch.setattr(held_out, "MAX_DRAWS", 1)  # of those that rows are left out of
        patch.setattr(held_out, "MAX_LEAVES", 300)  # many rows are left out at once
        patch.setattr(hidden_cells, "N_FOLDS", 3)
        patch.setattr(predictor, "N_SAMPLE_FOLDS", 5)
        yield


@pytest.fixture(scope="module")
def blank_pictures():
    """Let fits write a picture of one pixel: for tests of anything else that they write and say."""
    from coaltree.persist import result_files

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(result_files, "dendrogram_bytes", lambda tree, **options: PIXEL)
        yield


@pytest.fixture
def published_data(monkeypatch):
    """The folder with the published data sets, for tests of what is in them."""
    folder = Path(os.environ.get("COALTREE_DATA") or ROOT.parent / "shared" / "data")
    if not folder.is_dir():
        pytest.skip("the published data sets are not here: name their folder in COALTREE_DATA")
    monkeypatch.setenv("COALTREE_DATA", str(folder))
    return folder
