"""The LSTM and GRU of Paddle 1.x, whose batch is the concatenated rows of several sequences.

Sizes in this file: R rows, N sequences, L steps, H hidden units.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lite_core.ir import Attribute, DType, Node, Value
from lite_paddle.lowering.context import Array, Context
from lite_paddle.lowering.dynamic import dimension, shape_vector
from lite_paddle.lowering.operators.activation import activate
from lite_paddle.lowering.operators.recurrent import gru_weights
from lite_paddle.lowering.registry import lowers
from lite_paddle.lowering.sequences import Rows, rows_of
from lite_paddle.lowering.unlowerable import Unlowerable
from lite_paddle.source import SourceOp

_ACTIVATIONS = {"sigmoid": "Sigmoid", "tanh": "Tanh", "relu": "Relu", "identity": "Affine"}


def _activation(op: SourceOp, name: str) -> str:
    found = _ACTIVATIONS.get(op.attrs[name])
    if found is None:
        raise Unlowerable(f"its {name} is {op.attrs[name]!r}, expected one of {', '.join(_ACTIVATIONS)}")
    return found


def _known(context: Context, value: Value, what: str) -> Array:
    known = context.known(value)
    if known is None or known.dtype == object:
        raise Unlowerable(f"its {what} is not a parameter")
    return np.asarray(known)


def _initial(context: Context, op: SourceOp, slot: str, rows: Rows, hidden: int) -> Value | None:
    """Reshape an initial state [N, H] to ONNX's [1, N, H], or [N, 1, H] with the batch first."""
    state = context.optional(op, slot)
    if state is None:
        return None
    if not rows.sequences.is_one:
        return context.reshape(state, [-1, 1, hidden])
    if state.type.rank == 2 and isinstance(state.shape[0], int) and state.shape[0] != 1:
        raise Unlowerable(
            f"its initial state is for {state.shape[0]} sequences, its input is one",
            "read the model for several sequences, with the reader's option lod",
        )
    return context.reshape(state, [1, 1, hidden])


def _batch(rows: Rows, width: int) -> tuple[Value, Value | None]:
    """Return the input [L, 1, W] of one sequence, or [N, L, W] of several; and their lengths, if these differ."""
    context = rows.context
    if rows.sequences.is_one:
        return context.reshape(rows.value, [-1, 1, width]), None
    lengths = None if rows.sequences.offsets is None else context.cast(rows.lengths(), DType.INT32)
    return rows.padded(), lengths


def _unprojected(rows: Rows, width: int, dtype: np.dtype[Any]) -> tuple[Rows, Array, Array]:
    """Return rows [R, I], weights [I, W] and a bias [W] whose product and sum is the projected input [R, W].

    ONNX's operators project the input themselves, Paddle's model does it before: the product and the bias that make the
    input are taken over if they are constant. Otherwise the weights are the identity.
    """
    context, value = rows.context, rows.value
    bias: Array = np.zeros(width, dtype)
    node = _maker(context, value)
    if node is not None and node.op == "Add":
        product, addend = node.inputs
        known = context.known(addend)
        if product is not None and known is not None and known.dtype == dtype and known.size == width:
            bias, node = known.reshape(-1), _maker(context, product)
    if node is not None and node.op == "MatMul":
        x, weights = node.inputs
        known = context.known(weights)
        # Wider rows would cost more to pad than the product with the identity.
        is_known = known is not None and known.dtype == dtype and _fits(known.shape, width)
        if x is not None and x.type.rank == 2 and is_known:
            return Rows(context, x, rows.sequences), np.asarray(known), bias
    return rows, np.eye(width, dtype=dtype), np.zeros(width, dtype)


def _fits(shape: tuple[int, ...], width: int) -> bool:
    return len(shape) == 2 and shape[0] <= width == shape[1]


def _maker(context: Context, value: Value) -> Node | None:
    """Return the node of this block that computes a value."""
    return next((node for node in reversed(context.builder.graph.nodes) if value in node.outputs), None)


def _bind_hidden(op: SourceOp, rows: Rows, whole: Value, hidden: int) -> None:
    """Bind the hidden states [R, H] of each step: of [L, 1, 1, H] for one sequence, or [N, L, 1, H]."""
    context = rows.context
    if rows.sequences.is_one:
        states = context.reshape(whole, [-1, hidden])
    else:
        states = rows.joined(context.node("Squeeze", [whole, context.builder.ints(2)]))
    context.bind(op, "Hidden", states)
    context.bind_sequences(op.outputs["Hidden"][0], rows.sequences)


