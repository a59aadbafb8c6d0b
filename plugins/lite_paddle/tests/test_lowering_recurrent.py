"""Recurrent networks against Paddle, and the operators of Paddle 1.x against their formulas."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hand_made import run
from paddle_cases import Case, check, parametrize_cases

from lite_core.errors import UnsupportedOperatorError

RNG = np.random.default_rng(0)
Array = np.ndarray[Any, Any]


def array(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32)


X = array(3, 5, 4)
LENGTHS = np.array([5, 2, 3], np.int32)
OPEN = [(None, None, 4)]


def network(kind: str, **options: Any) -> Callable[[Any], Any]:
    def build(p: Any) -> Any:
        layer = getattr(p.nn, kind)(4, 6, **options)

        def function(x: Any, lengths: Any = None) -> Any:
            out, state = layer(x, None, lengths)
            return (out, *state) if isinstance(state, tuple) else (out, state)

        return layer_of(p, layer, function)

    return build


def layer_of(p: Any, layer: Any, function: Callable[..., Any]) -> Any:
    """Return a layer that owns another layer, for its parameters, and computes a function."""

    class Holder(p.nn.Layer):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.layer = layer

        def forward(self, x: Any, lengths: Any = None) -> Any:
            return function(x, lengths)

    return Holder()


def with_states(p: Any) -> Any:
    layer = p.nn.LSTM(4, 6)

    class Holder(p.nn.Layer):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.layer = layer

        def forward(self, x: Any, h: Any, c: Any) -> Any:
            out, (last_h, last_c) = self.layer(x, (h, c))
            return out, last_h, last_c

    return Holder()


# NOTE: Paddle 3.3 fails when it exports a recurrent layer as a legacy file, on its dropout state.
PIR = ("pir",)

CASES = [
    Case(f"{kind.lower()}{name}{suffix}", network(kind, **options), [X], shapes=shapes, kinds=PIR)
    for kind in ("LSTM", "GRU", "SimpleRNN")
    for name, options in (
        ("", {}),
        ("_deep", {"num_layers": 2}),
        ("_both_ways", {"direction": "bidirect"}),
        ("_deep_both_ways", {"direction": "bidirect", "num_layers": 2}),
        ("_steps_first", {"time_major": True}),
    )
    for suffix, shapes in (("", None), ("_open", OPEN))
]
CASES += [
    Case(f"{kind.lower()}_lengths", network(kind, direction="bidirect", num_layers=2), [X, LENGTHS], kinds=PIR)
    for kind in ("LSTM", "GRU", "SimpleRNN")
]
CASES += [
    Case("rnn_relu", network("SimpleRNN", activation="relu"), [X], kinds=PIR),
    Case("initial_states", with_states, [X, array(1, 3, 6), array(1, 3, 6)], kinds=PIR),
]
CASES += [
    Case(
        f"viterbi_decode_{tag}",
        lambda p, tag=tag: lambda x, moves, n: p.text.viterbi_decode(x, moves, n, tag),
        [array(3, 6, 20), array(20, 20), np.array([5, 1, 3])],
        kinds=PIR,
    )
    for tag in (True, False)
]
CASES += [
    Case(
        "gather_tree",
        lambda p: lambda ids, parents: p.nn.functional.gather_tree(ids, parents),
        [RNG.integers(0, 9, (5, 2, 4)), RNG.integers(0, 4, (5, 2, 4))],
        kinds=PIR,
    )
]


@parametrize_cases(CASES)
def test_matches_paddle(case: Case, kind: str, paddle_models: Callable[[str], Path]) -> None:
    check(case, paddle_models(kind), kind)


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


@pytest.mark.parametrize("peepholes", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
def test_lstm_of_paddle_1(peepholes: bool, reverse: bool) -> None:
    t, h = 5, 3
    x, weight, bias = array(t, 4 * h), array(h, 4 * h), array(1, 7 * h if peepholes else 4 * h)
    attrs = {"use_peepholes": peepholes, "is_reverse": reverse}
    options = {"outputs": ["Hidden"], "parameters": ["Weight", "Bias"], "version": 1_008_000}
    (out,) = run("lstm", {"Input": x, "Weight": weight, "Bias": bias}, attrs, **options)
    flat = bias.ravel()
    of_i, of_f, of_o = np.split(flat[4 * h :], 3) if peepholes else (np.zeros(h),) * 3
    hidden, cell = np.zeros(h), np.zeros(h)
    expected = np.zeros((t, h))
    for step in reversed(range(t)) if reverse else range(t):
        g, i, f, o = np.split(x[step] + flat[: 4 * h] + hidden @ weight, 4)
        i, f = sigmoid(i + of_i * cell), sigmoid(f + of_f * cell)
        cell = f * cell + i * np.tanh(g)
        hidden = sigmoid(o + of_o * cell) * np.tanh(cell)
        expected[step] = hidden
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-5)


def gru_step(x: Array, h: Array, weight: Array, origin: bool) -> Array:
    size = h.shape[-1]
    flat = weight.ravel()
    gates, candidate = flat[: 2 * size * size].reshape(size, 2 * size), flat[2 * size * size :].reshape(size, size)
    u, r = np.split(sigmoid(x[..., : 2 * size] + h @ gates), 2, axis=-1)
    c = np.tanh(x[..., 2 * size :] + (r * h) @ candidate)
    return u * h + (1 - u) * c if origin else (1 - u) * h + u * c


@pytest.mark.parametrize("origin", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
def test_gru_of_paddle_1(origin: bool, reverse: bool) -> None:
    t, h = 5, 3
    x, weight, bias, initial = array(t, 3 * h), array(h, 3 * h), array(1, 3 * h), array(1, h)
    attrs = {"is_reverse": reverse, "origin_mode": origin}
    inputs = {"Input": x, "Weight": weight, "Bias": bias, "H0": initial}
    options = {"outputs": ["Hidden"], "parameters": ["Weight", "Bias"], "version": 1_008_000}
    (out,) = run("gru", inputs, attrs, **options)
    state = initial[0]
    expected = np.zeros((t, h))
    for step in reversed(range(t)) if reverse else range(t):
        state = gru_step(x[step] + bias[0], state, weight, origin)
        expected[step] = state
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("origin", [False, True])
def test_gru_unit(origin: bool) -> None:
    b, h = 2, 3
    x, weight, bias, state = array(b, 3 * h), array(h, 3 * h), array(1, 3 * h), array(b, h)
    inputs = {"Input": x, "HiddenPrev": state, "Weight": weight, "Bias": bias}
    options = {"outputs": ["Hidden", "Gate", "ResetHiddenPrev"], "parameters": ["Weight"], "version": 1_008_000}
    hidden, gate, kept = run("gru_unit", inputs, {"origin_mode": origin}, **options)
    np.testing.assert_allclose(hidden, gru_step(x + bias, state, weight, origin), rtol=1e-4, atol=1e-5)
    assert gate.shape == (b, 3 * h)
    np.testing.assert_allclose(kept, gate[:, h : 2 * h] * state, rtol=1e-5)


def test_cudnn_lstm_with_packed_weights_is_rnn() -> None:
    t, b, i, h = 4, 2, 3, 5
    weights = [array(4 * h, i), array(4 * h, h), array(4 * h, h), array(4 * h, h), *(array(4 * h) for _ in range(4))]
    x, h0, c0 = array(t, b, i), array(2, b, h), array(2, b, h)
    attrs = {"hidden_size": h, "num_layers": 2}
    packed = np.concatenate([w.ravel() for w in weights])
    inputs = {"Input": x, "InitH": h0, "InitC": c0, "W": packed}
    found = run("cudnn_lstm", inputs, attrs, outputs=["Out", "LastH", "LastC"], parameters=["W"])
    inputs = {"Input": x, "PreState": [h0, c0], "WeightList": weights}
    expected = run("rnn", inputs, {**attrs, "mode": "LSTM"}, outputs={"Out": 1, "State": 2})
    for a, e in zip(found, expected):
        np.testing.assert_allclose(a, e, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("initial", [False, True])
@pytest.mark.parametrize(("op_type", "gates"), [("gru", 3), ("lstm", 4)])
def test_several_sequences_are_those_computed_one_by_one(
    op_type: str, gates: int, initial: bool, reverse: bool
) -> None:
    h, offsets = 3, [0, 4, 4, 5, 11]
    x, weight, state = array(11, gates * h), array(h, gates * h), array(4, h)
    attrs = {"is_reverse": reverse} if op_type == "gru" else {"is_reverse": reverse, "use_peepholes": False}
    options = {"outputs": ["Hidden"], "parameters": ["Weight"]}

    def states(numbers: slice) -> dict[str, Any]:
        slots = ("H0", "C0")[: gates - 2] if initial else ()
        return dict.fromkeys(slots, state[numbers])

    inputs = {"Input": x, "Weight": weight, **states(slice(None))}
    found, found_offsets = run(op_type, inputs, attrs, lod={"Input": [offsets]}, **options)
    parts = []
    for n, (a, b) in enumerate(pairwise(offsets)):
        if b > a:
            parts += run(op_type, {"Input": x[a:b], "Weight": weight, **states(slice(n, n + 1))}, attrs, **options)
    np.testing.assert_allclose(found, np.concatenate(parts), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(found_offsets, offsets)


@pytest.mark.parametrize(
    ("op_type", "shape", "attrs"),
    [
        ("gru", (64, 192), {}),
        ("lstm", (64, 256), {"use_peepholes": False}),
        ("gru_unit", (64, 192), {}),
    ],
)
def test_weights_of_any_size_are_parameters(op_type: str, shape: tuple[int, int], attrs: dict[str, Any]) -> None:
    inputs = {"Input": array(2, shape[1]), "Weight": array(*shape), "Bias": array(1, shape[1])}
    if op_type == "gru_unit":
        inputs["HiddenPrev"] = array(2, shape[0])
    (found,) = run(op_type, inputs, attrs, outputs=["Hidden"], parameters=["Weight", "Bias"])
    assert found.shape == (2, shape[0])


def test_packed_weights_of_any_size_are_parameters() -> None:
    h, i = 24, 40
    packed = array(4 * h * (i + h) + 8 * h)
    inputs = {"Input": array(3, 2, i), "InitH": array(1, 2, h), "InitC": array(1, 2, h), "W": packed}
    (out,) = run("cudnn_lstm", inputs, {"hidden_size": h, "num_layers": 1}, outputs=["Out"], parameters=["W"])
    assert out.shape == (3, 2, h)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("peepholes", [False, True])
def test_cell_states_of_every_step(peepholes: bool, reverse: bool) -> None:
    h, offsets = 3, [0, 4, 4, 9]
    x, weight, bias = array(9, 4 * h), array(h, 4 * h), array(1, 7 * h if peepholes else 4 * h)
    inputs = {"Input": x, "Weight": weight, "Bias": bias, "H0": array(3, h), "C0": array(3, h)}
    attrs = {"use_peepholes": peepholes, "is_reverse": reverse}
    options: dict[str, Any] = {"outputs": ["Hidden", "Cell"], "parameters": ["Weight", "Bias"]}
    hidden, cell, *_ = run("lstm", inputs, attrs, lod={"Input": [offsets]}, **options)
    flat = bias.ravel()
    of_o = flat[6 * h :] if peepholes else np.zeros(h)
    of_i, of_f = (flat[4 * h : 5 * h], flat[5 * h : 6 * h]) if peepholes else (np.zeros(h),) * 2
    for n, (a, b) in enumerate(pairwise(offsets)):
        state, old = inputs["H0"][n], inputs["C0"][n]
        for step in reversed(range(a, b)) if reverse else range(a, b):
            g, i, f, o = np.split(x[step] + flat[: 4 * h] + state @ weight, 4)
            new = sigmoid(f + of_f * old) * old + sigmoid(i + of_i * old) * np.tanh(g)
            np.testing.assert_allclose(cell[step], new, rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(hidden[step], sigmoid(o + of_o * new) * np.tanh(new), rtol=1e-4, atol=1e-5)
            state, old = hidden[step], new


def test_states_that_do_not_fit_are_refused() -> None:
    h = 3
    inputs = {"Input": array(5, 3 * h), "Weight": array(h, 3 * h), "H0": array(2, h)}
    with pytest.raises(UnsupportedOperatorError, match="initial state is for 2 sequences"):
        run("gru", inputs, outputs=["Hidden"], parameters=["Weight"])


def test_wrong_number_of_weights() -> None:
    inputs = {"Input": array(4, 2, 3), "PreState": [array(1, 2, 5)], "WeightList": [array(15, 3), array(15, 5)]}
    with pytest.raises(UnsupportedOperatorError, match="2 weights, expected 4"):
        run("rnn", inputs, {"mode": "GRU", "hidden_size": 5}, outputs={"Out": 1, "State": 1})
