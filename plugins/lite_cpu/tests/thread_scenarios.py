"""Scenarios of the model: a pool, a program that marks its work items, and the scripts of the threads."""

from __future__ import annotations

from typing import Any, NamedTuple

from lite_cpu.runtime.layout import (
    LINE,
    SLOT_FIELDS,
    STEP_FIELDS,
    PoolField,
    ProgramField,
    SlotField,
    StepField,
    SystemField,
)

__all__ = [
    "ACTIVE",
    "FUNCTION",
    "KERNEL",
    "MUTEX",
    "POOL",
    "PROCESSOR_OF_LEADER",
    "Scenario",
    "initial_values",
    "names",
    "scripts",
]

POOL, _PROGRAM, _STEPS, _BASES, _TABLES, _MARKS, _SCRATCH, _SYSTEM, _TIMES, KERNEL = (i << 20 for i in range(1, 11))
FUNCTION = 11 << 20  # the function of field i of the system's table is at FUNCTION + i
MUTEX = POOL + 8 * PoolField.MUTEX
ACTIVE = POOL + 8 * PoolField.ACTIVE
PROCESSOR_OF_LEADER = 3
_OF_LEADER = 1 << 16  # distance of the memory of two leaders


class Scenario(NamedTuple):
    """A number of threads and their work.

    Attributes:
        steps: chunks of each step of the program; one work item each.
        runs: the number of runs that the leader starts, one after another.
        workers: threads besides the leader.
        times: whether the runs measure times. Then the clock stands still and no thread goes to sleep.
        affinity: whether the system has Linux's functions for threads and processors.
        leaders: threads that run the program, each as often; one that finds the pool busy runs it alone.
        stopper: whether another thread than the leader stops the pool, at any moment.
    """

    steps: tuple[int, ...]
    runs: int = 1
    workers: int = 1
    times: bool = False
    affinity: bool = False
    leaders: int = 1
    stopper: bool = False


def scripts(scenario: Scenario) -> list[list[tuple[Any, ...]]]:
    """Return what each thread does: the leader, the workers, other leaders, and perhaps one that stops the pool."""
    workers = range(1, scenario.workers + 1)
    slots = [POOL + 8 * (PoolField.SLOTS + worker * SLOT_FIELDS) for worker in workers]
    leader = _runs(scenario, 0)
    if scenario.leaders == 1:  # the pool is complete before other leaders know of it
        leader.insert(0, ("store", POOL + 8 * PoolField.THREADS, 1 + scenario.workers, "monotonic"))
    all_scripts = [leader, *([("call", "lite_worker", (slot,))] for slot in slots)]
    for other in range(1, scenario.leaders):
        leader.append(("join", len(all_scripts)))
        all_scripts.append(_runs(scenario, other * _OF_LEADER))
    end: list[tuple[Any, ...]] = [("call", "lite_stop", (POOL,)), *(("join", worker) for worker in workers)]
    if scenario.stopper:
        all_scripts.append(end)
    else:
        leader += end
    return all_scripts


def _runs(scenario: Scenario, own: int) -> list[tuple[Any, ...]]:
    """Return the runs of a leader, whose memory is ``own`` bytes behind the first leader's."""
    script: list[tuple[Any, ...]] = []
    bases, marks, times, scratch = _BASES + own, _MARKS + own, _TIMES + own, _SCRATCH + own
    all_marks = [marks + 8 * item for item in range(sum(scenario.steps))]
    all_times = [times + 8 * i for i in range(len(scenario.steps) + 1)] if scenario.times else []
    for _ in range(scenario.runs):
        script += [("write", bases, scratch), ("write", bases + 8, marks)]
        script += [("write", address, 0) for address in (*all_marks, *all_times)]
        script += [("call", "lite_run", (_PROGRAM, bases, POOL, times if scenario.times else 0, 0))]
        script += [("check", mark, 1) for mark in all_marks] + [("check", time, 1) for time in all_times[:1]]
        script += [("check", time, 0) for time in all_times[1:]]
        # The caller may use its memory for something else now.
        reused = [bases, bases + 8, *all_times, *(scratch + 8 * LINE * i for i in range(1 + scenario.workers))]
        script += [("write", address, 0) for address in reused]
    return script


def initial_values(scenario: Scenario) -> tuple[dict[int, int], dict[int, int]]:
    """Return the initial values of the pool, and all constants: the program and the system's functions."""
    values = {POOL + 8 * PoolField.LEADER_PROCESSOR: (1 << 64) - 1, POOL + 8 * PoolField.PROCESSORS: 0b1111}
    values[POOL + 8 * PoolField.THREADS] = 1 + scenario.workers if scenario.leaders > 1 else 0
    constants = {
        POOL + 8 * PoolField.SYSTEM: _SYSTEM,
        POOL + 8 * PoolField.SPIN_NANOSECONDS: 0,
        _PROGRAM + 8 * ProgramField.STEPS: _STEPS,
        _PROGRAM + 8 * ProgramField.STEP_COUNT: len(scenario.steps),
        _PROGRAM + 8 * ProgramField.SCRATCH_OFFSET: 0,
        _PROGRAM + 8 * ProgramField.SCRATCH_BYTES: 8 * LINE,
        _PROGRAM + 8 * ProgramField.SYSTEM: _SYSTEM,
    }
    for field in SystemField:
        linux = field in (SystemField.GET_THREAD_ID, SystemField.GET_PROCESSOR, SystemField.SET_AFFINITY)
        constants[_SYSTEM + 8 * field] = FUNCTION + field if scenario.affinity or not linux else 0
    for worker in range(1, scenario.workers + 1):
        slot = POOL + 8 * (PoolField.SLOTS + worker * SLOT_FIELDS)
        constants[slot + 8 * SlotField.POOL] = POOL
        constants[slot + 8 * SlotField.INDEX] = worker
    items, before = 0, 0
    for number, chunks in enumerate(scenario.steps):
        step, table = _STEPS + 8 * STEP_FIELDS * number, _TABLES + 1024 * number
        run_length = 0
        while number + run_length < len(scenario.steps) and scenario.steps[number + run_length] == 1:
            run_length += 1
        fields = {
            StepField.KERNEL: KERNEL,
            StepField.POINTERS: table,
            StepField.POINTER_COUNT: 2,
            StepField.PARAMS: table + 512,
            StepField.TASKS: chunks,
            StepField.GRAIN: 1,
            StepField.CHUNKS: chunks,
            StepField.RUN_LENGTH: run_length,
            StepField.JUMP: 0,
        }
        constants.update((step + 8 * field, value) for field, value in fields.items())
        pointers = (1, 8 * items, 1, 8 * (items - before))
        constants.update((table + 8 * i, value) for i, value in enumerate(pointers))
        constants[table + 512] = before
        items, before = items + chunks, chunks
    return values, constants


def names(scenario: Scenario) -> dict[int, str]:
    found = {POOL + 8 * field: field.name for field in PoolField}
    for thread in range(1 + scenario.workers):
        slot = POOL + 8 * (PoolField.SLOTS + thread * SLOT_FIELDS)
        found.update((slot + 8 * field, f"{field.name} of thread {thread}") for field in SlotField)
    found.update((_MARKS + 8 * i, f"the mark of item {i}") for i in range(sum(scenario.steps)))
    found.update((_BASES + 8 * i, f"base {i} of the caller") for i in range(2))
    found.update((_TIMES + 8 * i, f"time {i}") for i in range(len(scenario.steps) + 1))
    found.update((_SCRATCH + 8 * LINE * i, f"the scratch memory of thread {i}") for i in range(1 + scenario.workers))
    return found
