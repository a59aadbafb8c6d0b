"""Estimates of the processor's speed for the scheduler, from its clock, without measurement.

They are those of a Cortex-A76 or a Neoverse N1: two multiply-adds of four float32 per cycle (ARM's software
optimization guides). A Cortex-A53 reaches a half, and wider cores twice as much.
"""

from __future__ import annotations

__all__ = ["LAUNCH_SECONDS", "bandwidth", "peak_flops"]

#: The time that each kernel of a partition adds: a call, and a barrier between the threads.
LAUNCH_SECONDS = 2e-6

_FLOPS_PER_CYCLE = 2 * 4 * 2
_BYTES_PER_SECOND_OF_A_CORE = 5e9
_CORES_THAT_SATURATE_MEMORY = 2


def peak_flops(clock_hertz: float, cores: int) -> float:
    """Return the float32 operations per second of ``cores`` cores; 0 if the clock is not known."""
    return clock_hertz * _FLOPS_PER_CYCLE * cores


def bandwidth(cores: int) -> float:
    """Return the bytes per second that ``cores`` cores read from or write to main memory."""
    return _BYTES_PER_SECOND_OF_A_CORE * min(cores, _CORES_THAT_SATURATE_MEMORY)
