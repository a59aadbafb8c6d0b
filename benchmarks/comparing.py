"""Time and memory of a comparison of 1,000 nodes, as multiples of a run, without the float64 reference.

    python benchmarks/comparing.py [--a BACKEND] [--b BACKEND] [--repeats N]

Two networks of 1,000 nodes with random weights: a convolutional one of residual blocks, and a transformer. For each,
the median time of a run of both sides together, and the median time of a comparison: two runs of the side in doubt on
its own, two on other inputs in between, and one on true inputs, with the runs of the trusted side beside them; and the
peak memory of the process before and after.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import lite_core as lite
from lite_core.ir import Graph, Value
from lite_tools.comparing import RunningTruth, Side, compare

_NODES = 1000


def residual_network() -> Graph:
    """Return residual blocks of two 3x3 convolutions on 64 channels of 28 x 28."""
    random, builder = np.random.default_rng(0), lite.GraphBuilder("residual")
    x = builder.input("x", "float32", (1, 64, 28, 28))

    def convolution(value: Value) -> Value:
        weights = builder.constant(random.normal(0, 0.03, (64, 64, 3, 3)).astype(np.float32))
        bias = builder.constant(random.normal(0, 0.1, 64).astype(np.float32))
        return builder.add("Conv", [value, weights, bias], {"pads": (1, 1, 1, 1)})

    while len(builder.graph.nodes) < _NODES - 5:
        inner = builder.add("Relu", [convolution(x)])
        x = builder.add("Relu", [builder.add("Add", [x, convolution(inner)])])
    builder.output(x, "y")
    return builder.build()


def transformer() -> Graph:
    """Return encoder layers of 256 channels and four heads on 64 tokens."""
    random, builder = np.random.default_rng(0), lite.GraphBuilder("transformer")
    x = builder.input("x", "float32", (1, 64, 256))

    def linear(value: Value, rows: int, columns: int) -> Value:
        weights = builder.constant(random.normal(0, rows**-0.5, (rows, columns)).astype(np.float32))
        bias = builder.constant(random.normal(0, 0.1, columns).astype(np.float32))
        return builder.add("Add", [builder.add("MatMul", [value, weights]), bias])

    def heads(value: Value, order: tuple[int, ...]) -> Value:
        divided = builder.add("Reshape", [value, builder.ints(1, 64, 4, 64)])
        return builder.add("Transpose", [divided], {"perm": order})

    def normalised(value: Value) -> Value:
        scale = builder.constant(np.ones(256, np.float32))
        return builder.add("LayerNormalization", [value, scale])

    while len(builder.graph.nodes) < _NODES - 30:
        query, key = heads(linear(x, 256, 256), (0, 2, 1, 3)), heads(linear(x, 256, 256), (0, 2, 3, 1))
        scores = builder.add("Mul", [builder.add("MatMul", [query, key]), builder.constant(np.float32(0.125))])
        mixed = builder.add("MatMul", [builder.add("Softmax", [scores]), heads(linear(x, 256, 256), (0, 2, 1, 3))])
        joined = builder.add(
            "Reshape", [builder.add("Transpose", [mixed], {"perm": (0, 2, 1, 3)}), builder.ints(1, 64, 256)]
        )
        x = normalised(builder.add("Add", [x, linear(joined, 256, 256)]))
        x = normalised(builder.add("Add", [x, linear(builder.add("Gelu", [linear(x, 256, 1024)]), 1024, 256)]))
    builder.output(x, "y")
    return builder.build()


def main() -> int:
    """Measure both networks; return 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--a", default="x86", help="the trusted side; default: x86")
    parser.add_argument("--b", default="x86", help="the side in doubt; default: x86")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    for graph in (residual_network(), transformer()):
        _measure(graph, options.a, options.b, options.repeats)
    return 0


def _measure(graph: Graph, name_a: str, name_b: str, repeats: int) -> None:
    random = np.random.default_rng(1)
    inputs, others = [{v.name: random.normal(size=v.shape).astype(np.float32) for v in graph.inputs} for _ in range(2)]
    sessions = [lite.load(graph, name) for name in (name_a, name_b)]

    def run() -> None:
        for session in sessions:
            session.run(inputs)

    sides = [Side.of(name, session, inputs) for name, session in zip((name_a, name_b), sessions)]

    def compare_once() -> None:
        compare(RunningTruth(sides[0], inputs), sides[1], inputs, other_inputs=others, use_reference=False)

    times, before = _times(run, repeats + 1), _peak()
    comparing = _times(compare_once, repeats)
    ratio = comparing / times
    print(
        f"{graph.name}: {len(graph.nodes)} nodes; a run of {name_a} and {name_b} together {1e3 * times:.1f} ms; a "
        f"comparison {1e3 * comparing:.0f} ms, {ratio:.1f} times as long; peak memory {before:.0f} MiB before, "
        f"{_peak():.0f} MiB after"
    )


def _times(function: Callable[[], None], repeats: int) -> float:
    """Return the median time in seconds, without the first call."""
    function()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def _peak() -> float:
    """Return the peak resident memory of this process in MiB; nan where the system does not tell."""
    status = Path("/proc/self/status")
    if not status.exists():
        return float("nan")
    line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


if __name__ == "__main__":
    sys.exit(main())
