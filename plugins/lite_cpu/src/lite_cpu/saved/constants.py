"""The memory that a program reads besides its arguments: constants of the graph, by name, and arrays in the blob."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from lite_core.ir import DType, Graph
from lite_cpu.lowering.weights import WeightCache
from lite_cpu.saved.blob import SavedStateError, places
from lite_cpu.tensors import Storage

__all__ = ["describe_constants", "find_constants"]

Array = np.ndarray[Any, Any]


def describe_constants(
    storages: Sequence[Storage], graph: Graph, weights: WeightCache
) -> tuple[list[dict[str, Any]], list[Array]]:
    """What :func:`find_constants` finds the memory again by, one entry for each storage, and the arrays to be saved.

    Args:
        storages: memory of constants.
        graph: whose constants need not be saved.
        weights: knows which arrays were packed from which constants.
    """
    in_graph = _GraphConstants(graph)
    texts = weights.texts()
    described: list[dict[str, Any]] = []
    saved: list[Array] = []
    for storage in storages:
        elements, array = _memory(storage)
        known = in_graph.find(elements, array)
        if known is not None:
            name, offset = known
            described.append({"graph": name, "offset": offset, "bytes": storage.bytes})
            continue
        entry: dict[str, Any] = {"dtype": DType.of(array).value, "shape": list(array.shape)}
        if id(array) in texts:
            key, sources = texts[id(array)]
            names = [in_graph.names.get(id(source)) for source in sources]
            if None not in names:
                entry |= {"key": key, "sources": names}
        described.append(entry)
        saved.append(elements)
    for entry, place in zip((e for e in described if "dtype" in e), places([a.nbytes for a in saved])):
        entry["at"] = place
    return described, saved


def find_constants(
    described: Sequence[Mapping[str, Any]], graph: Graph, saved: memoryview, weights: WeightCache
) -> list[Array]:
    """The memory of a program's constants, contiguous: of the graph's own, or of the blob.

    Args:
        described: by :func:`describe_constants`.
        graph: the partition's.
        saved: the arrays in the blob.
        weights: is offered what was packed, and has it already where another session restored it.

    Raises:
        SavedStateError: a constant is missing, or not of the expected size.
    """
    in_graph = {value.name: array for value, array in graph.constants.items()}
    found = []
    for entry in described:
        if "graph" in entry:
            found.append(_part_of_constant(entry, in_graph))
            continue
        dtype = DType(entry["dtype"]).numpy
        shape, at = tuple(entry["shape"]), entry["at"]
        if at < 0 or min(shape, default=0) < 0 or at + prod(shape) * dtype.itemsize > saved.nbytes:
            raise SavedStateError(f"an array {dtype}{list(shape)} at byte {at} is not among {saved.nbytes} bytes")
        array: Array = np.ndarray(shape, dtype, saved, at)
        if "key" in entry:
            sources = [in_graph.get(name) for name in entry["sources"]]
            present = [source for source in sources if source is not None]
            if len(present) < len(sources):
                raise SavedStateError(f"constants are missing: {', '.join(entry['sources'])}")
            array = weights.offer(entry["key"], present, array)
        found.append(array)
    return found


def _part_of_constant(entry: Mapping[str, Any], in_graph: Mapping[str, Array]) -> Array:
    name, offset, size = entry["graph"], entry["offset"], entry["bytes"]
    constant = in_graph.get(name)
    if constant is None:
        raise SavedStateError(f"the constant {name!r} is missing")
    if offset < 0 or size < 0 or offset + size > constant.nbytes:
        raise SavedStateError(
            f"the constant {name!r} has {constant.nbytes} bytes, expected {size} from byte {offset} on"
        )
    elements: Array = np.ascontiguousarray(constant).reshape(-1).view(np.uint8)
    return elements[offset : offset + size]


def _memory(storage: Storage) -> tuple[Array, Array]:
    """The elements of a constant, contiguous, and the constant."""
    if not isinstance(storage.keep, tuple):
        raise TypeError(f"the storage of a constant is kept by {type(storage.keep).__name__}, expected its arrays")
    elements, array = storage.keep
    return elements, array


class _GraphConstants:
    """The constants of a graph by identity, and by address: what was known before the run may be a view of one."""

    def __init__(self, graph: Graph) -> None:
        self.names = {id(array): value.name for value, array in graph.constants.items()}
        self._places = sorted(
            (array.ctypes.data, array.nbytes, value.name)
            for value, array in graph.constants.items()
            if array.flags.c_contiguous
        )
        self._starts = [start for start, _, _ in self._places]

    def find(self, elements: Array, array: Array) -> tuple[str, int] | None:
        """The name of the constant that this memory belongs to, and how many bytes from its start."""
        if id(array) in self.names:
            return self.names[id(array)], 0
        address = elements.ctypes.data
        number = bisect_right(self._starts, address) - 1
        if number < 0 or not elements.nbytes:
            return None
        start, size, name = self._places[number]
        return (name, address - start) if address + elements.nbytes <= start + size else None
