"""Einsum: sums of products whose axes are named by letters."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from lite_core.ir import Dim, Shape, fresh_dim
from lite_core.ir.dims import broadcast
from lite_core.ops.dtypes import NUMERIC
from lite_core.ops.inference import Inference, fail
from lite_core.ops.registry import op, required
from lite_core.ops.shape_checks import differ, format_shape

Array = np.ndarray[Any, Any]

_ELLIPSIS = "..."
# Letters and at most one ellipsis.
_TERM = re.compile(r"[A-Za-z]*(\.\.\.[A-Za-z]*)?")


@dataclass(frozen=True, slots=True)
class _Equation:
    """A parsed equation with one label per axis.

    A label is a letter or, for an axis under an ellipsis, ``...0``, ``...1`` and so on, counted from the last axis.
    """

    operands: tuple[tuple[str, ...], ...]
    output: tuple[str, ...]


def _split_term(term: str, ellipsis_rank: int) -> tuple[str, ...]:
    before, found, after = term.partition(_ELLIPSIS)
    covered = [f"{_ELLIPSIS}{i}" for i in reversed(range(ellipsis_rank))] if found else []
    return (*before, *covered, *after)


def _terms(equation: str) -> tuple[list[str], str | None]:
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    for term in (*terms, right):
        if not _TERM.fullmatch(term):
            raise fail(f"equation {equation!r}: {term!r} must be letters and at most one '...'")
    return terms, right if arrow else None


def _parse(equation: str, ranks: Sequence[int | None]) -> _Equation | None:
    """Parse an equation for operands of the given ranks; None if an operand with an ellipsis has unknown rank.

    Raises:
        GraphError: the equation is malformed or does not fit the operands.
    """
    terms, output = _terms(equation)
    if len(terms) != len(ranks):
        raise fail(f"equation {equation!r} has {len(terms)} operands, the node has {len(ranks)} inputs")
    widest = 0
    operands: list[tuple[str, ...]] = []
    for number, (term, rank) in enumerate(zip(terms, ranks)):
        letters = len(term.replace(_ELLIPSIS, ""))
        covered = 0
        if _ELLIPSIS in term:
            if rank is None:
                return None
            covered = rank - letters
            widest = max(widest, covered)
        if rank is not None and (covered < 0 or letters + covered != rank):
            raise fail(f"equation {equation!r}: input {number} has rank {rank}, its term {term!r} does not fit")
        operands.append(_split_term(term, covered))
    counts = Counter("".join(terms).replace(".", ""))
    if output is None:
        implicit = "".join(sorted(letter for letter, count in counts.items() if count == 1))
        return _Equation(tuple(operands), _split_term(_ELLIPSIS + implicit, widest))
    labels = _split_term(output, widest)
    if len(set(labels)) != len(labels):
        raise fail(f"equation {equation!r}: the output names an axis twice")
    unknown = [label for label in labels if not label.startswith(_ELLIPSIS) and label not in counts]
    if unknown:
        raise fail(f"equation {equation!r}: the output names {', '.join(unknown)}, which no operand has")
    return _Equation(tuple(operands), labels)


def _infer_einsum(inference: Inference) -> list[Shape | None]:
    equation = inference.attributes["equation"]
    shapes = [inference.shape(i) for i in range(len(inference.types))]
    parsed = _parse(equation, [None if s is None else len(s) for s in shapes])
    if parsed is None:
        return [None]
    sizes: dict[str, Dim] = {}
    for number, (labels, shape) in enumerate(zip(parsed.operands, shapes)):
        own: dict[str, Dim] = {}
        for label, size in zip(labels, shape if shape is not None else ()):
            if differ(own.setdefault(label, size), size):
                raise fail(
                    f"equation {equation!r}: {label!r} is {own[label]} and {size} in input {number} "
                    f"{format_shape(shape)}"
                )
        for label, size in own.items():
            try:
                sizes[label] = broadcast(sizes.get(label, 1), size)
            except ValueError:
                raise fail(
                    f"equation {equation!r}: {label!r} is {size} in input {number} {format_shape(shape)}, and "
                    f"{sizes[label]} in an input before it"
                ) from None
    return [tuple(sizes[label] if label in sizes else fresh_dim("size") for label in parsed.output)]


# **** the arithmetic ****

_Operand = tuple[Array, tuple[str, ...]]


def _simplify(operand: _Operand, keep: set[str]) -> _Operand:
    """Take the diagonal of repeated labels, and sum over labels that are not in ``keep``."""
    array, labels = operand
    if len(set(labels)) == len(labels) and keep.issuperset(labels):
        return operand
    numbers = {label: i for i, label in enumerate(dict.fromkeys(labels))}
    kept = tuple(label for label in numbers if label in keep)
    summed = np.einsum(array, [numbers[label] for label in labels], [numbers[label] for label in kept])
    return np.asarray(summed, dtype=array.dtype), kept


def _contract(a: _Operand, b: _Operand, keep: set[str]) -> _Operand:
    """Multiply two operands and sum over the shared labels not in ``keep``, as one batched matrix product.

    Each kind of axis becomes one axis: shared and kept (batch), only in ``a`` (rows), only in ``b``
    (columns), shared and summed.
    """
    a, b = _simplify(a, keep | set(b[1])), _simplify(b, keep | set(a[1]))
    sizes: dict[str, int] = {}
    for array, labels in (a, b):
        for label, size in zip(labels, array.shape):
            sizes[label] = size if sizes.get(label, 1) == 1 else sizes[label]
    shared = [label for label in a[1] if label in b[1]]
    batch = [label for label in shared if label in keep]
    summed = [label for label in shared if label not in keep]
    rows = [label for label in a[1] if label not in shared]
    columns = [label for label in b[1] if label not in shared]

    def arranged(operand: _Operand, *kinds: list[str]) -> Array:
        array, labels = operand
        order = [label for kind in kinds for label in kind]
        moved = np.transpose(array, [labels.index(label) for label in order])
        # An axis of size 1 broadcasts to the other operand's axis.
        moved = np.broadcast_to(moved, [sizes[label] for label in order])
        return moved.reshape([_size(kind, sizes) for kind in kinds])

    product = np.matmul(arranged(a, batch, rows, summed), arranged(b, batch, summed, columns))
    result = (*batch, *rows, *columns)
    return product.reshape([sizes[label] for label in result]), result


def _size(labels: Sequence[str], sizes: dict[str, int]) -> int:
    return reduce(lambda total, label: total * sizes[label], labels, 1)


@op(
    "Einsum",
    "Inputs: T* -> Output: T",
    types={"T": NUMERIC},
    attributes={"equation": required("str")},
    infer=_infer_einsum,
)
def einsum(*arrays: Array, equation: str) -> Array:
    """Einstein summation: ``"bij,bjk->bik"`` is a batch of matrix products.

    Letters name axes; those missing from the output are summed, a letter repeated in one operand takes
    the diagonal, and ``...`` stands for axes that broadcast. Without ``->`` the output has the axes of
    ``...`` and then, in alphabetical order, the letters that occur once.
    """
    parsed = _parse(equation, [a.ndim for a in arrays])
    assert parsed is not None
    operands: list[_Operand] = list(zip(arrays, parsed.operands))
    result = operands[0]
    for number, operand in enumerate(operands[1:], start=1):
        later = {label for labels in parsed.operands[number + 1 :] for label in labels}
        result = _contract(result, operand, later | set(parsed.output))
    array, labels = _simplify(result, set(parsed.output))
    return np.transpose(array, [labels.index(label) for label in parsed.output])
