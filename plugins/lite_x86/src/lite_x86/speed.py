"""The processor's speed for the scheduler: what ``lite tune`` measured, else estimates from its level and clock.

Most processors of a level reach at least the estimates. Two logical processors of one core count as two.
"""

from __future__ import annotations

from lite_cpu.machine import Machine

__all__ = ["bandwidth", "launch_seconds", "peak_flops"]

# A call, and a barrier between the threads.
_LAUNCH_SECONDS = 1e-6

# Processors with fused multiply-add have two units of 256 bits (Intel since Haswell, AMD since Zen 2); many processors
# with AVX-512 couple these two units. Processors without it have one unit that adds and one that multiplies 128 bits.
_FLOPS_PER_CYCLE_WITH_FMA = 2 * 8 * 2
_FLOPS_PER_CYCLE = 2 * 4

# One core alone reads at least about 10 GB/s from main memory, and four of them saturate two channels of DDR4.
_BYTES_PER_SECOND_OF_A_CORE = 10e9
_CORES_THAT_SATURATE_MEMORY = 4


def peak_flops(machine: Machine, clock_hertz: float, cores: int) -> float:
    """Return the float32 operations per second of ``cores`` cores; 0 if neither they nor the clock are known."""
    if machine.tuning.is_measured:
        return machine.tuning.flops * cores
    per_cycle = _FLOPS_PER_CYCLE_WITH_FMA if machine.fma else _FLOPS_PER_CYCLE
    return clock_hertz * per_cycle * cores


def bandwidth(machine: Machine, cores: int) -> float:
    """Return the bytes per second that ``cores`` cores read from or write to main memory."""
    of_a_core = machine.tuning.bandwidth or _BYTES_PER_SECOND_OF_A_CORE
    return of_a_core * min(cores, _CORES_THAT_SATURATE_MEMORY)


def launch_seconds(machine: Machine, cores: int) -> float:
    """Return the time in seconds that each kernel of a partition adds if ``cores`` cores divide it."""
    tuning = machine.tuning
    if not tuning.is_measured:
        return _LAUNCH_SECONDS
    return tuning.launch_seconds + (tuning.barrier_seconds if cores > 1 else 0.0)
