"""The LSTM and GRU of Paddle 1.x, whose batch is the concatenated rows of several sequences.

Lite's tensors have no table of sequence offsets (LoD), so all rows are one sequence: a model runs on one
sequence at a time, as line recognition and tagging models do. Sizes in this file: T rows, H hidden units.
"""

from __future__ import annotations

import numpy as np

from lite_core.ir import Value
from lite_paddle.lowering.context import Array, Context
from lite_paddle.lowering.operators.recurrent import gru_weights
from lite_paddle.lowering.registry import lowers
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


def _initial(context: Context, op: SourceOp, slot: str, hidden: int) -> Value | None:
    """Reshape an initial state [1, H] to ONNX's [1, 1, H]."""
    state = context.optional(op, slot)
    if state is None:
        return None
    if state.type.rank == 2 and isinstance(state.shape[0], int) and state.shape[0] != 1:
        raise Unlowerable(
            f"its initial state is for {state.shape[0]} sequences, and sequence offsets are not supported",
            "run the model on one sequence at a time",
        )
    return context.reshape(state, [1, 1, hidden])


def _as_sequence(context: Context, rows: Value, width: int) -> Value:
    """Reshape rows [T, W] to a batch of one sequence [T, 1, W]."""
    return context.reshape(rows, [-1, 1, width])


def _direction(op: SourceOp) -> str:
    return "reverse" if op.attrs["is_reverse"] else "forward"


@lowers("lstm")
def lstm(op: SourceOp, context: Context) -> None:
    """Lower with the projected input [T, 4H] and Weight [H, 4H]; gate order: candidate, input, forget, output."""
    weight = _known(context, context.input(op, "Weight"), "weight")
    hidden = weight.shape[0]
    dtype = weight.dtype
    candidate, input_, forget, output = range(4)
    order = (input_, output, forget, candidate)  # the order of ONNX
    rows = np.concatenate([np.arange(hidden) + g * hidden for g in order])
    # NOTE: ONNX projects the input itself; the projection is a permutation that reorders the gates.
    projection = np.eye(4 * hidden, dtype=dtype)[rows]
    builder = context.builder
    bias = np.zeros((1, 8 * hidden), dtype)
    peepholes: Value | None = None
    given = context.optional(op, "Bias")
    if given is not None:
        flat = _known(context, given, "bias").reshape(-1)
        bias[0, : 4 * hidden] = flat[: 4 * hidden][rows]
        if op.attrs["use_peepholes"]:
            if flat.size != 7 * hidden:
                raise Unlowerable(f"its bias has {flat.size} elements, expected {7 * hidden} with peepholes")
            of_input, of_forget, of_output = np.split(flat[4 * hidden :], 3)
            peepholes = builder.constant(np.concatenate([of_input, of_output, of_forget])[None])
    activations = tuple(
        _activation(op, name) for name in ("gate_activation", "candidate_activation", "cell_activation")
    )
    x = _as_sequence(context, context.input(op, "Input"), 4 * hidden)
    h0, c0 = (_initial(context, op, slot, hidden) for slot in ("H0", "C0"))
    inputs = [
        x,
        builder.constant(projection[None]),
        builder.constant(np.ascontiguousarray(weight.T[rows])[None]),
        builder.constant(bias),
        None,
        h0,
        c0,
        peepholes,
    ]
    attributes = {"hidden_size": hidden, "direction": _direction(op), "activations": activations}
    whole = context.node("LSTM", inputs, attributes)
    context.bind(op, "Hidden", context.reshape(whole, [-1, hidden]))
    if context.is_used(op, "Cell"):
        raise Unlowerable("the model uses its cell states, which no operator of Lite returns for every step")


@lowers("gru")
def gru(op: SourceOp, context: Context) -> None:
    """Lower with the projected input [T, 3H]; gate order: update, reset, candidate.

    NOTE: unless ``origin_mode``, the update gate weighs the new state; in ONNX it always weighs the old one.
    ``1 - sigmoid(a) = sigmoid(-a)``: the gate's weights change sign.
    """
    gates, candidate = (np.asarray(context.known(v)) for v in gru_weights(context, context.input(op, "Weight")))
    hidden, dtype = gates.shape[0], gates.dtype
    sign = 1 if op.attrs["origin_mode"] else -1
    if sign < 0 and op.attrs["gate_activation"] != "sigmoid":
        raise Unlowerable(f"its gate_activation is {op.attrs['gate_activation']!r}, expected sigmoid")
    recurrent = np.concatenate([gates, candidate], axis=1).T.copy()
    projection = np.eye(3 * hidden, dtype=dtype)
    bias = np.zeros((1, 6 * hidden), dtype)
    given = context.optional(op, "Bias")
    if given is not None:
        bias[0, : 3 * hidden] = _known(context, given, "bias").reshape(-1)
    for array in (recurrent, projection):
        array[:hidden] *= sign
    bias[0, :hidden] *= sign
    builder = context.builder
    x = _as_sequence(context, context.input(op, "Input"), 3 * hidden)
    h0 = _initial(context, op, "H0", hidden)
    inputs = [
        x,
        builder.constant(projection[None]),
        builder.constant(recurrent[None]),
        builder.constant(bias),
        None,
        h0,
    ]
    attributes = {
        "hidden_size": hidden,
        "direction": _direction(op),
        "activations": (_activation(op, "gate_activation"), _activation(op, "activation")),
    }
    whole = context.node("GRU", inputs, attributes)
    context.bind(op, "Hidden", context.reshape(whole, [-1, hidden]))
