"""Every planted fault is found by the test that is listed for it.

Faults are planted in a copy of the workspace, whose packages stand before the installed ones on PYTHONPATH; the
workspace itself is not changed. The listed tests also run without a fault: they must pass in the copy.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from planted import FAULTS, Fault

ROOT = Path(__file__).resolve().parents[2]
#: A fault may make a test hang, which finds it too; no listed test takes nearly as long.
_TIMEOUT_SECONDS = 600

pytestmark = pytest.mark.full("faults")


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of every file that git tracks or would track, with the present contents."""
    target = tmp_path_factory.mktemp("workspace")
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)
    return target


@pytest.fixture(params=FAULTS, ids=lambda fault: fault.name)
def planted(request: pytest.FixtureRequest, workspace: Path) -> Iterator[Fault]:
    """The fault, while it is in the copy."""
    fault: Fault = request.param
    path = workspace / fault.file
    content = path.read_text(encoding="utf-8")
    assert content.count(fault.original) == 1, f"adapt planted.py: {fault.original!r} must occur once in {fault.file}"
    path.write_text(content.replace(fault.original, fault.faulty), encoding="utf-8")
    yield fault
    path.write_text(content, encoding="utf-8")


def test_fault_is_found(planted: Fault, workspace: Path) -> None:
    try:
        done = run(planted.found_by, workspace)
    except subprocess.TimeoutExpired:
        return  # a hang is found as well
    if done.returncode == 0 and " passed" not in done.stdout:
        pytest.skip(f"{planted.found_by} is skipped here: {done.stdout.strip().splitlines()[-1]}")
    assert done.returncode != 0, f"{planted.found_by} passes although: {planted.name}"
    # Exit codes of pytest that say nothing about the code under test.
    assert done.returncode not in (2, 4, 5), f"pytest could not run {planted.found_by}:\n{done.stdout[-3000:]}"
    assert not re.search(r"^ERROR .*(conftest|collect)", done.stdout, re.MULTILINE), done.stdout[-3000:]


@pytest.mark.parametrize("tests", sorted({fault.found_by for fault in FAULTS}))
def test_listed_tests_pass_without_faults(tests: str, workspace: Path) -> None:
    done = run(tests, workspace)
    assert done.returncode == 0, done.stdout[-5000:]


def run(tests: str, workspace: Path) -> subprocess.CompletedProcess[str]:
    """Run tests of the contributors' tier in the copy, up to the first failure."""
    packages = [*workspace.glob("*/src"), *workspace.glob("plugins/*/src")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, packages)), "PYTHONDONTWRITEBYTECODE": "1"}
    environment["LITE_CACHE_DIR"] = str(workspace / ".cache")
    for name in list(environment):
        if name.startswith("PYTEST_"):
            del environment[name]
    command = [sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider", *tests.split()]
    return subprocess.run(
        command, cwd=workspace, env=environment, capture_output=True, text=True, timeout=_TIMEOUT_SECONDS
    )
