"""Properties beyond the conformance suite: fusion, shared constants, views."""

from __future__ import annotations

import gc
from dataclasses import replace

import numpy as np
import pytest
from opencl_device import first_device, run

import lite_core as lite
from lite_compiler.fusion import count_uses, group_nodes
from lite_core.backend import No, Options
from lite_core.builder import GraphBuilder
from lite_core.ir import DType, Graph, Node
from lite_core.ops.evaluate import evaluate_graph
from lite_opencl import scalar_ops
from lite_opencl.device.runtime import runtime_of
from lite_opencl.lowering.compile import lower_graph
from lite_opencl.lowering.context import Lowering
from lite_opencl.lowering.convolution import convolution
from lite_opencl.lowering.half import unsupported_precision
from lite_opencl.lowering.registry import OPERATORS, takes_epilogue

RANDOM = np.random.default_rng(0)


def normal(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(np.float32)


def residual_block() -> tuple[Graph, list[np.ndarray]]:
    """Return a convolution, an activation with a number, a residual and a factor for each channel, and inputs."""
    builder = GraphBuilder("block")
    x = builder.input("x", "float32", (2, 4, 9, 7))
    y = builder.add("Conv", [x, builder.constant(normal(4, 4, 3, 3))], {"pads": (1, 1, 1, 1)})
    y = builder.add("Clip", [y, builder.constant(np.float32(0)), builder.constant(np.float32(6))])
    y = builder.add("Add", [y, x])
    builder.output(builder.add("Mul", [y, builder.constant(normal(4, 1, 1))]), "y")
    return builder.build(), [normal(2, 4, 9, 7)]


def lowered(graph: Graph) -> list[str]:
    backend, device = first_device()
    runtime = runtime_of(backend._device(device), device.label)
    return [step.label for step in lower_graph(graph, Options(), runtime).steps]


def test_element_wise_tail_is_fused_into_convolution() -> None:
    graph, inputs = residual_block()
    assert lowered(graph) == ["convolution_phases", "convolution_gemm"]
    np.testing.assert_allclose(run(graph, inputs)[0], evaluate_graph(graph, inputs)[0], rtol=1e-5, atol=1e-5)


def test_reshape_runs_no_kernel() -> None:
    builder = GraphBuilder("views")
    x = builder.input("x", "float32", (2, 3, 4))
    y = builder.add("Reshape", [x, builder.constant(np.array([6, 4]))])
    builder.output(builder.add("Relu", [y]), "y")
    graph = builder.build()
    assert lowered(graph) == ["elementwise"]


def test_weights_are_uploaded_once_and_freed_with_their_sessions() -> None:
    backend, device = first_device()
    pool = runtime_of(backend._device(device), device.label).constants
    graph, _ = residual_block()
    gc.collect()
    before = len(pool._entries)
    one = lite.load(graph, "opencl")
    one.prepare({"x": (2, 4, 9, 7)})
    count = len(pool._entries)
    other = lite.load(graph, "opencl")
    other.prepare({"x": (2, 4, 9, 7)})
    assert before < count == len(pool._entries)
    del one, other, graph
    gc.collect()
    assert len(pool._entries) == before


@pytest.mark.parametrize("family", OPERATORS.families)
def test_family_registers_listed_operators(family: str) -> None:
    """The registry compares both when the module is imported, and raises an error if they differ."""
    OPERATORS.import_family(family)


def test_unlisted_operators_are_element_wise() -> None:
    listed = {op for operators in OPERATORS.families.values() for op in operators}
    assert OPERATORS.registered_operators() - listed == set(scalar_ops.OPERATORS)


def test_unregistered_operator_is_refused() -> None:
    backend, device = first_device()
    for op in ("NonZero", "lite.MatrixNms"):
        domain, _, name = op.rpartition(".")
        answer = backend.supports(Node(name, [], [], domain=domain), device)
        assert isinstance(answer, No)
        assert op in answer.reason


def test_intermediate_tensors_are_float16_if_session_and_device_allow_it() -> None:
    backend, device = first_device()
    runtime = runtime_of(backend._device(device), device.label)
    builder = GraphBuilder("halves")
    x = builder.input("x", "float32", (1, 1, 4, 4))
    w = builder.constant(np.ones((1, 1, 1, 1), np.float32))
    builder.output(builder.add("Conv", [builder.add("Conv", [x, w]), w]), "y")
    graph = builder.build()
    for extensions, precision, inside in [
        ({"cl_khr_fp16"}, "float16", DType.FLOAT16),
        ({"cl_khr_fp16"}, "float32", DType.FLOAT32),
        (set(), "float16", DType.FLOAT32),
    ]:
        found = replace(runtime.found, extensions=frozenset(extensions))
        lowering = Lowering(found, graph, Options(precision=precision), runtime.constants)
        for group in group_nodes(graph, count_uses(graph), set(), takes_epilogue):
            lowering.lower(group, convolution)
        assert [step.tensors[0].dtype for step in lowering.steps] == [inside, DType.FLOAT32]
        is_unsupported = precision != "float32" and inside is DType.FLOAT32
        assert bool(unsupported_precision(Options(precision=precision), found)) == is_unsupported  # shown in profiles


def test_float16_chain_agrees_with_the_reference() -> None:
    x = normal(2, 3, 8).astype(np.float16)
    builder = GraphBuilder("halves")
    y = builder.add("Mul", [builder.input("x", "float16", x.shape), builder.constant(np.float16(3))])
    builder.output(builder.add("Tanh", [y]), "y")
    graph = builder.build()
    np.testing.assert_allclose(run(graph, [x])[0], evaluate_graph(graph, [x])[0], rtol=2e-3)
