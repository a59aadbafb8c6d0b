"""The table of the choices made on a device, stored in the cache folder as readable JSON.

The table can neither fail a run nor change what is computed: choices are names of candidates that all compute the same.
A file that is damaged, or that another version of the backend wrote, is not used, with a line in the log.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from lite_compiler.disk_cache import DiskCache
from lite_compiler.tournaments.choice import Choice, choices_of_json
from lite_core.forking import new_lock

__all__ = ["ChoiceTable"]


class ChoiceTable:
    """Choices for one kind of device by problem. Safe to use from many threads and processes at once.

    Args:
        device: the identity of the device; devices with the same identity share a file.
        version: returns the version of the code whose candidates are compared.
        folder: the folder of the file, created when the first choice is written; None keeps choices in memory only.
        logger: receives the choices, and the reason why a file is not used.

    Attributes:
        device: the argument.
        logger: the argument.
        measuring: held during a tournament, since concurrent ones would disturb each other. Tournaments may be nested.
    """

    def __init__(self, device: str, version: Callable[[], str], folder: Path | None, logger: logging.Logger) -> None:
        self.device = device
        self.logger = logger
        self.measuring = new_lock()
        self._version = version
        self._files = DiskCache(folder, ".json", logger)
        self._name = f"tuning-{hashlib.sha256(device.encode()).hexdigest()[:16]}"
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

    @property
    def count(self) -> int:
        """The number of choices that are known."""
        with self._lock:
            return len(self._loaded()) + len(self._from_files)

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
            if (content["device"], content["version"]) != (self.device, self._version()):
                self.logger.info("%s is of another version and is not used", path)
                return {}
            return choices_of_json(content["choices"])
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            self.logger.warning("%s is damaged and is not used", path)
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
        head = f' "device": {json.dumps(self.device)},\n "version": {json.dumps(self._version())},\n'
        self._files.write(self._name, f'{{\n{head} "choices": {{\n{lines}\n }}\n}}\n'.encode())
