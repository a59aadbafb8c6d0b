"""Conformance profiles: each precision of a backend is green or red."""

from __future__ import annotations

from pathlib import Path

import pytest

from lite_conformance import Record, Status, read_report
from lite_conformance.cases.case import Settings
from lite_conformance.cases.catalogue import possible_cases
from lite_conformance.cli import run_command_line
from lite_conformance.cli.profiles_command import verdict
from lite_conformance.reports.record import Report
from lite_conformance.run.profiles import PROFILES, is_rounded

HERE = Path(__file__).parent
BFLOAT16 = {"level": 2, "suite": "ops", "precision": "bfloat16", "examples": 1}


def test_a_green_profile_and_its_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["profiles", "weights4", "-b", "host", "--sample", "3", "-q", "--json", str(tmp_path)]
    assert run_command_line(arguments) == 0
    (row,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith("weights4"))
    assert row.split()[-5:] == ["3", "0", "0", "0", "green"]
    report = read_report(tmp_path / "weights4.json")
    assert report.header["profile"] == "weights4"
    assert all(record.case.startswith("graph[f32,weights4-") for record in report.records)


@pytest.mark.full("conformance")
def test_a_backend_that_rounds_too_much_is_red(capsys: pytest.CaptureFixture[str]) -> None:
    wrong = f"{HERE / 'wrong_backends.py'}:backend_half_precision"
    assert run_command_line(["profiles", "float32", "int8", "-b", wrong, "--sample", "60", "-q"]) == 1
    output = capsys.readouterr().out
    assert "FAILED " in output
    assert "lite-conformance --backend" in output, "the command that repeats it is missing"
    assert any(line.startswith("float32") and line.split()[-1] == "red" for line in output.splitlines())


@pytest.mark.full("conformance")
@pytest.mark.parametrize(
    ("backend", "verdict"), [("right_float16", "green"), ("sums_float16", "green"), ("truncates_float16", "red")]
)
def test_sums_in_float16_are_judged_by_their_own_level(
    backend: str, verdict: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(HERE)  # it imports another module of this folder
    monkeypatch.setenv("PYTHONPATH", str(HERE))
    path = f"{HERE / 'low_precision_backends.py'}:{backend}"
    code = run_command_line(["profiles", "float16", "-b", path, "--sample", "200", "-q"])
    assert code == (0 if verdict == "green" else 1)
    (row,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith("float16"))
    assert row.split()[-1] == verdict
    assert ("(level float16-sums)" in row) == (backend == "sums_float16")


def test_every_profile_has_cases() -> None:
    for profile in PROFILES.values():
        for part in profile.parts:
            chosen = part.selection
            settings = part.settings(Settings("host"))
            if chosen.cases:
                assert any(possible_cases(settings, chosen.levels, chosen.cases)), profile.name


def test_rounded_results_are_counted_apart() -> None:
    exact = Record("a", **BFLOAT16, reason="bfloat16: as exact as float32")
    rounded = Record("b", **BFLOAT16, reason="bfloat16: within the error bound of rounded operands")
    failed = Record("c", **BFLOAT16, status=Status.FAILED, reason="bfloat16: y is wrong")
    assert [is_rounded(record) for record in (exact, rounded, failed)] == [False, True, False]
    assert verdict(Report({}, [exact, rounded])) == "green"
    assert verdict(Report({}, [exact, failed])) == "red"
    assert verdict(Report({"incomplete": "interrupted, 1 of 2 cases ran"}, [exact])) == "not finished"
    assert verdict(Report({}, [Record("d", **{**BFLOAT16, "examples": 0}, status=Status.UNSUPPORTED)])) != "green"
