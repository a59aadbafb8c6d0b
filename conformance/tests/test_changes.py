"""Changes between two reports: cases, and the versions and suites that they were made with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from report_samples import later_report, small_report

from lite_conformance.cli import run_command_line
from lite_conformance.reports.changes import compare, setting_changes
from lite_conformance.reports.record import Report


def test_versions_that_differ_are_named() -> None:
    before = small_report()
    lines = compare(before, later_report(before)).settings
    assert lines == ["toy-backend 0.3.1 → 0.4.0"]


def test_another_suite_is_named_with_what_it_means() -> None:
    before = {"versions": {"lite-core": "0.1.0"}, "suite": {"references": "1111", "cases": "3333"}}
    after = {"versions": {"lite-core": "0.2.0"}, "suite": {"references": "2222", "cases": "3333"}}
    first, second, last = setting_changes(before, after)
    assert first == "lite-core 0.1.0 → 0.2.0"
    assert second == "the suite's references 1111 → 2222"
    assert "different suites" in last


def test_a_report_without_digests_was_judged_by_another_suite() -> None:
    assert "different suites" in setting_changes({}, {"suite": {"references": "2222"}})[-1]


def test_the_device_and_the_stack_are_named() -> None:
    lines = setting_changes({"device": "a", "stack": {"driver": "1"}}, {"device": "b", "stack": {}})
    assert lines == ["device a → b", "stack: driver 1 → not named"]


def files_of(folder: Path, *reports: Report) -> list[str]:
    names = [str(folder / f"{number}.json") for number in range(len(reports))]
    for name, report in zip(names, reports):
        report.write(name)
    return names


def test_the_command_says_what_changed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = small_report()
    files = files_of(tmp_path, before, later_report(before))
    assert run_command_line(["compare", *files]) == 1
    output = capsys.readouterr().out
    for text in (
        "toy-backend 0.3.1 → 0.4.0",
        "passed before, bad now: 1",
        "Relu[f32,n1c3h8w8] (passed → failed): 3 of 192 elements out of tolerance",
        "gone: 1",
        "bad before, passed now: 1",
        "new: 1",
    ):
        assert text in output
    assert run_command_line(["compare", *files, "--json"]) == 1
    result = json.loads(capsys.readouterr().out)
    assert [change["case"] for change in result["regressed"]] == ["Relu[f32,n1c3h8w8]"]


def test_equal_reports_have_no_changes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (file,) = files_of(tmp_path, small_report())
    assert run_command_line(["compare", file, file]) == 0
    assert capsys.readouterr().out == "no case changed\n"


def test_of_two_backends_only_what_both_have_is_compared() -> None:
    before = {"backend": "a", "device": "x", "versions": {"lite-core": "1", "lite-a": "1"}, "stack": {"driver": "1"}}
    after = {"backend": "b", "device": "y", "versions": {"lite-core": "2", "lite-b": "1"}, "stack": {"compiler": "1"}}
    assert setting_changes(before, after) == ["backend a → b", "lite-core 1 → 2"]
