import contextlib
import hashlib
import os
from pathlib import Path

from hypothesis import settings

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

ROOT = Path(__file__).parent.parent

# Before anything imports scipy: scikit-learn's check of array API input is skipped without it.
os.environ.setdefault("SCIPY_ARRAY_API", "1")
# No window may open, whatever the machine has.
os.environ.setdefault("MPLBACKEND", "Agg")

# A cache of compiled kernels for the sources as they are, shared by all workers.
sources = sorted((ROOT / "src" / "coaltree").rglob("*.py"))
digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:16]
os.environ["NUMBA_CACHE_DIR"] = str(ROOT / ".numba_cache" / digest)

# The first call of a kernel compiles it, so no deadline; on the server the same examples every time.
settings.register_profile("coaltree", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("coaltree")


def compile_each_kernel_once():
    """Let one worker compile a kernel while others that need it wait, and load it from disk then.

    Workers spend most of their time compiling, and many of them the same kernels.
    """
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.dispatcher import Dispatcher

    compile_one = Dispatcher.compile
    held = set()

    def compile_or_wait(self, signature):
        kernel = f"{self.py_func.__module__}.{self.py_func.__qualname__} {signature}"
        name = hashlib.sha256(kernel.encode()).hexdigest()[:24]
        if not self._cache.cache_path or name in held:
            return compile_one(self, signature)
        folder = Path(os.environ["NUMBA_CACHE_DIR"]) / "locks"
        folder.mkdir(parents=True, exist_ok=True)
        # always in this order: a thread that compiles takes more locks for what its kernel calls
        with global_compiler_lock, (folder / name).open("a") as lock, contextlib.ExitStack() as stack:
            fcntl.flock(lock, fcntl.LOCK_EX)
            held.add(name)
            stack.callback(held.discard, name)
            return compile_one(self, signature)

    Dispatcher.compile = compile_or_wait


if fcntl is not None and "PYTEST_XDIST_WORKER" in os.environ:
    compile_each_kernel_once()
