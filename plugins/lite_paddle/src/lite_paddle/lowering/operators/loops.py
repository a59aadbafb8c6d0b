"""Loops: while.

A loop carries tensors and, for each array that its body reads, the last element. If their rows are sequences, it
carries the offsets too. What it appends to an array becomes an output of each iteration or, if the elements have
different shapes, a list that the loop carries as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from lite_core.ir import DType, SymbolicDim, TensorType, Value, fresh_dim
from lite_paddle.lowering.arrays import Element, LoopArray, TensorArray, TensorList
from lite_paddle.lowering.context import Context
from lite_paddle.lowering.lists import appended_to, list_of
from lite_paddle.lowering.lod import Sequences
from lite_paddle.lowering.operators.control_flow import ARRAY_REMEDY, scalar_condition, yield_value
from lite_paddle.lowering.operators.tensor_arrays import loop_positions
from lite_paddle.lowering.registry import lowers
from lite_paddle.lowering.sequences import Rows
from lite_paddle.lowering.unlowerable import Unlowerable
from lite_paddle.reader.conditionals import used_values
from lite_paddle.source import SourceBlock, SourceOp, SourceValue


@dataclass
class _Carried:
    """A tensor that a loop carries from one iteration to the next.

    Attributes:
        number: index of its argument.
        array: the array whose last element it is; None for an argument that is a tensor.
        first: the tensor before the loop.
        sequences: the sequences of its rows if they are the same in every iteration.
        levels: the offsets before the loop if sequences are carried, the outermost level first.
        types: the types of the tensor and its offsets, which fit every iteration.
    """

    number: int
    array: TensorArray | None
    first: Element
    sequences: Sequences | None
    levels: list[Value]
    types: list[TensorType]

    @property
    def initial(self) -> list[Value]:
        """The tensor and its offsets before the loop."""
        return [self.first.value, *self.levels]


@dataclass
class _Loop:
    """The values of a loop: those that an iteration changes, and others."""

    body: SourceBlock
    fixed: list[tuple[SourceValue, SourceValue]] = field(default_factory=list)  # argument, initial value
    carried: list[_Carried] = field(default_factory=list)
    arrays: list[tuple[int, TensorArray]] = field(default_factory=list)  # index of the argument
    positions: dict[SourceValue, int] = field(default_factory=dict)

    @property
    def initial(self) -> list[Value]:
        """All values that the loop carries, before the first iteration."""
        return [value for carried in self.carried for value in carried.initial]


@lowers("while")
def while_(op: SourceOp, context: Context) -> None:
    sources, outs = op.inputs.get("X", []), op.outputs.get("Out", [])
    if not outs:
        return
    loop = _Loop(op.blocks[0])
    for number, (argument, source) in enumerate(zip(loop.body.arguments, sources)):
        array = context.array(source)
        if loop.body.results[1 + number] is argument:
            loop.fixed.append((argument, source))
            _bind_same(context, source, outs[number])
        elif array is None:
            element = Element(context.value(source), context.sequences(source))
            loop.carried.append(_carried(context, number, None, element))
        elif isinstance(array, LoopArray) or array.has_grown:
            raise Unlowerable("more than one loop appends to the same list", ARRAY_REMEDY)
        else:
            loop.arrays.append((number, array))
    loop.positions = _positions(context, loop)
    for number, array in loop.arrays:
        if array.elements and _reads(loop, number):
            loop.carried.append(_carried(context, number, array, array.elements[-1]))
    body, results = _fitting_body(context, loop)
    condition = scalar_condition(context, context.input(op, "Condition"))
    initial, lists, stacks = loop.initial, [], []
    yield_value(body, scalar_condition(body, body.value(loop.body.results[0])))
    for value in results:
        yield_value(body, value)
    for number, array in loop.arrays:
        if not context.is_read(outs[number]):
            continue
        written = _written(body, loop, number)
        if _has_other_shapes(loop, number, written):
            first = _list(context, body, array, written)
            for value in _append(body, first, written).values:
                yield_value(body, value)
            lists.append((number, first))
            initial += first.values
        else:
            stacks.append((number, array, written))
    for _, _, written in stacks:
        yield_value(body, written.value)
    attributes = {"body": body.builder.build()}
    values = iter(context.nodes("Loop", [None, condition, *initial], attributes, outputs=len(initial) + len(stacks)))
    _bind_carried(context, loop, outs, values)
    for number, first in lists:
        context.bind_array(outs[number], TensorArray(listed=_same_list(first, values)))
    for number, array, _ in stacks:
        context.bind_array(outs[number], TensorArray(array.elements, next(values)))


def _carried(context: Context, number: int, array: TensorArray | None, first: Element) -> _Carried:
    sequences = first.sequences
    levels = sequences is not None and (sequences.offsets is not None or bool(sequences.outer))
    offsets = _levels_of(context, first) if levels else []
    types = [value.type for value in (first.value, *offsets)]
    return _Carried(number, array, first, None if levels else sequences, offsets, types)


def _levels_of(context: Context, element: Element, count: int | None = None) -> list[Value]:
    """Return the offsets of all levels of an element that has sequences; they must be ``count`` levels."""
    assert element.sequences is not None
    return Rows(context, element.value, element.sequences).levels(count or 1 + len(element.sequences.outer))


def _bind_same(context: Context, source: SourceValue, out: SourceValue) -> None:
    array = context.array(source)
    if array is not None:
        context.bind_array(out, array)
    else:
        context.bind_value(out, context.value(source))
        context.bind_sequences(out, context.sequences(source))


def _positions(context: Context, loop: _Loop) -> dict[SourceValue, int]:
    if not loop.arrays:
        return {}
    starts = {loop.body.arguments[n]: len(array.elements) for n, array in loop.arrays}
    for carried in loop.carried:
        known = context.known_ints(carried.first.value)
        if known is not None and len(known) == 1:
            starts[loop.body.arguments[carried.number]] = known[0]
    outside = dict(loop.fixed)

    def constant(source: SourceValue) -> int | None:
        value = context.find(outside.get(source, source))
        known = None if value is None else context.known_ints(value)
        return known[0] if known is not None and len(known) == 1 else None

    return loop_positions(loop.body, starts, constant)


def _reads(loop: _Loop, number: int) -> bool:
    """Return True if the body reads from an array argument."""
    argument = loop.body.arguments[number]
    return any(op.type == "read_from_array" and argument in op.inputs.get("X", ()) for op in loop.body.walk())


# **** the body ****


def _fitting_body(context: Context, loop: _Loop) -> tuple[Context, list[Value]]:
    """Lower the body for types that fit the values of every iteration; return it, and what it carries on.

    NOTE: lowering looks at shapes and writes them into the graph, so a size that changes from one iteration to
    the next must be unknown while the body is lowered. Only lowering shows which sizes change, and which tensors have
    sequences: the body is then lowered again.
    """
    widened: set[SymbolicDim] = set()
    used = used_values(loop.body)
    while True:
        body = _lower_body(context, loop)
        elements = [_result(body, loop, carried) for carried in loop.carried]
        fitting = True
        for carried, element in zip(loop.carried, elements):
            if carried.array is None and loop.body.arguments[carried.number] not in used:
                _replace_placeholder(context, carried, element.value.dtype)
            fitting &= _carries_sequences(context, carried, element.sequences)
        if not fitting:
            continue
        results: list[Value] = []
        for carried, element in zip(loop.carried, elements):
            offsets = _levels_of(body, element, len(carried.levels)) if carried.levels else []
            found = [element.value, *offsets]
            merged = [_merge(old, new.type, widened) for old, new in zip(carried.types, found)]
            fitting &= merged == carried.types
            carried.types = merged
            results += found
        if fitting:
            return body, results


def _replace_placeholder(context: Context, carried: _Carried, dtype: DType) -> None:
    """Replace the initial value of an argument that the body does not read by one of the element type of the result.

    NOTE: Paddle carries a float placeholder for a variable that only the body defines.
    """
    value = carried.first.value
    if value.dtype != dtype:
        zeros = context.node("Expand", [context.scalar(0, dtype), context.node("Shape", [value])])
        carried.first = Element(zeros, carried.first.sequences)
        carried.types[0] = zeros.type


def _carries_sequences(context: Context, carried: _Carried, found: Sequences | None) -> bool:
    """Return True if a result has the sequences that its argument had; else change those of the argument."""
    if found is None:
        fits = not carried.levels and carried.sequences is None
        carried.sequences, carried.levels, carried.types = None, [], carried.types[:1]
        return fits
    if carried.levels:
        return True
    if carried.sequences is None or _is_same(carried.sequences, found):
        return True
    carried.levels = _levels_of(context, carried.first, 1 + len(found.outer))
    carried.types = [carried.types[0], *(value.type for value in carried.levels)]
    carried.sequences = None
    return False


def _is_same(first: Sequences, found: Sequences) -> bool:
    return found is first or (found.offsets is None and not found.outer and found.count == first.count)


def _merge(old: TensorType, new: TensorType, widened: set[SymbolicDim]) -> TensorType:
    if old.dtype != new.dtype:
        raise Unlowerable(f"a value is {old.dtype} before the loop and {new.dtype} after an iteration")
    if old.shape is None or new.shape is None or len(old.shape) != len(new.shape):
        return old.with_shape(None)
    dims = []
    for a, b in zip(old.shape, new.shape):
        if a != b and a not in widened:
            a = fresh_dim()
            widened.add(a)
        dims.append(a)
    return old.with_shape(tuple(dims))


def _lower_body(context: Context, loop: _Loop) -> Context:
    """Lower the body for the present types of what the loop carries."""
    body = context.inner("loop")
    iteration = body.block_input("iteration", DType.INT64, ())
    body.block_input("condition", DType.BOOL, ())
    arguments = loop.body.arguments
    for argument, source in loop.fixed:
        _bind_same(body, source, argument)
    lasts: dict[int, Element] = {}
    for carried in loop.carried:
        argument = arguments[carried.number]
        name = argument.name if carried.array is None else f"{argument.name}.last"
        value, *levels = (body.block_input(name, type_.dtype, type_.shape) for type_ in carried.types)
        sequences = Sequences(offsets=levels[-1], outer=tuple(levels[:-1])) if levels else carried.sequences
        if carried.array is None:
            body.bind_value(argument, value)
            body.bind_sequences(argument, sequences)
        else:
            lasts[carried.number] = Element(value, sequences)
    for number, array in loop.arrays:
        argument = arguments[number]
        body.bind_array(argument, LoopArray(argument, array.elements, iteration, loop.positions, lasts.get(number)))
    body.lower_block(loop.body)
    return body


def _result(body: Context, loop: _Loop, carried: _Carried) -> Element:
    if carried.array is not None:
        return _written(body, loop, carried.number)
    result = loop.body.results[1 + carried.number]
    return Element(body.value(result), body.sequences(result))


def _written(body: Context, loop: _Loop, number: int) -> Element:
    """Return the element that an iteration appends to an array."""
    array = body.array(loop.body.results[1 + number])
    if not isinstance(array, LoopArray) or array.argument is not loop.body.arguments[number] or array.written is None:
        raise Unlowerable("a loop exchanges lists of tensors instead of appending to them", ARRAY_REMEDY)
    return array.written


# **** results ****


def _has_other_shapes(loop: _Loop, number: int, written: Element) -> bool:
    """Return True if elements of an array are known to have different shapes, or have sequences."""
    if written.sequences is not None and written.sequences.offsets is not None:
        return True
    last = next((c for c in loop.carried if c.array is not None and c.number == number), None)
    return last is not None and last.types[0] != last.first.value.type


def _list(context: Context, body: Context, array: TensorArray, written: Element) -> TensorList:
    """Return the elements before a loop as a list like the one that the loop makes of them."""
    sequences = written.sequences
    levels = 0 if sequences is None or sequences.offsets is None else 1 + len(sequences.outer)
    return list_of(context, array.elements, levels, written.value)


def _append(body: Context, first: TensorList, written: Element) -> TensorList:
    def carried(part: TensorList) -> TensorList:
        rank = part.shapes.shape[1] if part.shapes.type.rank == 2 else fresh_dim()
        elements = body.block_input("list", part.elements.dtype, (fresh_dim(),))
        shapes = body.block_input("shapes", DType.INT64, (fresh_dim(), rank))
        return TensorList(elements, shapes, tuple(carried(level) for level in part.levels))

    return appended_to(body, carried(first), written)


def _bind_carried(context: Context, loop: _Loop, outs: Sequence[SourceValue], values: Iterator[Value]) -> None:
    for carried in loop.carried:
        value, *levels = (next(values) for _ in carried.types)
        if carried.array is None:
            sequences = Sequences(offsets=levels[-1], outer=tuple(levels[:-1])) if levels else carried.sequences
            context.bind_value(outs[carried.number], value)
            context.bind_sequences(outs[carried.number], sequences)


def _same_list(like: TensorList, values: Iterator[Value]) -> TensorList:
    """Return a list made of the next values."""
    elements, shapes = next(values), next(values)
    return TensorList(elements, shapes, tuple(_same_list(level, values) for level in like.levels))
