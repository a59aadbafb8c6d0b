"""Ranges of values from their statistics, and the scales and zero points that follow from ranges.

Three methods choose the range of an activation:

- ``minmax``: from the smallest to the largest element that calibration met.
- ``percentile``: without the smallest and the largest elements, half of the rest to 100 % on either side.
- ``entropy``: the range in which the distribution of the quantized elements is nearest to that of the elements, by the
  Kullback-Leibler divergence (S. Migacz, "8-bit inference with TensorRT", GPU Technology Conference 2017).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lite_tools.quantization.histograms import Extremes, Histogram

__all__ = ["METHODS", "Parameters", "Range", "parameters_of", "range_of", "statistics_for"]

Array = np.ndarray[Any, Any]

#: The methods that choose ranges.
METHODS = ("minmax", "percentile", "entropy")
#: The steps of uint8 numbers.
_STEPS = 255
#: The bins that the entropy method compares, and the smallest window that it considers.
_BINS, _SMALLEST_WINDOW = 2048, 256
#: The windows that the entropy method considers have numbers of bins that differ by this.
_WINDOW_STEP = 16
#: The largest share of elements that the entropy method leaves outside on either side. The divergence does not know how
#: far away they are: without a limit, it cuts off the few large elements that matter most in a sum.
_MOST_OUTSIDE = 0.5e-4
#: A share that stands for an empty bin of the quantized distribution, for which the divergence would be infinite.
_TINY_SHARE = 1e-6


@dataclass(frozen=True, slots=True)
class Range:
    """The numbers from ``low``, at most 0, to ``high``, at least 0, that a quantized value can represent."""

    low: float
    high: float

    @property
    def span(self) -> float:
        """The difference of its ends."""
        return self.high - self.low

    def joined(self, other: Range) -> Range:
        """Return the range that contains both."""
        return Range(min(self.low, other.low), max(self.high, other.high))


@dataclass(frozen=True, slots=True)
class Parameters:
    """The scale and the zero point of a value that is stored as uint8: it is ``(stored - zero_point) * scale``."""

    scale: np.float32
    zero_point: np.uint8


def parameters_of(range: Range) -> Parameters:
    """Return the parameters that represent a range in 255 steps, and 0 exactly; scale 1 for a range of zero width."""
    scale = np.float32(range.span / _STEPS)
    if not scale > np.finfo(np.float32).tiny:
        return Parameters(np.float32(1), np.uint8(0))
    return Parameters(scale, np.uint8(np.clip(np.rint(-range.low / float(scale)), 0, _STEPS)))


def statistics_for(method: str) -> Extremes:
    """Return empty statistics that a method needs."""
    return Extremes() if method == "minmax" else Histogram()


def range_of(statistics: Extremes, method: str, percentile: float) -> Range:
    """Return the range of a value.

    Args:
        statistics: its statistics, of the kind that :func:`statistics_for` returns for the method.
        method: one of :data:`METHODS`.
        percentile: for the method ``percentile``, the share of elements inside the range, in percent.
    """
    if isinstance(statistics, Histogram) and statistics.width:
        return _percentile_range(statistics, percentile) if method == "percentile" else _entropy_range(statistics)
    return Range(statistics.low, statistics.high)


def _percentile_range(histogram: Histogram, percentile: float) -> Range:
    counts = histogram.counts.copy()
    counts[-histogram.first] += histogram.zeros
    below = np.concatenate([[0], np.cumsum(counts)])
    edges = (histogram.first + np.arange(below.size)) * histogram.width
    outside = below[-1] * (100 - percentile) / 200
    low, high = np.interp([outside, below[-1] - outside], below, edges)
    return Range(max(min(float(low), 0.0), histogram.low), min(max(float(high), 0.0), histogram.high))


def _entropy_range(histogram: Histogram) -> Range:
    """Return the range of magnitudes up to the one with the least divergence, as far as the value reaches."""
    widest = max(histogram.high, -histogram.low)
    least = _percentile_range(histogram, 100 - 200 * _MOST_OUTSIDE)
    counts, zero = _rebinned(histogram, widest)
    best, best_divergence = _BINS, np.inf
    for window in range(_SMALLEST_WINDOW, _BINS + 1, _WINDOW_STEP):
        begin, end = max(zero - window, 0), min(zero + window, counts.size)
        divergence = _divergence(counts, begin, end)
        if divergence <= best_divergence:
            best, best_divergence = window, divergence
    reach = widest * best / _BINS
    return Range(max(histogram.low, -reach), min(histogram.high, reach)).joined(least)


def _rebinned(histogram: Histogram, widest: float) -> tuple[Array, int]:
    """Return counts in bins of ``widest / _BINS``, as far as there are elements, and the number of bins below 0."""
    numbers = histogram.first + np.arange(histogram.counts.size)
    middles = (numbers + 0.5) * histogram.width
    targets = np.clip(np.floor(middles * (_BINS / widest)), -_BINS, _BINS - 1).astype(np.int64)
    below = max(0, -int(targets.min()))
    return np.bincount(targets + below, histogram.counts, max(below + int(targets.max()) + 1, 1)), below


def _divergence(counts: Array, begin: int, end: int) -> float:
    """Return the Kullback-Leibler divergence of a window in 255 steps from the counts clipped to it."""
    inside = counts[begin:end]
    clipped = inside.copy()
    clipped[0] += counts[:begin].sum()
    clipped[-1] += counts[end:].sum()
    is_used = clipped > 0
    steps = np.arange(inside.size) * _STEPS // inside.size
    sums = np.bincount(steps, inside, _STEPS)
    used = np.bincount(steps, is_used, _STEPS)
    spread = np.where(is_used, (sums / np.maximum(used, 1))[steps], 0)
    total, rest = clipped.sum(), spread.sum()
    if not rest:
        return float("inf")
    p = clipped[is_used] / total
    q = np.maximum(spread[is_used] / rest, _TINY_SHARE)
    return float((p * np.log(p / q)).sum())
