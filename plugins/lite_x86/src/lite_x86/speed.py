"""How fast the processor is, by what is known of its kind: what the scheduler's estimates need, with nothing measured.

The numbers are those that most processors of a level reach at least. Two logical processors of one core count as two.
"""

from __future__ import annotations

from lite_cpu.machine import Machine

__all__ = ["LAUNCH_SECONDS", "bandwidth", "peak_flops"]

#: What one more kernel of a partition costs: a call, and a barrier between the threads.
LAUNCH_SECONDS = 1e-6

# With a fused multiply-add there are two units of 256 bits (Intel since Haswell, AMD since Zen 2); of the processors
# with AVX-512, many have the same two, coupled. Without, one adds and another one multiplies 128 bits.
_FLOPS_PER_CYCLE_WITH_FMA = 2 * 8 * 2
_FLOPS_PER_CYCLE = 2 * 4

# One core alone reads about 10 GB/s from main memory, and four of them are enough for two channels of DDR4.
_BYTES_PER_SECOND_OF_A_CORE = 10e9
_CORES_THAT_SATURATE_MEMORY = 4


def peak_flops(machine: Machine, clock_hertz: float, cores: int) -> float:
    """Floating-point operations in float32 that ``cores`` cores do in a second; 0 where the clock is not known."""
    per_cycle = _FLOPS_PER_CYCLE_WITH_FMA if machine.fma else _FLOPS_PER_CYCLE
    return clock_hertz * per_cycle * cores


def bandwidth(cores: int) -> float:
    """Bytes that ``cores`` cores read from or write to main memory in a second."""
    return _BYTES_PER_SECOND_OF_A_CORE * min(cores, _CORES_THAT_SATURATE_MEMORY)
