"""Memory that a worker shares with the process that watches it: its figures, and the input that it runs."""

from __future__ import annotations

import mmap
import struct
from pathlib import Path
from typing import NamedTuple

__all__ = ["Figures", "Progress"]

_FIGURES = struct.Struct("<QQQQ")
_MOST_BYTES = 1 << 20


class Figures(NamedTuple):
    """Figures of a worker.

    Attributes:
        executions: number of executions that began.
        growth: the most memory that an execution added, in bytes.
        slowest: the longest execution, in microseconds.
        size: number of bytes of the present input.
    """

    executions: int = 0
    growth: int = 0
    slowest: int = 0
    size: int = 0


class Progress:
    """The shared memory, in a file.

    Args:
        file: the path; made if it does not exist.
    """

    def __init__(self, file: Path) -> None:
        if not file.exists():
            file.write_bytes(bytes(_FIGURES.size + _MOST_BYTES))
        with file.open("r+b") as opened:
            self._memory = mmap.mmap(opened.fileno(), 0)

    @property
    def figures(self) -> Figures:
        """The present figures."""
        return Figures(*_FIGURES.unpack_from(self._memory))

    @figures.setter
    def figures(self, figures: Figures) -> None:
        _FIGURES.pack_into(self._memory, 0, *figures)

    @property
    def input(self) -> bytes:
        """The input that runs, or that ran last."""
        return self._memory[_FIGURES.size : _FIGURES.size + self.figures.size]

    def begin(self, data: bytes) -> None:
        """Note an input before it runs."""
        data = data[:_MOST_BYTES]
        self._memory[_FIGURES.size : _FIGURES.size + len(data)] = data
        figures = self.figures
        self.figures = figures._replace(executions=figures.executions + 1, size=len(data))

    def end(self, growth: int, seconds: float) -> None:
        """Note the measurements of the execution."""
        figures = self.figures
        self.figures = figures._replace(
            growth=max(figures.growth, growth), slowest=max(figures.slowest, int(1e6 * seconds))
        )
