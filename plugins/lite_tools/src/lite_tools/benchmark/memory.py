"""Peak memory of this process during a phase: the highest resident set size since the last reset."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path

__all__ = ["PeakMemory", "resident_bytes"]

_PROCESS = Path("/proc/self")
#: Written to ``clear_refs``, it resets the highest resident set size (Linux, Documentation/filesystems/proc.rst).
_RESET = "5"


def resident_bytes(process: Path = _PROCESS) -> int | None:
    """Return the resident set size of this process; None where Linux's files about it are missing."""
    return _status(process, "VmRSS")


class PeakMemory:
    """The highest resident set size of this process since the last :meth:`reset`.

    Linux can reset its own record. Where that is not permitted, the record of the whole life of the process counts if
    it grew since the reset; if it did not, the peak is not known.

    Args:
        process: the folder of the process in ``/proc``.
    """

    def __init__(self, process: Path = _PROCESS) -> None:
        self._process = process
        self._before: int | None = None
        self._can_reset = False
        self.reset()

    def reset(self) -> None:
        """Begin a new phase."""
        self._can_reset = False
        if _status(self._process, "VmHWM") is not None:
            with suppress(OSError):
                (self._process / "clear_refs").write_text(_RESET)
                self._can_reset = True
        self._before = None if self._can_reset else _highest_of_life()

    def peak_bytes(self) -> int | None:
        """Return the highest resident set size since the reset; None if it is not known."""
        if self._can_reset:
            return _status(self._process, "VmHWM")
        now = _highest_of_life()
        return now if now is not None and self._before is not None and now > self._before else None


def _status(process: Path, field: str) -> int | None:
    """Return a size in the file ``status`` of a process, in bytes."""
    with suppress(OSError, ValueError, IndexError):
        for line in (process / "status").read_text().splitlines():
            if line.startswith(f"{field}:"):
                return int(line.split()[1]) * 1024
    return None


def _highest_of_life() -> int | None:
    """Return the highest resident set size since the process began, in bytes."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return int(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) * unit
