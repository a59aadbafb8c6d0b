"""The records of a run as they arrive: expectations applied, kept in the journal, made into a report."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from typing import Any

from lite_conformance.cases.case import Case, Settings
from lite_conformance.reports.record import Record, Report, Status
from lite_conformance.run.declared import apply_expectation, unmatched_entries
from lite_conformance.run.executor import start_record
from lite_conformance.run.expectations import Expectations
from lite_conformance.run.identity import identity_of
from lite_conformance.run.journal import Journal
from lite_conformance.run.selection import Selection

__all__ = ["Collector", "Progress", "header_of_run"]

#: Called with the record of a case that has ended, and the total number of cases to run.
Progress = Callable[[Record, int], None]


class _EnoughFailuresError(Exception):
    """The limit of bad cases is reached."""


class Collector:
    """Collector of records in the order of the suite, which applies the expectations of the backend's package.

    Args:
        settings: settings of the run.
        selection: the selection of its cases.
        header: the header that the worker sent.
        expectations: the expectations of the backend's package.
        chosen: the selected cases.
        maxfail: the limit of bad cases, or None.
        journal: the journal of the run, or None.
        progress: called with each new record.
    """

    def __init__(
        self,
        settings: Settings,
        selection: Selection,
        header: dict[str, Any],
        expectations: Expectations,
        chosen: Sequence[Case],
        maxfail: int | None,
        journal: Journal | None,
        progress: Progress | None,
    ) -> None:
        self._settings = settings
        self._selection = selection
        self._header = header
        self._expectations = expectations
        self._failures_left = math.inf if maxfail is None else maxfail
        self._maxfail = maxfail
        self._journal = journal
        self._progress = progress
        self._order = [case.name for case in chosen]
        self._records: dict[str, Record] = {}
        self._stopped_by = ""
        if journal is not None:
            names = set(self._order)
            earlier = journal.begin(identity_of(settings, selection, header, expectations, chosen))
            self._records = {record.case: record for record in earlier if record.case in names}
        self._resumed = len(self._records)
        #: The cases that have to be run.
        self.to_run: list[Case] = []
        for case in chosen:
            if case.name in self._records:
                continue
            entry = expectations.find("unsupported", case.name)
            if entry is None:
                self.to_run.append(case)
                continue
            record = start_record(case, settings)
            record.status, record.reason, record.expectation = Status.UNSUPPORTED, entry.reason, entry.reason
            self._store(record)

    def add(self, case: Case, record: Record) -> None:
        """Add the record of a case that was run."""
        apply_expectation(record, self._expectations)
        self._store(record)
        self._failures_left -= record.status.is_bad
        if self._failures_left <= 0:
            raise _EnoughFailuresError

    @contextmanager
    def stops(self) -> Iterator[None]:
        """Turn an interrupt, or the limit of bad cases, into an incomplete report."""
        try:
            yield
        except KeyboardInterrupt:
            self._stopped_by = "interrupted"
        except _EnoughFailuresError:
            self._stopped_by = f"stopped after {self._maxfail} bad case(s)"

    def _store(self, record: Record) -> None:
        self._records[record.case] = record
        if self._journal is not None:
            self._journal.add(record)
        if self._progress is not None:
            self._progress(record, len(self._order) - self._resumed)

    def report(self, seconds: float, **options: Any) -> Report:
        """Return the report.

        Args:
            seconds: wall-clock time of the run.
            options: further options of the run for the header.
        """
        ran = [self._records[name] for name in self._order if name in self._records]
        header = dict(self._header)
        for record in ran:
            record.backend = header["backend"]
            record.device = record.device or f"{header['device']}: {header['device_name']}"
        if self._resumed:
            header["resumed"] = f"{self._resumed} of {len(self._order)} cases ran before"
        if len(ran) < len(self._order):
            header["incomplete"] = f"{self._stopped_by}, {len(ran)} of {len(self._order)} cases ran"
        errors = [] if self._stopped_by else unmatched_entries(self._expectations, self._settings)
        for record in errors:
            record.backend, record.device = header["backend"], f"{header['device']}: {header['device_name']}"
        whole = header_of_run(header, self._settings, self._selection, seconds, **options)
        return Report(whole, [*errors, *ran], seconds)


def header_of_run(
    header: Mapping[str, Any], settings: Settings, selection: Selection, seconds: float, **options: Any
) -> dict[str, Any]:
    """Return the header of a report: that of the worker, with the options of the run and its start.

    Args:
        header: the header that the worker sent.
        settings: settings of the run.
        selection: the selection of its cases.
        seconds: wall-clock time of the run, which ends now.
        options: further options of the run.
    """
    options = {
        "seed": settings.seed,
        "examples": settings.examples,
        "models": list(settings.models),
        **({} if settings.precision == "float32" else {"precision": settings.precision}),
        **selection.describe(),
        **options,
    }
    options = {k: v for k, v in options.items() if v != []}
    started = datetime.now(timezone.utc) - timedelta(seconds=seconds)
    package = {"package": settings.title} if settings.plugin else {}
    return {**header, **package, "options": options, "started": started.isoformat(timespec="seconds")}
