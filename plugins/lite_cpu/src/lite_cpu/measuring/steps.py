"""Measurement of what a step of a program adds, with one thread and divided among several."""

from __future__ import annotations

import math
from functools import partial
from typing import NamedTuple

import numpy as np

from lite_cpu.kernels.peak import Peak
from lite_cpu.kernels.reading import Empty
from lite_cpu.machine_code.library import KernelLibrary
from lite_cpu.measuring.stopwatch import seconds_in_turns
from lite_cpu.runtime import Program, Step, usable_threads

__all__ = ["StepSeconds", "measure_steps"]

#: Few steps in many turns: on a busy machine, some turns have all processors to themselves.
_STEPS = 8
_EMPTY_STEPS = 200
_TURNS = 250
#: Operations of a divided step: 10 to 20 microseconds, like a small layer.
_OPERATIONS = 2_000_000
#: A barrier of more than this share of the undivided step, 3 microseconds, is a thread that waited for a processor.
_MOST_OF_A_STEP = 1 / 6


class StepSeconds(NamedTuple):
    """The costs of a step besides its work, in seconds.

    Attributes:
        launch: with one thread.
        barrier: what a step takes longer than its share of the work if all threads divide it; None with a single
            thread, or if other programs leave no processor to the threads.
    """

    launch: float
    barrier: float | None


def measure_steps(library: KernelLibrary, threads: int) -> StepSeconds:
    """Measure what steps cost.

    Args:
        library: compiles the kernels of the steps.
        threads: number of threads that divide a step; no more than the processors that this process may run on.
    """
    usable = usable_threads(threads)
    empty, work = Empty(), Peak()
    addresses = library.addresses([empty, work])
    items = _OPERATIONS // Peak.flops(library.machine.lanes())
    numbers = np.full(2 * library.machine.lanes(), 0.5, np.float32)

    def program(kernel: int, tasks: int, grain: int, steps: int = _STEPS) -> partial[None]:
        step = Step(kernel, [(1, 0)], [], tasks, grain)
        run = Program([step] * steps, 0, 0, owners=[library, numbers]).run
        return partial(run, [0, numbers.ctypes.data], usable)

    calls = {"empty": program(addresses[empty], 1, 1, _EMPTY_STEPS), "alone": program(addresses[work], items, items)}
    if usable > 1:
        # The first run only wakes the threads, which then wait for the second one without sleeping.
        calls["waking"] = calls["divided"] = program(addresses[work], items, -(-items // usable))
    times = seconds_in_turns(calls, _TURNS)
    launch, alone = times["empty"].shortest / _EMPTY_STEPS, times["alone"].shortest / _STEPS
    barrier = times["divided"].shortest / _STEPS - alone / usable if usable > 1 else math.inf
    return StepSeconds(launch, barrier if barrier < _MOST_OF_A_STEP * alone else None)
