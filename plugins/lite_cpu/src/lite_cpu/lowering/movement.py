"""Lowering of Concat, Pad, Tile and their like: copies of views into views of the result."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from lite_compiler.chains import Apply
from lite_compiler.destinations import parts_of
from lite_compiler.fusion import Group
from lite_compiler.tensors import memory_order, split_dimensions
from lite_compiler.views import repeated
from lite_core.ir import DType, Value
from lite_core.ops.evaluate import evaluate_node
from lite_cpu.chains import Chain, Operand
from lite_cpu.lowering.context import Lowering
from lite_cpu.lowering.registry import lowers
from lite_cpu.lowering.shape import attributes_of, input_of, known_ints, required_input, reshaped
from lite_cpu.tensors import Tensor

Array = np.ndarray[Any, Any]


@lowers("Concat")
def concat(lowering: Lowering, group: Group) -> None:
    """Copies the inputs that were not written into the result already (:mod:`lite_cpu.lowering.destinations`)."""
    node, y = group.head, group.output
    target = lowering.target(y, order_of_largest([lowering.tensor(v) for v in node.used()]))
    for value, place in parts_of(node, target):
        source = lowering.tensor(value)
        if not source.occupies_same_memory(place):
            lowering.copy(source, place)


def order_of_largest(tensors: list[Tensor]) -> list[int]:
    """The order of dimensions in memory, outermost first, of the largest of some tensors."""
    return memory_order(max(tensors, key=lambda t: t.size))


@lowers("Tile")
def tile(lowering: Lowering, group: Group) -> None:
    """One copy from a view in which each axis is repeated by a stride of 0."""
    x, y = required_input(group.head), group.output
    source = lowering.tensor(x)
    repeats = known_ints(lowering, group.head, 1) or []
    parts = list(zip(repeats, source.shape))
    lowering.copy(repeated(source, repeats), split_dimensions(lowering.target(y), parts))


# **** Pad, CenterCropPad ****


@lowers("Pad")
def pad(lowering: Lowering, group: Group) -> None:
    """The middle is copied from the input; the borders are filled, or copied from the result itself."""
    node, y = group.head, group.output
    x = required_input(node)
    source = lowering.tensor(x)
    pads, axes = known_ints(lowering, node, 1) or [], known_ints(lowering, node, 3)
    places = list(range(source.rank)) if axes is None else [a % source.rank for a in axes]
    begins, ends = [0] * source.rank, [0] * source.rank
    for i, axis in enumerate(places):
        begins[axis], ends[axis] = pads[i], pads[i + len(places)]
    mode = attributes_of(node)["mode"]
    target = lowering.target(y, memory_order(source))
    fill_value = input_of(node, 2)
    filler = zero_like(lowering, x) if fill_value is None else lowering.tensor(fill_value)
    write_padded(lowering, source, target, begins, ends, filler if mode == "constant" else None, mode)


@lowers("CenterCropPad")
def center_crop_pad(lowering: Lowering, group: Group) -> None:
    """The middle of the input, or the input in the middle of zeros."""
    x, y = required_input(group.head), group.output
    source = lowering.tensor(x)
    target = lowering.target(y, memory_order(source))
    # NOTE: an odd rest goes to the end both ways: cropped (a negative begin is rounded towards 0) and padded.
    begins = [(m - n) // 2 if m >= n else -((n - m) // 2) for n, m in zip(source.shape, target.shape)]
    ends = [m - n - b for n, m, b in zip(source.shape, target.shape, begins)]
    write_padded(lowering, source, target, begins, ends, zero_like(lowering, x))


def zero_like(lowering: Lowering, value: Value) -> Tensor:
    """One zero of a value's element type."""
    return lowering.constant(np.zeros(1, value.dtype.numpy))


def write_padded(
    lowering: Lowering,
    source: Tensor,
    target: Tensor,
    begins: list[int],
    ends: list[int],
    filler: Tensor | None,
    mode: str = "constant",
) -> None:
    """Write ``source`` with borders into ``target``.

    Args:
        lowering: gets the steps.
        source: what is padded or cropped.
        target: where it goes.
        begins: for each axis how many elements to put before, or, where negative, to leave out there.
        ends: the same after the last one.
        filler: one element that fills the borders, or None where ``mode`` repeats elements.
        mode: of the operator Pad.
    """
    inner, places = source, []
    for axis, (begin, end) in enumerate(zip(begins, ends)):
        size = max(source.shape[axis] + min(begin, 0) + min(end, 0), 0)
        inner = inner.slice(axis, max(-begin, 0), size)
        places.append(min(max(begin, 0), target.shape[axis]))
    bounds = list(zip(places, inner.shape))
    lowering.copy(inner, _within(target, bounds))
    for axis, (begin, size) in enumerate(bounds):
        # The borders of this axis span what is done of the axes before, and the middle of those after.
        bounds[axis] = (0, target.shape[axis])
        whole = _within(target, bounds)
        done = whole.slice(axis, begin, size)
        for start, stop in ((0, begin), (begin + size, target.shape[axis])):
            border = whole.slice(axis, start, stop - start)
            if filler is not None:
                lowering.copy(reshaped(lowering, filler, ()).expand(border.shape), border)
                continue
            for at, count, first, step in _runs(_repeated(range(start - begin, stop - begin), size, mode)):
                lowering.copy(done.slice(axis, first, count, step), border.slice(axis, at, count))


