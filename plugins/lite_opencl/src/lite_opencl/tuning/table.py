"""What was measured to be fastest on a device, kept in the cache folder as JSON that people can read.

The table never fails a run, and never makes one wrong: its choices are names of candidates that all compute the same.
A file that is damaged, or that another version of this package wrote, is not used, as the log (``lite.opencl.tuning``)
says.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import threading
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from lite_core.storage import DiskCache
from lite_opencl.device.devices import FoundDevice
from lite_opencl.programs.sources import sources_version

__all__ = ["Choice", "TuningTable"]

logger = logging.getLogger("lite.opencl.tuning")


class Choice(NamedTuple):
    """What was found to be fastest.

    Attributes:
        name: of the candidate.
        seconds: that it took.
        usual: the candidate that is taken where nothing was measured.
        usual_seconds: that this took beside.
    """

    name: str
    seconds: float
    usual: str
    usual_seconds: float

    def __str__(self) -> str:
        said = f"{self.name} takes {_microseconds(self.seconds)}"
        return said if self.name == self.usual else f"{said}, {self.usual} {_microseconds(self.usual_seconds)}"

    @staticmethod
    def of_json(item: Any) -> Choice:
        """The choice that :meth:`_asdict` made a dictionary of.

        Raises:
            TypeError: it is no choice.
        """
        choice = Choice(**item)
        if [*map(type, choice)] != [str, float, str, float]:
            raise TypeError(f"{item!r} is no choice")
        return choice


class TuningTable:
    """Choices for one kind of device by problem. May be used by many threads and processes at once.

    Args:
        found: the device; those that are alike share a file.
        folder: where the file is, made when the first choice is written; None keeps choices in memory only.
    """

    def __init__(self, found: FoundDevice, folder: Path | None) -> None:
        self._device = f"{found.identity} | {found.compute_units} compute units"
        self._files = DiskCache(folder, ".json", logger)
        self._name = f"tuning-{hashlib.sha256(self._device.encode()).hexdigest()[:16]}"
        #: Held while something is measured: two at a time would disturb each other. A measurement may begin another.
        self.measuring = threading.RLock()
        self._lock = threading.Lock()
        self._measured: dict[str, Choice] | None = None  # None: the file is not read yet
        self._offered: dict[str, Choice] = {}

    def find(self, problem: str, candidates: Collection[str]) -> Choice | None:
        """The fastest of some candidates, by name, if that is known."""
        with self._lock:
            for known in (self._here(), self._offered):
                choice = known.get(problem)
                if choice is not None and choice.name in candidates:
                    return choice
        return None

    def add(self, problem: str, choice: Choice) -> None:
        """Keep what was measured here."""
        with self._lock:
            self._here()[problem] = choice
            self._write()

    def offer(self, choices: Mapping[str, Choice]) -> None:
        """Add what a model file holds, in memory; what was measured here is preferred."""
        with self._lock:
            self._offered.update(choices)

    def describe(self) -> str:
        """How much it holds and where, in words."""
        where = "memory only (LITE_CACHE_DIR is off)" if self._files.folder is None else self._files.path(self._name)
        with self._lock:
            return f"{len(self._here())} choices of kernels in {where}"

    def _here(self) -> dict[str, Choice]:
        if self._measured is None:
            self._measured = self._read()
        return self._measured

    def _read(self) -> dict[str, Choice]:
        """What the file holds; nothing where it is of no use."""
        text = self._files.read(self._name)
        if text is None:
            return {}
        path = self._files.path(self._name)
        try:
            content = json.loads(text)
            if (content["device"], content["version"]) != (self._device, sources_version()):
                logger.info("%s is of another version: what is fastest is not known any more", path)
                return {}
            return {problem: Choice.of_json(item) for problem, item in content["choices"].items()}
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            logger.warning("%s is damaged: what is fastest is not known any more", path)
            return {}

    def _write(self) -> None:
        """Write all choices, those that another process has written meanwhile among them.

        NOTE: of two processes that write in the same instant, one may lose what it added; it is then written with what
        that process adds next, or measured again.
        """
        if self._files.folder is None:
            return
        self._measured = {**self._read(), **self._here()}
        lines = ",\n".join(f"  {json.dumps(p)}: {json.dumps(c._asdict())}" for p, c in sorted(self._measured.items()))
        head = f' "device": {json.dumps(self._device)},\n "version": {json.dumps(sources_version())},\n'
        self._files.write(self._name, f'{{\n{head} "choices": {{\n{lines}\n }}\n}}\n'.encode())


def _microseconds(seconds: float) -> str:
    return f"{1e6 * seconds:.1f} us" if math.isfinite(seconds) else "cannot run"
