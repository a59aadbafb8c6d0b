"""Lowering of Resize: tables of neighbours and weights, then one or more passes of the interpolation kernel."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from lite_compiler.fusion import Group
from lite_core import ops
from lite_core.ir import DType, Node
from lite_core.ops.evaluate import evaluate_op
from lite_cpu.chains import Chain, Operand
from lite_cpu.kernels.interpolate import Interpolate
from lite_cpu.lowering.context import Lowering
from lite_cpu.lowering.registry import lowers
from lite_cpu.lowering.shape import attributes_of, input_of, required_input
from lite_cpu.tensors import Tensor

Array = np.ndarray[Any, Any]

#: Elements that one pass may add up for each result; more are split into a pass for each dimension.
_MOST_TAPS = 16

#: Elements that one work item should make at least.
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
    """Which elements of an axis make up each element of the result.

    Attributes:
        axis: that is resized.
        indices: [size, taps], int32.
        weights: [size, taps], float64; None where elements are taken as they are.
    """

    axis: int
    indices: Array
    weights: Array | None

    @property
    def size(self) -> int:
        return len(self.indices)

    @property
    def taps(self) -> int:
        taps: int = self.indices.shape[1]
        return taps


def table_of(lowering: Lowering, node: Node, place: int, axis: int, old: int, new: int) -> Table:
    """The table of one axis, read off from what the operator's reference makes of simple data.

    Args:
        lowering: knows the scales and sizes.
        node: a Resize.
        place: of the axis among the entries of scales or sizes.
        axis: of the input.
        old: its size.
        new: its size in the result.
    """
    attributes = {**attributes_of(node), "axes": (0,)}
    sizes, scales = (lowering.known(input_of(node, i)) for i in (3, 2))
    given: list[Array | None] = [None, None, None]
    if sizes is not None and sizes.size:
        given[2] = np.array([new], np.int64)
    elif scales is not None:
        given[1] = scales[place : place + 1]
    data: Array = np.arange(old) if attributes["mode"] == "nearest" else np.eye(old)
    made = evaluate_op(ops.get(node), [data, *given], attributes)[0]
    if attributes["mode"] == "nearest":
        return Table(axis, made.astype(np.int32)[:, np.newaxis], None)
    taps = max(1, int((made != 0).sum(axis=1).max()))
    # A stable sort of "is zero" puts the columns that count first, in their order.
    indices = np.argsort(made == 0, axis=1, kind="stable")[:, :taps]
    return Table(axis, indices.astype(np.int32), np.take_along_axis(made, indices, axis=1))


@lowers("Resize", refuse=refuse_resize, epilogue=True)
def resize(lowering: Lowering, group: Group) -> None:
    """Passes over one or two neighbouring axes, the last axes first, each in vectors over what lies inside."""
    node = group.head
    x, made = required_input(node), node.outputs[0]
    assert made is not None
    source = lowering.tensor(x)
    old, new = source.shape, tuple(made.shape)
    axes = attributes_of(node)["axes"]
    places = range(len(old)) if axes is None else [a % len(old) for a in axes]
    scales = lowering.known(input_of(node, 2))
    tables = []
    for place, axis in enumerate(places):
        # NOTE: a scale can move elements even where it is rounded to the size that there is already.
        scaled = scales is not None and scales.size and scales[place] != 1
        if old[axis] != new[axis] or scaled:
            tables.append(table_of(lowering, node, place, axis, old[axis], new[axis]))
    chain, reads = lowering.chain(made, group.tail)
    order = memory_order(len(old), {t.axis for t in tables})
    target = lowering.target(group.output, order)
    operands = [lowering.tensor(v) for v in reads]
    if not tables or not prod(new):
        lowering.elementwise(chain, [source, *operands], target)
        return
    passes = plan_passes(tables, order)
    for number, some in enumerate(passes):
        last = number == len(passes) - 1
        shape = list(source.shape)
        for table in some:
            shape[table.axis] = table.size
        if last and can_fuse(source, some, order, target):
            epilogue, beside = lowering.epilogue(group, shape, axis=order[-1])
            interpolate(lowering, source, target, some, order, epilogue, beside)
            return
        rounded = last or tables[0].weights is None
        between = lowering.allocate(shape, x.dtype if rounded else computed_in(x.dtype), order)
        if last and not group.tail and target.permute(order).is_dense:
            between = target
        interpolate(lowering, source, between, some, order, Chain(Operand(source.dtype)), [])
        source = between
    if source is not target:
        lowering.elementwise(chain, [source, *operands], target)


def computed_in(dtype: DType) -> DType:
    """The element type of the sums: float32 for 16-bit floats."""
    return DType.FLOAT32 if dtype.is_half else dtype


def memory_order(rank: int, resized: set[int]) -> list[int]:
    """Dimensions from outermost to innermost: as they are, but one that is not resized last, channels if can be."""
    kept = [a for a in range(rank) if a not in resized]
    if not kept or kept[-1] == rank - 1:
        return list(range(rank))
    inner = 1 if 1 in kept else kept[-1]
    return [*(a for a in range(rank) if a != inner), inner]


def plan_passes(tables: list[Table], order: list[int]) -> list[list[Table]]:
    """Tables by passes, the innermost dimensions first; two neighbours go together while their taps are few."""
    waiting = sorted(tables, key=lambda t: order.index(t.axis))
    passes = []
    while waiting:
        some = [waiting.pop()]
        neighbour = bool(waiting) and order.index(waiting[-1].axis) + 1 == order.index(some[0].axis)
        if neighbour and waiting[-1].taps * some[0].taps <= _MOST_TAPS:
            some.insert(0, waiting.pop())
        passes.append(some)
    return passes


def can_fuse(source: Tensor, tables: list[Table], order: list[int], target: Tensor) -> bool:
    """Whether the pass can write ``target`` itself: images, channels last, both axes in one pass."""
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
    """One pass. The target is dense in ``order``, or an image whose channels are neighbours."""
    first, last = order.index(tables[0].axis), order.index(tables[-1].axis)

    def grouped(tensor: Tensor) -> Tensor | None:
        """As [outside, rows, columns, inside]; with one table there is one row."""
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
    computed = computed_in(source.dtype)
    one_row = Table(0, np.zeros((1, 1), np.int32), np.ones((1, 1)))
    pair = tables if len(tables) == 2 else [one_row, *tables]
    weighted = tables[0].weights is not None
    indices = [lowering.constant(t.indices) for t in pair]
    weights = [
        lowering.constant((np.ones((1, 1)) if t.weights is None else t.weights).astype(computed.numpy)) for t in pair
    ]
    if not weighted and not chain.steps:
        a, c = a.as_bits(), c.as_bits()
        chain = Chain(Operand(a.dtype))
    strides = [t.strides[:3] for t in (a, c, *(o.permute(order) for o in operands))]
    row = c.shape[2] * c.shape[3]
    lowering.step(
        Interpolate(a.dtype, c.dtype, chain, pair[0].taps, pair[1].taps, weighted),
        [a, c, *indices, *weights, *operands],
        Interpolate.params(c.shape, strides),
        c.shape[0] * c.shape[1],
        max(1, _ITEM_ELEMENTS // max(row, 1)),
        flops=2 * pair[0].taps * pair[1].taps * target.size if weighted else 0,
    )
