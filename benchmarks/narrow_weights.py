"""Products with weights of 4 and 8 bits (MatMulNBits), beside ONNX Runtime and, if it is installed, OpenVINO.

    python benchmarks/narrow_weights.py [--shapes 4096x4096,...] [--rows 1,32] [--threads 1,2] [--bits 4]
                                        [--blocks 32,128] [--zeros no,yes] [--seconds 1]

Each case is an ONNX model. For a single row it has as many products of one input as take 96 MB of weights, so that they
come from memory; more rows are measured with one product. The engines run it in turns in one process; medians count.
ONNX Runtime runs it twice: with ``accuracy_level`` 0, where it computes in float32 as Lite does, and with 4, where it
rounds the left operand to 8 bits. GB/s are the bytes of weights, scales and zero points by the time of a run.
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import lite_core as lite
from lite_cpu.machine_code.library import KernelLibrary
from lite_cpu.measuring.bandwidth import cold_memory, measure_bandwidth
from lite_x86.backend import X86Backend

SHAPES = "4096x4096,4096x11008,2048x2048,768x3072"
COLD_BYTES = 96 << 20


@dataclass(frozen=True)
class Case:
    """A product ``[rows, depth] x [depth, columns]``."""

    depth: int
    columns: int
    rows: int
    bits: int
    block: int
    zeros: bool

    @property
    def blocks(self) -> int:
        return -(-self.depth // self.block)

    @property
    def bytes(self) -> int:
        points = self.blocks * self.bits // 8 if self.zeros else 0
        return self.columns * (self.depth * self.bits // 8 + self.blocks * 4 + points)

    @property
    def copies(self) -> int:
        return max(1, round(COLD_BYTES / self.bytes)) if self.rows == 1 else 1

    def model(self, level: int) -> bytes:
        """Return the ONNX model with an ``accuracy_level``."""
        random, tensors, nodes, outputs = np.random.default_rng(0), [], [], []
        for copy in range(self.copies):
            shape = (self.columns, self.blocks, self.block * self.bits // 8)
            arrays = {"B": random.integers(0, 256, shape, dtype=np.uint8)}
            arrays["s"] = random.uniform(0.01, 0.03, shape[:2]).astype(np.float32)
            if self.zeros:
                size = -(-self.blocks * self.bits // 8)
                arrays["z"] = random.integers(0, 256, (self.columns, size), dtype=np.uint8)
            tensors += [numpy_helper.from_array(array, f"{name}{copy}") for name, array in arrays.items()]
            nodes.append(
                helper.make_node(
                    "MatMulNBits",
                    ["x", *(f"{name}{copy}" for name in arrays)],
                    [f"y{copy}"],
                    domain="com.microsoft",
                    K=self.depth,
                    N=self.columns,
                    bits=self.bits,
                    block_size=self.block,
                    accuracy_level=level,
                )
            )
            outputs.append(helper.make_tensor_value_info(f"y{copy}", TensorProto.FLOAT, ["rows", self.columns]))
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", self.depth])
        domains = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
        graph = helper.make_graph(nodes, "product", [x], outputs, tensors)
        content: bytes = helper.make_model(graph, opset_imports=domains, ir_version=10).SerializeToString()
        return content


def onnxruntime_run(model: bytes, threads: int) -> Callable[[dict[str, Any]], Any]:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    # Engines run in turns: a thread that spins would take time from the next one.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return lambda inputs: session.run(None, inputs)[0]


def openvino_run(path: Path, threads: int) -> Callable[[dict[str, Any]], Any]:
    import openvino

    settings = {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}
    request = openvino.compile_model(str(path), "CPU", settings).create_infer_request()
    return lambda inputs: request.infer(inputs)[0]


def engines(case: Case, threads: int, folder: Path) -> dict[str, Callable[[dict[str, Any]], Any]]:
    """Return a function for each engine that runs the case and returns its first output."""
    path = folder / "model.onnx"
    path.write_bytes(case.model(0))
    session = lite.load(path, backend="x86", threads=threads, fallback="never")
    found = {"Lite": lambda inputs: session.run(inputs)["y0"]}
    for level in (0, 4):
        found[f"ONNX Runtime, level {level}"] = onnxruntime_run(case.model(level), threads)
    if importlib.util.find_spec("openvino"):
        found["OpenVINO"] = openvino_run(path, threads)
    return found


def measure(case: Case, threads: int, seconds: float) -> tuple[dict[str, float], float]:
    """Return the median seconds of a run of each engine, and the largest difference between Lite and level 0."""
    x = np.random.default_rng(1).standard_normal((case.rows, case.depth)).astype(np.float32)
    with tempfile.TemporaryDirectory() as folder:
        runs = engines(case, threads, Path(folder))
        results = {name: run({"x": x}) for name, run in runs.items()}
        exact = results["ONNX Runtime, level 0"]
        error = float(np.abs(results["Lite"] - exact).max() / np.abs(exact).max())
        times: dict[str, list[float]] = {name: [] for name in runs}
        end = time.perf_counter() + seconds
        while time.perf_counter() < end or len(times["Lite"]) < 3:
            for name, run in runs.items():
                start = time.perf_counter()
                run({"x": x})
                times[name].append(time.perf_counter() - start)
    return {name: statistics.median(found) for name, found in times.items()}, error


def numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapes", default=SHAPES)
    parser.add_argument("--rows", type=numbers, default=[1, 32])
    parser.add_argument("--threads", type=numbers, default=[1, 2])
    parser.add_argument("--bits", type=numbers, default=[4])
    parser.add_argument("--blocks", type=numbers, default=[32, 128])
    parser.add_argument("--zeros", default="no,yes")
    parser.add_argument("--seconds", type=float, default=1.0)
    given = parser.parse_args(arguments)
    machine = X86Backend().machine()
    bandwidth = measure_bandwidth(KernelLibrary(machine), cold_memory({}))
    print(f"{machine.name}; one core reads {bandwidth / 1e9:.1f} GB/s from memory")
    print("| shape | rows | bits | block | zero points | threads | engine | ms | GB/s | times Lite | error |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    shapes = [tuple(map(int, shape.split("x"))) for shape in given.shapes.split(",")]
    settings = product(given.threads, given.rows, given.bits, given.blocks, given.zeros.split(","), shapes)
    for threads, rows, bits, block, zeros, (depth, columns) in settings:
        case = Case(depth, columns, rows, bits, block, zeros == "yes")
        found, error = measure(case, threads, given.seconds)
        for name, seconds in found.items():
            speed = case.bytes * case.copies / seconds / 1e9
            words = [
                f"{depth}x{columns}",
                rows,
                bits,
                block,
                zeros,
                threads,
                name,
                f"{1e3 * seconds / case.copies:.3f}",
            ]
            words += [f"{speed:.1f}", f"{seconds / found['Lite']:.2f}", f"{error:.0e}" if name == "Lite" else ""]
            print("| " + " | ".join(map(str, words)) + " |", flush=True)


if __name__ == "__main__":
    main()