def _within(tensor: Tensor, bounds: list[tuple[int, int]]) -> Tensor:
    """The part of a tensor from a start on, so many elements, along each axis."""
    for axis, (start, size) in enumerate(bounds):
        tensor = tensor.slice(axis, start, size)
    return tensor


def _repeated(places: range, size: int, mode: str) -> list[int]:
    """Which of ``size`` elements stands at each place, counted from the first of them."""
    if mode == "edge":
        return [min(max(p, 0), size - 1) for p in places]
    if mode == "wrap":
        return [p % size for p in places]
    period = max(2 * (size - 1), 1)  # there and back, without standing twice on either end
    return [min(p % period, period - p % period) if size > 1 else 0 for p in places]


def _runs(indices: list[int]) -> Iterator[tuple[int, int, int, int]]:
    """Evenly spaced stretches of ``indices``: where each begins, its length, its first index and its step."""
    at = 0
    while at < len(indices):
        end = at + 1
        step = indices[end] - indices[at] if end < len(indices) else 1
        while end < len(indices) and indices[end] - indices[end - 1] == step:
            end += 1
        yield at, end - at, indices[at], step
        at = end


# **** Trilu, OneHot: element-wise, once the place of an element is an operand ****


@lowers("Trilu")
def trilu(lowering: Lowering, group: Group) -> None:
    """Elements where ``column - row`` is at least (upper) or at most (lower) ``k``, zeros elsewhere."""
    x, k, y = required_input(group.head), input_of(group.head, 1), group.output
    source = lowering.tensor(x)
    rows, columns = source.shape[-2:]
    column = lowering.constant(np.arange(columns))
    row = lowering.constant(np.arange(rows)[:, np.newaxis])
    diagonal = lowering.constant(np.zeros((), np.int64)) if k is None else reshaped(lowering, lowering.tensor(k), ())
    keep = "GreaterOrEqual" if attributes_of(group.head)["upper"] else "LessOrEqual"
    index = Operand(DType.INT64)
    chain = Chain(
        index,
        (index, index, Operand(x.dtype), Operand(x.dtype)),
        (
            Apply("Sub", (0, 1), DType.INT64),
            Apply(keep, (5, 2), DType.BOOL),
            Apply("Where", (6, 3, 4), x.dtype),
        ),
    )
    zero = zero_like(lowering, x)
    lowering.elementwise(chain, [column, row, diagonal, source, zero], lowering.target(y, memory_order(source)))


@lowers("OneHot")
def one_hot(lowering: Lowering, group: Group) -> None:
    """``on`` where the place along the new axis is the index (counted from the end if negative), else ``off``."""
    indices, values, y = required_input(group.head), required_input(group.head, 2), group.output
    axis = attributes_of(group.head)["axis"] % len(y.shape)
    depth = y.shape[axis]
    source = lowering.tensor(indices)
    wide = reshaped(lowering, source, (*source.shape[:axis], 1, *source.shape[axis:]))
    place = lowering.constant(np.arange(depth).reshape((-1,) + (1,) * (len(y.shape) - 1 - axis)))
    negative = lowering.constant(np.arange(-depth, 0).reshape(place.shape))
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
    lowering.elementwise(chain, [wide, place, negative, off, on], lowering.target(y))


@lowers("ConstantOfShape")
def constant_of_shape(lowering: Lowering, group: Group) -> None:
    """Known before the run: the shape is."""
    y = group.output
    lowering.know(y, evaluate_node(group.head, [np.array(y.shape, np.int64)])[0])


@lowers("Range")
def range_(lowering: Lowering, group: Group) -> None:
    """``start + i * delta``; how many is known before the run."""
    y = group.output
    start, delta = (reshaped(lowering, lowering.tensor(required_input(group.head, i)), ()) for i in (0, 2))
    places = lowering.constant(np.arange(y.shape[0], dtype=y.dtype.numpy))
    number = Operand(y.dtype)
    chain = Chain(number, (number, number), (Apply("Mul", (0, 1), y.dtype), Apply("Add", (3, 2), y.dtype)))
    lowering.elementwise(chain, [places, delta, start], lowering.target(y))
