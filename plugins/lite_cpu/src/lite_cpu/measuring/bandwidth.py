"""Measurement of what one core reads from main memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from lite_cpu.aligned import aligned_empty
from lite_cpu.kernels.reading import Read
from lite_cpu.machine_code.library import KernelLibrary
from lite_cpu.measuring.stopwatch import seconds_in_turns
from lite_cpu.runtime import Program, Step

__all__ = ["COLD_BYTES", "cold_memory", "measure_bandwidth"]

Array = np.ndarray[Any, Any]

#: Bytes that are enough to come from main memory each time, because other data of that size were read in between.
COLD_BYTES = 64 << 20
#: The most memory to touch: a large third-level cache is shared by many cores, and one of them rarely has all of it.
_MOST_COLD_BYTES = 192 << 20

#: Bytes ahead of the loads that are prefetched: 32 lines, further than the prefetchers of the hardware look.
_AHEAD = 2048
#: Bytes that are read in one turn.
_TURN_BYTES = 2 << 20
_TURNS = 24


def cold_memory(cache_bytes: Mapping[int, int]) -> Array:
    """Return initialized memory, float32, that is larger than the caches.

    Args:
        cache_bytes: sizes of the caches in bytes by level.
    """
    size = min(max(COLD_BYTES, 2 * max(cache_bytes.values(), default=0)), _MOST_COLD_BYTES)
    memory = aligned_empty((size // 4,), np.float32)
    memory.fill(0.5)
    return memory


def measure_bandwidth(library: KernelLibrary, memory: Array) -> float:
    """Return the bytes per second that one core reads from main memory; takes a few hundredths of a second.

    Args:
        library: compiles the kernel that reads.
        memory: memory that is larger than the caches, see :func:`cold_memory`.
    """
    kernel = Read(_AHEAD)
    step = Step(library.addresses([kernel])[kernel], [(1, 0), (2, 0)], [_TURN_BYTES, 0], 1, 1)
    program = Program([step], 0, 0, owners=[library])
    result = aligned_empty((library.machine.lanes(),), np.float32)
    at = [0]

    def read() -> None:
        # Another part in each turn: no part is read again before all others were.
        at[0] = (at[0] + _TURN_BYTES) % (memory.nbytes - _TURN_BYTES - _AHEAD) // _TURN_BYTES * _TURN_BYTES
        program.run([0, memory.ctypes.data + at[0], result.ctypes.data])

    return _TURN_BYTES / seconds_in_turns({"read": read}, _TURNS)["read"]
