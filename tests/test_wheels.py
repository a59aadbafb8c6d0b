"""Built wheels in a clean environment: the core alone, and with lite-paddle."""

from __future__ import annotations

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
    for project in ("core", "plugins/lite_paddle"):
        # Through the source distribution, as a release is built.
        command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT / project]
        subprocess.run(command, check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory, wheels: Path) -> Path:
    """A clean environment with lite-core installed from its wheel."""
    folder = tmp_path_factory.mktemp("clean")
    venv.create(folder, with_pip=True)
    python = folder / "bin/python"
    install(python, wheels, "lite_core")
    return python


def install(python: Path, wheels: Path, name: str) -> None:
    (wheel,) = wheels.glob(f"{name}-*.whl")
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--find-links", wheels, wheel], check=True)


def run(python: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([python, *map(str, arguments)], capture_output=True, text=True, cwd=python.parent)


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


def test_wheels_hold_what_they_need(wheels: Path) -> None:
    (core,) = wheels.glob("lite_core-*.whl")
    (paddle,) = wheels.glob("lite_paddle-*.whl")
    names = zipfile.ZipFile(core).namelist()
    assert "lite_core/py.typed" in names
    assert any(n.endswith("LICENSE") for n in names)
    names = zipfile.ZipFile(paddle).namelist()
    for needed in (
        "py.typed",
        "reader/attribute_defaults.json",
        "examples/ocr/ocr.py",
        "examples/ocr/picture.png",
    ):
        assert f"lite_paddle/{needed}" in names
