"""Parts for tests of Dask: each process writes what it does into a file of its own, which outlives it."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

__all__ = ["Recorder", "begun", "kill_busiest"]


class Recorder(NamedTuple):
    """Squares numbers, and records it.

    Attributes:
        folder: the folder of the files.
        seconds: how long a part takes.
        deadly: a part that kills its process; negative for none.
    """

    folder: str
    seconds: float = 0.0
    deadly: int = -1

    def __call__(self, part: int) -> int:
        """Do a part; the part -7 fails."""
        with Path(self.folder, str(os.getpid())).open("a", buffering=1) as file:
            file.write(f"begin {part}\n")
            if part == self.deadly:
                os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(self.seconds)
            if part == -7:
                raise ValueError("the part is negative")
            file.write(f"end {part}\n")
        return part * part


def begun(folder: Path) -> Counter[int]:
    """Return how often each part was begun."""
    lines = [line for file in folder.iterdir() for line in file.read_text().splitlines()]
    return Counter(int(line.split()[1]) for line in lines if line.startswith("begin"))


def kill_busiest(folder: Path) -> int:
    """Kill the process that finished the most parts, in the middle of a part, which is returned."""
    while True:
        busiest = max(folder.iterdir(), key=lambda file: file.read_text().count("end"))
        process = int(busiest.name)
        os.kill(process, signal.SIGSTOP)  # from here on, nothing is written
        word, part = busiest.read_text().splitlines()[-1].split()
        if word == "begin":
            os.kill(process, signal.SIGKILL)
            return int(part)
        os.kill(process, signal.SIGCONT)
        time.sleep(0.01)
