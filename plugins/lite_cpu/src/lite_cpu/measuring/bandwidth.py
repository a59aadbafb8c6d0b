"""Measurement of what one core reads from each cache and from main memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from lite_cpu.aligned import aligned_empty
from lite_cpu.kernels.reading import Read
from lite_cpu.machine_code.library import KernelLibrary
from lite_cpu.measuring.stopwatch import seconds_in_turns
from lite_cpu.runtime import Program, Step
from lite_cpu.tuning import ReadBandwidth

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
#: The size of a block is a multiple of this.
_GRAIN = 4096


def cold_memory(cache_bytes: Mapping[int, int]) -> Array:
    """Return initialized memory, float32, that is larger than the caches.

    Args:
        cache_bytes: sizes of the caches in bytes by level.
    """
    size = min(max(COLD_BYTES, 2 * max(cache_bytes.values(), default=0)), _MOST_COLD_BYTES)
    memory = aligned_empty((size // 4,), np.float32)
    memory.fill(0.5)
    return memory


def measure_bandwidth(library: KernelLibrary, cache_bytes: Mapping[int, int], memory: Array) -> ReadBandwidth:
    """Measure what one core reads, in about a tenth of a second.

    Args:
        library: compiles the kernel that reads.
        cache_bytes: sizes of the caches in bytes by level; a level that is missing is not measured.
        memory: memory that is larger than the caches, see :func:`cold_memory`.
    """
    kernels = {False: Read(), True: Read(_AHEAD)}
    addresses = library.addresses(kernels.values())
    result = aligned_empty((library.machine.lanes(),), np.float32)
    at = [0]

    def hot(size: int) -> Callable[[], None]:
        program = _program(library, addresses[kernels[False]], size, 0)
        return partial(program.run, [0, memory.ctypes.data, result.ctypes.data])

    def cold(prefetched: bool) -> Callable[[], None]:
        program = _program(library, addresses[kernels[prefetched]], _TURN_BYTES, _TURN_BYTES)

        def read() -> None:
            at[0] = (at[0] + _TURN_BYTES) % (memory.nbytes - _TURN_BYTES - _AHEAD)
            program.run([0, memory.ctypes.data + at[0] // _GRAIN * _GRAIN, result.ctypes.data])

        return read

    sizes = _block_sizes(cache_bytes)
    calls = {level: hot(size) for level, size in sizes.items()}
    levels = {level: _TURN_BYTES // sizes[level] * sizes[level] or sizes[level] for level in calls}
    times = seconds_in_turns({**calls, "plain": cold(False), "prefetched": cold(True)}, _TURNS)
    read = {level: size / times[level] for level, size in levels.items()}
    return ReadBandwidth(
        l1=read.get("l1", 0.0),
        l2=read.get("l2", 0.0),
        l3=read.get("l3", 0.0),
        memory=_TURN_BYTES / times["plain"],
        prefetched=_TURN_BYTES / times["prefetched"],
    )


def _block_sizes(cache_bytes: Mapping[int, int]) -> dict[str, int]:
    """Return the bytes to read again and again from each level: they fit it, and not the level below."""
    l1, l2, l3 = (cache_bytes.get(level, 0) for level in (1, 2, 3))
    sizes = {"l1": l1 // 2, "l2": l2 // 2, "l3": min(4 * l2, l3 // 2)}
    fitting = {"l1": l1 > 0, "l2": l2 >= 4 * l1 > 0, "l3": l3 >= 4 * l2 > 0}
    return {level: size // _GRAIN * _GRAIN for level, size in sizes.items() if fitting[level] and size >= _GRAIN}


def _program(library: KernelLibrary, kernel: int, size: int, stride: int) -> Program:
    """Return a program that reads about :data:`_TURN_BYTES` in blocks of ``size`` bytes; base 1 is the memory."""
    blocks = max(1, _TURN_BYTES // size)
    return Program([Step(kernel, [(1, 0), (2, 0)], [size, stride], blocks, blocks)], 0, 0, owners=[library])
