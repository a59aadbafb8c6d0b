"""Backends with one intentional error each; used on a command line as ``wrong_backends.py:backend_NAME``."""

from __future__ import annotations

import ctypes
import itertools
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from lite_core.backend import Buffer, Device, Executable, KernelTime, Memory, No, Options, Partition, Stale, Yes
from lite_core.builtin import HostBackend
from lite_core.errors import InputError
from lite_core.ir import Node, PanelLayout, SavedWeights
from lite_core.memory import HostMemory
from lite_core.ops.evaluate import evaluate_graph

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


def off_by_one_row(executable: WrongExecutable, inputs: Sequence[Buffer], outputs: Sequence[Buffer]) -> None:
    """Return the second to last row as the last one."""
    for buffer, result in zip(outputs, executable.results(inputs)):
        wrong = result.copy()
        if wrong.ndim and wrong.shape[0] > 1:
            wrong[-1] = wrong[-2]
        buffer.store(wrong)


def ignores_axis(executable: WrongExecutable, inputs: Sequence[Buffer], outputs: Sequence[Buffer]) -> None:
    """Compute Softmax along the last axis, ignoring the attribute."""
    (node,) = executable.graph.nodes
    if node.op == "Softmax":
        node = Node("Softmax", node.inputs, node.outputs, {"axis": -1}, name=node.name)
        graph = executable.graph.copy()
        graph.nodes[0].attributes["axis"] = -1
        outputs[0].store(evaluate_graph(graph, [b.data for b in inputs])[0])
    else:
        right(executable, inputs, outputs)


def writes_past_the_end(executable: WrongExecutable, inputs: Sequence[Buffer], outputs: Sequence[Buffer]) -> None:
    """Write zeros past the end, like a vector store without a mask for the tail."""
    right(executable, inputs, outputs)
    data = outputs[0].data
    if data.size % 4:
        ctypes.memset(data.ctypes.data + data.nbytes, 0, (4 - data.size % 4) * data.itemsize)


def reads_past_the_end(executable: WrongExecutable, inputs: Sequence[Buffer], outputs: Sequence[Buffer]) -> None:
    """Read past the end, like a vector load without a mask for the tail; the value is not used."""
    data = inputs[0].data
    ctypes.string_at(data.ctypes.data + data.nbytes, 16)
    right(executable, inputs, outputs)


def leaves_the_tail(executable: WrongExecutable, inputs: Sequence[Buffer], outputs: Sequence[Buffer]) -> None:
    """Leave the elements after the last full vector unwritten."""
    for buffer, result in zip(outputs, executable.results(inputs)):
        flat = buffer.data.reshape(-1)
        whole = flat.size - flat.size % 4
        flat[:whole] = result.reshape(-1)[:whole]


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
    _leaked.append(inputs[0].data.copy())
    right(executable, inputs, outputs)


def not_thread_safe(executable: WrongExecutable, inputs: Sequence[Buffer], outputs: Sequence[Buffer]) -> None:
    """Share one scratch array between all threads."""
    result = executable.results(inputs)[0]
    shared = executable.__dict__.setdefault("shared", np.empty(result.shape, result.dtype))
    shared[...] = result
    for _ in range(10_000):  # long enough for the interpreter to switch threads
        pass
    outputs[0].store(shared.copy())


def hangs(executable: WrongExecutable, inputs: Sequence[Buffer], outputs: Sequence[Buffer]) -> None:
    """Hang on empty tensors."""
    if inputs[0].data.size == 0:
        threading.Event().wait()
    right(executable, inputs, outputs)


def segfaults(executable: WrongExecutable, inputs: Sequence[Buffer], outputs: Sequence[Buffer]) -> None:
    """Read address 0 for empty tensors."""
    if inputs[0].data.size == 0:
        ctypes.string_at(0)
    right(executable, inputs, outputs)


def exits(executable: WrongExecutable, inputs: Sequence[Buffer], outputs: Sequence[Buffer]) -> None:
    """Exit the process, as some libraries do on errors."""
    if executable.graph.nodes[0].op == "MatMul":
        os._exit(7)
    right(executable, inputs, outputs)


_count = itertools.count()


def not_deterministic(executable: WrongExecutable, inputs: Sequence[Buffer], outputs: Sequence[Buffer]) -> None:
    """Round differently in every fiftieth run."""
    result = executable.results(inputs)[0]
    if next(_count) % 50 == 49 and result.dtype == np.float32:
        result = np.nextafter(result, np.float32(np.inf))
    outputs[0].store(result)


