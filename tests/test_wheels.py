"""Built wheels in clean environments: the core, then with tools and plugins, then with the suite and a new backend."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import venv
from pathlib import Path

import numpy as np
import pytest
from test_other_sizes import classifier

from lite_core import convert, load
from workspace import distributions

pytestmark = pytest.mark.full("packages")

ROOT = Path(__file__).parents[1]
TINY = ROOT / "tests/models/goldens/tiny_conv/pir"


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheels")
    for distribution in distributions():
        build(distribution.folder, folder)  # through the source distribution, as a release is built
    return folder


def build(project: Path, folder: Path) -> None:
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, project]
    subprocess.run(command, check=True, capture_output=True)


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory, wheels: Path) -> Path:
    """Make a clean environment with lite-core installed from its wheel."""
    python = clean_environment(tmp_path_factory.mktemp("clean"))
    install(python, wheels, "lite_core")
    return python


@pytest.fixture(scope="module")
def backend_author(tmp_path_factory: pytest.TempPathFactory, wheels: Path) -> tuple[Path, Path]:
    """Make a clean environment with the suite and a new backend, both from wheels; return the backend's sources too."""
    python = clean_environment(tmp_path_factory.mktemp("author"))
    install(python, wheels, "lite_conformance", "[pytest]")
    sources = tmp_path_factory.mktemp("sources")
    written = run(python, "-m", "lite_core", "new-plugin", "kernel-backend", "my_chip", "--output", sources)
    assert written.returncode == 0, written.stderr
    project = sources / "lite-my-chip"
    build(project, project / "dist")
    install(python, project / "dist", "lite_my_chip")
    return python, project


def clean_environment(folder: Path) -> Path:
    venv.create(folder, with_pip=True)
    return folder / "bin/python"


def install(python: Path, wheels: Path, name: str, extras: str = "") -> None:
    (wheel,) = wheels.glob(f"{name}-*.whl")
    command = [python, "-m", "pip", "install", "--quiet", "--find-links", wheels, f"{wheel}{extras}"]
    subprocess.run(command, check=True)


