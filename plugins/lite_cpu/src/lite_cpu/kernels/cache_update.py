"""Writing new positions into a cache, in place if the result is in the memory of the old one."""

from __future__ import annotations

from dataclasses import dataclass

from lite_core.ir import DType
from lite_cpu.emitter import Emitter, Pointer, Pointers, Val
from lite_cpu.kernels.base import Kernel
from lite_cpu.kernels.gather import copy_row

__all__ = ["PARAMETERS", "CacheUpdate"]

I64 = DType.INT64

#: Order of the parameters; strides in elements. A line of the new cache has ``size`` positions of ``length`` elements,
#: of which the old one has ``old``, and there are ``count`` new ones. A row of the batch has ``inner`` lines.
PARAMETERS = ("inner", "size", "old", "count", "length", "fault", "new_batch", "new_line", "new_position")


@dataclass(frozen=True)
class CacheUpdate(Kernel):
    """Copy of a cache with new positions or, if both caches begin at one address, the new positions only.

    Pointers: new cache [batch, inner, size, length], new positions [batch, inner, count, length], old cache
    [batch, inner, old, length]; with ``strided`` the strides (int64) of the first two dimensions of the old cache and
    of the new one, which are contiguous otherwise; with ``starts`` these (int64, one for each row of the batch) and the
    fault. A work item is a line.

    Attributes:
        itemsize: bytes of an element.
        starts: the index of the first new position is given; else they come behind the old ones.
        circular: positions behind the end continue at the beginning.
        strided: strides are given.
    """

    itemsize: int
    starts: bool
    circular: bool
    strided: bool

    def emit(self, k: Emitter) -> None:
        dtype = DType(f"uint{8 * self.itemsize}")
        with k.kernel(self.symbol) as (pointers, params, begin, end, _):
            p = {name: params[i] for i, name in enumerate(PARAMETERS)}
            result, new, old = (pointers.tensor(i, dtype) for i in range(3))
            size, length, inner = p["size"], p["length"], p["inner"]
            moves = _address(k, old).ne(_address(k, result))
            with k.loop(begin, end) as item:
                batch, line = item / inner, item % inner
                source = old[self._line(pointers, 3, batch, line, inner, p["old"] * length)]
                target = result[self._line(pointers, 4, batch, line, inner, size * length)]
                with k.if_(moves):
                    copy_row(k, source, target, p["old"] * length)
                added = new[batch * p["new_batch"] + line * p["new_line"]]
                start = p["old"]
                if self.starts:
                    first = 3 + 2 * self.strided
                    start = pointers.tensor(first, I64)[batch].load()
                    outside = start < 0 if self.circular else (start < 0) | (start + p["count"] > size)
                    with k.if_(outside):
                        fault = pointers.tensor(first + 1, I64)
                        fault.store(p["fault"])
                        fault[1].store(start)
                with k.loop(0, p["count"]) as i:
                    position = start + i
                    if self.circular:
                        position = (position % size + size) % size
                    with k.if_((position >= 0) & (position < size)):
                        copy_row(k, added[i * p["new_position"]], target[position * length], length)

    def _line(self, pointers: Pointers, tensor: int, batch: Val, line: Val, inner: Val, elements: Val) -> Val:
        """Return the offset of a line; ``tensor`` is the number of the strides, ``elements`` a line's size."""
        if not self.strided:
            return (batch * inner + line) * elements
        strides = pointers.tensor(tensor, I64)
        return batch * strides.load() + line * strides[1].load()


def _address(k: Emitter, pointer: Pointer) -> Val:
    """Return an address as a number."""
    return Val(k, k.b.ptrtoint(pointer.ir, k.index(0).ir.type), I64)
