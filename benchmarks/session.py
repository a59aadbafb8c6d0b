"""Benchmark of a session's overhead: calls of a model that computes nothing, and a plan for new input shapes.

    python benchmarks/session.py [--json]

The calls, with new and with bound arrays, are compared with ONNX Runtime's for one Relu, if onnxruntime is installed,
and with those of the backend x86 for one Relu, if it is: all are measured interleaved in one process, and the fastest
of many batches counts, because other work on the machine only ever adds time.
"""

from __future__ import annotations

import importlib.util
import json
import sys
import time
from collections.abc import Callable, Sequence

import numpy as np

import lite_core as lite
from lite_core import Device, Graph, GraphBuilder, Yes
from lite_core.backend import Buffer, Options, Partition
from lite_core.ir import Node
from lite_core.plugins import available_backends, plugins_with

BATCHES = 60
CALLS = 500
BLOCKS = 50
X = np.ones((1, 8), np.float32)


class Idle:
    """A backend that accepts every node and computes nothing."""

    name = "idle"
    scratch_bytes = 1 << 20

    def probe(self) -> Sequence[Device]:
        return [Device(self.name)]

    def supports(self, node: Node, device: Device) -> Yes:
        return Yes()

    def compile(self, part: Partition, device: Device, options: Options) -> Idle:
        return self

    def run(self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None) -> None:
        pass


def session_of(graph: Graph) -> lite.Session:
    return lite.load(graph, backend="idle", fallback="never", plugins=plugins_with(Idle()))


def one_node() -> Graph:
    b = GraphBuilder("one_node")
    b.output(b.add("Relu", [b.input("x", "float32", [1, 8])]), "y")
    return b.build()


def deep_network() -> Graph:
    """Build 200 nodes, with symbolic height and width."""
    b = GraphBuilder("deep")
    x = b.input("x", "float32", [1, 8, "h", "w"])
    weights = b.constant(np.zeros((8, 8, 3, 3), np.float32))
    for _ in range(BLOCKS):
        y = b.add("HardSwish", [b.add("Conv", [x, weights], {"pads": (1, 1, 1, 1)})])
        x = b.add("Add", [x, b.add("Mul", [y, b.add("GlobalAveragePool", [y])])])
    b.output(x, "y")
    return b.build()


def onnx_calls() -> dict[str, Callable[[], object]]:
    """Return calls of one Relu in ONNX Runtime."""
    import onnx
    import onnxruntime

    values = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1, 8]) for name in "xy"]
    graph = onnx.helper.make_graph([onnx.helper.make_node("Relu", ["x"], ["y"])], "one_node", values[:1], values[1:])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 13)], ir_version=8)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    binding.bind_cpu_input("x", X)
    binding.bind_ortvalue_output("y", onnxruntime.OrtValue.ortvalue_from_numpy(np.empty_like(X)))
    return {
        "onnxruntime's run of one node": lambda: session.run(None, {"x": X}),
        "onnxruntime's run of a binding": lambda: session.run_with_iobinding(binding),
    }


def calls_of(session: lite.Session, backend: str) -> dict[str, Callable[[], object]]:
    """Return calls of a session with one input ``x``."""
    binding = session.bind({"x": X})
    return {f"run of one node, {backend}": lambda: session.run({"x": X}), f"run of a binding, {backend}": binding.run}


def fastest(calls: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Return the shortest time of each call in microseconds; the calls are measured interleaved."""
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(BATCHES):
        for name, call in calls.items():
            start = time.perf_counter()
            for _ in range(CALLS):
                call()
            best[name] = min(best[name], (time.perf_counter() - start) / CALLS * 1e6)
    return best


def new_shapes() -> float:
    """Return the shortest time to plan for new shapes, in microseconds."""
    session = session_of(deep_network())
    times = []
    for width in range(32, 32 + 30):
        start = time.thread_time()
        session.prepare({"x": (1, 8, 48, width)})
        times.append(time.thread_time() - start)
    return min(times) * 1e6


def main() -> None:
    """Measure and print."""
    calls = calls_of(session_of(one_node()), "idle")
    if "x86" in available_backends():
        calls |= calls_of(lite.load(one_node(), backend="x86", threads=1, fallback="never"), "x86")
    if importlib.util.find_spec("onnxruntime") and importlib.util.find_spec("onnx"):
        calls |= onnx_calls()
    figures = fastest(calls)
    figures["a plan of 200 nodes for new shapes"] = new_shapes()
    if "--json" in sys.argv:
        print(json.dumps({name: value / 1e6 for name, value in figures.items()}, indent=2))
        return
    for name, value in figures.items():
        print(f"{name:36} {value:9.1f} us")


if __name__ == "__main__":
    main()
