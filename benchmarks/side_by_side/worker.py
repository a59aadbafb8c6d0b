"""A process that loads one model in one engine and runs it when it is told to.

    python -m side_by_side.worker JOB

``JOB`` is an :class:`~side_by_side.engines.Job` as JSON. The first line on standard output says that the first
result is there, and the most memory the process has used until then. Then each line on standard input asks
for something, and one line of JSON answers it:

    {"run": 20}            runs once unmeasured, then 20 times: {"seconds": [...], "cpu_seconds": ...}
    {"save": "out.npy"}    writes the answer of one run: {"shape": [...]}

The process ends when its standard input does.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

import numpy as np

from side_by_side.engines import ENGINES, Job, Run


def peak_memory_bytes() -> int:
    """The most memory this process has had resident.

    NOTE: ``getrusage`` would also count what the parent had when it made this process.
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


def main() -> None:
    """Load, which runs once, and answer requests."""
    # Engines print on standard output, also from native code: what they print goes to standard error instead.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    fields = json.loads(sys.argv[1])
    job = Job(**{**fields, "files": tuple(fields["files"])})
    with np.load(job.input_file) as inputs:
        run = ENGINES[job.engine].load(job, dict(inputs))
    print(json.dumps({"peak_memory_bytes": peak_memory_bytes()}), file=answers)
    for line in sys.stdin:
        request = json.loads(line)
        answer = measure(run, request["run"]) if "run" in request else save(run, request["save"])
        print(json.dumps(answer), file=answers)


if __name__ == "__main__":
    main()
