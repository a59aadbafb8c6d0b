"""A second device for sessions with two devices: the references, with tensors outside main memory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lite_conformance.cases.tensors import Array
from lite_core.backend import Buffer, Device, Executable, No, Options, Partition, Unavailable, Yes
from lite_core.ir import Node, TensorType, evaluate_shape
from lite_core.ops.evaluate import evaluate_graph

__all__ = ["SecondDevice"]


class SecondDevice:
    """A backend of the references with separate memory, so that inputs and outputs are copied."""

    name = "conformance-second"

    def probe(self) -> Sequence[Device] | Unavailable:
        return [Device(self.name, name="the references, in a separate memory", score=-1.0)]

    def supports(self, node: Node, device: Device) -> Yes | No:
        return Yes()

    def compile(self, part: Partition, device: Device, options: Options) -> Executable:
        return _Run(part)

    def memory(self, device: Device) -> _Memory:
        return _Memory()


class _Storage:
    """Storage that is not an array, so that code that uses it as an array fails."""

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
