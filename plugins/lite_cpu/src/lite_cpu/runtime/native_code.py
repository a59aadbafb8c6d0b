"""LLVM code of the runtime, which runs a whole program in one call, in one thread or with a thread pool."""

from __future__ import annotations

from lite_cpu.runtime.codegen import Module
from lite_cpu.runtime.executor import emit_executor, thread_scratch
from lite_cpu.runtime.layout import PoolField, ResumeField
from lite_cpu.runtime.work_stealing import emit_work_stealing

__all__ = ["runtime_ir", "runtime_module"]


def runtime_ir(triple: str, *, windows: bool = False) -> str:
    """Return the LLVM assembly of the runtime; :mod:`lite_cpu.runtime.layout` describes the structs it works on.

    Exported functions: ``void lite_run(program, bases, pool, times, resume)``, and on systems with POSIX threads
    ``void *lite_worker(slot)`` and ``void lite_stop(pool)``.

    Args:
        triple: the LLVM target, x86-64 or AArch64.
        windows: generate code for Windows, which has another calling convention and no POSIX threads.
    """
    return str(runtime_module(triple, windows=windows).ir)


def runtime_module(triple: str, *, windows: bool = False) -> Module:
    """Return the functions of :func:`runtime_ir`, from which the model of docs/memory-order.md makes its threads."""
    code = Module(triple)
    emit_executor(code, windows=windows)
    if not windows:
        emit_work_stealing(code)
    _emit_run(code, windows=windows)
    return code


def _emit_run(code: Module, *, windows: bool) -> None:
    """Emit ``lite_run``: it uses the pool's threads if a pool is given and idle, otherwise it runs alone at once."""
    # NOTE: kernels follow the calling convention of their ELF target on every system. Functions called by Python
    # follow the system's convention, which differs on Windows for x86-64.
    convention = "win64cc" if windows and code.ir.triple.startswith("x86_64") else ""
    with code.function("lite_run", 5, exported=True, convention=convention) as f:
        program, bases, pool, times, resume = f.arguments
        alone = f.variable(1)
        if not windows:
            with f.if_(pool.compare("!=", 0)):
                busy = pool.at(PoolField.BUSY)
                with f.if_(busy.compare_and_swap(0, 1, "acquire")):  # from the release below, of the last run
                    alone.set(0)
                    f.call("lead", pool, program, bases, times, resume)
                    busy.store(0, "release")
        with f.if_(alone.get().compare("!=", 0)):
            first = f.call("start", program, times, resume)
            scratch = thread_scratch(program, bases, f.int64(0))
            following = f.call("run_steps", program, bases, times, first, 1, scratch, resume)
            with f.if_(resume.compare("!=", 0)):
                resume[ResumeField.NEXT] = following
