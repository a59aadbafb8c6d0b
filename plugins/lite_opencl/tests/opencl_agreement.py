"""Comparison of single operators with the reference, as compiled for a processor or for a GPU, on the first device."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from opencl_device import first_runtime, run_executable

from lite_core.backend import Options
from lite_core.builder import GraphBuilder
from lite_core.ir import Graph
from lite_core.ops.evaluate import evaluate_graph
from lite_opencl.device.runtime import DeviceRuntime
from lite_opencl.lowering.compile import compile_graph, lower_graph

__all__ = ["KINDS", "agree", "labels_of", "normal", "run_for", "runtime_of_kind", "single_node", "steps_of"]

Array = np.ndarray[Any, Any]

#: The kinds of device that kernels are chosen for; every device can run the kernels of both.
KINDS = pytest.mark.parametrize("kind", ["CPU", "GPU"])


def normal(*shape: int, seed: int = 0) -> Array:
    """Return standard normal numbers as float32."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def single_node(
    op: str, arrays: Sequence[Array], attributes: dict[str, Any], *, constants: int = 0, outputs: int = 1
) -> Graph:
    """Return a graph of one node; the last ``constants`` of its inputs are constants."""
    builder = GraphBuilder(op)
    first_constant = len(arrays) - constants
    values = [
        builder.constant(a) if i >= first_constant else builder.input(f"x{i}", str(a.dtype), a.shape)
        for i, a in enumerate(arrays)
    ]
    for i, value in enumerate(builder.add_node(op, values, attributes, outputs=outputs)):
        builder.output(value, f"y{i}")
    return builder.build()


def agree(
    kind: str,
    op: str,
    arrays: Sequence[Array],
    attributes: dict[str, Any] | None = None,
    *,
    constants: int = 0,
    outputs: int = 1,
    tolerance: float = 0.0,
) -> None:
    """Assert that results differ from the reference in float64 by at most ``tolerance`` of the largest number."""
    graph = single_node(op, arrays, attributes or {}, constants=constants, outputs=outputs)
    wide = [a.astype(np.float64) if a.dtype.kind == "f" else a for a in arrays]
    wide_graph = single_node(op, wide, attributes or {}, constants=constants, outputs=outputs)
    inputs = list(arrays[: len(graph.inputs)])
    actual = run_for(kind, graph, inputs)
    for number, expected in enumerate(evaluate_graph(wide_graph, wide[: len(graph.inputs)])):
        finite = np.abs(expected[np.isfinite(expected)], dtype=np.float64)
        assert actual[number].shape == expected.shape
        np.testing.assert_allclose(
            actual[number].astype(np.float64),
            expected.astype(np.float64),
            rtol=0,
            atol=tolerance * finite.max(initial=0.0),
            err_msg=f"{op} {attributes} of {[a.shape for a in arrays]} for a {kind}, output {number}",
        )


def run_for(kind: str, graph: Graph, inputs: Sequence[Array]) -> list[Array]:
    """Return the results of a graph that is compiled for a kind of device."""
    return run_executable(compile_graph(graph, Options(), runtime_of_kind(kind)), graph, list(inputs))


def labels_of(kind: str, graph: Graph) -> list[str]:
    """Return the labels in profiles of the kernels of a graph, for a kind of device."""
    return [step.label for step in lower_graph(graph, Options(), runtime_of_kind(kind)).steps]


def steps_of(kind: str, graph: Graph) -> list[str]:
    """Return the names of the kernels of a graph, for a kind of device."""
    return [step.kernel.name for step in lower_graph(graph, Options(), runtime_of_kind(kind)).steps]


@cache
def runtime_of_kind(kind: str) -> DeviceRuntime:
    """Return the runtime of the first device with its kind replaced."""
    runtime = copy.copy(first_runtime())
    runtime.found = replace(runtime.found, kind=kind)
    return runtime
