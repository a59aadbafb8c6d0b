"""The source mutants of an operator: every edit at every place of the functions that its reference consists of."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any, NamedTuple

from lite_conformance.mutate.mutant import Compute, Lines, Mutant, NodeCall
from lite_conformance.mutate.source.edits import replacements
from lite_conformance.mutate.source.functions import Piece, pieces_of
from lite_conformance.mutate.source.modules import mutated_reference, parsed
from lite_core.ops import OpDef

__all__ = ["source_mutants"]

_LONGEST_TEXT = 90
_SHORT_TEXT = 16


class _Place(NamedTuple):
    """A node of a syntax tree, the field of its parent that holds it, and the expressions around it."""

    above: tuple[ast.AST, ...]
    parent: ast.AST
    field: str
    position: int | None
    node: ast.AST

    def put(self, node: ast.AST) -> None:
        if self.position is None:
            setattr(self.parent, self.field, node)
        else:
            getattr(self.parent, self.field)[self.position] = node


def source_mutants(definition: OpDef) -> Iterator[Mutant]:
    """Yield the mutants of an operator's reference and of the helpers that it uses, each with one edit."""
    seen: Counter[str] = Counter()
    for piece in pieces_of(definition.reference):
        for place in _places(piece.node):
            for kind, edited in _edits(place, piece):
                name = f"{definition.qualified_name}: {piece.name}: {kind}: {_change(place, edited)}"
                seen[name] += 1
                number = f" #{seen[name]}" if seen[name] > 1 else ""
                make = _maker(definition, piece, place, edited)
                lines = _lines_of(place, piece)
                yield Mutant(name + number, definition.qualified_name, "source", kind, 2, make, lines)


def _edits(place: _Place, piece: Piece) -> Iterator[tuple[str, ast.AST]]:
    if not _is_open_dimension(place):
        yield from replacements(place.node)
    if isinstance(place.node, ast.stmt) and _can_be_dropped(place.node, piece.node):
        yield "statement dropped", ast.Pass()


def _lines_of(place: _Place, piece: Piece) -> Lines | None:
    """Return the lines of the statement around a place, without those of the statements inside it.

    None for a constant of the module, which is computed before any case, and for defaults of parameters.
    """
    if not isinstance(piece.node, (ast.FunctionDef, ast.Lambda)):
        return None
    around = (place.node, place.parent, *place.above)
    if any(isinstance(node, ast.arguments) for node in around):
        return None
    statement = next((node for node in around if isinstance(node, ast.stmt)), piece.node)
    first, last = statement.lineno, statement.end_lineno or statement.lineno
    body = getattr(statement, "body", None)
    if isinstance(body, list) and body and not isinstance(statement, ast.FunctionDef):
        last = max(first, body[0].lineno - 1)
    return str(parsed(piece.module).file), first, last


def _is_open_dimension(place: _Place) -> bool:
    """Return True for the 1 of ``reshape(-1)``: NumPy takes every negative number there for the open dimension."""
    if not isinstance(place.parent, ast.UnaryOp):
        return False
    call = next((a for a in place.above if not isinstance(a, ast.Tuple)), None)
    return isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "reshape"


def _maker(definition: OpDef, piece: Piece, place: _Place, edited: ast.AST) -> Callable[[], Compute]:
    def make() -> Compute:
        module = parsed(piece.module)
        code = _compiled_with(module, piece.position, place, edited)
        reference = mutated_reference(definition, piece.module, piece.position, code)

        def compute(call: NodeCall) -> list[Any]:
            return call.run(reference=reference)

        return compute

    return make


def _compiled_with(module: Any, index: int, place: _Place, edited: ast.AST) -> CodeType:
    """Return the code of a statement of a module with the edit, which is undone in the tree afterwards."""
    place.put(ast.copy_location(edited, place.node))
    try:
        statement = ast.fix_missing_locations(module.tree.body[index])
        code: CodeType = module.compile(statement)
        return code
    finally:
        place.put(place.node)


def _places(piece: ast.AST, above: tuple[ast.AST, ...] = ()) -> Iterator[_Place]:
    """Yield the places inside a function or an assignment where a fault changes results.

    Annotations, documentation and what only makes an error's message are left out, and so are conditions that only
    guard an error: the suite's cases are valid nodes.
    """
    for field, value in ast.iter_fields(piece):
        if field in ("decorator_list", "annotation", "returns", "type_comment", "targets", "target", "type_params"):
            continue
        children = list(enumerate(value)) if isinstance(value, list) else [(None, value)]
        for position, child in children:
            if not isinstance(child, ast.AST) or _is_left_out(child):
                continue
            if not isinstance(child, (ast.expr_context, ast.operator, ast.cmpop, ast.arguments)):
                yield _Place(above, piece, field, position, child)
            yield from _places(child, (piece, *above))


def _is_left_out(node: ast.AST) -> bool:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return True  # a docstring
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        return getattr(node.value.func, "id", "").lstrip("_").startswith("check")
    if isinstance(node, ast.If) and not node.orelse:
        return isinstance(node.body[-1], ast.Raise)
    if isinstance(node, ast.keyword):
        return node.arg == "copy"  # whether an array is copied makes no difference to the result
    return isinstance(node, (ast.Raise, ast.Assert, ast.JoinedStr, ast.Import, ast.ImportFrom, ast.arg))


def _can_be_dropped(statement: ast.stmt, function: ast.AST) -> bool:
    """Return True unless the function would fail without the statement, because it assigns a new variable."""
    if isinstance(statement, (ast.AugAssign, ast.Expr, ast.Continue, ast.Break)):
        return True
    if not isinstance(statement, ast.Assign):
        return False
    if any(isinstance(target, ast.Subscript) for target in statement.targets):
        return True
    names = {n.id for t in statement.targets for n in ast.walk(t) if isinstance(n, ast.Name)}
    return names <= set(_assigned_before(statement, function))


def _assigned_before(statement: ast.stmt, function: ast.AST) -> Iterator[str]:
    for node in ast.walk(function):
        if isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.lineno < statement.lineno:
            yield node.id


def _change(place: _Place, edited: ast.AST) -> str:
    """Return the changed text before and after, with the expression around it if it is short."""
    before, after = _text(place.node), _text(edited)
    if isinstance(place.node, ast.stmt) and not isinstance(place.node, (ast.AugAssign, ast.Assign, ast.Return)):
        before, after = before.splitlines()[0], after.splitlines()[0]
    if len(before) < _SHORT_TEXT and not isinstance(place.node, ast.stmt):
        around = [_text(a) for a in (place.parent, *place.above) if isinstance(a, (ast.expr, ast.keyword))]
        longer = [text for text in around if len(text) >= _SHORT_TEXT] or around[-1:]
        before = f"{before} in {_shortened(longer[0])}" if longer else before
    return f"{_shortened(before)} -> {_shortened(after)}"


def _text(node: ast.AST) -> str:
    try:
        return ast.unparse(ast.fix_missing_locations(node))
    except Exception:  # parts of expressions, such as keywords and comprehensions in Python 3.10
        return type(node).__name__


def _shortened(text: str) -> str:
    text = " ".join(text.split())
    if len(text) <= _LONGEST_TEXT:
        return text
    half = _LONGEST_TEXT // 2
    return f"{text[:half]} … {text[-half:]}"
