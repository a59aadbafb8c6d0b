"""Prepared weights, kept once for all plans and sessions of the process."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from lite_compiler.tensors import dense_strides
from lite_core.ir import DType
from lite_cpu.aligned import aligned_empty, is_aligned
from lite_cpu.tensors import ABSOLUTE, Storage, Tensor

__all__ = ["WeightCache"]

Array = np.ndarray[Any, Any]


class _Constant(Storage):
    """The memory of an array, and what a tensor of all of it is like."""

    __slots__ = ("dtype", "shape", "strides")

    def __init__(self, array: Array) -> None:
        elements = np.ascontiguousarray(array)
        super().__init__(elements.nbytes, ABSOLUTE, elements.ctypes.data, (elements, array))
        self.dtype, self.shape, self.strides = DType.of(array), array.shape, dense_strides(array.shape)


class _Table:
    """Arrays by a key and by the identity of the arrays that they were made from; keeps none of them alive."""

    def __init__(self) -> None:
        self._entries: dict[tuple[Hashable, ...], tuple[list[weakref.ref[Array]], weakref.ref[Array]]] = {}

    def find(self, key: Hashable, sources: Sequence[Array]) -> Array | None:
        entry = self._entries.get((key, *map(id, sources)))
        # NOTE: an id is taken again after its object is gone: the sources must be the very same objects.
        if entry is None or not all(ref() is source for ref, source in zip(entry[0], sources)):
            return None
        return entry[1]()

    def keep(self, key: Hashable, sources: Sequence[Array], made: Array) -> None:
        full = (key, *map(id, sources))

        def forget(gone: weakref.ref[Array]) -> None:
            if full in self._entries and self._entries[full][1] is gone:
                del self._entries[full]

        self._entries[full] = ([weakref.ref(source) for source in sources], weakref.ref(made, forget))

    def items(self) -> Iterator[tuple[Hashable, list[Array], Array]]:
        """Key, sources, and what was made, where they are all still there."""
        for (key, *_), (refs, ref) in list(self._entries.items()):
            made, sources = ref(), [source for source in [ref() for ref in refs] if source is not None]
            if made is not None and len(sources) == len(refs):
                yield key, sources, made


class _Origin(NamedTuple):
    """Where an array comes from: another one, and how it was made from that."""

    array: Array
    how: Hashable


class WeightCache:
    """Arrays made from constants, found again by the identity of those constants.

    An entry lives as long as a program uses it: the cache itself keeps nothing alive, but see :meth:`derived`.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._made = _Table()
        self._offered = _Table()
        self._held: dict[int, Array] = {}
        self._derived: weakref.WeakValueDictionary[Hashable, Array] = weakref.WeakValueDictionary()
        self._kept: dict[Hashable, Array | None] = {}
        self._origins: dict[int, tuple[weakref.ref[Array], Hashable]] = {}
        self._constants: weakref.WeakValueDictionary[int, _Constant] = weakref.WeakValueDictionary()

    def tensor(self, array: Array) -> Tensor:
        """A constant as a tensor, of one storage for all programs that use the array: an address is slow to ask for."""
        # A constant keeps its array alive: while it is found under an id, no other array can have that id.
        found = self._constants.get(id(array))
        if found is None:
            found = self._constants[id(array)] = _Constant(array)
        return Tensor(found, found.dtype, found.shape, found.strides)

    def get(self, key: Hashable, sources: Sequence[Array], make: Callable[[], Array]) -> Array:
        """What ``make`` returned for these source arrays and this key, or calls it."""
        origins = [self.origin(s) for s in sources]
        full, arrays = (key, *(how for _, how in origins)), [array for array, _ in origins]
        with self._lock:
            made = self._made.find(full, arrays)
            if made is None:
                made = self._offered.find(str(full), arrays)
                if made is None:
                    made = _owned(make(), sources)
                self._made.keep(full, arrays, made)
            return made

    def offer(self, text: str, sources: Sequence[Array], array: Array) -> Array:
        """Give what :meth:`get` would make, aligned. It is kept as long as the constants are.

        Args:
            text: what :meth:`texts` told of the array when it was saved.
            sources: the constants that it was made from.
            array: what was made; usually mapped from the file that the constants are mapped from.

        Returns:
            ``array``, or what was offered before in its place.
        """
        with self._lock:
            found = self._offered.find(text, sources)
            if found is not None and (found.shape, found.dtype) == (array.shape, array.dtype):
                return found
            self._offered.keep(text, sources, array)
            if sources:
                self._held[id(array)] = array
                weakref.finalize(sources[0], self._held.pop, id(array), None)
            return array

    def texts(self) -> dict[int, tuple[str, list[Array]]]:
        """For what :meth:`get` returned, by its id: a text that says how it was made, and of which constants."""
        with self._lock:
            found = [*self._made.items(), *self._offered.items()]
        return {id(made): (str(key), sources) for key, sources, made in found}

    def derived(self, how: Hashable, source: Array, make: Callable[[Array], Array]) -> Array:
        """What ``make`` returned for ``source``, as long as something uses that; made again when it is needed again.

        What was packed of it is found again by ``source`` all the same: most weights that are widened are then
        packed, and only the panels need to stay in memory. What had to be made twice is kept as long as its source:
        there will be more plans then, and each should take no longer than one of plain weights.

        Args:
            how: tells apart what is made of one source, in the same words in every process.
            source: a constant, or derived itself.
            make: makes an array.
        """
        origin, before = self.origin(source)
        how = how if before is None else (before, how)
        key = (how, id(origin))
        with self._lock:
            made = self._derived.get(key)
            # NOTE: an id is taken again after its object is gone.
            if made is not None and self.origin(made).array is origin:
                return made
            made = make(source)
            if np.may_share_memory(made, source):
                return made  # costs nothing to make again, and would keep its source alive
            self._derived[key] = made
            self._origins[id(made)] = (weakref.ref(origin), how)
            weakref.finalize(made, self._origins.pop, id(made), None)
            if key not in self._kept:
                self._kept[key] = None
                weakref.finalize(origin, self._kept.pop, key, None)
            else:
                self._kept[key] = made
            return made

    def origin(self, array: Array) -> _Origin:
        """The constant that an array was derived from and how, or the array itself and None."""
        found = self._origins.get(id(array))
        source = None if found is None else found[0]()
        return _Origin(array, None) if found is None or source is None else _Origin(source, found[1])


def _owned(array: Array, sources: Sequence[Array]) -> Array:
    """Aligned to a cache line, and with memory and a life of its own."""
    if is_aligned(array) and not any(np.may_share_memory(array, source) for source in sources):
        return array
    aligned = aligned_empty(array.shape, array.dtype)
    np.copyto(aligned, array)
    return aligned
