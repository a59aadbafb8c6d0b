"""The journal of a run: its records, written as soon as each case ends, so that a later run can go on.

The file has one JSON object per line: first the identity of the run, then the records. Each line is given to the system
at once, so that the end of the process, by any signal, loses no record. It is removed when the run is complete.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import time
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from lite_conformance.reports.record import Record
from lite_conformance.run.identity import differences
from lite_core.errors import InputError
from lite_core.private_files import make_private_folder, open_private
from lite_core.storage import cache_folder

__all__ = ["Journal", "backend_key"]

_FORMAT = 1
_KEPT_SECONDS = 30 * 24 * 3600.0


class Journal:
    """The journal of one run.

    Args:
        file: its file.
        resume: True to go on with the run in the file, if there is one.
        optional: True if the run goes on without a journal where the file cannot be written.
    """

    def __init__(self, file: Path, resume: bool = False, optional: bool = False) -> None:
        self.file = file.absolute()  # a backend may change the working folder
        self.resume = resume
        self._optional = optional
        self._stream: IO[bytes] | None = None

    @staticmethod
    def beside(report: str | os.PathLike[str], resume: bool = False) -> Journal:
        """Return the journal of a run with a JSON report: ``r.json.journal``."""
        return Journal(Path(f"{os.fspath(report)}.journal"), resume)

    @staticmethod
    def in_cache(backend: str, selected: str, resume: bool = False) -> Journal | None:
        """Return the journal of a run without a JSON report, in Lite's cache folder; None if that is disabled.

        Args:
            backend: the backend as given by the user.
            selected: the settings and the selection as text, so that runs of different cases have separate journals.
            resume: True to go on. If there is no journal of such a run, the newest of the backend is used, whose
                differences :meth:`begin` then reports.
        """
        folder = cache_folder("conformance")
        if folder is None:
            return None
        try:
            make_private_folder(folder)
        except OSError:
            return None
        key = f"run-{backend_key(backend)}"
        file = folder / f"{key}-{zlib.crc32(selected.encode()):08x}.jsonl"
        _remove_old(folder)
        if resume and not file.exists():
            others = sorted(folder.glob(f"{key}-*.jsonl"), key=_changed)
            file = others[-1] if others else file
        return Journal(file, resume, optional=not resume)

    def begin(self, identity: Mapping[str, Any]) -> list[Record]:
        """Open the file, and return the records of the interrupted run that it holds, if this run goes on with it.

        Raises:
            InputError: the interrupted run has another identity, or another process writes to the file, or the file
                cannot be written.
        """
        stream = self._open()
        if stream is None:
            return []
        records: list[Record] = []
        end = 0
        if self.resume:
            before, records, end = _read(stream)
            if before is not None and (found := differences(before, identity)):
                stream.close()
                raise InputError(
                    f"cannot resume: the interrupted run in {str(self.file)!r} differs in {'; '.join(found)}. "
                    "Repeat its command, or run without --resume to begin again"
                )
        stream.truncate(end)
        stream.seek(end)
        self._stream = stream
        if not end:
            self._write({"journal": _FORMAT, "identity": identity})
        return records

    def add(self, record: Record) -> None:
        """Write a record."""
        self._write(record.to_dict())

    def close(self, *, is_complete: bool) -> None:
        """Close the file, and remove it if the run is complete."""
        if self._stream is None:
            return
        if is_complete:
            with contextlib.suppress(OSError):
                self.file.unlink()
        self._stream.close()
        self._stream = None

    def _open(self) -> IO[bytes] | None:
        """Open and lock the file; return None if that fails and the journal is optional."""
        try:
            # Not truncated before it is locked: another process may be writing to it.
            stream = os.fdopen(_open(self.file), "r+b", buffering=0)
        except OSError as error:
            if self._optional:
                return None
            raise InputError(f"the journal {str(self.file)!r} cannot be written: {error}") from error
        if _lock(stream):
            return stream
        stream.close()
        if self._optional:
            return None
        raise InputError(f"another run writes to {str(self.file)!r}: wait for its end, or name another --json file")

    def _write(self, line: Mapping[str, Any]) -> None:
        if self._stream is not None:
            self._stream.write((json.dumps(line) + "\n").encode())


def backend_key(backend: str) -> str:
    """Return a name for files about a backend, as given by the user; a file is named by its absolute path."""
    module, colon, attribute = backend.rpartition(":")
    full = f"{os.path.abspath(module)}:{attribute}" if colon and module.endswith(".py") else backend
    plain = re.sub(r"[^A-Za-z0-9]+", "_", backend).strip("_")[-40:]
    return f"{plain}-{zlib.crc32(full.encode()):08x}"


def _open(file: Path) -> int:
    """Return the descriptor of a journal: of a private file in the cache, else of a file with the usual rights."""
    folder = cache_folder("conformance")
    flags = os.O_RDWR | os.O_CREAT
    if folder is not None and file.parent == folder.absolute():
        return open_private(file, flags)
    return os.open(file, flags | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0), 0o666)


def _read(stream: IO[bytes]) -> tuple[Mapping[str, Any] | None, list[Record], int]:
    """Return the identity, the records, and the end of the last whole line; None for a file that is no journal."""
    end = 0
    identity: Mapping[str, Any] | None = None
    records: list[Record] = []
    stream.seek(0)
    for line in stream.read().splitlines(keepends=True):
        if not line.endswith(b"\n"):
            break  # the process ended while it wrote this line
        try:
            given = json.loads(line)
            if identity is None:
                identity = given["identity"] if given["journal"] == _FORMAT else None
            else:
                records.append(Record.from_dict(given))
        except (ValueError, TypeError, KeyError, AttributeError):
            break
        if identity is None:
            break
        end += len(line)
    return identity, records, end


def _lock(stream: IO[bytes]) -> bool:
    """Lock a file until it is closed; return False if another process holds the lock. Windows has no such locks."""
    try:
        import fcntl
    except ImportError:
        return True
    try:
        fcntl.flock(stream.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _remove_old(folder: Path) -> None:
    """Remove journals of runs that were interrupted more than a month ago."""
    for file in folder.glob("run-*.jsonl"):
        if time.time() - _changed(file) > _KEPT_SECONDS:
            with contextlib.suppress(OSError):
                file.unlink()


def _changed(file: Path) -> float:
    try:
        return file.stat().st_mtime
    except OSError:
        return 0.0