def _attributes(op: SourceOp, rows: Rows, hidden: int, *activations: str) -> dict[str, Attribute | list[Any]]:
    return {
        "hidden_size": hidden,
        "direction": _direction(op),
        "layout": 0 if rows.sequences.is_one else 1,
        "activations": tuple(_activation(op, name) for name in activations),
    }


def _direction(op: SourceOp) -> str:
    return "reverse" if op.attrs["is_reverse"] else "forward"


@lowers("lstm")
def lstm(op: SourceOp, context: Context) -> None:
    """Lower with the projected input [R, 4H] and Weight [H, 4H]; gate order: candidate, input, forget, output."""
    weight = _known(context, context.input(op, "Weight"), "weight")
    hidden = weight.shape[0]
    dtype = weight.dtype
    candidate, input_, forget, output = range(4)
    order = (input_, output, forget, candidate)  # the order of ONNX
    columns = np.concatenate([np.arange(hidden) + g * hidden for g in order])
    rows, projection, added = _unprojected(rows_of(op, context, "Input"), 4 * hidden, dtype)
    builder = context.builder
    bias = np.zeros((1, 8 * hidden), dtype)
    bias[0, : 4 * hidden] = added[columns]
    peepholes: list[Array] = []
    given = context.optional(op, "Bias")
    if given is not None:
        flat = _known(context, given, "bias").reshape(-1)
        bias[0, : 4 * hidden] += flat[: 4 * hidden][columns]
        if op.attrs["use_peepholes"]:
            if flat.size != 7 * hidden:
                raise Unlowerable(f"its bias has {flat.size} elements, expected {7 * hidden} with peepholes")
            peepholes = np.split(flat[4 * hidden :], 3)
    weights = _LstmWeights(projection.T[columns], weight.T[columns], bias[0, : 4 * hidden], peepholes)
    x, lengths = _batch(rows, projection.shape[0])
    h0, c0 = (_initial(context, op, slot, rows, hidden) for slot in ("H0", "C0"))
    inputs = [
        x,
        builder.constant(np.ascontiguousarray(weights.of_input)[None]),
        builder.constant(np.ascontiguousarray(weights.of_state)[None]),
        builder.constant(bias),
        lengths,
        h0,
        c0,
    ]
    if peepholes:
        of_input, of_forget, of_output = peepholes
        inputs.append(builder.constant(np.concatenate([of_input, of_output, of_forget])[None]))
    names = ("gate_activation", "candidate_activation", "cell_activation")
    whole = context.node("LSTM", inputs, _attributes(op, rows, hidden, *names))
    _bind_hidden(op, rows, whole, hidden)
    if context.is_used(op, "Cell"):
        states = Rows(context, context.value(op.outputs["Hidden"][0]), rows.sequences)
        context.bind(op, "Cell", _cells(op, rows, states, weights))
        context.bind_sequences(op.outputs["Cell"][0], rows.sequences)


@dataclass(frozen=True)
class _LstmWeights:
    """Weights of an LSTM, with ONNX's order of gates: input, output, forget, candidate.

    Attributes:
        of_input: [4H, I].
        of_state: [4H, H].
        bias: [4H].
        peepholes: [H] for the input, forget and output gate; empty without peepholes.
    """

    of_input: Array
    of_state: Array
    bias: Array
    peepholes: list[Array]


