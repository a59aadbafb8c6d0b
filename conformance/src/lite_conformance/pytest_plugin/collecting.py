"""Collecting the cases of the suite as pytest's items."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import Any

import pytest

from lite_conformance.cases.case import Case
from lite_conformance.pytest_plugin.items import CaseItem
from lite_conformance.pytest_plugin.options import PREFIX
from lite_conformance.pytest_plugin.requests import EXPECTATIONS, SuiteRequest
from lite_conformance.pytest_plugin.running import RunningSuites
from lite_conformance.pytest_plugin.suite import Suite
from lite_core.collector import collector_paused
from lite_core.errors import LiteError

__all__ = ["SuiteCollector", "SuitesOfCommandLine", "items_of_function"]


class SuitesOfCommandLine:
    """Adds the suites that options ask for to what pytest collects."""

    def __init__(self, requests: Sequence[SuiteRequest]) -> None:
        self._requests = requests

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(
        self, collector: pytest.Collector
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        """Add a collector for each suite to those of the session."""
        report = yield
        if isinstance(collector, pytest.Session) and report.passed:
            report.result = [*report.result, *(self._collector(collector, request) for request in self._requests)]
        return report

    def _collector(self, session: pytest.Session, request: SuiteRequest) -> SuiteCollector:
        name = str(request.backend)
        return SuiteCollector.from_parent(session, name=name, nodeid=f"{PREFIX}{name}", request=request)


class SuiteCollector(pytest.Collector):
    """Collects the suite that the command line asks for."""

    def __init__(self, *, request: SuiteRequest, **keywords: Any) -> None:
        super().__init__(**keywords)
        self._request = request

    def collect(self) -> list[CaseItem]:
        """Return an item for each case.

        Raises:
            CollectError: the request is wrong, or selects no case.
        """
        return items_of(self, self.nodeid, self._request)


def items_of_function(
    collector: pytest.Module | pytest.Class, name: str, request: SuiteRequest, marks: Sequence[pytest.Mark]
) -> list[CaseItem]:
    """Return an item for each case of a test function, with the names of its parameters: ``test_toy[...]``.

    Args:
        collector: the module or class that has the function.
        name: the function's name.
        request: its request.
        marks: its markers.

    Raises:
        CollectError: the request is wrong, or selects no case.
    """
    own = [mark for mark in marks if mark.name != "parametrize"]
    return items_of(collector, f"{collector.nodeid}::{name}", request, f"{name}[{{}}]", own)


def items_of(
    parent: pytest.Collector,
    suite_id: str,
    request: SuiteRequest,
    name: str = "{}",
    marks: Sequence[pytest.Mark] = (),
) -> list[CaseItem]:
    """Return an item for each case of a request, and one for the backend's ``conformance.toml``.

    Args:
        parent: the collector of the items.
        suite_id: the unique name of the suite in this run.
        request: the request.
        name: the name of an item, with braces for that of the case.
        marks: markers of all items.

    Raises:
        CollectError: the request is wrong, or selects no case.
    """
    try:
        with collector_paused(for_life=True):  # as long as the run lasts
            suite = Suite(suite_id, request)
            RunningSuites.of(parent.config).add(suite)
            return list(_items(parent, suite, name, marks))
    except LiteError as error:
        raise parent.CollectError(str(error)) from error


def _items(parent: pytest.Collector, suite: Suite, name: str, marks: Sequence[pytest.Mark]) -> Iterator[CaseItem]:
    of_cases = _Marks()
    fixtures: Any = None
    for number, case in enumerate((None, *suite.cases)):
        item = CaseItem.from_parent(
            parent,
            name=name.format(EXPECTATIONS if case is None else case.name),
            suite=suite,
            case=case,
            number=number,
            marks=marks,
            callobj=_conformance,
            fixtureinfo=fixtures,
        )
        # All items have the same fixtures: finding them again takes most of the time.
        fixtures = getattr(item, "_fixtureinfo", None)
        if case is not None:
            item.own_markers.extend(of_cases.of(case))
            item.extra_keyword_matches.add(case.dtype)
        yield item


def _conformance() -> None:
    """Stand for the function that pytest's items have."""


class _Marks:
    """The markers of cases; those with the same name are one object."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], pytest.Mark] = {}

    def of(self, case: Case) -> list[pytest.Mark]:
        """Return the markers of a case, without those that say nothing about it."""
        names = {"lite_level": f"L{case.level}", "lite_op": case.op, "lite_dtype": case.dtype}
        return [self._mark(kind, name) for kind, name in names.items() if name]

    def _mark(self, kind: str, name: str) -> pytest.Mark:
        if (kind, name) not in self._known:
            self._known[kind, name] = getattr(pytest.mark, kind)(name=name).mark
        return self._known[kind, name]
