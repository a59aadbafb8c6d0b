"""Processor time and memory of another process, from /proc."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["processor_seconds", "resident_bytes"]

_TICKS = os.sysconf("SC_CLK_TCK")


def processor_seconds(pid: int) -> float:
    """Return the processor time of all threads of a process since its start, in seconds; resolution 10 ms."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def resident_bytes(pid: int) -> int:
    """Return the anonymous resident memory of a process, without pages of files."""
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return int(status["RssAnon"].split()[0]) * 1024
