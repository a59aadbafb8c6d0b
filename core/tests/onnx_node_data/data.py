"""Where the ONNX project's node test data lies: the wheel onnx==1.17.0 carries it, newer ones do not."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
import zipfile
from functools import cache
from pathlib import Path

VERSION = "1.17.0"
_INSIDE = "onnx/backend/test/data/node/"


@cache
def _root() -> Path:
    if importlib.metadata.version("onnx") == VERSION:
        import onnx

        return Path(onnx.__file__).parent / "backend/test/data/node"
    # NOTE: onnx 1.17 has no wheel for Python 3.13 and later; the data is the same in every wheel.
    cache = Path(os.environ.get("LITE_TEST_CACHE", Path(__file__).parents[3] / ".cache"))
    root = cache / f"onnx-node-data-{VERSION}"
    if not (root / "complete").exists():
        _download(root)
    return root / _INSIDE


def _download(root: Path) -> None:
    wheels = root / "wheel"
    wheels.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
    command += ["--python-version", "3.11", "--platform", "manylinux2014_x86_64", "--dest", str(wheels)]
    subprocess.run([*command, f"onnx=={VERSION}"], check=True)
    with zipfile.ZipFile(next(wheels.glob("onnx-*.whl"))) as archive:
        archive.extractall(root, [n for n in archive.namelist() if n.startswith(_INSIDE)])
    (root / "complete").touch()


def case_names() -> list[str]:
    """Names of the cases, for example ``test_conv_with_strides_padding``."""
    return sorted(folder.name for folder in _root().iterdir() if (folder / "model.onnx").exists())


def case_folder(name: str) -> Path:
    return _root() / name