def _cells(op: SourceOp, rows: Rows, states: Rows, weights: _LstmWeights) -> Value:
    """Return the cell states [R, H] of every step, which ONNX's operator does not return: a Scan computes them again.

    The hidden states are known by then, so a step has no output gate.
    """
    context, hidden = rows.context, weights.of_state.shape[1]
    constant, ints = context.builder.constant, context.builder.ints
    inner = [0, 2, 3]  # the gates of the cell state
    of_input, of_state, bias = (
        np.concatenate([np.split(array, 4)[g] for g in inner])
        for array in (weights.of_input, weights.of_state, weights.bias)
    )
    x = rows.padded()
    projected = context.node("Add", [context.node("MatMul", [x, constant(of_input.T.copy())]), constant(bias)])
    size = shape_vector(context, [dimension(context, x, 0), hidden])
    zeros = context.node("Expand", [context.scalar(0, x), size])
    h0, c0 = (context.optional(op, slot) or zeros for slot in ("H0", "C0"))
    steps = context.node("Shape", [x], {"start": 1, "end": 2})
    zero, one = (context.scalar(n, DType.INT64) for n in (0, 1))
    numbers = context.node("Range", [zero, context.reshape(steps, []), one])
    inside = context.node("Less", [numbers, context.node("Unsqueeze", [rows.lengths(), ints(1)])])

    body = context.inner("cells")
    h, c = (body.block_input(name, x.dtype, [None, hidden]) for name in ("state", "cell"))
    gates = body.block_input("gates", x.dtype, [None, 3 * hidden])
    h_new = body.block_input("new_state", x.dtype, [None, hidden])
    is_step = body.block_input("inside", DType.BOOL, [None, 1])
    total = body.node("Add", [gates, body.node("MatMul", [h, constant(of_state.T.copy())])])
    i, f, g = body.nodes("Split", [total], {"axis": 1, "num_outputs": 3}, outputs=3)
    if weights.peepholes:
        i, f = (
            body.node("Add", [gate, body.node("Mul", [c, constant(w)])]) for gate, w in zip((i, f), weights.peepholes)
        )
    gate, candidate = (str(op.attrs[name]) for name in ("gate_activation", "candidate_activation"))
    kept = body.node("Mul", [activate(body, f, gate), c])
    added = body.node("Mul", [activate(body, i, gate), activate(body, g, candidate)])
    c_new = body.node("Where", [is_step, body.node("Add", [kept, added]), c])
    body.builder.output(body.node("Where", [is_step, h_new, h]))
    body.builder.output(c_new)
    body.builder.output(body.node("Identity", [c_new]))
    backwards = int(op.attrs["is_reverse"])
    attributes: dict[str, Attribute | list[Any]] = {
        "body": body.builder.build(),
        "num_scan_inputs": 3,
        "scan_input_axes": [1, 1, 1],
        "scan_output_axes": [1],
        "scan_input_directions": [backwards] * 3,
        "scan_output_directions": [backwards],
    }
    inputs = [h0, c0, projected, states.padded(), context.node("Unsqueeze", [inside, ints(2)])]
    return rows.joined(context.nodes("Scan", inputs, attributes, outputs=3)[2])


@lowers("gru")
def gru(op: SourceOp, context: Context) -> None:
    """Lower with the projected input [R, 3H]; gate order: update, reset, candidate.

    NOTE: unless ``origin_mode``, the update gate weighs the new state; in ONNX it always weighs the old one.
    ``1 - sigmoid(a) = sigmoid(-a)``: the gate's weights change sign.
    """
    gates, candidate = (np.asarray(context.known(v)) for v in gru_weights(context, context.input(op, "Weight")))
    hidden, dtype = gates.shape[0], gates.dtype
    sign = 1 if op.attrs["origin_mode"] else -1
    if sign < 0 and op.attrs["gate_activation"] != "sigmoid":
        raise Unlowerable(f"its gate_activation is {op.attrs['gate_activation']!r}, expected sigmoid")
    recurrent = np.concatenate([gates, candidate], axis=1).T.copy()
    rows, projection, added = _unprojected(rows_of(op, context, "Input"), 3 * hidden, dtype)
    of_input = projection.T.copy()
    bias = np.zeros((1, 6 * hidden), dtype)
    bias[0, : 3 * hidden] = added
    given = context.optional(op, "Bias")
    if given is not None:
        bias[0, : 3 * hidden] += _known(context, given, "bias").reshape(-1)
    for array in (recurrent, of_input):
        array[:hidden] *= sign
    bias[0, :hidden] *= sign
    builder = context.builder
    x, lengths = _batch(rows, projection.shape[0])
    inputs = [
        x,
        builder.constant(of_input[None]),
        builder.constant(recurrent[None]),
        builder.constant(bias),
        lengths,
        _initial(context, op, "H0", rows, hidden),
    ]
    whole = context.node("GRU", inputs, _attributes(op, rows, hidden, "gate_activation", "activation"))
    _bind_hidden(op, rows, whole, hidden)
