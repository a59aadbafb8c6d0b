"""The equation of an Einsum, and its conversion to a matrix product."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Contraction", "Equation", "Labels"]

#: One label per axis: a letter, or ``...0``, ``...1`` for the axes of an ellipsis, counted from the last one.
Labels = tuple[str, ...]

_ELLIPSIS = "..."


@dataclass(frozen=True, slots=True)
class Contraction:
    """The labels of a batched matrix product; each label belongs to the batch, the rows, the columns or the depth."""

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
        """Parse an equation that type inference has checked against operands of these ranks."""
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
        """The labels that are summed over, in the order of their first occurrence."""
        return tuple(dict.fromkeys(n for labels in self.operands for n in labels if n not in self.output))

    def sizes(self, shapes: Sequence[Sequence[int]]) -> dict[str, int]:
        """Return the size of each label's axis; an axis of size 1 is broadcast."""
        found: dict[str, int] = {}
        for labels, shape in zip(self.operands, shapes):
            for label, size in zip(labels, shape):
                found[label] = size if found.get(label, 1) == 1 else found[label]
        return found

    def contraction(self) -> Contraction | None:
        """Return the equation as a matrix product, possibly of one row or column; None if it is not one."""
        if len(self.operands) != 2:
            return None
        left, right = self.operands
        axes = Contraction(left, right, self.output)
        has_distinct_labels = all(len(set(labels)) == len(labels) for labels in self.operands)
        # A label that only one operand has and the result lacks would have to be summed before the product.
        is_complete = {*axes.batch, *axes.rows, *axes.columns, *axes.depth} == {*left, *right}
        return axes if has_distinct_labels and is_complete and axes.depth else None


def _labels(term: str, ellipsis_rank: int) -> Labels:
    before, found, after = term.partition(_ELLIPSIS)
    covered = [f"{_ELLIPSIS}{i}" for i in reversed(range(ellipsis_rank))] if found else []
    return (*before, *covered, *after)
