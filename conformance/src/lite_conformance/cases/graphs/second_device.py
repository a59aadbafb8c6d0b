"""A second device for sessions that use two: the references, with tensors in a memory that is not main memory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lite_conformance.cases.tensors import Array
from lite_core.backend import Buffer, Device, Executable, No, Options, Partition, Unavailable, Yes
from lite_core.ir import Node, TensorType, evaluate_shape
from lite_core.ops.evaluate import evaluate_graph

__all__ = ["SecondDevice"]


class SecondDevice:
    """Runs every operator by its reference; whatever goes in and out is copied."""

    name = "conformance-second"

    def probe(self) -> Sequence[Device] | Unavailable:
        return [Device(self.name, name="the references, in a memory of their own", score=-1.0)]

    def supports(self, node: Node, device: Device) -> Yes | No:
        return Yes()

    def compile(self, part: Partition, device: Device, options: Options) -> Executable:
        return _Run(part)

    def memory(self, device: Device) -> _Memory:
        return _Memory()


class _Storage:
    """Not an array, so that whoever takes it for one fails."""

    def __init__(self, content: Array) -> None:
        self.content = content


class _Memory:
    space = "conformance-second"

    def allocate(self, type: TensorType) -> _Storage:
        return _Storage(np.empty(evaluate_shape(type.shape or (), {}), type.dtype.numpy))

    def upload(self, array: Array, data: _Storage) -> None:
        np.copyto(data.content, array)

    def download(self, data: _Storage) -> Array:
        copy: Array = data.content.copy()
        return copy


class _Run:
    scratch_bytes = 0

    def __init__(self, part: Partition) -> None:
        self._graph = part.graph

    def run(self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None) -> None:
        results = evaluate_graph(self._graph, [b.data.content for b in inputs])
        for buffer, result in zip(outputs, results):
            buffer.store(result)
