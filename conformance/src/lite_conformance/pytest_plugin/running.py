"""The suites of one process of pytest: their records travel with pytest's reports to the process that writes files."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import asdict, dataclass, field
from typing import Any

import pytest

from lite_conformance.pytest_plugin.items import CaseItem
from lite_conformance.pytest_plugin.suite import Suite
from lite_conformance.reports.record import Record, Status
from lite_conformance.run.executor import start_record

__all__ = ["Message", "RunningSuites", "message_of"]

_NAME = "lite-running-suites"
#: Attribute of pytest's reports; pytest-xdist sends it to its controller.
_ATTRIBUTE = "lite_conformance"


@dataclass(frozen=True, slots=True)
class Message:
    """The records of one test.

    Attributes:
        suite: the node id of the suite.
        number: the position of the case in the suite; 0 for the test of the expectations.
        records: the records as JSON values.
        header: the header of the report, in the first message of each process; or else empty.
        count: the number of cases that pytest runs of the suite.
    """

    suite: str
    number: int
    records: list[dict[str, Any]]
    header: dict[str, Any] = field(default_factory=dict)
    count: int = 0


def message_of(report: pytest.TestReport) -> Message | None:
    """Return the message that travels with a report, or None if its test is not a case."""
    found = vars(report).get(_ATTRIBUTE)
    return None if found is None else Message(**found)


class RunningSuites:
    """The suites that this process has collected."""

    def __init__(self) -> None:
        self._suites: list[Suite] = []
        self._described: set[str] = set()

    @staticmethod
    def of(config: pytest.Config) -> RunningSuites:
        """Return the suites of a run; registers them as a plugin when the first suite is collected."""
        found = config.pluginmanager.get_plugin(_NAME)
        if isinstance(found, RunningSuites):
            return found
        running = RunningSuites()
        config.pluginmanager.register(running, _NAME)
        return running

    def add(self, suite: Suite) -> None:
        """Add a suite whose processes are ended with the run."""
        self._suites.append(suite)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Count the cases that ``-k``, ``-m`` and other plugins have left."""
        for suite in self._suites:
            suite.count = sum(i.suite is suite and i.case is not None for i in session.items if isinstance(i, CaseItem))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Add the records of a case to its report."""
        report = yield
        if isinstance(item, CaseItem):
            records = item.records if call.when == "call" else _of_fixture(item, call)
            if records and item.suite.header:
                vars(report)[_ATTRIBUTE] = asdict(self._message(item, records))
        return report

    def pytest_unconfigure(self) -> None:
        """End the processes of the suites."""
        for suite in self._suites:
            suite.close()

    def _message(self, item: CaseItem, records: list[Record]) -> Message:
        suite = item.suite
        header = {} if suite.node_id in self._described else suite.header
        self._described.add(suite.node_id)
        return Message(suite.node_id, item.number, [record.to_dict() for record in records], header, suite.count)


def _of_fixture(item: CaseItem, call: pytest.CallInfo[None]) -> list[Record]:
    """Return the record of a case that a fixture, or a marker, keeps from running; none otherwise."""
    if call.when != "setup" or call.excinfo is None or item.case is None:
        return []
    record = start_record(item.case, item.suite.settings)
    is_skipped = call.excinfo.errisinstance(pytest.skip.Exception)
    record.status = Status.SKIPPED if is_skipped else Status.ERROR
    record.reason = str(call.excinfo.value) if is_skipped else f"a fixture failed: {call.excinfo.exconly()}"
    return [record]
