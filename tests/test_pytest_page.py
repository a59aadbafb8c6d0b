"""The code and the commands of docs/pytest.md work."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.full("conformance")

PAGE = (Path(__file__).parents[1] / "docs/pytest.md").read_text(encoding="utf-8")
FILES = re.findall(r"^```python\n# (\S+)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
COMMANDS = re.findall(r"^(pytest .+?)(?:  +#.*)?$", PAGE, re.MULTILINE)
#: The page names a backend that other machines may not have.
HERE = ("opencl", "host")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    (folder / "tests").mkdir()
    for name, text in FILES:
        (folder / name).write_text(text.replace(*HERE))
    return folder


def run(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-c", "/dev/null", "--rootdir", ".", "-p", "no:cacheprovider"]
    return subprocess.run([*command, *arguments], cwd=project, capture_output=True, text=True, timeout=300)


def test_page_has_files_and_commands() -> None:
    assert len(FILES) == 2
    assert len(COMMANDS) == 6


@pytest.mark.parametrize("command", COMMANDS)
def test_command_selects_cases(project: Path, command: str) -> None:
    done = run(project, *shlex.split(command.replace(*HERE))[1:], "--collect-only", "-q")
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"(?m)^\S+::.*\w\[", done.stdout)


def test_backend_object_passes(project: Path) -> None:
    done = run(project, "tests/test_objects.py", "-q", "-n", "1", "--lite-json", "r.json")
    assert done.returncode == 0, done.stdout
    assert "toy: " in done.stdout
    assert " 0 failed" in done.stdout
