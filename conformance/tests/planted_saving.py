"""Bugs of saving and restoring."""

from __future__ import annotations

import ctypes
import hashlib
import json
import weakref
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from planted_parts import Array, PlantedBackend, PlantedExecutable
from planted_state import prepare_slowly

from lite_core.backend import Buffer, Device, Executable, Options, Partition, Stale
from lite_core.ir import Graph, Value

Pieces = Sequence[memoryview]


class _Program(PlantedExecutable):
    """An executable that saves a description of its graph, and a factor for each output."""

    factors: Array
    #: The backend's options by which it was restored; None if it was compiled.
    restored_for: Options | None = None

    def __init__(self, graph: Graph, backend: PlantedBackend, options: Options) -> None:
        super().__init__(graph, backend, options)
        self.factors = np.ones(len(graph.outputs))

    def write(self, results: Sequence[Array], outputs: Sequence[Buffer]) -> None:
        scaled = [a if f == 1 else (a * f).astype(a.dtype) for a, f in zip(results, self.factors)]
        super().write(scaled, outputs)

    def save(self) -> list[Any]:
        backend: SavesPrograms = self.backend  # type: ignore[assignment]
        return [json.dumps(backend.described(self.graph)).encode(), self.factors.tobytes()]


class SavesPrograms(PlantedBackend):
    """A correct backend that saves and restores programs."""

    Executable: type[_Program] = _Program

    def described(self, graph: Graph) -> list[str]:
        """Return what distinguishes a graph from others."""
        numbers: dict[Value, int] = {}
        lines = [f"{numbers.setdefault(v, len(numbers))}: {v.type}" for v in (*graph.inputs, *graph.constants)]
        for node in graph.nodes:
            inputs = [None if v is None else numbers[v] for v in node.inputs]
            outputs = [None if v is None else numbers.setdefault(v, len(numbers)) for v in node.outputs]
            attributes = sorted((k, str(a)) for k, a in node.attributes.items())
            lines.append(f"{node.qualified_op} {inputs} {outputs} {attributes}")
        lines.append(str([(numbers[v], str(v.type)) for v in graph.outputs]))
        digest = hashlib.sha256(b"".join(a.tobytes() for a in graph.constants.values())).hexdigest()
        return [*lines, digest]

    def restore(self, pieces: Pieces, part: Partition, device: Device, options: Options) -> Executable | Stale:
        outputs = len(part.graph.outputs)
        if len(pieces) != 2 or bytes(pieces[0]) != json.dumps(self.described(part.graph)).encode():
            return Stale("this was not saved for this partition")
        if pieces[1].nbytes != 8 * outputs:
            return Stale("there is not a factor for each output")
        return self.rebuilt(pieces, part.graph, options)

    def rebuilt(self, pieces: Pieces, graph: Graph, options: Options) -> _Program:
        """Return the executable for valid pieces."""
        program = self.Executable(graph, self, options)
        program.factors = np.frombuffer(pieces[1])
        program.restored_for = options
        return program


# **** what is restored ****


class SecondOutputAfterRestore(SavesPrograms):
    """Restores the factor of the first output for all, plus 1 for others."""

    def rebuilt(self, pieces: Pieces, graph: Graph, options: Options) -> _Program:
        program = super().rebuilt(pieces, graph, options)
        program.factors = program.factors + np.minimum(np.arange(len(program.factors)), 1)
        return program


class LastOutputAfterRestore(SavesPrograms):
    def rebuilt(self, pieces: Pieces, graph: Graph, options: Options) -> _Program:
        program = super().rebuilt(pieces, graph, options)
        if len(program.factors) > 1:
            program.factors = np.append(program.factors[:-1], 0.5)
        return program


class SecondConstantAfterRestore(SavesPrograms):
    """Restores the first constant in place of the second of the same type."""

    def rebuilt(self, pieces: Pieces, graph: Graph, options: Options) -> _Program:
        program = super().rebuilt(pieces, graph, options)
        first: dict[str, Array] = {}
        for value, array in program.constants.items():
            program.constants[value] = first.setdefault(str(value.type), array)
        return program


class WrongInFirstRestoredRun(SavesPrograms):
    class Executable(_Program):  # type: ignore[assignment]
        def compute(self, inputs: Sequence[Array]) -> list[Array]:
            results = super().compute(inputs)
            if self.restored_for is not None and "ran" not in self.__dict__:
                self.ran = True
                return [a * a.dtype.type(2) for a in results]
            return results


class LastSavedState(SavesPrograms):
    """Restores the constants that were saved last, if they have the same types."""

    def __init__(self) -> None:
        self.last: list[Array] = []

    class Executable(_Program):  # type: ignore[assignment]
        def save(self) -> list[Any]:
            self.backend.last = list(self.constants.values())  # type: ignore[attr-defined]
            return super().save()

    def rebuilt(self, pieces: Pieces, graph: Graph, options: Options) -> _Program:
        program = super().rebuilt(pieces, graph, options)
        for (value, array), last in zip(list(program.constants.items()), self.last):
            if (array.shape, array.dtype) == (last.shape, last.dtype):
                program.constants[value] = last
        return program


