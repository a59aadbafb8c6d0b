"""Reports of a part of the suite: of runs that ended early, and of selected cases."""

from __future__ import annotations

import io
from pathlib import Path
from xml.etree import ElementTree

import pytest
from rich.console import Console

from lite_conformance import Record, Report, Status, read_report
from lite_conformance.reports.files import replace_text
from lite_conformance.reports.html import render_html
from lite_conformance.reports.junit import write_junit
from lite_conformance.reports.summary import pass_rate_text
from lite_conformance.reports.terminal import print_summary

WHY = "interrupted, 3 of 12 cases ran"


def record(op: str, weight: float, status: Status = Status.PASSED, level: int = 2) -> Record:
    return Record(f"{op}[f32,{status}]", level, "ops", op=op, weight=weight, status=status, examples=1)


def partial() -> Report:
    records = [record("Conv", 0.25), record("Conv", 0.25, Status.FAILED), record("Relu", 0.15)]
    return Report({"backend": "toy", "incomplete": WHY}, records)


def test_incomplete_run_says_so_in_every_report(tmp_path: Path) -> None:
    report = partial()
    report.write(tmp_path / "r.json")
    read = read_report(tmp_path / "r.json")
    assert (read.incomplete, read.is_interrupted) == (WHY, True)
    assert WHY in render_html([report])
    stream = io.StringIO()
    print_summary(report, Console(file=stream, width=200))
    assert stream.getvalue().splitlines()[-1].endswith(WHY)
    write_junit(report, tmp_path / "r.xml")
    root = ElementTree.parse(tmp_path / "r.xml").getroot()
    assert [e.get("message") for e in root.iterfind("testsuite[@name='run']/testcase/error")] == [WHY]
    assert (root.get("tests"), root.get("errors")) == ("4", "1")
    properties = {p.get("name"): p.get("value") for p in root.iterfind("testsuite/properties/property")}
    assert properties["incomplete"] == WHY


def test_complete_run_has_no_such_element(tmp_path: Path) -> None:
    write_junit(Report({"backend": "toy"}, partial().records), tmp_path / "r.xml")
    assert ElementTree.parse(tmp_path / "r.xml").getroot().find("testsuite[@name='run']") is None
    assert not Report().is_interrupted


def test_weighted_pass_rate_of_selected_cases() -> None:
    report = Report({"options": {"cases": ["Conv[*"]}}, partial().records)
    assert report.weighted_pass_rate() == pytest.approx((0.25 / 2 + 0.15) / 0.4)
    assert report.weight_covered() == pytest.approx(0.4)
    assert (
        pass_rate_text(report)
        == "weighted pass rate: 68.7 % of 2 operator(s), which are 40.0 % of the nodes of real models"
    )
    assert report.to_dict()["weight_covered"] == report.weight_covered()


def test_report_without_operators_of_models_has_no_rate() -> None:
    report = Report({}, [record("Einsum", 0.0), record("Conv", 0.25, level=5)])
    assert report.weighted_pass_rate() is None
    assert pass_rate_text(report) == ""
    assert report.weight_covered() == 0.0


def test_file_is_replaced_at_once(tmp_path: Path) -> None:
    file = tmp_path / "r.json"
    file.write_text("old")
    other = tmp_path / "link.json"
    other.symlink_to(file)
    replace_text(other, "new")
    assert (file.read_text(), other.is_symlink()) == ("new", True)
    with pytest.raises(UnicodeEncodeError):
        replace_text(file, "\ud800")
    assert file.read_text() == "new"
    assert {p.name for p in tmp_path.iterdir()} == {"r.json", "link.json"}
