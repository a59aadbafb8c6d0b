"""A hundred thousand runs, two thousand loads and four hundred shapes in flat memory; sixteen threads at once."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from endure import SIZES, convolution, picture
from opencl_device import first_device

import lite_core as lite

BACKENDS = ["host", "x86", "opencl"]
DEADLINE_SECONDS = 1200
THREADS, RUNS = 16, 24
pytestmark = [
    pytest.mark.full("reliability"),
    pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the system does not tell a process its memory"),
]

#: How often, and the bytes that the second half may add. Each bound is far below what one forgotten object for each
#: repetition would take: 16 bytes for a run (the smallest object of Python has 16), a page of 4096 for a load (the
#: network's weights have 20 KB), and 2048 for a shape (the smallest result has 8 KB, the functions that pyopencl
#: generates for a kernel object 2 KB). The second half repeats the 400 shapes of the first, whose plans are gone: the
#: kernels that only some of them need are compiled before.
FLAT = {"runs": (100_000, 50_000 * 16), "loads": (2_000, 1_000 * 4096), "shapes": (800, 400 * 2048)}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("kind", FLAT)
def test_memory_stays_flat(kind: str, backend: str) -> None:
    if backend == "opencl":
        first_device()
    number, allowed = FLAT[kind]
    program = Path(__file__).with_name("endure.py")
    command = [sys.executable, program, kind, backend, str(number)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_SECONDS)
    assert done.returncode == 0, done.stderr[-2000:]
    told = json.loads(done.stdout)
    resident = np.array(told["resident"])
    later = resident[len(resident) // 2 :]
    # The slope of the line that fits best: one sample may be high because a thread is working.
    growth = np.polyfit(np.arange(len(later)), later, 1)[0] * len(later)
    first, last = resident[0] / 2**20, resident[-1] / 2**20
    print(
        f"{number} {kind} on {backend}: {told['seconds']:.0f} s, {first:.1f} MiB at first, {last:.1f} MiB at last; "
        f"the second half adds {growth / 2**10:.0f} KiB, allowed are {allowed / 2**10:.0f}"
    )
    assert growth <= allowed


@pytest.mark.parametrize("backend", BACKENDS)
def test_sixteen_threads_with_mixed_shapes(backend: str) -> None:
    """Plans are evicted and made again all the time, and every result has the bits of a run alone."""
    if backend == "opencl":
        first_device()
    session = lite.load(convolution(), backend, threads=2, fallback="never", plans=4)
    sizes = SIZES[:: len(SIZES) // 8]
    alone = {size: session.run({"x": picture(size)})["y"].tobytes() for size in sizes}
    barrier, failures = threading.Barrier(THREADS), []

    def work(number: int) -> None:
        try:
            barrier.wait()
            for turn in range(RUNS):
                size = sizes[(number + turn * (1 + number % 3)) % len(sizes)]
                assert session.run({"x": picture(size)})["y"].tobytes() == alone[size], size
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures
    assert session.plan_statistics.evictions > 0
