"""Constants on a device; each array is uploaded once for all sessions of the process."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from lite_core.forking import new_lock
from lite_core.ir import TensorType
from lite_opencl.device.memory import Allocation, DeviceArray, DeviceMemory

__all__ = ["ConstantPool"]

Array = np.ndarray[Any, Any]

#: The key of an array that is uploaded unchanged.
_PLAIN = "plain"


class _Entry(NamedTuple):
    """Weak references to an upload's source arrays and to its allocation, and its type."""

    sources: list[weakref.ref[Any]]
    allocation: weakref.ref[Allocation]
    type: TensorType


class ConstantPool:
    """Uploads of constants and of arrays packed from them, found again by the identity of the source arrays.

    The pool keeps nothing alive: an upload lives as long as an executable refers to it.
    """

    def __init__(self, memory: DeviceMemory) -> None:
        self._memory = memory
        self._lock = new_lock()
        self._entries: dict[tuple[Hashable, ...], _Entry] = {}

    def get(self, key: Hashable, sources: Sequence[Any], make: Callable[[], Array]) -> DeviceArray:
        """Return the upload of the result of ``make``, which is called at most once while the upload is in use.

        Args:
            key: distinguishes arrays that are made from the same sources, for example ``("packed", 4)``.
            sources: the arrays that the uploaded array is made from.
            make: returns the array to upload, of any shape and type, which must not change afterwards.
        """
        full = (key, *map(id, sources))
        with self._lock:
            found = self._entries.get(full)
            # NOTE: Python reuses an id after its object is gone, so the sources are compared by identity, too.
            if found is not None and all(ref() is source for ref, source in zip(found.sources, sources)):
                allocation = found.allocation()
                if allocation is not None:
                    return DeviceArray(allocation, 0, found.type)
            upload = self._memory.constant(make())
            gone = weakref.ref(upload.allocation, self._forget(full))
            self._entries[full] = _Entry([weakref.ref(source) for source in sources], gone, upload.type)
            return upload

    def plain(self, array: Array) -> DeviceArray:
        """Return the upload of an unchanged array."""
        return self.get(_PLAIN, [array], lambda: array)

    def find_plain(self, array: Array) -> Allocation | None:
        """Return the allocation of an array's unchanged elements, or None if they are not on the device."""
        with self._lock:
            found = self._entries.get((_PLAIN, id(array)))
            is_same = found is not None and found.sources[0]() is array
            return found.allocation() if found is not None and is_same else None

    def _forget(self, full: tuple[Hashable, ...]) -> Callable[[weakref.ref[Allocation]], None]:
        def forget(gone: weakref.ref[Allocation]) -> None:
            entry = self._entries.get(full)
            if entry is not None and entry.allocation is gone:
                del self._entries[full]

        return forget
