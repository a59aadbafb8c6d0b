"""OpenCL calls that fail, one after another: an error that names the call, or a note and the right result.

A library that stands before the loader refuses one call, or it and all later ones as a driver does that has lost its
device. Afterwards the same session gives the right result, and no memory is left on the device.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

STATUS = {"OUT_OF_RESOURCES": -5, "INVALID_COMMAND_QUEUE": -36}
#: Calls that pyopencl gives other names in its errors.
OTHER_NAMES = {
    "clCreateCommandQueueWithProperties": "CommandQueue",
    "clCreateBuffer": "create_buffer",
    "clCreateContext": "Context",
}
DEADLINE_SECONDS = 900


def attempts(
    failing_opencl: Path, folder: Path, backend: str, kind: str, status: str, mode: str, first: int, step: int
) -> list[dict[str, Any]]:
    """Return what ``opencl_calls.py`` tells of each attempt; fail if it ended in another way."""
    environment = {
        **os.environ,
        "LD_PRELOAD": str(failing_opencl),
        "LITE_BACKENDS": "opencl,host",
        "LITE_CACHE_DIR": str(folder / "cache"),
    }
    command = [
        sys.executable,
        Path(__file__).with_name("opencl_calls.py"),
        backend,
        kind,
        str(STATUS[status]),
        mode,
        str(first),
        str(step),
    ]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=DEADLINE_SECONDS)
    assert done.returncode == 0, (done.returncode, done.stdout[-500:], done.stderr[-2000:])
    *told, summary = map(json.loads, done.stdout.splitlines())
    assert told
    print(f"{len(told)} attempts, {len(summary['functions'])} functions of OpenCL")
    return told


def check(told: dict[str, Any], status: str, mode: str) -> None:
    """Assert that an attempt ended in an error that names the failure, or with the right result."""
    function = told["function"]
    assert "unexpected" not in told, told["unexpected"]
    assert told["right_after"] is True, (function, told["right_after"])
    if told["error"]:
        assert status in told["error"], told
        if mode == "once":
            assert any(name in told["error"] for name in (function, OTHER_NAMES.get(function, function))), told
    else:
        assert told["right"] is True, told
        if told["devices"] == ["host"]:
            assert any(status in note for note in told["notes"]), told


def test_a_lost_device_does_not_end_the_process(failing_opencl: Path, tmp_path: Path) -> None:
    """A few moments of losing the device; the full tier tries all of them."""
    for told in attempts(failing_opencl, tmp_path, "opencl", "shared", "OUT_OF_RESOURCES", "lost", 61, 60):
        check(told, "OUT_OF_RESOURCES", "lost")
        assert told["error"]


@pytest.mark.full("reliability")
@pytest.mark.parametrize("status", STATUS)
@pytest.mark.parametrize("kind", ["shared", "discrete"])
@pytest.mark.parametrize("backend", ["opencl", "auto"])
def test_each_call_fails_once(failing_opencl: Path, tmp_path: Path, backend: str, kind: str, status: str) -> None:
    for told in attempts(failing_opencl, tmp_path, backend, kind, status, "once", 1, 1):
        check(told, status, "once")
        assert told["left_on_device"] == 0, told


@pytest.mark.full("reliability")
@pytest.mark.parametrize("status", STATUS)
@pytest.mark.parametrize("kind", ["shared", "discrete"])
def test_the_device_is_lost_at_each_call(failing_opencl: Path, tmp_path: Path, kind: str, status: str) -> None:
    left = 0
    for told in attempts(failing_opencl, tmp_path, "opencl", kind, status, "lost", 1, 1):
        check(told, status, "lost")
        # pyopencl ends the process when it cannot unmap a buffer, so such a buffer is kept: one for each lost device.
        assert told["left_on_device"] - left <= 1, told
        left = told["left_on_device"]
