"""The backend ``faulty``: partitions of ``x86``, cut at the node with the fault."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np

from faulty_backend.faults import FAULTS, Fault
from lite_core.backend import Backend, Buffer, Device, Executable, No, Options, Partition, Unavailable, Yes
from lite_core.ir import DType, Node, TensorType, Value
from lite_core.memory import HostMemory
from lite_core.observing import Observable, Observer, observed_buffers
from lite_core.schedule.partition import cut
from lite_x86.backend import X86Backend

__all__ = ["FaultyBackend"]

Array = np.ndarray[Any, Any]

_HOST = HostMemory()


class FaultyBackend(Backend):
    """Runs what ``x86`` runs, with its kernels, and computes one node wrongly.

    Args:
        fault: the fault, a key of :data:`~faulty_backend.FAULTS`; empty for none.
        node: name of the node with the fault.
        fused: compile the nodes before and after it together; otherwise each node by itself.
        seed: start of the random numbers that a race takes.
    """

    name = "faulty"

    def __init__(self, fault: str = "", node: str = "", fused: bool = True, seed: int = 0) -> None:
        if fault and fault not in FAULTS:
            raise ValueError(f"there is no fault {fault!r}, only {', '.join(FAULTS)} and pass")
        self._x86 = X86Backend()
        self._fault, self._node, self._fused = fault, node, fused
        self._random = Random(seed)

    def probe(self) -> Sequence[Device] | Unavailable:
        found = self._x86.probe()
        return found if isinstance(found, Unavailable) else [Device(self.name, name="x86 with a fault", score=1.0)]

    def supports(self, node: Node, device: Device) -> Yes | No:
        return self._x86.supports(node, device)

    def compile(self, part: Partition, device: Device, options: Options) -> Executable:
        pieces: list[_Piece] = []
        for nodes in self._grouped(part.graph.nodes):
            graph = cut(part.graph, part.name, nodes)
            is_faulty = bool(self._fault) and nodes[0].name == self._node
            fault = FAULTS[self._fault](self._random) if is_faulty else None
            executable = self._x86.compile(Partition(part.name, graph), device, options)
            pieces.append(
                _Piece(graph.inputs, graph.outputs, nodes, graph.constants, executable, fault, options.threads)
            )
        return _FaultyExecutable(part, pieces)

    def _grouped(self, nodes: Sequence[Node]) -> list[list[Node]]:
        """Return the nodes in groups that are compiled together; the one with the fault is alone."""
        groups: list[list[Node]] = []
        for node in nodes:
            is_alone = not self._fused or node.name == self._node
            if is_alone or not groups or groups[-1][-1].name == self._node:
                groups.append([])
            groups[-1].append(node)
        return groups


class _Piece:
    """Consecutive nodes of a partition, compiled by ``x86``."""

    def __init__(
        self,
        inputs: Sequence[Value],
        outputs: Sequence[Value],
        nodes: Sequence[Node],
        constants: dict[Value, Array],
        executable: Executable,
        fault: Fault | None,
        threads: int,
    ) -> None:
        self.inputs, self.outputs, self.nodes = inputs, outputs, nodes
        self._constants, self._executable = constants, executable
        self._fault, self._threads = fault, threads

    def run(self, buffers: dict[Value, Buffer], observer: Observer | None) -> None:
        """Compute the outputs into their buffers."""
        inputs, outputs = [buffers[v] for v in self.inputs], [buffers[v] for v in self.outputs]
        size = self._executable.scratch_bytes
        scratch_type = TensorType(DType.UINT8, (size,))
        scratch = Buffer(scratch_type, _HOST, _HOST.allocate(scratch_type)) if size else None
        executable, names = self._executable, [node.name for node in self.nodes]
        if observer is not None and self._fault is None and isinstance(executable, Observable):
            executable.run_observed(inputs, outputs, scratch, observer)
            return
        if observer is not None:
            observer.starts("faulty", names)
        executable.run(inputs, outputs, scratch)
        if self._fault is not None:
            (node,) = self.nodes
            arrays = [None if v is None else self._constants.get(v, buffers.get(v)) for v in node.inputs]
            given = [a.data if isinstance(a, Buffer) else a for a in arrays]
            self._fault(node, given, [buffer.data for buffer in outputs], self._threads)
        if observer is not None:
            observer.computed(observed_buffers("faulty", names, self.outputs, outputs))


class _FaultyExecutable(Observable):
    """Runs pieces one after another."""

    scratch_bytes = 0

    def __init__(self, part: Partition, pieces: Sequence[_Piece]) -> None:
        self._graph, self._pieces = part.graph, pieces

    def run(self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None) -> None:
        self._run(inputs, outputs, None)

    def run_observed(
        self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None, observer: Observer
    ) -> None:
        self._run(inputs, outputs, observer)

    def _run(self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], observer: Observer | None) -> None:
        buffers = dict(zip((*self._graph.inputs, *self._graph.outputs), (*inputs, *outputs)))
        for piece in self._pieces:
            for value in piece.outputs:
                if value not in buffers:
                    data = _HOST.allocate(value.type) if value.type.is_static else None
                    buffers[value] = Buffer(value.type, _HOST, data)
            piece.run(buffers, observer)
