"""Compiled partitions."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from lite_core.backend import (
    Buffer,
    HasNotes,
    Interval,
    KernelTime,
    ListsConstantsRead,
    MemoryUse,
    Options,
    ProfilesKernels,
    ReportsMemoryUse,
    SavedWeights,
    SavesState,
    Stale,
)
from lite_core.errors import ExecutionError
from lite_core.ir import Graph, Node, TensorType, Value
from lite_core.observing import Observable, Observer, observed_arrays
from lite_core.ops.evaluate import evaluate_node
from lite_core.reports import StatesPrecision

from lite_granite.memory import GraniteMemory

Array = np.ndarray[Any, Any]
ALIGNMENT = 64


class Program(ProfilesKernels, Observable, HasNotes, ReportsMemoryUse, SavesState, ListsConstantsRead, StatesPrecision):
    """A compiled partition: kernels that run one after another, with intermediate values in the scratch memory."""

    def __init__(self, graph: Graph, options: Options, weights: dict[str, Array], *, is_restored: bool) -> None:
        self.graph = graph
        self._memory = GraniteMemory()
        self._weights = weights
        self._threads = options.threads
        self._is_restored = is_restored
        self._offsets: dict[Value, int] = {}
        self.scratch_bytes = 0
        for node in graph.nodes:
            for value in node.outputs:
                if value is not None and value not in graph.outputs and value.type.is_static:
                    self._offsets[value] = self.scratch_bytes
                    self.scratch_bytes += size_of(value.type) // ALIGNMENT * ALIGNMENT + ALIGNMENT

    # **** running ****

    def run(self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None) -> None:
        self._run(inputs, outputs, scratch, None, [])

    def run_profiled(
        self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None
    ) -> Sequence[KernelTime]:
        times: list[KernelTime] = []
        self._run(inputs, outputs, scratch, None, times)
        return times

    def run_observed(
        self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None, observer: Observer
    ) -> None:
        self._run(inputs, outputs, scratch, observer, [])

    def _run(
        self,
        inputs: Sequence[Buffer],
        outputs: Sequence[Buffer],
        scratch: Buffer | None,
        observer: Observer | None,
        times: list[KernelTime],
    ) -> None:
        arrays: dict[Value, Array] = {v: self._weights.get(v.name, array) for v, array in self.graph.constants.items()}
        arrays.update({value: buffer.data.array() for value, buffer in zip(self.graph.inputs, inputs)})
        for node in self.graph.nodes:
            if observer is not None:
                observer.starts(kernel_of(node), [node.name])
            start = time.perf_counter()
            results = evaluate_node(node, [None if value is None else arrays[value] for value in node.inputs])
            made = {value: array for value, array in zip(node.outputs, results) if value is not None}
            arrays.update({value: self._kept(value, np.asarray(array), scratch) for value, array in made.items()})
            seconds = time.perf_counter() - start
            size = float(sum(array.nbytes for array in made.values()))
            times.append(KernelTime(kernel_of(node), (node.name,), seconds, flops=size / 4, bytes=size))
            if observer is not None:
                observer.computed(observed_arrays(kernel_of(node), [node.name], arrays, made))
        for value, buffer in zip(self.graph.outputs, outputs):
            array = arrays[value]
            if buffer.data is None:  # its shape depends on the elements
                buffer.allocate(array.shape)
            if not buffer.type.accepts(array.shape):
                raise ExecutionError(f"granite: {value.name} must be {buffer.type}, is {list(array.shape)}")
            buffer.memory.upload(array, buffer.data)

    def _kept(self, value: Value, array: Array, scratch: Buffer | None) -> Array:
        """Store a result in the scratch memory, and return it there; results of unknown sizes stay where they are."""
        if value not in self._offsets or scratch is None:
            return array
        kept = self._memory.view(scratch.data, self._offsets[value], value.type).array()
        kept[...] = array
        return kept

    # **** reports ****

    @property
    def notes(self) -> Sequence[str]:
        return ("restored from a file",) if self._is_restored else ()

    @property
    def computes(self) -> str:
        return "the types of the model"

    def memory_use(self) -> MemoryUse:
        intervals = tuple(Interval(size_of(v.type), 0, len(self.graph.nodes)) for v in self._offsets)
        weights = sum(array.nbytes for array in self._weights.values())
        return MemoryUse(self.scratch_bytes, intervals, 0, weights)

    # **** saving ****

    def save(self) -> Sequence[bytes | memoryview | SavedWeights]:
        packed = {name: array[::-1].tobytes() for name, array in self._weights.items()}
        about = {"graph": digest(self.graph), "weights": {name: checksum(data) for name, data in packed.items()}}
        return [json.dumps(about).encode(), *(SavedWeights(data) for data in packed.values())]

    def constants_read(self) -> Collection[str]:
        return [value.name for value in self.graph.constants if value.name not in self._weights]


def compile_program(graph: Graph, options: Options) -> Program:
    """Compile a graph: pack its matrices."""
    packed = {value.name: array.copy() for value, array in graph.constants.items() if is_packed(value.type)}
    return Program(graph, options, packed, is_restored=False)


def restore_program(pieces: Sequence[memoryview], graph: Graph, options: Options) -> Program | Stale:
    """Return the program that :meth:`Program.save` stored, or the reason why the pieces are not for this graph."""
    try:
        first, *packed = pieces
        about = json.loads(bytes(first))
        if about["graph"] != digest(graph):
            return Stale("it was saved for another graph")
        types = {value.name: value.type for value in graph.constants}
        if len(packed) != len(about["weights"]):
            return Stale(f"{len(about['weights'])} weights are expected, there are {len(packed)}")
        weights = {}
        for (name, wanted), data in zip(about["weights"].items(), packed):
            if checksum(data) != wanted:
                return Stale(f"the weight {name} is another one")
            shape = [int(size) for size in types[name].shape or ()]  # type: ignore[arg-type]
            weights[name] = np.frombuffer(data, types[name].dtype.numpy).reshape(shape)[::-1].copy()
    except (ValueError, TypeError, KeyError) as error:
        return Stale(f"this is no saved program: {error}")
    return Program(graph, options, weights, is_restored=True)


def is_packed(type: TensorType) -> bool:
    """Return True for matrices of floats, which the chip stores from the last row to the first."""
    return type.rank == 2 and type.dtype.is_floating and bool(type.size)


def size_of(type: TensorType) -> int:
    return int(type.size) * type.dtype.itemsize  # type: ignore[arg-type]


def kernel_of(node: Node) -> str:
    return f"granite_{node.op.lower()}"


def digest(graph: Graph) -> str:
    """Return a text that identifies a graph: its nodes, interface and constants, except those that are packed.

    The types of values between nodes are left out, because a restored graph may have them with symbols.
    """
    digest = hashlib.sha256()
    for value in (*graph.inputs, *graph.outputs):
        digest.update(f"{value.name} {value.type}\n".encode())
    for node in graph.nodes:
        names = [[value and value.name for value in values] for values in (node.inputs, node.outputs)]
        digest.update(f"{node.qualified_op} {sorted(node.attributes.items())} {names}\n".encode())
    for value, array in graph.constants.items():
        digest.update(f"{value.name} {value.type}\n".encode())
        if not is_packed(value.type):
            digest.update(array.tobytes())
    return digest.hexdigest()


def checksum(data: bytes | memoryview) -> str:
    return hashlib.sha256(data).hexdigest()
