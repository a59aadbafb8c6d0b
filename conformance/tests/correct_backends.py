"""Unusual backends that are correct, which the suite must not alarm."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np
from planted_numbers import _Accumulates
from planted_parts import Array, PlantedBackend, PlantedExecutable

from lite_core.backend import Buffer, Device, Executable, Options, Partition
from lite_core.ir import Graph, Value

__all__ = ["CachesWell", "NaiveSums", "ReadsMemory"]


def _content(array: Array) -> Array:
    """Return the elements at an array's address, without regard to its strides."""
    return np.frombuffer(ctypes.string_at(array.ctypes.data, array.nbytes), array.dtype).reshape(array.shape)


class ReadsMemory(PlantedExecutable):
    """Reads constants and inputs as contiguous memory, which Lite promises, and ignores their strides."""

    def packed(self, graph: Graph) -> dict[Value, Array]:
        return {value: _content(array) for value, array in graph.constants.items()}

    def read(self, inputs: Sequence[Buffer]) -> list[Array]:
        return [_content(buffer.data) for buffer in inputs]


class NaiveSums(_Accumulates):
    """Adds the terms of a sum one by one in float32, as a simple kernel does; in float64 for float64."""

    def total(self, terms: Array) -> Array:
        total = np.zeros(terms.shape[1:], self.accumulator)
        for term in terms:
            total = (total + term.astype(self.accumulator)).astype(self.accumulator)
        return total

    accumulator: Any = np.float32

    def node(self, node: Any, operands: Sequence[Array | None]) -> list[Array]:
        wide = any(a is not None and a.dtype == np.float64 for a in operands)
        self.accumulator = np.float64 if wide else np.float32
        return super().node(node, operands)


class CachesWell(PlantedBackend):
    """Caches packed constants by the identity of arrays, and checks that the array is the same."""

    def __init__(self) -> None:
        self.found: dict[int, tuple[weakref.ref[Array], Array]] = {}

    def compile(self, part: Partition, device: Device, options: Options) -> Executable:
        executable = PlantedExecutable(part.graph, self, options)
        for value, array in part.graph.constants.items():
            known = self.found.get(id(array))
            if known is None or known[0]() is not array:
                known = self.found[id(array)] = weakref.ref(array), array.copy()
            executable.constants[value] = known[1]
        return executable
