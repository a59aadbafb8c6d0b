"""The optional member ``stack`` of backends: in the header of reports, and checked by level 0."""

from __future__ import annotations

from typing import Any

import pytest

from lite_conformance import Report, Status, check_backend
from lite_conformance.drive.stack import stack_of
from lite_conformance.drive.subject import Subject
from lite_conformance.reports.html import render_html
from lite_conformance.reports.summary import fact_lines
from lite_conformance.run.expectations import Expectations
from lite_conformance.run.header import describe
from lite_core.backend import Device
from lite_core.builtin import HostBackend


class Stacked(HostBackend):
    """A backend whose ``stack`` returns, or raises, ``answer``."""

    name = "stacked"

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)

    def probe(self) -> list[Device]:
        return [Device("stacked", name="a device")]

    def stack(self, device: Device) -> Any:
        answer = self.answers[0] if len(self.answers) == 1 else self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def test_stack_is_in_the_header() -> None:
    header = describe(Subject.first(Stacked({"driver": "24.2", "compiler": "LLVM 15"})), Expectations())
    assert header["stack"] == {"driver": "24.2", "compiler": "LLVM 15"}
    assert {"lite-core", "numpy"} <= header["versions"].keys()
    assert ("stack", "driver 24.2, compiler LLVM 15") in fact_lines(header)
    assert "driver 24.2, compiler LLVM 15" in render_html([Report(header)])


@pytest.mark.parametrize(
    ("answers", "status", "reason"),
    [
        (({"driver": "24.2"},), Status.PASSED, ""),
        (({},), Status.PASSED, ""),
        (({"driver": 24},), Status.FAILED, "texts by name"),
        ((["24.2"],), Status.FAILED, "texts by name"),
        ((None,), Status.FAILED, "texts by name"),
        ((OSError("no driver"),), Status.FAILED, "stack() raised OSError: no driver"),
        (({"driver": "1"}, {"driver": "1"}, {"driver": "2"}), Status.FAILED, "when called again"),
    ],
)
def test_level_0_checks_the_stack(answers: tuple[Any, ...], status: Status, reason: str) -> None:
    (record,) = check_backend(Stacked(*answers), cases="probe[stack]")
    assert record.status is status
    assert reason in record.reason


def test_wrong_stack_does_not_prevent_the_run() -> None:
    backend = Stacked(OSError("no driver"))
    assert "no driver" in stack_of(backend, backend.probe()[0])["stack()"]


def test_backend_without_a_stack_passes_and_is_told() -> None:
    (record,) = check_backend(HostBackend(), cases="probe[stack]")
    assert (record.status, record.reason.partition(":")[0]) == (Status.PASSED, "the backend has no stack()")
