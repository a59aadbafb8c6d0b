"""Index expressions of strided tensors in C: the same few patterns serve every operand of every kernel.

A kernel iterates over its result by row and column: the dimensions are split in two, the first ones are the rows and
the others the columns, and one number counts each half. A :class:`Pattern` lists the dimensions that such a number
combines and how the tensor moves along each of them. It is part of the kernel's code; sizes and strides are arguments.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lite_opencl.tensors import Tensor, collapse

__all__ = ["Addressing", "address"]

#: Movement along one dimension: stride 0, stride 1, or a stride that is an argument.
STAYS, UNIT, STRIDED = "0", "1", "s"

#: One of the three letters above for each dimension, innermost first.
Pattern = str


@dataclass(frozen=True, slots=True)
class Addressing:
    """The mapping from rows and columns of a result to elements of a tensor."""

    rows: Pattern
    columns: Pattern

    def parameters(self, name: str) -> list[str]:
        """Return declarations of the sizes and strides that :meth:`index` reads, in the order of :func:`address`."""
        return [f"const int {parameter}" for parameter in self.arguments(name)]

    def arguments(self, name: str) -> list[str]:
        """Return the names of these parameters."""
        return [*_names(f"{name}_row", self.rows), *_names(f"{name}_column", self.columns)]

    def index(self, name: str) -> str:
        """Return an expression of ``row`` and ``column``: the distance from the tensor's first element, in elements."""
        terms = [*_terms("row", f"{name}_row", self.rows), *_terms("column", f"{name}_column", self.columns)]
        return " + ".join(terms) or "0"


def address(tensor: Tensor, split: int) -> tuple[Addressing, list[np.int32]]:
    """Return the addressing of a tensor, already broadcast to the result's shape, and the arguments that it needs.

    Args:
        tensor: a tensor with the dimensions of the result.
        split: the number of dimensions that are rows.
    """
    rows, row_arguments = _pattern(tensor.view(tensor.shape[:split], tensor.strides[:split]))
    columns, column_arguments = _pattern(tensor.view(tensor.shape[split:], tensor.strides[split:]))
    return Addressing(rows, columns), [np.int32(n) for n in (*row_arguments, *column_arguments)]


def _pattern(part: Tensor) -> tuple[Pattern, list[int]]:
    (part,) = collapse([part])
    if part.size <= 1:
        return "", []
    sizes, strides = part.shape[::-1], part.strides[::-1]
    letters = "".join(STAYS if s == 0 else UNIT if s == 1 else STRIDED for s in strides)
    if not letters.strip(STAYS):
        return "", []
    arguments = [*sizes[:-1], *(s for s, letter in zip(strides, letters) if letter == STRIDED)]
    return letters, arguments


def _names(prefix: str, pattern: Pattern) -> list[str]:
    sizes = [f"{prefix}_size{i}" for i in range(len(pattern) - 1)]
    return [*sizes, *(f"{prefix}_stride{i}" for i, letter in enumerate(pattern) if letter == STRIDED)]


def _terms(number: str, prefix: str, pattern: Pattern) -> list[str]:
    terms, rest = [], number
    for i, letter in enumerate(pattern):
        coordinate = rest
        if i < len(pattern) - 1:
            coordinate, rest = f"({rest} % {prefix}_size{i})", f"({rest} / {prefix}_size{i})"
        if letter != STAYS:
            terms.append(coordinate if letter == UNIT else f"{coordinate} * {prefix}_stride{i}")
    return terms
