"""The whole suite on the backend ``host``, run from the command line: all cases pass, and every operator is tested."""

from __future__ import annotations

import json
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from lite_conformance import Report, Status, read_report
from lite_conformance.cases.op_cases import main_dtypes
from lite_conformance.cases.operators import all_tables
from lite_core import ops

pytestmark = pytest.mark.full("conformance")

#: The reasons of cases that need an optional part of an executable, which those of the backend ``host`` lack.
OPTIONAL = (
    "saving is optional: the executable has no save()",
    "profiling is optional: the executable has no run_profiled()",
)


def opset() -> set[str]:
    """Return the opset without operators that other tests of this process have added, and without those of strings.

    Strings are on host only, and lite-onnx tests them against ONNX Runtime.
    """
    return {d.qualified_name for d in ops.all_ops() if d.domain in ("", "lite") and main_dtypes(d)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("host")
    command = [sys.executable, "-m", "lite_conformance", "--backend", "host", "--jobs", "2", "--timeout", "300"]
    command += ["--json", "r.json", "--junit", "r.xml", "--html", "r.html"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    (folder / "output.txt").write_text(done.stdout + done.stderr)
    (folder / "code.txt").write_text(str(done.returncode))
    return folder


@pytest.fixture(scope="module")
def report(folder: Path) -> Report:
    return read_report(folder / "r.json")


def test_everything_passes(folder: Path, report: Report) -> None:
    bad = [f"{r.status} {r.case}: {r.reason}" for r in report.records if r.status.is_bad]
    assert not bad
    assert (folder / "code.txt").read_text() == "0", (folder / "output.txt").read_text()[-3000:]


def test_all_cases_pass_but_those_of_optional_parts(report: Report) -> None:
    """The backend ``host`` neither saves nor profiles; its other cases pass."""
    others = [r for r in report.records if r.status is not Status.PASSED]
    assert [f"{r.status} {r.case}: {r.reason}" for r in others if r.reason not in OPTIONAL] == []
    assert {r.status for r in others} == {Status.UNSUPPORTED}
    assert {r.reason for r in others} == set(OPTIONAL)
    assert {r.level for r in report.records} == {0, 1, 2, 3, 4, 5}


def test_every_operator_runs_in_all_of_its_element_types(report: Report) -> None:
    tested = {(r.op, r.dtype) for r in report.records if r.suite == "ops" and r.status is Status.PASSED}
    missing = [
        (table.definition.qualified_name, dtype.value)
        for table in all_tables()
        for dtype in table.dtypes
        if (table.definition.qualified_name, dtype.value) not in tested
    ]
    assert not missing
    assert opset() == {op for op, _ in tested}


def test_every_operator_has_drawn_cases(report: Report) -> None:
    drawn = {r.op for r in report.records if r.case.endswith(",drawn]")}
    assert drawn == opset()
    assert all(r.examples > 1 for r in report.records if r.case.endswith(",drawn]"))


def test_records_have_tolerances_and_measurements(report: Report) -> None:
    compared = [r for r in report.records if r.suite == "ops" and r.dtype == "float32" and r.tolerance is not None]
    assert compared
    for record in compared:
        assert record.measured is not None
        assert record.tolerance is not None
        assert record.measured.required_rtol <= record.tolerance.rtol
        assert not record.tolerance.loosened
    assert report.weighted_pass_rate() == 1.0


def test_reports_have_the_same_records(folder: Path, report: Report) -> None:
    plain = json.loads((folder / "r.json").read_text())
    assert plain["counts"]["passed"] == sum(r.status is Status.PASSED for r in report.records)
    suites = ElementTree.parse(folder / "r.xml").getroot()
    assert sum(1 for _ in suites.iter("testcase")) == len(report.records)
    assert "Conv" in (folder / "r.html").read_text(encoding="utf-8")
