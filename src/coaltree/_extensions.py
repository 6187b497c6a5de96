"""The build of the kernels that is loaded: for processors with AVX2, for any processor, or the Python source.

The files of a ``kernels`` folder are Python, each with C types in a ``.pxd`` file of the same name. Cython compiles them when the
package is installed; on x86 a second time for processors with AVX2, into the folder ``avx2``. A source checkout has only the
build for its own processor. Without a C compiler there is no build, and Python runs the same files.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from importlib import import_module
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

from .errors import InstallationWarning

UNCOMPILED = (
    "coaltree was installed without a C compiler, so its kernels run as plain Python, some hundred times slower. Install a "
    "compiler (for example: apt install gcc python3-dev) and reinstall coaltree, or install a wheel."
)
_warned = False


def kernel_path(path: Iterable[str]) -> list[str]:
    """Return the folders of the modules of a package of kernels. The fastest build that this processor can run comes first.

    Parameters
    ----------
    path : iterable of str
        The ``__path__`` of the package.
    """
    folders = list(path)
    if _has_avx2():
        folders = [str(Path(folder, "avx2")) for folder in folders if Path(folder, "avx2").is_dir()] + folders
    if not _are_built(folders):
        _warn_uncompiled()
    return folders


def report_uncompiled(say: Callable[[str], None]) -> None:
    """Call `say` once, instead of issuing a warning, if the kernels are not compiled."""
    global _warned
    # Whether this processor can run the build is known only when it is loaded.
    folder = Path(__file__).parent / "process" / "kernels"
    if not _warned and not _are_built(str(build) for build in (folder, folder / "avx2") if build.is_dir()):
        _warned = True
        say(UNCOMPILED)


def are_compiled() -> bool:
    """Return whether the kernels that are loaded were compiled."""
    kernel = import_module("coaltree.process.kernels.messages")
    return str(kernel.__file__).endswith(tuple(EXTENSION_SUFFIXES))


def _are_built(folders: Iterable[str]) -> bool:
    return any(file.name.endswith(tuple(EXTENSION_SUFFIXES)) for folder in folders for file in Path(folder).iterdir())


def _has_avx2() -> bool:
    try:
        features = import_module("numpy._core._multiarray_umath").__cpu_features__
    except (ImportError, AttributeError):  # numpy has moved it: the build for any processor will do
        return False
    return bool(features.get("AVX2", False))


def _warn_uncompiled() -> None:
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(UNCOMPILED, InstallationWarning, stacklevel=4)
