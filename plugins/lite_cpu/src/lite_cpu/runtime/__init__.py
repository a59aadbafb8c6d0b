"""Execution of compiled programs: one native call runs all steps, on a pool of native threads.

A backend builds and runs a :class:`Program`. The modules below it, bottom up: :mod:`layout` (structs shared by native
code and Python), :mod:`tables` (a program in that layout), :mod:`codegen` (helpers that generate native functions),
:mod:`executor` (generated code that runs steps in one thread), :mod:`affinity` (generated code that chooses processors
for threads), :mod:`work_stealing` (generated code that runs steps in many threads), :mod:`native_code` (all generated
code in one LLVM module), :mod:`native` (compiling and loading it), :mod:`pool` (the threads).
"""

from __future__ import annotations

from lite_cpu.runtime.pool import ThreadPool, shared_pool, usable_threads
from lite_cpu.runtime.program import ALIGNMENT, Program
from lite_cpu.runtime.tables import ProgramError, ProgramTables, Step

__all__ = [
    "ALIGNMENT",
    "Program",
    "ProgramError",
    "ProgramTables",
    "Step",
    "ThreadPool",
    "shared_pool",
    "usable_threads",
]
