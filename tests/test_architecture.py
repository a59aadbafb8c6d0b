"""Rules for the imports between packages and modules, the sizes of files, and public names.

The distributions are found by their folders: the rules apply to a new one under plugins/ without listing it.
"""

from __future__ import annotations

import ast
import importlib
import io
import json
import re
import subprocess
import sys
import tokenize
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

import lite_core
from import_graph import cycles, import_graph, imported_names, modules_in
from known_distributions import FILE as KNOWN_DISTRIBUTIONS
from workspace import ROOT, Distribution, distributions

#: Imports that each distribution may make: a whole package, or a single public module of a package.
ALLOWED_IMPORTS = {
    "lite_core": (),
    "lite_compiler": ("lite_core",),
    "lite_cpu": ("lite_core", "lite_compiler"),
    "lite_x86": ("lite_core", "lite_compiler", "lite_cpu"),
    "lite_arm": ("lite_core", "lite_compiler", "lite_cpu"),
    "lite_opencl": ("lite_core", "lite_compiler"),
    "lite_paddle": ("lite_core", "lite_tools.commands"),
    "lite_onnx": ("lite_core", "lite_tools.commands"),
    "lite_serve": ("lite_core", "lite_tools.commands"),
    "lite_conformance": ("lite_core", "lite_tools.commands", "lite_tools.checking"),
}
#: Imports of all other distributions: an ordinary backend or reader needs no entry in the table.
IMPORTS_OF_ORDINARY_PLUGINS = ("lite_core",)

#: Modules of the core from the bottom up: a module imports only modules above it in this list.
MODULES_OF_THE_CORE = [
    "version",
    "notebooks",
    "errors",
    "checks",
    "deadline",
    "log",
    "forking",
    "processors",
    "private_files",
    "storage",
    "collector",
    "ir",
    "ops",
    "builder",
    "passes",
    "reports",
    "backend",
    "observing",
    "in_place",
    "resizing",
    "direct",
    "stack",
    "saved_kernels",
    "memory",
    "kernel_backend",
    "builtin",
    "plugins",
    "schedule",
    "container",
    "formats",
    "session",
    "launcher",
]

PACKAGES = {distribution.package: distribution for distribution in distributions()}
MODULES = {package: modules_in(distribution.sources) for package, distribution in PACKAGES.items()}
EVERY_MODULE = {name: file for modules in MODULES.values() for name, file in modules.items()}
CORE = PACKAGES["lite_core"].sources
each_package = pytest.mark.parametrize("package", PACKAGES)


def belongs_to(name: str, module: str) -> bool:
    """Return True if a dotted name is a module or a part of it."""
    return name == module or name.startswith(f"{module}.")


def may_import(package: str, module: str) -> bool:
    """Return True if a package may import a module of another distribution of the workspace."""
    allowed = ALLOWED_IMPORTS.get(package, IMPORTS_OF_ORDINARY_PLUGINS)
    return any(module == one if "." in one else belongs_to(module, one) for one in allowed)


# **** imports ****


@each_package
def test_a_distribution_imports_only_those_below_it(package: str) -> None:
    graph = import_graph({**EVERY_MODULE, **MODULES[package]})
    foreign = {
        f"{name} imports {module}"
        for name in MODULES[package]
        for module in graph[name]
        if not belongs_to(module, package) and not may_import(package, module)
    }
    assert not foreign


def test_ordinary_plugins_import_only_the_core() -> None:
    assert may_import("lite_somebodys_chip", "lite_core.backend")
    others = [name for name in EVERY_MODULE if not belongs_to(name, "lite_core")]
    assert not [name for name in others if may_import("lite_somebodys_chip", name)]


@each_package
def test_a_distribution_declares_what_it_imports(package: str) -> None:
    """Declared are imports of the workspace and of third parties; requirements of some users only may be extras."""
    declared = PACKAGES[package].required(*PACKAGES[package].extras)
    roots = {
        module.partition(".")[0] for name, file in MODULES[package].items() for module, _ in imported_names(name, file)
    }
    foreign = roots - set(sys.stdlib_module_names) - {package, "tomllib"}  # tomllib is not in Python 3.10
    undeclared = {root for root in foreign if not {d.lower() for d in distributions_of(root)} & declared}
    assert not undeclared


def distributions_of(root: str) -> list[str]:
    """Return the names of the distributions that contain a top-level package."""
    if root == "google":
        return ["protobuf"]  # Python 3.10 does not find it
    return [*packages_distributions().get(root, ()), root.replace("_", "-")]


