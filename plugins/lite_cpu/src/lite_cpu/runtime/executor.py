"""Generated code that runs the steps of a program in one thread."""

from __future__ import annotations

from lite_cpu.runtime.codegen import Function, Int64, Module
from lite_cpu.runtime.layout import (
    POINTER_LIMIT,
    STEP_FIELDS,
    SUSPENDED,
    ProgramField,
    ResumeField,
    StepField,
    SystemField,
)

__all__ = ["call_kernel", "emit_executor", "step_address", "thread_scratch"]


def emit_executor(code: Module, *, windows: bool) -> None:
    """Emit ``now``, ``stamp``, ``resolve``, ``start``, ``follow`` and ``run_steps``."""
    (_emit_windows_clock if windows else _emit_posix_clock)(code)
    _emit_stamp(code)
    _emit_resolve(code)
    _emit_start(code)
    _emit_follow(code)
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


def _emit_stamp(code: Module) -> None:
    """Emit ``stamp(times, number, system)``: add the time since the last stamp to that of step ``number``."""
    with code.function("stamp", 3) as f:
        times, number, system = f.arguments
        with f.if_(times.compare("!=", 0)):
            time = f.call("now", system)
            times[number + 1] = times[number + 1] + time - times[0]
            times[0] = time


def _emit_start(code: Module) -> None:
    """Emit ``start(program, times, resume)``: take the time, and return the number of the first step."""
    with code.function("start", 3, result=True) as f:
        program, times, resume = f.arguments
        system, first = program[ProgramField.SYSTEM], f.variable(0)
        with f.if_(times.compare("!=", 0)):
            times[0] = f.call("now", system)
        with f.if_(resume.compare("!=", 0)):
            first.set(resume[ResumeField.NEXT])
            resume[ResumeField.END] = f.call("now", system) + resume[ResumeField.SLICE]
        f.ret(first.get())


def _emit_follow(code: Module) -> None:
    """Emit ``follow(program, number, flag, resume)``: return the step after step ``number``, which has run.

    ``flag`` is the address of the first tensor of a step that may jump.
    """
    with code.function("follow", 4, result=True) as f:
        program, number, flag, resume = f.arguments
        jump = step_address(program, number)[StepField.JUMP]
        following = f.variable(number + 1)
        with f.if_(jump.compare("!=", 0)), f.if_(flag[0].compare("!=", 0)):
            following.set(number + jump)
            with f.if_((jump >> 63).compare("!=", 0)), f.if_(resume.compare("!=", 0)):
                over = f.call("now", program[ProgramField.SYSTEM]).compare(">", resume[ResumeField.END])
                with f.if_(over):
                    following.set(following.get() | SUSPENDED)
        f.ret(following.get())


def _emit_resolve(code: Module) -> None:
    """Emit ``resolve(step, bases, resolved)``, which writes the addresses of a step's tensors to ``resolved``."""
    with code.function("resolve", 3) as f:
        step, bases, resolved = f.arguments
        pairs = step[StepField.POINTERS]
        with f.count(step[StepField.POINTER_COUNT]) as i:
            pair = pairs.at(i * 2)
            resolved[i] = bases[pair[0]] + pair[1]


def _emit_run_steps(code: Module) -> None:
    """Emit ``run_steps(program, bases, times, first, all, scratch, resume)``: run steps entirely in this thread.

    It begins with step ``first``, and ends before the first step that is divided among threads, unless ``all`` is 1, or
    when it is suspended, or with the program. It returns the number of the step that follows.
    """
    with code.function("run_steps", 7, result=True) as f:
        program, bases, times, first, is_all, scratch, resume = f.arguments
        resolved, following = f.array(POINTER_LIMIT), f.variable(first)
        with f.loop() as loop:
            number = following.get()
            loop.leave_if(number.compare(">=", program[ProgramField.STEP_COUNT]))
            step = step_address(program, number)
            loop.leave_if((step[StepField.RUN_LENGTH] | is_all).compare("==", 0))
            f.call("resolve", step, bases, resolved)
            call_kernel(f, step, resolved, f.int64(0), step[StepField.TASKS], scratch)
            f.call("stamp", times, number, program[ProgramField.SYSTEM])
            following.set(f.call("follow", program, number, resolved[0], resume))
        f.ret(following.get())


def call_kernel(f: Function, step: Int64, resolved: Int64, begin: Int64, end: Int64, scratch: Int64) -> None:
    """Emit the call ``kernel(pointers, params, begin, end, thread_scratch)`` of a step's kernel."""
    f.call_address(step[StepField.KERNEL], resolved, step[StepField.PARAMS], begin, end, scratch)
