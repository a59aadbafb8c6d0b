"""The native code of the runtime: what runs a whole program in one call, alone or with a pool of threads."""

from __future__ import annotations

from lite_cpu.runtime.codegen import Module
from lite_cpu.runtime.executor import emit_executor, thread_scratch
from lite_cpu.runtime.layout import PoolField, ProgramField
from lite_cpu.runtime.work_stealing import emit_work_stealing

__all__ = ["runtime_ir"]


def runtime_ir(triple: str, *, windows: bool = False) -> str:
    """LLVM assembly of the runtime; what its arguments point at: :mod:`lite_cpu.runtime.layout`.

    Functions to be called from outside: ``void lite_run(program, bases, pool, times)``, and where there are POSIX
    threads ``void *lite_worker(slot)`` and ``void lite_stop(pool)``.

    Args:
        triple: the LLVM target, x86-64 or AArch64.
        windows: the code is for Windows, which has another calling convention and no POSIX threads.
    """
    code = Module(triple)
    emit_executor(code, windows=windows)
    if not windows:
        emit_work_stealing(code)
    _emit_run(code, windows=windows)
    return str(code.ir)


def _emit_run(code: Module, *, windows: bool) -> None:
    """``lite_run``: with the pool's threads where a pool is given and no other run has it, else alone, at once."""
    # NOTE: kernels follow the calling convention of their ELF target on every system. What Python calls follows the
    # system's, which differs on Windows for x86-64.
    convention = "win64cc" if windows and code.ir.triple.startswith("x86_64") else ""
    with code.function("lite_run", 4, exported=True, convention=convention) as f:
        program, bases, pool, times = f.arguments
        alone = f.variable(1)
        if not windows:
            with f.if_(pool.compare("!=", 0)):
                busy = pool.at(PoolField.BUSY)
                with f.if_(busy.compare_and_swap(0, 1)):
                    alone.set(0)
                    f.call("lead", pool, program, bases, times)
                    busy.store(0, "release")
        with f.if_(alone.get().compare("!=", 0)):
            with f.if_(times.compare("!=", 0)):
                times[0] = f.call("now", program[ProgramField.SYSTEM])
            scratch = thread_scratch(program, bases, f.word(0))
            f.call("run_steps", program, bases, times, 0, program[ProgramField.STEP_COUNT], scratch)
