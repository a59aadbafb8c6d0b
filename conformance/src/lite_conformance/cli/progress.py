"""The progress of a run: a bar on a terminal, elsewhere a line from time to time, and a line for each bad case."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import TextIO

from lite_conformance.reports.record import Record
from lite_conformance.reports.summary import printable, seconds_text

__all__ = ["ProgressLines", "shown_progress"]

_SHARE = 0.05
_LEAST_SECONDS, _MOST_SECONDS = 5.0, 30.0


@contextlib.contextmanager
def shown_progress(name: str, quiet: bool) -> Iterator[Callable[[Record, int], None]]:
    """Show progress while the context is active; yields a function for records and the total number of cases."""
    if quiet:
        yield lambda record, total: None
    elif sys.stderr.isatty():
        with _bar(name) as progress:
            yield progress
    else:
        yield ProgressLines(sys.stderr)


class ProgressLines:
    """Lines of text, for a log: one whenever a twentieth of the cases has ended, but not too many nor too few.

    ``120 of 2,400 cases (5 %), 1 bad, 14 s elapsed, about 4 min 26 s remaining``

    Args:
        stream: where the lines are written.
        clock: returns the time in seconds.
    """

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._clock = clock
        self._start = self._last = clock()
        self._done = self._bad = self._shown = 0

    def __call__(self, record: Record, total: int) -> None:
        """Count a case that has ended."""
        self._done += 1
        if record.status.is_bad:
            self._bad += 1
            self._print(_bad_line(record))
        now = self._clock()
        waited = now - self._last
        is_far = self._done - self._shown >= _SHARE * total
        if self._done < total and waited >= (_LEAST_SECONDS if is_far else _MOST_SECONDS):
            elapsed = now - self._start
            remaining = elapsed / self._done * (total - self._done)
            self._print(
                f"{self._done:,} of {total:,} cases ({100 * self._done // total} %), {self._bad:,} bad, "
                f"{seconds_text(elapsed)} elapsed, about {seconds_text(remaining)} remaining"
            )
            self._last, self._shown = now, self._done

    def _print(self, line: str) -> None:
        print(line, file=self._stream, flush=True)


@contextlib.contextmanager
def _bar(name: str) -> Iterator[Callable[[Record, int], None]]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[bad]}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(name, total=None, bad="")
        bad = 0

        def progress(record: Record, total: int) -> None:
            nonlocal bad
            if record.status.is_bad:
                bad += 1
                bar.console.print(_bad_line(record), markup=False, highlight=False, soft_wrap=True)
            bar.update(task, total=total, advance=1, description=f"L{record.level}", bad=f"{bad} bad" if bad else "")

        yield progress


def _bad_line(record: Record) -> str:
    return printable(f"{record.status}: {record.case}: {record.reason}")
