"""LSTM, GRU and RNN: tiles of sequences and hidden units, and options that the conformance suite leaves out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from agreement import MACHINES
from graph_agreement import SeededGraph, agree_graph
from levels import backend_for, run_on

from lite_core import load
from lite_core.errors import ExecutionError
from lite_core.ir import Value
from lite_core.plugins.backends import plugins_with
from lite_cpu.machine import X86_64_V3, Machine

Array = np.ndarray[Any, Any]

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
OPERATORS = pytest.mark.parametrize("op", GATES)
TOLERANCE = 1e-5


def layer(
    g: SeededGraph,
    op: str,
    *,
    steps: int = 4,
    batch: int = 3,
    size: int = 7,
    hidden: int = 9,
    constant: bool = True,
    bias: bool = True,
    initial: bool = True,
    lengths: tuple[int, ...] | Value | None = None,
    peepholes: bool = False,
    **attributes: Any,
) -> tuple[Value, ...]:
    """Add a layer with random inputs and return its outputs; the inputs are small, so that gates do not saturate."""
    directions = 2 if attributes.get("direction") == "bidirectional" else 1
    batch_first = attributes.get("layout", 0) == 1
    rows = GATES[op] * hidden
    state = (batch, directions, hidden) if batch_first else (directions, batch, hidden)

    def weight(*shape: int) -> Value:
        return g.tensor(constant, *shape)

    x = g.add("Mul", g.input(*((batch, steps, size) if batch_first else (steps, batch, size))), g.number(0.3))
    inputs: list[Value | None] = [x, weight(directions, rows, size), weight(directions, rows, hidden)]
    inputs.append(weight(directions, 2 * rows) if bias else None)
    inputs.append(g.b.constant(np.array(lengths, np.int32)) if isinstance(lengths, tuple) else lengths)
    inputs.append(g.input(*state) if initial else None)
    if op == "LSTM":
        inputs.append(g.input(*state) if initial else None)
        inputs.append(weight(directions, 3 * hidden) if peepholes else None)
    while inputs[-1] is None:
        inputs.pop()
    outputs = 3 if op == "LSTM" else 2
    return tuple(g.b.add_node(op, inputs, {"hidden_size": hidden, **attributes}, outputs=outputs))


@MACHINES
@OPERATORS
@pytest.mark.parametrize("constant", [True, False], ids=["constant", "run-time"])
@pytest.mark.parametrize(("batch", "hidden"), [(1, 5), (3, 16), (5, 37)])
def test_tiles_of_sequences_and_hidden_units(
    machine: Machine, op: str, constant: bool, batch: int, hidden: int
) -> None:
    def build(g: SeededGraph) -> tuple[Value, ...]:
        return layer(g, op, batch=batch, hidden=hidden, constant=constant, direction="bidirectional")

    agree_graph(machine, build, tolerance=TOLERANCE, threads=2)


@MACHINES
@OPERATORS
@pytest.mark.parametrize(
    "options",
    [
        {"lengths": (4, 0, 2), "direction": "bidirectional"},
        {"clip": 0.5},
        {"steps": 0},
    ],
    ids=["lengths", "clip", "steps"],
)
def test_options(machine: Machine, op: str, options: dict[str, Any]) -> None:
    agree_graph(machine, lambda g: layer(g, op, **options), tolerance=TOLERANCE)


@MACHINES
@OPERATORS
def test_lengths_out_of_range_are_errors(machine: Machine, op: str) -> None:
    g = SeededGraph("float32")
    graph = g.built(*layer(g, op, lengths=g.b.input("lengths", "int32", (3,)), direction="bidirectional"))
    session = load(graph, backend="level", plugins=plugins_with(backend_for(machine)), fallback="never")

    def run(*lengths: int) -> Array:
        return session.run({**g.inputs, "lengths": np.array(lengths, np.int32)})["y0"]

    before = run(4, 0, 2)
    for wrong in (5, -1, 2**31 - 1, -(2**31)):
        with pytest.raises(ExecutionError, match=rf"'{op.lower()}' .*length {wrong} is out of range, .* 0 to 4"):
            run(4, wrong, 2)
    np.testing.assert_array_equal(run(4, 0, 2), before)


@MACHINES
def test_constant_lengths_out_of_range_are_errors(machine: Machine) -> None:
    g = SeededGraph("float32")
    graph = g.built(*layer(g, "GRU", lengths=(4, 5, 2)))
    with pytest.raises(ExecutionError, match="'gru' .*length 5 is out of range, it must be from 0 to 4"):
        run_on(machine, graph, g.inputs)


@MACHINES
def test_peepholes_computed_by_the_model(machine: Machine) -> None:
    def build(g: SeededGraph) -> tuple[Value, ...]:
        return layer(g, "LSTM", constant=False, peepholes=True, input_forget=1, direction="bidirectional")

    agree_graph(machine, build, tolerance=TOLERANCE)


@MACHINES
@pytest.mark.parametrize("batch", [1, 3])
def test_reset_after_the_product(machine: Machine, batch: int) -> None:
    def build(g: SeededGraph) -> tuple[Value, ...]:
        return layer(g, "GRU", batch=batch, hidden=20, linear_before_reset=1, direction="bidirectional")

    agree_graph(machine, build, tolerance=TOLERANCE)


def test_only_some_outputs() -> None:
    agree_graph(X86_64_V3, lambda g: layer(g, "LSTM")[1:2], tolerance=TOLERANCE)