def half_precision(executable: WrongExecutable, inputs: Sequence[Buffer], outputs: Sequence[Buffer]) -> None:
    """Round results to float16."""
    result = executable.results(inputs)[0]
    with np.errstate(all="ignore"):
        outputs[0].store(result.astype(np.float16).astype(result.dtype) if result.dtype.kind == "f" else result)


def loses_nan(executable: WrongExecutable, inputs: Sequence[Buffer], outputs: Sequence[Buffer]) -> None:
    """Replace NaN with 0, like a maximum computed by a comparison."""
    result = executable.results(inputs)[0]
    outputs[0].store(np.where(np.isnan(result), 0, result).astype(result.dtype) if result.dtype.kind == "f" else result)


def raises(executable: WrongExecutable, inputs: Sequence[Buffer], outputs: Sequence[Buffer]) -> None:
    """Raise an IndexError on scalars."""
    if inputs[0].data.ndim == 0:
        raise IndexError("tuple index out of range")
    right(executable, inputs, outputs)


_ERRORS = (
    right,
    off_by_one_row,
    ignores_axis,
    writes_past_the_end,
    reads_past_the_end,
    leaves_the_tail,
    returns_a_view,
    modifies_its_input,
    leaks,
    not_thread_safe,
    hangs,
    segfaults,
    exits,
    not_deterministic,
    half_precision,
    loses_nan,
    raises,
)

#: All backends by name; they are also attributes ``backend_NAME`` of the module.
BACKENDS = {compute.__name__: WrongBackend(compute.__name__, compute) for compute in _ERRORS}


class NoWithoutAReason(WrongBackend):
    """Refuses nodes without a reason."""

    def supports(self, node: Node, device: Device) -> Yes | No:
        return Yes() if node.op in OPERATORS else No("")


class RaisesInSupports(WrongBackend):
    """Uses the rank of an operand, which may be unknown."""

    def supports(self, node: Node, device: Device) -> Yes | No:
        if node.op in OPERATORS and len(node.inputs[0].type.shape) > 4:  # type: ignore[union-attr, arg-type]
            return No("more than four dimensions")
        return super().supports(node, device)


class KeepsExecutables(WrongBackend):
    """A backend with a cache without a limit."""

    _cache: dict[int, Any] = {}  # noqa: RUF012 - the intentional error

    def compile(self, part: Partition, device: Device, options: Options) -> Executable:
        self._cache[len(self._cache)] = [a.copy() for a in part.graph.constants.values()], np.ones((256, 256))
        return WrongExecutable(part, right)


class Scaled(WrongExecutable):
    """An executable that saves two numbers, and computes with the numbers that it was restored from."""

    def __init__(self, part: Partition, factor: float = 1.0, offset: float = 0.0) -> None:
        super().__init__(part, scale)
        self.factor = factor
        self.offset = offset

    def save(self) -> list[bytes]:
        return [np.float64(self.factor).tobytes(), np.float64(self.offset).tobytes()]


def scale(executable: Any, inputs: Sequence[Buffer], outputs: Sequence[Buffer]) -> None:
    for buffer, array in zip(outputs, executable.results(inputs)):
        buffer.store((array * executable.factor + executable.offset).astype(array.dtype))


class RestoresAnything(WrongBackend):
    """Restores from any pieces."""

    def compile(self, part: Partition, device: Device, options: Options) -> Executable:
        return Scaled(part)

    def restore(
        self, pieces: Sequence[memoryview], part: Partition, device: Device, options: Options
    ) -> Executable | Stale:
        return Scaled(part, *(float(np.frombuffer(piece)[0]) for piece in pieces))


class MixesUpPieces(RestoresAnything):
    """Checks only the number and the sizes of the pieces that it restores from."""

    def restore(
        self, pieces: Sequence[memoryview], part: Partition, device: Device, options: Options
    ) -> Executable | Stale:
        if [piece.nbytes for piece in pieces] != [8, 8]:
            return Stale("these are not two numbers")
        return super().restore(pieces, part, device, options)


class SavesOnePiece(RestoresAnything):
    """Saves bytes instead of a sequence of pieces."""

    def compile(self, part: Partition, device: Device, options: Options) -> Executable:
        executable: Any = Scaled(part)
        executable.save = lambda: b"saved"
        return executable  # type: ignore[no-any-return]


class MislabelsWeights(RestoresAnything):
    """Saves weights in another order than the layout that they claim to be in."""

    class Executable(Scaled):
        def save(self) -> list[Any]:
            numbers = super().save()
            for value, array in self.graph.constants.items():
                if array.dtype == np.float32 and array.ndim == 2 and array.size:
                    depth, columns = array.shape
                    layout = PanelLayout(array.shape, (0, 1), depth, columns, 4, 4)
                    packed = np.empty(layout.shape, np.float32)
                    layout.pack(array, packed)
                    return [*numbers, SavedWeights(packed[:, ::-1].tobytes(), value.name, layout)]
            return [*numbers]

    def compile(self, part: Partition, device: Device, options: Options) -> Executable:
        return self.Executable(part)

    def restore(
        self, pieces: Sequence[memoryview], part: Partition, device: Device, options: Options
    ) -> Executable | Stale:
        return super().restore(pieces[:2], part, device, options)


