"""Lowering of Inverse."""

from __future__ import annotations

from math import prod

from lite_compiler.fusion import Group
from lite_core.ir import DType, Node
from lite_cpu.kernels.inverse import Inverse
from lite_cpu.lowering.context import Lowering
from lite_cpu.lowering.registry import lowers
from lite_cpu.lowering.shape import required_input

__all__ = ["inverse"]


def _refuse(node: Node) -> str | None:
    dtype = required_input(node).dtype
    return None if dtype in (DType.FLOAT32, DType.FLOAT64) else f"{node.op} has no kernel for {dtype}"


@lowers("lite.Inverse", refuse=_refuse)
def inverse(lowering: Lowering, group: Group) -> None:
    """Emit the inversion of all matrices."""
    node = group.head
    source = lowering.dense(lowering.tensor(required_input(node)))
    target = lowering.target(group.output)
    if not target.size:
        return
    result = target if target.is_dense else lowering.allocate(target.shape, target.dtype)
    size = source.shape[-1]
    message = lowering.text(lambda: f"{node.describe()}: matrix {{}}, counted from 0, has no inverse")
    fault, number = lowering.fault(message)
    lowering.step(
        Inverse(source.dtype),
        [source, result, fault],
        [size, number],
        prod(source.shape[:-2]),
        flops=2 * source.size * size,
        scratch_bytes=Inverse.scratch_bytes(size, source.dtype.itemsize),
    )
    if result is not target:
        lowering.copy(result, target)
