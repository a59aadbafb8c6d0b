"""Constants on a device: each array is uploaded once for all sessions of the process."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from lite_core.ir import TensorType
from lite_opencl.device.memory import Allocation, DeviceArray, DeviceMemory

__all__ = ["ConstantPool"]

Array = np.ndarray[Any, Any]

#: The key of an array's own elements, of which nothing was made.
_PLAIN = "plain"


class _Entry(NamedTuple):
    """The arrays that an upload was made from, the upload, of which none is kept alive, and its type."""

    sources: list[weakref.ref[Any]]
    allocation: weakref.ref[Allocation]
    type: TensorType


class ConstantPool:
    """Uploads of constants and of what is made from them, found again by the identity of the arrays.

    The pool keeps nothing alive: an upload lives as long as an executable refers to it.
    """

    def __init__(self, memory: DeviceMemory) -> None:
        self._memory = memory
        self._lock = threading.Lock()
        self._entries: dict[tuple[Hashable, ...], _Entry] = {}

    def get(self, key: Hashable, sources: Sequence[Any], make: Callable[[], Array]) -> DeviceArray:
        """The upload of what ``make`` returns, made at most once while it is used.

        Args:
            key: tells apart what is made of the same arrays, for example ``("packed", 4)``.
            sources: the arrays that it is made from.
            make: makes the array to upload, of any shape and type. It is not to change any more.
        """
        full = (key, *map(id, sources))
        with self._lock:
            found = self._entries.get(full)
            # NOTE: an id is taken again after its object is gone: the sources must be the very same objects.
            if found is not None and all(ref() is source for ref, source in zip(found.sources, sources)):
                allocation = found.allocation()
                if allocation is not None:
                    return DeviceArray(allocation, 0, found.type)
            upload = self._memory.constant(make())
            gone = weakref.ref(upload.allocation, self._forget(full))
            self._entries[full] = _Entry([weakref.ref(source) for source in sources], gone, upload.type)
            return upload

    def plain(self, array: Array) -> DeviceArray:
        """The upload of an array as it is."""
        return self.get(_PLAIN, [array], lambda: array)

    def find_plain(self, array: Array) -> Allocation | None:
        """Where an array's own elements are, if they are on the device."""
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
