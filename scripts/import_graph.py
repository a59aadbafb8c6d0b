"""The import graph of the workspace's modules, read from the sources without importing them.

Every import counts, including imports in functions and for type checkers only: a reader must know every named module.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

__all__ = ["cycles", "import_graph", "imported_names", "modules_in"]


def modules_in(package: Path) -> dict[str, Path]:
    """Return the modules of a package by name.

    Args:
        package: its folder: ``core/src/lite_core``.
    """
    modules: dict[str, Path] = {}
    for file in sorted(package.rglob("*.py")):
        parts = file.relative_to(package.parent).with_suffix("").parts
        modules[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return modules


def imported_names(name: str, file: Path) -> Iterator[tuple[str, str]]:
    """Iterate over the imports of a module as ``(module, name)``; the name is empty if a whole module is imported.

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
    """Return for each module the modules of ``modules`` that it imports directly.

    ``from a.b import c`` imports ``a.b.c`` if that is a module, else ``a.b``.
    """
    graph: dict[str, set[str]] = {}
    for name, file in modules.items():
        found = {_nearest(f"{module}.{inner}", modules) for module, inner in imported_names(name, file)}
        graph[name] = {module for module in found if module} - {name}
    return graph


def _nearest(name: str, modules: Iterable[str]) -> str:
    """Return the longest prefix of a dotted name that is a module, or an empty string."""
    name = name.rstrip(".")
    while name and name not in modules:
        name = name.rpartition(".")[0]
    return name


def cycles(graph: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """Return the groups of modules that import each other, directly or not: Tarjan's strongly connected components."""
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
