"""Bit-exact comparison of single operators with the reference on the first device, for operators that move elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from opencl_device import first_device, run

from lite_core.backend import Options
from lite_core.builder import GraphBuilder
from lite_core.ir import Graph
from lite_core.ops.evaluate import evaluate_graph
from lite_opencl.device.runtime import runtime_of
from lite_opencl.lowering.compile import lower_graph

__all__ = ["agree", "drawn", "lowered", "single_node"]

Array = np.ndarray[Any, Any]


def drawn(shape: Sequence[int], dtype: str = "float32", seed: int = 0) -> Array:
    """Return random bits as an element type, which may be NaN."""
    bits = np.random.default_rng(seed).integers(0, 256, (*shape, np.dtype(dtype).itemsize), np.uint8)
    array: Array = bits.view(dtype)[..., 0]
    return array


def single_node(
    op: str, arrays: Sequence[Array], attributes: dict[str, Any] | None = None, *, constants: int = 0
) -> Graph:
    """Return a graph of one node; the last ``constants`` of its inputs are constants."""
    builder = GraphBuilder(op)
    first_constant = len(arrays) - constants
    values = [builder.input(f"x{i}", str(a.dtype), a.shape) for i, a in enumerate(arrays[:first_constant])]
    values += [builder.constant(a) for a in arrays[first_constant:]]
    builder.output(builder.add(op, values, attributes or {}), "y")
    return builder.build()


def agree(
    op: str,
    arrays: Sequence[Array],
    attributes: dict[str, Any] | None = None,
    *,
    constants: int = 0,
    tolerance: float | None = None,
) -> None:
    """Assert that the result has the same bits as the reference's, or differs by at most ``tolerance``."""
    graph = single_node(op, arrays, attributes, constants=constants)
    inputs = list(arrays[: len(graph.inputs)])
    (actual,), (expected,) = run(graph, inputs), evaluate_graph(graph, inputs)
    case = f"{op} {attributes} of {[a.shape for a in arrays]}"
    if tolerance is None:
        assert actual.tobytes() == expected.tobytes(), case
    else:
        np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance, err_msg=case)


def lowered(graph: Graph) -> list[str]:
    """Return the labels in profiles of the steps of a graph."""
    backend, device = first_device()
    runtime = runtime_of(backend._device(device), device.label)
    return [step.label for step in lower_graph(graph, Options(), runtime).steps]
