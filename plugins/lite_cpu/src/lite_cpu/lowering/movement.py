"""Lowering of Concat, Pad, Tile and other operators that move or generate elements."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from lite_compiler.chains import Apply
from lite_compiler.destinations import concat_parts
from lite_compiler.fusion import Group
from lite_compiler.tensors import memory_order, split_dimensions
from lite_compiler.views import tile_view
from lite_core.ir import DType, Value
from lite_core.ops import attributes_of
from lite_core.ops.evaluate import evaluate_node
from lite_cpu.chains import Chain, Operand
from lite_cpu.lowering.caches import append
from lite_cpu.lowering.context import Lowering
from lite_cpu.lowering.registry import lowers
from lite_cpu.lowering.shape import input_of, known_ints, required_input, reshaped
from lite_cpu.tensors import Tensor

Array = np.ndarray[Any, Any]


@lowers("Concat")
def concat(lowering: Lowering, group: Group) -> None:
    """Copy the inputs that were not written directly into the result; see :mod:`lite_cpu.lowering.destinations`."""
    node, y = group.head, group.output
    if y in lowering.caches:
        append(lowering, node)
        return
    target = lowering.target(y, order_of_largest([lowering.tensor(v) for v in node.used()]))
    for value, part in concat_parts(node, target):
        source = lowering.tensor(value)
        if not source.occupies_same_memory(part):
            lowering.copy(source, part)


def order_of_largest(tensors: list[Tensor]) -> list[int]:
    """Return the order of dimensions in memory, outermost first, of the largest tensor."""
    return memory_order(max(tensors, key=lambda t: t.size))


@lowers("Tile")
def tile(lowering: Lowering, group: Group) -> None:
    """Copy from a view in which each axis is repeated by a stride of 0."""
    x, y = required_input(group.head), group.output
    source = lowering.tensor(x)
    repeats = known_ints(lowering, group.head, 1) or []
    parts = list(zip(repeats, source.shape))
    lowering.copy(tile_view(source, repeats), split_dimensions(lowering.target(y), parts))


# **** Pad, CenterCropPad ****


@lowers("Pad")
def pad(lowering: Lowering, group: Group) -> None:
    """Copy the input into the middle, then set the borders to a constant or copy them from the result itself."""
    node, y = group.head, group.output
    x = required_input(node)
    source = lowering.tensor(x)
    pads, axes = known_ints(lowering, node, 1) or [], known_ints(lowering, node, 3)
    padded_axes = list(range(source.rank)) if axes is None else [a % source.rank for a in axes]
    begins, ends = [0] * source.rank, [0] * source.rank
    for i, axis in enumerate(padded_axes):
        begins[axis], ends[axis] = pads[i], pads[i + len(padded_axes)]
    mode = attributes_of(node)["mode"]
    target = lowering.target(y, memory_order(source))
    value = input_of(node, 2)
    constant = zero_like(lowering, x) if value is None else lowering.tensor(value)
    write_padded(lowering, source, target, begins, ends, constant if mode == "constant" else None, mode)


@lowers("CenterCropPad")
def center_crop_pad(lowering: Lowering, group: Group) -> None:
    """Copy the middle of the input along cropped axes, and pad the other axes with zeros on both sides."""
    x, y = required_input(group.head), group.output
    source = lowering.tensor(x)
    target = lowering.target(y, memory_order(source))
    # NOTE: with an odd difference, the end is cropped or padded by one more (a negative begin is rounded towards 0).
    begins = [(m - n) // 2 if m >= n else -((n - m) // 2) for n, m in zip(source.shape, target.shape)]
    ends = [m - n - b for n, m, b in zip(source.shape, target.shape, begins)]
    write_padded(lowering, source, target, begins, ends, zero_like(lowering, x))


def zero_like(lowering: Lowering, value: Value) -> Tensor:
    """Return a tensor with a single zero of a value's element type."""
    return lowering.constant(np.zeros(1, value.dtype.numpy))


def write_padded(
    lowering: Lowering,
    source: Tensor,
    target: Tensor,
    begins: list[int],
    ends: list[int],
    constant: Tensor | None,
    mode: str = "constant",
) -> None:
    """Emit copies that write ``source``, padded or cropped, into ``target``.

    Args:
        lowering: the context that steps are emitted into.
        source: the tensor to pad or crop.
        target: the destination.
        begins: the number of elements to insert before each axis, or to remove if negative.
        ends: the number of elements to insert after each axis, or to remove if negative.
        constant: the element of the borders, or None if ``mode`` repeats elements.
        mode: the mode of the operator Pad.
    """
    inner, starts = source, []
    for axis, (begin, end) in enumerate(zip(begins, ends)):
        size = max(source.shape[axis] + min(begin, 0) + min(end, 0), 0)
        inner = inner.slice(axis, max(-begin, 0), size)
        starts.append(min(max(begin, 0), target.shape[axis]))
    bounds = list(zip(starts, inner.shape))
    lowering.copy(inner, _within(target, bounds))
    for axis, (begin, size) in enumerate(bounds):
        # The borders of this axis span the padded axes before it, which are done, and the middle of the axes after it.
        bounds[axis] = (0, target.shape[axis])
        whole = _within(target, bounds)
        done = whole.slice(axis, begin, size)
        for start, stop in ((0, begin), (begin + size, target.shape[axis])):
            border = whole.slice(axis, start, stop - start)
            if constant is not None:
                lowering.copy(reshaped(lowering, constant, ()).expand(border.shape), border)
                continue
            for position, count, first, step in _runs(_source_indices(range(start - begin, stop - begin), size, mode)):
                lowering.copy(done.slice(axis, first, count, step), border.slice(axis, position, count))


