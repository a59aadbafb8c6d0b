"""The options, markers and reports of the pytest plugin, in a separate pytest."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
HALF = f"{HERE / 'wrong_backends.py'}:backend_half_precision"
SUITE = f"lite::{HALF}"
CASES = ("probe[devices]", "Exp[f32,drawn]", "Relu[f32,drawn]")
full = pytest.mark.full("conformance")


def command(*arguments: str) -> list[str]:
    given = [sys.executable, "-m", "pytest", "-rA", "--tb=short", "-c", "/dev/null", "--rootdir", "."]
    return [*given, "-p", "no:cacheprovider", *arguments]


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(*arguments), cwd=folder, capture_output=True, text=True, timeout=200)


def outcomes(done: subprocess.CompletedProcess[str]) -> dict[str, str]:
    """Return the outcome of each test by its node id; skipped tests are not listed one by one."""
    lines = [line.partition(" ")[::2] for line in done.stdout.splitlines()]
    return {
        test.partition(" - ")[0]: outcome for outcome, test in lines if outcome in ("PASSED", "FAILED") and "::" in test
    }


def chosen(*names: str) -> list[str]:
    return [argument for name in names for argument in ("--lite-case", name)]


def report_of(folder: Path, name: str = "r.json") -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / name).read_text())
    return found


def statuses(report: dict[str, Any]) -> dict[str, str]:
    return {record["case"]: record["status"] for record in report["records"]}


# **** without the suite ****


def test_plugin_imports_nothing_of_the_suite() -> None:
    code = (
        "import sys, pytest, lite_conformance.pytest_plugin; "
        "print(sorted(n for n in sys.modules if n.partition('.')[0] in ('numpy', 'click', 'lite_core', 'lite_tools')))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_option_without_a_suite_is_an_error(tmp_path: Path) -> None:
    done = run(tmp_path, "--lite-op", "Conv")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "--lite-op is for the suite of --lite-backend NAME" in done.stderr


# **** the suite of the command line ****


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which the suite and another test ran, with the reports."""
    folder = tmp_path_factory.mktemp("command-line")
    (folder / "test_other.py").write_text("def test_other(): pass\n")
    done = run(folder, "--lite-backend", HALF, *chosen(*CASES), "--lite-json", "r.json", "--lite-html", "r.html")
    (folder / "output.txt").write_text(done.stdout + done.stderr)
    assert outcomes(done) == {
        "test_other.py::test_other": "PASSED",
        f"{SUITE}::expectations": "PASSED",
        f"{SUITE}::probe[devices]": "PASSED",
        f"{SUITE}::Relu[f32,drawn]": "FAILED",
    }
    assert done.returncode == pytest.ExitCode.TESTS_FAILED
    return folder


def test_suite_runs_beside_other_tests(folder: Path) -> None:
    output = (folder / "output.txt").read_text()
    assert "half_precision has no Exp" in output
    assert f"repeat: lite-conformance --backend {HALF} --case 'Relu[f32,drawn]' --seed 0" in output


def test_reports_of_a_pytest_run_are_those_of_the_command(folder: Path) -> None:
    report = report_of(folder)
    assert statuses(report) == {
        "probe[devices]": "passed",
        "Relu[f32,drawn]": "failed",
        "Exp[f32,drawn]": "unsupported",
    }
    header = report["header"]
    assert header["backend"] == "half_precision"
    assert {"lite-core", "lite-conformance", "numpy", "python"} <= header["versions"].keys()
    assert header["options"]["cases"] == list(CASES)
    assert "incomplete" not in header
    assert "half_precision" in (folder / "r.html").read_text()
    assert "half_precision: 1 passed, 1 failed, 1 unsupported in " in (folder / "output.txt").read_text()


@full
def test_markers_and_keywords_select(tmp_path: Path) -> None:
    some = ("--collect-only", "-q", "--lite-backend", "host", "--lite-op", "Relu", "--lite-op", "Conv")
    ids = run(tmp_path, *some, "-m", "lite_op(name='Relu') and lite_dtype(name='float16')").stdout.splitlines()
    cases = [line for line in ids if line.startswith("lite::host::")]
    assert "lite::host::Relu[f16,drawn]" in cases
    assert all("[f16," in case for case in cases)
    low = run(tmp_path, *some, "-m", "lite_level(name='L2')", "-k", "bfloat16 and drawn").stdout.splitlines()
    assert [line for line in low if "::" in line] == ["lite::host::Conv[bf16,drawn]", "lite::host::Relu[bf16,drawn]"]


