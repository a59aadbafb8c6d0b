"""Lowering of Einsum as a matrix product; views put its axes in order.

The axes of both operands that the result keeps are the batch, those of one operand that it keeps are rows or columns,
and those of both operands that are summed are the depth.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from lite_compiler.equation import Contraction, Equation, Labels
from lite_compiler.fusion import Group
from lite_core.ir import DType, Node
from lite_cpu.chains import Chain, Operand
from lite_cpu.lowering.context import Lowering
from lite_cpu.lowering.matmul import panels_at_run_time
from lite_cpu.lowering.products import Epilogue, emit_product, with_contiguous_rows
from lite_cpu.lowering.registry import lowers
from lite_cpu.lowering.shape import reshaped
from lite_cpu.lowering.widening import bias_of
from lite_cpu.tensors import Tensor

F32 = DType.FLOAT32


def _contraction(node: Node) -> Contraction | None:
    """Return the axes of a node that is a matrix product, else None."""
    equation = str(node.attributes["equation"])
    shapes = [v.type.shape for v in node.used()]
    if "." in equation and None in shapes:
        return None
    return Equation.parse(equation, [0 if shape is None else len(shape) for shape in shapes]).contraction()


def refuse_einsum(node: Node) -> str | None:
    x = node.inputs[0]
    assert x is not None
    if _contraction(node) is None:
        equation = node.attributes["equation"]
        return f"Einsum {equation!r}: the CPU kernels take those that are one product of two matrices"
    return None if x.dtype is F32 else f"Einsum on {x.dtype}: the CPU kernels compute in float32"


@lowers("Einsum", refuse=refuse_einsum)
def einsum(lowering: Lowering, group: Group) -> None:
    """Emit one batched matrix product."""
    axes = _contraction(group.head)
    assert axes is not None
    a, b = lowering.tensor(group.input(0)), lowering.tensor(group.input(1))
    sizes = Equation((axes.left, axes.right), axes.output).sizes([a.shape, b.shape])
    batch = [sizes[n] for n in axes.batch]
    parts = (axes.rows, axes.columns, axes.depth)
    rows, columns, depth = (prod(sizes[n] for n in labels) for labels in parts)
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
    a = with_contiguous_rows(lowering, matrices)
    emit_product(lowering, a, panels, bias_of(lowering, None, columns), c, Epilogue(Chain(Operand(F32))))
    if c.storage is not target.storage:
        lowering.copy(reshaped(lowering, c, ordered.shape), ordered)


def _arranged(tensor: Tensor, labels: Labels, order: Labels, sizes: Mapping[str, int]) -> Tensor:
    """Return a view with the dimensions in ``order``; dimensions of size 1 are broadcast."""
    return tensor.permute([labels.index(n) for n in order]).expand([sizes[n] for n in order])
