"""Lowering of gather and scatter operators."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from lite_compiler.chains import Apply
from lite_compiler.fusion import Group
from lite_compiler.tracing.numbers import largest
from lite_compiler.views import gather_view
from lite_core.ir import DType, Node
from lite_core.ops import attributes_of
from lite_cpu.chains import Chain, Operand
from lite_cpu.kernels.gather import GatherElements, GatherRows, Lines
from lite_cpu.kernels.scatter import ScatterElements, ScatterRows
from lite_cpu.lowering.context import Lowering
from lite_cpu.lowering.indices import check_indices
from lite_cpu.lowering.registry import lowers
from lite_cpu.lowering.shape import required_input
from lite_cpu.tensors import Tensor

Array = np.ndarray[Any, Any]

#: Minimum number of elements that a work item moves.
_ITEM_ELEMENTS = 8192


@lowers("Gather")
def gather(lowering: Lowering, group: Group) -> None:
    """Bind a view if the indices are known and evenly spaced, else emit copies of rows."""
    node, y = group.head, group.output
    x, indices = required_input(node), required_input(node, 1)
    source = lowering.tensor(x)
    axis = attributes_of(node)["axis"] % source.rank
    check_indices(lowering, node, (source.shape[axis],))
    known = lowering.known(indices)
    view = None if known is None else gather_view(source, axis, known)
    if view is not None:
        lowering.bind(y, view)
        return
    outer = prod(source.shape[:axis])
    row = prod(source.shape[axis + 1 :])
    _gather_rows(lowering, group, source, outer, (source.shape[axis],), (row,), 0)


@lowers("GatherND")
def gather_nd(lowering: Lowering, group: Group) -> None:
    """Emit copies of the rows at index tuples, one batch entry after another."""
    node = group.head
    x, indices = required_input(node), required_input(node, 1)
    source = lowering.tensor(x)
    batch = attributes_of(node)["batch_dims"]
    depth = indices.shape[-1]
    sizes = source.shape[batch : batch + depth]
    check_indices(lowering, node, sizes)
    strides = tuple(prod(source.shape[d + 1 :]) for d in range(batch, batch + depth))
    outer = prod(source.shape[:batch])
    _gather_rows(lowering, group, source, outer, sizes, strides, prod(indices.shape[batch:]))


def _gather_rows(
    lowering: Lowering,
    group: Group,
    source: Tensor,
    outer: int,
    sizes: tuple[int, ...],
    strides: tuple[int, ...],
    index_outer: int,
) -> None:
    """Emit copies of the rows of a dense source at index tuples; see :meth:`GatherRows.params`."""
    value, y = required_input(group.head, 1), group.output
    source, indices = lowering.dense(source), lowering.dense(lowering.tensor(value))
    target = lowering.target(y)
    result = target if target.is_dense else lowering.allocate(y.shape, y.dtype)
    source_outer = source.size // largest(outer, 1)
    length = source_outer // max(prod(sizes), 1)
    rows = result.size // largest(length, 1)
    if rows and source.size:
        lowering.step(
            GatherRows(y.dtype.itemsize, value.dtype, len(sizes)),
            [source.as_bits(), indices, result.as_bits()],
            GatherRows.params(length, rows // outer, source_outer, index_outer, sizes, strides),
            rows if length else 0,
            largest(1, _ITEM_ELEMENTS // largest(length, 1)),
        )
    if result is not target:
        lowering.copy(result, target)


@lowers("GatherElements")
def gather_elements(lowering: Lowering, group: Group) -> None:
    """Copy one element for each index, from the index's line along the axis."""
    node, y = group.head, group.output
    x, index_value = required_input(node), required_input(node, 1)
    source, indices = lowering.tensor(x), lowering.dense(lowering.tensor(index_value))
    axis = attributes_of(node)["axis"] % source.rank
    check_indices(lowering, node, (source.shape[axis],))
    target = lowering.target(y)
    result = target if target.is_dense else lowering.allocate(y.shape, y.dtype)
    count = y.shape[axis]
    lowering.step(
        GatherElements(y.dtype.itemsize, index_value.dtype, Lines(source.rank - 1)),
        [source.as_bits(), indices, result.as_bits()],
        Lines.params(axis, indices.shape, indices.strides, source.shape[axis], source.strides),
        result.size // largest(count, 1) if count else 0,
        largest(1, _ITEM_ELEMENTS // largest(count, 1)),
    )
    if result is not target:
        lowering.copy(result, target)


# **** scatters ****


def refuse_scatter(node: Node) -> str | None:
    """Refuse reductions of 16-bit floats, because the kernels round after each update and the reference does not."""
    x = required_input(node)
    if attributes_of(node)["reduction"] != "none" and x.dtype.is_half:
        return f"{node.op} with a reduction on {x.dtype}: the CPU kernels would round after every update"
    return None


def _reduction(node: Node, dtype: DType) -> Chain:
    """Return the chain that combines an element (value 0) with its update (value 1)."""
    ops = {"add": "Add", "mul": "Mul", "max": "Max", "min": "Min"}
    reduction = attributes_of(node)["reduction"]
    if reduction == "none":
        return Chain(Operand(DType(f"uint{8 * dtype.itemsize}")))
    return Chain(Operand(dtype), (Operand(dtype),), (Apply(ops[reduction], (0, 1), dtype),))


@lowers("ScatterElements", refuse=refuse_scatter)
def scatter_elements(lowering: Lowering, group: Group) -> None:
    """Copy the data, then update elements along lines of the axis."""
    node = group.head
    x, index_value, update_value = (required_input(node, i) for i in range(3))
    result = lowering.target(group.output)
    axis = attributes_of(node)["axis"] % result.rank
    check_indices(lowering, node, (result.shape[axis],))
    lowering.copy(lowering.tensor(x), result)
    indices, updates = (lowering.dense(lowering.tensor(v)) for v in (index_value, update_value))
    count = indices.shape[axis]
    lowering.step(
        ScatterElements(_reduction(node, x.dtype), index_value.dtype, Lines(result.rank - 1)),
        [result, indices, updates],
        Lines.params(axis, indices.shape, indices.strides, result.shape[axis], result.strides),
        indices.size // largest(count, 1) if count else 0,
        largest(1, _ITEM_ELEMENTS // largest(count, 1)),
    )


@lowers("ScatterND", refuse=refuse_scatter)
def scatter_nd(lowering: Lowering, group: Group) -> None:
    """Copy the data, then update rows in the order of the index tuples."""
    node, y = group.head, group.output
    x, index_value, update_value = (required_input(node, i) for i in range(3))
    target = lowering.target(y)
    result = target if target.is_dense else lowering.allocate(y.shape, y.dtype)
    lowering.copy(lowering.tensor(x), result)
    indices, updates = (lowering.dense(lowering.tensor(v)) for v in (index_value, update_value))
    depth = indices.shape[-1]
    sizes = result.shape[:depth]
    check_indices(lowering, node, sizes)
    length = prod(result.shape[depth:])
    strides = [prod(result.shape[d + 1 :]) for d in range(depth)]
    tuples = prod(indices.shape[:-1])
    column_block = max(64, _ITEM_ELEMENTS // max(tuples, 1))
    lowering.step(
        ScatterRows(_reduction(node, x.dtype), index_value.dtype, depth),
        [result, indices, updates],
        [length, column_block, tuples, *sizes, *strides],
        -(-length // column_block) if tuples and result.size else 0,
    )
    if result is not target:
        lowering.copy(result, target)
