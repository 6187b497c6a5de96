"""Compile the kernels: every module of a ``kernels`` folder, in Cython's pure Python mode."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import sys
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

SOURCE = Path("src")
# A build that finds memory errors: see "Memory errors" in CONTRIBUTING.md.
CHECKED = bool(os.environ.get("COALTREE_CHECKED"))
BUILD = Path("build/cython-checked" if CHECKED else "build/cython")
OPTIONS = Path("build/options.txt")  # that the kernels in the source checkout were made with
DIRECTIVES = {
    "language_level": 3,
    "infer_types": True,
    "boundscheck": CHECKED,
    "wraparound": False,  # where bounds are checked, a negative index is out of them
    "initializedcheck": CHECKED,
    "nonecheck": CHECKED,
    "cdivision": True,
    "show_performance_hints": not CHECKED,  # that bounds are checked
}
# No fast-math: infinities are flat messages. No fused multiply-add, so that all builds give the same bits.
UNIX_FLAGS = ["-O3", "-g0", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off", "-fwrapv"]
MSVC_FLAGS = ["/O2", "/fp:precise"]
# What Cython itself adds to a module that uses memoryviews is compiled once for all of them.
UTILITY = "coaltree._cyutility"
X86 = platform.machine().lower() in ("x86_64", "amd64")


def kernel_modules() -> list[Path]:
    """Return the Python files that are compiled."""
    return sorted(file for file in SOURCE.glob("coaltree/**/kernels/*.py") if file.name != "__init__.py")


def module_name(file: Path) -> str:
    """Return the name by which a file is imported."""
    return ".".join(file.relative_to(SOURCE).with_suffix("").parts)


def type_files(file: Path, found: tuple[Path, ...] = ()) -> tuple[Path, ...]:
    """Return the .pxd files that a module's types come from: its own, and those that it cimports, directly or not."""
    types = file.with_suffix(".pxd")
    if types in found or not types.exists():
        return found
    found += (types,)
    for package, name in re.findall(r"^from ([\w.]+) cimport (\w+)", types.read_text("utf8"), re.MULTILINE):
        found = type_files(SOURCE.joinpath(*package.split("."), name), found)
    return found


def discard_old_c_file(file: Path) -> None:
    """Remove a module's C file if it is older than some .pxd file: Cython overlooks those that are cimported from a package."""
    made = (BUILD / file).with_suffix(".c")
    if made.exists() and any(types.stat().st_mtime > made.stat().st_mtime for types in type_files(file)):
        made.unlink()


class BuildKernels(build_ext):
    """Compile all kernels or, where that fails, none: the package then runs from the Python source."""

    def finalize_options(self) -> None:
        """Use all cores."""
        super().finalize_options()
        self.parallel = self.parallel or os.cpu_count()

    def run(self) -> None:
        """Compile; where that fails, say so and go on."""
        self.in_checkout = bool(self.inplace or self.editable_mode)  # setuptools takes the first of them back meanwhile
        if self.in_checkout:
            discard_other_builds(SOURCE, OPTIONS, build_options())
        else:
            self.force = True  # a wheel takes over nothing
        if self.in_checkout and has_avx2() and not os.environ.get("COALTREE_ALL_BUILDS"):
            self.leave_out_plain_builds()
        try:
            super().run()
        except Exception as error:  # whatever a missing or broken compiler raises
            if os.environ.get("COALTREE_REQUIRE_COMPILED"):
                raise
            for file in [*SOURCE.glob("coaltree/**/*.so"), *SOURCE.glob("coaltree/**/*.pyd")]:
                file.unlink()  # a part of them would be worse than none
            self.extensions = []
            print(
                f"\n*** coaltree's kernels were not compiled ({error}).\n"
                "*** It will run as plain Python, some hundred times slower. Install a C compiler and reinstall.\n",
                file=sys.stderr,
            )

    def leave_out_plain_builds(self) -> None:
        """Compile for AVX2 only, in half the time: a source checkout runs where it was built."""
        plain = [
            extension for extension in self.extensions if extension.name != UTILITY and ".avx2." not in extension.name
        ]
        for extension in plain:
            self.place_in_source(extension).unlink(missing_ok=True)  # it would go stale
        self.extensions = [extension for extension in self.extensions if extension not in plain]

    def place_in_source(self, extension: Extension) -> Path:
        """Return where a module's build lies in a source checkout."""
        return SOURCE / self.get_ext_filename(extension.name)

    def build_extension(self, extension: Extension) -> None:
        """Compile one module with the flags of its variant; in a source checkout, only if its C code is new."""
        earlier, target = self.place_in_source(extension), Path(self.get_ext_fullpath(extension.name))
        if self.in_checkout and is_newer(earlier, list(map(Path, extension.sources))):
            if earlier.resolve() != target.resolve():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(earlier, target)
            return
        flags = MSVC_FLAGS if self.compiler.compiler_type == "msvc" else UNIX_FLAGS
        avx2 = ["/arch:AVX2"] if self.compiler.compiler_type == "msvc" else ["-mavx2"]
        if ".avx2." in extension.name:
            flags = flags + avx2
        elif self.is_seldom_run(extension):
            flags = ["/O1" if flag == "/O2" else "-O1" if flag == "-O3" else flag for flag in flags]
        extension.extra_compile_args = flags
        super().build_extension(extension)

    def is_seldom_run(self, extension: Extension) -> bool:
        """Return whether to compile in half the time: what Cython adds, and in source checkouts what AVX2 code replaces."""
        return extension.name == UTILITY or (X86 and self.in_checkout)


