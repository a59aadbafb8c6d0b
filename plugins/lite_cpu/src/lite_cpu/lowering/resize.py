"""Lowering of Resize: tables of source indices and weights, then passes of the interpolation kernel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from lite_compiler.fusion import Group
from lite_compiler.tracing.numbers import computed, largest
from lite_core import ops
from lite_core.ir import DType, Node
from lite_core.ops import attributes_of
from lite_core.ops.evaluate import evaluate_op
from lite_core.ops.registry import OpDef
from lite_cpu.chains import Chain, Operand
from lite_cpu.kernels.interpolate import Interpolate
from lite_cpu.lowering.context import Lowering
from lite_cpu.lowering.registry import lowers
from lite_cpu.lowering.shape import input_of, required_input
from lite_cpu.tensors import Tensor

Array = np.ndarray[Any, Any]

#: Maximum number of elements that one pass sums for each result; more are split into a pass for each dimension.
_MAX_TAPS = 16

#: Minimum number of elements that a work item computes.
_ITEM_ELEMENTS = 8192


def refuse_resize(node: Node) -> str | None:
    attributes = attributes_of(node)
    x = required_input(node)
    if attributes["mode"] != "nearest" and not x.dtype.is_floating:
        return f"Resize by {attributes['mode']} interpolation of {x.dtype}: the CPU kernels interpolate floats only"
    if attributes["coordinate_transformation_mode"] == "tf_crop_and_resize":
        return "Resize with tf_crop_and_resize: the CPU kernels have no value for what lies outside of the input"
    if attributes["keep_aspect_ratio_policy"] != "stretch":
        return f"Resize with keep_aspect_ratio_policy {attributes['keep_aspect_ratio_policy']}: only stretch is there"
    return None


@dataclass(frozen=True)
class Table:
    """The elements of an axis that are combined to each element of the result.

    Attributes:
        axis: the resized axis.
        indices: the indices of the elements, [size, taps], int32.
        weights: the weights of the elements, [size, taps], float64; None if elements are copied.
    """

    axis: int
    indices: Array
    weights: Array | None

    @property
    def size(self) -> int:
        size: int = self.indices.shape[0]
        return size

    @property
    def taps(self) -> int:
        taps: int = self.indices.shape[1]
        return taps


def make_table(lowering: Lowering, node: Node, position: int, axis: int, old: int, new: int) -> Table:
    """Return the table of one axis, obtained by applying the operator's reference to simple data.

    Args:
        lowering: the lowering context, with the known scales and sizes.
        node: a Resize.
        position: the position of the axis among the entries of scales or sizes.
        axis: the axis of the input.
        old: its size in the input.
        new: its size in the result.
    """
    attributes = {**attributes_of(node), "axes": (0,)}
    sizes, scales = (lowering.known(input_of(node, i)) for i in (3, 2))
    is_sized = sizes is not None and bool(sizes.size)
    scale = None if is_sized or scales is None else scales[position : position + 1]
    return Table(axis, *_taps(ops.get(node), attributes, is_sized, scale, old, new))


@computed
def _taps(
    definition: OpDef, attributes: Mapping[str, Any], is_sized: bool, scale: Array | None, old: int, new: int
) -> tuple[Array, Array | None]:
    """Return the indices and weights of a :class:`Table`."""
    data: Array = np.arange(old) if attributes["mode"] == "nearest" else np.eye(old)
    size = np.array([new], np.int64) if is_sized else None
    result = evaluate_op(definition, [data, None, scale, size], attributes)[0]
    if attributes["mode"] == "nearest":
        return result.astype(np.int32)[:, np.newaxis], None
    taps = max(1, int((result != 0).sum(axis=1).max()))
    # A stable sort of "is zero" puts the columns with a weight first, in their order.
    indices = np.argsort(result == 0, axis=1, kind="stable")[:, :taps]
    return indices.astype(np.int32), np.take_along_axis(result, indices, axis=1)


@lowers("Resize", refuse=refuse_resize, epilogue=True)
def resize(lowering: Lowering, group: Group) -> None:
    """Emit passes over one or two neighbouring axes, the last axes first; vectors run along the inner dimensions."""
    node = group.head
    x, resized = required_input(node), node.outputs[0]
    assert resized is not None
    source = lowering.tensor(x)
    old, new = source.shape, tuple(resized.shape)
    axes = attributes_of(node)["axes"]
    resized_axes = range(len(old)) if axes is None else [a % len(old) for a in axes]
    scales = lowering.known(input_of(node, 2))
    tables = []
    for position, axis in enumerate(resized_axes):
        # NOTE: a scale other than 1 can move elements even if the rounded size does not change.
        scaled = scales is not None and scales.size and scales[position] != 1
        if old[axis] != new[axis] or scaled:
            tables.append(make_table(lowering, node, position, axis, old[axis], new[axis]))
    chain, reads = lowering.chain(resized, group.tail)
    order = result_order(len(old), {t.axis for t in tables})
    target = lowering.target(group.output, order)
    operands = [lowering.tensor(v) for v in reads]
    if not tables or not prod(new):
        lowering.elementwise(chain, [source, *operands], target)
        return
    passes = plan_passes(tables, order)
    for number, pass_tables in enumerate(passes):
        last = number == len(passes) - 1
        shape = list(source.shape)
        for table in pass_tables:
            shape[table.axis] = table.size
        if last and can_fuse(pass_tables, order, target):
            epilogue, epilogue_operands = lowering.epilogue(group, shape, axis=order[-1])
            interpolate(lowering, source, target, pass_tables, order, epilogue, epilogue_operands)
            return
        rounded = last or tables[0].weights is None
        result = lowering.allocate(shape, x.dtype if rounded else sum_dtype(x.dtype), order)
        if last and not group.tail and target.permute(order).is_dense:
            result = target
        interpolate(lowering, source, result, pass_tables, order, Chain(Operand(source.dtype)), [])
        source = result
    if source is not target:
        lowering.elementwise(chain, [source, *operands], target)


def sum_dtype(dtype: DType) -> DType:
    """Return the element type of the sums: float32 for 16-bit floats, else ``dtype``."""
    return DType.FLOAT32 if dtype.is_half else dtype


def result_order(rank: int, resized: set[int]) -> list[int]:
    """Return the order of the result's dimensions, outermost first.

    The innermost dimension is one that is not resized: the last one, else the channels if possible.
    """
    unchanged = [a for a in range(rank) if a not in resized]
    if not unchanged or unchanged[-1] == rank - 1:
        return list(range(rank))
    inner = 1 if 1 in unchanged else unchanged[-1]
    return [*(a for a in range(rank) if a != inner), inner]


def plan_passes(tables: list[Table], order: list[int]) -> list[list[Table]]:
    """Divide tables into passes, the innermost dimensions first; a pass has two neighbouring axes if taps are few."""
    waiting = sorted(tables, key=lambda t: order.index(t.axis))
    passes = []
    while waiting:
        pass_tables = [waiting.pop()]
        neighbour = bool(waiting) and order.index(waiting[-1].axis) + 1 == order.index(pass_tables[0].axis)
        if neighbour and waiting[-1].taps * pass_tables[0].taps <= _MAX_TAPS:
            pass_tables.insert(0, waiting.pop())
        passes.append(pass_tables)
    return passes


def can_fuse(tables: list[Table], order: list[int], target: Tensor) -> bool:
    """Return True if a pass can apply the epilogue: both axes of channels-last images are resized in this pass."""
    rank = target.rank
    inner = order[-1]
    contiguous = target.strides[inner] == 1 or target.shape[inner] == 1
    return contiguous and rank == 4 and [t.axis for t in tables] == order[1:3]


def interpolate(
    lowering: Lowering,
    source: Tensor,
    target: Tensor,
    tables: list[Table],
    order: list[int],
    chain: Chain,
    operands: list[Tensor],
) -> None:
    """Emit one pass. The target is dense in ``order``, or an image whose channels are contiguous."""
    first, last = order.index(tables[0].axis), order.index(tables[-1].axis)

    def grouped(tensor: Tensor) -> Tensor | None:
        """Return a tensor as [outer, rows, columns, inner]; with one table there is one row. None if impossible."""
        inner = tensor.permute(order)
        if inner.rank == 4 and len(tables) == 2 and first == 1:
            return inner
        sizes = inner.shape
        rows = (sizes[first],) if len(tables) == 2 else (1,)
        return inner.reshape((prod(sizes[:first]), *rows, sizes[last], prod(sizes[last + 1 :])))

    a, c = grouped(source), grouped(target)
    if a is None or (a.strides[3] != 1 and a.shape[3] > 1):
        dense = lowering.allocate(source.shape, source.dtype, order)
        lowering.copy(source, dense)
        a = grouped(dense)
    assert a is not None, "a dense tensor can be grouped"
    assert c is not None, "the target is dense or an image"
    summed = sum_dtype(source.dtype)
    one_row = Table(0, np.zeros((1, 1), np.int32), np.ones((1, 1)))
    pair = tables if len(tables) == 2 else [one_row, *tables]
    is_weighted = tables[0].weights is not None
    indices = [lowering.constant(t.indices) for t in pair]
    weights = [
        lowering.constant((np.ones((1, 1)) if t.weights is None else t.weights).astype(summed.numpy)) for t in pair
    ]
    if not is_weighted and not chain.steps:
        a, c = a.as_bits(), c.as_bits()
        chain = Chain(Operand(a.dtype))
    strides = [t.strides[:3] for t in (a, c, *(o.permute(order) for o in operands))]
    row = c.shape[2] * c.shape[3]
    lowering.step(
        Interpolate(a.dtype, c.dtype, chain, pair[0].taps, pair[1].taps, is_weighted),
        [a, c, *indices, *weights, *operands],
        Interpolate.params(c.shape, strides),
        c.shape[0] * c.shape[1],
        largest(1, _ITEM_ELEMENTS // largest(row, 1)),
        flops=2 * pair[0].taps * pair[1].taps * target.size if is_weighted else 0,
    )
