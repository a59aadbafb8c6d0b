"""Conditionals and loops: if, while, select_input."""

from __future__ import annotations

from dataclasses import dataclass, field

from lite_core.ir import DType, SymbolicDim, TensorType, Value, fresh_dim
from lite_paddle.lowering.arrays import LoopArray, TensorArray
from lite_paddle.lowering.context import Context
from lite_paddle.lowering.operators.tensor_arrays import loop_positions
from lite_paddle.lowering.registry import lowers
from lite_paddle.lowering.unlowerable import Unlowerable
from lite_paddle.reader.conditionals import used_values
from lite_paddle.source import SourceBlock, SourceOp, SourceValue

_ARRAY_REMEDY = "collect the results in one tensor (paddle.concat or paddle.stack) instead of a list"


def _yield(inner: Context, value: Value) -> None:
    """Make a value an output of a sub-graph, through an Identity if it is an outer value or already an output."""
    graph = inner.builder.graph
    own = any(value in node.outputs for node in graph.nodes)
    inner.builder.output(value if own and value not in graph.outputs else inner.node("Identity", [value]))


def _scalar_condition(context: Context, condition: Value) -> Value:
    condition = context.cast(condition, DType.BOOL)
    return condition if condition.type.rank == 0 else context.reshape(condition, [])


# **** if ****


@lowers("if")
def if_(op: SourceOp, context: Context) -> None:
    outs = op.outputs.get("Out", [])
    if not outs:
        return
    condition = context.input(op, "Cond")
    if not op.attrs.get("is_scalar_condition", True):
        empty = context.node("Equal", [context.node("Size", [condition]), context.scalar(0, DType.INT64)])
        condition = context.node("Not", [empty])
    known = context.known(condition)
    if known is not None and known.size == 1 and known.dtype != object:
        _take_branch(context, op.blocks[0 if known.reshape(-1)[0] else 1], outs)
        return
    branches = []
    for name, block in zip(("then", "else"), op.blocks):
        branch = context.inner(name)
        branch.lower_block(block)
        branches.append(branch)
    tensors: list[SourceValue] = []
    for out, then_result, else_result in zip(outs, *(block.results for block in op.blocks)):
        results = (then_result, else_result)
        arrays = [branch.array(result) for branch, result in zip(branches, results)]
        if arrays[0] is None and arrays[1] is None:
            tensors.append(out)
            for branch, result in zip(branches, results):
                _yield(branch, branch.value(result))
        elif arrays[0] is arrays[1] and arrays[0] is not None:
            context.bind_array(out, arrays[0])
        else:
            raise Unlowerable("a list of tensors is changed in one branch only", _ARRAY_REMEDY)
    if not tensors:
        return
    attributes = {f"{name}_branch": b.builder.build() for name, b in zip(("then", "else"), branches)}
    values = context.nodes("If", [_scalar_condition(context, condition)], attributes, outputs=len(tensors))
    for out, value in zip(tensors, values):
        context.bind_value(out, value)


def _take_branch(context: Context, block: SourceBlock, outs: list[SourceValue]) -> None:
    """Lower the branch that is always taken into the block of the conditional."""
    context.lower_block(block)
    for out, result in zip(outs, block.results):
        array = context.array(result)
        if array is not None:
            context.bind_array(out, array)
        else:
            context.bind_value(out, context.value(result))


@lowers("select_input")
def select_input(op: SourceOp, context: Context) -> None:
    choices, mask = context.inputs(op, "X"), context.input(op, "Mask")
    if len(choices) != 2:
        raise Unlowerable(f"it chooses among {len(choices)} values, expected 2")
    attributes = {}
    for name, choice in zip(("else_branch", "then_branch"), choices):
        branch = context.inner(name)
        _yield(branch, choice)
        attributes[name] = branch.builder.build()
    context.emit(op, "If", [_scalar_condition(context, mask)], attributes)


# **** while ****