def test_the_core_requires_four_packages() -> None:
    assert PACKAGES["lite_core"].required() == {"numpy", "packaging", "platformdirs", "pluggy"}


def test_a_module_of_the_core_imports_only_modules_above_it() -> None:
    wrong = []
    for name, imported in import_graph(MODULES["lite_core"]).items():
        module = part_of_the_core(name)
        if module in ("", "__main__"):
            continue
        assert module in MODULES_OF_THE_CORE, (
            f"{module} is new: add it to MODULES_OF_THE_CORE and to docs/architecture.md"
        )
        used = {part_of_the_core(other) for other in imported} & {*MODULES_OF_THE_CORE}
        below = [one for one in used if MODULES_OF_THE_CORE.index(one) > MODULES_OF_THE_CORE.index(module)]
        wrong += [f"{name} imports {one}" for one in below]
    assert not wrong


def test_page_lists_the_modules_of_the_core() -> None:
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    table = page.partition("## Modules of the core")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == MODULES_OF_THE_CORE


def part_of_the_core(name: str) -> str:
    """Return ``ir`` for ``lite_core.ir.graph``; an empty string for ``lite_core`` itself."""
    return ".".join(name.split(".")[1:2])


@each_package
def test_no_modules_import_each_other(package: str) -> None:
    graph = import_graph(MODULES[package])
    found = [{name: sorted(graph[name] & {*cycle}) for name in cycle} for cycle in cycles(graph)]
    assert not found, json.dumps(found, indent=2)


def test_import_cycles_are_found_in_functions_and_for_type_checkers(tmp_path: Path) -> None:
    package = tmp_path / "pack"
    package.mkdir()
    (package / "__init__.py").write_text("from pack.a import f\n")
    (package / "a.py").write_text("def f():\n    from . import b\n")
    (package / "b.py").write_text("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import pack.c as c\n")
    (package / "c.py").write_text("import os\nfrom pack import f\n")
    (package / "d.py").write_text("from .a import f\n")
    assert cycles(import_graph(modules_in(package))) == [["pack", "pack.a", "pack.b", "pack.c"]]


# **** locks ****

#: Distributions that only commands and tests use, not sessions: they start processes, but fork none.
WITHOUT_SESSIONS = {"lite_tools", "lite_conformance", "lite_serve"}


@pytest.mark.parametrize("package", [name for name in PACKAGES if name not in WITHOUT_SESSIONS])
def test_locks_are_open_in_forked_children(package: str) -> None:
    made = re.compile(r"\b(?:threading|_thread)\.(?:R?Lock|Condition|(?:Bounded)?Semaphore|allocate_lock)\(")
    named = re.compile(
        r"from (?:threading|_thread) import .*\b(?:R?Lock|Condition|(?:Bounded)?Semaphore|allocate_lock)\b"
    )
    texts = {name: file.read_text() for name, file in MODULES[package].items() if name != "lite_core.forking"}
    found = [name for name, text in texts.items() if made.search(text) or named.search(text)]
    assert not found, f"{found}: locks of sessions are made by lite_core.forking.new_lock()"


# **** the core names no plugin ****


def names_of_plugins() -> dict[str, re.Pattern[str]]:
    """Return patterns of names that the core must not contain: distributions, packages, backends and formats.

    ONNX is allowed, because the operators come from it. The first bytes of well-known files are allowed too.
    """
    known = json.loads(KNOWN_DISTRIBUTIONS.read_text())
    others = [distribution for package, distribution in PACKAGES.items() if package != "lite_core"]
    words = {name for other in others for name in (other.name, other.package)} | {"mkl"}
    words |= known["backends"].keys() | (known["formats"].keys() - {"onnx"})
    return {word: re.compile(rf"(?<![a-z0-9]){re.escape(word)}(?![a-z0-9])", re.IGNORECASE) for word in words}


#: The launcher names the package of the command line, as the core's extra `tools` does.
MAY_BE_NAMED = {("launcher.py", "lite-tools")}


def test_the_core_names_no_plugin() -> None:
    """Names and strings of the code are checked; examples in docstrings may name plugins."""
    patterns = names_of_plugins()
    found = []
    for file in MODULES["lite_core"].values():
        tree = ast.parse(file.read_text())
        documentation = set(docstrings(tree))
        for node in ast.walk(tree):
            texts = [value for _, value in ast.iter_fields(node) if isinstance(value, str)]
            if node not in documentation:
                words = [word for text in texts for word, pattern in patterns.items() if pattern.search(text)]
                named = {(file.relative_to(CORE).as_posix(), word) for word in words} - MAY_BE_NAMED
                found += [f"{name}:{getattr(node, 'lineno', '')} names {word}" for name, word in named]
    assert not found


