"""Machine code that calculates the tables of programs for new sizes, compiled or taken from a cache."""

from __future__ import annotations

import ctypes
import functools
import logging
from collections.abc import Callable
from typing import NamedTuple

from lite_core.errors import LiteError
from lite_cpu.machine import Machine
from lite_cpu.machine_code.image import CodeImage
from lite_cpu.machine_code.loading import LoadedCode, load
from lite_cpu.runtime.native import IS_WINDOWS, machine_of_runtime

__all__ = ["SizeCode", "size_code"]

logger = logging.getLogger("lite.cpu")


class SizeCode(NamedTuple):
    """The functions; arguments are addresses.

    Attributes:
        follow: ``follow(instructions, count, numbers)``, see :func:`lite_cpu.templates.follow_code.emit_follow`.
        fill: ``fill(layout, numbers, block)``, see :func:`lite_cpu.templates.fill_code.emit_fill`.
        code: the mapping of the code, which must stay alive.
    """

    follow: Callable[[int, int, int], int]
    fill: Callable[[int, int, int], int]
    code: LoadedCode


@functools.cache
def size_code() -> SizeCode | None:
    """Return the code; None where it cannot be had, because there is no compiler: then Python calculates."""
    from lite_cpu.machine_code.cache import KernelCache, default_folder

    try:
        machine = machine_of_runtime()
        name = f"templates {machine.name} {'windows' if IS_WINDOWS else 'posix'}"
        image = KernelCache(default_folder()).get(name, functools.partial(_compile, machine, IS_WINDOWS))
        code = load([image])
    except LiteError:
        logger.debug("sizes are calculated without native code", exc_info=True)
        return None
    # They take microseconds: to release and take the GIL could take longer.
    function = ctypes.PYFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 3)
    return SizeCode(function(code.address(0, "lite_follow")), function(code.address(0, "lite_fill")), code)


def _compile(machine: Machine, windows: bool) -> CodeImage:
    from lite_cpu.machine_code.objects import compile_ir
    from lite_cpu.runtime.codegen import Module
    from lite_cpu.templates.fill_code import emit_fill
    from lite_cpu.templates.follow_code import emit_follow

    code = Module(machine.triple)
    convention = "win64cc" if windows and machine.triple.startswith("x86_64") else ""
    emit_follow(code, convention)
    emit_fill(code, convention)
    return compile_ir(str(code.ir), machine)
