"""Statistics of the times of runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

__all__ = ["Summary", "summarize"]


class Summary(NamedTuple):
    """Statistics of the times of runs, in seconds.

    Attributes:
        runs: their number.
        mean: the mean.
        std: the standard deviation of the sample, with the divisor ``runs - 1``; 0 for a single run.
        min: the shortest.
        p50: the median.
        p90: the time that 90 % of the runs do not exceed, interpolated between the two nearest runs.
        p95: the same for 95 %.
        p99: the same for 99 %.
        max: the longest.
    """

    runs: int
    mean: float
    std: float
    min: float
    p50: float
    p90: float
    p95: float
    p99: float
    max: float

    def in_milliseconds(self) -> dict[str, float]:
        """Return the statistics for JSON and CSV: ``latency_p50_ms`` and so on, in milliseconds."""
        return {f"latency_{name}_ms": getattr(self, name) * 1e3 for name in self._fields[1:]}


def summarize(seconds: Sequence[float]) -> Summary:
    """Return the statistics of at least one time."""
    times = np.asarray(seconds, np.float64)
    std = float(times.std(ddof=1)) if times.size > 1 else 0.0
    p50, p90, p95, p99 = (float(q) for q in np.quantile(times, (0.5, 0.9, 0.95, 0.99)))
    return Summary(
        int(times.size), float(times.mean()), std, float(times.min()), p50, p90, p95, p99, float(times.max())
    )
