"""Libraries that stand before those of the system and let their calls fail."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from opencl_device import first_device


@pytest.fixture(scope="session")
def failing_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the library that lets calls on files fail, compiled from ``failing_files.c``."""
    return _compiled("failing_files", tmp_path_factory)


@pytest.fixture(scope="session")
def failing_opencl(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the library that lets calls of OpenCL fail, compiled from ``failing_opencl.c``."""
    first_device()
    return _compiled("failing_opencl", tmp_path_factory)


def _compiled(name: str, factory: pytest.TempPathFactory) -> Path:
    if not sys.platform.startswith("linux") or shutil.which("cc") is None:
        pytest.skip("a C compiler makes the library, and Linux's loader puts it before others")
    library = factory.mktemp("libraries") / f"{name}.so"
    source = Path(__file__).with_name(f"{name}.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl", "-lpthread"], check=True)
    return library
