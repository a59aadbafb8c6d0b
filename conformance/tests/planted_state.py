"""Bugs of executables that remember what they should not, or forget what they need."""

from __future__ import annotations

import ctypes
import threading
import time
import weakref
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from planted_parts import Array, PlantedBackend, PlantedExecutable

from lite_core.backend import Buffer, Device, Executable, Options, Partition
from lite_core.ir import Graph, Node, Value


def _wrong(array: Array) -> Array:
    """Return another array of the same type."""
    return array + 1 if array.dtype.kind in "iuf" else np.logical_not(array)


def _address(array: Array) -> int:
    return int(array.ctypes.data)


def _at(address: int, like: Array) -> Array:
    """Return the array at an address."""
    content = (ctypes.c_char * like.nbytes).from_address(address)
    return np.frombuffer(content, like.dtype).reshape(like.shape)


# **** the number of the run ****


class _Counts(PlantedExecutable):
    def __init__(self, graph: Graph, backend: PlantedBackend, options: Options) -> None:
        super().__init__(graph, backend, options)
        self.runs = 0

    def is_wrong(self) -> bool:
        raise NotImplementedError

    def compute(self, inputs: Sequence[Array]) -> list[Array]:
        self.runs += 1
        results = super().compute(inputs)
        return [_wrong(a) for a in results] if self.is_wrong() else results


class WrongInFirstRun(_Counts):
    def is_wrong(self) -> bool:
        return self.runs == 1


class WrongFromSecondRun(_Counts):
    def is_wrong(self) -> bool:
        return self.runs > 1


class WrongInFiftiethRun(_Counts):
    def is_wrong(self) -> bool:
        return self.runs == 50


# **** inputs ****


class InputsOfFirstRun(PlantedExecutable):
    """Uploads the inputs only in the first run."""

    def read(self, inputs: Sequence[Buffer]) -> list[Array]:
        return self.__dict__.setdefault("first", [buffer.data.copy() for buffer in inputs])  # type: ignore[no-any-return]


class AddressesOfFirstRun(PlantedExecutable):
    """Reads the inputs where those of the first run were."""

    def read(self, inputs: Sequence[Buffer]) -> list[Array]:
        arrays = [buffer.data for buffer in inputs]
        first = self.__dict__.setdefault("first", [_address(a) for a in arrays])
        self.__dict__.setdefault("kept", arrays)
        return [_at(address, a) for address, a in zip(first, arrays)]


class ResultsByAddress(PlantedExecutable):
    """Returns the earlier results for inputs at the same addresses."""

    def compute(self, inputs: Sequence[Array]) -> list[Array]:
        found: dict[tuple[int, ...], list[Array]] = self.__dict__.setdefault("found", {})
        key = tuple(_address(a) for a in inputs)
        if key not in found:
            found[key] = super().compute(inputs)
        return found[key]


class UploadsByStorage(PlantedExecutable):
    """Copies an input only if its buffer is in other storage than in the last run."""

    def read(self, inputs: Sequence[Buffer]) -> list[Array]:
        addresses = [_address(b.data) for b in inputs]
        if self.__dict__.get("addresses") != addresses:
            self.addresses = addresses
            self.copies = [b.data.copy() for b in inputs]
        return self.copies


class OneStorageForTwoInputs(PlantedExecutable):
    """Mistakes inputs in the same storage for a single one, and reads zeros as the second."""

    def read(self, inputs: Sequence[Buffer]) -> list[Array]:
        seen: set[int] = set()
        arrays = []
        for buffer in inputs:
            address = _address(buffer.data)
            arrays.append(np.zeros_like(buffer.data) if address in seen and buffer.data.size else buffer.data)
            seen.add(address)
        return arrays


# **** references after a run ****


class KeepsInputs(PlantedExecutable):
    """Keeps the arrays of the inputs of the last run."""

    def read(self, inputs: Sequence[Buffer]) -> list[Array]:
        self.last = super().read(inputs)
        return self.last


class KeepsBuffers(PlantedExecutable):
    def run(self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None) -> None:
        self.last = inputs, outputs
        super().run(inputs, outputs, scratch)


class KeepsPartOfAnOutput(PlantedExecutable):
    """Keeps a view of the first elements of an output."""

    def run(self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None) -> None:
        super().run(inputs, outputs, scratch)
        self.sample = outputs[0].data.reshape(-1)[:4]


class KeepsScratch(PlantedExecutable):
    scratch_bytes = 256

    def run(self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None) -> None:
        super().run(inputs, outputs, scratch)
        assert scratch is not None
        self.scratch = scratch.data


