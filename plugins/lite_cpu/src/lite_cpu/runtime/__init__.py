"""Running compiled programs: one native call for all steps, with threads of its own.

:class:`Program` is what a backend makes and runs. Below it, from the ground up: :mod:`layout` (the memory that native
code and Python share), :mod:`tables` (a program there), :mod:`words` (writing native code), :mod:`executor` and
:mod:`team` (the code: one thread, many threads), :mod:`placement` (the code: on which processors), :mod:`native`
(loading it), :mod:`pool` (the threads).
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
