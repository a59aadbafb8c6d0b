"""A suite of a pytest run: its cases, and the process that runs them."""

from __future__ import annotations

import os
import platform
import shlex
import sys
from collections.abc import Sequence
from typing import Any, Protocol

from lite_conformance.cases.case import Case, Context, Settings
from lite_conformance.drive.find_backend import require_backend
from lite_conformance.drive.subject import Subject
from lite_conformance.judge.outcome import Failure
from lite_conformance.pytest_plugin.locating import locate, search_path_of_tests
from lite_conformance.pytest_plugin.requests import EXPECTATIONS, SuiteRequest
from lite_conformance.reports.record import Record, Status
from lite_conformance.run.collector import header_of_run
from lite_conformance.run.declared import apply_expectation, unmatched_entries
from lite_conformance.run.executor import execute, start_record
from lite_conformance.run.expectations import Expectations
from lite_conformance.run.header import describe, expectations_for
from lite_conformance.run.pool import Pool, Worker, WorkerDiedError
from lite_conformance.run.selection import ALL_LEVELS, Selection, parse_level, parse_shard
from lite_core.backend import Backend
from lite_core.errors import BackendUnavailableError, InputError

__all__ = ["Suite"]


class _Driver(Protocol):
    """Runs cases on a backend."""

    #: The header of the report, see :func:`lite_conformance.run.header.describe`.
    header: dict[str, Any]
    expectations: Expectations

    def run(self, case: Case) -> Record: ...

    def close(self) -> None: ...


class _InWorkerProcess:
    """Runs cases in a worker process, which is replaced when a case crashes it.

    Raises:
        BackendUnavailableError, InputError, WorkerDiedError: see :class:`Worker`.
    """

    def __init__(self, settings: Settings, timeout: float) -> None:
        self._settings = settings
        self._pool = Pool(settings, timeout=timeout)
        self._worker: Worker | None = self._started()
        self.header = self._worker.header
        self.expectations = self._worker.expectations

    def run(self, case: Case) -> Record:
        """Run a case, in a new process if the last one has died."""
        self._worker = self._worker or self._started()
        self._worker, record = self._pool.run_one(case, self._worker)
        return record

    def close(self) -> None:
        """End the process."""
        if self._worker is not None:
            self._worker.close()

    def _started(self) -> Worker:
        with search_path_of_tests():
            return Worker(self._settings)


class _InThisProcess:
    """Runs cases in pytest's own process, for a backend object that no other process can import.

    Raises:
        BackendUnavailableError: the backend has no device.
        InputError: the object is not a backend.
        WorkerDiedError: the backend raised where it must not.
    """

    def __init__(self, thing: Any, settings: Settings) -> None:
        self._settings = settings
        # It would redirect the sessions of the suite to another device.
        self._forced = os.environ.pop("LITE_BACKEND", None)
        try:
            backend = thing() if isinstance(thing, type) or not isinstance(thing, Backend) else thing
            require_backend(backend, repr(thing))
            self._subject = Subject.first(backend)
        except Failure as failure:
            raise WorkerDiedError(failure.reason, Status.FAILED, failure.details) from failure
        self.expectations = expectations_for(settings, self._subject)
        self.header = describe(self._subject, self.expectations)

    def run(self, case: Case) -> Record:
        """Run a case."""
        return execute(case, Context(self._subject, self._settings, self.expectations.allowance(case.name)))

    def close(self) -> None:
        """Restore the environment."""
        if self._forced is not None:
            os.environ["LITE_BACKEND"] = self._forced


