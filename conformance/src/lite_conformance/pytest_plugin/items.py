"""The items that pytest runs: the cases of the suite."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from lite_conformance.cases.case import Case
from lite_conformance.pytest_plugin.outcomes import raise_outcome
from lite_conformance.pytest_plugin.suite import Suite
from lite_conformance.reports.record import Record

__all__ = ["CaseItem"]


class _CaseNode(pytest.Item):
    """The node id and the markers of :class:`CaseItem`, which ``pytest.Function`` does not take.

    They are set before it looks for the fixtures that markers ask for. The node id is parsed from its text, as ``--lf``
    parses the ids that it keeps in a file: an id that pytest makes from a name with brackets has the same text, but is
    not equal to it.
    """

    case_marks: Sequence[pytest.Mark] = ()

    def __init__(self, name: str, parent: pytest.Collector, **keywords: Any) -> None:
        super().__init__(name, parent, **{**keywords, "nodeid": f"{parent.nodeid}::{name}"})
        self.own_markers.extend(self.case_marks)


class CaseItem(pytest.Function, _CaseNode):
    """A case, or the test of the entries in the backend's ``conformance.toml``.

    It is a function, so that fixtures with ``autouse`` and ``pytest.mark.usefixtures`` of a test file apply.

    NOTE: :class:`_CaseNode` stands after ``pytest.Function`` in the order of classes, which calls it with a node id.
    """

    #: Tells pytest that the function has no arguments.
    nofuncargs = True

    def __init__(
        self, *, suite: Suite, case: Case | None, number: int, marks: Sequence[pytest.Mark], **keywords: Any
    ) -> None:
        self.case_marks = marks
        super().__init__(**keywords)
        self.suite = suite
        self.case = case
        #: The position of the case in the suite, from 1; 0 for the test of the entries.
        self.number = number
        #: The records of the last run.
        self.records: list[Record] = []

    def runtest(self) -> None:
        """Run the case, and report its status as an outcome of pytest."""
        self.records = []
        self.records = self.suite.run(self.case)
        if self.suite.is_missing:
            self.session.shouldfail = f"the backend {self.suite.settings.backend!r} cannot be tested"
        raise_outcome(self.records)

    def reportinfo(self) -> tuple[Any, int | None, str]:
        """Return file and title, which pytest shows above a failure."""
        return self.path, None, self.name
