"""Processor time that other processes use during a measurement."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

__all__ = ["OtherLoad", "OtherLoadMeter"]

#: Others that use less than this share of the processors do not matter.
_QUIET = 0.1
#: Columns of the first line of ``/proc/stat`` in which a processor works, from user to steal, without idle and iowait
#: (Linux, Documentation/filesystems/proc.rst).
_WORKING = (0, 1, 2, 5, 6, 7)


class OtherLoad(NamedTuple):
    """The mean number of processors that other processes kept busy, and the number of processors of the machine."""

    busy: float
    processors: int

    @property
    def is_quiet(self) -> bool:
        """True if other processes hardly used any processor."""
        return self.busy < _QUIET * self.processors

    def __str__(self) -> str:
        return f"other processes kept {self.busy:.1f} of {self.processors} processors busy"


class OtherLoadMeter:
    """Measures from its creation on.

    Args:
        statistics: Linux's file about the processors.
    """

    def __init__(self, statistics: Path = Path("/proc/stat")) -> None:
        self._statistics = statistics
        self._start = self._now()

    def read(self) -> OtherLoad | None:
        """Return the load so far; None if the system does not tell."""
        now = self._now()
        if now is None or self._start is None:
            return None
        seconds, busy, own = (new - old for new, old in zip(now, self._start))
        return OtherLoad(max(0.0, busy - own) / max(seconds, 1e-9), os.cpu_count() or 1)

    def _now(self) -> tuple[float, float, float] | None:
        """Return the clock, the time that all processors have worked, and that of this process, in seconds."""
        with suppress(OSError, ValueError, IndexError, AttributeError):
            fields = [int(text) for text in self._statistics.read_text().partition("\n")[0].split()[1:]]
            busy = sum(fields[column] for column in _WORKING) / os.sysconf("SC_CLK_TCK")
            return time.perf_counter(), busy, time.process_time()
        return None
