"""Bugs of answers, memory, sessions, profiles and observed runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from planted_parts import Array, PlantedBackend, PlantedExecutable

from lite_core.backend import Buffer, Device, KernelTime, No, Yes
from lite_core.ir import Node, TensorType
from lite_core.memory import HostMemory
from lite_core.observing import Observed, Observer, observed_buffers

# **** answers ****


class ForgetsAnswers(PlantedBackend):
    """Answers No to all nodes of an operator once it has answered No to one of them in another element type."""

    def __init__(self) -> None:
        self.refused: set[str] = set()

    def supports(self, node: Node, device: Device) -> Yes | No:
        types = {v.dtype.value for v in node.inputs if v is not None}
        if node.op in self.refused or "float64" in types:
            self.refused.add(node.op)
            return No(f"no {node.op} in float64")
        return super().supports(node, device)


class TiresOfQuestions(PlantedBackend):
    """Answers No after many questions, like a backend that loads a library only so often."""

    asked = 0

    def supports(self, node: Node, device: Device) -> Yes | No:
        self.asked += 1
        return No("too many questions") if self.asked > 500 and node.op == "Add" else super().supports(node, device)


# **** memory ****


class _Storage:
    def __init__(self, content: Array) -> None:
        self.content = content


class _LazyMemory:
    """A memory that copies an uploaded array when it is first read."""

    space = "lazy"

    def allocate(self, type: TensorType) -> _Storage:
        return _Storage(np.empty([int(d) for d in type.shape or ()], type.dtype.numpy))  # type: ignore[arg-type]

    def upload(self, array: Array, data: _Storage) -> None:
        data.content = array

    def download(self, data: _Storage) -> Array:
        copy: Array = data.content.copy()
        return copy


class UploadsLate(PlantedBackend):
    tensors = _LazyMemory()


class _FarMemory(_LazyMemory):
    space = "far"

    def upload(self, array: Array, data: _Storage) -> None:
        np.copyto(data.content, array)


class KeepsStorage(PlantedBackend):
    """Keeps the storage of the inputs of the last run, in a memory of its own."""

    tensors = _FarMemory()

    class Executable(PlantedExecutable):  # type: ignore[assignment]
        def read(self, inputs: Sequence[Buffer]) -> list[Array]:
            self.last = [buffer.data for buffer in inputs]
            return [storage.content for storage in self.last]


class _WrappingMemory(_FarMemory):
    wrap_alignment = 64

    def __init__(self) -> None:
        self.wrapped: list[_Storage] = []

    def wrap(self, array: Array) -> _Storage:
        self.wrapped[:] = [*self.wrapped[-8:], _Storage(array)]
        return self.wrapped[-1]

    def synchronize(self, data: _Storage) -> None:
        pass


class KeepsWrappedArrays(PlantedBackend):
    """Keeps the arrays of the caller that it wrapped last."""

    tensors = _WrappingMemory()

    class Executable(PlantedExecutable):  # type: ignore[assignment]
        def read(self, inputs: Sequence[Buffer]) -> list[Array]:
            return [buffer.data.content for buffer in inputs]


class IgnoresOffset(PlantedBackend):
    """Has a memory in which all views begin where the larger storage does."""

    class _Memory(HostMemory):
        def view(self, data: Array, offset: int, type: TensorType) -> Array:
            return super().view(data, 0, type)

    tensors = _Memory()


# **** profiles ****


class _Profiles(PlantedExecutable):
    def run_profiled(self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None) -> Any:
        self.run(inputs, outputs, scratch)
        return [KernelTime("all", tuple(n.name for n in self.graph.nodes), 1e-6)]


class ProfilesWithoutResults(_Profiles):
    """Measures the kernels without writing the outputs."""

    def run_profiled(self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None) -> Any:
        return [KernelTime("all", (), 1e-6)]


class ProfilesNegativeTimes(_Profiles):
    def run_profiled(self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None) -> Any:
        return [time._replace(seconds=-1.0) for time in super().run_profiled(inputs, outputs, scratch)]


class ProfilesNothing(_Profiles):
    def run_profiled(self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None) -> Any:
        self.run(inputs, outputs, scratch)


# **** observed runs ****


class _Observed(PlantedExecutable):
    """Shows an observer its outputs; an observer replaces them."""

    def run_observed(
        self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None, observer: Observer
    ) -> None:
        nodes = [node.name for node in self.graph.nodes]
        observer.starts("all", nodes)
        self.run(inputs, outputs, scratch)
        observer.computed(self.shown(observed_buffers("all", nodes, self.graph.outputs, outputs)))

    def shown(self, results: Observed) -> Observed:
        return results


class ShowsNothing(_Observed):
    """Shows an observer kernels without results."""

    def shown(self, results: Observed) -> Observed:
        return results._replace(values=())


class ShowsAnotherArray(_Observed):
    """Shows an observer zeros."""

    def shown(self, results: Observed) -> Observed:
        return results._replace(read=lambda name: np.zeros_like(results.read(name)))


class IgnoresReplacements(_Observed):
    """Goes on with the results that it computed."""

    def shown(self, results: Observed) -> Observed:
        return results._replace(write=lambda name, array: None)
