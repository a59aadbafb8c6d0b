"""Helpers that compare one operator, on each level of this processor, with its reference in float64."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from levels import machine_params, run_on

from lite_core.builder import GraphBuilder
from lite_core.ir import Graph
from lite_core.ops.evaluate import evaluate_graph
from lite_cpu.machine import Machine

__all__ = ["MACHINES", "agree", "normal", "single_node"]

Array = np.ndarray[Any, Any]

MACHINES = pytest.mark.parametrize("machine", machine_params())


def normal(*shape: int, seed: int = 0) -> Array:
    """Return standard normal numbers, float32."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def single_node(
    op: str,
    arrays: Sequence[Array],
    attributes: dict[str, Any],
    *,
    constants: int = 0,
    outputs: int = 1,
    channels_last: bool = False,
) -> Graph:
    """Return a graph of one node.

    Args:
        op: the operator.
        arrays: its inputs.
        attributes: its attributes.
        constants: number of inputs, the last ones, that are constants.
        outputs: number of outputs.
        channels_last: the graph's first input is [batch, ..., channels], and a node transposes it.
    """
    b = GraphBuilder(op)
    values = []
    for i, array in enumerate(arrays):
        if i >= len(arrays) - constants:
            values.append(b.constant(array))
        elif i == 0 and channels_last:
            given = b.input("x0", str(array.dtype), (array.shape[0], *array.shape[2:], array.shape[1]))
            values.append(b.add("Transpose", [given], {"perm": (0, array.ndim - 1, *range(1, array.ndim - 1))}))
        else:
            values.append(b.input(f"x{i}", str(array.dtype), array.shape))
    for i, value in enumerate(b.add_node(op, values, attributes, outputs=outputs)):
        b.output(value, f"y{i}")
    return b.build()


def agree(
    machine: Machine,
    op: str,
    arrays: Sequence[Array],
    attributes: dict[str, Any] | None = None,
    *,
    constants: int = 0,
    outputs: int = 1,
    channels_last: bool = False,
    tolerance: float = 0.0,
    threads: int = 1,
) -> None:
    """Assert that results differ from the reference by at most ``tolerance`` times the largest expected number."""
    layout: dict[str, Any] = {"constants": constants, "outputs": outputs, "channels_last": channels_last}
    graph = single_node(op, arrays, attributes or {}, **layout)
    wide = [a.astype(np.float64) if a.dtype.kind == "f" else a for a in arrays]
    truth = single_node(op, wide, attributes or {}, **layout)
    expected = evaluate_graph(truth, _inputs(truth, wide, channels_last))
    inputs = {v.name: a for v, a in zip(graph.inputs, _inputs(graph, arrays, channels_last))}
    actual = run_on(machine, graph, inputs, threads=threads)
    for number, array in enumerate(expected):
        finite = np.abs(array[np.isfinite(array)], dtype=np.float64)
        np.testing.assert_allclose(
            actual[f"y{number}"].astype(np.float64),
            array.astype(np.float64),
            rtol=0,
            atol=tolerance * finite.max(initial=0.0),
            err_msg=f"{op} {attributes} of {[a.shape for a in arrays]} on {machine.name}, output {number}",
        )


def _inputs(graph: Graph, arrays: Sequence[Array], channels_last: bool) -> list[Array]:
    given = list(arrays[: len(graph.inputs)])
    if channels_last:
        given[0] = np.ascontiguousarray(np.moveaxis(given[0], 1, -1))
    return given
