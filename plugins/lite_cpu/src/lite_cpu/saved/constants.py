"""Saved references to the constants of a program: constants of the graph by name, packed arrays as pieces."""

from __future__ import annotations

import zlib
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from lite_core.ir import DType, Graph
from lite_cpu.aligned import LINE_BYTES
from lite_cpu.lowering.weights import WeightCache
from lite_cpu.saved.frame import SavedStateError
from lite_cpu.tensors import Storage

__all__ = ["describe_constants", "find_constants"]

Array = np.ndarray[Any, Any]

_SAMPLE_BYTES = 256


def describe_constants(
    storages: Sequence[Storage], graph: Graph, weights: WeightCache
) -> tuple[list[dict[str, Any]], list[memoryview]]:
    """Return one entry per storage, by which :func:`find_constants` finds the memory again, and the pieces to save.

    Args:
        storages: memory of constants.
        graph: the partition's graph; its constants are referred to by name and not saved.
        weights: the cache that records which arrays were packed from which constants.
    """
    in_graph = _GraphConstants(graph)
    texts = weights.texts()
    described: list[dict[str, Any]] = []
    pieces: list[memoryview] = []
    for storage in storages:
        elements, array = _memory(storage)
        known = in_graph.find(elements, array)
        if known is not None:
            name, offset = known
            described.append({"graph": name, "offset": offset, "bytes": storage.bytes})
            continue
        piece = elements.reshape(-1).view(np.uint8).data
        entry: dict[str, Any] = {
            "dtype": DType.of(array).value,
            "shape": list(array.shape),
            "fingerprint": _fingerprint(piece),
        }
        if id(array) in texts:
            key, sources = texts[id(array)]
            names = [in_graph.names.get(id(source)) for source in sources]
            if None not in names:
                entry |= {"key": key, "sources": names}
        described.append(entry)
        pieces.append(piece)
    return described, pieces


def find_constants(
    described: Sequence[Mapping[str, Any]], graph: Graph, pieces: Sequence[memoryview], weights: WeightCache
) -> list[Array]:
    """Return the contiguous memory of a program's constants, which are constants of the graph or pieces.

    Args:
        described: the entries made by :func:`describe_constants`.
        graph: the partition's graph.
        pieces: the saved pieces, in their order.
        weights: the cache that receives packed arrays; if another session has restored one, that one is used.

    Raises:
        SavedStateError: a constant or a piece is missing, or not of the expected size.
    """
    expected = sum("graph" not in entry for entry in described)
    if len(pieces) != expected:
        raise SavedStateError(f"there are {len(pieces)} saved arrays, expected {expected}")
    rest = iter(pieces)
    in_graph = {value.name: array for value, array in graph.constants.items()}
    found = []
    for entry in described:
        if "graph" in entry:
            found.append(_part_of_constant(entry, in_graph))
            continue
        array = _saved_array(entry, next(rest))
        if "key" in entry:
            sources = [in_graph.get(name) for name in entry["sources"]]
            present = [source for source in sources if source is not None]
            if len(present) < len(sources):
                raise SavedStateError(f"constants are missing: {', '.join(entry['sources'])}")
            array = weights.offer(entry["key"], present, array)
        found.append(array)
    return found


def _saved_array(entry: Mapping[str, Any], piece: memoryview) -> Array:
    dtype, shape = DType(entry["dtype"]).numpy, tuple(entry["shape"])
    if min(shape, default=0) < 0 or prod(shape) * dtype.itemsize != piece.nbytes:
        raise SavedStateError(f"a saved array has {piece.nbytes} bytes, which is no {dtype}{list(shape)}")
    if _fingerprint(piece) != entry["fingerprint"]:
        raise SavedStateError(f"a saved array {dtype}{list(shape)} is not the one that belongs there")
    array: Array = np.ndarray(shape, dtype, piece)
    if array.__array_interface__["data"][0] % LINE_BYTES:
        raise SavedStateError(f"a saved array {dtype}{list(shape)} does not begin at a multiple of {LINE_BYTES}")
    return array


def _fingerprint(piece: memoryview) -> int:
    """Return a checksum of both ends of an array, in constant time; the checksums of the file detect damage."""
    return zlib.crc32(piece[-_SAMPLE_BYTES:], zlib.crc32(piece[:_SAMPLE_BYTES]))


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
    """Return the contiguous elements in the storage of a constant, and the constant's array."""
    if not isinstance(storage.keep, tuple):
        raise TypeError(f"the storage of a constant is kept by {type(storage.keep).__name__}, expected its arrays")
    elements, array = storage.keep
    return elements, array


class _GraphConstants:
    """The constants of a graph by identity and by address; a tensor known before the run may be a view of one."""

    def __init__(self, graph: Graph) -> None:
        self.names = {id(array): value.name for value, array in graph.constants.items()}
        self._ranges = sorted(
            (array.ctypes.data, array.nbytes, value.name)
            for value, array in graph.constants.items()
            if array.flags.c_contiguous
        )
        self._starts = [start for start, _, _ in self._ranges]

    def find(self, elements: Array, array: Array) -> tuple[str, int] | None:
        """Return the name of the constant that this memory is part of, and the offset in it in bytes, or None."""
        if id(array) in self.names:
            return self.names[id(array)], 0
        address = elements.ctypes.data
        number = bisect_right(self._starts, address) - 1
        if number < 0 or not elements.nbytes:
            return None
        start, size, name = self._ranges[number]
        return (name, address - start) if address + elements.nbytes <= start + size else None
