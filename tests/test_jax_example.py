"""The backend in examples/jax_backend, installed as pip does it: its size, its own tests, and the whole suite."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import onnx_catalog
import pytest
from conformance_command import assert_every_letter, assert_green, cases_of
from test_architecture import code_lines
from unpacked_wheels import unpacked_wheel

from import_graph import imported_names, modules_in
from workspace import ROOT

EXAMPLE = ROOT / "examples/jax_backend"
FILES = modules_in(EXAMPLE / "src/lite_jax")
#: Ranges of first letters of the operators of level 2, in parts that take about the same time.
PARTS = ["A-D", "E-L", "M-R", "S-Z"]

needs_jax = pytest.mark.skipif(find_spec("jax") is None, reason="JAX is not installed; make test-full installs it")


def test_the_example_stays_short() -> None:
    assert sum(map(code_lines, FILES.values())) <= 400


def test_the_page_counts_the_lines() -> None:
    rows = re.findall(r"^\| (\[`.*?) \| (\d+) \|", (EXAMPLE / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    sources = {name: EXAMPLE / "src/lite_jax" / name for row, _ in rows for name in re.findall(r"`(\w+\.py)`", row)}
    assert {*sources.values()} == {file for file in FILES.values() if code_lines(file)}
    for row, lines in rows:
        assert sum(code_lines(sources[name]) for name in re.findall(r"`(\w+\.py)`", row)) == int(lines), row


def test_the_example_imports_public_packages_only() -> None:
    imported = {module for name, file in FILES.items() for module, _ in imported_names(name, file)}
    roots = {module.partition(".")[0] for module in imported} - set(sys.stdlib_module_names)
    assert roots == {"jax", "lite_compiler", "lite_core", "lite_jax", "numpy"}
    assert not [module for module in imported if any(part.startswith("_") for part in module.split(".")[1:])]


def test_the_conformance_parts_have_every_letter() -> None:
    assert_every_letter(PARTS)


@pytest.fixture(scope="module")
def variables(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """Environment variables with which a new process finds the package, unpacked from its wheel."""
    folder = tmp_path_factory.mktemp("jax")
    site = unpacked_wheel(EXAMPLE, folder)
    found = os.pathsep.join(filter(None, [str(site), os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": found, "LITE_CACHE_DIR": str(folder / "cache")}


@needs_jax
@pytest.mark.full("examples")
def test_its_own_tests_pass(variables: Mapping[str, str]) -> None:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        "--rootdir",
        ".",
        "tests",
    ]
    done = subprocess.run(command, capture_output=True, text=True, cwd=EXAMPLE, env={**variables, "PYTEST_ADDOPTS": ""})
    assert done.returncode == 0, done.stdout + done.stderr


@needs_jax
@pytest.mark.full("examples")
@pytest.mark.parametrize("levels", ["L0-L1", "L3-L3", "L4-L5"])
def test_contract_graphs_models_and_stress(levels: str, variables: Mapping[str, str], tmp_path: Path) -> None:
    assert_green("jax", ["--level", levels], tmp_path, variables=variables)


@needs_jax
@pytest.mark.full("examples")
@pytest.mark.parametrize("part", PARTS)
def test_operators(part: str, variables: Mapping[str, str], tmp_path: Path) -> None:
    options = [*cases_of("jax", (2, 2), part), "--examples", "5"]
    assert_green("jax", options, tmp_path, variables=variables)


@needs_jax
@pytest.mark.full("examples")
@pytest.mark.parametrize("name", ["opennsfw", "rapidocr_det"])
def test_a_real_model(name: str, variables: Mapping[str, str], tmp_path: Path) -> None:
    """The whole model runs on JAX, and agrees with x86."""
    try:
        model = onnx_catalog.ensure(name)
    except onnx_catalog.ModelUnavailableError as error:
        pytest.skip(str(error))
    shape = () if name == "opennsfw" else ("--shape", "1x3x160x160")
    outputs = []
    for backend in ("jax", "x86"):
        saved = tmp_path / f"{backend}.npz"
        command = [sys.executable, "-m", "lite_core", "run", str(model), *shape, "--backend", backend, "-o", str(saved)]
        done = subprocess.run(command, capture_output=True, text=True, env=dict(variables))
        assert done.returncode == 0, done.stdout + done.stderr
        assert f"ran on {backend} in" in done.stdout
        outputs.append(np.load(saved))
    for key in outputs[1].files:
        expected = outputs[1][key]
        np.testing.assert_allclose(outputs[0][key], expected, atol=1e-4 * max(1.0, float(np.abs(expected).max())))