@full
def test_options_of_the_suite(tmp_path: Path) -> None:
    given = ["--lite-level", "L2-L2", "--lite-dtype", "f32", "--lite-op", "Relu", "--lite-exclude", "*drawn]"]
    given += ["--lite-shard", "1/2", "--lite-seed", "7", "--lite-examples", "3", "--lite-precision", "bfloat16"]
    done = run(tmp_path, "--lite-backend", "host", *given, "--lite-json", "r.json")
    assert done.returncode == 0, done.stdout
    report = report_of(tmp_path)
    assert all(record["dtype"] == "float32" and record["op"] == "Relu" for record in report["records"])
    options = report["header"]["options"]
    assert (options["seed"], options["examples"], options["precision"], options["shard"]) == (7, 3, "bfloat16", "1/2")


@full
def test_node_id_repeats_a_case(tmp_path: Path) -> None:
    (tmp_path / "test_other.py").write_text("def test_other(): pass\n")
    done = run(tmp_path, f"{SUITE}::Relu[f32,drawn]", f"{SUITE}::expectations")
    assert outcomes(done) == {f"{SUITE}::expectations": "PASSED", f"{SUITE}::Relu[f32,drawn]": "FAILED"}


@full
def test_last_failed(tmp_path: Path) -> None:
    again = [argument for argument in command(SUITE, *chosen(*CASES)) if argument not in ("-p", "no:cacheprovider")]
    for extra, expected in ((), 3), (("--lf",), 1):
        done = subprocess.run([*again, *extra], cwd=tmp_path, capture_output=True, text=True, timeout=200)
        assert len(outcomes(done)) == expected
    assert outcomes(done) == {f"{SUITE}::Relu[f32,drawn]": "FAILED"}


@full
@pytest.mark.parametrize("processes", [(), ("-n", "2")])
def test_first_failure_ends_the_run_and_reports_are_written(tmp_path: Path, processes: tuple[str, ...]) -> None:
    done = run(tmp_path, SUITE, "--lite-op", "Relu", "--lite-dtype", "f32", "-x", "--lite-json", "r.json", *processes)
    report = report_of(tmp_path)
    assert report["counts"]["failed"] >= 1
    count = len(report["records"])
    assert re.match(rf"stopping after \d failures, {count} of ", report["header"]["incomplete"])
    assert "wrote r.json" in done.stdout


@full
def test_xdist_reports_every_case_in_the_order_of_the_suite(tmp_path: Path) -> None:
    given = (SUITE, "--lite-op", "Relu", "--lite-dtype", "f32", "--lite-level", "L2")
    run(tmp_path, *given, "--lite-json", "one.json")
    run(tmp_path, *given, "--lite-json", "two.json", "-n", "2")
    one, two = report_of(tmp_path, "one.json"), report_of(tmp_path, "two.json")
    assert list(statuses(one).items()) == list(statuses(two).items())
    assert one["header"]["versions"] == two["header"]["versions"]
    assert "incomplete" not in two["header"]


@full
def test_interrupted_run_writes_its_reports(tmp_path: Path) -> None:
    given = (SUITE, "--lite-level", "L2", "--lite-json", "r.json", "-v")
    process = subprocess.Popen(
        command(*given),
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # which a background job ignores
    )
    assert process.stdout is not None
    for line in process.stdout:
        if "probe[" in line:
            break
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=100)
    assert process.returncode == pytest.ExitCode.INTERRUPTED, output
    assert report_of(tmp_path)["header"]["incomplete"].startswith("interrupted, ")


@full
@pytest.mark.parametrize("processes", [(), ("-n", "1")])
def test_missing_backend_of_the_command_line_is_an_error(tmp_path: Path, processes: tuple[str, ...]) -> None:
    done = run(tmp_path, "--lite-backend", "no_such_backend", "--lite-op", "Relu", "--lite-json", "r.json", *processes)
    assert done.returncode != 0
    assert "'no_such_backend' is not installed" in done.stdout
    assert "the backend 'no_such_backend' cannot be tested" in done.stdout
    assert "not written, because no case of the suite ran: r.json" in done.stdout
    assert not (tmp_path / "r.json").exists()


