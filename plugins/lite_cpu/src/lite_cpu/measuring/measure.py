"""Measurement of a whole :class:`~lite_cpu.tuning.Tuning`."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import replace

from lite_core.forking import new_lock
from lite_cpu.machine import Machine
from lite_cpu.machine_code.cache import KernelCache
from lite_cpu.machine_code.library import KernelLibrary
from lite_cpu.measuring.bandwidth import cold_memory, measure_bandwidth
from lite_cpu.measuring.products import measure_peak, measure_tile, measure_winograd_weight, tile_candidates
from lite_cpu.measuring.steps import measure_steps
from lite_cpu.tuning import Tuning

__all__ = ["measure_tuning"]

logger = logging.getLogger("lite.cpu.tuning")

#: Measured prices and barriers vary by up to this factor from run to run on a busy machine.
_NOISE = 2.5
#: What a Winograd weight costs besides reading it, in operations: its memory, of which F(4 x 4) needs four times the
#: original. Fitted on a Zen 4 core, where reading measures as 5 to 10; with 13 in all, 7x7x512 is computed by F(2 x 2).
#: resnet18 takes 63 MB less and 7 % longer with one thread, resnet50 42 MB less and 1 % longer.
_MEMORY_OF_A_WEIGHT = 8.0

_one_at_a_time = new_lock()


def measure_tuning(
    machine: Machine, cache_bytes: Mapping[int, int], threads: int, kernels: KernelCache | None = None
) -> Tuning:
    """Measure the numbers that choices depend on, in one to two seconds.

    A number that differs from the one in ``machine.tuning`` by no more than noise is not replaced, so that choices, and
    with them the last bits of results, do not change from one measurement to the next.

    Args:
        machine: this processor, with the numbers that are known of its family.
        cache_bytes: sizes of its caches in bytes by level.
        threads: number of threads that are of use, which divide the measured steps.
        kernels: the cache of compiled kernels; by default the one in the default folder.
    """
    start, known = time.perf_counter(), machine.tuning
    with _one_at_a_time:
        library = KernelLibrary(machine, kernels)
        candidates = tile_candidates(machine)
        libraries = [(one, KernelLibrary(machine.with_tuning(one), library.cache)) for one in candidates]
        memory = cold_memory(cache_bytes)
        fastest = measure_tile(libraries, memory)
        tuned = KernelLibrary(machine.with_tuning(fastest), library.cache)
        price = measure_winograd_weight(tuned, memory) + _MEMORY_OF_A_WEIGHT
        steps, barrier = measure_steps(library, threads), known.barrier_seconds
        if steps.barrier is not None:
            barrier = _unless_noise(max(0.0, steps.barrier), barrier)
        found = replace(
            fastest,
            winograd_weight=_unless_noise(price, known.winograd_weight),
            bandwidth=measure_bandwidth(library, memory),
            flops=measure_peak(library),
            launch_seconds=steps.launch,
            barrier_seconds=barrier,
            threads=threads,
            is_measured=True,
            source=f"measured {time.strftime('%Y-%m-%d')}",
        )
    logger.info("%s was measured in %.1f s: %s", machine.name, time.perf_counter() - start, found)
    return found


def _unless_noise(measured: float, known: float) -> float:
    """Return the measured number, or the known one if the factor between them is within the noise."""
    return known if known / _NOISE <= measured <= known * _NOISE else measured
