"""How numerical code is compiled: one decorator, one way to dispatch on the kind of messages.

Kernels are compiled by Numba at their first call and kept on disk beside the source. Numba's index of that
cache looks only at the file of the outermost function, so a change in an inner kernel of another file would
go unseen: `_forget_stale_kernels` closes that gap for people who edit the package.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

import numba
from numba.core import config, event, types
from numba.extending import overload

from .inner_code import InnerFunction, LinkedCompiler

Function = TypeVar("Function", bound=Callable[..., Any])

#: Set COALTREE_KERNEL_CACHE=0 to compile in memory only.
USE_DISK_CACHE = os.environ.get("COALTREE_KERNEL_CACHE", "1") != "0"

# Three decorators: `kernel`, below, for what Python calls or several kernels share, kept on disk; `jit` for what only
# kernels call, and becomes part of them; `inlined` for what is called in one place. Each layer of `jit` has LLVM optimise
# all that is beneath it once more, so that a layer fewer makes the first fit a second or two shorter.
# No fastmath: infinities stand for flat messages and impossible events. nogil lets threads share the work.
# Nobody calls kernels from C: wrappers for that are left out, which saves time too.
_OPTIONS: Any = {"error_model": "numpy", "no_cfunc_wrapper": True}
_LINKED: Any = {**_OPTIONS, "pipeline_class": LinkedCompiler}
_kernel = numba.njit(cache=USE_DISK_CACHE, nogil=True, **_OPTIONS)
inlined = numba.njit(nogil=True, inline="always", **_OPTIONS)


def jit(function: Callable[..., Any]) -> Any:
    """Compile what only kernels call."""
    if config.DISABLE_JIT:  # type: ignore[attr-defined, unused-ignore]
        return function
    return InnerFunction(function, {"nogil": True, **_OPTIONS})


def kernel(function: Callable[..., Any]) -> Any:
    """Compile what Python calls, and keep it on disk."""
    compiled = _kernel(function)
    file = getattr(getattr(compiled, "_cache", None), "_cache_file", None)
    if file is not None and fcntl is not None:
        file.save = _one_at_a_time(file.save, Path(file._cache_path))
    return compiled


def _one_at_a_time(save: Callable[..., None], folder: Path) -> Callable[..., None]:
    """Let one process at a time add to the kernels on disk: two might give theirs the same file name."""

    @functools.wraps(save)
    def guarded(*arguments: Any) -> None:
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
        try:
            lock = (folder / "kernels.lock").open("a")
        except OSError:  # nothing can be kept here anyway
            return
        with lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # given back when the file is closed
            save(*arguments)

    return guarded


class Operation:
    """A function that every process supplies for its own class of forest.

    The instance is called with a forest first. In Python it looks up the function supplied for the forest's
    class; in compiled code Numba makes the same choice when it compiles, at no cost at run time.
    """

    def __init__(self, declaration: Callable[..., Any], default: Callable[..., Any] | None = None) -> None:
        supplied: dict[type, Callable[..., Any]] = {}

        def choose(forest_class: type) -> Callable[..., Any]:
            function = supplied.get(forest_class, default)
            if function is None:
                raise TypeError(f"{forest_class.__name__} does not supply the operation {declaration.__name__!r}.")
            return function

        @functools.wraps(declaration)
        def dispatch(forest: Any, *arguments: Any) -> Any:
            return choose(type(forest))(forest, *arguments)

        @overload(dispatch, strict=False, jit_options=_LINKED)  # type: ignore[untyped-decorator, unused-ignore]
        def dispatch_compiled(forest: Any, *arguments: Any) -> Callable[..., Any] | None:
            if isinstance(forest, types.NamedTuple):
                function = choose(forest.instance_class)
                return getattr(function, "py_func", function)  # Numba wants the plain function here
            return None

        self.name = declaration.__name__.strip("_")
        self.function = dispatch
        self._supplied = supplied

    def supply(self, forest_class: type) -> Callable[[Function], Function]:
        """Register the decorated function as this operation for a class of forest."""

        def register(function: Function) -> Function:
            # Kernels on disk may come from different processes, and compiled functions are told apart there by their names and a
            # number that counts them in the process: with one name for all, one might be taken for another.
            plain = getattr(function, "py_func", function)
            plain.__name__ = plain.__qualname__ = f"{self.name}_of_{forest_class.__name__}"
            self._supplied[forest_class] = function
            return function

        return register


class _Announcer(event.Listener):  # type: ignore[misc, unused-ignore]
    """Says once a process that kernels are being compiled: the user would otherwise see nothing for seconds."""

    said = False

    def on_start(self, happening: Any) -> None:
        if not self.said:
            self.said = True
            print(
                "coaltree: compiling kernels for this kind of table (once; later runs load them from disk) ...",
                file=sys.stderr,
                flush=True,
            )

    def on_end(self, happening: Any) -> None:
        pass


_ANNOUNCER = _Announcer()


@contextlib.contextmanager
def announced_compilation() -> Iterator[None]:
    """Say on standard error, once, if Numba has to compile something inside the block."""
    with event.install_listener("numba:compile", _ANNOUNCER):
        yield


def _forget_stale_kernels() -> None:
    package = Path(__file__).parent
    digest = hashlib.sha256()
    folders = ("process", "inference", "questions", "rivals")
    kernels = [
        package / "compiled.py",
        package / "inner_code.py",
        *(file for folder in folders for file in package.glob(f"{folder}/*.py")),
    ]
    for source in sorted(kernels):
        facts = source.stat()
        digest.update(f"{source.name} {facts.st_mtime_ns} {facts.st_size}\n".encode())
    stamp = package / "__pycache__" / "kernels.stamp"
    with contextlib.suppress(OSError):  # a read-only install: Numba keeps its cache elsewhere, nobody edits it
        if stamp.is_file() and stamp.read_text() == digest.hexdigest():
            return
        for cached in package.rglob("__pycache__/*.nbi"):
            cached.unlink(missing_ok=True)
        stamp.parent.mkdir(exist_ok=True)
        stamp.write_text(digest.hexdigest())


if USE_DISK_CACHE:
    _forget_stale_kernels()
