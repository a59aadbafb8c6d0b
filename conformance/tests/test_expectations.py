"""``conformance.toml``: its format, where it is found, and its effect on a run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from lite_conformance import Record, Status, check_backend
from lite_conformance.run.expectations import FILE_NAME, find_expectations, matches, read_expectations
from lite_core.errors import InputError

BACKENDS = Path(__file__).with_name("wrong_backends.py")


def written(folder: Path, text: str) -> Path:
    file = folder / FILE_NAME
    file.write_text(text, encoding="utf-8")
    return file


# **** reading ****


def test_every_problem_is_listed(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        """
        [[unsupported]]
        case = "Conv[*]"
        [[xfail]]
        case = ""
        reason = "because"
        rtol = 1.0
        [[xfail]]
        case = 5
        reason = "because"
        [[tolerance]]
        case = "Exp[*]"
        reason = "because"
        [[tolerance]]
        case = "Exp[*]"
        reason = "because"
        rtol = -1
        atol = "much"
        [[tolerance]]
        case = "Exp[*]"
        reason = "NaN would pass for a number"
        rtol = inf
        atol = nan
        [[tolerance]]
        case = "Exp[*]"
        reason = "because"
        rtol = true
        [[skip]]
        case = "Exp[*]"
        [other]
        case = "Exp[*]"
        """,
    )
    with pytest.raises(InputError) as found:
        read_expectations(file)
    message = str(found.value)
    for entry, key, value in (
        ("[[unsupported]] number 1", "reason", "None"),
        ("[[xfail]] number 1", "case", "''"),
        ("[[xfail]] number 1", "'rtol'", ""),
        ("[[xfail]] number 2", "case", "5"),
        ("[[tolerance]] number 1", "rtol", "atol"),
        ("[[tolerance]] number 2", "rtol", "-1"),
        ("[[tolerance]] number 2", "atol", "'much'"),
        ("[[tolerance]] number 3", "rtol", "inf"),
        ("[[tolerance]] number 3", "atol", "nan"),
        ("[[tolerance]] number 4", "rtol", "True"),
        ("'skip'", "", ""),
        ("'other'", "", ""),
    ):
        assert re.search(f"{re.escape(entry)}: [^;]*{key}.*{value}", message), (entry, key, value)
    assert message.startswith(str(file))


@pytest.mark.parametrize("text", ["[[xfail]", "xfail = 5", "unsupported = ['Conv[*]']"])
def test_invalid_file_is_rejected(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError, match=FILE_NAME):
        read_expectations(written(tmp_path, text))


def test_unreadable_file_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nowhere.toml"):
        read_expectations(tmp_path / "nowhere.toml")
    (tmp_path / "latin.toml").write_bytes(b'# \xe9\n[[xfail]]\ncase = "a"\nreason = "b"\n')
    with pytest.raises(InputError, match="latin.toml"):
        read_expectations(tmp_path / "latin.toml")


@pytest.mark.parametrize(
    ("pattern", "name", "is_match"),
    [
        ("Conv[f32,*]", "Conv[f32,n1c3h8w8,o4,k3s2p1]", True),
        ("Conv[f32,*]", "Conv3", False),
        ("Conv[f32,*]", "DeformConv[f32,x]", False),
        ("Conv[f32]", "Conv3", False),  # brackets are literal, not a set of characters
        ("Conv[f??,*]", "Conv[f16,x]", True),
        ("Conv[f??,*]", "Conv[bf16,x]", False),
        ("*[*,drawn]", "lite.BoxCoder[f32,drawn]", True),
        ("lite.BoxCoder[*]", "lite_BoxCoder[f32,drawn]", False),
        ("add[*]", "Add[f32,x]", False),
    ],
)
def test_wildcards(pattern: str, name: str, is_match: bool) -> None:
    assert matches(pattern, name) is is_match


# **** finding ****


def test_file_is_found_in_the_module_folder_or_a_parent_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "lite_found"
    (package / "deep").mkdir(parents=True)
    for file in (package / "__init__.py", package / "deep" / "__init__.py", package / "deep" / "plugin.py"):
        file.touch()
    monkeypatch.syspath_prepend(tmp_path)
    assert find_expectations("lite_found.deep.plugin").entries == ()
    written(tmp_path, '[[xfail]]\ncase = "a"\nreason = "outside the package"\n')
    assert find_expectations("lite_found.deep.plugin").entries == ()
    above = written(package, '[[xfail]]\ncase = "a"\nreason = "above"\n')
    assert find_expectations("lite_found.deep.plugin").source == str(above)
    beside = written(package / "deep", '[[xfail]]\ncase = "a"\nreason = "beside"\n')
    assert find_expectations("lite_found.deep.plugin").source == str(beside)


def test_file_is_found_for_an_installed_backend(tmp_path: Path) -> None:
    """The backend is installed as by pip: a package, and an entry point in its metadata."""
    package = tmp_path / "lite_present"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "plugin.py").write_text(
        "from lite_core.builtin import HostBackend\n"
        "from lite_core.backend import Device\n"
        "from lite_core.plugins import hookimpl\n"
        "LITE_API_VERSION = 1\n"
        "class Present(HostBackend):\n"
        "    name = 'present'\n"
        "    def probe(self):\n"
        "        return [Device('present', name='here')]\n"
        "@hookimpl\n"
        "def lite_backends():\n"
        "    return [Present()]\n"
    )
    written(package, '[[unsupported]]\ncase = "Relu[f32,*]"\nreason = "it has no Relu"\n')
    metadata = tmp_path / "lite_present-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: lite-present\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[lite.plugins]\npresent = lite_present.plugin\n")
    program = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "from lite_conformance.cases.case import Settings\n"
        "from lite_conformance import Selection, run_suite\n"
        "report = run_suite(Settings('present'), Selection(cases=['Relu[f32,drawn]']), isolate=False)\n"
        "print(report.header['plugin'], *((r.status, r.reason) for r in report.records))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "lite-present 1.0" in done.stdout
    assert "it has no Relu" in done.stdout


# **** a run ****

CASES = ("Softmax[f32,2x3x4x5,*]", "Relu[f32,drawn]", "Add[f32,drawn]", "MatMul[f32,2x3,3x4]", "Exp[f32,drawn]")


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Record]:
    """Records of a backend that rounds results to float16 and supports Add, Relu, Softmax and MatMul."""
    file = written(
        tmp_path_factory.mktemp("run"),
        """
        [[xfail]]
        case = "Add[f32,drawn]"
        reason = "issue 12"
        [[xfail]]
        case = "probe[devices]"
        reason = "fixed since"
        [[xfail]]
        case = "Exp[f32,drawn]"
        reason = "the backend refuses it"
        [[unsupported]]
        case = "Relu[f32,dra?n]"
        reason = "declared"
        [[tolerance]]
        case = "Softmax[f32,*]"
        rtol = 0.01
        reason = "half precision"
        [[tolerance]]
        case = "MatMul[f32,*]"
        rtol = 0
        atol = 0
        reason = "nothing is allowed here"
        [[tolerance]]
        case = "Softmacks[f32]"
        rtol = 0.01
        reason = "a misspelt name"
        [[xfail]]
        case = "model[mine]"
        reason = "exists only with --model"
        """,
    )
    found = check_backend(
        f"{BACKENDS}:backend_half_precision",
        cases=(
            "probe[devices]",
            "Softmax[f32,*]",
            "Relu[f32,drawn]",
            "Add[f32,drawn]",
            "MatMul[f32,*]",
            "Exp[f32,drawn]",
        ),
        examples=3,
        expectations=file,
    )
    return {record.case: record for record in found}


def test_expected_failure_is_xfail(records: dict[str, Record]) -> None:
    record = records["Add[f32,drawn]"]
    assert (record.status, record.expectation, record.status.is_bad) == (Status.XFAIL, "issue 12", False)
    assert "wrong" in record.reason
    assert record.measured is not None


def test_unexpected_pass_is_xpass(records: dict[str, Record]) -> None:
    record = records["probe[devices]"]
    assert (record.status, record.status.is_bad) == (Status.XPASS, True)
    assert "fixed since" in record.reason


def test_refused_case_stays_unsupported(records: dict[str, Record]) -> None:
    record = records["Exp[f32,drawn]"]
    assert (record.status, record.reason) == (Status.UNSUPPORTED, "half_precision has no Exp")


def test_case_declared_unsupported_is_not_run(records: dict[str, Record]) -> None:
    record = records["Relu[f32,drawn]"]
    assert (record.status, record.reason, record.examples) == (Status.UNSUPPORTED, "declared", 0)
    assert (record.backend, record.device) == ("half_precision", "half_precision: wrong on purpose")


def test_loosened_tolerance_is_reported(records: dict[str, Record]) -> None:
    compared = [r for r in records.values() if r.op == "Softmax" and r.tolerance is not None]
    assert compared
    for record in compared:
        assert record.tolerance is not None
        assert record.tolerance.loosened
        assert (record.tolerance.rtol, record.tolerance.reason) == (0.01, "half precision")
        assert record.tolerance.rtol > record.tolerance.default[0]
        assert record.tolerance.atol == record.tolerance.default[1]
        assert record.tolerance.source == FILE_NAME
    assert any(r.status is Status.PASSED for r in compared)


def test_tightened_tolerance_applies(records: dict[str, Record]) -> None:
    compared = [r for r in records.values() if r.op == "MatMul" and r.tolerance is not None]
    failed = [r for r in compared if r.status is Status.FAILED]
    assert failed
    for record in compared:
        assert record.tolerance is not None
        assert (record.tolerance.rtol, record.tolerance.atol, record.tolerance.loosened) == (0.0, 0.0, False)


def test_entry_without_a_matching_case_is_an_error(records: dict[str, Record]) -> None:
    errors = [r for r in records.values() if r.status is Status.ERROR]
    assert [r.case for r in errors] == ["expectations[tolerance:Softmacks[f32]]"]
    assert errors[0].suite == "expectations"


def test_repro_command_has_the_expectations_file(records: dict[str, Record]) -> None:
    assert "--expectations" in records["Add[f32,drawn]"].repro
    assert "--examples 3" in records["Add[f32,drawn]"].repro
