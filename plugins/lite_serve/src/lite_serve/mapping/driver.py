"""The driver of a run: it lists the parts, keeps the manifest, and decides what is finished; others do the parts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lite_core.errors import InputError, LiteError
from lite_core.version import __version__
from lite_serve.mapping.files import TEMPORARY
from lite_serve.mapping.job import Job
from lite_serve.mapping.locking import NAME as LOCK
from lite_serve.mapping.locking import locked
from lite_serve.mapping.manifest import (
    NAME,
    Failed,
    Finished,
    append_lines,
    begin_manifest,
    read_manifest,
)
from lite_serve.mapping.sources import list_parts

__all__ = ["OtherJobError", "Run", "Summary", "driven"]

_OUTPUT = re.compile(r"part-\d{5,}\.parquet")
_MOST_NAMED = 3


class OtherJobError(InputError):
    """The output folder belongs to a run of another model, other code, other input or other options."""


@dataclass(frozen=True, slots=True)
class Summary:
    """The state of a run.

    Attributes:
        parts: the number of parts.
        finished: those that are finished.
        before: those that were finished before this run.
        rows: the rows of finished parts.
        rows_before: those that were finished before this run.
        columns: the columns of the output, with their types as texts.
        devices: the devices that ran the model.
        failures: the parts that failed.
    """

    parts: int
    finished: int
    before: int
    rows: int
    rows_before: int
    columns: dict[str, str]
    devices: list[str]
    failures: list[Failed]

    @property
    def is_complete(self) -> bool:
        """True if every part is finished."""
        return self.finished == self.parts


class Run:
    """A run on an output folder that this process has locked.

    Attributes:
        parts: all parts.
        todo: those that are not finished.
        finished: the finished ones, by their index.
        notes: what the user should know, such as files that were changed.

    Args:
        job: the job.
        again: whether to begin again where the folder has results of another job.

    Raises:
        OtherJobError: the folder has results of another job.
        InputError: the input cannot be read, or the folder is in use for something else.
        OSError: the folder cannot be written.
    """

    def __init__(self, job: Job, *, again: bool = False) -> None:
        self.job = job
        self.notes: list[str] = []
        self._folder = Path(job.output)
        self._failures: list[Failed] = []
        self.finished: dict[int, Finished] = {}
        self.parts = list_parts(job)
        self._is_recorded = False
        manifest = read_manifest(self._folder)
        if manifest is None:
            _require_empty(self._folder)
        elif manifest.settings != job.settings() and not manifest.finished:
            manifest = None
        elif manifest.settings != job.settings():
            if not again:
                raise OtherJobError(_differences(self._folder, manifest.settings, job.settings()))
            manifest = None
        if manifest is None or again:
            begin_manifest(self._folder, job.settings(), __version__)
        else:
            append_lines(self._folder, (), at=manifest.whole_bytes)
            self.finished = self._still_valid(manifest.finished)
            self._is_recorded = manifest.summary is not None and len(self.finished) == len(self.parts)
            if manifest.version != __version__:
                self.notes.append(f"finished parts were computed by Lite {manifest.version}, this is {__version__}")
            if manifest.damaged:
                count = manifest.damaged
                lines = f"{count} damaged lines of {NAME} were" if count > 1 else f"1 damaged line of {NAME} was"
                self.notes.append(f"{lines} left out; {'their parts are' if count > 1 else 'its part is'} done again")
        self._before = dict(self.finished)
        self._remove_others()
        self.todo = [part for part in self.parts if part.index not in self.finished]

    def _still_valid(self, finished: dict[int, Finished]) -> dict[int, Finished]:
        """Return the finished parts whose input and output are as they were, and note the others."""
        valid, changed, lost = {}, [], []
        parts = {part.index: part for part in self.parts}
        for index, one in finished.items():
            part = parts.get(index)
            if part is None or part.identity() != one.part.identity():
                changed.append(one.part.path)
            elif one.output and _size(self._folder / one.output) != one.bytes:
                lost.append(one.output)
            else:
                valid[index] = one
        for what, names in (("changed since", changed), ("missing or changed in the output folder", lost)):
            if names:
                named = list(dict.fromkeys(names))
                more = f" and {len(named) - _MOST_NAMED} more" if len(named) > _MOST_NAMED else ""
                self.notes.append(f"{', '.join(named[:_MOST_NAMED])}{more}: {what}; their parts are done again")
        return valid

    def _remove_others(self) -> None:
        """Remove files of parts that are not finished: those of a run that was killed, and of rows that changed."""
        valid = {finished.output for finished in self.finished.values()}
        for path in self._folder.iterdir():
            is_part = _OUTPUT.fullmatch(path.name) is not None and path.name not in valid
            if is_part or path.name.startswith(TEMPORARY):
                path.unlink(missing_ok=True)

    def record(self, results: Iterable[Finished | Failed]) -> Iterator[Finished | Failed]:
        """Write finished parts to the manifest as they come, and pass them on.

        Raises:
            LiteError: the columns of a part are not those of the others.
            OSError: the manifest cannot be written.
        """
        for result in results:
            if isinstance(result, Failed):
                self._failures.append(result)
            else:
                self._check_columns(result)
                append_lines(self._folder, [result.as_line()])
                self.finished[result.part.index] = result
            yield result

    def _check_columns(self, result: Finished) -> None:
        first = next((one for one in self.finished.values() if one.rows), None)
        if first is not None and result.rows and first.columns != result.columns:
            (self._folder / result.output).unlink(missing_ok=True)
            listed = [", ".join(f"{name} {kind}" for name, kind in one.columns) for one in (first, result)]
            raise LiteError(
                f"the results of {result.part} have the columns {listed[1]}; those of {first.part} have {listed[0]}. A "
                "dataset needs the same in all parts: --keep or --before can make them equal"
            )

    def finish(self) -> Summary:
        """Return the state of the run, and write it to the manifest if all parts are finished."""
        found = [self.finished[index] for index in sorted(self.finished)]
        columns = next((dict(one.columns) for one in found if one.rows), {})
        summary = Summary(
            len(self.parts),
            len(found),
            len(self._before),
            sum(one.rows for one in found),
            sum(one.rows for one in self._before.values()),
            columns,
            list(dict.fromkeys(device for one in found for device in one.devices)),
            self._failures,
        )
        if summary.is_complete and not self._is_recorded:
            line = {"kind": "finished", "parts": summary.parts, "rows": summary.rows, "columns": columns}
            append_lines(self._folder, [line])
            self._is_recorded = True
        return summary


@contextmanager
def driven(job: Job, *, again: bool = False) -> Iterator[Run]:
    """Lock the output folder, and begin or continue a run until the end of the context. A missing folder is created.

    Raises:
        OtherJobError: the folder has results of another job, and ``again`` is False.
        InputError: the input cannot be read, or the folder is in use.
        OSError: the folder cannot be written.
    """
    folder, source = Path(job.output), Path(job.input)
    if folder == source or source in folder.parents:
        raise InputError(f"the output folder {str(folder)!r} is inside the input: its files would become input")
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{str(folder)!r} is a file; name a folder for the output")
    if folder.exists() and not (folder / NAME).exists():
        _require_empty(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder):
        yield Run(job, again=again)


def _require_empty(folder: Path) -> None:
    found = [path.name for path in folder.iterdir() if path.name != LOCK and not path.name.startswith(TEMPORARY)]
    if found:
        raise InputError(
            f"the folder {str(folder)!r} contains {min(found)!r}, which lite map has not written: name another one"
        )


def _differences(folder: Path, old: dict[str, Any], new: dict[str, Any]) -> str:
    told = []
    for name in new:
        if old.get(name) != new[name]:
            if name == "model":
                told.append("another model (or its file was changed)")
            elif name == "input":
                told.append(f"another input, {old.get(name)}")
            elif name in {"before", "after"} and old.get(name) and new[name] and old[name][0] == new[name][0]:
                told.append(f"other code in the module of --{name} {new[name][0]}")
            else:
                told.append(f"--{name} {_shown(old.get(name))} instead of {_shown(new[name])}")
    return (
        f"the folder {str(folder)!r} has results of a run with {'; '.join(told)}. To replace them, add --again; to "
        "keep them, name another folder"
    )


def _shown(value: Any) -> str:
    if value in (None, {}, []):
        return "none"
    if isinstance(value, dict):
        return ",".join(f"{key}={_shown(one)}" for key, one in value.items())
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return -1
