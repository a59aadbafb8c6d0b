"""The worker process, which loads one model in one engine and runs it on request.

    python -m side_by_side.worker JOB

``JOB`` is an :class:`~side_by_side.engines.Job` as JSON. After the first result, the process writes a first line to
standard output: its peak memory until then, and what the engine says that it computes in. Each line on standard input
is a request, answered by one line of JSON:

    {"run": 20}            runs once unmeasured, then 20 times: {"seconds": [...], "cpu_seconds": ...}
    {"save": "out.npy"}    writes the output of one run: {"shape": [...]}

The process ends when its standard input is closed.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import time
from typing import Any

import numpy as np

from side_by_side.engines import ENGINES, Described, Job, Run


def peak_memory_bytes() -> int:
    """Return the peak resident memory of this process.

    NOTE: ``getrusage`` would include memory of the parent from before this process was created.
    """
    with open("/proc/self/status") as status:
        for line in status:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    raise RuntimeError("/proc/self/status has no VmHWM: this is measured on Linux only")


def measure(run: Run, count: int) -> dict[str, Any]:
    """Time ``count`` runs one by one, after one that warms the caches that other processes have used since."""
    run()
    seconds = []
    cpu_start = time.process_time()
    for _ in range(count):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return {"seconds": seconds, "cpu_seconds": time.process_time() - cpu_start}


def save(run: Run, file: str) -> dict[str, Any]:
    """Write the output of one run."""
    output = run()
    np.save(file, output)
    return {"shape": list(output.shape)}


def end_with_parent() -> None:
    """Let the system kill this process when its parent ends, also while it is stopped between two requests."""
    set_signal_of_parents_end = 1  # PR_SET_PDEATHSIG
    ctypes.CDLL(None).prctl(set_signal_of_parents_end, signal.SIGKILL)


def main() -> None:
    """Load, which runs once, and answer requests."""
    end_with_parent()
    # Engines print on standard output, also from native code: their output is redirected to standard error.
    responses = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    fields = json.loads(sys.argv[1])
    job = Job(**{**fields, "files": tuple(fields["files"])})
    with np.load(job.input_file) as inputs:
        loaded = ENGINES[job.engine].load(job, dict(inputs))
    run, computes = (loaded.run, loaded.computes) if isinstance(loaded, Described) else (loaded, "")
    print(json.dumps({"peak_memory_bytes": peak_memory_bytes(), "computes": computes}), file=responses)
    for line in sys.stdin:
        request = json.loads(line)
        response = measure(run, request["run"]) if "run" in request else save(run, request["save"])
        print(json.dumps(response), file=responses)


if __name__ == "__main__":
    main()
