"""LSTM, GRU and RNN: directions, layouts, states, lengths, activations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from opencl_agreement import KINDS, agree, normal

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
OPERATORS = pytest.mark.parametrize("op", GATES)


def check(
    kind: str,
    op: str,
    *,
    steps: int = 4,
    batch: int = 3,
    hidden: int = 9,
    constants: int = 0,
    lengths: tuple[int, ...] | None = None,
    **attributes: Any,
) -> None:
    """All inputs and outputs of a layer against the reference; weights are small, so that gates are not saturated."""
    directions = 2 if attributes.get("direction") == "bidirectional" else 1
    batch_first = attributes.get("layout", 0) == 1
    rows, size = GATES[op] * hidden, 7
    state = (batch, directions, hidden) if batch_first else (directions, batch, hidden)
    shapes = [(batch, steps, size) if batch_first else (steps, batch, size)]
    shapes += [(directions, rows, size), (directions, rows, hidden), (directions, 2 * rows)]
    arrays = [normal(*shape, seed=i) * np.float32(0.3) for i, shape in enumerate(shapes)]
    arrays.append(np.array(lengths or [steps] * batch, np.int32))
    arrays += [normal(*state, seed=9 + i) for i in range(2 if op == "LSTM" else 1)]
    if op == "LSTM":
        arrays.append(normal(directions, 3 * hidden, seed=11))
    attributes = {"hidden_size": hidden, **attributes}
    agree(kind, op, arrays, attributes, constants=constants, outputs=3 if op == "LSTM" else 2, tolerance=1e-5)


@KINDS
@OPERATORS
@pytest.mark.parametrize("hidden", [1, 9, 40])
def test_sizes(kind: str, op: str, hidden: int) -> None:
    check(kind, op, hidden=hidden, direction="bidirectional")


@OPERATORS
@pytest.mark.parametrize(
    "options",
    [
        {"layout": 1, "direction": "bidirectional", "lengths": (4, 0, 2)},
        {"direction": "reverse", "clip": 0.5},
        {"steps": 0},
        {"batch": 0},
    ],
    ids=lambda options: "-".join(options),
)
def test_options(op: str, options: dict[str, Any]) -> None:
    check("CPU", op, **options)


@KINDS
def test_reset_after_the_product(kind: str) -> None:
    check(kind, "GRU", linear_before_reset=1, direction="bidirectional")


def test_directions_with_activations_of_their_own() -> None:
    check("CPU", "GRU", direction="bidirectional", activations=("Sigmoid", "Tanh", "HardSigmoid", "Relu"))


@pytest.mark.parametrize(
    "name", ["Softsign", "Softplus", "Affine", "LeakyRelu", "ThresholdedRelu", "ScaledTanh", "Elu"]
)
def test_activations(name: str) -> None:
    check("CPU", "RNN", activations=(name,), activation_alpha=(0.4,), activation_beta=(0.3,))
