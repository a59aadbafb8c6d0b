"""A backend made of the references, with one mutant in the place of an operator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lite_conformance.mutate.mutant import Array, Compute, NodeCall
from lite_core import ops
from lite_core.backend import Buffer, Device, Executable, Options, Partition, Unavailable
from lite_core.builtin import HostBackend
from lite_core.ir import Graph, Value
from lite_core.ops.evaluate import evaluate_node

__all__ = ["MutantBackend", "evaluate_with"]


class MutantBackend(HostBackend):
    """A backend that computes one operator by a mutant and the others by their references.

    Args:
        op: the operator's qualified name.
    """

    name = "mutant"

    def __init__(self, op: str) -> None:
        self.op = op
        #: Computes the nodes of the operator; set for each mutant.
        self.compute_node: Compute = NodeCall.run

    def probe(self) -> Sequence[Device] | Unavailable:
        return [Device("mutant", name=f"the references, with a fault in {self.op}")]

    def compile(self, part: Partition, device: Device, options: Options) -> Executable:
        return _MutantExecutable(part.graph, self.op, self.compute_node)


class _MutantExecutable:
    scratch_bytes = 0

    def __init__(self, graph: Graph, op: str, compute: Compute) -> None:
        self._graph = graph
        self._op = op
        self._compute = compute

    def run(self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None) -> None:
        results = evaluate_with(self._graph, [b.data for b in inputs], self._op, self._compute)
        for buffer, result in zip(outputs, results):
            buffer.store(result)


def evaluate_with(graph: Graph, inputs: Sequence[Any], op: str, compute: Compute) -> list[Array]:
    """Run a graph, one of its operators by a mutant."""
    known: dict[Value, Array] = {**dict(zip(graph.inputs, inputs)), **graph.constants}
    for node in graph.nodes:
        if node.qualified_op == op:
            results = compute(NodeCall.of(node, ops.get(node), known, graph.constants))
        else:
            results = evaluate_node(node, [None if v is None else known[v] for v in node.inputs], known)
        known.update((v, array) for v, array in zip(node.outputs, results) if v is not None)
    return [known[v] for v in graph.outputs]
