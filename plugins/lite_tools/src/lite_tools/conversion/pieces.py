"""The state that backends save for a model file: equal pieces and each weight are stored once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from hashlib import sha256
from types import MappingProxyType
from typing import Any

import numpy as np

from lite_core.container import PackedConstant
from lite_core.ir import Graph, PanelLayout, SavedWeights

__all__ = ["Pieces"]

Array = np.ndarray[Any, Any]

#: Minimum size of a constant that is stored in panels: reading a smaller one twice costs nothing.
_MIN_PACKED_ELEMENTS = 1024


class Pieces:
    """The sections for saved pieces; equal pieces share a section, even of different backends.

    Args:
        graph: the graph of the file, whose constants may be stored in the order that programs read.
    """

    def __init__(self, graph: Graph) -> None:
        self._constants = {id(array) for array in graph.constants.values()}
        self._names: dict[tuple[str, bytes], str] = {}
        self._sections: dict[str, bytes | memoryview] = {}
        self._packed: dict[tuple[int, PanelLayout], tuple[int, PackedConstant]] = {}

    def add(self, piece: bytes | memoryview | SavedWeights, constants: Mapping[str, Array]) -> str:
        """Add a piece and return the name of its section: ``code/N``, ``weights/N`` or ``packed/N``.

        Args:
            piece: code, or weights.
            constants: the constants of the partition's graph, by name.
        """
        if not isinstance(piece, SavedWeights):
            return self._section("code", piece)
        array = constants.get(piece.constant)
        if array is None or piece.layout is None or not self._is_packed(piece, array):
            return self._section("weights", piece.data)
        key = (id(array), piece.layout)
        number, _ = self._packed.setdefault(key, (len(self._packed), PackedConstant(array, piece.layout, piece.data)))
        return f"packed/{number}"

    def _section(self, kind: str, content: bytes | memoryview) -> str:
        number = len(self._sections)
        name = self._names.setdefault((kind, sha256(content).digest()), f"{kind}/{number}")
        self._sections.setdefault(name, content)
        return name

    def _is_packed(self, piece: SavedWeights, array: Array) -> bool:
        """Return True if a constant of the file's graph can be made from the piece, bit for bit."""
        layout = piece.layout
        assert layout is not None
        if id(array) not in self._constants or array.dtype != np.float32 or array.size < _MIN_PACKED_ELEMENTS:
            return False
        layout.check(array.size)
        again = np.empty(array.shape, np.float32)
        layout.unpack(np.frombuffer(piece.data, np.float32).reshape(layout.shape), again)
        return again.tobytes() == np.ascontiguousarray(array).tobytes()

    @property
    def sections(self) -> Mapping[str, bytes | memoryview]:
        """The piece of each section, by name, without those of :attr:`packed`."""
        return MappingProxyType(self._sections)

    @property
    def packed(self) -> Sequence[PackedConstant]:
        """The constants of the sections ``packed/0``, ``packed/1``, ..."""
        return [constant for _, constant in self._packed.values()]

    def size(self, names: Set[str]) -> int:
        """Return the total size, in bytes, of the sections that are stored besides the constants."""
        return sum(memoryview(self._sections[name]).nbytes for name in names if name in self._sections)