class WritesToEarlierOutput(PlantedExecutable):
    """Writes the results to the outputs of the last run as well, like a write that comes late."""

    def write(self, results: Sequence[Array], outputs: Sequence[Buffer]) -> None:
        for earlier, result in zip(self.__dict__.get("earlier", ()), results):
            np.copyto(earlier, result)
        super().write(results, outputs)
        self.earlier = [b.data for b in outputs]


class PersistentScratch(PlantedExecutable):
    """Computes the constants once into scratch memory, and expects them there in later runs."""

    scratch_bytes = 4096

    def run(self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None) -> None:
        assert scratch is not None
        one = scratch.data[:4].view(np.float32)
        if "filled" not in self.__dict__:
            one[0] = 1
            self.filled = True
        self.write([a * one[0] if a.dtype == np.float32 else a for a in self.compute(self.read(inputs))], outputs)


# **** outputs ****


class AddsToOutput(PlantedExecutable):
    """Adds to what is in the output, like a product with beta = 1."""

    def write(self, results: Sequence[Array], outputs: Sequence[Buffer]) -> None:
        with np.errstate(all="ignore"):
            super().write([(a + b.data).astype(a.dtype) for a, b in zip(results, outputs)], outputs)


class MaximumWithOutput(PlantedExecutable):
    """Keeps a larger element that is in the output; NaN and -1, with which outputs are filled, do not show it."""

    def write(self, results: Sequence[Array], outputs: Sequence[Buffer]) -> None:
        super().write([np.fmax(a, b.data).astype(a.dtype) for a, b in zip(results, outputs)], outputs)


class OutputIsInput(PlantedExecutable):
    """Returns the storage of an input as output if the types are equal."""

    def run(self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None) -> None:
        super().run(inputs, outputs, scratch)
        if inputs and inputs[0].type == outputs[0].type:
            np.copyto(inputs[0].data, outputs[0].data)
            outputs[0].data = inputs[0].data


class OutputsEndWithExecutable(PlantedExecutable):
    """Clears the outputs when the executable is dropped."""

    def write(self, results: Sequence[Array], outputs: Sequence[Buffer]) -> None:
        super().write(results, outputs)
        addresses = [(_address(b.data), b.data.nbytes) for b in outputs]
        weakref.finalize(self, lambda: [ctypes.memset(address, 0, size) for address, size in addresses])


class ReturnsEarly(PlantedExecutable):
    """Returns from a run while another thread still writes the outputs."""

    def write(self, results: Sequence[Array], outputs: Sequence[Buffer]) -> None:
        threading.Timer(0.05, super().write, (results, outputs)).start()


class LeavesRoundingMode(PlantedExecutable):
    """Rounds upwards, and does not restore the mode of the thread."""

    def run(self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None) -> None:
        super().run(inputs, outputs, scratch)
        round_to(FE_UPWARD)


FE_TONEAREST, FE_UPWARD = 0, 0x800


def round_to(mode: int) -> None:
    """Set the rounding mode of the calling thread, by the number that it has in x86's <fenv.h>."""
    ctypes.CDLL(None).fesetround(mode)


# **** constants ****


class WritesConstants(PlantedExecutable):
    """Packs constants in place when it is compiled."""

    def packed(self, graph: Graph) -> dict[Value, Array]:
        copies = super().packed(graph)
        for array in graph.constants.values():
            ctypes.memset(_address(array), 0, array.nbytes)
        return copies


class AddressesOfConstants(PlantedExecutable):
    """Notes the addresses of constants instead of keeping the arrays."""

    def packed(self, graph: Graph) -> dict[Value, Array]:
        return {v: _at(_address(a), a) for v, a in graph.constants.items()}

    def __init__(self, graph: Graph, backend: PlantedBackend, options: Options) -> None:
        super().__init__(graph, backend, options)
        self.graph = graph.copy()
        new = dict(zip(self.graph.constants, self.constants.values()))
        self.graph.constants.clear()
        self.constants = new


class _CachedConstants(PlantedBackend):
    """Packs each constant once, and finds it by a key."""

    def __init__(self) -> None:
        self.found: dict[Any, Array] = {}

    def key(self, value: Value, array: Array) -> Any:
        raise NotImplementedError

    def compile(self, part: Partition, device: Device, options: Options) -> Executable:
        executable = PlantedExecutable(part.graph, self, options)
        for value, array in part.graph.constants.items():
            executable.constants[value] = self.found.setdefault(self.key(value, array), array.copy())
        return executable


class ConstantsById(_CachedConstants):
    """Finds packed constants by the identity of arrays that may be gone."""

    def key(self, value: Value, array: Array) -> Any:
        return id(array), array.shape, array.dtype


class ConstantsByAddress(_CachedConstants):
    def key(self, value: Value, array: Array) -> Any:
        return _address(array), array.shape, array.dtype


class ConstantsByType(_CachedConstants):
    def key(self, value: Value, array: Array) -> Any:
        return str(value.type)


