"""Proposals of a region proposal network: decoded and clipped boxes, the best first (operator GenerateProposals)."""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import Any, NamedTuple

from lite_core.ir import DType
from lite_cpu.emitter import Emitter, Params, Pointer, Pointers, Val, Variable
from lite_cpu.kernels.base import Kernel
from lite_cpu.kernels.ranking import COUNTER_BYTES, append_scores, entry_of, number_of, sort_entries
from lite_cpu.vector_math import exp

__all__ = ["CollectProposals", "DecodeProposals", "ProposalSizes", "scratch_bytes"]

F32, I32, I64, U64 = DType.FLOAT32, DType.INT32, DType.INT64, DType.UINT64

#: The largest exponent: a region is at most 1000 / 16 times as large as its anchor.
_MOST_GROWTH = log(1000.0 / 16.0)


class ProposalSizes(NamedTuple):
    """The first parameters of the kernel: integers for a call, and values in the kernel.

    Attributes:
        anchors: anchors of a cell.
        cells: cells of an image.
        most: the most boxes of an image.
    """

    anchors: Any
    cells: Any
    most: Any


def scratch_bytes(sizes: ProposalSizes) -> int:
    """Return the scratch memory of a thread: two lists of entries, and the decoded boxes with their scores."""
    return int(COUNTER_BYTES + 16 * (sizes.anchors * sizes.cells + 1) + 20 * sizes.most)


@dataclass(frozen=True)
class DecodeProposals(Kernel):
    """The boxes of an image that are large enough, in the order in which suppression takes them.

    Pointers: scores [images, cells, anchors], offsets [images, cells, anchors, 4], sizes of the images [images, 2],
    anchors and variances [cells, anchors, 4], boxes [images, most, 4], their scores, and numbers [images, most] that
    fall from box to box and are 0 behind the last one. Parameters: :class:`ProposalSizes`, the smallest width and
    height, and the offset of corners, both float32. A work item is an image. Scratch: :func:`scratch_bytes`.

    Of equal scores the one with the higher index comes first; NaN comes first of all.
    """

    def emit(self, k: Emitter) -> None:
        with k.kernel(self.symbol) as (pointers, params, begin, end, scratch):
            sizes = ProposalSizes(*(params[i] for i in range(3)))
            count = sizes.anchors * sizes.cells
            entries = scratch[COUNTER_BYTES].cast(U64)
            other = entries[count + 1]
            found = other[count + 1].cast(F32)
            with k.loop(begin, end) as image:
                size, kept = k.variable(k.index(0)), k.variable(k.index(0))
                scores = pointers.tensor(0, F32)[image * count]
                append_scores(k, scores, count, None, entries, size)
                with k.if_(size.get() > 0):
                    sort_entries(entries, other, scratch, size.get())
                with k.loop(0, k.minimum(size.get(), sizes.most)) as rank:
                    number = number_of(entries[rank].load())
                    self._decode(k, pointers, params, image, count, number, found, kept)
                # The scores fall already; only the order of equal ones is turned around, and NaN moved to the front.
                with k.loop(0, kept.get()) as i:
                    at = kept.get() - 1 - i
                    score = found[at * 5 + 4].load()
                    key = entry_of(score, at)
                    entries[i].store(score.is_nan().select(at.to(U64), key))
                with k.if_(kept.get() > 0):
                    sort_entries(entries, other, scratch, kept.get())
                self._write(k, pointers, image, sizes.most, entries, found, kept.get())

    def _decode(
        self,
        k: Emitter,
        pointers: Pointers,
        params: Params,
        image: Val,
        count: Val,
        number: Val,
        found: Pointer,
        kept: Variable,
    ) -> None:
        """Append a box and its score if the box is large enough."""
        least, offset = (params.number(3 + i, F32) for i in range(2))
        delta = pointers.tensor(1, F32)[(image * count + number) * 4]
        anchor, variance = (pointers.tensor(i, F32)[number * 4] for i in (3, 4))
        limits = pointers.tensor(2, F32)[image * 2]
        corners, is_large = {}, None
        for axis in range(2):
            low, limit = anchor[axis].load(), limits[1 - axis].load()
            size = anchor[2 + axis].load() - low + offset
            center = variance[axis].load() * delta[axis].load() * size + low + size / 2.0
            growth = variance[2 + axis].load() * delta[2 + axis].load()
            grown = exp(k.minimum(growth, _MOST_GROWTH)) * size
            for at, corner in ((axis, center - grown / 2.0), (2 + axis, center + grown / 2.0 - offset)):
                corners[at] = k.maximum(k.minimum(corner, limit - offset), 0.0)
            extent = corners[2 + axis] - corners[axis] + offset
            fits = extent >= least
            fits = fits & ((offset <= 0.0) | (corners[axis] + extent / 2.0 <= limit))
            is_large = fits if is_large is None else is_large & fits
        assert is_large is not None
        with k.if_(is_large):
            box = found[kept.get() * 5]
            for at, corner in corners.items():
                box[at].store(corner)
            box[4].store(pointers.tensor(0, F32)[image * count + number].load())
            kept.set(kept.get() + 1)

    @staticmethod
    def _write(
        k: Emitter, pointers: Pointers, image: Val, most: Val, entries: Pointer, found: Pointer, kept: Val
    ) -> None:
        boxes, scores, order = (pointers.tensor(i, F32) for i in (5, 6, 7))
        with k.loop(0, kept) as i:
            box, at = found[number_of(entries[i].load()) * 5], image * most + i
            for corner in range(4):
                boxes[at * 4 + corner].store(box[corner].load())
            scores[at].store(box[4].load())
            order[at].store((most - i).to(F32))
        with k.loop(kept, most) as i:
            order[image * most + i].store(0.0)


@dataclass(frozen=True)
class CollectProposals(Kernel):
    """The regions that suppression has kept; an image without any gives one region of zeros.

    Pointers: boxes [images, most, 4], their scores, numbers of the kept ones (int32), their counts (int64), regions,
    scores of regions, number of regions of each image (int32), number of all regions (two int64, equal). Parameters:
    number of images, and most. There is one work item.
    """

    def emit(self, k: Emitter) -> None:
        with k.kernel(self.symbol) as (pointers, params, begin, end, _):
            boxes, scores = pointers.tensor(0, F32), pointers.tensor(1, F32)
            kept, counts = pointers.tensor(2, I32), pointers.tensor(3, I64)
            regions, found = pointers.tensor(4, F32), pointers.tensor(5, F32)
            rows = k.variable(k.index(0))
            with k.loop(begin, end):
                with k.loop(0, params[0]) as image:
                    count = counts[image].load()
                    with k.if_(count.eq(0)):
                        for corner in range(4):
                            regions[rows.get() * 4 + corner].store(0.0)
                        found[rows.get()].store(0.0)
                    with k.loop(0, count) as i:
                        at = image * params[1] + kept[image * params[1] + i].load().to(I64)
                        for corner in range(4):
                            regions[(rows.get() + i) * 4 + corner].store(boxes[at * 4 + corner].load())
                        found[rows.get() + i].store(scores[at].load())
                    count = k.maximum(count, 1)
                    pointers.tensor(6, I32)[image].store(count.to(I32))
                    rows.set(rows.get() + count)
                for output in range(2):
                    pointers.tensor(7, I64)[output].store(rows.get())
