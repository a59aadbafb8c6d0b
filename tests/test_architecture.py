"""Who may import whom, how large files may grow, and what counts as public.

The distributions are found by their folders: a new one under plugins/ is held to these rules without being listed.
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
from import_graph import circles, import_graph, imported_names, modules_in
from known_distributions import FILE as KNOWN_DISTRIBUTIONS
from workspace import ROOT, Distribution, distributions

#: What a distribution may import of the others: a whole package, or one public module and nothing else of its package.
ARROWS = {
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
#: What any other may import: an ordinary backend or reader needs no place in the table.
OF_AN_ORDINARY_PLUGIN = ("lite_core",)

#: The core from the ground up: a module imports only modules above it in this list.
MODULES_OF_THE_CORE = [
    "version",
    "errors",
    "log",
    "storage",
    "collector",
    "ir",
    "ops",
    "builder",
    "passes",
    "backend",
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
    """Whether a dotted name is a module or lies in it."""
    return name == module or name.startswith(f"{module}.")


def may_import(package: str, module: str) -> bool:
    """Whether a package may import a module of another distribution of the workspace."""
    allowed = ARROWS.get(package, OF_AN_ORDINARY_PLUGIN)
    return any(module == one if "." in one else belongs_to(module, one) for one in allowed)


# **** who imports whom ****


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


def test_an_ordinary_plugin_may_import_the_core_and_nothing_else_of_the_workspace() -> None:
    assert may_import("lite_somebodys_chip", "lite_core.backend")
    others = [name for name in EVERY_MODULE if not belongs_to(name, "lite_core")]
    assert not [name for name in others if may_import("lite_somebodys_chip", name)]


@each_package
def test_a_distribution_declares_what_it_imports(package: str) -> None:
    """The others of the workspace and third parties alike; what only some users need may be an extra."""
    declared = PACKAGES[package].required(*PACKAGES[package].extras)
    roots = {
        module.partition(".")[0] for name, file in MODULES[package].items() for module, _ in imported_names(name, file)
    }
    foreign = roots - set(sys.stdlib_module_names) - {package}
    undeclared = {root for root in foreign if not {d.lower() for d in distributions_of(root)} & declared}
    assert not undeclared


def distributions_of(root: str) -> list[str]:
    """Names of the distributions that bring a top-level package: ``google`` is protobuf's."""
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
            f"{module} is new: give it a place in MODULES_OF_THE_CORE and in docs/architecture.md"
        )
        used = {part_of_the_core(other) for other in imported} & {*MODULES_OF_THE_CORE}
        below = [one for one in used if MODULES_OF_THE_CORE.index(one) > MODULES_OF_THE_CORE.index(module)]
        wrong += [f"{name} imports {one}" for one in below]
    assert not wrong


def test_the_page_tells_what_lives_in_each_module_of_the_core() -> None:
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    table = page.partition("## Modules of the core")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == MODULES_OF_THE_CORE


def part_of_the_core(name: str) -> str:
    """``ir`` for ``lite_core.ir.graph``; empty for ``lite_core`` itself."""
    return ".".join(name.split(".")[1:2])


@each_package
def test_no_modules_import_each_other(package: str) -> None:
    graph = import_graph(MODULES[package])
    found = [{name: sorted(graph[name] & {*circle}) for name in circle} for circle in circles(graph)]
    assert not found, json.dumps(found, indent=2)


def test_circles_are_found_wherever_the_imports_stand(tmp_path: Path) -> None:
    package = tmp_path / "pack"
    package.mkdir()
    (package / "__init__.py").write_text("from pack.a import f\n")
    (package / "a.py").write_text("def f():\n    from . import b\n")
    (package / "b.py").write_text("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import pack.c as c\n")
    (package / "c.py").write_text("import os\nfrom pack import f\n")
    (package / "d.py").write_text("from .a import f\n")
    assert circles(import_graph(modules_in(package))) == [["pack", "pack.a", "pack.b", "pack.c"]]


# **** the core names no plugin ****


def names_of_plugins() -> dict[str, re.Pattern[str]]:
    """What would betray that the core knows somebody: distributions, packages, backends and formats.

    ONNX is where the operators come from, and how well-known files begin is no secret: the core may speak of it.
    """
    known = json.loads(KNOWN_DISTRIBUTIONS.read_text())
    others = [distribution for package, distribution in PACKAGES.items() if package != "lite_core"]
    words = {name for other in others for name in (other.name, other.package)} | {"mkl"}
    words |= known["backends"].keys() | (known["formats"].keys() - {"onnx"})
    return {word: re.compile(rf"(?<![a-z0-9]){re.escape(word)}(?![a-z0-9])", re.IGNORECASE) for word in words}


#: The launcher says which package is the command line, as the core's extra `tools` does.
MAY_BE_NAMED = {("launcher.py", "lite-tools")}


def test_the_core_names_no_plugin() -> None:
    """In names and strings of the code; what a docstring takes as an example is no knowledge."""
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
    """Texts that stand alone as statements: docstrings, of attributes too."""
    alone = (node.value for node in ast.walk(tree) if isinstance(node, ast.Expr))
    return [value for value in alone if isinstance(value, ast.Constant) and isinstance(value.value, str)]


# **** sizes ****


def test_no_file_is_over_800_lines() -> None:
    tests = [f for folder in ("", "*/", "plugins/*/") for f in ROOT.glob(f"{folder}tests/**/*.py")]
    scripts = [*ROOT.glob("scripts/*.py"), *ROOT.glob("benchmarks/**/*.py")]
    sizes = {str(f): len(f.read_text().splitlines()) for f in [*EVERY_MODULE.values(), *tests, *scripts]}
    assert not {name: size for name, size in sizes.items() if size > 800}


def test_the_core_stays_small() -> None:
    """All that is not an operator stays under 7,500 lines of code."""
    files = [file for name, file in MODULES["lite_core"].items() if part_of_the_core(name) != "ops"]
    assert sum(code_lines(file) for file in files) < 7500


@pytest.mark.parametrize(("file", "most"), [("backend.py", 449), ("launcher.py", 60)])
def test_what_everyone_reads_or_starts_stays_short(file: str, most: int) -> None:
    assert len((CORE / file).read_text().splitlines()) <= most


def code_lines(file: Path) -> int:
    """Lines that hold code: no docstrings, comments or blanks."""
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


# **** what is public ****


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
    assert {*lite_core._HOMES, "__version__"} == set(lite_core.__all__)
    for name, home in lite_core._HOMES.items():
        assert getattr(lite_core, name) is getattr(importlib.import_module(f"lite_core.{home}"), name)
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
    """No other package of the workspace but the core, not even numpy: what a package needs is imported on first use."""
    code = f"""
import sys, {package}
own = {{{package!r}, "lite_core"}}
loaded = {{name.partition(".")[0] for name in sys.modules}}
print(sorted(loaded & {{"numpy", "click", "llvmlite", "pluggy"}}), sorted(n for n in loaded - own if n[:5] == "lite_"))
"""
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[] []"
