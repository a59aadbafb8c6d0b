"""An OpenCL driver that crashes, exits or hangs: `lite backends` names it, and models run on other devices.

The driver is a shared library that the compiler of this machine makes.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.full("reliability"),
    pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc: the driver cannot be compiled"),
    pytest.mark.skipif(sys.platform != "linux", reason="drivers are found differently on other systems"),
]
pytest.importorskip("pyopencl", reason="pyopencl is not installed: it loads the drivers")

SOURCE = """
#include <stdlib.h>
#include <unistd.h>

/* The first function that the loader calls. */
void *clGetExtensionFunctionAddress(const char *name) { ACTION; return NULL; }
"""

LOAD = """
from lite_core import GraphBuilder, load
b = GraphBuilder()
b.output(b.add("Relu", [b.input("x", "float32", [2])]), "y")
session = load(b.build(), backend=BACKEND)
print(session.run(x=[-1, 1])["y"].tolist(), *session.selection_log, sep="\\n")
"""

ENDS = {
    "segfault": ("*(volatile int *)0 = 1", "SIGSEGV", "died"),
    "abort": ("abort()", "SIGABRT", "died"),
    "exit": ("_exit(3)", "exit code 3", "died"),
    "sleep": ("sleep(1000)", "no answer within 5 s", "no answer"),
}


@pytest.fixture(params=ENDS)
def end(request: pytest.FixtureRequest) -> str:
    """The way in which the driver ends the process."""
    return str(request.param)


@pytest.fixture
def environment(end: str, tmp_path: Path) -> dict[str, str]:
    """The environment in which the driver is the only one."""
    source, library = tmp_path / "driver.c", tmp_path / "libdriver.so"
    source.write_text(SOURCE.replace("ACTION", ENDS[end][0]))
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, source], check=True)
    (tmp_path / "driver.icd").write_text(f"{library}\n")
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith(("LITE_", "OCL_", "PYOPENCL"))},
        "OCL_ICD_VENDORS": str(tmp_path),
        "LITE_CACHE_DIR": str(tmp_path / "cache"),
        "LITE_PROBE_TIMEOUT": "5" if end == "sleep" else "60",
    }


def python(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env=environment, timeout=300)


def test_driver_is_named_and_the_other_backends_are_shown(end: str, environment: dict[str, str]) -> None:
    shown = python(environment, "-m", "lite_core", "backends", "--json")
    assert shown.returncode == 0, shown.stderr
    data = json.loads(shown.stdout)
    states = {row["backend"]: row["state"] for row in data["backends"]}
    assert states["opencl"] == ENDS[end][2]
    assert states["host"] == "ready"
    (failed,) = data["failed_plugins"]
    assert (failed["distribution"], failed["phase"]) == ("lite-opencl", "probe")
    assert ENDS[end][1] in failed["error"]
    assert "libdriver.so" in failed["traceback"]
    assert "pyopencl" in failed["traceback"]
    assert python(environment, "-m", "lite_core", "doctor").returncode == 1


def test_models_run_after_the_driver_has_ended_a_process(end: str, environment: dict[str, str]) -> None:
    if end == "sleep":  # the diagnosis ends the process
        python(environment, "-m", "lite_core", "backends")
    else:
        assert python(environment, "-c", LOAD.replace("BACKEND", "'auto'")).returncode != 0
    shown = python(environment, "-c", LOAD.replace("BACKEND", "'auto'"))
    assert shown.returncode == 0, shown.stderr
    answer, *log = shown.stdout.splitlines()
    assert answer == "[0.0, 1.0]"
    (line,) = (line for line in log if line.startswith("opencl:"))
    assert "lite-opencl" in line
    assert "lite backends" in line
    assert "'opencl'" in shown.stderr
    assert python({**environment, "OCL_ICD_VENDORS": "/nowhere"}, "-m", "lite_core", "backends").returncode == 0
    again = python({**environment, "OCL_ICD_VENDORS": "/nowhere"}, "-c", LOAD.replace("BACKEND", "'auto'"))
    assert "ended" not in again.stdout  # it was asked, and has no device
