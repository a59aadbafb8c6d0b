"""Prepared weights, kept once for all plans and sessions of the process."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from lite_cpu.aligned import aligned_empty, is_aligned
from lite_cpu.tensors import ABSOLUTE, Storage

__all__ = ["WeightCache"]

Array = np.ndarray[Any, Any]


class WeightCache:
    """Arrays made from constants, found again by the identity of those constants.

    An entry lives as long as a program uses it: the cache itself keeps nothing alive.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: dict[tuple[Hashable, ...], tuple[list[weakref.ref[Array]], weakref.ref[Array]]] = {}
        self._kept: dict[tuple[Hashable, int], Array] = {}
        self._storages: weakref.WeakValueDictionary[int, Storage] = weakref.WeakValueDictionary()

    def storage(self, array: Array) -> Storage:
        """The memory of a constant, one object for all programs that use the array: an address is slow to ask for."""
        # A storage keeps its array alive: while it is found under an id, no other array can have that id.
        found = self._storages.get(id(array))
        if found is None:
            elements = np.ascontiguousarray(array)
            found = Storage(elements.nbytes, ABSOLUTE, elements.ctypes.data, (elements, array))
            self._storages[id(array)] = found
        return found

    def get(self, key: Hashable, sources: Sequence[Array], make: Callable[[], Array]) -> Array:
        """What ``make`` returned for these source arrays and this key, or calls it."""
        full = (key, *map(id, sources))
        with self._lock:
            entry = self._entries.get(full)
            # NOTE: an id is taken again after its object is gone: the sources must be the very same objects.
            if entry is not None and all(ref() is s for ref, s in zip(entry[0], sources)):
                made = entry[1]()
                if made is not None:
                    return made
            array = _owned(make(), sources)
            forget = lambda _: self._entries.pop(full, None)  # noqa: E731
            self._entries[full] = ([weakref.ref(s) for s in sources], weakref.ref(array, forget))
            return array

    def kept(self, key: Hashable, source: Array, make: Callable[[Array], Array]) -> Array:
        """What ``make`` returned for ``source``, kept as long as ``source`` is: others may be made from it."""
        full = (key, id(source))
        with self._lock:
            if full not in self._kept:
                self._kept[full] = make(source)
                weakref.finalize(source, self._kept.pop, full, None)
            return self._kept[full]

    @property
    def kept_entries(self) -> int:
        """How many arrays are kept with their sources."""
        return len(self._kept)


def _owned(array: Array, sources: Sequence[Array]) -> Array:
    """Aligned to a cache line, and with memory and a life of its own."""
    if is_aligned(array) and not any(np.may_share_memory(array, source) for source in sources):
        return array
    aligned = aligned_empty(array.shape, array.dtype)
    np.copyto(aligned, array)
    return aligned
