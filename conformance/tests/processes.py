"""Waiting for processes that backends start: a pipe that they write their numbers to, and their end."""

from __future__ import annotations

import os
import select
from pathlib import Path

import pytest

_TIMEOUT_SECONDS = 60.0


class ProcessLog:
    """A named pipe to which backends of ``hostile_backends.py`` write the numbers of processes.

    Args:
        folder: an existing folder, in which the pipe is created.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / "pids"
        os.mkfifo(self.path)
        # NOTE: open for reading and writing, so that neither this nor a writer waits for the other end.
        self._pipe = os.open(self.path, os.O_RDWR | os.O_NONBLOCK)
        self._text = b""

    def wait_for(self, count: int) -> list[int]:
        """Wait until at least ``count`` processes have written, and return their numbers."""
        while self._text.count(b"\n") < count:
            if not select.select([self._pipe], [], [], _TIMEOUT_SECONDS)[0]:
                pytest.fail(f"{count} process(es) expected, got {self._text!r}")
            self._read()
        return self.numbers()

    def numbers(self) -> list[int]:
        """Return the numbers written so far."""
        if select.select([self._pipe], [], [], 0)[0]:
            self._read()
        return [int(line) for line in self._text.split()]

    def close(self) -> None:
        os.close(self._pipe)

    def _read(self) -> None:
        self._text += os.read(self._pipe, 4096)


def wait_for_end(pids: list[int]) -> list[int]:
    """Wait for the end of processes, and return those that still run after a time limit."""
    if not hasattr(os, "pidfd_open"):
        pytest.skip("waiting for other processes' children needs os.pidfd_open")
    running = []
    for pid in pids:
        try:
            handle = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        if not select.select([handle], [], [], _TIMEOUT_SECONDS)[0]:
            running.append(pid)
        os.close(handle)
    return running