@full
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--lite-op", "Relluu"), "no operator is called 'Relluu'; similar names: Relu"),
        (("--lite-level", "L9"), "a level is L0 to L5"),
        (("--lite-precision", "float3"), "float3"),
        (("--lite-json", "no/such/folder/r.json"), "cannot be written"),
    ],
)
def test_wrong_options_are_explained(tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    done = run(tmp_path, "--lite-backend", "host", *arguments)
    assert done.returncode in (pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.INTERRUPTED)
    assert message in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr


# **** the suite of a test file ****

_BACKEND = """
import numpy as np
from lite_core.kernel_backend import KernelBackend

backend = KernelBackend("toy")

@backend.kernel("Relu", dtypes=["float32"])
def relu(x, *, out):
    np.maximum(x, 0, out=out)

@backend.kernel("Neg", dtypes=["float32"])
def neg(x, *, out):
    np.abs(x, out=out)
"""
_TESTS = """
import os
import pytest
from lite_conformance.pytest_plugin import conformance_tests
from helpers import backend

CASES = ("Relu[f32,drawn]", "Neg[f32,drawn]")

def mine():
    assert os.environ["SIMULATOR"] == "on"
    return backend

test_imported = conformance_tests(backend, cases=CASES)
test_function = conformance_tests(mine, cases=CASES)
test_local = conformance_tests(lambda: backend, cases=CASES)
test_named = conformance_tests("helpers:backend", cases=CASES, precision="bfloat16")
"""
_CONFTEST = """
import os
import sys
from pathlib import Path
import pytest

sys.path.insert(0, str(Path(__file__).parent / "support"))

@pytest.fixture(autouse=True, scope="session")
def simulator():
    os.environ["SIMULATOR"] = "on"
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project whose tests import a backend from a folder that conftest.py adds."""
    (tmp_path / "support").mkdir()
    (tmp_path / "support/helpers.py").write_text(_BACKEND)
    (tmp_path / "test_toy.py").write_text(_TESTS)
    (tmp_path / "conftest.py").write_text(_CONFTEST)
    return tmp_path


@full
@pytest.mark.parametrize("plugin", [(), ("-p", "no:lite")])
def test_backend_objects_and_fixtures(project: Path, plugin: tuple[str, ...]) -> None:
    done = run(project, "test_toy.py", *plugin)
    expected = {"expectations": "PASSED", "Relu[f32,drawn]": "PASSED", "Neg[f32,drawn]": "FAILED"}
    assert outcomes(done) == {
        f"test_toy.py::test_{way}[{case}]": outcome
        for way in ("imported", "function", "local", "named")
        for case, outcome in expected.items()
    }
    assert "repeat: pytest 'test_toy.py::test_local[Neg[f32,drawn]]'" in done.stdout


@full
def test_each_suite_of_a_file_has_a_report(project: Path) -> None:
    done = run(project, "test_toy.py", "-k", "imported or named", "--lite-json", "r.json", "--lite-html", "r.html")
    assert statuses(report_of(project)) == {"Relu[f32,drawn]": "passed", "Neg[f32,drawn]": "failed"}
    assert report_of(project, "r-2.json")["header"]["options"]["precision"] == "bfloat16"
    assert done.stdout.count("toy: 1 passed, 1 failed") + done.stdout.count("1 passed, 1 failed in") >= 2
    assert (project / "r.html").exists()


@full
def test_object_runs_in_a_worker_process_where_one_can_import_it(project: Path) -> None:
    (project / "support/helpers.py").write_text(_BACKEND.replace("np.abs(x, out=out)", "import os; os._exit(3)"))
    done = run(project, "test_toy.py", "-k", "imported or function")
    assert outcomes(done)["test_toy.py::test_imported[Neg[f32,drawn]]"] == "FAILED"
    assert done.stdout.count("the process ended with exit code 3") >= 2
    assert outcomes(done)["test_toy.py::test_function[Relu[f32,drawn]]"] == "PASSED"


@full
def test_failing_fixture_is_an_error_of_its_cases(project: Path) -> None:
    (project / "conftest.py").write_text(
        _CONFTEST.replace('os.environ["SIMULATOR"] = "on"', "raise OSError('no power')")
    )
    run(project, "test_toy.py", "-k", "imported", "--lite-json", "r.json")
    # The backend was never opened, so there is no report about it.
    assert not (project / "r.json").exists()