class ReadsUnlisted(RestoresAnything):
    """Restores executables that read all constants, although they list none."""

    class Executable(Scaled):
        def constants_read(self) -> list[str]:
            return []

    def compile(self, part: Partition, device: Device, options: Options) -> Executable:
        return self.Executable(part)


class MisspeltRestore(WrongBackend):
    """Misspells ``restore``, which is therefore never called."""

    def restor(
        self, pieces: Sequence[memoryview], part: Partition, device: Device, options: Options
    ) -> Executable | Stale:
        return Stale("nothing was saved")


class _BritishMemory(HostMemory):
    """Main memory with a misspelt optional member: ``synchronise`` for ``synchronize``."""

    wrap_alignment = 64

    def wrap(self, array: Array) -> Array:
        return array

    def synchronise(self, data: Array) -> None:
        pass


class MisspeltMemory(WrongBackend):
    """A backend with a memory with a misspelt member, so that arrays on the host are always copied."""

    def memory(self, device: Device) -> Memory:
        return _BritishMemory()


class MisspeltExecutable(WrongBackend):
    """A backend with executables with a misspelt ``run_profiled``, which is therefore never called."""

    class Executable(WrongExecutable):
        def run_profile(
            self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None
        ) -> list[KernelTime]:
            self.run(inputs, outputs, scratch)
            return []

    def compile(self, part: Partition, device: Device, options: Options) -> Executable:
        return self.Executable(part, right)


class MisspeltWhenRestored(WrongBackend):
    """A backend with restored executables with a misspelt ``constants_read``."""

    class Restored(Scaled):
        def constants_reads(self) -> list[str]:
            return []

    def compile(self, part: Partition, device: Device, options: Options) -> Executable:
        return Scaled(part)

    def restore(
        self, pieces: Sequence[memoryview], part: Partition, device: Device, options: Options
    ) -> Executable | Stale:
        if [bytes(piece) for piece in pieces] != Scaled(part).save():
            return Stale("these are not the numbers that were saved")
        return self.Restored(part)


class TakesAnyOption(WrongBackend):
    """Accepts unknown options."""

    def check_options(self, options: Mapping[str, Any]) -> None:
        pass


class StumblesOverOptions(WrongBackend):
    """Raises KeyError for unknown options."""

    def check_options(self, options: Mapping[str, Any]) -> None:
        for name in options:
            {"level": int}[name]


class NeedsAnOption(WrongBackend):
    """Rejects the absence of options."""

    def check_options(self, options: Mapping[str, Any]) -> None:
        if set(options) != {"level"}:
            raise InputError("the only option is level, and it must be given")


class TwoDevicesOneNumber(WrongBackend):
    """A backend with two devices with the same number."""

    def probe(self) -> list[Device]:
        return [Device(self.name, name="one"), Device(self.name, name="other")]


class DiesInProbe(WrongBackend):
    """Crashes the process in ``probe``, like a faulty driver."""

    def probe(self) -> list[Device]:
        ctypes.string_at(0)
        return []


for _kind, _name in (
    (NoWithoutAReason, "no_without_a_reason"),
    (RaisesInSupports, "raises_in_supports"),
    (KeepsExecutables, "keeps_executables"),
    (RestoresAnything, "restores_anything"),
    (MixesUpPieces, "mixes_up_pieces"),
    (SavesOnePiece, "saves_one_piece"),
    (MislabelsWeights, "mislabels_weights"),
    (ReadsUnlisted, "reads_unlisted"),
    (MisspeltRestore, "misspelt_restore"),
    (MisspeltMemory, "misspelt_memory"),
    (MisspeltExecutable, "misspelt_executable"),
    (MisspeltWhenRestored, "misspelt_when_restored"),
    (TakesAnyOption, "takes_any_option"),
    (StumblesOverOptions, "stumbles_over_options"),
    (NeedsAnOption, "needs_an_option"),
    (TwoDevicesOneNumber, "two_devices_one_number"),
    (DiesInProbe, "dies_in_probe"),
):
    BACKENDS[_name] = _kind(_name, right)


def __getattr__(name: str) -> WrongBackend:
    try:
        return BACKENDS[name.removeprefix("backend_")]
    except KeyError:
        raise AttributeError(name) from None
