"""The ``host`` backend: every operator by its NumPy reference. Slow, obvious, always there."""

from __future__ import annotations

import platform
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np

from lite_core import ops
from lite_core.backend import Buffer, Device, Executable, MeasuresSpeed, No, Options, Partition, Unavailable, Yes
from lite_core.builder import GraphBuilder
from lite_core.ir import Graph, Node
from lite_core.ops.evaluate import evaluate_graph

__all__ = ["HostBackend"]

_REPETITIONS = 5


class HostBackend(MeasuresSpeed):
    """Runs every operator of the opset; the last fallback and the oracle of conformance.

    ``Options.threads`` does not apply: the references leave matrix products to NumPy's BLAS, whose
    threads belong to the whole process (``OMP_NUM_THREADS``).
    """

    name = "host"

    def probe(self) -> Sequence[Device] | Unavailable:
        details = {"numpy": np.__version__}
        return [
            Device(
                "host",
                name=f"the built-in fallback: every operator in NumPy, on {platform.machine()}",
                score=0.0,
                details=details,
            )
        ]

    def measured(self, device: Device) -> Device:
        """The device with its speed: measured, in some milliseconds, the first time that somebody asks."""
        return _measured(device)

    def supports(self, node: Node, device: Device) -> Yes | No:
        if ops.find(node.op, node.domain) is None:
            return No(f"the opset has no operator {node.qualified_op}")
        return Yes()

    def compile(self, part: Partition, device: Device, options: Options) -> Executable:
        return _HostExecutable(part)


class _HostExecutable:
    scratch_bytes = 0

    def __init__(self, part: Partition) -> None:
        self._graph = part.graph

    def run(self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None) -> None:
        results = evaluate_graph(self._graph, [b.data for b in inputs])
        for buffer, result in zip(outputs, results):
            buffer.store(result)


@cache
def _measured(device: Device) -> Device:
    """Arithmetic is that of a convolution; bandwidth that of a sigmoid, which goes over its tensor more than once.

    NOTE: the convolution is too small for BLAS to split it: on a machine that has other work to do as well, its
    threads wait for each other, and the same convolution takes a hundred times as long from time to time.
    """
    elements, channels, size = 1 << 18, 32, 8
    return replace(
        device,
        flops=2 * (channels * 3 * 3) * channels * size * size / _seconds(_convolution(channels, size)),
        bandwidth=2 * 4 * elements / _seconds(_activation("Sigmoid", elements)),
        launch_seconds=_seconds(_activation("Relu", 1)),
    )


def _seconds(graph: Graph) -> float:
    """The least time of a few runs."""
    array = np.ones(graph.inputs[0].shape, np.float32)
    times = []
    for _ in range(_REPETITIONS):
        start = time.perf_counter()
        evaluate_graph(graph, [array])
        times.append(time.perf_counter() - start)
    return min(times)


def _activation(op: str, elements: int) -> Graph:
    b = GraphBuilder("activation")
    b.output(b.add(op, [b.input("x", "float32", [elements])]))
    return b.build()


def _convolution(channels: int, size: int) -> Graph:
    b = GraphBuilder("convolution")
    weights = b.constant(np.ones((channels, channels, 3, 3), np.float32))
    x = b.input("x", "float32", [1, channels, size, size])
    b.output(b.add("Conv", [x, weights], {"pads": (1, 1, 1, 1)}))
    return b.build()