def build_options() -> str:
    """Return what kernels depend on besides their source: this file, and flags and a compiler from the environment."""
    names = ("COALTREE_CHECKED", "CC", "CFLAGS", "CPPFLAGS", "LDFLAGS")
    digest = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()
    return "\n".join([*(f"{name}={os.environ.get(name, '')}" for name in names), f"setup.py={digest}", ""])


def discard_other_builds(source: Path, record: Path, options: str) -> None:
    """Remove the compiled kernels of a source checkout if they were made with other options; record the new ones."""
    if record.exists() and record.read_text("utf8") != options:
        for file in [*source.glob("coaltree/**/*.so"), *source.glob("coaltree/**/*.pyd")]:
            file.unlink()
    record.parent.mkdir(exist_ok=True)
    record.write_text(options, "utf8")


def is_newer(file: Path, sources: list[Path]) -> bool:
    """Return whether a file exists and is newer than all that it is made of."""
    return file.exists() and all(file.stat().st_mtime > source.stat().st_mtime for source in sources)


def has_avx2() -> bool:
    """Return whether this processor is known to have AVX2."""
    facts = Path("/proc/cpuinfo")  # of Linux; elsewhere both variants are built
    return X86 and facts.exists() and re.search(r"^flags\b.*\bavx2\b", facts.read_text(), re.MULTILINE) is not None


def extensions() -> list[Extension]:
    """Return all modules to be compiled, kernels twice."""
    files = kernel_modules()
    for file in files:
        discard_old_c_file(file)
    kernels = [Extension(module_name(file), [str(file)]) for file in files]
    utility = Extension(UTILITY, [str(SOURCE.joinpath(*UTILITY.split(".")).with_suffix(".c"))])
    built = cythonize(
        [*kernels, utility],
        include_path=[str(SOURCE)],
        compiler_directives=DIRECTIVES,
        build_dir=str(BUILD),
        nthreads=os.cpu_count() or 1,
        shared_utility_qualified_name=UTILITY,
    )
    kernels = [extension for extension in built if extension.name != UTILITY]
    # all of them: going to and fro between code with and without AVX costs more than a part of it gains
    return built + [for_avx2(extension) for extension in kernels] if X86 else built


def for_avx2(extension: Extension) -> Extension:
    """Return the same C code as a module of the folder ``avx2`` beside: see coaltree/_extensions.py."""
    package, _, name = extension.name.rpartition(".")
    source = Path(extension.sources[0])
    copy = source.parent / "avx2" / source.name
    copy.parent.mkdir(exist_ok=True)
    SOURCE.joinpath(*package.split("."), "avx2").mkdir(exist_ok=True)  # for builds in place
    if not copy.exists() or copy.stat().st_mtime < source.stat().st_mtime:
        copy.write_bytes(source.read_bytes())
    return Extension(f"{package}.avx2.{name}", [str(copy)])


if __name__ == "__main__":
    setup(ext_modules=extensions(), cmdclass={"build_ext": BuildKernels})
