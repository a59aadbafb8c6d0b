"""Built wheels in a clean environment: the core alone, with each plugin, and with the suite and a new backend."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TINY = ROOT / "tests/models/goldens/tiny_conv/pir"


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheels")
    for project in (
        "core",
        "conformance",
        "plugins/lite_paddle",
        "plugins/lite_cpu",
        "plugins/lite_x86",
        "plugins/lite_opencl",
        "plugins/lite_onnx",
        "plugins/lite_onnxruntime",
    ):
        # Through the source distribution, as a release is built.
        build(ROOT / project, folder)
    return folder


def build(project: Path, folder: Path) -> None:
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, project]
    subprocess.run(command, check=True, capture_output=True)


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory, wheels: Path) -> Path:
    """A clean environment with lite-core installed from its wheel."""
    python = clean_environment(tmp_path_factory.mktemp("clean"))
    install(python, wheels, "lite_core")
    return python


@pytest.fixture(scope="module")
def backend_author(tmp_path_factory: pytest.TempPathFactory, wheels: Path) -> tuple[Path, Path]:
    """A clean environment with the suite and a new backend, all of it from wheels, and the backend's sources."""
    python = clean_environment(tmp_path_factory.mktemp("author"))
    install(python, wheels, "lite_conformance", "[pytest]")
    sources = tmp_path_factory.mktemp("sources")
    written = run(python, "-m", "lite_core", "new-backend", "my_chip", "--output", sources)
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
    # Nothing of the environment that runs these tests may be found.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    return subprocess.run(command, capture_output=True, text=True, cwd=folder or python.parent, env=environment)


