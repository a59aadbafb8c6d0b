"""Weights stored as int8 and float16 are computed with the kernels, and in the memory, of float32 weights."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest
from levels import Array, LevelBackend, machine_params, run_on, runnable_machines

from lite_core import load
from lite_core.backend import Device, Options, Partition, Yes
from lite_core.builder import GraphBuilder
from lite_core.ir import DType, Graph, Value
from lite_core.ops.evaluate import evaluate_node
from lite_core.plugins.backends import plugins_with
from lite_cpu.lowering.weights import WeightCache
from lite_tools.quantization import quantize_weights

pytestmark = pytest.mark.skipif(not runnable_machines(), reason="this is not an x86-64 processor")

schemes = pytest.mark.parametrize("scheme", ["int8", "float16"])


class _Network:
    """A graph under construction with weights of the magnitudes of trained ones."""

    def __init__(self, name: str) -> None:
        self.builder = GraphBuilder(name)
        self.random = np.random.default_rng(len(name))

    def weights(self, *shape: int, depth: int) -> Value:
        return self.builder.constant((self.random.standard_normal(shape) / np.sqrt(depth)).astype(np.float32))

    def add(self, op: str, inputs: list[Value | None], **attributes: Any) -> Value:
        return self.builder.add(op, inputs, attributes)


def convolutions() -> Graph:
    """Return dense, depthwise, pointwise and transposed convolutions."""
    n = _Network("convolutions")
    x = n.builder.input("x", "float32", [1, 16, 20, 20])
    y = n.add("Relu", [n.add("Conv", [x, n.weights(128, 16, 3, 3, depth=144)], pads=(1, 1, 1, 1))])
    y = n.add("Relu", [n.add("Conv", [y, n.weights(128, 1, 3, 3, depth=9)], group=128, strides=(2, 2))])
    y = n.add("Conv", [y, n.weights(32, 128, 1, 1, depth=128), n.weights(32, depth=1)])
    n.builder.output(n.add("ConvTranspose", [y, n.weights(32, 24, 2, 2, depth=32)], strides=(2, 2)), "y")
    return n.builder.build()


def products() -> Graph:
    """Return a batched MatMul, and a Gemm with and without transposed weights."""
    n = _Network("products")
    x = n.builder.input("x", "float32", [2, 5, 64])
    y = n.add("Add", [n.add("MatMul", [x, n.weights(64, 96, depth=64)]), n.weights(96, depth=1)])
    y = n.add("ReduceMean", [n.add("Gelu", [y]), n.builder.constant(np.array([1], np.int64))], keepdims=0)
    y = n.add("Gemm", [y, n.weights(80, 96, depth=96), n.weights(80, depth=1)], transB=1)
    n.builder.output(n.add("Softmax", [n.add("Gemm", [y, n.weights(80, 50, depth=80)], alpha=0.5)], axis=-1), "y")
    return n.builder.build()


def sequences() -> Graph:
    """Return an embedding table, an LSTM and a GRU."""
    n = _Network("sequences")
    x = n.add("Gather", [n.weights(200, 32, depth=1), n.builder.input("x", "int64", [7, 2])])
    for op, gates in (("LSTM", 4), ("GRU", 3)):
        w, r = n.weights(2, gates * 24, x.shape[-1], depth=32), n.weights(2, gates * 24, 24, depth=24)
        y = n.add(op, [x, w, r], hidden_size=24, direction="bidirectional")
        x = n.add("Reshape", [n.add("Transpose", [y], perm=(0, 2, 1, 3)), n.builder.ints(7, 2, 48)])
    n.builder.output(x, "y")
    return n.builder.build()


NETWORKS = {build.__name__: build for build in (convolutions, products, sequences)}
networks = pytest.mark.parametrize("network", NETWORKS)


def example(graph: Graph) -> dict[str, Array]:
    (x,) = graph.inputs
    random = np.random.default_rng(5)
    if x.dtype.is_integer:
        return {"x": random.integers(0, 200, x.shape)}
    return {"x": random.standard_normal(x.shape).astype(np.float32)}


def widened(graph: Graph) -> Graph:
    """Return the graph with nodes of constants replaced by their results."""
    graph = graph.copy()
    kept = []
    for node in graph.nodes:
        arrays = [graph.constants.get(v) for v in node.inputs if v is not None]
        if all(a is not None for a in arrays) and node.outputs[0] is not None:
            graph.constants[node.outputs[0]] = evaluate_node(node, arrays)[0]
        else:
            kept.append(node)
    graph.nodes = kept
    return graph


@schemes
@networks
@pytest.mark.parametrize("machine", machine_params())
def test_results_equal_those_of_widened_weights(machine: Any, network: str, scheme: str) -> None:
    if scheme == "float16" and not machine.half:
        pytest.skip("this level has no instruction that converts float16, and leaves the Cast to the host")
    graph = quantize_weights(NETWORKS[network](), scheme).graph
    inputs = example(graph)
    result = run_on(machine, graph, inputs)["y"]
    np.testing.assert_array_equal(result, run_on(machine, widened(graph), inputs)["y"])
    expected = load(graph, backend="host").run(inputs)["y"]
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4)


@schemes
@networks
def test_every_node_is_supported_without_additional_kernels(network: str, scheme: str) -> None:
    plain = NETWORKS[network]()
    graph = quantize_weights(plain, scheme).graph
    backend = LevelBackend(runnable_machines()[-1])
    assert all(isinstance(backend.supports(n, Device("level")), Yes) for n in graph.nodes)

    def labels(graph: Graph) -> list[str]:
        session = load(graph, backend="level", plugins=plugins_with(backend), threads=1, fallback="never")
        session.run(example(graph), profile=True)
        assert session.last_profile is not None
        assert len(session.last_profile.partitions) == 1
        return [kernel.kernel for kernel in session.last_profile.kernels]

    stored, floats = labels(graph), labels(plain)
    # The gathered rows of the table are widened in the run, which is one additional kernel.
    more = 1 if network == "sequences" else 0
    assert len(stored) <= len(floats) + more


@schemes
@networks
def test_float16_precision_takes_stored_weights(network: str, scheme: str) -> None:
    graph = quantize_weights(NETWORKS[network](), scheme).graph
    inputs = example(graph)
    result = run_on(runnable_machines()[-1], graph, inputs, precision="float16")["y"]
    np.testing.assert_allclose(result, load(graph, backend="host").run(inputs)["y"], rtol=1e-2, atol=1e-2)


# **** memory ****


@schemes
def test_packed_weights_are_shared_and_float32_copies_freed(scheme: str) -> None:
    graph = quantize_weights(products(), scheme).graph
    backend = LevelBackend(runnable_machines()[-1])
    first = backend.compile(Partition("all", graph), Device("level"), Options(threads=1))
    cache = backend._share().weights
    gc.collect()
    assert not cache._derived, "float32 copies are kept besides the panels"
    packed = {id(made) for _, _, made in cache._made.items()}
    second = backend.compile(Partition("all", graph), Device("level"), Options(threads=1))
    assert {id(made) for _, _, made in cache._made.items()} == packed, "panels were packed again"
    del first, second


def test_array_derived_twice_is_cached_as_long_as_its_source() -> None:
    cache, source, made = WeightCache(), np.arange(4, dtype=np.int8), []

    def make(array: Array) -> Array:
        made.append(array)
        return array.astype(np.float32)

    for times in (1, 2, 2):
        assert cache.derived("float32", source, make).dtype == np.float32
        gc.collect()
        assert len(made) == times
    kept = weakref.ref(cache.derived("float32", source, make))
    made.clear()
    del source
    gc.collect()
    assert kept() is None


def test_packed_derived_array_is_found_by_its_source() -> None:
    cache, source = WeightCache(), np.arange(4, dtype=np.int8)

    def packed(how: str) -> Array:
        wide = cache.derived(how, source, lambda array: array.astype(np.float32))
        return cache.get("panels", [wide], lambda: wide * 2)

    first = packed("once")
    gc.collect()
    assert packed("once") is first
    assert packed("otherwise") is not first


def test_views_of_a_source_are_not_cached() -> None:
    cache, source = WeightCache(), np.arange(4, dtype=np.float32)
    gone = weakref.ref(source)
    for _ in range(3):
        assert cache.derived("reshape", source, lambda array: array.reshape(2, 2)).shape == (2, 2)
    del source
    gc.collect()
    assert gone() is None


def test_equal_integers_with_different_scales_are_different_weights() -> None:
    b = GraphBuilder("two scales")
    x = b.input("x", "float32", [3, 40])
    stored = b.constant(np.random.default_rng(0).integers(-127, 128, (40, 40)).astype(np.int8))
    for scale in (0.5, 2.0):
        weight = b.add("DequantizeLinear", [stored, b.constant(np.float32(scale))])
        b.output(b.add("MatMul", [x, weight]), f"y{scale}")
    graph = b.build()
    inputs = {"x": np.ones((3, 40), np.float32)}
    result = run_on(runnable_machines()[-1], graph, inputs)
    np.testing.assert_allclose(result["y2.0"], 4 * result["y0.5"])
    assert DType.of(result["y2.0"]) is DType.FLOAT32
