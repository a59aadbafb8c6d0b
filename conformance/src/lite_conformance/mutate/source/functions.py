"""The functions and constants that a reference consists of: itself, its helpers, and what those use."""

from __future__ import annotations

import ast
import dis
from collections.abc import Iterator
from functools import cache, partial
from types import CodeType, FunctionType
from typing import Any, NamedTuple

import numpy as np

from lite_conformance.mutate.mutant import Reference
from lite_conformance.mutate.source.modules import parsed
from lite_core import ops

__all__ = ["Piece", "pieces_of"]

_PACKAGE = f"{ops.__name__}."
# Inference belongs to the core, the registry is no part of a reference, and strings run on host only.
_NOT_MUTATED = tuple(_PACKAGE + name for name in ("registry", "evaluate", "infer", "dim_arithmetic", "number_texts"))


class Piece(NamedTuple):
    """A function or a constant in the source text.

    Attributes:
        module: name of its module.
        position: position of the statement of the module that contains it.
        name: its name.
        node: its syntax tree.
    """

    module: str
    position: int
    name: str
    node: ast.AST


def pieces_of(reference: Reference) -> list[Piece]:
    """Return what a reference consists of, in the order in which it is used."""
    search = _Search(reference.__module__)
    search.visit(reference)
    return list(search.found.values())


class _Search:
    """A search for everything that a function uses, in its own module and in those of the opset."""

    def __init__(self, home: str) -> None:
        self.found: dict[tuple[str, int, str], Piece] = {}
        self._home = home
        self._seen: set[int] = set()
        #: The names that the functions found so far read: methods with other names are not used.
        self._names: set[str] = {"__init__", "__post_init__", "__call__", "__iter__"}
        self._methods: list[tuple[str, Any]] = []

    def visit(self, thing: Any) -> None:
        """Add a function, or the functions in a container, and what they use."""
        thing = getattr(thing, "__wrapped__", thing)
        thing = thing.fget if isinstance(thing, property) else thing
        if id(thing) in self._seen:
            return
        self._seen.add(id(thing))
        if isinstance(thing, partial):
            for part in (thing.func, *thing.args, *thing.keywords.values()):
                self.visit(part)
        elif isinstance(thing, FunctionType) and _is_mutated(thing.__module__, self._home):
            self._visit_function(thing)
        elif isinstance(thing, type) and _is_mutated(thing.__module__, self._home):
            self._methods += vars(thing).items()
            self._visit_methods()
        elif isinstance(thing, (tuple, list)):
            for part in thing:
                self.visit(part)
        elif isinstance(thing, dict):
            for part in thing.values():
                self.visit(part)

    def _visit_function(self, function: FunctionType) -> None:
        for piece in _function_pieces(function.__module__, function.__code__):
            line = getattr(piece.node, "lineno", 0)
            self.found.setdefault((piece.module, piece.position, f"{piece.name}:{line}"), piece)
        for cell in function.__closure__ or ():
            self.visit(cell.cell_contents)
        self._names |= _names(function.__code__)
        for name in sorted(_global_names(function.__code__) & function.__globals__.keys()):
            value = function.__globals__[name]
            if isinstance(value, (int, float, str, tuple, list, dict, np.ndarray)):
                constant = _constant_piece(function.__module__, name)
                if constant is not None:
                    self.found.setdefault((constant.module, constant.position, constant.name), constant)
            self.visit(value)
        self._visit_methods()

    def _visit_methods(self) -> None:
        """Visit the methods of the classes found so far whose names are read."""
        for method in [m for name, m in self._methods if name in self._names]:
            self.visit(method)


def _is_mutated(module: str, home: str) -> bool:
    return (module.startswith(_PACKAGE) or module == home) and module not in _NOT_MUTATED


def _names(code: CodeType) -> set[str]:
    """Return the names of attributes and globals that a function and the functions inside it use."""
    return set(code.co_names).union(*(_names(c) for c in code.co_consts if isinstance(c, CodeType)))


def _global_names(code: CodeType) -> set[str]:
    """Return the names that a function and the functions inside it read from the module."""
    names = {str(i.argval) for i in dis.get_instructions(code) if i.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    return names.union(*(_global_names(c) for c in code.co_consts if isinstance(c, CodeType)))


@cache
def _function_pieces(module: str, code: CodeType) -> list[Piece]:
    pieces = []
    for index, statement in enumerate(parsed(module).tree.body):
        for node in ast.walk(statement):
            if isinstance(node, ast.FunctionDef):
                line = node.decorator_list[0].lineno if node.decorator_list else node.lineno
                matches = node.name == code.co_name
            elif isinstance(node, ast.Lambda):
                line, matches = node.lineno, code.co_name == "<lambda>"
            else:
                continue
            if matches and line == code.co_firstlineno:
                pieces.append(Piece(module, index, "lambda" if code.co_name == "<lambda>" else code.co_name, node))
    return pieces


def _constant_piece(module: str, name: str) -> Piece | None:
    """Return the assignment of a constant, in the module or in the one that it is imported from."""
    for index, statement in enumerate(parsed(module).tree.body):
        if name in _assigned(statement):
            return Piece(module, index, name, statement)
        if isinstance(statement, ast.ImportFrom) and (statement.module or "").startswith(_PACKAGE):
            for alias in statement.names:
                if (alias.asname or alias.name) == name and statement.module not in _NOT_MUTATED:
                    return _constant_piece(str(statement.module), alias.name)
    return None


def _assigned(statement: ast.stmt) -> Iterator[str]:
    targets: list[ast.expr] = statement.targets if isinstance(statement, ast.Assign) else []
    if isinstance(statement, ast.AnnAssign) and statement.value is not None:
        targets = [statement.target]
    for target in targets:
        yield from (node.id for node in ast.walk(target) if isinstance(node, ast.Name))
