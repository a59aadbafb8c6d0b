"""The analysis shared by the shape variants of a partition does not change their programs."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from levels import LevelBackend, machine_params, runnable_machines

from lite_core import load
from lite_core.backend import Device, Options, Partition, PartitionIdentity
from lite_core.builder import GraphBuilder
from lite_core.ir import DType, Graph, Value
from lite_core.ops.infer import infer_graph
from lite_core.plugins.backends import plugins_with
from lite_cpu.lowering import partition_analysis as analysis_module
from lite_cpu.lowering.compile import lower_graph
from lite_cpu.lowering.partition_analysis import PartitionAnalysis
from lite_cpu.lowering.weights import WeightCache
from lite_cpu.machine import X86_64_V3
from lite_cpu.machine_code.library import KernelLibrary

Array = np.ndarray[Any, Any]

_LIBRARY = KernelLibrary(X86_64_V3)
_SIZES = (5, 12, 31)


def numbers(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def images(b: GraphBuilder) -> Value:
    return b.input("x", "float32", [1, 8, "h", "h"])


def convolutions() -> Graph:
    """Return a graph of all kinds of convolutions with epilogues."""
    b = GraphBuilder("convolutions")
    x = b.add("Conv", [images(b), b.constant(numbers(16, 8, 3, 3)), b.constant(numbers(16))], {"pads": (1, 1, 1, 1)})
    x = b.add("Clip", [x, b.constant(np.float32(0)), b.constant(np.float32(6))])
    x = b.add("Conv", [x, b.constant(numbers(16, 1, 3, 3))], {"group": 16, "auto_pad": "SAME_UPPER", "strides": (2, 2)})
    x = b.add("HardSwish", [x])
    y = b.add("Conv", [x, b.constant(numbers(16, 16, 1, 1))])
    z = b.add("Conv", [x, b.constant(numbers(16, 8, 1, 1))], {"group": 2})
    b.output(b.add("Add", [b.add("Sigmoid", [y]), z]), "y")
    return b.build()


def products() -> Graph:
    b = GraphBuilder("products")
    rows = b.add("Reshape", [images(b), b.constant(np.array([1, 8, -1]))])
    rows = b.add("Transpose", [rows], {"perm": (0, 2, 1)})
    x = b.add("MatMul", [rows, b.constant(numbers(8, 24))])
    x = b.add("Add", [x, b.constant(numbers(24))])
    b.output(b.add("Mul", [x, b.add("Sigmoid", [x])]), "y")
    return b.build()


def clipped_by_size() -> Graph:
    """Return a Clip whose upper bound is known before the run and depends on the size."""
    b = GraphBuilder("clipped")
    x = images(b)
    height = b.add("Cast", [b.add("Gather", [b.add("Shape", [x]), b.constant(np.int64(2))])], {"to": DType.FLOAT32})
    b.output(b.add("Clip", [b.add("Neg", [x]), b.constant(np.float32(-9)), height]), "y")
    return b.build()


def enlarged() -> Graph:
    """Return a transposed convolution, which uses a part of its weights for each phase of its stride."""
    b = GraphBuilder("enlarged")
    y = b.add("ConvTranspose", [images(b), b.constant(numbers(8, 6, 3, 3))], {"strides": (2, 2)})
    b.output(b.add("Relu", [y]), "y")
    return b.build()


def halves() -> Graph:
    """Return a float16 convolution, which is rewritten before it is lowered."""
    b = GraphBuilder("halves")
    x = b.input("x", "float16", [1, 8, "h", "h"])
    b.output(b.add("Conv", [x, b.constant(numbers(4, 8, 1, 1).astype(np.float16))]), "y")
    return b.build()


GRAPHS = {made.__name__: made for made in (convolutions, products, clipped_by_size, enlarged, halves)}
graphs = pytest.mark.parametrize("make", GRAPHS.values(), ids=GRAPHS)


def of_size(graph: Graph, size: int) -> Graph:
    copy = graph.copy()
    infer_graph(copy, {v.name: v.type.with_shape((1, 8, size, size)) for v in copy.inputs})
    return copy


def described(graph: Graph, weights: WeightCache, analysis: PartitionAnalysis | None) -> list[tuple[Any, ...]]:
    """Return everything that describes a graph's steps, except addresses."""
    lowering = lower_graph(graph, Options(), _LIBRARY, weights, analysis=analysis)
    return [
        (s.kernel, s.params, s.tasks, s.grain, s.flops, s.label, s.nodes, s.scratch_bytes, s.overwrites, s.bytes)
        for s in lowering.steps
    ]


@graphs
def test_shared_analysis_does_not_change_the_steps_of_any_size(make: Callable[[], Graph]) -> None:
    graph, weights, analysis = make(), WeightCache(), PartitionAnalysis()
    for size in (*_SIZES, _SIZES[0]):
        typed = of_size(graph, size)
        assert described(typed, weights, analysis) == described(typed, weights, None)


@graphs
@pytest.mark.parametrize("machine", machine_params())
def test_session_computes_every_size_like_a_new_session(machine: Any, make: Callable[[], Graph]) -> None:
    graph, plugins = make(), plugins_with(LevelBackend(machine))
    shared = load(graph, backend="level", plugins=plugins, threads=2)
    for size in _SIZES:
        x = numbers(1, 8, size, size).astype(graph.inputs[0].dtype.numpy)
        alone = load(graph, backend="level", plugins=plugins, threads=2)
        np.testing.assert_array_equal(shared.run({"x": x})["y"], alone.run({"x": x})["y"])
        reference = load(graph, backend="host").run({"x": x})["y"]
        tolerance = 1e-2 if x.dtype == np.float16 else 1e-4
        np.testing.assert_allclose(shared.run({"x": x})["y"], reference, rtol=tolerance, atol=tolerance)


def test_nodes_are_analysed_for_the_first_size_only(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, weights, analysis = convolutions(), WeightCache(), PartitionAnalysis()
    first = described(of_size(graph, 8), weights, analysis)
    assert first
    monkeypatch.setattr(analysis_module, "find_lowering", lambda node: pytest.fail(f"{node} was analysed again"))
    assert len(described(of_size(graph, 9), weights, analysis)) == len(first)


def test_chains_with_size_dependent_constants_are_not_cached() -> None:
    analysis = PartitionAnalysis()
    described(of_size(clipped_by_size(), 4), WeightCache(), analysis)
    assert not analysis.cache.chains


def test_analysis_is_freed_with_the_partition_identity() -> None:
    backend, identity, graph = LevelBackend(runnable_machines()[-1]), PartitionIdentity(), of_size(convolutions(), 8)
    executable = backend.compile(Partition("all", graph, identity), Device("level"), Options(threads=1))
    analyses = backend._share()._analyses
    kept = weakref.ref(analyses[identity])
    del identity
    gc.collect()
    assert kept() is None
    assert not analyses
    del executable
