"""QuantizedLSTM: every level's dot products, tiles of sequences and hidden units, and states that are not finite."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from agreement import MACHINES
from levels import run_on

from lite_core.builder import GraphBuilder
from lite_core.ir import Graph
from lite_core.ops.evaluate import evaluate_graph
from lite_cpu.machine import Machine

Array = np.ndarray[Any, Any]

# One rounding of float32 in a gate; a state that is rounded to another integer would differ by 1e-3.
TOLERANCE = 2e-6


def layer(
    *, batch: int = 1, hidden: int = 9, steps: int = 4, dtype: str = "int8", zero: int | None = None, known: bool = True
) -> tuple[Graph, dict[str, Array]]:
    """Return a graph of a layer in both directions, and its inputs."""
    random = np.random.default_rng(hidden + batch)
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    weights = random.integers(low, high, (2, 4 * hidden, hidden), endpoint=True).astype(dtype)
    inputs = {"x": random.standard_normal((steps, batch, 8 * hidden)).astype(np.float32)}
    inputs |= {name: random.uniform(-0.9, 0.9, (2, batch, hidden)).astype(np.float32) for name in ("h", "c")}
    b = GraphBuilder("layer")
    x, h, c = (b.input(name, "float32", array.shape) for name, array in inputs.items())
    scale = b.constant(random.uniform(0.5, 1, (2, 4 * hidden)).astype(np.float32) / (64 * hidden))
    bias = b.constant(random.standard_normal((2, 4 * hidden)).astype(np.float32))
    if known:
        r = b.constant(weights)
    else:
        r, inputs["r"] = b.input("r", dtype, weights.shape), weights
    points = None if zero is None else b.constant(np.full((2, 4 * hidden), zero, dtype))
    operands = [x, scale, r, bias, None, h, c, None, points]
    for i, value in enumerate(
        b.add_node("QuantizedLSTM", operands, {"direction": "bidirectional"}, outputs=3, domain="lite")
    ):
        b.output(value, f"y{i}")
    return b.build(), inputs


def agree(machine: Machine, graph: Graph, inputs: dict[str, Array], threads: int = 1) -> None:
    expected = evaluate_graph(graph, list(inputs.values()))
    found = run_on(machine, graph, inputs, threads=threads)
    for i, array in enumerate(expected):
        np.testing.assert_allclose(found[f"y{i}"], array, rtol=0, atol=TOLERANCE * np.abs(array).max(initial=0.0))


@MACHINES
@pytest.mark.parametrize(("batch", "hidden"), [(1, 5), (3, 16), (5, 37)])
def test_tiles_of_sequences_and_hidden_units(machine: Machine, batch: int, hidden: int) -> None:
    agree(machine, *layer(batch=batch, hidden=hidden), threads=2)


@MACHINES
@pytest.mark.parametrize("zero", [128, 20, None])
def test_unsigned_weights(machine: Machine, zero: int | None) -> None:
    """Differences from a zero point in the middle fit bytes, others do not."""
    agree(machine, *layer(hidden=19, dtype="uint8", zero=zero))


@MACHINES
def test_states_that_are_not_finite(machine: Machine) -> None:
    graph, inputs = layer(batch=2, hidden=6, steps=1)
    inputs["h"][0, 1, 3] = np.nan
    expected = evaluate_graph(graph, list(inputs.values()))
    found = run_on(machine, graph, inputs)
    for i, array in enumerate(expected):
        np.testing.assert_array_equal(np.isnan(found[f"y{i}"]), np.isnan(array))


@MACHINES
def test_weights_computed_by_the_model(machine: Machine) -> None:
    agree(machine, *layer(known=False))
