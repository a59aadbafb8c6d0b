"""The manifest of an output folder: JSON lines, first the job, then one for each finished part, at last a summary.

Only the driver writes it, and a line is on the disk before the next part counts as finished. A line that was torn by
the end of the process is no line: its part is done again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lite_core.errors import InputError
from lite_serve.mapping.files import replace_file, synced_folder
from lite_serve.mapping.parts import Part

__all__ = ["NAME", "Failed", "Finished", "Manifest", "read_manifest"]

#: Its file in the output folder. Readers of datasets skip names that begin with an underscore.
NAME = "_manifest.jsonl"


@dataclass(frozen=True, slots=True)
class Finished:
    """A finished part: a line of the manifest.

    Attributes:
        part: the part.
        output: the name of its file in the output folder; empty if the part turned out to have no rows.
        bytes: the size of that file.
        rows: the rows of the part, and of the file.
        columns: the columns of the file, with their types as texts.
        devices: the devices that ran the model.
        seconds: the time that it took.
    """

    part: Part
    output: str
    bytes: int
    rows: int
    columns: tuple[tuple[str, str], ...] = ()
    devices: tuple[str, ...] = ()
    seconds: float = 0.0

    def as_line(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "kind": "part",
            "part": self.part.identity(),
            "output": self.output,
            "bytes": self.bytes,
            "rows": self.rows,
            "columns": dict(self.columns),
            "devices": list(self.devices),
            "seconds": round(self.seconds, 3),
        }

    @staticmethod
    def of(line: dict[str, Any]) -> Finished:
        """Return the part of a line.

        Raises:
            (TypeError, KeyError, AttributeError): it is none.
        """
        return Finished(
            Part.of(line["part"]),
            line["output"],
            line["bytes"],
            line["rows"],
            tuple(line["columns"].items()),
            tuple(line["devices"]),
            line["seconds"],
        )


@dataclass(frozen=True, slots=True)
class Failed:
    """A part that was not finished.

    Attributes:
        part: the part.
        message: the reason; it names the part.
    """

    part: Part
    message: str


@dataclass(slots=True)
class Manifest:
    """The content of a manifest.

    Attributes:
        settings: the settings of its job, see :meth:`lite_serve.mapping.job.Job.settings`.
        version: the version of Lite that began it.
        finished: the finished parts by their index; of several, the last one.
        summary: the summary, if it is the last line.
        damaged: the number of lines that could not be read, without a torn last one.
        whole_bytes: the size up to the end of the last whole line.
    """

    settings: dict[str, Any]
    version: str
    finished: dict[int, Finished]
    summary: dict[str, Any] | None
    damaged: int
    whole_bytes: int


def read_manifest(folder: Path) -> Manifest | None:
    """Return the manifest of an output folder; None if there is none.

    Raises:
        InputError: the file is not a manifest.
    """
    try:
        content = (folder / NAME).read_bytes()
    except FileNotFoundError:
        return None
    whole = content[: content.rfind(b"\n") + 1]
    lines = [_parsed(line) for line in whole.splitlines()]
    if not lines or lines[0] is None or lines[0].get("kind") != "job":
        raise InputError(f"{folder / NAME} is not a manifest of lite map, or its first line is damaged")
    found = Manifest(lines[0]["settings"], str(lines[0].get("lite", "")), {}, None, 0, len(whole))
    for line in lines[1:]:
        found.summary = None
        try:
            if line is None or line["kind"] not in {"part", "finished"}:
                raise KeyError
            if line["kind"] == "part":
                finished = Finished.of(line)
                found.finished[finished.part.index] = finished
            else:
                found.summary = line
        except (KeyError, TypeError, AttributeError):
            found.damaged += 1
    return found


def begin_manifest(folder: Path, settings: dict[str, Any], version: str) -> None:
    """Write a manifest without parts, which replaces an earlier one at once."""
    line = json.dumps({"kind": "job", "lite": version, "settings": settings})
    replace_file(folder / NAME, f"{line}\n".encode())


def append_lines(folder: Path, lines: Iterable[dict[str, Any]], at: int | None = None) -> None:
    """Append lines, and return when they are on the disk.

    Args:
        folder: the output folder.
        lines: the lines.
        at: the end of the last whole line, behind which a torn one is removed; None if there is none.
    """
    with (folder / NAME).open("r+b") as file:
        if at is not None:
            file.truncate(at)
        file.seek(0, os.SEEK_END)
        file.write(b"".join(f"{json.dumps(line)}\n".encode() for line in lines))
        file.flush()
        os.fsync(file.fileno())
    if at is not None:
        synced_folder(folder)


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