class RestoredForOneThread(SavesPrograms):
    """Divides work among the threads of the session, although the program was saved for another number."""

    class Executable(_Program):  # type: ignore[assignment]
        def save(self) -> list[Any]:
            description, factors = super().save()
            return [description, factors + np.float64(self.options.threads).tobytes()]

        def write(self, results: Sequence[Array], outputs: Sequence[Buffer]) -> None:
            for array, factor, buffer in zip(results, self.factors, outputs):
                done = array.size * self.options.threads // int(self.planned_threads)
                buffer.data.reshape(-1)[:done] = (array * factor).astype(array.dtype).reshape(-1)[:done]

        planned_threads = 1.0

        def __init__(self, graph: Graph, backend: PlantedBackend, options: Options) -> None:
            super().__init__(graph, backend, options)
            self.planned_threads = options.threads

    def restore(self, pieces: Pieces, part: Partition, device: Device, options: Options) -> Executable | Stale:
        if len(pieces) != 2 or pieces[1].nbytes != 8 * len(part.graph.outputs) + 8:
            return Stale("this was not saved for this partition")
        restored = super().restore([pieces[0], pieces[1][:-8]], part, device, options)
        if isinstance(restored, _Program):
            restored.planned_threads = float(np.frombuffer(pieces[1][-8:])[0])  # type: ignore[attr-defined]
        return restored


# **** what it depends on ****


class _Table(SavesPrograms):
    """Saves numbers of this process instead of content."""

    made: ClassVar[list[Array]] = []

    class Executable(_Program):  # type: ignore[assignment]
        def save(self) -> list[Any]:
            _Table.made.append(self.factors)
            numbers = np.full(len(self.factors), len(_Table.made) - 1.0)
            return [super().save()[0], numbers.tobytes()]


class SavesHandles(_Table):
    """Saves the number of its state in a table of the process."""

    def rebuilt(self, pieces: Pieces, graph: Graph, options: Options) -> _Program:
        program = super().rebuilt(pieces, graph, options)
        number = int(program.factors[0])
        program.factors = self.made[number] if number < len(self.made) else np.zeros(len(program.factors))
        return program


class AddressesOfPieces(SavesPrograms):
    """Notes the addresses of the pieces instead of keeping them."""

    def rebuilt(self, pieces: Pieces, graph: Graph, options: Options) -> _Program:
        program = super().rebuilt(pieces, graph, options)
        size = program.factors.nbytes
        memory = (ctypes.c_char * size).from_address(program.factors.ctypes.data)
        program.factors = np.frombuffer(memory, np.float64)
        return program


class NeedsTheOriginal(SavesPrograms):
    """Shares the constants of the executable that was saved, and loses them when this is dropped."""

    def __init__(self) -> None:
        self.originals: dict[str, weakref.ref[_Program]] = {}

    class Executable(_Program):  # type: ignore[assignment]
        def save(self) -> list[Any]:
            pieces = super().save()
            self.backend.originals[hashlib.sha256(pieces[0]).hexdigest()] = weakref.ref(self)  # type: ignore[attr-defined]
            return pieces

        original: Any = None

        def compute(self, inputs: Sequence[Array]) -> list[Array]:
            if self.original is not None and self.original() is None:
                raise RuntimeError("the program is not loaded")
            return super().compute(inputs)

    def rebuilt(self, pieces: Pieces, graph: Graph, options: Options) -> _Program:
        program = super().rebuilt(pieces, graph, options)
        program.original = self.originals.get(hashlib.sha256(pieces[0]).hexdigest())  # type: ignore[attr-defined]
        return program


class OneExecutablePerProgram(SavesPrograms):
    """Unloads a program when one of the executables that were restored from it is dropped."""

    def __init__(self) -> None:
        self.loaded: dict[str, list[bool]] = {}

    class Executable(_Program):  # type: ignore[assignment]
        state: Any = None

        def compute(self, inputs: Sequence[Array]) -> list[Array]:
            if self.state is not None and not self.state[0]:
                raise RuntimeError("the program is not loaded")
            return super().compute(inputs)

    def rebuilt(self, pieces: Pieces, graph: Graph, options: Options) -> _Program:
        program = super().rebuilt(pieces, graph, options)
        state = self.loaded.setdefault(hashlib.sha256(pieces[0]).hexdigest(), [True])
        state[0] = True
        program.state = state  # type: ignore[attr-defined]
        weakref.finalize(program, state.__setitem__, 0, False)
        return program


# **** saving ****


class SaveEndsExecutable(SavesPrograms):
    """Gives its factors away when it is saved."""

    class Executable(_Program):  # type: ignore[assignment]
        def save(self) -> list[Any]:
            pieces = super().save()
            self.factors = self.factors * 0
            return pieces


class SavesOnlyOnce(SavesPrograms):
    class Executable(_Program):  # type: ignore[assignment]
        def save(self) -> list[Any]:
            pieces = super().save()
            if "saved" in self.__dict__:
                pieces[1] = (self.factors * 0).tobytes()
            self.saved = True
            return pieces