class Suite:
    """The cases that a request selects. The backend is opened with the first case that runs.

    Args:
        node_id: the node id of its test function, or of its collector, which is unique in a run.
        request: the request.

    Attributes:
        cases: the selected cases, in the order of the suite.
        count: the number of cases that pytest runs of them.
        header: the header of the report; empty before the backend was opened, and if it is missing.

    Raises:
        InputError: the request is wrong, or selects no case.
    """

    def __init__(self, node_id: str, request: SuiteRequest) -> None:
        self.node_id = node_id
        self.request = request
        located = locate(request)
        self._is_importable = located.is_importable
        self.settings = Settings(
            located.name,
            request.seed,
            request.examples,
            tuple(request.models),
            expectations=located.expectations,
            precision=request.precision,
        )
        levels = parse_level(request.level) if request.level else ALL_LEVELS
        wanted = [name for name in request.cases if name != EXPECTATIONS]
        self.selection = Selection(
            levels, wanted, request.ops, request.dtypes, request.exclude, None, parse_shard(request.shard)
        )
        # The node id of the test of expectations names no case.
        self.cases: Sequence[Case] = [] if request.cases and not wanted else self.selection.choose(self.settings)
        self.count = len(self.cases)
        self.header: dict[str, Any] = {}
        self._driver: _Driver | None = None
        #: Why the backend cannot be used: the status of all cases, the reason and its details.
        self._problem: tuple[Status, str, str] | None = None

    def run(self, case: Case | None) -> list[Record]:
        """Run a case and return its record; without a case, return a record for each wrong entry of the backend's file.

        If the backend cannot be used, the record has the reason.
        """
        driver = self._open()
        if driver is not None and case is None:
            return unmatched_entries(driver.expectations, self.settings)
        if driver is not None and case is not None:
            record = self._declared(case, driver.expectations)
            return [record] if record is not None else self._run(case, driver)
        record = self._start_record(case) if case is not None else Record(EXPECTATIONS, 0, EXPECTATIONS)
        assert self._problem is not None
        record.status, record.reason, record.details = self._problem
        return [record]

    @property
    def is_missing(self) -> bool:
        """True if the backend is not there, although the command line asked for it."""
        return self._problem is not None and self._problem[0] is Status.ERROR and not self.header

    def close(self) -> None:
        """End the process that runs the cases."""
        if self._driver is not None:
            self._driver.close()

    def _run(self, case: Case, driver: _Driver) -> list[Record]:
        try:
            record = driver.run(case)
        except BackendUnavailableError as error:
            # A backend that was available before has lost its device: skipping would hide the loss.
            record = self._start_record(case)
            record.status, record.reason = Status.FAILED, str(error)
        except (InputError, WorkerDiedError) as error:
            self._problem = _problem(error, Status.FAILED)
            return self.run(case)
        apply_expectation(record, driver.expectations)
        record.repro = self._repeating() or record.repro
        record.backend = self.header["backend"]
        record.device = record.device or f"{self.header['device']}: {self.header['device_name']}"
        return [record]

    def _declared(self, case: Case, expectations: Expectations) -> Record | None:
        """Return the record of a case that the backend's package declares unsupported; None for any other."""
        entry = expectations.find("unsupported", case.name)
        if entry is None:
            return None
        record = self._start_record(case)
        record.status, record.reason, record.expectation = Status.UNSUPPORTED, entry.reason, entry.reason
        record.backend, record.device = self.header["backend"], f"{self.header['device']}: {self.header['device_name']}"
        return record

    def _start_record(self, case: Case) -> Record:
        record = start_record(case, self.settings)
        record.repro = self._repeating() or record.repro
        return record

    def _repeating(self) -> str:
        """Return the command that repeats the test of a backend object, which the usual command may not find."""
        node_id = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
        return "" if isinstance(self.request.backend, str) else shlex.join(["pytest", node_id])

    def _open(self) -> _Driver | None:
        """Return what runs the cases; None if the backend cannot be used."""
        if self._problem is not None:
            return None
        if self._driver is None:
            unavailable = Status.ERROR if self.request.is_of_command_line else Status.SKIPPED
            try:
                self._driver = self._new_driver()
                self._describe(self._driver.header, **({} if self._is_importable else {"isolated": False}))
            except (BackendUnavailableError, InputError, WorkerDiedError) as error:
                self._problem = _problem(error, unavailable)
                if not isinstance(error, BackendUnavailableError):
                    system = f"{platform.system()} {platform.machine()}, Python {sys.version.split()[0]}"
                    self._describe({"backend": self.settings.backend, "device": "", "platform": system})
        return self._driver

    def _new_driver(self) -> _Driver:
        if self._is_importable:
            return _InWorkerProcess(self.settings, self.request.timeout)
        return _InThisProcess(self.request.backend, self.settings)

    def _describe(self, header: dict[str, Any], **options: Any) -> None:
        self.header = header_of_run(header, self.settings, self.selection, 0.0, timeout=self.request.timeout, **options)


def _problem(error: Exception, unavailable: Status) -> tuple[Status, str, str]:
    if isinstance(error, WorkerDiedError):
        return error.status, f"while the backend was opened: {error}", error.details
    return (unavailable if isinstance(error, BackendUnavailableError) else Status.ERROR), str(error), ""
