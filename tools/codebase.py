"""Measure the structure of the package and draw its module map.

    python tools/codebase.py              print the figures
    python tools/codebase.py --map        write the map into CONTRIBUTING.md and the diagram into docs/architecture.md
    python tools/codebase.py --check      fail if either is out of date or the import graph has a cycle

The figures that need a fit (functions and modules that a fit runs through, calls to the first merge) are left out with
``--static``.
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "coaltree"
SMALL = 60  # lines; a smaller file with a single caller should be part of that caller
BEGIN, END = "<!-- begin: {name}, by tools/codebase.py -->", "<!-- end: {name} -->"
# The order in which data flows; a package imports only from those before it.
FLOW = (
    "datasets",
    "tree",
    "table",
    "process",
    "inference",
    "predict",
    "workflow",
    "baselines",
    "plot",
    "report",
    "persist",
    "estimators",
    "cli",
)


@dataclass(frozen=True)
class Module:
    """A source file: its name without ``coaltree.``, its length, what it is about and what it imports."""

    name: str
    path: Path
    n_lines: int
    summary: str
    imports: frozenset[str]

    @property
    def package(self) -> str:
        """The top-level package, or the empty string for a module beside the packages."""
        return self.name.partition(".")[0] if "." in self.name or self.path.name == "__init__.py" else ""

    @property
    def is_kernel(self) -> bool:
        """Whether the file is compiled."""
        return "kernels" in self.path.parts


def module_name(path: Path) -> str:
    """Return the dotted name of a file, without the name of the package itself."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def read_modules() -> dict[str, Module]:
    """Return all modules of the package by name."""
    paths = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}
    modules = {}
    for name, path in paths.items():
        text = path.read_text("utf8")
        tree = ast.parse(text)
        summary = (ast.get_docstring(tree) or "").partition("\n")[0]
        modules[name] = Module(name, path, len(text.splitlines()), summary, frozenset(find_imports(tree, name, paths)))
    return modules


def find_imports(tree: ast.AST, name: str, paths: dict[str, Path]) -> set[str]:
    """Return the modules of the package that a module imports anywhere: at its top, in functions or for types."""
    package = name.split(".") if paths[name].name == "__init__.py" else name.split(".")[:-1]
    imports = set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom) or not node.level:
            continue
        base = package[: len(package) - node.level + 1]
        target = ".".join([*base, *(node.module.split(".") if node.module else [])]).strip(".")
        for alias in node.names:
            full_name = f"{target}.{alias.name}".strip(".")
            imports.add(full_name if full_name in paths else target)
    return imports - {name, ""}


def find_cycles(modules: dict[str, Module]) -> list[list[str]]:
    """Return the strongly connected components of more than one module (Tarjan's algorithm)."""
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    cycles = []

    def visit(name: str) -> None:
        order[name] = lowest[name] = len(order)
        stack.append(name)
        for other in sorted(modules[name].imports):
            if other not in order:
                visit(other)
                lowest[name] = min(lowest[name], lowest[other])
            elif other in stack:
                lowest[name] = min(lowest[name], order[other])
        if lowest[name] == order[name]:
            component = stack[stack.index(name) :]
            del stack[stack.index(name) :]
            if len(component) > 1:
                cycles.append(sorted(component))

    for name in modules:
        if name not in order:
            visit(name)
    return cycles


def count_callers(modules: dict[str, Module]) -> dict[str, int]:
    """Return how many modules import each module."""
    callers: dict[str, int] = defaultdict(int)
    for module in modules.values():
        for other in module.imports:
            callers[other] += 1
    return callers


def process_checks(modules: dict[str, Module]) -> list[str]:
    """Return where code outside ``process/`` checks the class of a process."""
    classes = {"Brownian", "OrnsteinUhlenbeck", "Multinomial", "Mixed", "Gaussian"}
    places = []
    for module in modules.values():
        if module.package == "process":
            continue
        for node in ast.walk(ast.parse(module.path.read_text("utf8"))):
            is_check = isinstance(node, ast.Call) and getattr(node.func, "id", "") == "isinstance"
            if is_check and {leaf.id for leaf in ast.walk(node) if isinstance(leaf, ast.Name)} & classes:
                places.append(f"{module.name}:{node.lineno}")
    return places


def trace_fit() -> dict[str, int]:
    """Return how many modules and functions a default fit runs through, and how many calls lead to the first merge."""
    sys.path.insert(0, str(PACKAGE.parent))  # this checkout, not an installed version
    import numpy as np

    import coaltree

    functions: set[tuple[str, str]] = set()
    depths: list[int] = []

    def watch(frame, event, argument):  # type: ignore[no-untyped-def]
        if event != "call" or not frame.f_code.co_filename.startswith(str(PACKAGE)):
            return
        functions.add((frame.f_code.co_filename, frame.f_code.co_qualname))
        if not depths and frame.f_code.co_name == "merge_exactly":
            depth, caller = 0, frame
            while caller is not None:
                depth += caller.f_code.co_filename.startswith(str(PACKAGE))
                caller = caller.f_back
            depths.append(depth)

    rng = np.random.default_rng(0)
    table = np.concatenate([rng.normal(center, 1.0, (20, 4)) for center in (-4.0, 4.0)])
    model = coaltree.CoalescentClustering()
    sys.setprofile(watch)
    try:
        model.fit(table)
    finally:
        sys.setprofile(None)
    return {
        "modules that fit runs through": len({file for file, _ in functions}),
        "functions that fit runs through": len(functions),
        "calls from fit to the first merge": depths[0] if depths else 0,
    }