class ConstantsByName(_CachedConstants):
    def key(self, value: Value, array: Array) -> Any:
        return value.name, str(value.type)


class NeedsAlignedConstants(PlantedExecutable):
    """Reads constants with aligned vector loads; that of an address which is not aligned ends the process."""

    def packed(self, graph: Graph) -> dict[Value, Array]:
        if any(_address(a) % 16 for a in graph.constants.values()):
            raise RuntimeError("unaligned vector load")
        return super().packed(graph)


class NeedsAlignedTensors(PlantedExecutable):
    def read(self, inputs: Sequence[Buffer]) -> list[Array]:
        if any(_address(b.data) % 16 for b in inputs):
            raise RuntimeError("unaligned vector load")
        return super().read(inputs)


# **** several executables ****


class _CachedExecutables(PlantedBackend):
    """Compiles each partition once, and finds the executable by a key."""

    def __init__(self) -> None:
        self.found: dict[Any, Executable] = {}

    def key(self, part: Partition) -> Any:
        raise NotImplementedError

    def compile(self, part: Partition, device: Device, options: Options) -> Executable:
        return self.found.setdefault(self.key(part), super().compile(part, device, options))


class ExecutablesByPartitionName(_CachedExecutables):
    def key(self, part: Partition) -> Any:
        return part.name, [str(v.type) for v in (*part.graph.inputs, *part.graph.outputs)].__str__()


class ExecutablesByNodes(_CachedExecutables):
    """Ignores the elements of constants."""

    def key(self, part: Partition) -> Any:
        return str([(n.op, sorted(map(str, n.attributes.items()))) for n in part.graph.nodes]) + str(
            [str(v.type) for v in part.graph.defined()]
        )


class _CachedKernels(PlantedBackend):
    """Makes a kernel for a node once, and finds it by a key."""

    def __init__(self) -> None:
        self.kernels: dict[Any, Node] = {}

    def key(self, node: Node) -> Any:
        raise NotImplementedError

    def compile(self, part: Partition, device: Device, options: Options) -> Executable:
        executable = PlantedExecutable(part.graph, self, options)

        def compute(node: Node, operands: Sequence[Array | None]) -> list[Array]:
            made = self.kernels.setdefault(self.key(node), node.copy_with(node.inputs, node.outputs, node.attributes))
            attributes = {**node.attributes, **made.attributes}
            return PlantedExecutable.node(executable, node.copy_with(node.inputs, node.outputs, attributes), operands)

        executable.node = compute  # type: ignore[method-assign]
        return executable


class KernelsByOperator(_CachedKernels):
    """Ignores attributes."""

    def key(self, node: Node) -> Any:
        return node.op, node.domain


class KernelsByOperatorAndRank(_CachedKernels):
    def key(self, node: Node) -> Any:
        return node.op, node.domain, [len(v.shape) for v in node.inputs if v is not None].__str__()


class KernelOfFirstShape(PlantedBackend):
    """Computes as many elements of an output as the first node of the operator had."""

    def __init__(self) -> None:
        self.sizes: dict[str, int] = {}

    def compile(self, part: Partition, device: Device, options: Options) -> Executable:
        executable = PlantedExecutable(part.graph, self, options)
        op = part.graph.nodes[0].op

        def write(results: Sequence[Array], outputs: Sequence[Buffer]) -> None:
            for array, buffer in zip(results, outputs):
                size = self.sizes.setdefault(op, array.size) or array.size
                flat = array.reshape(-1)
                if buffer.data is None:
                    buffer.store(array)
                else:
                    buffer.data.reshape(-1)[:size] = flat[:size]

        executable.write = write  # type: ignore[method-assign]
        return executable


class SharedTemporary(PlantedBackend):
    """Has one temporary array for all executables."""

    def __init__(self) -> None:
        self.temporary: dict[Any, Array] = {}

    class Executable(PlantedExecutable):  # type: ignore[assignment]
        def write(self, results: Sequence[Array], outputs: Sequence[Buffer]) -> None:
            temporaries: dict[Any, Array] = self.backend.temporary  # type: ignore[attr-defined]
            for array, buffer in zip(results, outputs):
                temporary = temporaries.setdefault((array.shape, array.dtype), np.empty_like(array))
                np.copyto(temporary, array)
                for _ in range(10_000):  # long enough for the interpreter to switch threads
                    pass
                buffer.store(temporary)