def docstrings(tree: ast.AST) -> list[ast.Constant]:
    """Return texts that are separate statements: docstrings, including those of attributes."""
    alone = (node.value for node in ast.walk(tree) if isinstance(node, ast.Expr))
    return [value for value in alone if isinstance(value, ast.Constant) and isinstance(value.value, str)]


# **** sizes ****


def test_no_file_is_over_800_lines() -> None:
    tests = [f for folder in ("", "*/", "plugins/*/") for f in ROOT.glob(f"{folder}tests/**/*.py")]
    scripts = [*ROOT.glob("scripts/*.py"), *ROOT.glob("benchmarks/**/*.py")]
    sizes = {str(f): len(f.read_text().splitlines()) for f in [*EVERY_MODULE.values(), *tests, *scripts]}
    assert not {name: size for name, size in sizes.items() if size > 800}


def test_the_core_stays_small() -> None:
    """All modules except the operators stay under 7,500 lines of code."""
    files = [file for name, file in MODULES["lite_core"].items() if part_of_the_core(name) != "ops"]
    assert sum(code_lines(file) for file in files) < 7500


def test_the_loops_of_numba_stay_short() -> None:
    kernels = (ROOT / "plugins/lite_numba/src/lite_numba/kernels").glob("*.py")
    assert sum(map(code_lines, kernels)) <= 600


@pytest.mark.parametrize(("file", "most"), [("backend.py", 449), ("launcher.py", 60)])
def test_contract_and_launcher_stay_short(file: str, most: int) -> None:
    assert len((CORE / file).read_text().splitlines()) <= most


def code_lines(file: Path) -> int:
    """Count the lines with code: no docstrings, comments or blanks."""
    source = file.read_text()
    documentation: set[int] = set()
    for text in docstrings(ast.parse(source)):
        documentation.update(range(text.lineno, (text.end_lineno or text.lineno) + 1))
    ignored = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in ignored:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - documentation)


# **** public names ****


@pytest.mark.parametrize("name", [name for name in EVERY_MODULE if not name.endswith("__main__")])
def test_every_public_name_exists_and_is_documented(name: str) -> None:
    module = importlib.import_module(name)
    assert module.__doc__, f"{name} has no docstring"
    for public in getattr(module, "__all__", ()):
        thing = getattr(module, public)
        home = getattr(thing, "__module__", name)
        if callable(thing) and home.startswith(tuple(PACKAGES)):
            assert thing.__doc__, f"{name}.{public} has no docstring"


def test_lazy_names_are_the_public_names() -> None:
    homes = {name: home for home, names in lite_core._NAMES_IN.items() for name in names}
    public = {*lite_core.__all__} - {"__version__"}
    assert homes.keys() <= public
    for name in public:
        home = importlib.import_module(f"lite_core.{homes.get(name, 'errors')}")
        assert getattr(lite_core, name) is getattr(home, name)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = lite_core.nonsense


@each_package
def test_a_distribution_states_one_version(package: str) -> None:
    stated = getattr(importlib.import_module(package), "__version__", None)
    assert stated in (None, PACKAGES[package].pyproject["project"]["version"])


def is_for_plugins(distribution: Distribution) -> bool:
    return distribution.package != "lite_conformance"


@pytest.mark.parametrize("package", [name for name, one in PACKAGES.items() if is_for_plugins(one)])
def test_importing_a_package_imports_nothing_heavy(package: str) -> None:
    """Importing loads the core and no other package of the workspace, not even numpy: imports wait for first use."""
    code = f"""
import sys, {package}
own = {{{package!r}, "lite_core"}}
loaded = {{name.partition(".")[0] for name in sys.modules}}
print(sorted(loaded & {{"numpy", "click", "llvmlite", "pluggy"}}), sorted(n for n in loaded - own if n[:5] == "lite_"))
"""
    completed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert completed.stdout.strip() == "[] []"


def test_listing_the_backends_imports_nothing_slow() -> None:
    """Every load asks all plugins for their backends, also those that the session does not use."""
    code = (
        "import sys; from lite_core.plugins import available_backends; available_backends(); "
        "print(sorted({'importlib.metadata', 'llvmlite', 'numba', 'onnx', 'onnxruntime', 'pyopencl'} & {*sys.modules}))"
    )
    completed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert completed.stdout.strip() == "[]"