def figures(modules: dict[str, Module], static: bool = False) -> dict[str, int]:
    """Return the figures by name."""
    callers = count_callers(modules)
    files = [module for module in modules.values() if module.path.name != "__init__.py"]
    single = [module for module in files if callers[module.name] == 1]
    # What the `__init__` of a package imports: names for users, and the commands of the command line.
    public = {name for module in modules.values() if module.path.name == "__init__.py" for name in module.imports}
    values = {
        "modules": len(files),
        "of them kernels": sum(module.is_kernel for module in files),
        "lines": sum(module.n_lines for module in modules.values()),
        "lines of kernels": sum(module.n_lines for module in files if module.is_kernel),
        "lines of table/": sum(module.n_lines for module in files if module.package == "table"),
        "modules under 150 lines": sum(module.n_lines < 150 for module in files),
        "modules with a single caller": len(single),
        "of them public names or commands": sum(module.name in public for module in single),
        f"of them under {SMALL} lines": sum(module.n_lines < SMALL for module in single),
        "import cycles": len(find_cycles(modules)),
        "isinstance on processes outside process/": len(process_checks(modules)),
    }
    return values if static else values | trace_fit()


def module_map(modules: dict[str, Module]) -> str:
    """Return the map: every package in the order of the data flow, and the first sentence of each module."""
    lines = []
    for package in ("", *FLOW):
        head = modules.get(package) if package else None
        lines += [
            "",
            f"**`{package}/`** {head.summary if head else ''}" if package else "**Modules next to the packages**",
            "",
        ]
        for module in sorted(modules.values(), key=lambda module: module.name):
            if module.package == package and module.path.name != "__init__.py":
                short = module.name.removeprefix(f"{package}.") if package else module.name
                lines.append(f"- `{short}` {module.summary}")
    return "\n".join(lines[1:]) + "\n"


def diagram(modules: dict[str, Module]) -> str:
    """Return the packages and the imports between neighbours in the flow of data, as a Mermaid diagram."""
    edges: dict[str, set[str]] = defaultdict(set)
    for module in modules.values():
        if module.package in FLOW:
            edges[module.package] |= {
                other
                for name in module.imports
                if (other := name.partition(".")[0]) in FLOW and other != module.package
            }
    # an import that also leads through other packages says nothing new
    reach = {name: set(edges[name]) for name in FLOW}
    for name in FLOW:
        for other in FLOW[: FLOW.index(name)]:
            if other in reach[name]:
                reach[name] |= reach[other]
    lines = ["```mermaid", "flowchart LR"]
    for name in FLOW:
        direct = {other for other in edges[name] if not any(other in reach[mid] for mid in edges[name] - {other})}
        lines += [f"    {other} --> {name}" for other in FLOW if other in direct]
    return "\n".join([*lines, "```"]) + "\n"


def with_part(path: Path, name: str, part: str) -> str:
    """Return the text of a file with the part between its two markers replaced."""
    text = path.read_text("utf8")
    begin, end = BEGIN.format(name=name), END.format(name=name)
    if begin not in text or end not in text:
        raise SystemExit(f"{path.name} lacks the markers of {name!r}.")
    return f"{text.partition(begin)[0]}{begin}\n\n{part}\n{end}{text.partition(end)[2]}"


def generated_texts(modules: dict[str, Module]) -> dict[Path, str]:
    """Return the texts of the files with generated parts, up to date."""
    parts = (
        (ROOT / "CONTRIBUTING.md", "module map", module_map(modules)),
        (ROOT / "docs" / "architecture.md", "packages", diagram(modules)),
    )
    return {path: with_part(path, name, part) for path, name, part in parts}


def main() -> None:
    """Print the figures, write the map, or check it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--map", action="store_true", help="write the module map and the diagram")
    parser.add_argument("--check", action="store_true", help="fail if they are out of date, or if imports have a cycle")
    parser.add_argument("--static", action="store_true", help="leave out the figures that need a fit")
    options = parser.parse_args()
    modules = read_modules()
    if options.map:
        for path, text in generated_texts(modules).items():
            path.write_text(text, "utf8")
    elif options.check:
        old = [path.name for path, text in generated_texts(modules).items() if path.read_text("utf8") != text]
        if old:
            raise SystemExit(f"{' and '.join(old)}: out of date; run python tools/codebase.py --map")
        if cycles := find_cycles(modules):
            raise SystemExit(f"import cycles: {cycles}")
    else:
        for name, value in figures(modules, options.static).items():
            print(f"{name:45s} {value:7,}")
        for cycle in find_cycles(modules):
            print("cycle:", ", ".join(cycle))
        for place in process_checks(modules):
            print("isinstance:", place)


if __name__ == "__main__":
    main()