@dataclass
class _Loop:
    """The values that a loop carries from one iteration to the next."""

    body: SourceBlock
    fixed: list[tuple[SourceValue, SourceValue]] = field(default_factory=list)  # argument, initial value
    tensors: list[int] = field(default_factory=list)  # indices of the arguments
    arrays: list[tuple[int, TensorArray]] = field(default_factory=list)


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
            loop.tensors.append(number)
        elif isinstance(array, LoopArray) or array.appended is not None:
            raise Unlowerable("more than one loop appends to the same list", _ARRAY_REMEDY)
        else:
            loop.arrays.append((number, array))
    initial = [context.value(sources[n]) for n in loop.tensors]
    positions = _positions(context, loop, initial)
    lasts = [(n, array.elements[-1]) for n, array in loop.arrays if array.elements and _reads(loop, n)]
    initial += [value for _, value in lasts]
    body = _fitting_body(context, loop, positions, initial, [n for n, _ in lasts])
    condition = _scalar_condition(context, context.input(op, "Condition"))
    count = len(initial) + len(loop.arrays)
    values = context.nodes("Loop", [None, condition, *initial], {"body": body.builder.build()}, outputs=count)
    for number, value in zip(loop.tensors, values):
        context.bind_value(outs[number], value)
    for (number, array), value in zip(loop.arrays, values[len(initial) :]):
        context.bind_array(outs[number], TensorArray(array.elements, value))


def _bind_same(context: Context, source: SourceValue, out: SourceValue) -> None:
    array = context.array(source)
    if array is not None:
        context.bind_array(out, array)
    else:
        context.bind_value(out, context.value(source))


def _positions(context: Context, loop: _Loop, initial: list[Value]) -> dict[SourceValue, int]:
    if not loop.arrays:
        return {}
    starts = {loop.body.arguments[n]: len(array.elements) for n, array in loop.arrays}
    for number, value in zip(loop.tensors, initial):
        known = context.known_ints(value)
        if known is not None and len(known) == 1:
            starts[loop.body.arguments[number]] = known[0]
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


def _fitting_body(
    context: Context, loop: _Loop, positions: dict[SourceValue, int], initial: list[Value], lasts: list[int]
) -> Context:
    """Lower the body for types that fit the values of every iteration.

    NOTE: lowering looks at shapes and writes them into the graph, so a size that changes from one iteration to
    the next must be unknown while the body is lowered. Only lowering shows which sizes change: the body is then
    lowered again.
    """
    types = [value.type for value in initial]
    widened: set[SymbolicDim] = set()
    used = used_values(loop.body)
    unread = {index for index, n in enumerate(loop.tensors) if loop.body.arguments[n] not in used}
    while True:
        body, results = _lower_body(context, loop, positions, types, lasts)
        for index in unread:
            if types[index].dtype != results[index].dtype:
                # NOTE: Paddle carries a float placeholder for a variable that only the body defines.
                initial[index] = _zeros_like(context, initial[index], results[index].dtype)
                types[index] = initial[index].type
        merged = [_merge(old, new.type, widened) for old, new in zip(types, results)]
        if merged == types:
            return body
        types = merged


def _zeros_like(context: Context, value: Value, dtype: DType) -> Value:
    return context.node("Expand", [context.scalar(0, dtype), context.node("Shape", [value])])


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


def _lower_body(
    context: Context, loop: _Loop, positions: dict[SourceValue, int], types: list[TensorType], lasts: list[int]
) -> tuple[Context, list[Value]]:
    """Lower the body; return its context and its results for the carried values."""
    body = context.inner("loop")
    iteration = body.block_input("iteration", DType.INT64, ())
    body.block_input("condition", DType.BOOL, ())
    arguments = loop.body.arguments
    names = [*(arguments[n].name for n in loop.tensors), *(f"{arguments[n].name}.last" for n in lasts)]
    carried = [body.block_input(name, type_.dtype, type_.shape) for name, type_ in zip(names, types)]
    for argument, source in loop.fixed:
        _bind_same(body, source, argument)
    for number, value in zip(loop.tensors, carried):
        body.bind_value(arguments[number], value)
    last = dict(zip(lasts, carried[len(loop.tensors) :]))
    for number, array in loop.arrays:
        argument = arguments[number]
        body.bind_array(argument, LoopArray(argument, array.elements, iteration, positions, last.get(number)))
    body.lower_block(loop.body)
    condition, *results = loop.body.results
    tensors = [body.value(results[n]) for n in loop.tensors]
    written = {number: _written(body, arguments[number], results[number]) for number, _ in loop.arrays}
    tensors += [written[number] for number in lasts]
    _yield(body, _scalar_condition(body, body.value(condition)))
    for value in (*tensors, *written.values()):
        _yield(body, value)
    return body, tensors


def _written(body: Context, argument: SourceValue, result: SourceValue) -> Value:
    """Return the element that an iteration appends to an array."""
    array = body.array(result)
    if not isinstance(array, LoopArray) or array.argument is not argument or array.written is None:
        raise Unlowerable("a loop exchanges lists of tensors instead of appending to them", _ARRAY_REMEDY)
    return array.written