class LastConstants(PlantedBackend):
    """Computes with the constants of the executable that was compiled last, if they have the same types."""

    def __init__(self) -> None:
        self.last: PlantedExecutable | None = None

    class Executable(PlantedExecutable):  # type: ignore[assignment]
        def __init__(self, graph: Graph, backend: PlantedBackend, options: Options) -> None:
            super().__init__(graph, backend, options)
            backend.last = self  # type: ignore[attr-defined]

        def compute(self, inputs: Sequence[Array]) -> list[Array]:
            last: PlantedExecutable = self.backend.last  # type: ignore[attr-defined]
            pairs = list(zip(self.constants, last.constants.values()))
            if all(v.dtype.numpy == a.dtype and v.shape == a.shape for v, a in pairs):
                self.constants.update(pairs)
            return super().compute(inputs)


class DroppingClearsConstants(PlantedBackend):
    """Shares packed constants between executables of one graph, and clears them when one of these is dropped."""

    def __init__(self) -> None:
        self.found: dict[tuple[str, bytes], Array] = {}

    def compile(self, part: Partition, device: Device, options: Options) -> Executable:
        executable = PlantedExecutable(part.graph, self, options)
        for value, array in part.graph.constants.items():
            packed = self.found.setdefault((str(value.type), array.tobytes()), array.copy())
            np.copyto(packed, array)
            executable.constants[value] = packed
            weakref.finalize(executable, packed.fill, 0)
        return executable


# **** threads ****


class ThreadOfCompilation(PlantedExecutable):
    """Runs only in the thread that it was compiled in, like a context of a driver."""

    def __init__(self, graph: Graph, backend: PlantedBackend, options: Options) -> None:
        super().__init__(graph, backend, options)
        self.local = threading.local()
        self.local.factor = 1

    def compute(self, inputs: Sequence[Array]) -> list[Array]:
        factor = getattr(self.local, "factor", 0)
        return [a * a.dtype.type(factor) for a in super().compute(inputs)]


def prepare_slowly() -> None:
    """Take as long as packing weights or starting a driver does, in native code that other threads run beside."""
    time.sleep(0.01)


class LazyTables(PlantedExecutable):
    """Makes a table in the first run, and says that it is there before it is filled."""

    def compute(self, inputs: Sequence[Array]) -> list[Array]:
        if "table" not in self.__dict__:
            self.table = np.zeros(1, np.float32)
            prepare_slowly()
            self.table[0] = 1
        return [(a * self.table[0]).astype(a.dtype) for a in super().compute(inputs)]


class LazyBackend(PlantedBackend):
    """Initialises the device at the first compilation, and says that it is done before it is."""

    ready: ClassVar[list[float]] = []

    def compile(self, part: Partition, device: Device, options: Options) -> Executable:
        executable = super().compile(part, device, options)
        if not LazyBackend.ready:
            LazyBackend.ready.append(0)
            prepare_slowly()
            LazyBackend.ready[0] = 1
        if not LazyBackend.ready[0]:
            raise RuntimeError("the device is not initialised")
        return executable


class UnequalSums(PlantedExecutable):
    """Adds in any order if several threads work on a run."""

    def compute(self, inputs: Sequence[Array]) -> list[Array]:
        results = super().compute(inputs)
        self.turn = not self.__dict__.get("turn", False)
        if self.options.threads > 1 and self.turn:
            results = [np.nextafter(a, np.inf).astype(a.dtype) if a.dtype == np.float32 else a for a in results]
        return results


class LosesRowsOfThreads(PlantedExecutable):
    """Divides the rows among threads, and forgets the remainder."""

    def write(self, results: Sequence[Array], outputs: Sequence[Buffer]) -> None:
        threads = self.options.threads
        for array, buffer in zip(results, outputs):
            flat = array.reshape(-1)
            done = len(flat) - len(flat) % threads if len(flat) >= 4 * threads else len(flat)
            buffer.data.reshape(-1)[:done] = flat[:done]


# **** options ****


class GlobalPrecision(PlantedBackend):
    """Computes all executables in the precision of the one that was compiled last."""

    precision = "float32"

    class Executable(PlantedExecutable):  # type: ignore[assignment]
        def __init__(self, graph: Graph, backend: PlantedBackend, options: Options) -> None:
            super().__init__(graph, backend, options)
            backend.precision = options.precision  # type: ignore[attr-defined]

        def compute(self, inputs: Sequence[Array]) -> list[Array]:
            results = super().compute(inputs)
            if self.backend.precision == "float32":  # type: ignore[attr-defined]
                return results
            return [a.astype(np.float16).astype(a.dtype) if a.dtype == np.float32 else a for a in results]


class LowestPrecision(GlobalPrecision):
    """Computes in float16 once an executable in float16 was compiled."""

    class Executable(GlobalPrecision.Executable):  # type: ignore[misc]
        def __init__(self, graph: Graph, backend: PlantedBackend, options: Options) -> None:
            before = backend.precision  # type: ignore[attr-defined]
            super().__init__(graph, backend, options)
            if before != "float32":
                backend.precision = before  # type: ignore[attr-defined]
