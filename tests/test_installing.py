"""The commands of README and docs/installing.md install Lite from a checkout into a new environment, where it runs."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from test_wheels import TINY, clean_environment, run

from workspace import ROOT

pytestmark = pytest.mark.full("packages")

PAGE = (ROOT / "docs/installing.md").read_text(encoding="utf-8")


def section(title: str) -> list[str]:
    """Return the commands of a section of the page."""
    text = PAGE.partition(f"## {title}\n")[2].partition("\n## ")[0]
    commands: list[str] = re.findall(r"^    (.*)$", text, re.MULTILINE)
    assert commands
    return commands


def typed(commands: list[str], python: Path, dist: Path) -> None:
    """Type commands in the checkout, one shell for all of them, with the folder of wheels elsewhere."""
    script = "\n".join(commands).replace("--wheel-dir dist", f"--wheel-dir {dist}").replace("$PWD/dist", str(dist))
    variables = {k: v for k, v in os.environ.items() if not k.startswith(("LITE_", "PYTHON", "VIRTUAL_ENV"))}
    variables["PATH"] = f"{python.parent}{os.pathsep}{variables['PATH']}"
    done = subprocess.run(["sh", "-ec", script], cwd=ROOT, env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def installed(python: Path) -> set[str]:
    listed = run(python, "-m", "pip", "list", "--format", "freeze").stdout
    return set(re.findall(r"^(lite-[a-z0-9]+)==", listed, re.MULTILINE))


def test_this_machine(tmp_path: Path) -> None:
    python = clean_environment(tmp_path)
    assert section("For this machine")[0] in (ROOT / "README.md").read_text(encoding="utf-8")
    typed(section("For this machine"), python, tmp_path)
    done = run(python, python.parent / "lite", "run", TINY, "--input", TINY.parent / "inputs.npz")
    assert done.returncode == 0, done.stdout + done.stderr
    assert run(python, "-m", "pip", "check").returncode == 0
    typed([f"{command} --yes" for command in section("Removing")], python, tmp_path)
    assert not installed(python) - {"lite-arm"}


def test_chosen_packages(tmp_path: Path) -> None:
    python = clean_environment(tmp_path)
    typed(section("Chosen packages"), python, tmp_path)
    done = run(python, python.parent / "lite", "backends")
    assert "onnxruntime" in done.stdout, done.stdout + done.stderr


def test_commands_of_pages_and_messages(tmp_path: Path) -> None:
    python = clean_environment(tmp_path / "environment")
    typed(section("As the pages and messages say it"), python, tmp_path / "dist")
    assert {"lite-core", "lite-tools", "lite-onnx", "lite-x86"} <= installed(python)
    refused = run(python, python.parent / "lite", "run", TINY)
    remedy = re.findall(r"^next: (pip install .*)$", refused.stderr, re.MULTILINE)
    assert remedy, refused.stderr
    typed([f"export PIP_FIND_LINKS={tmp_path / 'dist'}", *remedy], python, tmp_path / "dist")
    done = run(python, python.parent / "lite", "run", TINY, "--input", TINY.parent / "inputs.npz")
    assert done.returncode == 0, done.stdout + done.stderr
