"""The loops of the backend ``numba``, beside the NumPy references of ``host`` and, where it runs, ``x86``.

    python benchmarks/numba_loops.py [--ops TopK,LSTM] [--seconds 1]

Each operator runs in all backends in turns, on one thread; the shortest times count. A ratio above 1 means that the
loop is faster. The last columns are the processor time of the first run in a new process, with an empty cache of
machine code and with a full one; both include the import of Numba.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from typing import Any

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before NumPy is imported

import numpy as np

import lite_core as lite

_RANDOM = np.random.default_rng(0)
_BACKENDS = ("numba", "host", "x86")


def _normal(*shape: int) -> Any:
    return _RANDOM.standard_normal(shape).astype(np.float32)


def _boxes(count: int) -> Any:
    corners = _RANDOM.uniform(0, 50, (count, 2))
    return np.hstack([corners, corners + _RANDOM.uniform(2, 20, (count, 2))]).astype(np.float32)


def _scores(*shape: int) -> Any:
    return _RANDOM.uniform(0, 1, shape).astype(np.float32)


_IMAGE, _ROWS = _normal(1, 64, 56, 56), _normal(128, 768)
_AREA, _FIRST = np.array([2, 3]), np.array([0])
_LIMITS = np.array(100), np.float32(0.5), np.float32(0.3)  # of NonMaxSuppression: boxes, overlap, score
_GATES = _normal(1, 256, 32) / 8, _normal(1, 256, 64) / 8

#: Operator, number of outputs, inputs (the first is the model's, the others are constants), attributes.
CASES: list[tuple[str, int, tuple[Any, ...], dict[str, Any]]] = [
    ("NonMaxSuppression", 1, (_boxes(1000)[None], _scores(1, 5, 1000), *map(np.asarray, _LIMITS)), {}),
    ("lite.MulticlassNms", 3, (_boxes(1000)[None], _scores(1, 20, 1000)),
     {"score_threshold": 0.5, "nms_top_k": 100, "keep_top_k": 100}),
    ("DeformConv", 1, (_normal(1, 32, 32, 32), _normal(32, 32, 3, 3), _normal(1, 18, 32, 32)), {"pads": (1, 1, 1, 1)}),
    ("RoiAlign", 1, (_normal(1, 64, 50, 50), _boxes(50), np.zeros(50, np.int64)),
     {"output_height": 7, "output_width": 7, "sampling_ratio": 2}),
    ("TopK", 2, (_normal(64, 1000), np.array([10])), {}),
    ("ScatterND", 1, (_normal(64, 100, 16), _RANDOM.integers(0, 64, (5000, 2)), _normal(5000, 16)),
     {"reduction": "add"}),
    ("ScatterElements", 1, (_normal(64, 1000), _RANDOM.integers(0, 64, (32, 1000)), _normal(32, 1000)),
     {"reduction": "add"}),
    ("LSTM", 3, (_normal(64, 1, 32), *_GATES), {"hidden_size": 64}),
    ("GRU", 2, (_normal(64, 1, 32), *(g[:, :192] for g in _GATES)), {"hidden_size": 64}),
    ("Softmax", 1, (_normal(64, 1000),), {}),
    ("LayerNormalization", 1, (_ROWS, _normal(768), _normal(768)), {}),
    ("InstanceNormalization", 1, (_IMAGE, _normal(64), _normal(64)), {}),
    ("ReduceMean", 1, (_IMAGE, _AREA), {}),
    ("ReduceMean", 1, (_normal(64, 1000), _FIRST), {}),
    *((op, 1, (_IMAGE,), {}) for op in ("LeakyRelu", "HardSwish", "Sigmoid", "lite.Swish", "Mish", "Gelu", "Erf")),
]  # fmt: skip


def _session(case: tuple[str, int, tuple[Any, ...], dict[str, Any]], backend: str) -> tuple[Any, Mapping[str, Any]]:
    op, outputs, (first, *constants), attributes = case
    domain, _, name = op.rpartition(".")
    b = lite.GraphBuilder(op)
    inputs = [b.input("x", str(first.dtype), first.shape), *map(b.constant, constants)]
    for value in b.add_node(name, inputs, attributes, domain=domain, outputs=outputs):
        b.output(value)
    return lite.load(b.build(), backend=backend, fallback="never", threads=1), {"x": first}


def _times(case: Any, seconds: float) -> dict[str, float]:
    """Return the shortest time of a run, in seconds, in each backend that runs the operator."""
    sessions = {}
    for backend in _BACKENDS:
        try:
            sessions[backend] = _session(case, backend)
            sessions[backend][0].run(sessions[backend][1])
        except lite.LiteError:
            sessions.pop(backend, None)
    best = dict.fromkeys(sessions, float("inf"))
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for backend, (session, feed) in sessions.items():
            start = time.perf_counter()
            session.run(feed)
            best[backend] = min(best[backend], time.perf_counter() - start)
    return best


def _first_runs(number: int) -> list[float]:
    """Return the processor time of a first run in a new process, with an empty and with a full cache."""
    code = (
        "import sys, time; sys.path.insert(0, sys.argv[1]); from numba_loops import CASES, _session; "
        "session, feed = _session(CASES[int(sys.argv[2])], 'numba'); start = time.process_time(); "
        "session.run(feed); print(time.process_time() - start)"
    )
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", code, os.path.dirname(__file__), str(number)]
        environment = {**os.environ, "LITE_CACHE_DIR": folder}
        return [float(subprocess.check_output(command, env=environment)) for _ in range(2)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--ops", default="", help="only these operators, separated by commas")
    parser.add_argument("--seconds", type=float, default=1.0, help="of each operator")
    arguments = parser.parse_args()
    print("| operator | input | loop | host / loop | x86 / loop | first run | with its code in the cache |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for number, case in enumerate(CASES):
        op, _, inputs, _ = case
        if arguments.ops and op not in arguments.ops.split(","):
            continue
        times = _times(case, arguments.seconds)
        ratios = (f"**{times[b] / times['numba']:.2f}**" if b in times else "-" for b in _BACKENDS[1:])
        empty, full = _first_runs(number)
        shape = "x".join(map(str, inputs[0].shape))
        print(
            f"| {op} | {shape} | {times['numba'] * 1e6:.0f} us | {' | '.join(ratios)} | {empty:.1f} s | {full:.1f} s |"
        )


if __name__ == "__main__":
    main()
