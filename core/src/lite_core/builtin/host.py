"""The ``host`` backend: runs every operator by its NumPy reference. Slow, simple, always available."""

from __future__ import annotations

import platform
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from lite_core import ops
from lite_core.backend import Buffer, Device, Executable, MeasuresSpeed, No, Options, Partition, Unavailable, Yes
from lite_core.builder import GraphBuilder
from lite_core.deadline import check_time
from lite_core.ir import Array, Node
from lite_core.observing import Observable, Observer, observed_arrays
from lite_core.ops.evaluate import evaluate_graph

__all__ = ["HostBackend"]

_REPETITIONS = 5


class HostBackend(MeasuresSpeed):
    """Backend that runs every operator of the opset; the last fallback and the oracle of conformance.

    ``Options.threads`` has no effect: matrix products run on NumPy's BLAS, whose number of threads is set for the whole
    process (``OMP_NUM_THREADS``).
    """

    name = "host"

    def probe(self) -> Sequence[Device] | Unavailable:
        name = f"the built-in fallback: every operator in NumPy, on {platform.machine()}"
        return [Device("host", name=name, score=0.0, details={"numpy": np.__version__})]

    def measured(self, device: Device) -> Device:
        """Return the device with its speed, measured once per process in a few milliseconds."""
        return _measured(device)

    def supports(self, node: Node, device: Device) -> Yes | No:
        is_known = ops.find(node.op, node.domain) is not None
        return Yes() if is_known else No(str(ops.why_missing(node.op, node.domain)))

    def compile(self, part: Partition, device: Device, options: Options) -> Executable:
        return _HostExecutable(part)


class _HostExecutable(Observable):
    scratch_bytes = 0

    def __init__(self, part: Partition) -> None:
        self._graph = part.graph

    def run(self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None) -> None:
        self._run(inputs, outputs, observe=lambda node, _: check_time(node.describe))

    def run_observed(
        self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None, observer: Observer
    ) -> None:
        def computed(node: Node, results: list[Array]) -> None:
            check_time(node.describe)
            arrays = {v: array for v, array in zip(node.outputs, results) if v is not None}
            observer.computed(observed_arrays("host", [node.name], arrays, list(arrays)))
            results[:] = [array if v is None else arrays[v] for v, array in zip(node.outputs, results)]

        self._run(inputs, outputs, observe=computed, starts=lambda node: observer.starts("host", [node.name]))

    def _run(self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], **callbacks: Any) -> None:
        results = evaluate_graph(self._graph, [b.data for b in inputs], **callbacks)
        for buffer, result in zip(outputs, results):
            buffer.store(result)


@cache
def _measured(device: Device) -> Device:
    """Measure arithmetic with a convolution, and bandwidth with a Sigmoid, which passes over its tensor several times.

    NOTE: the convolution is small enough that BLAS runs it on one thread. On a busy machine, BLAS threads wait for each
    other, and the same convolution occasionally takes a hundred times as long.
    """
    elements, channels, size = 1 << 18, 32, 8
    weights = np.ones((channels, channels, 3, 3), np.float32)
    convolution = _seconds("Conv", [1, channels, size, size], weights, pads=(1, 1, 1, 1))
    return replace(
        device,
        flops=2 * (channels * 3 * 3) * channels * size * size / convolution,
        bandwidth=2 * 4 * elements / _seconds("Sigmoid", [elements]),
        launch_seconds=_seconds("Relu", [1]),
    )


def _seconds(op: str, shape: Sequence[int], *constants: Array, **attributes: Any) -> float:
    """Return the shortest time of a few runs of an operator; its inputs are an array of a shape, then constants."""
    b = GraphBuilder(op)
    b.output(b.add(op, [b.input("x", "float32", shape), *map(b.constant, constants)], attributes))
    graph, array = b.build(), np.ones(shape, np.float32)
    times = []
    for _ in range(_REPETITIONS):
        start = time.perf_counter()
        evaluate_graph(graph, [array])
        times.append(time.perf_counter() - start)
    return min(times)
