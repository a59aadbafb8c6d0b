"""Saved references to the constants of a program: constants of the graph by name, packed arrays as pieces."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from hashlib import sha256
from math import prod
from typing import Any

import numpy as np

from lite_compiler.saved_weights import is_weight, sampled_checksum
from lite_core.ir import DType, Graph, PanelLayout, SavedWeights, release_pages
from lite_cpu.aligned import LINE_BYTES
from lite_cpu.dot_panels import DotPanels
from lite_cpu.lowering.weights import WeightCache, WinogradRecipe
from lite_cpu.machine_code.file_code import FileCode
from lite_cpu.narrow_panels import NarrowPanels
from lite_cpu.saved.frame import SavedStateError
from lite_cpu.tensors import Storage

__all__ = ["describe_constants", "find_constants", "names_read"]

Array = np.ndarray[Any, Any]

#: Descriptions by which arrays are made again when a program is restored, by their names in its entries.
_RECIPES: Mapping[str, type] = {"winograd": WinogradRecipe, "dots": DotPanels, "narrow": NarrowPanels}


def describe_constants(
    storages: Sequence[Storage], graph: Graph, weights: WeightCache
) -> tuple[list[dict[str, Any]], list[bytes | SavedWeights]]:
    """Return one entry per storage, by which :func:`find_constants` finds the memory again, and the pieces to save.

    Args:
        storages: memory of constants.
        graph: the partition's graph; its constants are referred to by name and not saved.
        weights: the cache that records which arrays were packed from which constants.
    """
    in_graph = _GraphConstants(graph)
    derivations = weights.derivations()
    described: list[dict[str, Any]] = []
    pieces: list[bytes | SavedWeights] = []
    for storage in storages:
        elements, array = _memory(storage)
        known = in_graph.find(elements, array)
        if known is not None:
            name, offset = known
            described.append({"graph": name, "offset": offset, "bytes": storage.bytes})
            continue
        entry: dict[str, Any] = {"dtype": DType.of(array).value, "shape": list(array.shape)}
        derivation = derivations.get(id(array))
        names = [in_graph.names.get(id(source)) for source in derivation.sources] if derivation else []
        recipe = None
        # NOTE: an array that is made from nothing, such as zeros, gets no key: it would serve models of other files.
        if derivation is not None and names and None not in names:
            entry |= {"key": derivation.text, "sources": names}
            recipe = derivation.recipe
        made_by = next((name for name, kind in _RECIPES.items() if isinstance(recipe, kind)), "")
        if made_by:
            described.append(entry | {made_by: recipe})
            continue
        data = elements.reshape(-1).view(np.uint8).data
        described.append(entry | {"fingerprint": _fingerprint(data, DType.of(array))})
        if isinstance(recipe, PanelLayout):
            pieces.append(SavedWeights(data, str(names[0]), recipe))
        else:
            # Integers may be indices or sizes, which count as code.
            pieces.append(SavedWeights(data) if is_weight(DType.of(array)) else bytes(data))
    return described, pieces


def names_read(described: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the names of the graph's constants whose elements :func:`find_constants` or the program itself reads.

    Panels of 4 bits are made from the bytes of the file, so that weights take no memory as arrays of elements.
    """
    plain = [entry["graph"] for entry in described if "graph" in entry]
    made = [
        name
        for entry in described
        if "fingerprint" not in entry and ("narrow" not in entry or NarrowPanels.read(entry["narrow"]).bits != 4)
        for name in entry.get("sources", [])
    ]
    return [*dict.fromkeys([*plain, *made])]


def find_constants(
    described: Sequence[Mapping[str, Any]],
    graph: Graph,
    pieces: Sequence[memoryview],
    weights: WeightCache,
    code: FileCode,
    threads: int,
) -> list[Array]:
    """Return the contiguous memory of a program's constants: constants of the graph, pieces, or made from constants.

    Args:
        described: the entries made by :func:`describe_constants`.
        graph: the partition's graph.
        pieces: the saved pieces, in their order.
        weights: the cache that receives packed arrays; if another session has restored one, that one is used.
        code: the program's code, which contains the kernels that make weights.
        threads: number of threads that make weights.

    Raises:
        SavedStateError: a constant or a piece is missing, or not of the expected size.
    """
    expected = sum("fingerprint" in entry for entry in described)
    if len(pieces) != expected:
        raise SavedStateError(f"there are {len(pieces)} saved arrays, expected {expected}")
    rest = iter(pieces)
    in_graph = {value.name: array for value, array in graph.constants.items()}
    found = []
    for entry in described:
        if "graph" in entry:
            found.append(_part_of_constant(entry, in_graph))
            continue
        array = _saved_array(entry, next(rest)) if "fingerprint" in entry else None
        if "key" in entry and entry["sources"]:
            sources = [in_graph.get(name) for name in entry["sources"]]
            present = [source for source in sources if source is not None]
            if len(present) < len(sources):
                raise SavedStateError(f"constants are missing: {', '.join(entry['sources'])}")
            if array is None:
                array = weights.offered(entry["key"], present)
            if array is None:
                array = _made(entry, present, code, threads)
                for source in present:
                    release_pages(source)
            array = weights.offer(entry["key"], present, array)
        if array is None:
            raise SavedStateError(f"an array is neither saved nor made from a constant: {entry}")
        found.append(array)
    return found


def _made(entry: Mapping[str, Any], sources: Sequence[Array], code: FileCode, threads: int) -> Array:
    """Make an array from its sources by its recipe."""
    if "dots" in entry:
        return DotPanels.read(entry["dots"]).pack(*sources)
    if "narrow" in entry:
        return NarrowPanels.read(entry["narrow"]).pack(*sources)
    from lite_cpu.winograd_preparation import prepare_winograd

    outputs, lanes, vectors, shape, strides, offset = entry["winograd"]
    recipe = WinogradRecipe(outputs, lanes, vectors, tuple(shape), tuple(strides), offset)
    return prepare_winograd(code.addresses[entry["maker"]], sources[0], recipe, threads, code.native)


def _saved_array(entry: Mapping[str, Any], piece: memoryview) -> Array:
    dtype, shape = DType(entry["dtype"]).numpy, tuple(entry["shape"])
    if min(shape, default=0) < 0 or prod(shape) * dtype.itemsize != piece.nbytes:
        raise SavedStateError(f"a saved array has {piece.nbytes} bytes, which is no {dtype}{list(shape)}")
    if _fingerprint(piece, DType(entry["dtype"])) != entry["fingerprint"]:
        raise SavedStateError(f"a saved array {dtype}{list(shape)} is not the one that belongs there")
    array: Array = np.ndarray(shape, dtype, piece)
    if array.__array_interface__["data"][0] % LINE_BYTES:
        raise SavedStateError(f"a saved array {dtype}{list(shape)} does not begin at a multiple of {LINE_BYTES}")
    return array


def _fingerprint(piece: memoryview, dtype: DType) -> int | str:
    """Return what identifies the content of an array: for weights a checksum of both ends, for others of all bytes."""
    return sampled_checksum(piece) if is_weight(dtype) else sha256(piece).hexdigest()


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
