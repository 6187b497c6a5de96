import hashlib
import os
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).parent.parent

# Before anything imports scipy: scikit-learn's check of array API input is skipped without it.
os.environ.setdefault("SCIPY_ARRAY_API", "1")
# No window may open, whatever the machine has.
os.environ.setdefault("MPLBACKEND", "Agg")

# A cache of compiled kernels for the sources that they are made of, shared by all workers.
package = ROOT / "src" / "coaltree"
sources = [package / "compiled.py", package / "inner_code.py"]
for folder in ("process", "inference", "questions", "rivals"):
    sources += sorted((package / folder).glob("*.py"))
digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:16]
os.environ["NUMBA_CACHE_DIR"] = str(ROOT / ".numba_cache" / digest)

# The first call of a kernel compiles it, so no deadline; on the server the same examples every time.
settings.register_profile("coaltree", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("coaltree")


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Every worker collects all files: what a file compiles as it is imported would be compiled by each of them."""
    from numba.core import event  # after the settings above, which it reads once

    class Refusal(event.Listener):
        def on_start(self, happening):
            raise RuntimeError("kernels are compiled while tests are collected: leave that to a test or a fixture")

        def on_end(self, happening):
            pass

    with event.install_listener("numba:compile", Refusal()):
        return (yield)


@pytest.fixture
def published_data(monkeypatch):
    """The folder with the published data sets, for tests of what is in them."""
    folder = Path(os.environ.get("COALTREE_DATA") or ROOT.parent / "shared" / "data")
    if not folder.is_dir():
        pytest.skip("the published data sets are not here: name their folder in COALTREE_DATA")
    monkeypatch.setenv("COALTREE_DATA", str(folder))
    return folder
