"""The ``host`` backend: every operator by its NumPy reference. Slow, obvious, always there."""

from __future__ import annotations

import platform
from collections.abc import Sequence

import numpy as np

from lite_core import ops
from lite_core.backend import Buffer, Device, Executable, No, Options, Partition, Unavailable, Yes
from lite_core.ir import Node
from lite_core.ops.evaluate import evaluate_graph

__all__ = ["HostBackend"]


class HostBackend:
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
