"""Cache of packed and converted weights, shared by all plans and sessions of the process."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from lite_compiler.tensors import dense_strides
from lite_core.container import stored_panels
from lite_core.forking import new_lock
from lite_core.ir import DType, PanelLayout, release_pages
from lite_cpu.aligned import aligned_empty, is_aligned
from lite_cpu.dot_panels import DotPanels
from lite_cpu.narrow_panels import NarrowPanels
from lite_cpu.tensors import ABSOLUTE, Storage, Tensor

__all__ = ["Derivation", "Recipe", "WeightCache", "WinogradRecipe"]

Array = np.ndarray[Any, Any]


class WinogradRecipe(NamedTuple):
    """Weights of Winograd's algorithm, which are made from the filters again where they are needed.

    Attributes:
        outputs: outputs of a tile in each dimension.
        lanes: elements of a vector register.
        vectors: vectors of a panel.
        shape: shape of the filters as a view of the constant: groups, columns, channels, height, width.
        strides: strides of the view, in elements.
        offset: beginning of the view, in elements.
    """

    outputs: int
    lanes: int
    vectors: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int

    @property
    def packed_shape(self) -> tuple[int, int]:
        """The shape of the weights: for each point of a tile the panels of a matrix [channels, columns]."""
        columns, channels = self.shape[1:3]
        return (self.outputs + 2) ** 2, channels * -(-columns // self.lanes) * self.lanes


#: A description by which a packed array can be made from its sources without the compiler.
Recipe = PanelLayout | WinogradRecipe | DotPanels | NarrowPanels


class Derivation(NamedTuple):
    """The derivation of a packed array.

    Attributes:
        text: identifies how it was made, in every process.
        sources: the constants that it was made from.
        recipe: how to make it again from the sources; None if only the compiler can.
    """

    text: str
    sources: list[Array]
    recipe: Recipe | None


class _Constant(Storage):
    """The memory of an array, with the element type, shape and strides of a tensor of the whole array."""

    __slots__ = ("dtype", "shape", "strides")

    def __init__(self, array: Array) -> None:
        elements = np.ascontiguousarray(array)
        super().__init__(elements.nbytes, ABSOLUTE, elements.ctypes.data, (elements, array))
        self.dtype, self.shape, self.strides = DType.of(array), array.shape, dense_strides(array.shape)


class _Table:
    """Arrays by a key and by the identity of their source arrays. The table keeps no array alive."""

    def __init__(self) -> None:
        self._entries: dict[tuple[Hashable, ...], tuple[list[weakref.ref[Array]], weakref.ref[Array]]] = {}

    def find(self, key: Hashable, sources: Sequence[Array]) -> Array | None:
        entry = self._entries.get((key, *map(id, sources)))
        # NOTE: ids are reused after objects are freed, so the sources must be the same objects.
        if entry is None or not all(ref() is source for ref, source in zip(entry[0], sources)):
            return None
        return entry[1]()

    def add(self, key: Hashable, sources: Sequence[Array], array: Array) -> None:
        full_key = (key, *map(id, sources))

        def remove(freed: weakref.ref[Array]) -> None:
            if full_key in self._entries and self._entries[full_key][1] is freed:
                del self._entries[full_key]

        self._entries[full_key] = ([weakref.ref(source) for source in sources], weakref.ref(array, remove))

    def items(self) -> Iterator[tuple[Hashable, list[Array], Array]]:
        """Yield key, sources and array of the entries whose arrays are all alive."""
        for (key, *_), (refs, ref) in list(self._entries.items()):
            array, sources = ref(), [source for source in [ref() for ref in refs] if source is not None]
            if array is not None and len(sources) == len(refs):
                yield key, sources, array


class _Origin(NamedTuple):
    """The constant that an array was derived from, and the derivation; the array itself and None if not derived."""

    array: Array
    derivation: Hashable


class WeightCache:
    """Arrays created from constants, found by the identity of those constants.

    An entry lives as long as a program uses it. The cache itself keeps no array alive, except as described in
    :meth:`offer` and :meth:`derived`.
    """

    def __init__(self) -> None:
        self._lock = new_lock()
        self._made = _Table()
        self._offered = _Table()
        #: Offered arrays by id, kept alive until their first source is freed.
        self._alive: dict[int, Array] = {}
        self._derived: weakref.WeakValueDictionary[Hashable, Array] = weakref.WeakValueDictionary()
        #: Arrays that were derived twice, kept alive until their source is freed; None after the first time.
        self._rederived: dict[Hashable, Array | None] = {}
        self._origins: dict[int, tuple[weakref.ref[Array], Hashable]] = {}
        self._recipes: dict[int, Recipe] = {}
        self._constants: weakref.WeakValueDictionary[int, _Constant] = weakref.WeakValueDictionary()

    def tensor(self, array: Array) -> Tensor:
        """Return a constant as a tensor. All programs share one storage, because reading an array's address is slow."""
        # A constant keeps its array alive: while it is in the table, no other array can get that id.
        found = self._constants.get(id(array))
        if found is None:
            found = self._constants[id(array)] = _Constant(array)
        return Tensor(found, found.dtype, found.shape, found.strides)

    def get(
        self, key: Hashable, sources: Sequence[Array], make: Callable[[], Array], recipe: Recipe | None = None
    ) -> Array:
        """Return the array for these sources and this key; ``make`` creates it if it does not exist.

        If ``recipe`` is a layout in which a model file stores the source, the array is the one in the file.
        """
        origins = [self.origin(s) for s in sources]
        full_key, arrays = (key, *(origin.derivation for origin in origins)), [origin.array for origin in origins]
        with self._lock:
            array = self._made.find(full_key, arrays)
            if array is None:
                array = self._offered.find(str(full_key), arrays)
                if array is None and isinstance(recipe, PanelLayout):
                    array = stored_panels(sources[0], recipe)
                if array is None:
                    array = _owned(make(), sources)
                    for source in arrays:
                        release_pages(source)
                self._made.add(full_key, arrays, array)
                if recipe is not None and all(array is source for array, source in zip(arrays, sources)):
                    self._remember(array, recipe)
            return array

    def _remember(self, array: Array, recipe: Recipe) -> None:
        if id(array) not in self._recipes:
            self._recipes[id(array)] = recipe
            weakref.finalize(array, self._recipes.pop, id(array), None)

    def offered(self, text: str, sources: Sequence[Array]) -> Array | None:
        """Return the array that was offered for these sources, or None."""
        with self._lock:
            return self._offered.find(text, sources)

    def offer(self, text: str, sources: Sequence[Array], array: Array, recipe: Recipe | None = None) -> Array:
        """Add a restored array that :meth:`get` returns instead of creating it. It lives as long as the constants.

        Args:
            text: the text of the array's derivation when it was saved.
            sources: the constants that the array was created from.
            array: the aligned array, usually mapped from the file that the constants are mapped from.
            recipe: how to make it again, if it can be.

        Returns:
            ``array``, or the equivalent array that was offered before.
        """
        with self._lock:
            found = self._offered.find(text, sources)
            if found is not None and (found.shape, found.dtype) == (array.shape, array.dtype):
                return found
            self._offered.add(text, sources, array)
            if recipe is not None:
                self._remember(array, recipe)
            if sources:
                self._alive[id(array)] = array
                weakref.finalize(sources[0], self._alive.pop, id(array), None)
            return array

    def derivations(self) -> dict[int, Derivation]:
        """Return the derivation of each array of :meth:`get`, by its id."""
        with self._lock:
            entries = [*self._made.items(), *self._offered.items()]
            return {id(a): Derivation(str(key), sources, self._recipes.get(id(a))) for key, sources, a in entries}

    def derived(self, derivation: Hashable, source: Array, make: Callable[[Array], Array]) -> Array:
        """Return the array that ``make`` derives from ``source``. It lives while it is used, and is recreated later.

        Arrays packed from it are found by ``source`` nevertheless: most widened weights are packed afterwards, and then
        only the panels need to stay in memory. An array that had to be derived twice is kept as long as its source,
        because more plans are likely to follow, and compiling each should take no longer than with plain weights.

        Args:
            derivation: distinguishes the arrays derived from one source; it must be the same in every process.
            source: a constant, or an array that is derived itself.
            make: derives the array.
        """
        origin, earlier = self.origin(source)
        derivation = derivation if earlier is None else (earlier, derivation)
        key = (derivation, id(origin))
        with self._lock:
            array = self._derived.get(key)
            # NOTE: ids are reused after objects are freed.
            if array is not None and self.origin(array).array is origin:
                return array
            array = make(source)
            release_pages(source)
            if np.may_share_memory(array, source):
                return array  # a view is free to recreate, and would keep its source alive
            self._derived[key] = array
            self._origins[id(array)] = (weakref.ref(origin), derivation)
            weakref.finalize(array, self._origins.pop, id(array), None)
            if key not in self._rederived:
                self._rederived[key] = None
                weakref.finalize(origin, self._rederived.pop, key, None)
            else:
                self._rederived[key] = array
            return array

    def origin(self, array: Array) -> _Origin:
        """Return the constant that an array was derived from and the derivation, or the array itself and None."""
        found = self._origins.get(id(array))
        source = None if found is None else found[0]()
        return _Origin(array, None) if found is None or source is None else _Origin(source, found[1])


def _owned(array: Array, sources: Sequence[Array]) -> Array:
    """Return the array, or a copy if it is not aligned to a cache line or shares memory with a source."""
    if is_aligned(array) and not any(np.may_share_memory(array, source) for source in sources):
        return array
    aligned = aligned_empty(array.shape, array.dtype)
    np.copyto(aligned, array)
    return aligned
