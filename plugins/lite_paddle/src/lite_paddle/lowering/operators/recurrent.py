"""Recurrent networks over padded batches: rnn, cudnn_lstm, and single steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lite_core.ir import DType, Value
from lite_paddle.lowering.context import Array, Context
from lite_paddle.lowering.limits import check_parts
from lite_paddle.lowering.operators.activation import activate
from lite_paddle.lowering.registry import lowers
from lite_paddle.lowering.unlowerable import Unlowerable
from lite_paddle.source import SourceOp

__all__ = ["ENUM_ACTIVATIONS", "gru_weights", "reordered"]


@dataclass(frozen=True, slots=True)
class _Cell:
    """The ONNX counterpart of a mode of Paddle's rnn."""

    type: str
    #: Index of Paddle's gate for each gate of ONNX, in ONNX's order.
    gates: tuple[int, ...]
    states: int
    activation: str = ""


# Paddle's gates: LSTM i, f, g, o; GRU r, z, n. ONNX's: LSTM i, o, f, g; GRU z, r, n.
_CELLS = {
    "LSTM": _Cell("LSTM", (0, 3, 1, 2), 2),
    "GRU": _Cell("GRU", (1, 0, 2), 1),
    "RNN_TANH": _Cell("RNN", (0,), 1, "Tanh"),
    "RNN_RELU": _Cell("RNN", (0,), 1, "Relu"),
}


def reordered(context: Context, weight: Value, gates: Sequence[int]) -> Value:
    """Reorder the blocks of rows of a weight, one block for each gate."""
    if list(gates) == list(range(len(gates))):
        return weight
    known = context.known(weight)
    if known is not None and known.dtype != object:
        blocks = np.split(np.asarray(known), len(gates), axis=0)
        return context.builder.constant(np.concatenate([blocks[g] for g in gates], axis=0))
    count = len(gates)
    parts = context.nodes("Split", [weight], {"axis": 0, "num_outputs": count}, outputs=count)
    return context.node("Concat", [parts[g] for g in gates], {"axis": 0})


def _stacked(context: Context, values: Sequence[Value]) -> Value:
    """Stack tensors of one shape along a new first axis (ONNX's axis of directions)."""
    known = [context.known(v) for v in values]
    arrays = [np.asarray(k) for k in known if k is not None and k.dtype != object]
    if len(arrays) == len(values):
        return context.builder.constant(np.stack(arrays))
    axis = context.builder.ints(0)
    parts = [context.node("Unsqueeze", [v, axis]) for v in values]
    return parts[0] if len(parts) == 1 else context.node("Concat", parts, {"axis": 0})


def _concatenated(context: Context, values: Sequence[Value]) -> Value:
    known = [context.known(v) for v in values]
    arrays = [np.asarray(k) for k in known if k is not None and k.dtype != object]
    if len(arrays) == len(values):
        return context.builder.constant(np.concatenate(arrays))
    return context.node("Concat", values, {"axis": 0})


def _rows(context: Context, value: Value, begin: int, end: int, total: int) -> Value:
    if (begin, end) == (0, total):
        return value
    ints = context.builder.ints
    return context.node("Slice", [value, ints(begin), ints(end), ints(0)])


@dataclass(frozen=True, slots=True)
class _Network:
    """The layers and directions of a network, with the weights of each."""

    cell: _Cell
    layers: int
    directions: int
    hidden: int
    #: w_ih and w_hh of each layer and direction, followed by b_ih and b_hh of each layer and direction.
    weights: list[Value]


