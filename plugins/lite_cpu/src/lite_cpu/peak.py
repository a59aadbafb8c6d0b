"""Measurement of the arithmetic peak of one core."""

from __future__ import annotations

import time

import numpy as np

from lite_cpu.kernels.peak import Peak
from lite_cpu.machine_code.library import KernelLibrary
from lite_cpu.runtime import Program, Step

__all__ = ["measure_peak_flops"]

#: So many that the call itself takes less than a hundredth of the time.
_ITEMS = 60_000
_REPETITIONS = 10


def measure_peak_flops(library: KernelLibrary) -> float:
    """Measure the floating-point operations per second of one core with multiply-adds on registers: best of 10 runs.

    The measurement takes about 5 ms.
    """
    kernel = Peak()
    lanes = library.machine.lanes()
    memory = np.full(2 * lanes, 0.5, np.float32)
    step = Step(library.addresses([kernel])[kernel], [(1, 0)], [], _ITEMS, _ITEMS)
    program = Program([step], 0, 0, owners=[library])
    best = float("inf")
    for _ in range(_REPETITIONS):
        memory.fill(0.5)
        start = time.perf_counter()
        program.run([0, memory.ctypes.data])
        best = min(best, time.perf_counter() - start)
    return _ITEMS * Peak.flops(lanes) / best
