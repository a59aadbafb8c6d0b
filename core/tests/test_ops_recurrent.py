"""LSTM, GRU and RNN, compared with step-by-step formulas where ONNX's node data has no cases."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from op_runner import infer_op, run_op

from lite_core.errors import GraphError
from lite_core.ir import DType, SymbolicDim, TensorType

Array = np.ndarray[Any, Any]

STEPS, BATCH, INPUT, HIDDEN = 5, 3, 4, 2
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
STATES = {"LSTM": 2, "GRU": 1, "RNN": 1}


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def random_inputs(op: str, directions: int = 1) -> list[Array | None]:
    """Return X, W, R, B, no lengths, initial states and, for LSTM, peepholes."""
    rng = np.random.default_rng(7)
    width = GATES[op] * HIDDEN
    shapes = [
        (STEPS, BATCH, INPUT),
        (directions, width, INPUT),
        (directions, width, HIDDEN),
        (directions, 2 * width),
    ]
    state = (directions, BATCH, HIDDEN)
    arrays: list[Array | None] = [rng.normal(size=s) for s in shapes]
    arrays += [None, *(rng.normal(size=state) for _ in range(STATES[op]))]
    return [*arrays, rng.normal(size=(directions, 3 * HIDDEN))] if op == "LSTM" else arrays


def outputs(op: str) -> int:
    return 1 + STATES[op]


def test_lstm_with_all_inputs_and_attributes() -> None:
    x, w, r, b, _, h, c, p = random_inputs("LSTM")
    attributes = {"clip": 0.8, "activations": ("HardSigmoid", "Affine", "Softsign"),
                  "activation_alpha": (0.3, 0.5), "activation_beta": (0.4, 0.1)}  # fmt: skip
    results = run_op("LSTM", [x, w, r, b, None, h, c, p], 3, **attributes)

    def clip(v: Array) -> Array:
        return np.clip(v, -0.8, 0.8)

    def gate(v: Array) -> Array:
        return np.clip(0.3 * clip(v) + 0.4, 0, 1)

    w_i, w_o, w_f, w_c = np.split(w[0], 4)
    r_i, r_o, r_f, r_c = np.split(r[0], 4)
    b_i, b_o, b_f, b_c = np.split(b[0, : 4 * HIDDEN] + b[0, 4 * HIDDEN :], 4)
    p_i, p_o, p_f = np.split(p[0], 3)
    hidden, cell, expected = h[0], c[0], []
    for step in x:
        i = gate(step @ w_i.T + hidden @ r_i.T + b_i + p_i * cell)
        f = gate(step @ w_f.T + hidden @ r_f.T + b_f + p_f * cell)
        cell = f * cell + i * (0.5 * clip(step @ w_c.T + hidden @ r_c.T + b_c) + 0.1)
        o = gate(step @ w_o.T + hidden @ r_o.T + b_o + p_o * cell)
        hidden = o * (clip(cell) / (1 + np.abs(clip(cell))))
        expected.append(hidden)
    for result, want in zip(results, (np.stack(expected)[:, None], hidden[None], cell[None])):
        np.testing.assert_allclose(result, want, rtol=1e-9)


def test_lstm_couples_input_and_forget_gates() -> None:
    x, w, r, b, *_ = random_inputs("LSTM")
    _, _, cell = run_op("LSTM", [x[:1], w, r, b, None, None, np.ones((1, BATCH, HIDDEN))], 3, input_forget=1)
    i, _, _, g = np.split(x[0] @ w[0].T + b[0, : 4 * HIDDEN] + b[0, 4 * HIDDEN :], 4, axis=1)
    np.testing.assert_allclose(cell[0], 1 - sigmoid(i) + sigmoid(i) * np.tanh(g), rtol=1e-9)


@pytest.mark.parametrize("linear", [0, 1])
def test_gru(linear: int) -> None:
    x, w, r, b, _, h = random_inputs("GRU")
    results = run_op("GRU", [x, w, r, b, None, h], 2, linear_before_reset=linear)
    w_z, w_r, w_h = np.split(w[0], 3)
    r_z, r_r, r_h = np.split(r[0], 3)
    wb_z, wb_r, wb_h, rb_z, rb_r, rb_h = np.split(b[0], 6)
    hidden, expected = h[0], []
    for step in x:
        z = sigmoid(step @ w_z.T + hidden @ r_z.T + wb_z + rb_z)
        reset = sigmoid(step @ w_r.T + hidden @ r_r.T + wb_r + rb_r)
        inner = reset * (hidden @ r_h.T + rb_h) if linear else (reset * hidden) @ r_h.T + rb_h
        hidden = (1 - z) * np.tanh(step @ w_h.T + wb_h + inner) + z * hidden
        expected.append(hidden)
    np.testing.assert_allclose(results[0][:, 0], np.stack(expected), rtol=1e-9)
    np.testing.assert_allclose(results[1][0], hidden, rtol=1e-9)


def reversed_within(x: Array, lengths: Array) -> Array:
    """Return each sequence [T, B, ...] reversed within its length, with the padding unchanged."""
    result = x.copy()
    for index, length in enumerate(lengths):
        result[:length, index] = x[:length, index][::-1]
    return result


@pytest.mark.parametrize("op", GATES)
def test_directions_and_lengths(op: str) -> None:
    """A bidirectional layer equals two forward layers, the second over reversed sequences."""
    inputs = random_inputs(op, directions=2)
    lengths = np.array([5, 2, 0], np.int32)
    inputs[4] = lengths
    both = run_op(op, inputs, outputs(op), direction="bidirectional")
    x = inputs[0]
    assert x is not None

    def one(d: int, data: Array, direction: str) -> list[Array]:
        own = [data, *(None if a is None else a if a.ndim == 1 else a[d : d + 1] for a in inputs[1:])]
        return run_op(op, own, outputs(op), direction=direction)

    forward, backward = one(0, x, "forward"), one(1, reversed_within(x, lengths), "forward")
    np.testing.assert_allclose(both[0][:, 0], forward[0][:, 0], rtol=1e-9)
    np.testing.assert_allclose(both[0][:, 1], reversed_within(backward[0][:, 0], lengths), rtol=1e-9)
    for whole, first, second in zip(both[1:], forward[1:], backward[1:]):
        np.testing.assert_allclose(whole, np.concatenate([first, second]), rtol=1e-9)
    np.testing.assert_array_equal(one(1, x, "reverse")[0][:, 0], both[0][:, 1])
    assert not both[0][2:, :, 1].any(), "steps beyond the length are 0"


@pytest.mark.parametrize("op", GATES)
def test_batch_first_layout_transposes_the_results(op: str) -> None:
    inputs = random_inputs(op, directions=2)
    expected = run_op(op, inputs, outputs(op), direction="bidirectional")
    swapped = [a.swapaxes(0, 1) if i in (0, 5, 6) and a is not None else a for i, a in enumerate(inputs)]
    results = run_op(op, swapped, outputs(op), direction="bidirectional", layout=1)
    np.testing.assert_array_equal(results[0], expected[0].transpose(2, 0, 1, 3))
    for result, want in zip(results[1:], expected[1:]):
        np.testing.assert_array_equal(result, want.swapaxes(0, 1))


@pytest.mark.parametrize("op", GATES)
@pytest.mark.parametrize(("steps", "batch"), [(0, 3), (5, 0)])
def test_no_steps_or_no_sequences(op: str, steps: int, batch: int) -> None:
    width = GATES[op] * HIDDEN
    arrays = [np.ones(s, np.float32) for s in ((steps, batch, INPUT), (1, width, INPUT), (1, width, HIDDEN))]
    results = run_op(op, arrays, outputs(op))
    assert [r.shape for r in results] == [(steps, 1, batch, HIDDEN), *[(1, batch, HIDDEN)] * STATES[op]]
    assert not any(r.any() for r in results)


ACTIVATIONS = {
    "Relu": [0, 0.5], "Tanh": np.tanh([-2, 0.5]), "Sigmoid": sigmoid(np.array([-2, 0.5])),
    "Affine": [-2, 0.5],
    "LeakyRelu": [-0.02, 0.5], "ThresholdedRelu": [0, 0], "ScaledTanh": np.tanh([-2, 0.5]),
    "HardSigmoid": [0.1, 0.6], "Elu": [np.expm1(-2), 0.5], "Softsign": [-2 / 3, 1 / 3],
    "Softplus": np.log1p(np.exp([-2, 0.5])),
}  # fmt: skip


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name: str) -> None:
    x, identity = np.array([[[-2, 0.5]]]), np.eye(2)[None]
    (y,) = run_op("RNN", [x, identity, np.zeros((1, 2, 2))], activations=(name,))
    np.testing.assert_allclose(y.reshape(-1), ACTIVATIONS[name], rtol=1e-9)


def floats(*dims: Any) -> TensorType:
    return TensorType(DType.FLOAT32, tuple(SymbolicDim.named(d) if isinstance(d, str) else d for d in dims))


def test_inference() -> None:
    weights = [floats(2, 32, 10), floats(2, 32, 8)]
    types = infer_op("LSTM", [floats("t", "n", 10), *weights], 3, direction="bidirectional")
    assert types == ["float32[t, 2, n, 8]", "float32[2, n, 8]", "float32[2, n, 8]"]
    types = infer_op("LSTM", [floats("n", "t", 10), *weights], 3, direction="bidirectional", layout=1)
    assert types == ["float32[n, t, 2, 8]", "float32[n, 2, 8]", "float32[n, 2, 8]"]


@pytest.mark.parametrize(
    ("message", "shapes", "attributes"),
    [
        (r"W .*\[1, 8, 4\].*\[1, 6, 4\]", [(5, 3, 4), (1, 6, 4), (1, 8, 2)], {}),
        (r"R .*\[1, 12, 3\].*\[1, 8, 2\]", [(5, 3, 4), (1, 12, 4), (1, 8, 2)], {"hidden_size": 3}),
        (r"W .*\[2, 8, 4\]", [(5, 3, 4), (1, 8, 4), (1, 8, 2)], {"direction": "bidirectional"}),
        (r"X .*\[steps, batch, input\].* 2 ", [(5, 3), (1, 8, 4), (1, 8, 2)], {}),
        ("activations .*1 .*3", [(5, 3, 4), (1, 8, 4), (1, 8, 2)], {"activations": ("Tanh",)}),
        ("'Sine' .* affine, ", [(5, 3, 4), (1, 8, 4), (1, 8, 2)], {"activations": ("Sine",) * 3}),
        ("layout .* 2", [(5, 3, 4), (1, 8, 4), (1, 8, 2)], {"layout": 2}),
    ],
)  # fmt: skip
def test_shape_and_attribute_errors(message: str, shapes: list[tuple[int, ...]], attributes: dict[str, Any]) -> None:
    with pytest.raises(GraphError, match=message):
        infer_op("LSTM", [floats(*s) for s in shapes], 3, **attributes)


@pytest.mark.parametrize("wrong", [4, -1])
def test_length_out_of_range_is_an_error(wrong: int) -> None:
    x, w, r = np.zeros((3, 2, 1), np.float32), np.zeros((1, 1, 1), np.float32), np.zeros((1, 1, 1), np.float32)
    with pytest.raises(GraphError, match=rf"sequence_lens .* 0 to 3, are \[3, {wrong}\]"):
        run_op("RNN", [x, w, r, None, np.array([3, wrong], np.int32)], hidden_size=1)
