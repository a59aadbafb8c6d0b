"""Sums, means and extremes of rows with one number: segments, and messages between the nodes of a graph."""

from __future__ import annotations

import numpy as np

from lite_core.ir import DType, Value
from lite_paddle.lowering.context import Context
from lite_paddle.lowering.registry import lowers
from lite_paddle.lowering.unlowerable import Unlowerable
from lite_paddle.source import SourceOp

_MESSAGES = {"ADD": "Add", "SUB": "Sub", "MUL": "Mul", "DIV": "Div"}
_REDUCTIONS = {"SUM": "add", "MEAN": "add", "MAX": "max", "MIN": "min"}
I64 = DType.INT64


@lowers("segment_pool")
def segment_pool(op: SourceOp, context: Context) -> None:
    """Reduce the rows of each segment; the identifiers of segments ascend."""
    ids = context.reshape(context.cast(context.input(op, "SegmentIds"), I64), [-1])
    last = context.node("ReduceMax", [ids], {"keepdims": 1})
    rows = context.node("Add", [last, context.builder.ints(1)])
    context.bind(op, "Out", _reduced(context, context.input(op, "X"), ids, rows, str(op.attrs["pooltype"])))


@lowers("graph_send_recv", "graph_send_ue_recv")
def send_and_receive(op: SourceOp, context: Context) -> None:
    """Send the row of each edge's source node, combined with the edge's own row, and reduce what each node receives."""
    x = context.input(op, "X")
    message = _sent(context, x, context.input(op, "Src_index"))
    if op.type == "graph_send_ue_recv":
        message = context.node(_message(op), [message, context.input(op, "Y")])
    positions = context.cast(context.input(op, "Dst_index"), I64)
    context.bind(
        op, "Out", _reduced(context, message, positions, _out_rows(op, context, x), str(op.attrs["reduce_op"]))
    )


@lowers("graph_send_uv")
def combine_ends(op: SourceOp, context: Context) -> None:
    """Combine the rows of both ends of each edge."""
    pairs = zip(("x", "y"), ("src_index", "dst_index"))
    ends = [_sent(context, context.input(op, rows), context.input(op, index)) for rows, index in pairs]
    context.emit(op, _message(op), ends, slot="out")


def _message(op: SourceOp) -> str:
    name = str(op.attrs["message_op"])
    if name not in _MESSAGES:
        raise Unlowerable(f"its message_op is {name!r}; Lite has {', '.join(_MESSAGES)}")
    return _MESSAGES[name]


def _sent(context: Context, rows: Value, index: Value) -> Value:
    return context.node("Gather", [rows, context.cast(index, I64)], {"axis": 0})


def _out_rows(op: SourceOp, context: Context, x: Value) -> Value:
    """Return the number of rows of the result: ``out_size``, or that of x if it is not above 0."""
    given = context.optional(op, "Out_size")
    own = context.node("Shape", [x], {"start": 0, "end": 1})
    if given is None:
        size = op.attrs.get("out_size") or [0]
        number = int(size[0] if isinstance(size, list | tuple) else size)
        return context.builder.ints(number) if number > 0 else own
    wanted = context.reshape(context.cast(given, I64), [1])
    return context.node("Where", [context.node("Greater", [wanted, context.scalar(0, I64)]), wanted, own])


def _reduced(context: Context, rows: Value, positions: Value, count: Value, kind: str) -> Value:
    """Reduce the rows with each place; a place without rows has zeros."""
    if kind not in _REDUCTIONS:
        raise Unlowerable(f"its reduction is {kind!r}; Lite has {', '.join(_REDUCTIONS)}")
    sizes = context.node("Shape", [rows], {"start": 1})
    shape = context.node("Concat", [count, sizes], {"axis": 0})
    positions = context.reshape(positions, [-1, 1])
    start = _first(rows, kind)
    empty = context.node("Expand", [context.scalar(start, rows), shape])
    result = context.node("ScatterND", [empty, positions, rows], {"reduction": _REDUCTIONS[kind]})
    if kind == "SUM":
        return result
    one = context.scalar(1, I64)
    ones = context.node("Expand", [one, context.node("Shape", [rows], {"start": 0, "end": 1})])
    zeros = context.node("Expand", [context.scalar(0, I64), count])
    received = context.node("ScatterND", [zeros, positions, ones], {"reduction": "add"})
    rank = context.rank(rows, "its rows are divided by their numbers")
    received = context.reshape(received, [-1, *[1] * (rank - 1)])
    if kind == "MEAN":
        return context.node("Div", [result, context.cast(context.node("Max", [received, one]), rows.dtype)])
    is_empty = context.node("Less", [received, one])
    return context.node("Where", [is_empty, context.scalar(0, rows), result])


def _first(rows: Value, kind: str) -> float | int:
    if kind in ("SUM", "MEAN"):
        return 0
    if rows.dtype.is_integer:
        limits = np.iinfo(rows.dtype.numpy)
        return int(limits.min if kind == "MAX" else limits.max)
    return -np.inf if kind == "MAX" else np.inf
