"""Ctrl-C and time limits during an endless loop, on every backend: the run ends, and the session runs again.

Each backend is tried in a process of its own, which a deadline ends if nothing else does.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from lite_core.backend import Unavailable
from lite_core.plugins import available_backends, default_plugins

DEADLINE_SECONDS = 100

SCRIPT = """
import faulthandler, os, signal, sys, threading
import numpy as np
import lite_core as lite
from lite_core.errors import RunTimeoutError

signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in the background inherit that it is ignored
faulthandler.dump_traceback_later(80, exit=True)  # tells where a run hangs
backend, way, body = sys.argv[1:]
b = lite.GraphBuilder("endless")
x, goes_on = b.input("x", "float32", (4,)), b.input("goes_on", "bool", ())
inner = lite.GraphBuilder("body")
inner.input("i", "int64", ())
condition, value = inner.input("condition", "bool", ()), inner.input("value", "float32", (4,))
result = inner.add("Relu", [inner.add("Sin", [value])]) if body == "nodes" else value
inner.output(condition)
inner.output(result)
b.output(b.add("Loop", [None, goes_on, x], {"body": inner.build()}, name="endless"), "y")
session = lite.load(b.build(), backend=backend)
assert backend in session.devices or body == "empty", session.devices
given = {"x": np.ones(4, np.float32), "goes_on": np.array(True)}


def loops():
    \"\"\"Return True while the main thread runs the loop.\"\"\"
    frame = sys._current_frames()[threading.main_thread().ident]
    while frame and frame.f_code.co_name not in ("_run_body", "run_stoppably"):
        frame = frame.f_back
    return frame is not None


def interrupt():
    while not loops():
        threading.Event().wait(0.01)
    os.kill(os.getpid(), signal.SIGINT)


for _ in range(3):
    if way == "interrupt":
        threading.Thread(target=interrupt, daemon=True).start()
    try:
        session.run(given, timeout=0.2 if way == "timeout" else None)
    except KeyboardInterrupt:
        assert way == "interrupt"
    except RunTimeoutError as error:
        assert way == "timeout" and "'endless'" in str(error), error
    else:
        raise AssertionError("the loop has ended by itself")
    assert (session.run({**given, "goes_on": np.array(False)})["y"] == 1).all()
print("usable")
"""


def skip_without(backend: str) -> None:
    found = available_backends(default_plugins()).get(backend)
    devices = found.probe() if found else Unavailable(f"the backend {backend} is not installed")
    if isinstance(devices, Unavailable):
        pytest.skip(devices.reason)


def in_reliability(*values: str) -> object:
    return pytest.param(*values, marks=pytest.mark.full("reliability"))


@pytest.mark.skipif(sys.platform == "win32", reason="Windows sends no SIGINT to a single process")
@pytest.mark.parametrize(
    ("backend", "way", "body"),
    [
        ("onnxruntime", "interrupt", "nodes"),
        in_reliability("host", "interrupt", "nodes"),
        in_reliability("x86", "interrupt", "nodes"),
        in_reliability("x86", "timeout", "nodes"),
        in_reliability("x86", "interrupt", "empty"),
        in_reliability("opencl", "interrupt", "nodes"),
        in_reliability("opencl", "timeout", "nodes"),
        in_reliability("onnxruntime", "timeout", "nodes"),
        in_reliability("onnxruntime", "interrupt", "empty"),
        in_reliability("onnxruntime", "timeout", "empty"),
        in_reliability("host", "timeout", "empty"),
    ],
)
def test_an_endless_loop_can_be_stopped(backend: str, way: str, body: str) -> None:
    skip_without(backend)
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, backend, way, body], capture_output=True, text=True, timeout=DEADLINE_SECONDS
    )
    assert (done.returncode, done.stdout) == (0, "usable\n"), done.stderr
