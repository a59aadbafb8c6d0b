"""Estimates of the processor's speed for the scheduler, from its level and clock, without measurement.

Most processors of a level reach at least these numbers. Two logical processors of one core count as two.
"""

from __future__ import annotations

from lite_cpu.machine import Machine

__all__ = ["LAUNCH_SECONDS", "bandwidth", "peak_flops"]

#: The time that each kernel of a partition adds: a call, and a barrier between the threads.
LAUNCH_SECONDS = 1e-6

# Processors with fused multiply-add have two units of 256 bits (Intel since Haswell, AMD since Zen 2); many processors
# with AVX-512 couple these two units. Processors without it have one unit that adds and one that multiplies 128 bits.
_FLOPS_PER_CYCLE_WITH_FMA = 2 * 8 * 2
_FLOPS_PER_CYCLE = 2 * 4

# One core alone reads about 10 GB/s from main memory, and four of them are enough for two channels of DDR4.
_BYTES_PER_SECOND_OF_A_CORE = 10e9
_CORES_THAT_SATURATE_MEMORY = 4


def peak_flops(machine: Machine, clock_hertz: float, cores: int) -> float:
    """Return the float32 operations per second of ``cores`` cores; 0 if the clock is not known."""
    per_cycle = _FLOPS_PER_CYCLE_WITH_FMA if machine.fma else _FLOPS_PER_CYCLE
    return clock_hertz * per_cycle * cores


def bandwidth(cores: int) -> float:
    """Return the bytes per second that ``cores`` cores read from or write to main memory."""
    return _BYTES_PER_SECOND_OF_A_CORE * min(cores, _CORES_THAT_SATURATE_MEMORY)
