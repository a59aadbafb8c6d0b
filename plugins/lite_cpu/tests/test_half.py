"""16-bit floats: models with such tensors, and weights stored as such floats."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest
from levels import Array, backend_for, machine_params, run_on, runnable_machines

from lite_core import load
from lite_core.backend import Device, Options, Yes
from lite_core.builder import GraphBuilder
from lite_core.errors import UnsupportedOperatorError
from lite_core.ir import DType, Graph
from lite_cpu.lowering import narrow_weights
from lite_cpu.lowering.compile import lower_graph, simplified
from lite_cpu.lowering.weights import WeightCache
from lite_cpu.machine import X86_64_V3, Machine
from lite_cpu.machine_code.library import KernelLibrary

every_machine = pytest.mark.parametrize("machine", machine_params())
halves = pytest.mark.parametrize("dtype", [DType.FLOAT16, DType.BFLOAT16], ids=str)

#: Half the distance between 1 and the next number.
ROUNDING = {DType.FLOAT16: 2.0**-11, DType.BFLOAT16: 2.0**-8}


def numbers(dtype: DType, *shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(size=shape).astype(dtype.numpy)


# **** models of 16-bit floats ****


def network(dtype: DType) -> Graph:
    """Return a network of convolution, activation, pooling, product and softmax."""
    b = GraphBuilder("network")
    x = b.input("x", dtype, (2, 5, 9, 8))
    w = [b.constant(numbers(dtype, 7, 5, 3, 3, seed=1) / 5, dtype=dtype), b.constant(numbers(dtype, 7), dtype=dtype)]
    y = b.add("Relu", [b.add("Conv", [x, *w], {"pads": (1, 1, 1, 1)})])
    y = b.add("AveragePool", [y], {"kernel_shape": (3, 3), "strides": (2, 2)})
    y = b.add("MatMul", [y, b.constant(numbers(dtype, 3, 6, seed=2), dtype=dtype)])
    b.output(b.add("Softmax", [y]), "y")
    return b.build()


@every_machine
@halves
def test_network_computes_in_float32(machine: Machine, dtype: DType) -> None:
    graph, x = network(dtype), numbers(dtype, 2, 5, 9, 8, seed=3)
    if dtype is DType.FLOAT16 and not machine.half:
        with pytest.raises(UnsupportedOperatorError, match="no instruction that converts float16"):
            run_on(machine, graph, {"x": x})
        return
    expected = load(graph, backend="host").run(x=x)["y"].astype(np.float64)
    actual = run_on(machine, graph, {"x": x})["y"]
    assert actual.dtype == dtype.numpy
    tolerance = 20 * ROUNDING[dtype]
    np.testing.assert_allclose(actual.astype(np.float64), expected, rtol=tolerance, atol=tolerance)


@halves
def test_backend_supports_every_node_of_the_network(dtype: DType) -> None:
    backend = backend_for(runnable_machines()[-1])
    assert all(isinstance(backend.supports(n, Device("level")), Yes) for n in network(dtype).nodes)


def test_converted_weights_are_shared_and_freed_with_the_model() -> None:
    weights, graph = WeightCache(), network(DType.FLOAT16)
    first, second = (simplified(graph, weights, X86_64_V3, Options()) for _ in range(2))
    arrays = [{id(a) for a in g.constants.values() if a.ndim == 4} for g in (first, second)]
    assert arrays[0] == arrays[1]
    widened = [weakref.ref(a) for a in first.constants.values() if a.ndim == 4 and a.dtype == np.float32]
    del first, second, arrays
    gc.collect()
    assert widened
    assert not any(ref() is not None for ref in widened), "the float32 copies outlive the graphs that use them"


# **** weights of 16 bits ****


def product(rows: int, scale: float = 1.0) -> Graph:
    b = GraphBuilder("product")
    w = numbers(DType.FLOAT32, 300, 70, seed=4) * np.float32(scale)
    b.output(b.add("MatMul", [b.input("x", "float32", (rows, 300)), b.constant(w)]), "y")
    return b.build()


def stored(machine: Machine, graph: Graph, precision: str) -> set[str]:
    """Return the element types of the weights of all steps."""
    lowering = lower_graph(graph, Options(precision=precision), KernelLibrary(machine), WeightCache())
    return {str(step.tensors[1].dtype) for step in lowering.steps}


@pytest.fixture
def narrow_small_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(narrow_weights, "_FEWEST_BYTES", 1)


@every_machine
@halves
def test_rounded_weights_stay_within_the_bound(machine: Machine, dtype: DType, narrow_small_weights: Any) -> None:
    graph, x = product(rows=2), numbers(DType.FLOAT32, 2, 300)
    w = next(iter(graph.constants.values())).astype(np.float64)
    actual = run_on(machine, graph, {"x": x}, precision=str(dtype))["y"]
    bound = (ROUNDING[dtype] + 300 * 2.0**-24) * (np.abs(x.astype(np.float64)) @ np.abs(w))
    assert np.all(np.abs(actual - x.astype(np.float64) @ w) <= bound)


def test_weights_are_narrow_only_if_allowed_and_worthwhile(narrow_small_weights: Any) -> None:
    machine = runnable_machines()[-1]
    assert stored(machine, product(rows=1), "float32") == {"float32"}
    assert stored(machine, product(rows=1), "bfloat16") == {"bfloat16"}
    assert stored(machine, product(rows=50), "bfloat16") == {"float32"}


def test_weights_beyond_float16_stay_float32(narrow_small_weights: Any) -> None:
    machine = runnable_machines()[-1]
    assert stored(machine, product(rows=1, scale=1e6), "float16") == {"float32"}
    assert stored(machine, product(rows=1, scale=1e6), "bfloat16") == {"bfloat16"}


def test_small_weights_stay_float32() -> None:
    assert stored(runnable_machines()[-1], product(rows=1), "bfloat16") == {"float32"}
