"""The suite as pytest tests, run in a separate pytest."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
EXPECTATIONS = """
[[unsupported]]
case = "MatMul[f32,drawn]"
reason = "declared out of reach"
[[xfail]]
case = "Add[f32,drawn]"
reason = "issue 12"
[[xfail]]
case = "probe[devices]"
reason = "fixed since"
[[xfail]]
case = "Addition"
reason = "a misspelt name"
"""


def pytest_on(folder: Path, *arguments: str) -> tuple[int, dict[str, str], str]:
    """Run pytest; return its exit code, the outcome of each test by the name of its case, and its output."""
    command = [sys.executable, "-m", "pytest", "-rA", "-p", "no:cacheprovider", "-c", "/dev/null", "--rootdir", "."]
    done = subprocess.run([*command, *arguments], cwd=folder, capture_output=True, text=True, timeout=100)
    outcomes = {}
    for line in done.stdout.splitlines():
        outcome, _, test = line.partition(" ")
        if outcome in ("PASSED", "FAILED", "XFAIL", "ERROR") and "::" in test:
            outcomes[test.partition("::test_conformance[")[2].partition(" - ")[0].removesuffix("]")] = outcome
    return done.returncode, outcomes, done.stdout + done.stderr


def written(folder: Path, backend: str, cases: tuple[str, ...], **more: object) -> Path:
    options = "".join(f", {name}={value!r}" for name, value in more.items())
    (folder / "test_toy.py").write_text(
        "from lite_conformance.pytest_plugin import conformance_tests\n"
        f"test_conformance = conformance_tests({backend!r}, cases={cases!r}{options})\n"
    )
    return folder


@pytest.fixture(scope="module")
def half_precision(tmp_path_factory: pytest.TempPathFactory) -> tuple[int, dict[str, str], str]:
    """The results of a backend that rounds to float16, in two processes of pytest-xdist."""
    folder = tmp_path_factory.mktemp("half")
    (folder / "conformance.toml").write_text(EXPECTATIONS)
    cases = ("probe[devices]", "probe[repeatable]", "Add[f32,drawn]", "Relu[f32,drawn]", "Exp[f32,drawn]")
    written(
        folder,
        f"{HERE / 'wrong_backends.py'}:backend_half_precision",
        (*cases, "MatMul[f32,drawn]"),
        examples=50,
        expectations=str(folder / "conformance.toml"),
    )
    return pytest_on(folder, "-n", "2")


def test_each_case_is_a_test(half_precision: tuple[int, dict[str, str], str]) -> None:
    code, outcomes, output = half_precision
    assert code == 1
    assert outcomes == {
        "expectations": "FAILED",
        "probe[devices]": "FAILED",
        "probe[repeatable]": "PASSED",
        "Add[f32,drawn]": "XFAIL",
        "Relu[f32,drawn]": "FAILED",
    }
    assert "2 skipped" in output


def test_reasons_are_shown(half_precision: tuple[int, dict[str, str], str]) -> None:
    output = half_precision[2]
    assert "half_precision has no Exp" in output
    assert "declared out of reach" in output
    assert "issue 12" in output
    assert "xpass: probe[devices]: " in output
    assert "'Addition'" in output


def test_failure_has_tolerances_and_the_repro_command(
    half_precision: tuple[int, dict[str, str], str],
) -> None:
    output = half_precision[2]
    assert "failed: Relu[f32,drawn]: Relu(float32[" in output
    assert "allowed rtol 0, atol 0; required rtol " in output
    assert "lite-conformance --backend " in output
    assert "--case 'Relu[f32,drawn]' --seed 0 --examples 50" in output
    assert "def test_conformance" not in output  # no traceback of the suite


def test_crash_fails_one_test(tmp_path: Path) -> None:
    cases = ("Relu[f32,drawn]", "probe[devices]", "probe[repeatable]")
    code, outcomes, output = pytest_on(written(tmp_path, f"{HERE / 'hostile_backends.py'}:dies_in_compile", cases))
    assert code == 1
    assert outcomes.pop("Relu[f32,drawn]") == "FAILED"
    assert outcomes == dict.fromkeys(("expectations", "probe[devices]", "probe[repeatable]"), "PASSED")
    assert "crashed: Relu[f32,drawn]: the process was ended by SIGKILL" in output


def test_missing_backend_skips_all_tests(tmp_path: Path) -> None:
    code, outcomes, output = pytest_on(written(tmp_path, "no_such_backend", ("Relu[f32,drawn]",)))
    assert (code, outcomes) == (0, {})
    assert "2 skipped" in output
    assert "'no_such_backend'" in output


@pytest.mark.parametrize(
    ("backend", "message"),
    [
        ("memory_raises", "RuntimeError: no context"),
        ("nothing", "'nothing'"),
    ],
)
def test_unusable_backend_fails_all_tests(tmp_path: Path, backend: str, message: str) -> None:
    spec = f"{HERE / 'hostile_backends.py'}:{backend}"
    code, outcomes, output = pytest_on(written(tmp_path, spec, ("Relu[f32,drawn]",)))
    assert (code, set(outcomes.values())) == (1, {"FAILED"})
    assert message in output
    assert "def test_conformance" not in output