def _run_network(
    context: Context, network: _Network, x: Value, states: list[Value], lengths: Value | None
) -> tuple[Value, list[Value]]:
    """Return the output [T, B, D * H] and the final states, each [layers * D, B, H]."""
    cell, d, layers = network.cell, network.directions, network.layers
    count = layers * d
    if len(network.weights) != 4 * count:
        raise Unlowerable(f"it has {len(network.weights)} weights, expected {4 * count} for {layers} layers")
    attributes: dict[str, object] = {
        "hidden_size": network.hidden,
        "direction": "bidirectional" if d == 2 else "forward",
    }
    if cell.type == "GRU":
        attributes["linear_before_reset"] = 1
    if cell.type == "RNN":
        attributes["activations"] = (cell.activation,) * d
    finals: list[list[Value]] = [[] for _ in range(cell.states)]
    for layer in range(layers):
        indices = [layer * d + k for k in range(d)]
        w, r, b = ([], [], [])  # type: tuple[list[Value], list[Value], list[Value]]
        for index in indices:
            w_input, w_hidden = network.weights[2 * index : 2 * index + 2]
            biases = network.weights[2 * count + 2 * index : 2 * count + 2 * index + 2]
            w.append(reordered(context, w_input, cell.gates))
            r.append(reordered(context, w_hidden, cell.gates))
            b.append(_concatenated(context, [reordered(context, v, cell.gates) for v in biases]))
        initial = [_rows(context, s, layer * d, layer * d + d, count) for s in states]
        stacks = [_stacked(context, group) for group in (w, r, b)]
        whole, *last = context.nodes(
            cell.type,
            [x, *stacks, lengths, *initial],
            attributes,  # type: ignore[arg-type]
            outputs=1 + cell.states,
        )
        for group, value in zip(finals, last):
            group.append(value)
        if d == 1:
            x = context.node("Squeeze", [whole, context.builder.ints(1)])
        else:  # [T, D, B, H] -> [T, B, D * H]
            x = context.reshape(context.transpose(whole, [0, 2, 1, 3]), [0, 0, d * network.hidden])
    return x, [g[0] if layers == 1 else context.node("Concat", g, {"axis": 0}) for g in finals]


def _lengths(context: Context, op: SourceOp) -> Value | None:
    lengths = context.optional(op, "SequenceLength")
    return None if lengths is None else context.cast(lengths, DType.INT32)


@lowers("rnn")
def rnn(op: SourceOp, context: Context) -> None:
    """Lower with the input [T, B, I] and initial states [layers * directions, B, H]."""
    mode = op.attrs["mode"]
    cell = _CELLS.get(mode)
    if cell is None:
        raise Unlowerable(f"its mode is {mode!r}, expected one of {', '.join(_CELLS)}")
    network = _Network(
        cell,
        int(op.attrs["num_layers"]),
        2 if op.attrs["is_bidirec"] else 1,
        int(op.attrs["hidden_size"]),
        context.inputs(op, "WeightList"),
    )
    states = context.inputs(op, "PreState")
    if len(states) != cell.states:
        raise Unlowerable(f"it has {len(states)} initial states, expected {cell.states} for {mode}")
    out, finals = _run_network(context, network, context.input(op, "Input"), states, _lengths(context, op))
    context.bind(op, "Out", out)
    context.bind(op, "State", *finals)


@lowers("cudnn_lstm")
def cudnn_lstm(op: SourceOp, context: Context) -> None:
    """Lower the LSTM of Paddle 1.x for GPUs: weights in a list, or all in one vector in the same order."""
    layers, directions = int(op.attrs["num_layers"]), 2 if op.attrs["is_bidirec"] else 1
    hidden = int(op.attrs["hidden_size"])
    x = context.input(op, "Input")
    weights = context.inputs(op, "WeightList")
    if not weights:
        weights = _unpacked(context, op, x, layers, directions, hidden)
    network = _Network(_CELLS["LSTM"], layers, directions, hidden, weights)
    states = [context.input(op, slot) for slot in ("InitH", "InitC")]
    out, (last_h, last_c) = _run_network(context, network, x, states, _lengths(context, op))
    context.bind(op, "Out", out)
    context.bind(op, "LastH", last_h)
    context.bind(op, "LastC", last_c)


