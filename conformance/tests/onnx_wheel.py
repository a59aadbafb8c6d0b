"""The ONNX project's node test data for tests: from the installed package, or downloaded."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from lite_conformance.cases.onnx_node_data.source import find_node_data

VERSION = "1.17.0"


@cache
def node_data() -> Path:
    """Return the folder of the cases."""
    # NOTE: onnx 1.17 has no wheel for Python 3.13 and later; the data is the same in every wheel.
    found = find_node_data(None) or find_node_data(_wheel())
    assert found is not None
    return found


def _wheel() -> Path:
    chosen = os.environ.get("LITE_TEST_CACHE")
    folder = Path(chosen).expanduser() if chosen else Path(__file__).parents[2] / ".cache"
    folder.mkdir(parents=True, exist_ok=True)
    for wheel in folder.glob(f"onnx-{VERSION}-*.whl"):
        return wheel
    with tempfile.TemporaryDirectory(dir=folder) as work:  # several test processes may do this at once
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
        command += ["--python-version", "3.11", "--platform", "manylinux2014_x86_64", "--dest", work]
        subprocess.run([*command, f"onnx=={VERSION}"], check=True)
        (wheel,) = Path(work).glob("onnx-*.whl")
        return wheel.replace(folder / wheel.name)
