"""A program that lets OpenCL calls fail, one after another, and prints what became of each session.

    LD_PRELOAD=failing_opencl.so python opencl_calls.py BACKEND shared|discrete STATUS once|lost FIRST STEP

It loads and runs a small network again and again, each time with a new context. The call with the number FIRST fails
in the first attempt, the one with the number FIRST + STEP in the next; with ``lost``, so does every later call. Then
the calls succeed again, and the same session, or a new one, must give the right result. With ``discrete``, a device
that works in main memory is treated as one that does not. A line of JSON describes each attempt. The program ends when
an attempt makes fewer calls than the number of the one that would fail.
"""

from __future__ import annotations

import ctypes
import gc
import json
import sys
import traceback
from typing import Any

import numpy as np

import lite_core as lite
from lite_core.builder import GraphBuilder
from lite_core.ir import Graph
from lite_core.plugins import PluginManager

shim = ctypes.CDLL(None)
shim.failed_call.restype = shim.called_functions.restype = ctypes.c_char_p

ROWS = np.array([1, 3, 7, 0])
INPUTS = {"x": np.linspace(-1, 1, 8 * 16, dtype=np.float32).reshape(8, 16), "rows": ROWS}
WEIGHTS = np.linspace(-1, 1, 16 * 16, dtype=np.float32).reshape(16, 16)
EXPECTED = np.maximum(INPUTS["x"] @ WEIGHTS, 0)[ROWS]
# Sums of 16 products of numbers up to 1, in another order.
TOLERANCE = 1e-5


def network() -> Graph:
    """A product, an activation, and a gather, which can record a fault on the device."""
    builder = GraphBuilder("small")
    x, rows = builder.input("x", "float32", [8, 16]), builder.input("rows", "int64", [4])
    product = builder.add("MatMul", [x, builder.constant(WEIGHTS.copy(), "weights")])
    builder.output(builder.add("Gather", [builder.add("Relu", [product]), rows]), "y")
    return builder.build()


def forget_devices() -> None:
    """Drop every context, so that the next session makes all calls again."""
    from lite_opencl.device import runtime

    runtime._runtimes.clear()
    gc.collect()


def is_right(session: lite.Session) -> bool:
    """Run a session twice: the second run reuses queues, memory and bound arguments. Return True if both are right."""
    runs = [session.run(INPUTS)["y"] for _ in range(2)]
    return all(np.allclose(result, EXPECTED, rtol=0, atol=TOLERANCE) for result in runs)


def attempt(backend: str, first: int, last: int, status: int) -> dict[str, Any]:
    """Load and run while calls fail, then again while they do not; return what happened."""
    told: dict[str, Any] = {"call": first, "error": "", "right": None, "notes": [], "devices": []}
    plugins, session = PluginManager(), None
    shim.fail_calls(ctypes.c_long(first), ctypes.c_long(last), status)
    try:
        session = lite.load(network(), backend, plugins=plugins)
        told["right"] = is_right(session)
        told["notes"], told["devices"] = [*session.selection_log], [*session.devices]
    except lite.LiteError as error:
        told["error"] = str(error)
    except BaseException as error:
        told["unexpected"] = "".join(traceback.format_exception(error))
    told["calls"], told["function"] = shim.calls_made(), shim.failed_call().decode()
    shim.fail_calls(0, 0, 0)
    try:
        told["right_after"] = is_right(session or lite.load(network(), backend, plugins=plugins))
    except BaseException as error:
        told["right_after"] = "".join(traceback.format_exception(error))
    del session, plugins
    forget_devices()
    told["left_on_device"] = shim.live_memory_objects()
    return told


def treat_memory_as_discrete() -> None:
    """Let transfers copy through page-locked memory, as on a device that has its own memory."""
    from lite_opencl.device import memory, runtime

    runtime.memory_for = memory.DeviceMemory


def main(backend: str, kind: str, status: int, mode: str, first: int, step: int) -> None:
    """Let one call after another fail."""
    if kind == "discrete":
        treat_memory_as_discrete()
    attempt(backend, 0, 0, status)  # imports and caches: later attempts make the same calls
    while True:
        told = attempt(backend, first, first if mode == "once" else 2**62, status)
        if told["calls"] < first:
            break
        print(json.dumps(told), flush=True)
        first += step
    print(json.dumps({"functions": shim.called_functions().decode().split()}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4], int(sys.argv[5]), int(sys.argv[6]))
