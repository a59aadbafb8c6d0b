"""Must-pass lists: every name is a case, a list changes only with its version, and a backend conforms or not."""

from __future__ import annotations

from pathlib import Path

import pytest

from lite_conformance import Record, Status, read_report
from lite_conformance.cases.case import Settings
from lite_conformance.cases.catalogue import all_cases
from lite_conformance.cli import run_command_line
from lite_conformance.cli.missing import missing_lines
from lite_conformance.reports.badge import badge_svg, badge_text
from lite_conformance.reports.record import Report
from lite_conformance.run.must_pass import (
    MustPassList,
    conformity,
    digest_of_cases,
    known_versions,
    listed_profiles,
    must_pass_list,
    parse_cases,
)
from lite_conformance.run.profiles import PROFILES
from lite_core.errors import InputError

RELU_ONLY = """
import numpy as np

from lite_core import KernelBackend

backend = KernelBackend("relu_only")


@backend.kernel("Relu", dtypes=["float16"])
def relu(x, *, out):
    np.maximum(x, 0, out=out)
"""
SMALL = MustPassList("small", 3, ("Relu[f32,a]", "Conv[f32,a]", "graph[f32,a]"), digest_of_cases(["x"]))


@pytest.fixture(scope="module")
def catalogue() -> set[str]:
    return {case.name for case in all_cases(Settings("host"))}


@pytest.mark.parametrize("profile", listed_profiles())
def test_every_name_is_a_case_of_the_suite(profile: str, catalogue: set[str]) -> None:
    required = must_pass_list(profile)
    assert required is not None
    assert set(required.cases) <= catalogue, f"python scripts/make_must_pass.py {profile} --write writes a new version"


@pytest.mark.parametrize("profile", listed_profiles())
def test_a_list_has_the_digest_of_its_last_version(profile: str) -> None:
    required = must_pass_list(profile)
    assert required is not None
    versions = known_versions(profile)
    assert sorted(versions) == list(range(1, len(versions) + 1))
    assert required.digest == versions[required.version], (
        f"{profile}.txt differs from its version {required.version}: a list never changes without a new version; "
        f"python scripts/make_must_pass.py {profile} --write"
    )
    assert PROFILES[profile].must_pass == required


def test_names_twice_and_empty_lists_are_refused() -> None:
    with pytest.raises(InputError, match=r"'Relu\[a\]'"):
        parse_cases("Relu[a]\nConv[a]\nRelu[a]\n")
    with pytest.raises(InputError, match="no case"):
        parse_cases("\n \n")


def record(case: str, status: Status = Status.PASSED, **more: object) -> Record:
    op = "" if case.startswith("graph") else case.partition("[")[0]
    return Record(case, 2, "ops", op, status=status, weight=0.3 if op == "Conv" else 0.1, **more)  # type: ignore[arg-type]


def test_a_refused_case_and_one_that_did_not_run_are_missing_and_the_most_used_operator_is_first() -> None:
    records = [
        record("Relu[f32,a]", Status.UNSUPPORTED, reason="no kernel"),
        record("Conv[f32,a]", Status.FAILED, reason="wrong", repro="lite-conformance --case 'Conv[f32,a]'"),
        record("Sigmoid[f32,a]", Status.FAILED),
    ]
    found = conformity(SMALL, records)
    assert (found.passed, found.conforms) == (0, False)
    assert [(m.op, m.status) for m in found.missing] == [
        ("Conv", "failed"),
        ("Relu", "unsupported"),
        ("graph", "not run"),
    ]
    text = "\n".join(missing_lines(found))
    assert "small v3: 3 of 3" in text
    assert "Conv (30.0 % of the nodes of real models): 1 failed: wrong" in text
    assert "lite-conformance --case 'Conv[f32,a]'" in text


def test_a_backend_that_passes_every_case_conforms() -> None:
    found = conformity(SMALL, [record(case) for case in SMALL.cases])
    assert found.verdict == "conforms to small v3"
    assert missing_lines(found) == []


def test_results_in_fewer_bits_do_not_count() -> None:
    found = conformity(SMALL, [record(case, precision="int8") for case in SMALL.cases])
    assert not found.conforms


@pytest.mark.full("conformance")
def test_host_conforms_and_the_report_names_the_list(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["profiles", "int8", "-b", "host", "-q", "--json", str(tmp_path)]) == 0
    assert "conforms to int8 v1" in capsys.readouterr().out
    required = must_pass_list("int8")
    assert required is not None
    header = read_report(tmp_path / "int8.json").header
    assert header["must_pass"] == {"version": 1, "cases": len(required.cases), "digest": required.digest}


@pytest.mark.full("conformance")
@pytest.mark.parametrize("profile", [name for name in listed_profiles() if name != "int8"])
def test_x86_conforms(profile: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["profiles", profile, "-b", "x86", "-q"]) == 0, capsys.readouterr().out


@pytest.mark.full("conformance")
def test_a_backend_that_refuses_most_operators_does_not_conform(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "relu_only.py"
    file.write_text(RELU_ONLY)
    assert run_command_line(["profiles", "transformer-f16", "-b", f"{file}:backend", "-q"]) == 1
    output = capsys.readouterr().out
    assert "does not conform to transformer-f16 v1" in output
    assert "unsupported" in output.partition("profile ")[0], "what is missing comes first"


def test_badges() -> None:
    header = {"profile": "small", "must_pass": {"version": 3, "cases": 3}}
    good = Report(header, [record(case, examples=1) for case in SMALL.cases])
    assert badge_text(good) == ("small v3", "good")
    good.records[0].status = Status.UNSUPPORTED
    assert badge_text(good) == ("small v3: 2 of 3", "bad")
    good.records[0].status = Status.CRASHED
    assert badge_text(good) == ("1 of 3 bad", "bad")
    assert badge_text(Report({"incomplete": "interrupted"}, [record("Relu[f32,a]", examples=1)]))[1] == "unknown"
    picture = badge_svg("<acme>", "a & b", "good")
    assert "&lt;acme&gt;: a &amp; b" in picture
    assert "<acme>" not in picture