def _unpacked(context: Context, op: SourceOp, x: Value, layers: int, directions: int, hidden: int) -> list[Value]:
    packed = context.known(context.input(op, "W"))
    size = x.shape[-1] if x.type.rank else None
    if packed is None or packed.dtype == object or not isinstance(size, int):
        raise Unlowerable("its packed weights, or the size of its input, are not known before the model runs")
    check_parts(layers)
    flat, offset = np.asarray(packed).reshape(-1), 0
    arrays: list[Array] = []
    shapes: list[tuple[int, ...]] = []
    for layer in range(layers):
        inputs = size if layer == 0 else directions * hidden
        shapes += [(4 * hidden, inputs), (4 * hidden, hidden)] * directions
    shapes += [(4 * hidden,)] * (2 * layers * directions)
    if sum(int(np.prod(s)) for s in shapes) != flat.size:
        raise Unlowerable(f"its packed weights have {flat.size} elements, which does not fit its sizes")
    for shape in shapes:
        count = int(np.prod(shape))
        arrays.append(flat[offset : offset + count].reshape(shape))
        offset += count
    return [context.builder.constant(a) for a in arrays]


# **** one step of a GRU ****

#: Names of the activations that gru_unit gives as numbers.
ENUM_ACTIVATIONS = ("identity", "sigmoid", "tanh", "relu")


def gru_weights(context: Context, weight: Value) -> tuple[Value, Value]:
    """Return the weights of update and reset gate [H, 2H], and of the candidate [H, H].

    NOTE: in memory, a weight of shape [H, 3H] is a block [H, 2H] followed by a block [H, H].
    """
    known = context.known(weight)
    if known is None or known.dtype == object or known.ndim != 2:
        raise Unlowerable("its weight is not a parameter")
    hidden = known.shape[0]
    flat = np.asarray(known).reshape(-1)
    gates = flat[: 2 * hidden * hidden].reshape(hidden, 2 * hidden)
    candidate = flat[2 * hidden * hidden :].reshape(hidden, hidden)
    return context.builder.constant(gates), context.builder.constant(candidate)


@lowers("gru_unit")
def gru_unit(op: SourceOp, context: Context) -> None:
    """Lower one step, with the already projected input [B, 3H] in the order update, reset, candidate."""
    x, h = context.any_input(op, "Input", "0"), context.any_input(op, "HiddenPrev", "1")
    gates, candidate = gru_weights(context, context.any_input(op, "Weight", "2"))
    bias = context.any_optional(op, "Bias", "3")
    hidden = int(gates.shape[0])
    if bias is not None:
        x = context.node("Add", [x, context.reshape(bias, [-1])])
    sections = context.builder.ints(2 * hidden, hidden)
    x_gates, x_candidate = context.nodes("Split", [x, sections], {"axis": 1}, outputs=2)
    gate_name, name = (_activation_name(op, a) for a in ("gate_activation", "activation"))
    both = activate(context, context.node("Add", [x_gates, context.node("MatMul", [h, gates])]), gate_name)
    update, reset = context.nodes("Split", [both], {"axis": 1, "num_outputs": 2}, outputs=2)
    kept = context.node("Mul", [reset, h])
    new = activate(context, context.node("Add", [x_candidate, context.node("MatMul", [kept, candidate])]), name)
    rest = context.node("Sub", [context.scalar(1, x), update])
    of_new, of_old = (rest, update) if op.attrs.get("origin_mode") else (update, rest)
    result = context.node("Add", [context.node("Mul", [of_new, new]), context.node("Mul", [of_old, h])])
    gate = context.node("Concat", [update, reset, new], {"axis": 1})
    for slot, value in zip(("Gate", "ResetHiddenPrev", "Hidden", "0", "1", "2"), (gate, kept, result) * 2):
        context.bind(op, slot, value)


def _activation_name(op: SourceOp, name: str) -> str:
    number = int(op.attrs[name]) if name in op.attrs else {"gate_activation": 1, "activation": 2}[name]
    if not 0 <= number < len(ENUM_ACTIVATIONS):
        raise Unlowerable(f"its {name} is {number}, expected a number below {len(ENUM_ACTIVATIONS)}")
    return ENUM_ACTIVATIONS[number]
