"""A second backend for tests: the kernels of lite-cpu on separate memory, like that of a discrete graphics card.

Its tensors are :class:`Storage`, not arrays, so code that treats one as an array fails. Its results are correct and
fast, it counts copies to and from its memory, and it saves and restores compiled partitions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lite_core.backend import Buffer, Device, Executable, No, Options, Partition, SavedWeights, Stale, Unavailable, Yes
from lite_core.ir import Node, TensorType
from lite_core.memory import HostMemory
from lite_x86.backend import X86Backend
from lite_x86.detect import features_of

__all__ = ["DiscreteMemoryBackend"]

Array = np.ndarray[Any, Any]


class Storage:
    """Device memory, which cannot be used as an array."""

    __slots__ = ("content",)

    def __init__(self, content: Array) -> None:
        self.content = content


class DiscreteMemory:
    """A memory space that counts its copies."""

    space = "discrete"

    def __init__(self) -> None:
        self.uploads = self.downloads = 0

    def allocate(self, type: TensorType) -> Storage:
        return Storage(HostMemory().allocate(type))

    def upload(self, array: Array, data: Storage) -> None:
        self.uploads += 1
        np.copyto(data.content, array)

    def download(self, data: Storage) -> Array:
        self.downloads += 1
        return data.content.copy()

    def view(self, data: Storage, offset: int, type: TensorType) -> Storage:
        return Storage(HostMemory().view(data.content, offset, type))


class DiscreteMemoryBackend:
    """Runs all operators of ``x86`` except some.

    Args:
        refused: operators that it refuses.
        score: score of its device.
        flops: stated speed of its device; 0 if it states none, so that no node moves to or from it to save copies.
    """

    name = "discrete"

    def __init__(self, refused: Sequence[str] = (), score: float = 50.0, flops: float = 1e12) -> None:
        self._cpu = X86Backend()
        self._refused = frozenset(refused)
        self._score, self._flops = score, flops
        self.tensors = DiscreteMemory()
        self.compiled = self.restored = 0

    def probe(self) -> Sequence[Device] | Unavailable:
        return [self.target()]

    def target(self) -> Device:
        machine = self._cpu.machine()
        return Device(
            self.name,
            name="discrete memory",
            score=self._score,
            flops=self._flops,
            bandwidth=1e11,
            features=features_of(machine),
            level=machine.name,
        )

    def supports(self, node: Node, device: Device) -> Yes | No:
        if node.op in self._refused:
            return No(f"discrete has no {node.op}")
        return self._cpu.supports(node, device)

    def memory(self, device: Device) -> DiscreteMemory:
        return self.tensors

    def compile(self, part: Partition, device: Device, options: Options) -> DiscreteMemoryExecutable:
        self.compiled += 1
        return DiscreteMemoryExecutable(self._cpu.compile(part, device, options))

    def compatibility(self, device: Device, options: Options) -> str:
        return f"discrete 1, {self._cpu.compatibility(device, options)}"

    def restore(
        self, pieces: Sequence[memoryview], part: Partition, device: Device, options: Options
    ) -> Executable | Stale:
        restored = self._cpu.restore(pieces, part, device, options)
        if isinstance(restored, Stale):
            return restored
        self.restored += 1
        return DiscreteMemoryExecutable(restored)


class DiscreteMemoryExecutable:
    """An executable of lite-cpu that runs on storage."""

    def __init__(self, executable: Any) -> None:
        self._executable = executable
        self.scratch_bytes = executable.scratch_bytes

    def run(self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None) -> None:
        host_outputs = [_as_host(buffer) for buffer in outputs]
        self._executable.run(
            [_as_host(b) for b in inputs], host_outputs, None if scratch is None else _as_host(scratch)
        )
        for buffer, host in zip(outputs, host_outputs):
            if buffer.data is None:  # its shape was unknown before the run
                buffer.allocate(host.data.shape).content[...] = host.data

    def save(self) -> Sequence[bytes | memoryview | SavedWeights]:
        pieces: Sequence[bytes | memoryview | SavedWeights] = self._executable.save()
        return pieces

    def constants_read(self) -> Sequence[str]:
        names: Sequence[str] = self._executable.constants_read()
        return names


def _as_host(buffer: Buffer) -> Buffer:
    return Buffer(buffer.type, HostMemory(), None if buffer.data is None else buffer.data.content)
