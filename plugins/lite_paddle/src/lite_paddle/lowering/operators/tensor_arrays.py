"""Operators on tensor arrays; see :mod:`lite_paddle.lowering.arrays`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from lite_core.ir import DType, Value
from lite_paddle.lowering.arrays import AnyArray, Element, LoopArray, TensorArray
from lite_paddle.lowering.context import Context
from lite_paddle.lowering.dynamic import dimension, reshape_to, shape_vector
from lite_paddle.lowering.integers import known_ints, normalized
from lite_paddle.lowering.lists import element_at, number_of_elements
from lite_paddle.lowering.operators.shape import stacked
from lite_paddle.lowering.registry import lowers
from lite_paddle.lowering.unlowerable import Unlowerable
from lite_paddle.source import SourceBlock, SourceOp, SourceValue

__all__ = ["alias_array", "loop_positions", "slice_of_array"]

_REMEDY = "collect the results in one tensor (paddle.concat or paddle.stack) instead of a list"


def _array(op: SourceOp, context: Context, slot: str) -> AnyArray:
    sources = op.inputs.get(slot)
    if not sources:
        raise Unlowerable(f"its input {slot} is missing")
    found = context.array(sources[0])
    if found is None:
        raise Unlowerable(f"its input {sources[0].name!r} is not a list of tensors")
    return found


def alias_array(op: SourceOp, context: Context) -> bool:
    """Bind the output to the array that the operator passes through; return False if its input is no array."""
    source = next((op.inputs[s][0] for s in ("X", "0") if op.inputs.get(s)), None)
    found = None if source is None else context.array(source)
    if found is None:
        return False
    for slot in ("Out", "0"):
        for out in op.outputs.get(slot, ()):
            context.bind_array(out, found)
    return True


# **** operators on arrays ****


@lowers("create_array")
def create_array(op: SourceOp, context: Context) -> None:
    context.bind_array(op.outputs["Out"][0], TensorArray())


@lowers("write_to_array")
def write_to_array(op: SourceOp, context: Context) -> None:
    array, index = _array(op, context, "Array"), op.inputs["I"][0]
    element = Element(context.input(op, "X"), context.sequences(op.inputs["X"][0]))
    (out,) = op.outputs["Out"]
    if isinstance(array, LoopArray):
        if array.written is not None or array.positions.get(index) != len(array.before):
            raise Unlowerable("a loop writes to a list other than by appending one element per iteration", _REMEDY)
        context.bind_array(out, replace(array, written=element))
        return
    known = context.known_ints(context.value(index))
    if known is None or array.has_grown:
        raise Unlowerable("it writes to a list at an index that is known only when the model runs", _REMEDY)
    elements = list(array.elements)
    if known[0] > len(elements):
        raise Unlowerable(f"it writes to index {known[0]} of a list of {len(elements)}")
    elements[known[0] : known[0] + 1] = [element]
    context.bind_array(out, TensorArray(tuple(elements)))


@lowers("read_from_array")
def read_from_array(op: SourceOp, context: Context) -> None:
    array, index = _array(op, context, "X"), op.inputs["I"][0]
    if isinstance(array, LoopArray):
        _bind_element(op, context, _read_in_loop(context, array, index))
        return
    known = context.known_ints(context.value(index))
    if known is not None and 0 <= known[0] < len(array.elements):
        _bind_element(op, context, array.elements[known[0]])
        return
    position = context.reshape(context.cast(context.value(index), DType.INT64), [])
    if array.listed is not None:
        _bind_element(op, context, element_at(context, array.listed, position))
        return
    context.emit(op, "Gather", [_stack_all(context, array), position], {"axis": 0})


def _bind_element(op: SourceOp, context: Context, element: Element) -> None:
    context.bind(op, "Out", element.value)
    for out in op.outputs.get("Out", ()):
        context.bind_sequences(out, element.sequences)


def _read_in_loop(context: Context, array: LoopArray, index: SourceValue) -> Element:
    known = array.positions.get(index)
    if known is None:
        fixed = context.known_ints(context.value(index))
        if fixed is not None and 0 <= fixed[0] < len(array.before):
            return array.before[fixed[0]]
    elif known == len(array.before) and array.written is not None:
        return array.written
    elif known == len(array.before) - 1 and array.last is not None:
        return array.last
    raise Unlowerable("a loop reads an element other than the last one of a list that it appends to", _REMEDY)


@lowers("lod_array_length")
def array_length(op: SourceOp, context: Context) -> None:
    array = _array(op, context, "X")
    if isinstance(array, LoopArray):
        number = context.scalar(len(array.before) + (array.written is not None), DType.INT64)
        length = context.reshape(context.node("Add", [array.iteration, number]), [1])
    elif array.listed is not None:
        length = number_of_elements(context, array.listed)
    else:
        length = context.builder.ints(len(array.elements))
        if array.appended is not None:
            more = context.node("Shape", [array.appended], {"start": 0, "end": 1})
            length = context.node("Add", [length, more])
    context.bind(op, "Out", length)


@lowers("tensor_array_to_tensor")
def tensor_array_to_tensor(op: SourceOp, context: Context) -> None:
    """Join the elements along a new axis (``use_stack``), or concatenate them along an existing axis."""
    array, axis, stack = _array(op, context, "X"), int(op.attrs["axis"]), bool(op.attrs["use_stack"])
    if isinstance(array, LoopArray):
        raise Unlowerable("a loop joins the list that it appends to", _REMEDY)
    if array.listed is not None:
        attributes = {"axis": axis, "new_axis": int(stack)}
        context.emit(op, "ListConcat", [array.listed.elements, array.listed.shapes], attributes, domain="lite")
        return
    if array.appended is None:
        elements = [element.value for element in array.elements]
        if not elements:
            raise Unlowerable("the list is empty")
        if op.outputs.get("OutIndex"):
            sizes = shape_vector(context, [1 if stack else dimension(context, e, axis) for e in elements])
            context.bind(op, "OutIndex", context.cast(sizes, DType.INT32))
        if stack:
            context.bind(op, "Out", stacked(context, elements, axis))
        else:
            joined = elements[0] if len(elements) == 1 else context.node("Concat", elements, {"axis": axis})
            context.bind(op, "Out", joined)
        return
    everything = _stack_all(context, array)
    rank = context.rank(everything, "its elements are joined along an axis") - (0 if stack else 1)
    (axis,) = normalized([axis], rank)
    order = [*range(1, axis + 1), 0, *range(axis + 1, everything.type.rank or 0)]
    moved = context.transpose(everything, order)
    if not stack:
        after = [dimension(context, moved, a) for a in range(axis + 2, rank + 1)]
        moved = reshape_to(context, moved, [*(dimension(context, moved, a) for a in range(axis)), -1, *after])
    context.bind(op, "Out", moved)


def _stack_all(context: Context, array: TensorArray) -> Value:
    """Stack all elements along a new first axis."""
    elements = [element.value for element in array.elements]
    shapes = {e.shape for e in elements if e.type.rank is not None and all(isinstance(d, int) for d in e.shape)}
    if len(shapes) > 1:
        raise Unlowerable(
            "tensors of different shapes in one list, of which one is chosen when the model runs", _REMEDY
        )
    parts = [stacked(context, elements, 0)] if elements else []
    if array.appended is not None:
        parts.append(array.appended)
    if not parts:
        raise Unlowerable("it reads from an empty list")
    return parts[0] if len(parts) == 1 else context.node("Concat", parts, {"axis": 0})


def slice_of_array(op: SourceOp, context: Context) -> bool:
    """Bind the output of a slice of an array: an element, or a shorter array; return False if the input is no array."""
    array = context.array(op.inputs["Input"][0]) if op.inputs.get("Input") else None
    if array is None:
        return False
    if isinstance(array, LoopArray) or array.has_grown:
        raise Unlowerable("it takes a part of a list that a loop appends to", _REMEDY)
    (start,) = known_ints(op, context, "starts", "StartsTensor", "StartsTensorList")
    (end,) = known_ints(op, context, "ends", "EndsTensor", "EndsTensorList")
    _bind_part(context, op.outputs["Out"][0], array, start, end, bool(op.attrs.get("decrease_axis")))
    return True


def _bind_part(context: Context, out: SourceValue, array: TensorArray, start: int, end: int | None, one: bool) -> None:
    if not one:
        context.bind_array(out, TensorArray(array.elements[start:end]))
    elif -len(array.elements) <= start < len(array.elements):
        context.bind_value(out, array.elements[start].value)
        context.bind_sequences(out, array.elements[start].sequences)
    else:
        raise Unlowerable(f"it takes element {start} of a list of {len(array.elements)}")


@lowers("slice_array", "slice_array_dense")
def slice_array(op: SourceOp, context: Context) -> None:
    """Lower PIR's slice of an array; the operands are the array, starts and (for slice_array) ends."""
    array, one = _array(op, context, "0"), op.type == "slice_array_dense"
    ends = [context.known_ints(context.any_input(op, slot)) for slot in (("1",) if one else ("1", "2"))]
    if isinstance(array, LoopArray) or array.has_grown or not all(ends):
        raise Unlowerable("it takes a part of a list that is known only when the model runs", _REMEDY)
    first, last = (ends[0] or [0])[0], None if one else (ends[1] or [0])[0]
    _bind_part(context, op.outputs["0"][0], array, first, last, one)


