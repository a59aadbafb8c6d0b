"""One file for OpenCL and x86: it runs on OpenCL if there is a device, else on x86, and the log says so."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from line_recogniser import line_recogniser, lines

import lite_core as lite
from lite_core.backend import Unavailable
from lite_core.plugins import available_backends, default_plugins

_SHOW = (
    "import sys, lite_core, numpy as np\n"
    "session = lite_core.load(sys.argv[1])\n"
    "outputs = session.run(dict(np.load(sys.argv[2])))\n"
    "np.savez(sys.argv[3], **outputs)\n"
    "print({node.device for node in session.assignment()}, len(session.notes))\n"
    "print(*session.selection_log, sep='\\n')\n"
)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = available_backends(default_plugins())["opencl"].probe()
    if isinstance(found, Unavailable):
        pytest.skip(f"{found.reason}. {found.remedy}")
    folder = tmp_path_factory.mktemp("file")
    inputs = lines()
    np_file, model = folder / "x.npz", folder / "model.lite"
    np.savez(np_file, **inputs)
    shapes = {name: array.shape for name, array in inputs.items()}
    lite.convert(line_recogniser(), model, targets="opencl,x86", shapes=shapes, threads=2)
    return model


def run_in_process(model: Path, **environment: str) -> str:
    """Run a file in a process; return what it prints about its devices."""
    command = [sys.executable, "-c", _SHOW, str(model), str(model.with_name("x.npz")), str(model.with_name("y.npz"))]
    run = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment})
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_opencl_is_chosen_if_it_has_a_device(file: Path) -> None:
    printed = run_in_process(file)
    assert printed.startswith("{'opencl'} 0\n")


def test_x86_is_chosen_without_opencl(file: Path, tmp_path: Path) -> None:
    printed = run_in_process(file, OCL_ICD_VENDORS=str(tmp_path / "none"))  # a folder without drivers
    assert printed.startswith("{'x86'} 0\n")
    assert "opencl" in printed
