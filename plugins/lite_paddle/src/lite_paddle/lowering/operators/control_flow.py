"""Conditionals: if, select_input."""

from __future__ import annotations

from lite_core.ir import DType, Value
from lite_paddle.lowering.context import Context
from lite_paddle.lowering.registry import lowers
from lite_paddle.lowering.unlowerable import Unlowerable
from lite_paddle.source import SourceBlock, SourceOp, SourceValue

__all__ = ["ARRAY_REMEDY", "scalar_condition", "yield_value"]

ARRAY_REMEDY = "collect the results in one tensor (paddle.concat or paddle.stack) instead of a list"


def yield_value(inner: Context, value: Value) -> None:
    """Make a value an output of a sub-graph, through an Identity if it is an outer value or already an output."""
    graph = inner.builder.graph
    own = any(value in node.outputs for node in graph.nodes)
    inner.builder.output(value if own and value not in graph.outputs else inner.node("Identity", [value]))


def scalar_condition(context: Context, condition: Value) -> Value:
    """Return a condition as a 0-D boolean."""
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
                yield_value(branch, branch.value(result))
        elif arrays[0] is arrays[1] and arrays[0] is not None:
            context.bind_array(out, arrays[0])
        else:
            raise Unlowerable("a list of tensors is changed in one branch only", ARRAY_REMEDY)
    if not tensors:
        return
    attributes = {f"{name}_branch": b.builder.build() for name, b in zip(("then", "else"), branches)}
    values = context.nodes("If", [scalar_condition(context, condition)], attributes, outputs=len(tensors))
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
        yield_value(branch, choice)
        attributes[name] = branch.builder.build()
    context.emit(op, "If", [scalar_condition(context, mask)], attributes)