def _within(tensor: Tensor, bounds: list[tuple[int, int]]) -> Tensor:
    """Return the part of a tensor given by a start and a size for each axis."""
    for axis, (start, size) in enumerate(bounds):
        tensor = tensor.slice(axis, start, size)
    return tensor


def _source_indices(positions: range, size: int, mode: str) -> list[int]:
    """Return the index, among ``size`` elements, of the element that is repeated at each position.

    Position 0 is that of the first element, so positions in the borders are negative or at least ``size``.
    """
    if mode == "edge":
        return [min(max(p, 0), size - 1) for p in positions]
    if mode == "wrap":
        return [p % size for p in positions]
    period = max(2 * (size - 1), 1)  # reflection: forwards and backwards, with both ends once in a period
    return [min(p % period, period - p % period) if size > 1 else 0 for p in positions]


def _runs(indices: list[int]) -> Iterator[tuple[int, int, int, int]]:
    """Yield the evenly spaced runs of ``indices``: position, length, first index and step of each."""
    start = 0
    while start < len(indices):
        end = start + 1
        step = indices[end] - indices[start] if end < len(indices) else 1
        while end < len(indices) and indices[end] - indices[end - 1] == step:
            end += 1
        yield start, end - start, indices[start], step
        start = end


# **** Trilu, OneHot: chains with the index of an element as an operand ****


@lowers("Trilu")
def trilu(lowering: Lowering, group: Group) -> None:
    """Emit a chain that keeps elements with ``column - row`` at least (upper) or at most (lower) ``k``, bit for bit."""
    x, k, y = required_input(group.head), input_of(group.head, 1), group.output
    source = lowering.tensor(x).as_bits()
    rows, columns = source.shape[-2:]
    column = lowering.constant(np.arange(columns))
    row = lowering.constant(np.arange(rows)[:, np.newaxis])
    diagonal = lowering.constant(np.zeros((), np.int64)) if k is None else reshaped(lowering, lowering.tensor(k), ())
    keep = "GreaterOrEqual" if attributes_of(group.head)["upper"] else "LessOrEqual"
    index = Operand(DType.INT64)
    chain = Chain(
        index,
        (index, index, Operand(source.dtype), Operand(source.dtype)),
        (
            Apply("Sub", (0, 1), DType.INT64),
            Apply(keep, (5, 2), DType.BOOL),
            Apply("Where", (6, 3, 4), source.dtype),
        ),
    )
    zero, target = zero_like(lowering, x).as_bits(), lowering.target(y, memory_order(source))
    lowering.elementwise(chain, [column, row, diagonal, source, zero], target.as_bits())


@lowers("OneHot")
def one_hot(lowering: Lowering, group: Group) -> None:
    """Emit a chain: ``on`` if the position along the new axis is the index (from the end if negative), else ``off``."""
    indices, values, y = required_input(group.head), required_input(group.head, 2), group.output
    axis = attributes_of(group.head)["axis"] % len(y.shape)
    depth = y.shape[axis]
    source = lowering.tensor(indices)
    wide = reshaped(lowering, source, (*source.shape[:axis], 1, *source.shape[axis:]))
    position = lowering.constant(np.arange(depth).reshape((-1,) + (1,) * (len(y.shape) - 1 - axis)))
    negative = lowering.constant(np.arange(-depth, 0).reshape(position.shape))
    choice = lowering.tensor(values)
    off, on = (choice.slice(0, i, 1) for i in range(2))
    index = Operand(DType.INT64)
    chain = Chain(
        Operand(indices.dtype),
        (index, index, Operand(values.dtype), Operand(values.dtype)),
        (
            Apply("Cast", (0,), DType.INT64, (("to", DType.INT64),)),
            Apply("Equal", (5, 1), DType.BOOL),
            Apply("Equal", (5, 2), DType.BOOL),
            Apply("Or", (6, 7), DType.BOOL),
            Apply("Where", (8, 4, 3), values.dtype),
        ),
    )
    lowering.elementwise(chain, [wide, position, negative, off, on], lowering.target(y))


@lowers("ConstantOfShape")
def constant_of_shape(lowering: Lowering, group: Group) -> None:
    """Compute the result, which is known because its shape is."""
    y = group.output
    lowering.set_known(y, evaluate_node(group.head, [np.array(y.shape, np.int64)])[0])


@lowers("Range")
def range_(lowering: Lowering, group: Group) -> None:
    """Emit the chain ``start + i * delta``; the number of elements is known before the run."""
    y = group.output
    start, delta = (reshaped(lowering, lowering.tensor(required_input(group.head, i)), ()) for i in (0, 2))
    indices = lowering.constant(np.arange(y.shape[0], dtype=y.dtype.numpy))
    number = Operand(y.dtype)
    chain = Chain(number, (number, number), (Apply("Mul", (0, 1), y.dtype), Apply("Add", (3, 2), y.dtype)))
    lowering.elementwise(chain, [indices, delta, start], lowering.target(y))
