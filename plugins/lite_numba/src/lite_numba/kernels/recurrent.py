"""LSTM, GRU and RNN: BLAS projects all steps of the input at once, loops compute the steps."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from lite_core.backend import No, Yes
from lite_core.ir import Array, Node
from lite_numba.backend import backend
from lite_numba.kernels.elementwise import sigmoid
from lite_numba.kernels.numpy_calls import FLOATS, by_reference


def _usual(node: Node) -> Yes | No:
    unusual = [name for name in ("activations", "clip", "layout") if node.attributes.get(name)]
    return No(f"the loop has no {', '.join(unusual)}") if unusual else Yes()


def _layer(*inputs: Array, states: int, out: tuple[Any, ...], direction: str, **attributes: Any) -> Any:
    """Return the arguments of the loop of :func:`_recurrent`; the final states start as the initial ones."""
    x, w, r, b, lengths, *initial = inputs
    directions, width, hidden = r.shape
    steps, batch = x.shape[:2]
    if lengths is not None and batch and not 0 <= lengths.min() <= lengths.max() <= steps:
        raise ValueError(f"sequence_lens must be from 0 to {steps}, are {lengths.tolist()}")
    bias = np.zeros((directions, 2 * width), x.dtype) if b is None else b
    rows = x.reshape(steps * batch, x.shape[2])
    projected = np.stack([rows @ w[d].T + bias[d, :width] for d in range(directions)])
    shapes = [(steps, directions, batch, hidden), *[(directions, batch, hidden)] * states]
    whole, *finals = (np.empty(s, x.dtype) if given is None else given for given, s in zip(out, shapes))
    for state, final in zip(initial, finals):
        final[...] = 0 if state is None else state
    flags = [bool(attributes[name]) for name in ("input_forget", "linear_before_reset") if name in attributes]
    return (
        projected.reshape(directions, steps, batch, width),
        np.array(r.swapaxes(1, 2), order="C"),
        np.array(bias[:, width:], order="C"),
        np.full(batch, steps, np.int32) if lengths is None else lengths,
        initial[states] if len(initial) > states else None,
        any(flags),
        direction == "reverse",
        whole,
        tuple(finals),
    )


def _recurrent(op: str, states: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that makes a kernel of one step of one sequence, which updates the states [H]."""

    def register(step: Callable[..., Any]) -> Callable[..., Any]:
        def loop(projected, weights, bias, lengths, peepholes, flag, is_reverse, y, finals):
            """``projected`` is [D, T, B, gates * H], ``weights`` [D, H, gates * H], ``bias`` [D, gates * H]."""
            directions, steps, batch, width = projected.shape
            gates, memory = np.empty(width, y.dtype), np.empty(y.shape[3], y.dtype)
            for d in range(directions):
                for b in range(batch):
                    h = finals[0][d, b]
                    for number in range(steps):
                        t = steps - 1 - number if is_reverse or d == 1 else number
                        if t < lengths[b]:
                            c = finals[-1][d, b]
                            step(projected[d, t, b], weights[d], bias[d], peepholes, flag, h, c, d, gates, memory)
                        for k in range(h.size):
                            y[t, d, b, k] = h[k] if t < lengths[b] else 0

        loop.__name__ = op.lower()
        backend.kernel(op, dtypes=FLOATS, when=_usual, prepare=partial(_layer, states=states))(loop)
        by_reference(op)
        return step

    return register


def _add_product(gates, h, weights, first):
    """Add ``h @ weights[:, first:]`` to gates: row by row, whose elements vectors compute at once."""
    for k in range(h.size):
        for j in range(gates.size):
            gates[j] += h[k] * weights[k, first + j]


@_recurrent("LSTM", states=2)
def lstm_step(projected, weights, bias, peepholes, input_forget, h, c, d, gates, memory):
    hidden = h.size
    for j in range(gates.size):
        gates[j] = projected[j] + bias[j]
    _add_product(gates, h, weights, 0)
    for k in range(hidden):
        entry, output, forget = gates[k], gates[hidden + k], gates[2 * hidden + k]
        if peepholes is not None:
            entry += peepholes[d, k] * c[k]
            forget += peepholes[d, 2 * hidden + k] * c[k]
        entry = sigmoid(entry)
        forget = 1 - entry if input_forget else sigmoid(forget)
        c[k] = forget * c[k] + entry * math.tanh(gates[3 * hidden + k])
        if peepholes is not None:
            output += peepholes[d, hidden + k] * c[k]
        h[k] = sigmoid(output) * math.tanh(c[k])


@_recurrent("GRU", states=1)
def gru_step(projected, weights, bias, peepholes, linear_before_reset, h, c, d, gates, reset):
    hidden = h.size
    for j in range(gates.size):
        gates[j] = bias[j] + (projected[j] if j < 2 * hidden else 0)
    update_and_reset, new = gates[: 2 * hidden], gates[2 * hidden :]
    _add_product(update_and_reset, h, weights, 0)
    for k in range(hidden):
        reset[k] = sigmoid(gates[hidden + k])
        if not linear_before_reset:
            reset[k] *= h[k]
    _add_product(new, h if linear_before_reset else reset, weights, 2 * hidden)
    for k in range(hidden):
        update = sigmoid(gates[k])
        recurrent = reset[k] * new[k] if linear_before_reset else new[k]
        h[k] = (1 - update) * math.tanh(projected[2 * hidden + k] + recurrent) + update * h[k]


@_recurrent("RNN", states=1)
def rnn_step(projected, weights, bias, peepholes, flag, h, c, d, gates, memory):
    for j in range(gates.size):
        gates[j] = projected[j] + bias[j]
    _add_product(gates, h, weights, 0)
    for k in range(h.size):
        h[k] = math.tanh(gates[k])