def run(python: Path, *arguments: str | Path, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [python, *map(str, arguments)]
    # The tests' own environment must not be visible.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    return subprocess.run(command, capture_output=True, text=True, cwd=folder or python.parent, env=environment)


def suite(python: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the suite by the command that its wheel installs."""
    return run(python, python.parent / "lite-conformance", *arguments)


def test_core_alone_then_with_the_tools_then_with_lite_paddle(python: Path, wheels: Path) -> None:
    code = """
import lite_core as lite, numpy as np
b = lite.GraphBuilder("g")
b.output(b.add("Softmax", [b.input("x", "float32", ["n", 3])]), "y")
print(lite.load(b.build()).run(x=np.zeros((1, 3), np.float32))["y"])
"""
    completed = run(python, "-c", code)
    assert "[[0.3333" in completed.stdout, completed.stderr
    refused = run(python, "-m", "lite_core", "run", TINY)
    assert refused.returncode == 3
    assert "pip install 'lite-core[tools]'" in refused.stderr
    assert run(python, "-m", "lite_core", "doctor").returncode == 0

    install(python, wheels, "lite_core", "[tools]")
    refused = run(python, "-m", "lite_core", "run", TINY)
    assert refused.returncode == 3
    assert "pip install lite-paddle" in refused.stderr
    assert run(python, "-m", "lite_core", "doctor").returncode == 0

    install(python, wheels, "lite_paddle")
    completed = run(python, "-m", "lite_core", "run", TINY, "--input", TINY.parent / "inputs.npz")
    assert completed.returncode == 0, completed.stderr
    demo = run(python, "-m", "lite_core", "demo")
    assert demo.returncode == 3
    assert "pip install 'lite-paddle[demo]'" in demo.stderr
    assert run(python, "-m", "pip", "check").returncode == 0


def test_lite_x86(tmp_path_factory: pytest.TempPathFactory, wheels: Path) -> None:
    python = clean_environment(tmp_path_factory.mktemp("x86"))
    install(python, wheels, "lite_x86")
    install(python, wheels, "lite_tools")
    completed = run(python, "-m", "lite_core", "backends", "--json")
    assert completed.returncode == 0, completed.stderr
    answer = json.loads(completed.stdout)
    assert not answer["failed_plugins"]
    (row,) = [row for row in answer["backends"] if row["backend"] == "x86"]
    assert row["state"] == ("ready" if platform.machine() in ("x86_64", "AMD64") else "unavailable")
    assert run(python, "-m", "pip", "check").returncode == 0


def test_a_device_needs_numpy_and_lite_only(tmp_path_factory: pytest.TempPathFactory, wheels: Path) -> None:
    """Without a compiler and tools, everything that is installed has less than 65 MB."""
    folder = tmp_path_factory.mktemp("device")
    python = clean_environment(folder)
    install(python, wheels, "lite_arm")
    (packages,) = folder.glob("lib/python*/site-packages")
    found = {path.name for path in packages.iterdir() if not path.name.startswith(("pip", "setuptools", "_distutils"))}
    files = [file for name in found for file in (packages / name, *(packages / name).rglob("*")) if file.is_file()]
    assert not found & {"llvmlite", "ml_dtypes", "onnx", "google", "click", "rich"}
    assert sum(file.stat().st_size for file in files if file.suffix != ".pyc") < 65e6, sorted(found)


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="machine code of x86-64")
def test_a_prepared_file_runs_in_an_environment_without_a_compiler(
    tmp_path_factory: pytest.TempPathFactory, wheels: Path
) -> None:
    folder = tmp_path_factory.mktemp("runs")
    convert(classifier(), folder / "model.lite", "x86", threads=1, shapes={"x": (1, 3, 16, 40)})
    python = clean_environment(folder / "environment")
    install(python, wheels, "lite_x86")
    subprocess.run([python, "-m", "pip", "uninstall", "--yes", "--quiet", "llvmlite"], check=True)
    code = """
import sys, numpy as np, lite_core as lite
session = lite.load("model.lite", backend="x86", threads=1, saved="trust", fallback="never")
for shape in ((1, 3, 16, 40), (2, 3, 16, 40), (1, 3, 16, 75)):
    print(*session.run(x=np.ones(shape, np.float32))["y"][0])
print(session.notes, "llvmlite" in sys.modules)
"""
    completed = run(python, "-c", code, folder=folder)
    assert completed.returncode == 0, completed.stderr
    *rows, state = completed.stdout.splitlines()
    assert state == "() False"
    for row, shape in zip(rows, ((1, 3, 16, 40), (2, 3, 16, 40), (1, 3, 16, 75)), strict=True):
        expected = load(classifier(), "host").run(x=np.ones(shape, np.float32))["y"][0]
        np.testing.assert_allclose([float(number) for number in row.split()], expected, rtol=1e-4, atol=1e-5)


def test_a_new_backend_passes_the_installed_suite(backend_author: tuple[Path, Path], tmp_path: Path) -> None:
    python, _ = backend_author
    report = tmp_path / "report.json"
    completed = suite(python, "--backend", "my_chip", "--level", "L1", "--json", str(report))
    assert completed.returncode == 0, completed.stdout + completed.stderr
    statuses = [record["status"] for record in json.loads(report.read_text())["records"]]
    assert "passed" in statuses
    assert set(statuses) <= {"passed", "unsupported"}

    page = tmp_path / "report.html"
    patterns = ["--case", "Relu[f32,*]", "--case", "MatMul[f32,*]"]
    completed = suite(python, "--backend", "my_chip", *patterns, "--json", str(report), "--html", str(page))
    assert completed.returncode == 0, completed.stdout + completed.stderr
    statuses = [record["status"] for record in json.loads(report.read_text())["records"]]
    assert set(statuses) == {"passed"}
    assert "MatMul[f32," in page.read_text(encoding="utf-8")


def test_a_new_backend_passes_its_own_tests(backend_author: tuple[Path, Path]) -> None:
    python, project = backend_author
    completed = run(python, "-m", "pytest", "-q", folder=project)
    assert completed.returncode == 0, completed.stdout + completed.stderr


def test_the_installed_suite_answers(backend_author: tuple[Path, Path]) -> None:
    python, _ = backend_author
    completed = suite(python, "--help")
    assert completed.returncode == 0
    assert "lite-conformance --backend NAME" in completed.stdout
    missing = suite(python, "--backend", "no_such_backend", "--level", "L0")
    assert missing.returncode == 3
    assert "'no_such_backend'" in missing.stderr
    assert "my_chip" in missing.stderr
    assert run(python, "-m", "pip", "check").returncode == 0
