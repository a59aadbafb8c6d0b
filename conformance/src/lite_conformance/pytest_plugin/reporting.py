"""The reports of a pytest run: JSON and HTML, also of a run that was interrupted or divided among processes."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
import pytest

from lite_conformance.pytest_plugin.running import message_of
from lite_conformance.reports.html import write_html
from lite_conformance.reports.record import Record, Report
from lite_conformance.reports.summary import report_names, verdict
from lite_tools.commands import check_writable

__all__ = ["ReportWriter"]


@dataclass(slots=True)
class _Received:
    """The records of a suite so far."""

    header: dict[str, Any] = field(default_factory=dict)
    count: int = 0
    #: The records of each test, by its position in the suite.
    records: dict[int, list[Record]] = field(default_factory=dict)

    def report(self, stopped_by: str, seconds: float) -> Report:
        """Return the report; ``stopped_by`` says why cases may be missing."""
        cases = [number for number in self.records if number]
        header = dict(self.header)
        if len(cases) < self.count:
            header["incomplete"] = f"{stopped_by}, {len(cases)} of {self.count} cases ran"
        return Report(header, [record for number in sorted(self.records) for record in self.records[number]], seconds)


class ReportWriter:
    """Collects the records of all suites, and writes the files that the options name.

    Raises:
        pytest.UsageError: a file cannot be written.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._json: str | None = config.getoption("lite_json")
        self._html: str | None = config.getoption("lite_html")
        for file, option in ((self._json, "--lite-json"), (self._html, "--lite-html")):
            try:
                if file:
                    check_writable(file, option)
            except click.ClickException as error:
                raise pytest.UsageError(f"{option}: {error.message}") from error
        self._start = time.perf_counter()
        self._received: dict[str, _Received] = {}
        self._lines: list[str] = []
        self._stopped_by = "not all ran"

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the records of a test; where it was repeated, the last ones."""
        message = message_of(report)
        if message is None:
            return
        received = self._received.setdefault(message.suite, _Received())
        received.header = received.header or message.header
        received.count = message.count
        received.records[message.number] = [Record.from_dict(record) for record in message.records]

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Keep the reason of an interrupt: of pytest-xdist after the last failure that it allows, or the user's."""
        self._stopped_by = str(excinfo.value) or "interrupted"

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the files."""
        stopped_by = str(session.shouldfail or session.shouldstop or self._stopped_by)
        seconds = time.perf_counter() - self._start
        reports = [received.report(stopped_by, seconds) for received in self._received.values()]
        if not reports:
            missing = [file for file in (self._json, self._html) if file]
            self._lines += [f"not written, because no case of the suite ran: {', '.join(missing)}"] if missing else []
            return
        names = report_names(reports)
        self._lines += [verdict(report, name) for report, name in zip(reports, names)]
        for number, report in enumerate(reports, 1):
            if self._json:
                # One file is one report: those of further suites have a number.
                file = Path(self._json)
                file = file if number == 1 else file.with_stem(f"{file.stem}-{number}")
                report.write(file)
                self._lines.append(f"wrote {file}")
        if self._html:
            write_html(reports, self._html)
            self._lines.append(f"wrote {self._html}")

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the verdict on each suite, and the files that were written."""
        if self._lines:
            terminalreporter.section("Lite conformance suite")
            for line in self._lines:
                terminalreporter.write_line(line)
