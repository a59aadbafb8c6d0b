"""The program whose instructions are counted, under emulation: it loads one model in one engine and runs it.

    python -m emulated.counted JOB RUNS OUTPUT

``JOB`` is a :class:`~side_by_side.engines.Job` as JSON. A mark for the plugin (count.c) precedes each of the ``RUNS``
runs and follows the last one. ``OUTPUT`` receives the last result as an ``.npy`` file.
"""

from __future__ import annotations

import ctypes
import json
import sys

import numpy as np
from side_by_side.engines import ENGINES, Described, Job

MARK = 0x4C495445


def main() -> None:
    """Load, which runs once, and run again between marks."""
    fields = json.loads(sys.argv[1])
    job = Job(**{**fields, "files": tuple(fields["files"])})
    with np.load(job.input_file) as inputs:
        loaded = ENGINES[job.engine].load(job, dict(inputs))
    run = loaded.run if isinstance(loaded, Described) else loaded
    mark = ctypes.CDLL(None).getpriority
    mark.argtypes = [ctypes.c_int, ctypes.c_uint]
    mark(MARK, 0)  # ctypes prepares itself in the first call
    run()
    for number in range(int(sys.argv[2])):
        mark(MARK, 1 + number)
        result = run()
    mark(MARK, 1 + int(sys.argv[2]))
    np.save(sys.argv[3], result)


if __name__ == "__main__":
    main()
