"""Matching arithmetic as a polynomial, so that a pattern is found however it is written.

``0.5 * x * (1 + erf(x / sqrt(2)))`` can be written in dozens of ways. As a polynomial in ``x`` and the atom
``t = erf(...)``, it is always ``0.5 x + 0.5 x t``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import NamedTuple

from lite_core.ir import DType, Node, Value
from lite_core.passes.rewriting import Scope

__all__ = ["Accepts", "Match", "Polynomial", "is_close", "match_polynomial"]

#: Coefficients by exponents: ``{(1, 0): 0.5, (1, 1): 0.5}`` is ``0.5 x + 0.5 x t``.
Polynomial = Mapping[tuple[int, int], float]

_ARITHMETIC = ("Add", "Sub", "Mul", "Div", "Neg", "Pow", "Sum", "Identity")
_MOST_STEPS = 12
_MOST_DEGREE = 4

# Constants in models have about six digits, or were rounded to the element type several times.
_RELATIVE_TOLERANCE = {DType.FLOAT16: 4e-3, DType.BFLOAT16: 2e-2}


def is_close(found: Polynomial, wanted: Polynomial, dtype: DType) -> bool:
    """Return True if two polynomials are equal up to the rounding of constants to an element type."""
    tolerance = _RELATIVE_TOLERANCE.get(dtype, 2e-5)
    return all(
        abs(found.get(key, 0.0) - wanted.get(key, 0.0)) <= tolerance * abs(wanted.get(key, 0.0))
        for key in {*found, *wanted}
    )


@dataclass(slots=True)
class _Reader:
    """Converter of values to polynomials in two atoms, which records the visited nodes."""

    scope: Scope
    atoms: Mapping[Value, tuple[int, int]]
    nodes: list[Node] = field(default_factory=list)

    def read(self, value: Value | None, depth: int = 0) -> Polynomial | None:
        if value is None or depth > _MOST_STEPS:
            return None
        if value in self.atoms:
            return {self.atoms[value]: 1.0}
        if (number := self.scope.scalar(value)) is not None:
            return {(0, 0): number}
        node = self.scope.producer(value, *_ARITHMETIC)
        if node is None:
            return None
        operands = [self.read(v, depth + 1) for v in node.inputs]
        known = [p for p in operands if p is not None]
        result = _apply(node.op, known) if len(known) == len(operands) else None
        if result is None or any(sum(key) > _MOST_DEGREE for key in result):
            return None
        if node not in self.nodes:
            self.nodes.append(node)
        return result


def _apply(op: str, operands: list[Polynomial]) -> Polynomial | None:
    first, *others = operands
    if op == "Neg":
        return _combine({}, first, -1.0)
    if op in ("Identity", "Add", "Sub", "Sum"):
        factor = -1.0 if op == "Sub" else 1.0
        return reduce(lambda total, other: _combine(total, other, factor), others, first)
    second = others[0]
    if op == "Mul":
        return _multiply(first, second)
    if not set(second) <= {(0, 0)}:
        return None
    number = second.get((0, 0), 0.0)
    if op == "Div":
        return None if number == 0 else _combine({}, first, 1.0 / number)
    return reduce(_multiply, [first] * int(number)) if number in (1, 2, 3) else None


def _combine(a: Polynomial, b: Polynomial, factor: float) -> Polynomial:
    """Return ``a + factor * b``."""
    return {key: a.get(key, 0.0) + factor * b.get(key, 0.0) for key in {*a, *b}}


def _multiply(a: Polynomial, b: Polynomial) -> Polynomial:
    multiples = ({(i + k, j + n): p * q for (k, n), q in b.items()} for (i, j), p in a.items())
    return reduce(lambda total, multiple: _combine(total, multiple, 1.0), multiples, {})


class Match(NamedTuple):
    """A found pattern.

    Attributes:
        source: the value of ``x``.
        nodes: every node of the pattern; the last one writes its result.
        argument: the atom's argument as a polynomial in ``x``.
        result: the last node's output as a polynomial in ``x`` and the atom.
    """

    source: Value
    nodes: tuple[Node, ...]
    argument: Polynomial
    result: Polynomial


#: Returns True if the argument of the atom, a polynomial in ``x`` (exponents ``(n, 0)``), and a result, a polynomial in
#: ``x`` and the atom, are those of a pattern, up to the rounding of constants to the element type.
Accepts = Callable[[Polynomial, Polynomial, DType], bool]


def _source_candidates(scope: Scope, argument: Value) -> Iterator[Value]:
    """Yield values that may be the pattern's ``x``: the arithmetic operands of the atom's argument, nearest first."""
    pending, seen = [argument], {argument}
    while pending and len(seen) <= 4 * _MOST_STEPS:
        value = pending.pop(0)
        yield value
        node = scope.producer(value, *_ARITHMETIC)
        for operand in node.inputs if node is not None else ():
            if operand is not None and operand not in seen and scope.constant(operand) is None:
                seen.add(operand)
                pending.append(operand)


def match_polynomial(
    scope: Scope, atom_nodes: tuple[Node, ...], argument: Value | None, accepts: Accepts, *, farthest: bool = False
) -> Match | None:
    """Find arithmetic on ``x`` and an atom that computes a pattern and whose intermediate values have no other users.

    Args:
        scope: the scope to search.
        atom_nodes: the nodes of the atom ``t``, such as Erf; the last one writes it.
        argument: the value from which ``t`` is computed.
        accepts: recognises the pattern.
        farthest: of several candidates for ``x``, prefer the one farthest from the atom, for patterns that include any
            preceding arithmetic.
    """
    atom = atom_nodes[-1].outputs[0]
    if argument is None or atom is None or not atom.dtype.is_floating:
        return None
    candidates = list(_source_candidates(scope, argument))[:: -1 if farthest else 1]
    return next(filter(None, (_follow(scope, atom_nodes, atom, x, argument, accepts) for x in candidates)), None)


def _follow(
    scope: Scope, atom_nodes: tuple[Node, ...], atom: Value, source: Value, argument: Value, accepts: Accepts
) -> Match | None:
    """Follow sole users from the atom towards the outputs until the result is accepted."""
    before = _Reader(scope, {source: (1, 0)})
    inner = before.read(argument)
    if inner is None:
        return None
    value = atom
    for step in range(_MOST_STEPS):
        after = _Reader(scope, {source: (1, 0), atom: (0, 1)})
        result = after.read(value)
        if result is None:
            return None
        last = scope.producer(value)
        if (step > 0 or before.nodes) and last is not None and accepts(inner, result, argument.dtype):
            nodes = [*before.nodes, *atom_nodes, *(n for n in after.nodes if n not in before.nodes)]
            nodes.remove(last)
            nodes.append(last)
            # NOTE: a constant with more dimensions than x would widen the result.
            same_shape = source.type.shape is not None and source.type.shape == value.type.shape
            return Match(source, tuple(nodes), inner, result) if same_shape and scope.are_private(nodes) else None
        user = scope.sole_consumer(value)
        if user is None or len(user.outputs) != 1 or user.outputs[0] is None:
            return None
        value = user.outputs[0]
    return None
