"""Backends whose memory holds immutable arrays and has no views: right ones, and some that store in wrong places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lite_core import ops
from lite_core.backend import Buffer, Device, Memory, No, Options, Partition, Yes
from lite_core.builtin import HostBackend
from lite_core.ir import Graph, Node, TensorType
from lite_core.ops.evaluate import evaluate_graph


class Cell:
    """Storage: a place that holds an immutable array."""

    def __init__(self, array: Any) -> None:
        self.array = array


def frozen(array: Any) -> Any:
    """Return an immutable copy of an array."""
    copy = np.array(array)
    copy.flags.writeable = False
    return copy


class CellMemory:
    """A memory in which each tensor is an immutable array of its own, as in frameworks of functional style."""

    space = "cells"

    def __init__(self) -> None:
        #: All storage, in the order of allocation.
        self.cells: list[Cell] = []

    def allocate(self, type: TensorType) -> Cell:
        self.cells.append(Cell(frozen(np.zeros(type.shape, type.dtype.numpy))))  # type: ignore[arg-type]
        return self.cells[-1]

    def upload(self, array: Any, data: Cell) -> None:
        data.array = frozen(array)

    def download(self, data: Cell) -> Any:
        return data.array.copy()


class ArenaMemory:
    """A memory of one immutable string of bytes: storage is a place in it, and each write makes a new string."""

    space = "arena"

    def __init__(self) -> None:
        self.content = b""

    def allocate(self, type: TensorType) -> tuple[int, TensorType]:
        place = len(self.content), type
        self.content += bytes(np.zeros(type.shape, type.dtype.numpy).nbytes)  # type: ignore[arg-type]
        return place

    def upload(self, array: Any, data: tuple[int, TensorType]) -> None:
        self.write(data[0], array.tobytes())

    def download(self, data: tuple[int, TensorType]) -> Any:
        start, type = data
        dtype, shape = type.dtype.numpy, type.shape
        count = int(np.prod(shape, dtype=np.int64))  # type: ignore[arg-type]
        return np.frombuffer(self.content, dtype, count, start).reshape(shape).copy()  # type: ignore[arg-type]

    def write(self, start: int, content: bytes) -> None:
        """Replace bytes from a place on."""
        self.content = self.content[:start] + content + self.content[start + len(content) :]


class Immutable(HostBackend):
    """A right backend with one of the memories; subclasses store results in another way."""

    name = "immutable"

    def __init__(self, memory: Any) -> None:
        self._memory = memory

    def probe(self) -> list[Device]:
        return [Device("immutable", name="immutable arrays")]

    def supports(self, node: Node, device: Device) -> Yes | No:
        return No("it does not exist") if ops.find(node.op, node.domain) is None else Yes()

    def memory(self, device: Device) -> Memory:
        return self._memory  # type: ignore[no-any-return]

    def compile(self, part: Partition, device: Device, options: Options) -> Any:
        return Executable(part.graph, self)

    def store(self, result: Any, buffer: Buffer) -> None:
        """Store the result of a run."""
        buffer.store(result)


class Executable:
    scratch_bytes = 0

    def __init__(self, graph: Graph, backend: Immutable) -> None:
        self.graph = graph
        self.backend = backend

    def run(self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None) -> None:
        arrays = [buffer.memory.download(buffer.data) for buffer in inputs]
        for buffer, result in zip(outputs, evaluate_graph(self.graph, arrays)):
            self.backend.store(result, buffer)


class NextCell(Immutable):
    """Also stores its result in the cell after that of its output."""

    def store(self, result: Any, buffer: Buffer) -> None:
        buffer.store(result)
        cells = self._memory.cells
        cells[cells.index(buffer.data) + 1].array = frozen(result)


class OneElementMore(Immutable):
    """Writes one element past the end of its output."""

    def store(self, result: Any, buffer: Buffer) -> None:
        self._memory.write(buffer.data[0], result.tobytes() + bytes(result.itemsize))


class OneElementEarlier(Immutable):
    """Writes one element before the beginning of its output."""

    def store(self, result: Any, buffer: Buffer) -> None:
        self._memory.write(buffer.data[0] - result.itemsize, bytes(result.itemsize) + result.tobytes())


class OverItsInput(Immutable):
    """Stores its result in the cell of its input as well, as a program does that reuses it."""

    def compile(self, part: Partition, device: Device, options: Options) -> Any:
        executable = Executable(part.graph, self)
        usual = executable.run

        def run(inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None) -> None:
            usual(inputs, outputs, scratch)
            inputs[0].data.array = frozen(outputs[0].memory.download(outputs[0].data))

        executable.run = run  # type: ignore[method-assign]
        return executable


class ReplacesStorage(Immutable):
    """Gives each output a new cell instead of filling the one that it was given."""

    def store(self, result: Any, buffer: Buffer) -> None:
        buffer.data = Cell(frozen(result))


class ForgetsToStore(Immutable):
    """Computes its result, and leaves the output as it was."""

    def store(self, result: Any, buffer: Buffer) -> None:
        pass
