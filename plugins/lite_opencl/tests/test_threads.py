"""Concurrency: one session in many threads, sessions that compile at the same time, two devices at the same time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from opencl_device import first_device

import lite_core as lite
from lite_core.builder import GraphBuilder
from lite_core.ir import Graph
from lite_core.ops.evaluate import evaluate_graph

Array = np.ndarray[Any, Any]

THREADS = 16


def network(seed: int = 0, layers: int = 6) -> Graph:
    """Return a graph of convolutions with residual connections, followed by a dense layer and Sigmoid."""
    random = np.random.default_rng(seed)

    def weights(*shape: int) -> Array:
        return (random.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)

    builder = GraphBuilder(f"network{seed}")
    x = builder.input("x", "float32", ["n", 8, 14, 14])
    for _ in range(layers):
        y = builder.add("Conv", [x, builder.constant(weights(8, 8, 3, 3))], {"pads": (1, 1, 1, 1)})
        x = builder.add("Add", [builder.add("Relu", [y]), x])
    y = builder.add("Reshape", [x, builder.constant(np.array([0, -1]))])
    y = builder.add("Gemm", [y, builder.constant(weights(10, 8 * 14 * 14))], {"transB": 1})
    builder.output(builder.add("Sigmoid", [y]), "y")
    return builder.build()


def pictures(count: int) -> list[Array]:
    """Return inputs of three sizes, so that threads use different plans."""
    random = np.random.default_rng(1)
    return [random.standard_normal((1 + i % 3, 8, 14, 14)).astype(np.float32) for i in range(count)]


def session(graph: Graph) -> lite.Session:
    return lite.load(graph, first_device()[1].label, fallback="never")


def run_concurrently(run: Callable[[Array], Array], inputs: list[Array]) -> list[Array]:
    """Return the results of threads that start together, each with every 16th input."""
    start = threading.Barrier(THREADS)

    def run_share(first: int) -> list[Array]:
        start.wait()
        return [run(x) for x in inputs[first::THREADS]]

    with ThreadPoolExecutor(THREADS) as pool:
        parts = list(pool.map(run_share, range(THREADS)))
    return [parts[i % THREADS][i // THREADS] for i in range(len(inputs))]


def check(results: list[Array], graph: Graph, inputs: list[Array]) -> None:
    for result, x in zip(results, inputs):
        np.testing.assert_allclose(result, evaluate_graph(graph, [x])[0], rtol=1e-4, atol=1e-5)


def test_concurrent_runs_on_one_session() -> None:
    graph, inputs = network(), pictures(4 * THREADS)
    one = session(graph)
    check(run_concurrently(lambda x: one.run({"x": x})["y"], inputs), graph, inputs)


def test_concurrent_profiled_runs() -> None:
    graph, inputs = network(), pictures(2 * THREADS)
    one = session(graph)

    def profiled(x: Array) -> Array:
        profile = lite.RunProfile()
        result = one.run({"x": x}, profile=profile)["y"]
        assert profile.kernels
        assert all(kernel.seconds >= 0 for kernel in profile.kernels)
        return result

    check(run_concurrently(profiled, inputs), graph, inputs)


def test_concurrent_loading_of_one_model() -> None:
    graph, inputs = network(2), pictures(THREADS)
    check(run_concurrently(lambda x: session(graph).run({"x": x})["y"], inputs), graph, inputs)


def test_concurrent_runs_on_two_sessions() -> None:
    graphs = [network(3), network(4, layers=3)]
    sessions = [session(graph) for graph in graphs]
    inputs = pictures(2 * THREADS)
    turns = {id(x): i % 2 for i, x in enumerate(inputs)}
    results = run_concurrently(lambda x: sessions[turns[id(x)]].run({"x": x})["y"], inputs)
    for turn in (0, 1):
        check(results[turn::2], graphs[turn], inputs[turn::2])


@pytest.mark.full("opencl")
def test_concurrent_runs_on_two_devices_with_copies() -> None:
    """PoCL presents the processor as two devices by an environment variable."""
    if "Portable Computing Language" not in first_device()[1].details["platform"]:
        pytest.skip("only PoCL can present two devices")
    script = Path(__file__).with_name("two_devices.py")
    environment = {**os.environ, "POCL_DEVICES": "pthread basic"}
    environment.pop("LITE_OPENCL_DEVICE", None)
    done = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["worst"] < 1e-5
    assert found["devices"][:2] == [["opencl"], ["opencl:1"]]
    assert set(found["devices"][2]) == {"opencl", "opencl:1"}
    assert ["opencl:1", "opencl"] in found["copies"]