def suite(python: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The suite, by the command that its wheel installs."""
    return run(python, python.parent / "lite-conformance", *arguments)


def test_core_alone_then_with_lite_paddle(python: Path, wheels: Path) -> None:
    code = """
import lite_core as lite, numpy as np
b = lite.GraphBuilder("g")
b.output(b.add("Softmax", [b.input("x", "float32", ["n", 3])]), "y")
print(lite.load(b.build()).run(x=np.zeros((1, 3), np.float32))["y"])
"""
    shown = run(python, "-c", code)
    assert "[[0.3333" in shown.stdout, shown.stderr
    refused = run(python, "-m", "lite_core", "run", TINY)
    assert refused.returncode == 3
    assert "`pip install lite-paddle` reads Paddle's" in refused.stderr
    assert run(python, "-m", "lite_core", "doctor").returncode == 0

    install(python, wheels, "lite_paddle")
    shown = run(python, "-m", "lite_core", "run", TINY, "--input", TINY.parent / "inputs.npz")
    assert shown.returncode == 0, shown.stderr
    demo = run(python, "-m", "lite_core", "demo")
    assert demo.returncode == 3
    assert "pip install 'lite-paddle[demo]'" in demo.stderr
    assert run(python, "-m", "pip", "check").returncode == 0


def test_lite_x86(tmp_path_factory: pytest.TempPathFactory, wheels: Path) -> None:
    python = clean_environment(tmp_path_factory.mktemp("x86"))
    install(python, wheels, "lite_x86")
    shown = run(python, "-m", "lite_core", "backends", "--json")
    assert shown.returncode == 0, shown.stderr
    answer = json.loads(shown.stdout)
    assert not answer["failed_plugins"]
    (row,) = [row for row in answer["backends"] if row["backend"] == "x86"]
    assert row["state"] == ("ready" if platform.machine() in ("x86_64", "AMD64") else "unavailable")
    assert run(python, "-m", "pip", "check").returncode == 0


def test_a_new_backend_passes_the_installed_suite(backend_author: tuple[Path, Path], tmp_path: Path) -> None:
    python, _ = backend_author
    report = tmp_path / "report.json"
    shown = suite(python, "--backend", "my_chip", "--level", "L1", "--json", str(report))
    assert shown.returncode == 0, shown.stdout + shown.stderr
    statuses = [record["status"] for record in json.loads(report.read_text())["records"]]
    assert statuses.count("passed") >= 15
    assert set(statuses) <= {"passed", "unsupported"}

    page = tmp_path / "report.html"
    patterns = ["--case", "Relu[f32,*]", "--case", "MatMul[f32,*]"]
    shown = suite(python, "--backend", "my_chip", *patterns, "--json", str(report), "--html", str(page))
    assert shown.returncode == 0, shown.stdout + shown.stderr
    statuses = [record["status"] for record in json.loads(report.read_text())["records"]]
    assert set(statuses) == {"passed"}
    assert len(statuses) > 20
    assert "MatMul[f32," in page.read_text(encoding="utf-8")


def test_a_new_backend_passes_its_own_tests(backend_author: tuple[Path, Path]) -> None:
    python, project = backend_author
    shown = run(python, "-m", "pytest", "-q", folder=project)
    assert shown.returncode == 0, shown.stdout + shown.stderr
    passed, _, _ = shown.stdout.splitlines()[-1].partition(" passed")
    assert int(passed) > 40, shown.stdout


def test_the_installed_suite_answers(backend_author: tuple[Path, Path]) -> None:
    python, _ = backend_author
    shown = suite(python, "--help")
    assert shown.returncode == 0
    assert "lite-conformance --backend NAME" in shown.stdout
    missing = suite(python, "--backend", "nobody", "--level", "L0")
    assert missing.returncode == 3
    assert "'nobody' is not installed (here are: host, my_chip, null)" in missing.stderr
    assert run(python, "-m", "pip", "check").returncode == 0


def test_wheels_hold_what_they_need(wheels: Path) -> None:
    needed = {
        "lite_core": {
            "py.typed",
            "cli/templates/backend/pyproject.toml.tmpl",
            "cli/templates/backend/README.md.tmpl",
            "cli/templates/backend/src/package/plugin.py.tmpl",
            "cli/templates/backend/src/package/conformance.toml.tmpl",
            "cli/templates/backend/src/package/py.typed.tmpl",
            "cli/templates/backend/tests/test_conformance.py.tmpl",
        },
        "lite_conformance": {
            "py.typed",
            "operator_weights.json",
            "onnx_node_data/left_out.txt",
            "reports/page/page.html",
            "reports/page/style.css",
            "reports/page/main.js",
            "networks/weights/glyph_classifier.npz",
            "networks/weights/line_reader.npz",
            "networks/weights/sequence_transformer.npz",
            "networks/weights/shape_detector.npz",
            "networks/weights/upscaler.npz",
        },
        "lite_paddle": {
            "py.typed",
            "reader/attribute_defaults.json",
            "examples/ocr/ocr.py",
            "examples/ocr/picture.png",
        },
        "lite_cpu": {"py.typed"},
        "lite_x86": {"py.typed", "plugin.py"},
        "lite_opencl": {"py.typed", "plugin.py", "kernels/common.cl"},
        "lite_onnx": {"py.typed", "plugin.py"},
        "lite_onnxruntime": {"py.typed", "plugin.py", "conformance.toml"},
    }
    for package, files in needed.items():
        (wheel,) = wheels.glob(f"{package}-*.whl")
        names = set(zipfile.ZipFile(wheel).namelist())
        assert {f"{package}/{file}" for file in files} <= names
        assert any(name.endswith("LICENSE") for name in names)


def test_every_file_of_the_sources_is_in_the_wheel(wheels: Path) -> None:
    folders = {
        "lite_core": "core",
        "lite_conformance": "conformance",
        "lite_cpu": "plugins/lite_cpu",
        "lite_x86": "plugins/lite_x86",
        "lite_opencl": "plugins/lite_opencl",
        "lite_onnx": "plugins/lite_onnx",
        "lite_onnxruntime": "plugins/lite_onnxruntime",
    }
    for package, folder in folders.items():
        (wheel,) = wheels.glob(f"{package}-*.whl")
        names = set(zipfile.ZipFile(wheel).namelist())
        sources = ROOT / folder / "src"
        files = {f.relative_to(sources) for f in sources.rglob("*") if f.is_file()}
        # Caches of the interpreter and of tools may lie between the sources.
        kept = {f.as_posix() for f in files if not any(p == "__pycache__" or p.startswith(".") for p in f.parts)}
        assert kept
        assert kept <= names
