"""Packages of ``lite new-plugin`` in clean environments, with wheels of Lite: the steps of their CI files pass."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from new_plugins import EVERYTHING, PLUGINS, written
from test_wheels import build, clean_environment, run

from lite_tools.cli.new_plugin_ci import SERVICES, ci_steps
from lite_tools.cli.new_plugin_kinds import NewPlugin
from workspace import distributions

pytestmark = pytest.mark.full("packages")

NEEDED = ("lite-compiler", "lite-conformance", "lite-core", "lite-numba", "lite-tools")
#: The names of the schemas in check-jsonschema. NOTE: one of Azure's patterns is no regular expression with the flag u.
SCHEMAS = {
    "github": ["vendor.github-workflows"],
    "gitlab": ["vendor.gitlab-ci"],
    "azure": ["vendor.azure-pipelines", "--regex-variant", "nonunicode"],
}
#: Prints a YAML file as JSON.
READ_YAML = (
    "import json, sys; from ruamel.yaml import YAML; print(json.dumps(YAML(typ='safe').load(open(sys.argv[1]))))"
)


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheels")
    for distribution in distributions():
        if distribution.name in NEEDED:
            build(distribution.folder, folder)
    return folder


@pytest.fixture(scope="module")
def checker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python with the schemas of the CI services."""
    python = clean_environment(tmp_path_factory.mktemp("checker"))
    subprocess.run([python, "-m", "pip", "install", "--quiet", "check-jsonschema"], check=True)
    return python


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A function that returns the clean environment of a name."""
    return cache(lambda name: clean_environment(tmp_path_factory.mktemp(name)))


def commands_in(service: str, text: str) -> list[str]:
    """Return the shell commands of a CI file, given as JSON."""
    content = json.loads(text)
    if service == "gitlab":
        return list(content["test"]["script"])
    steps = content["jobs"]["test"]["steps"] if service == "github" else content["steps"]
    return [step[key] for step in steps for key in ("run", "script") if key in step]


def shell(command: str, python: Path, wheels: Path, package: Path) -> subprocess.CompletedProcess[str]:
    """Run a step as a CI service does, with the variable that its file asks for."""
    variables = {k: v for k, v in os.environ.items() if not k.startswith(("LITE_", "PYTEST_", "PYTHON"))}
    variables |= {"PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}", "PIP_FIND_LINKS": str(wheels)}
    shown = subprocess.run(["sh", "-e", "-c", command], capture_output=True, text=True, cwd=package, env=variables)
    assert shown.returncode == 0, f"{command}\n{shown.stdout}{shown.stderr}"
    return shown


def run_ci(plugin: NewPlugin, package: Path, python: Path, wheels: Path) -> None:
    for _, command in ci_steps(plugin):
        shell(command, python, wheels, package)
    assert "<testsuite" in (package / "reports/tests.xml").read_text(encoding="utf-8")


@pytest.mark.parametrize("service", SERVICES)
def test_ci_files_fit_the_schemas_of_the_services_and_have_the_same_steps(
    service: str, checker: Path, tmp_path: Path
) -> None:
    file = written(EVERYTHING, tmp_path) / SERVICES[service].file
    checked = run(checker, "-m", "check_jsonschema", "--builtin-schema", *SCHEMAS[service], file)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    shown = run(checker, "-c", READ_YAML, file)
    assert commands_in(service, shown.stdout) == [command for _, command in ci_steps(EVERYTHING)], shown.stderr


@pytest.mark.parametrize("kind", ["operator", "pass", "format", "command"])
def test_a_package_of_one_kind(kind: str, environment: Callable[[str], Path], wheels: Path, tmp_path: Path) -> None:
    """They require the same packages and therefore share an environment."""
    plugin = NewPlugin(f"my_{kind}", PLUGINS[kind].kinds)
    run_ci(plugin, written(plugin, tmp_path), environment("without a backend"), wheels)


@pytest.mark.parametrize("name", ["kernel-backend,operator", "numba,operator"])
def test_a_package_with_kernels(name: str, environment: Callable[[str], Path], wheels: Path, tmp_path: Path) -> None:
    """The whole suite, which takes minutes, runs on the loops of Numba only; the tests of both run its first levels."""
    package, python = written(PLUGINS[name], tmp_path), environment(name)
    steps = ci_steps(PLUGINS[name])
    for _, command in steps if PLUGINS[name].numba else steps[:-1]:
        shell(command, python, wheels, package)


def test_a_package_with_everything(environment: Callable[[str], Path], wheels: Path, tmp_path: Path) -> None:
    package, python = written(EVERYTHING, tmp_path), environment("everything")
    run_ci(EVERYTHING, package, python, wheels)
    assert "my_chip.Squish[f32," in (package / "reports/conformance.html").read_text(encoding="utf-8")

    # A machine without the device: the suite does not run, and CI does not fail.
    device = package / "src/lite_my_chip/device.py"
    start = device.read_text().index('    return [Device("my_chip"')
    device.write_text(device.read_text()[:start] + '    return Unavailable("there is no driver")\n')
    shell("python -m pip install --no-deps --force-reinstall .", python, wheels, package)
    shown = shell(ci_steps(EVERYTHING)[-1][1], python, wheels, package)
    assert "there is no driver" in shown.stderr
