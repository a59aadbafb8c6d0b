"""The suite as pytest tests, in a pytest of its own."""

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
reason = "it was so once"
[[xfail]]
case = "Addition"
reason = "a slip of the pen"
"""


def pytest_on(folder: Path, *arguments: str) -> tuple[int, dict[str, str], str]:
    """Exit code, outcome of each test by the name of its case, and all that was printed."""
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
    """Add and Relu with float16 in between, by two processes of pytest-xdist."""
    folder = tmp_path_factory.mktemp("half")
    (folder / "conformance.toml").write_text(EXPECTATIONS)
    cases = ("probe[devices]", "probe[repeatable]", "Add[f32,drawn]", "Relu[f32,drawn]", "Exp[f32,drawn]")
    written(
        folder,
        f"{HERE / 'wrong_backends.py'}:backend_half_precision",
        (*cases, "MatMul[f32,drawn]"),
        examples=2,
        expectations=str(folder / "conformance.toml"),
    )
    return pytest_on(folder, "-n", "2")


def test_each_case_is_a_test(half_precision: tuple[int, dict[str, str], str]) -> None:
    code, outcomes, told = half_precision
    assert code == 1
    assert outcomes == {
        "expectations": "FAILED",
        "probe[devices]": "FAILED",
        "probe[repeatable]": "PASSED",
        "Add[f32,drawn]": "XFAIL",
        "Relu[f32,drawn]": "FAILED",
    }
    assert "3 failed, 1 passed, 2 skipped, 1 xfailed" in told


def test_reasons_are_shown(half_precision: tuple[int, dict[str, str], str]) -> None:
    told = half_precision[2]
    assert "half_precision has no Exp" in told
    assert "declared out of reach" in told
    assert "issue 12" in told
    assert "xpass: probe[devices]: passes although " in told
    assert "case = 'Addition' matches no case; remove or correct it" in told


def test_a_failure_has_its_numbers_and_the_command_that_repeats_it(
    half_precision: tuple[int, dict[str, str], str],
) -> None:
    told = half_precision[2]
    assert "failed: Relu[f32,drawn]: Relu(float32[" in told
    assert "allowed rtol 0, atol 0; it would take rtol " in told
    assert "again: lite-conformance --backend " in told
    assert "--case 'Relu[f32,drawn]' --seed 0 --examples 2" in told
    assert "def test_conformance" not in told  # the suite's own lines are nothing to the reader


def test_a_crash_is_one_failed_test(tmp_path: Path) -> None:
    cases = ("Relu[f32,drawn]", "probe[devices]", "probe[repeatable]")
    code, outcomes, told = pytest_on(written(tmp_path, f"{HERE / 'hostile_backends.py'}:dies_in_compile", cases))
    assert code == 1
    assert outcomes.pop("Relu[f32,drawn]") == "FAILED"
    assert outcomes == dict.fromkeys(("expectations", "probe[devices]", "probe[repeatable]"), "PASSED")
    assert "crashed: Relu[f32,drawn]: the process was ended by SIGKILL" in told


def test_without_the_backend_everything_is_skipped(tmp_path: Path) -> None:
    code, outcomes, told = pytest_on(written(tmp_path, "nobody", ("Relu[f32,drawn]",)))
    assert (code, outcomes) == (0, {})
    assert "2 skipped" in told
    assert "backend 'nobody' is not installed" in told


@pytest.mark.parametrize(
    ("backend", "message"),
    [
        ("memory_raises", "memory() of hostile raised RuntimeError: no context"),
        ("nothing", "has no attribute 'nothing'"),
    ],
)
def test_what_cannot_be_opened_fails_in_a_sentence(tmp_path: Path, backend: str, message: str) -> None:
    spec = f"{HERE / 'hostile_backends.py'}:{backend}"
    code, outcomes, told = pytest_on(written(tmp_path, spec, ("Relu[f32,drawn]",)))
    assert (code, set(outcomes.values())) == (1, {"FAILED"})
    assert message in told
    assert "def test_conformance" not in told
