"""Statistics of a value over many runs, in little memory: its extremes, and a histogram that grows with its range."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["Extremes", "Histogram"]

Array = np.ndarray[Any, Any]

#: The most bins that a histogram has. When its range needs more, pairs of neighbouring bins become one.
_MOST_BINS = 8192
#: Elements that are counted at a time, so that temporary arrays stay small.
_BLOCK = 1 << 18


class Extremes:
    """The smallest and the largest element of a value.

    Attributes:
        low: the smallest finite element so far, at most 0.
        high: the largest finite element so far, at least 0.
        not_finite: the number of elements that were NaN or infinite.
    """

    def __init__(self) -> None:
        self.low = self.high = 0.0
        self.not_finite = 0

    def add(self, array: Array) -> None:
        """Add the elements of an array."""
        if array.size:
            low, high = float(array.min()), float(array.max())
            if not np.isfinite(low) or not np.isfinite(high):
                array = self._finite(array)
                low, high = float(array.min(initial=0.0)), float(array.max(initial=0.0))
            self.low, self.high = min(self.low, low), max(self.high, high)

    def _finite(self, array: Array) -> Array:
        finite = np.isfinite(array)
        self.not_finite += int(array.size - finite.sum())
        found: Array = array[finite]
        return found


class Histogram(Extremes):
    """The number of elements of a value in each of many ranges of equal width.

    Bin i counts elements from ``i * width`` up to ``(i + 1) * width``; ``i`` may be negative. Zeros are counted apart:
    every quantization represents them exactly. Elements are counted in one pass, although their range is not known
    before: ``width`` is doubled when the range has become too large, by joining pairs of bins, which is exact.

    Attributes:
        counts: the number of elements in each bin, without zeros.
        first: the number of the first bin.
        width: the width of a bin; 0 before the first element that is not 0.
        zeros: the number of elements that are 0.
    """

    def __init__(self) -> None:
        super().__init__()
        self.counts: Array = np.zeros(0, np.int64)
        self.first = 0
        self.width = 0.0
        self.zeros = 0

    def add(self, array: Array) -> None:
        """Add the elements of an array."""
        before = self.not_finite
        super().add(array)
        if self.not_finite > before:
            array = array[np.isfinite(array)]
        widest = max(self.high, -self.low)
        if not widest:
            self.zeros += array.size
            return
        if not self.width:
            # A power of two: bins then have exact edges, also after they were joined.
            self.width = float(2.0 ** np.ceil(np.log2(widest / (_MOST_BINS / 2))))
        while (self.high - self.low) / self.width > _MOST_BINS - 2:
            self._join_pairs()
        self._cover(int(np.floor(self.low / self.width)), int(np.floor(self.high / self.width)))
        flat = array.reshape(-1)
        for start in range(0, flat.size, _BLOCK):
            block = flat[start : start + _BLOCK]
            zeros = block.size - int(np.count_nonzero(block))
            numbers = np.floor(block * (1 / self.width)).astype(np.int64) - self.first
            self.counts += np.bincount(numbers, minlength=self.counts.size)
            self.counts[-self.first] -= zeros
            self.zeros += zeros

    def _join_pairs(self) -> None:
        self.width *= 2
        if self.counts.size:
            first = self.first // 2
            padded = np.zeros(2 * ((self.first + self.counts.size + 1) // 2 - first), np.int64)
            begin = self.first - 2 * first
            padded[begin : begin + self.counts.size] = self.counts
            self.first, self.counts = first, padded.reshape(-1, 2).sum(axis=1)

    def _cover(self, first: int, last: int) -> None:
        """Extend the bins to those from ``first`` to ``last``, and to bin 0."""
        begin = min(first, self.first, 0)
        end = max(last + 1, self.first + self.counts.size, 1)
        wider = np.zeros(end - begin, np.int64)
        wider[self.first - begin : self.first - begin + self.counts.size] = self.counts
        self.first, self.counts = begin, wider
