"""Benchmark of the graph passes on a deep network: 60 blocks of Conv, BatchNormalization and a split hard-swish.

    python benchmarks/passes.py

It prints the time of each pass over all rounds, the median of several runs.
"""

from __future__ import annotations

import statistics
from collections import defaultdict

import numpy as np

from lite_core import Graph, GraphBuilder
from lite_core.passes import optimize

BLOCKS = 60
RUNS = 7


def deep_network() -> Graph:
    """Build 480 nodes in the form in which exporters write them."""
    b = GraphBuilder("deep")
    x = b.input("x", "float32", ["n", 8, "h", "w"])
    weights = np.random.default_rng(0).standard_normal((8, 8, 3, 3)).astype(np.float32) * 0.1
    three, six, zero = (b.constant(np.float32(i)) for i in (3, 6, 0))
    for block in range(BLOCKS):
        y = b.add("Conv", [x, b.constant(weights + block)], {"pads": (1, 1, 1, 1)})
        y = b.add("BatchNormalization", [y, *(b.constant(np.full(8, block + i + 1.0, np.float32)) for i in range(4))])
        gate = b.add("Clip", [b.add("Add", [y, three]), zero, six])
        y = b.add("Div", [b.add("Mul", [y, gate]), six])
        x = b.add("Add", [x, b.add("Identity", [y])])
    b.output(x, "y")
    return b.build()


def main() -> None:
    """Measure and print."""
    graph = deep_network()
    times: dict[str, list[float]] = defaultdict(list)
    for _ in range(RUNS):
        totals: dict[str, float] = defaultdict(float)
        optimized, records = optimize(graph)
        for record in records:
            totals[record.name] += record.seconds
            totals["all passes, all rounds"] += record.seconds
        for name, seconds in totals.items():
            times[name].append(seconds)
    print(f"{len(graph.nodes)} nodes become {len(optimized.nodes)}")
    for name, seconds in sorted(times.items(), key=lambda item: -statistics.median(item[1])):
        print(f"{name:32} {statistics.median(seconds) * 1e3:8.2f} ms")


if __name__ == "__main__":
    main()
