"""Native code that walks through the steps of a program in one thread."""

from __future__ import annotations

from lite_cpu.runtime.codegen import Function, Module, Word
from lite_cpu.runtime.layout import POINTER_LIMIT, STEP_WORDS, ProgramField, StepField, SystemField

__all__ = ["call_kernel", "emit_executor", "step_address", "thread_scratch"]


def emit_executor(code: Module, *, windows: bool) -> None:
    """Adds ``now``, ``resolve`` and ``run_steps``."""
    (_emit_windows_clock if windows else _emit_posix_clock)(code)
    _emit_resolve(code)
    _emit_run_steps(code)


def step_address(program: Word, number: Word) -> Word:
    """Where step ``number`` is, as words."""
    return program[ProgramField.STEPS].at(number * STEP_WORDS)


def thread_scratch(program: Word, bases: Word, thread: Word) -> Word:
    """The address of a thread's scratch memory: behind the arena of this run, which is base 0."""
    return bases[0] + program[ProgramField.SCRATCH_OFFSET] + thread * program[ProgramField.SCRATCH_BYTES]


def _emit_posix_clock(code: Module) -> None:
    """``now(system)``: nanoseconds since some moment.

    NOTE: not the processor's cycle counter, which would be a little cheaper: AArch64 does not let programs read it.
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
    """``resolve(step, bases, resolved)``: writes the addresses of a step's tensors to ``resolved``."""
    with code.function("resolve", 3) as f:
        step, bases, resolved = f.arguments
        pairs = step[StepField.POINTERS]
        with f.count(step[StepField.POINTER_COUNT]) as i:
            pair = pairs.at(i * 2)
            resolved[i] = bases[pair[0]] + pair[1]


def _emit_run_steps(code: Module) -> None:
    """``run_steps(program, bases, times, begin, end, scratch)``: steps [begin, end), each whole, in this thread."""
    with code.function("run_steps", 6) as f:
        program, bases, times, begin, end, scratch = f.arguments
        resolved = f.array(POINTER_LIMIT)
        with f.count(end, start=begin) as number:
            step = step_address(program, number)
            f.call("resolve", step, bases, resolved)
            call_kernel(f, step, resolved, f.word(0), step[StepField.TASKS], scratch)
            with f.if_(times.compare("!=", 0)):
                times[number + 1] = f.call("now", program[ProgramField.SYSTEM])


def call_kernel(f: Function, step: Word, resolved: Word, begin: Word, end: Word, scratch: Word) -> None:
    """``void kernel(pointers, params, begin, end, thread_scratch)``."""
    f.call_address(step[StepField.KERNEL], resolved, step[StepField.PARAMS], begin, end, scratch)
