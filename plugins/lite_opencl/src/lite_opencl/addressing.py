"""Where an element of a strided tensor lies, as C: the same few patterns for every operand of every kernel.

A kernel walks its result by row and column: a tensor's dimensions are split in two, those before are its rows, those
after its columns, each counted by one number. A :class:`Pattern` says what becomes of such a number: which of the
dimensions behind it move in a tensor, and how. It is part of the kernel's code; sizes and strides are arguments.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lite_opencl.tensors import Tensor, collapse

__all__ = ["Addressing", "address"]

#: What one dimension does: stays (stride 0), moves by 1, moves by a stride that is an argument.
STAYS, UNIT, STRIDED = "0", "1", "s"

#: For each dimension, innermost first, one of the three letters above.
Pattern = str


@dataclass(frozen=True, slots=True)
class Addressing:
    """How rows and columns of a result become an element of a tensor."""

    rows: Pattern
    columns: Pattern

    def parameters(self, name: str) -> list[str]:
        """Declarations of the sizes and strides that :meth:`index` reads, in the order of :func:`address`."""
        return [f"const int {parameter}" for parameter in self.arguments(name)]

    def arguments(self, name: str) -> list[str]:
        """Their names."""
        return [*_names(f"{name}_row", self.rows), *_names(f"{name}_column", self.columns)]

    def index(self, name: str) -> str:
        """An expression of ``row`` and ``column``: elements from the tensor's first one."""
        terms = [*_terms("row", f"{name}_row", self.rows), *_terms("column", f"{name}_column", self.columns)]
        return " + ".join(terms) or "0"


def address(tensor: Tensor, split: int) -> tuple[Addressing, list[np.int32]]:
    """The addressing of a tensor, already broadcast to the result's shape, and the arguments it needs.

    Args:
        tensor: its dimensions are those of the result.
        split: how many of them are rows.
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
