"""Generated code that runs the steps of a program in one thread."""

from __future__ import annotations

from lite_cpu.runtime.codegen import Function, Int64, Module
from lite_cpu.runtime.layout import POINTER_LIMIT, STEP_FIELDS, ProgramField, StepField, SystemField

__all__ = ["call_kernel", "emit_executor", "step_address", "thread_scratch"]


def emit_executor(code: Module, *, windows: bool) -> None:
    """Emit ``now``, ``resolve`` and ``run_steps``."""
    (_emit_windows_clock if windows else _emit_posix_clock)(code)
    _emit_resolve(code)
    _emit_run_steps(code)


def step_address(program: Int64, number: Int64) -> Int64:
    """Return the address of the fields of step ``number``."""
    return program[ProgramField.STEPS].at(number * STEP_FIELDS)


def thread_scratch(program: Int64, bases: Int64, thread: Int64) -> Int64:
    """Return the address of a thread's scratch memory, which follows the arena of this run (base 0)."""
    return bases[0] + program[ProgramField.SCRATCH_OFFSET] + thread * program[ProgramField.SCRATCH_BYTES]


def _emit_posix_clock(code: Module) -> None:
    """Emit ``now(system)``: nanoseconds since an arbitrary moment.

    NOTE: the processor's cycle counter would be slightly cheaper, but programs may not read it on AArch64.
    """
    with code.function("now", 1, result=True) as f:
        (system,) = f.arguments
        time = f.array(2)  # struct timespec: seconds, nanoseconds
        f.call_address(system[SystemField.CLOCK], system[SystemField.CLOCK_ARGUMENT], time)
        f.ret(time[0] * 1_000_000_000 + time[1])


def _emit_windows_clock(code: Module) -> None:
    with code.function("now", 1, result=True) as f:
        (system,) = f.arguments
        ticks = f.array(1)
        f.call_address(system[SystemField.CLOCK], ticks, convention="win64cc")
        f.ret(ticks[0] * system[SystemField.CLOCK_ARGUMENT])


def _emit_resolve(code: Module) -> None:
    """Emit ``resolve(step, bases, resolved)``, which writes the addresses of a step's tensors to ``resolved``."""
    with code.function("resolve", 3) as f:
        step, bases, resolved = f.arguments
        pairs = step[StepField.POINTERS]
        with f.count(step[StepField.POINTER_COUNT]) as i:
            pair = pairs.at(i * 2)
            resolved[i] = bases[pair[0]] + pair[1]


def _emit_run_steps(code: Module) -> None:
    """Emit ``run_steps(program, bases, times, begin, end, scratch)``: steps [begin, end) entirely in this thread."""
    with code.function("run_steps", 6) as f:
        program, bases, times, begin, end, scratch = f.arguments
        resolved = f.array(POINTER_LIMIT)
        with f.count(end, start=begin) as number:
            step = step_address(program, number)
            f.call("resolve", step, bases, resolved)
            call_kernel(f, step, resolved, f.int64(0), step[StepField.TASKS], scratch)
            with f.if_(times.compare("!=", 0)):
                times[number + 1] = f.call("now", program[ProgramField.SYSTEM])


def call_kernel(f: Function, step: Int64, resolved: Int64, begin: Int64, end: Int64, scratch: Int64) -> None:
    """Emit the call ``kernel(pointers, params, begin, end, thread_scratch)`` of a step's kernel."""
    f.call_address(step[StepField.KERNEL], resolved, step[StepField.PARAMS], begin, end, scratch)
