"""The table of the fastest candidates measured on a device, stored in the cache folder as readable JSON.

The table can neither fail a run nor change its results: choices are names of candidates that all compute the same. A
file that is damaged, or that another version of this package wrote, is not used, with a line in the log
(``lite.opencl.tuning``).
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from lite_core.forking import new_lock
from lite_core.storage import DiskCache
from lite_opencl.device.devices import FoundDevice
from lite_opencl.programs.sources import sources_version

__all__ = ["Choice", "TuningTable"]

logger = logging.getLogger("lite.opencl.tuning")


class Choice(NamedTuple):
    """The fastest candidate for a problem.

    Attributes:
        name: the name of the candidate.
        seconds: its time.
        usual: the candidate that is used without measuring.
        usual_seconds: the time of that one, measured alongside.
    """

    name: str
    seconds: float
    usual: str
    usual_seconds: float

    def __str__(self) -> str:
        text = f"{self.name} takes {_microseconds(self.seconds)}"
        return text if self.name == self.usual else f"{text}, {self.usual} {_microseconds(self.usual_seconds)}"

    @staticmethod
    def of_json(item: Any) -> Choice:
        """Return the choice that :meth:`_asdict` turned into a dictionary.

        Raises:
            TypeError: the item is not a choice.
        """
        choice = Choice(**item)
        if [*map(type, choice)] != [str, float, str, float]:
            raise TypeError(f"{item!r} is no choice")
        return choice


class TuningTable:
    """Choices for one kind of device by problem. Safe to use from many threads and processes at once.

    Args:
        found: the device; devices of the same kind share a file.
        folder: the folder of the file, created when the first choice is written; None keeps choices in memory only.
    """

    def __init__(self, found: FoundDevice, folder: Path | None) -> None:
        self._device = f"{found.identity} | {found.compute_units} compute units"
        self._files = DiskCache(folder, ".json", logger)
        self._name = f"tuning-{hashlib.sha256(self._device.encode()).hexdigest()[:16]}"
        #: Held during a measurement, since concurrent ones would disturb each other. Measurements may be nested.
        self.measuring = new_lock()
        self._lock = new_lock()
        self._measured: dict[str, Choice] | None = None  # None: the file is not read yet
        self._from_files: dict[str, Choice] = {}

    def find(self, problem: str, candidates: Collection[str]) -> Choice | None:
        """Return the choice for a problem if it is known and is one of the candidates, given by name."""
        with self._lock:
            for choices in (self._loaded(), self._from_files):
                choice = choices.get(problem)
                if choice is not None and choice.name in candidates:
                    return choice
        return None

    def add(self, problem: str, choice: Choice) -> None:
        """Store a choice that was measured on this machine."""
        with self._lock:
            self._loaded()[problem] = choice
            self._write()

    def offer(self, choices: Mapping[str, Choice]) -> None:
        """Add the choices of a model file, in memory only; choices measured on this machine are preferred."""
        with self._lock:
            self._from_files.update(choices)

    def describe(self) -> str:
        """Return a description of the number of choices and the file."""
        where = "memory only (LITE_CACHE_DIR is off)" if self._files.folder is None else self._files.path(self._name)
        with self._lock:
            return f"{len(self._loaded())} choices of kernels in {where}"

    def _loaded(self) -> dict[str, Choice]:
        """Return the choices measured on this machine, read from the file on the first call."""
        if self._measured is None:
            self._measured = self._read()
        return self._measured

    def _read(self) -> dict[str, Choice]:
        """Return the choices in the file; none if it cannot be used."""
        text = self._files.read(self._name)
        if text is None:
            return {}
        path = self._files.path(self._name)
        try:
            content = json.loads(text)
            if (content["device"], content["version"]) != (self._device, sources_version()):
                logger.info("%s is of another version and is not used", path)
                return {}
            return {problem: Choice.of_json(item) for problem, item in content["choices"].items()}
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            logger.warning("%s is damaged and is not used", path)
            return {}

    def _write(self) -> None:
        """Write all choices, including those that another process has written in the meantime.

        NOTE: if two processes write at the same time, one may lose its latest choice. That choice is then written with
        the next one of that process, or measured again.
        """
        if self._files.folder is None:
            return
        self._measured = {**self._read(), **self._loaded()}
        lines = ",\n".join(f"  {json.dumps(p)}: {json.dumps(c._asdict())}" for p, c in sorted(self._measured.items()))
        head = f' "device": {json.dumps(self._device)},\n "version": {json.dumps(sources_version())},\n'
        self._files.write(self._name, f'{{\n{head} "choices": {{\n{lines}\n }}\n}}\n'.encode())


def _microseconds(seconds: float) -> str:
    return f"{1e6 * seconds:.1f} us" if math.isfinite(seconds) else "cannot run"
