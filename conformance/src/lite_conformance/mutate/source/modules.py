"""Private copies of the modules that define references, with one statement replaced.

The real modules stay as they are: the oracle uses them in the same process.
"""

from __future__ import annotations
import __future__

import ast
import builtins
import importlib
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from types import CodeType, SimpleNamespace
from typing import Any

from lite_conformance.mutate.mutant import Reference
from lite_core.ops import OpDef, registry

__all__ = ["Module", "mutated_reference", "parsed"]

_FLAGS = __future__.annotations.compiler_flag


class Module:
    """A module as a syntax tree, and the compiled code of each of its statements."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.file = Path(str(importlib.import_module(name).__file__))
        self.tree = ast.parse(self.file.read_text(encoding="utf-8"))
        self._codes: list[CodeType] | None = None

    def codes(self) -> list[CodeType]:
        """Return the compiled statements of the module."""
        if self._codes is None:
            self._codes = [self.compile(statement) for statement in self.tree.body]
        return self._codes

    def compile(self, statement: ast.stmt) -> CodeType:
        """Compile one statement of the module."""
        code: CodeType = compile(ast.Module([statement], []), str(self.file), "exec", _FLAGS, dont_inherit=True)
        return code

    def imports(self) -> list[str]:
        """Return the names of the modules that statements of the module import names from."""
        return [node.module for node in self.tree.body if isinstance(node, ast.ImportFrom) and node.module]


@cache
def parsed(name: str) -> Module:
    """Return a module by its name; it is read once."""
    return Module(name)


def mutated_reference(definition: OpDef, module: str, index: int, statement: CodeType) -> Reference:
    """Return an operator's reference from copies of its modules in which one statement is another.

    Args:
        definition: the operator.
        module: name of the module with the changed statement.
        index: the statement's position in the module.
        statement: the changed statement, compiled.
    """
    home = definition.reference.__module__
    copies = _Copies(module, index, statement, _importers(home, module))
    copies.namespace(home)
    return copies.references[definition.domain, definition.name]


@cache
def _importers(home: str, target: str) -> frozenset[str]:
    """Return the modules on the paths of imports from a module to another one, both included."""
    on_path: set[str] = {target}

    def reaches(name: str, above: tuple[str, ...]) -> bool:
        if name == target:
            return True
        package = target.rpartition(".")[0]
        below = [n for n in parsed(name).imports() if n.rpartition(".")[0] == package and n not in above]
        found = [n for n in below if reaches(n, (*above, name))]
        if found:
            on_path.add(name)
        return bool(found)

    reaches(home, ())
    return frozenset(on_path)


class _Copies:
    """Copies of modules that import each other, and the references that they declare."""

    def __init__(self, changed: str, index: int, statement: CodeType, names: frozenset[str]) -> None:
        self.references: dict[tuple[str, str], Reference] = {}
        self._changed, self._index, self._statement = changed, index, statement
        self._names = names
        self._copies: dict[str, SimpleNamespace] = {}
        self._registry = SimpleNamespace(**{**vars(registry), "op": self._op})

    def namespace(self, name: str) -> SimpleNamespace:
        """Return the copy of a module; its statements run at the first call."""
        if name not in self._copies:
            builtin = {**vars(builtins), "__import__": self._import}
            copy = SimpleNamespace(__name__=name, __builtins__=builtin, __file__=str(parsed(name).file))
            self._copies[name] = copy
            codes = parsed(name).codes()
            for number, code in enumerate(codes):
                is_changed = name == self._changed and number == self._index
                exec(self._statement if is_changed else code, vars(copy))
        return self._copies[name]

    def _import(self, name: str, globals: Any = None, locals: Any = None, fromlist: Sequence[str] = (), level: int = 0):  # type: ignore[no-untyped-def]
        if name == registry.__name__ and fromlist:
            return self._registry
        if name in self._names and fromlist:
            return self.namespace(name)
        return builtins.__import__(name, globals, locals, fromlist, level)

    def _op(self, name: str, signature: str, **details: Any) -> Callable[[Reference], Reference]:
        def declare(reference: Reference) -> Reference:
            self.references[details.get("domain", ""), name] = reference
            return reference

        return declare
