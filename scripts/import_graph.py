"""Which module of the workspace imports which, read from the sources and never by importing them.

Every import counts, also one in a function and one for type checkers only: what a reader must know is what is named.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

__all__ = ["circles", "import_graph", "imported_names", "modules_in"]


def modules_in(package: Path) -> dict[str, Path]:
    """The modules of a package by name, but for examples, which are programs of their own.

    Args:
        package: its folder: ``core/src/lite_core``.
    """
    modules: dict[str, Path] = {}
    for file in sorted(package.rglob("*.py")):
        parts = file.relative_to(package.parent).with_suffix("").parts
        if "examples" not in parts:
            modules[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return modules


def imported_names(name: str, file: Path) -> Iterator[tuple[str, str]]:
    """Each import of a module as ``(module, name in it)``; the second is empty where a module is imported as a whole.

    Args:
        name: the module's own name, which relative imports start from.
        file: its source.
    """
    package = name if file.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            module = ".".join([*above, *([node.module] if node.module else [])])
            yield from ((module, alias.name) for alias in node.names)


def import_graph(modules: Mapping[str, Path]) -> dict[str, set[str]]:
    """For each module those of ``modules`` that it imports itself.

    ``from a.b import c`` imports ``a.b.c`` where that is a module, else ``a.b``.
    """
    graph: dict[str, set[str]] = {}
    for name, file in modules.items():
        found = {_nearest(f"{module}.{inner}", modules) for module, inner in imported_names(name, file)}
        graph[name] = {module for module in found if module} - {name}
    return graph


def _nearest(name: str, modules: Iterable[str]) -> str:
    """The longest part of a dotted name that is a module; empty where none is."""
    name = name.rstrip(".")
    while name and name not in modules:
        name = name.rpartition(".")[0]
    return name


def circles(graph: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """The groups of modules that import each other, directly or not: Tarjan's strongly connected components."""
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(module: str) -> None:
        order[module] = lowest[module] = len(order)
        stack.append(module)
        for imported in graph[module]:
            if imported not in order:
                visit(imported)
                lowest[module] = min(lowest[module], lowest[imported])
            elif imported in stack:
                lowest[module] = min(lowest[module], order[imported])
        if lowest[module] == order[module]:
            group = stack[stack.index(module) :]
            del stack[stack.index(module) :]
            if len(group) > 1:
                found.append(sorted(group))

    for module in graph:
        if module not in order:
            visit(module)
    return found
