"""The equation of an Einsum, and whether it is a product of two matrices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Contraction", "Equation", "Labels"]

#: One label per axis: a letter, or ``...0``, ``...1`` (the last one first) under an ellipsis.
Labels = tuple[str, ...]

_ELLIPSIS = "..."


@dataclass(frozen=True, slots=True)
class Contraction:
    """A batched matrix product: the labels of both operands and of the result, each of them of one kind."""

    left: Labels
    right: Labels
    output: Labels

    @property
    def batch(self) -> Labels:
        return tuple(n for n in self.output if n in self.left and n in self.right)

    @property
    def rows(self) -> Labels:
        return tuple(n for n in self.output if n not in self.right)

    @property
    def columns(self) -> Labels:
        return tuple(n for n in self.output if n not in self.left)

    @property
    def depth(self) -> Labels:
        return tuple(n for n in self.left if n in self.right and n not in self.output)


@dataclass(frozen=True, slots=True)
class Equation:
    """The labels of all operands and of the result."""

    operands: tuple[Labels, ...]
    output: Labels

    @staticmethod
    def parse(equation: str, ranks: Sequence[int]) -> Equation:
        """An equation that inference has checked against operands of these ranks."""
        left, arrow, right = equation.replace(" ", "").partition("->")
        terms = left.split(",")
        covered = [rank - len(t.replace(_ELLIPSIS, "")) if _ELLIPSIS in t else 0 for t, rank in zip(terms, ranks)]
        if not arrow:
            letters = Counter("".join(terms).replace(".", ""))
            right = _ELLIPSIS + "".join(sorted(n for n, count in letters.items() if count == 1))
        operands = tuple(_labels(term, count) for term, count in zip(terms, covered))
        return Equation(operands, _labels(right, max(covered)))

    @property
    def summed(self) -> Labels:
        """Those that the result does not have, in the order in which they occur."""
        return tuple(dict.fromkeys(n for labels in self.operands for n in labels if n not in self.output))

    def sizes(self, shapes: Sequence[Sequence[int]]) -> dict[str, int]:
        """How large each axis is; a size of 1 is broadcast."""
        found: dict[str, int] = {}
        for labels, shape in zip(self.operands, shapes):
            for label, size in zip(labels, shape):
                found[label] = size if found.get(label, 1) == 1 else found[label]
        return found

    def contraction(self) -> Contraction | None:
        """The same as a product of two matrices, maybe of one row or column; None where it is not one."""
        if len(self.operands) != 2:
            return None
        left, right = self.operands
        axes = Contraction(left, right, self.output)
        once = all(len(set(labels)) == len(labels) for labels in self.operands)
        # A label of one operand only that does not stay would have to be summed before the product.
        stay = {*axes.batch, *axes.rows, *axes.columns, *axes.depth} == {*left, *right}
        return axes if once and stay and axes.depth else None


def _labels(term: str, ellipsis_rank: int) -> Labels:
    before, found, after = term.partition(_ELLIPSIS)
    covered = [f"{_ELLIPSIS}{i}" for i in reversed(range(ellipsis_rank))] if found else []
    return (*before, *covered, *after)
