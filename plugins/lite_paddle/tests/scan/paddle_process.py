"""Running cases of the scan in a process of Paddle."""

from __future__ import annotations

import os
import pickle
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from scan.drawing import Array, Case
from scan.paddle_side import NO_OPERATOR

__all__ = ["CRASHED", "Result", "is_absent", "run_cases"]

#: The outputs of a case with their sequence offsets, or why there are none.
Result = list[tuple[Array, list[list[int]]]] | str
CRASHED = "the process of Paddle crashed"
#: The most cases that one process runs, which takes some seconds.
_AT_ONCE = 1500

#: Parts of Paddle's messages about an operator without a kernel for these element types.
_NO_KERNEL = ("does not have kernel for", "no kernels which are registered", "kernels_.end()")


def is_absent(reason: str) -> bool:
    """Return True if a case has no result because this Paddle lacks the operator, or a kernel for its element types."""
    return any(part in reason for part in (NO_OPERATOR, *_NO_KERNEL))


def run_cases(cases: Sequence[Case], python: str | Path) -> list[Result]:
    """Return what the Paddle of an interpreter makes of each case; a case that crashes it has :data:`CRASHED`."""
    results: list[Result] = []
    with tempfile.TemporaryDirectory() as folder:
        given, found = Path(folder, "cases.pkl"), Path(folder, "results.pkl")
        while len(results) < len(cases):
            rest = cases[len(results) : len(results) + _AT_ONCE]
            given.write_bytes(pickle.dumps([asdict(case) for case in rest], protocol=4))
            command = [str(python), str(Path(__file__).with_name("paddle_side.py")), str(given), str(found)]
            environment = {**os.environ, "FLAGS_enable_pir_api": "0", "GLOG_minloglevel": "3"}
            environment.pop("PYTHONPATH", None)
            done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
            if not found.exists():
                raise RuntimeError(f"Paddle did not start in {python}:\n{done.stderr[-2000:]}")
            results += _stored(found)
            if done.returncode:
                results.append(CRASHED)
    return results


def _stored(path: Path) -> list[Result]:
    found: list[Any] = []
    with path.open("rb") as file:
        while True:
            try:
                found.append(pickle.load(file))
            except EOFError:
                return found
