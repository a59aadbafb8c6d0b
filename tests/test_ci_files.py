"""The CI files fit the schemas of their services, run the same commands, and name every version of Python."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from test_new_plugins import READ_YAML, SCHEMAS
from test_wheels import clean_environment, run

import pythons
from portable_tests import DISTRIBUTIONS, TESTS
from workspace import ROOT, distributions

FILES = {
    "github": ROOT / ".github/workflows/test.yml",
    "gitlab": ROOT / ".gitlab-ci.yml",
    "azure": ROOT / "azure-pipelines.yml",
}
in_full_tier = pytest.mark.full("packages")
each_service = pytest.mark.parametrize("service", FILES)

LINUX = ["make lint PYTHON=python", "make test PYTHON=python"]
OTHERS = ["python -m pip install -r requirements-portable.txt", "python scripts/portable_tests.py"]
PACKAGES = ["make release PYTHON=python"]


@pytest.fixture(scope="module")
def checker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python with the schemas of the CI services."""
    python = clean_environment(tmp_path_factory.mktemp("checker"))
    subprocess.run([python, "-m", "pip", "install", "--quiet", "check-jsonschema"], check=True)
    return python


def jobs(service: str, content: dict[str, Any]) -> dict[str, list[str]]:
    """Return the commands of each job; those that only make an environment are left out."""
    if service == "gitlab":
        return {name: job["script"] for name, job in content.items() if name != "workflow"}
    found = content["jobs"] if service == "github" else {job["job"]: job for job in content["jobs"]}
    return {
        name: [step[key] for step in job["steps"] for key in ("run", "script") if key in step]
        for name, job in found.items()
    }


@in_full_tier
@each_service
def test_a_file_fits_the_schema_of_its_service_and_runs_the_same_commands(service: str, checker: Path) -> None:
    checked = run(checker, "-m", "check_jsonschema", "--builtin-schema", *SCHEMAS[service], FILES[service])
    assert checked.returncode == 0, checked.stdout + checked.stderr
    shown = run(checker, "-c", READ_YAML, FILES[service])
    found = jobs(service, json.loads(shown.stdout))
    expected = {"linux": LINUX, "others": OTHERS, "packages": PACKAGES}
    if service == "gitlab":  # whose systems need different preparations
        expected = {"linux": LINUX, "macos": OTHERS, "windows": OTHERS, "packages": PACKAGES}
    assert found == expected


@each_service
def test_a_file_names_every_version_of_python_and_says_that_it_was_not_run(service: str) -> None:
    text = FILES[service].read_text(encoding="utf-8")
    found = re.findall(r'"(3\.\d+)"', text)
    assert sorted(set(found), key=lambda version: int(version[2:])) == list(pythons.VERSIONS)
    assert all(found.count(version) >= 2 for version in pythons.VERSIONS), "on Linux, and on other systems"
    assert "Not run yet" in text


def test_portable_tests_exist_and_their_requirements_are_complete() -> None:
    assert all((ROOT / path).exists() for path in TESTS)
    named = (ROOT / "requirements-portable.txt").read_text(encoding="utf-8").splitlines()
    folders = {line for line in named if line.startswith("./")}
    by_folder = {f"./{one.folder.relative_to(ROOT).as_posix()}": one for one in distributions()}
    assert sorted(by_folder[folder].name for folder in folders) == sorted(DISTRIBUTIONS)
    own = {one.name for one in distributions()}
    for folder in folders:
        assert by_folder[folder].required() & own <= set(DISTRIBUTIONS), "pip would look for it in an index"
