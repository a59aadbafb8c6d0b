"""The cases of a backend that failed when they ran last, kept in Lite's cache folder for ``--last-failed``."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

from lite_conformance.reports.record import Report, read_report
from lite_conformance.run.journal import backend_key
from lite_core.errors import InputError
from lite_core.private_files import read_private, write_private
from lite_core.storage import cache_folder

__all__ = ["last_failed", "note_failures"]


def note_failures(backend: str, report: Report) -> None:
    """Add the bad cases of a report to those that failed last, and remove the cases that are no longer bad."""
    file = _file(backend)
    if file is None:
        return
    bad = {record.case for record in report.records if record.status.is_bad}
    with contextlib.suppress(OSError):
        write_private(file, json.dumps(sorted((_read(file) - {r.case for r in report.records}) | bad)).encode())


def last_failed(backend: str, json_file: str | None) -> frozenset[str]:
    """Return the names of the cases that failed when they ran last.

    Args:
        backend: the backend as given by the user.
        json_file: the JSON report of the last run, which is read if the cache folder knows of no run of the backend.

    Raises:
        InputError: no run of the backend is known.
    """
    file = _file(backend)
    if file is not None and file.exists():
        return frozenset(_read(file))
    if json_file is not None and Path(json_file).is_file():
        return frozenset(record.case for record in read_report(json_file).records if record.status.is_bad)
    raise InputError(
        f"no earlier run of {backend!r} is known here: run without --last-failed first, or name its report with --json"
    )


def _file(backend: str) -> Path | None:
    folder = cache_folder("conformance")
    return None if folder is None else folder / f"failed-{backend_key(backend)}.json"


def _read(file: Path) -> set[str]:
    try:
        return {str(name) for name in json.loads(read_private(file))}
    except (OSError, ValueError, TypeError):
        return set()
