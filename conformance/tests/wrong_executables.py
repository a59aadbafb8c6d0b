"""The executables and backends that intentionally wrong backends are made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lite_core.backend import Buffer, Device, Executable, No, Options, Partition, Yes
from lite_core.builtin import HostBackend
from lite_core.ir import Node
from lite_core.ops.evaluate import evaluate_graph

__all__ = ["OPERATORS", "Array", "Compute", "WrongBackend", "WrongExecutable", "right"]

Array = np.ndarray[Any, Any]
Compute = Callable[["WrongExecutable", Sequence[Buffer], Sequence[Buffer]], None]

OPERATORS = ("Add", "Relu", "Softmax", "MatMul")


class WrongExecutable:
    """An executable whose results a function computes from those of the references."""

    scratch_bytes = 0

    def __init__(self, part: Partition, compute: Compute) -> None:
        self.graph = part.graph
        self._compute = compute

    def results(self, inputs: Sequence[Buffer]) -> list[Array]:
        return evaluate_graph(self.graph, [b.data for b in inputs])

    def run(self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None) -> None:
        self._compute(self, inputs, outputs)


class WrongBackend(HostBackend):
    """A backend with a few operators, computed by a function with one error."""

    def __init__(self, name: str, compute: Compute) -> None:
        self.name = name
        self.compute = compute

    def probe(self) -> list[Device]:
        return [Device(self.name, name="wrong on purpose")]

    def supports(self, node: Node, device: Device) -> Yes | No:
        return Yes() if node.op in OPERATORS and not node.domain else No(f"{self.name} has no {node.qualified_op}")

    def compile(self, part: Partition, device: Device, options: Options) -> Executable:
        return WrongExecutable(part, self.compute)


def right(executable: WrongExecutable, inputs: Sequence[Buffer], outputs: Sequence[Buffer]) -> None:
    """Compute correct results."""
    for buffer, result in zip(outputs, executable.results(inputs)):
        buffer.store(result)
