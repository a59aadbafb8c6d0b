"""Backends that use memory wrongly, and backends that end or block their process."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
from wrong_executables import Array, WrongBackend, WrongExecutable, right

from lite_core.backend import Buffer, Device, Executable, Options, Partition
from lite_core.builtin import HostBackend

__all__ = ["BACKENDS"]


def writes_past_the_end(executable: WrongExecutable, inputs: Sequence[Buffer], outputs: Sequence[Buffer]) -> None:
    """Write zeros past the end, like a vector store without a mask for the tail."""
    right(executable, inputs, outputs)
    data = outputs[0].data
    if data.size % 4:
        ctypes.memset(data.ctypes.data + data.nbytes, 0, (4 - data.size % 4) * data.itemsize)


def reads_past_the_end(executable: WrongExecutable, inputs: Sequence[Buffer], outputs: Sequence[Buffer]) -> None:
    """Read past the end, like a vector load without a mask for the tail; the value is not used."""
    for buffer in inputs[:1]:
        ctypes.string_at(buffer.data.ctypes.data + buffer.data.nbytes, 16)
    right(executable, inputs, outputs)


def returns_a_view(executable: WrongExecutable, inputs: Sequence[Buffer], outputs: Sequence[Buffer]) -> None:
    """Return a view of memory that the next run overwrites."""
    result = executable.results(inputs)[0]
    kept = executable.__dict__.setdefault("kept", np.empty(result.shape, result.dtype))
    kept[...] = result
    outputs[0].data = kept[...]


def modifies_its_input(executable: WrongExecutable, inputs: Sequence[Buffer], outputs: Sequence[Buffer]) -> None:
    """Overwrite the first input with the result."""
    right(executable, inputs, outputs)
    if inputs and inputs[0].data.nbytes == outputs[0].data.nbytes:
        ctypes.memmove(inputs[0].data.ctypes.data, outputs[0].data.ctypes.data, outputs[0].data.nbytes)


_leaked: list[Array] = []


def leaks(executable: WrongExecutable, inputs: Sequence[Buffer], outputs: Sequence[Buffer]) -> None:
    """Keep a temporary array of every run."""
    _leaked.extend(buffer.data.copy() for buffer in inputs[:1])
    right(executable, inputs, outputs)


def not_thread_safe(executable: WrongExecutable, inputs: Sequence[Buffer], outputs: Sequence[Buffer]) -> None:
    """Share one scratch array for each output between all threads."""
    arrays = executable.__dict__.setdefault("shared", {})
    for number, (buffer, result) in enumerate(zip(outputs, executable.results(inputs))):
        shared = arrays.setdefault(number, np.empty(result.shape, result.dtype))
        shared[...] = result
        for _ in range(10_000):  # long enough for the interpreter to switch threads
            pass
        buffer.store(shared.copy())


def hangs(executable: WrongExecutable, inputs: Sequence[Buffer], outputs: Sequence[Buffer]) -> None:
    """Hang on empty tensors."""
    if inputs and inputs[0].data.size == 0:
        threading.Event().wait()
    right(executable, inputs, outputs)


def segfaults(executable: WrongExecutable, inputs: Sequence[Buffer], outputs: Sequence[Buffer]) -> None:
    """Read address 0 for empty tensors."""
    if inputs and inputs[0].data.size == 0:
        ctypes.string_at(0)
    right(executable, inputs, outputs)


def exits(executable: WrongExecutable, inputs: Sequence[Buffer], outputs: Sequence[Buffer]) -> None:
    """Exit the process, as some libraries do on errors."""
    if executable.graph.nodes[0].op == "MatMul":
        os._exit(7)
    right(executable, inputs, outputs)


def raises(executable: WrongExecutable, inputs: Sequence[Buffer], outputs: Sequence[Buffer]) -> None:
    """Raise an IndexError on scalars."""
    if inputs and inputs[0].data.ndim == 0:
        raise IndexError("tuple index out of range")
    right(executable, inputs, outputs)


class KeepsExecutables(WrongBackend):
    """A backend with a cache without a limit."""

    _cache: dict[int, Any] = {}  # noqa: RUF012 - the intentional error

    def compile(self, part: Partition, device: Device, options: Options) -> Executable:
        self._cache[len(self._cache)] = [a.copy() for a in part.graph.constants.values()], np.ones((256, 256))
        return WrongExecutable(part, right)


class ReadsPastConstants(HostBackend):
    """Reads past the end of constants, like a vector load without a mask for the tail; the value is not used."""

    name = "reads_past_constants"

    def probe(self) -> list[Device]:
        return [Device(self.name, name="wrong on purpose")]

    def compile(self, part: Partition, device: Device, options: Options) -> Executable:
        for array in part.graph.constants.values():
            ctypes.string_at(array.ctypes.data + array.nbytes, 16)
        return WrongExecutable(part, right)


class DiesInProbe(WrongBackend):
    """Crashes the process in ``probe``, like a faulty driver."""

    def probe(self) -> list[Device]:
        ctypes.string_at(0)
        return []


#: The backends by name.
BACKENDS: dict[str, HostBackend] = {
    compute.__name__: WrongBackend(compute.__name__, compute)
    for compute in (
        writes_past_the_end,
        reads_past_the_end,
        returns_a_view,
        modifies_its_input,
        leaks,
        not_thread_safe,
        hangs,
        segfaults,
        exits,
        raises,
    )
}
BACKENDS["reads_past_constants"] = ReadsPastConstants()
BACKENDS["keeps_executables"] = KeepsExecutables("keeps_executables", right)
BACKENDS["dies_in_probe"] = DiesInProbe("dies_in_probe", right)