# **** counting iterations ****


def loop_positions(
    body: SourceBlock, starts: Mapping[SourceValue, int], constant: Callable[[SourceValue], int | None]
) -> dict[SourceValue, int]:
    """Return the integers in a loop's body that grow by one per iteration, with their values in the first iteration.

    Args:
        body: the loop's body; its results are the new condition, then the new arguments.
        starts: known initial values of arguments; for an array, its length.
        constant: returns an integer from outside the loop, or None if it is not known.
    """
    offsets: dict[SourceValue, tuple[SourceValue, int]] = {arg: (arg, 0) for arg in starts}
    fixed: dict[SourceValue, int] = {}
    for op in body.ops:
        _count(op, offsets, fixed, constant)
    counters = {arg for arg, result in zip(body.arguments, body.results[1:]) if offsets.get(result) == (arg, 1)}
    return {value: starts[root] + k for value, (root, k) in offsets.items() if root in counters}


def _count(
    op: SourceOp,
    offsets: dict[SourceValue, tuple[SourceValue, int]],
    fixed: dict[SourceValue, int],
    constant: Callable[[SourceValue], int | None],
) -> None:
    out = next((values[0] for values in op.outputs.values() if values), None)
    if out is None:
        return
    if op.type == "fill_constant" and not op.inputs and isinstance(op.attrs.get("value"), (int, float)):
        if float(op.attrs["value"]).is_integer():
            fixed[out] = int(op.attrs["value"])
        return
    slot = {"write_to_array": "Array"}.get(op.type, "X")
    source = op.inputs.get(slot, [None])[0]
    if source is None or source not in offsets:
        return
    step: float | int | None = None
    if op.type in ("assign", "share_data", "cast", "lod_array_length"):
        step = 0
    elif op.type == "write_to_array":
        step = 1
    elif op.type == "increment":
        step = op.attrs["step"]
    elif op.type == "scale" and op.attrs.get("scale") == 1 and "ScaleTensor" not in op.inputs:
        step = op.attrs["bias"]
    elif op.type in ("elementwise_add", "elementwise_sub"):
        other: Sequence[SourceValue] = op.inputs.get("Y", ())
        step = (fixed.get(other[0]) if other[0] in fixed else constant(other[0])) if other else None
        if op.type == "elementwise_sub" and step is not None:
            step = -step
    if step is not None and float(step).is_integer():
        root, k = offsets[source]
        offsets[out] = (root, k + int(step))
