"""Lowering of Einsum where it is a matrix product: its axes are put in order by views.

The axes of two operands are those of both that stay (the batch), those of one that stay (rows, columns), and those of
both that are summed (the depth).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from lite_compiler.fusion import Group
from lite_core.ir import DType, Node
from lite_cpu.chains import Chain, Operand
from lite_cpu.lowering.context import Lowering
from lite_cpu.lowering.matmul import panels_at_run_time
from lite_cpu.lowering.products import Tail, emit_product, rows_contiguous
from lite_cpu.lowering.registry import lowers
from lite_cpu.lowering.shape import reshaped
from lite_cpu.tensors import Tensor

F32 = DType.FLOAT32

_PRODUCT = re.compile(r"([A-Za-z]*),([A-Za-z]*)(->([A-Za-z]*))?")


@dataclass(frozen=True, slots=True)
class _Axes:
    """The letters of an equation of two operands, and which of them play which part."""

    left: str
    right: str
    output: str

    @property
    def batch(self) -> str:
        return "".join(letter for letter in self.output if letter in self.left and letter in self.right)

    @property
    def rows(self) -> str:
        return "".join(letter for letter in self.output if letter not in self.right)

    @property
    def columns(self) -> str:
        return "".join(letter for letter in self.output if letter not in self.left)

    @property
    def depth(self) -> str:
        return "".join(letter for letter in self.left if letter in self.right and letter not in self.output)


def _axes_of(node: Node) -> _Axes | None:
    """The axes of a node that is a matrix product, else None."""
    found = _PRODUCT.fullmatch(str(node.attributes["equation"]).replace(" ", ""))
    if found is None:
        return None
    left, right, arrow, output = found.groups()
    if not arrow:
        output = "".join(sorted(letter for letter in left + right if (left + right).count(letter) == 1))
    axes = _Axes(left, right, output)
    once = all(len(set(labels)) == len(labels) for labels in (left, right))
    # A letter of one operand only that does not stay would have to be summed before the product.
    stay = set(axes.batch + axes.rows + axes.columns + axes.depth) == set(left + right)
    return axes if once and stay and axes.depth else None


def refuse_einsum(node: Node) -> str | None:
    x = node.inputs[0]
    assert x is not None
    if _axes_of(node) is None:
        equation = node.attributes["equation"]
        return f"Einsum {equation!r}: the CPU kernels take those that are one product of two matrices"
    return None if x.dtype is F32 else f"Einsum on {x.dtype}: the CPU kernels compute in float32"


@lowers("Einsum", refuse=refuse_einsum)
def einsum(lowering: Lowering, group: Group) -> None:
    """One batched matrix product."""
    left, right = group.head.inputs[0], group.head.inputs[1]
    axes = _axes_of(group.head)
    assert left is not None
    assert right is not None
    assert axes is not None
    a, b = lowering.tensor(left), lowering.tensor(right)
    sizes: dict[str, int] = {}
    for letters, tensor in ((axes.left, a), (axes.right, b)):
        for letter, size in zip(letters, tensor.shape):
            sizes[letter] = size if sizes.get(letter, 1) == 1 else sizes[letter]
    batch = [sizes[n] for n in axes.batch]
    parts = (axes.rows, axes.columns, axes.depth)
    rows, columns, depth = (prod(sizes[letter] for letter in letters) for letters in parts)
    a = _arranged(a, axes.left, axes.batch + axes.rows + axes.depth, sizes)
    b = _arranged(b, axes.right, axes.batch + axes.depth + axes.columns, sizes)
    matrices = reshaped(lowering, a, [*batch, rows, depth])
    panels = panels_at_run_time(lowering, reshaped(lowering, b, [*batch, depth, columns]))
    target = lowering.target(group.output)
    inner = axes.batch + axes.rows + axes.columns
    ordered = target.permute([axes.output.index(n) for n in inner])
    c = ordered.reshape([*batch, rows, columns])
    if c is None or c.strides[-1] != 1:
        c = lowering.allocate([*batch, rows, columns], F32)
    a = rows_contiguous(lowering, matrices)
    emit_product(lowering, a, panels, lowering.bias(None, columns), c, Tail(Chain(Operand(F32))))
    if c.storage is not target.storage:
        lowering.copy(reshaped(lowering, c, ordered.shape), ordered)


def _arranged(tensor: Tensor, letters: str, order: str, sizes: Mapping[str, int]) -> Tensor:
    """Dimensions in another order; one of size 1 stands for every element of the other operand's."""
    return tensor.permute([letters.index(n) for n in order]).expand([sizes[n] for n in order])
