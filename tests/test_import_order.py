"""Imports point only backwards along the flow of data."""

import ast
import importlib.util
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import coaltree

PACKAGE = Path(coaltree.__file__).parent

# Earlier layers know nothing of later ones.
LAYERS = [
    ["errors"],
    [
        "_validation",
        "_parameters",
        "_cut",
        "_html",
        "_random",
        "_atomic",
        "_constants",
        "_math",
        "_nocython",
        "_stop",
        "_progress",
        "_extensions",
    ],
    ["datasets"],
    ["tree"],
    ["table"],
    ["process"],
    ["inference"],
    ["predict"],
    ["workflow"],
    ["metrics"],
    ["baselines"],
    ["plot"],
    ["report"],
    ["persist"],
    ["estimators"],
    ["cli"],
    ["__main__", "__init__"],
]
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}


def layer_of(path):
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def imported_layers(path):
    """Yield the layer of every module of the package that a file imports, at any depth of its code."""
    package = ("coaltree", *path.relative_to(PACKAGE).with_suffix("").parts[:-1])
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            module = ".".join(part for part in (base, node.module) if part)
            modules = [f"{module}.{alias.name}" for alias in node.names]
        else:
            continue
        for module in modules:
            parts = module.split(".")
            if parts[0] == "coaltree" and len(parts) > 1 and parts[1] in RANK:
                yield parts[1]


def test_imports_point_backwards():
    paths = sorted(PACKAGE.rglob("*.py"))
    assert len(paths) > 100
    assert {layer_of(path) for path in paths} == set(RANK), "LAYERS must have a place for every part"
    wrong = [
        f"{path.relative_to(PACKAGE)} imports {other}"
        for path in paths
        for other in imported_layers(path)
        if RANK[other] > RANK[layer_of(path)]
    ]
    assert not wrong


def test_import_check_sees_relative_imports():
    assert set(imported_layers(PACKAGE / "workflow" / "fit.py")) >= {
        "errors",
        "inference",
        "process",
        "table",
        "tree",
    }


@pytest.mark.parametrize("statement", ["import coaltree", "from coaltree import Tree, simulate_tree, log_prior"])
def test_import_loads_no_heavy_packages(statement):
    heavy = [
        "sklearn",
        "matplotlib",
        "polars",
        "pandas",
        "typer",
        "scipy.stats",
        "pooch",
        "dask",
        "distributed",
    ]
    program = f"{statement}; import sys; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_dask_is_imported_lazily():
    program = (
        "import coaltree as ct\n"
        "for name in ct.__all__: getattr(ct, name)\n"
        "import coaltree.cli.fit\n"
        "from coaltree.inference import posterior_draws\n"
        "posterior_draws.MIN_SWEEPS = posterior_draws.MAX_SWEEPS = 4\n"
        "ct.CoalescentClustering().fit([[0.0], [1.0], [3.0]]).score_samples([[0.5]])\n"
        "import sys; print([m for m in ('dask', 'distributed') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_public_names_exist():
    for name in coaltree.__all__:
        assert getattr(coaltree, name) is not None
    assert set(coaltree.__all__) == set(coaltree._HOMES)
    assert set(coaltree.__all__) <= set(dir(coaltree))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        coaltree.nothing  # noqa: B018


@pytest.fixture(scope="module")
def modules(codebase):
    return codebase.read_modules()


@pytest.fixture(scope="module")
def codebase():
    """The script that measures the structure of the package."""
    spec = importlib.util.spec_from_file_location("codebase", PACKAGE.parents[1] / "tools" / "codebase.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["codebase"] = module  # dataclasses look their module up there
    spec.loader.exec_module(module)
    return module


def test_imports_have_no_cycles(codebase, modules):
    """Imports in functions and for types count as well."""
    assert codebase.find_cycles(modules) == []


def test_find_cycles_detects_cycle(codebase):
    modules = {
        name: codebase.Module(name, PACKAGE / "x.py", 1, "", frozenset(imports))
        for name, imports in {"a": "b", "b": "c", "c": "bd", "d": ""}.items()
    }
    assert codebase.find_cycles(modules) == [["b", "c"]]


def test_no_isinstance_checks_of_processes(codebase, modules):
    assert codebase.process_checks(modules) == []


def test_module_map_is_up_to_date(codebase, modules):
    """Run ``python tools/codebase.py --map`` after a change of modules or of their first lines."""
    for path, text in codebase.generated_texts(modules).items():
        assert path.read_text() == text


def test_every_dependency_has_one_lower_bound():
    """From which the constraints of the oldest supported versions are made."""
    import oldest_requirements

    project = tomllib.loads(oldest_requirements.PROJECT.read_text())["project"]
    versions = oldest_requirements.oldest_versions(project)
    assert {"numpy", "scipy", "polars", "pandas", "dask"} <= versions.keys()
    for broken in (["numpy"], ["numpy>=1", "numpy>=2"]):
        with pytest.raises(ValueError, match="lower bound"):
            oldest_requirements.oldest_versions({"name": "x", "dependencies": broken, "optional-dependencies": {}})