class SavesStateOfRuns(SavesPrograms):
    """Saves what the last run left behind."""

    class Executable(_Program):  # type: ignore[assignment]
        def compute(self, inputs: Sequence[Array]) -> list[Array]:
            self.ran = True
            return super().compute(inputs)

        def save(self) -> list[Any]:
            pieces = super().save()
            if "ran" in self.__dict__:
                pieces[1] = (self.factors * 2).tobytes()
            return pieces


class SavesOnlyWhatRan(SavesPrograms):
    """Packs the factors in the first run, so that an executable that never ran saves zeros."""

    class Executable(_Program):  # type: ignore[assignment]
        def compute(self, inputs: Sequence[Array]) -> list[Array]:
            self.ran = True
            return super().compute(inputs)

        def save(self) -> list[Any]:
            pieces = super().save()
            return pieces if "ran" in self.__dict__ else [pieces[0], (self.factors * 0).tobytes()]


class RestoredSavesWrongly(SavesPrograms):
    """Saves zeros when it was itself restored."""

    class Executable(_Program):  # type: ignore[assignment]
        def save(self) -> list[Any]:
            pieces = super().save()
            return pieces if self.restored_for is None else [pieces[0], (self.factors * 0).tobytes()]


class ListsUnknownConstants(SavesPrograms):
    class Executable(_Program):  # type: ignore[assignment]
        def constants_read(self) -> list[str]:
            return [*(value.name for value in self.graph.constants), "a_name_before_the_passes"]


# **** similar graphs ****


class _Trusting(SavesPrograms):
    """Restores a program of another graph that has the same description, and computes that graph."""

    graphs: ClassVar[dict[str, Graph]] = {}

    class Executable(_Program):  # type: ignore[assignment]
        def save(self) -> list[Any]:
            pieces = super().save()
            name = hashlib.sha256(str(SavesPrograms().described(self.graph)).encode()).digest()
            _Trusting.graphs[name.hex()] = self.graph
            return [pieces[0] + b"\n" + name, pieces[1]]

    def restore(self, pieces: Pieces, part: Partition, device: Device, options: Options) -> Executable | Stale:
        content = bytes(pieces[0]) if pieces else b""
        head, name = content[:-33], content[-32:].hex()
        graph = self.graphs.get(name)
        if len(pieces) != 2 or head != json.dumps(self.described(part.graph)).encode() or graph is None:
            return Stale("this was not saved for this partition")
        if pieces[1].nbytes != 8 * len(graph.outputs):
            return Stale("there is not a factor for each output")
        return self.rebuilt(pieces, graph, options)


class DescribesTypes(_Trusting):
    """Describes a graph by the types of its inputs and outputs."""

    def described(self, graph: Graph) -> list[str]:
        return [str(v.type) for v in (*graph.inputs, *graph.outputs, *graph.constants)]


class DescribesOperators(_Trusting):
    """Describes a graph by types and operators, without attributes."""

    def described(self, graph: Graph) -> list[str]:
        return [str(v.type) for v in (*graph.inputs, *graph.outputs, *graph.constants)] + [n.op for n in graph.nodes]


class DescribesNodes(_Trusting):
    """Describes a graph by types, operators and attributes, without the connections."""

    def described(self, graph: Graph) -> list[str]:
        nodes = [f"{n.op} {sorted((k, str(a)) for k, a in n.attributes.items())}" for n in graph.nodes]
        return [str(v.type) for v in (*graph.inputs, *graph.outputs, *graph.constants)] + nodes


class DescribesAllButConstants(_Trusting):
    def described(self, graph: Graph) -> list[str]:
        return super().described(graph)[:-1]


class DescribesAllButSizes(_Trusting):
    """Describes tensors by their element types and numbers of bytes."""

    def described(self, graph: Graph) -> list[str]:
        values = (*graph.inputs, *graph.outputs, *graph.constants)
        nodes = [f"{n.op} {sorted((k, str(a)) for k, a in n.attributes.items())}" for n in graph.nodes]
        return [f"{v.dtype} {v.type.size}" for v in values] + nodes + super().described(graph)[-1:]


# **** memory and threads ****

_kept: list[Any] = []


class RestoredLeaks(SavesPrograms):
    def rebuilt(self, pieces: Pieces, graph: Graph, options: Options) -> _Program:
        program = super().rebuilt(pieces, graph, options)
        _kept.append(np.ones((256, 256), np.float32))
        return program


class RestoredIsLazy(SavesPrograms):
    """Unpacks the factors in the first run, and says that they are there before they are."""

    class Executable(_Program):  # type: ignore[assignment]
        def write(self, results: Sequence[Array], outputs: Sequence[Buffer]) -> None:
            if self.restored_for is not None and "unpacked" not in self.__dict__:
                self.unpacked, packed = True, self.factors
                self.factors = packed * 0
                prepare_slowly()
                self.factors = packed
            super().write(results, outputs)
