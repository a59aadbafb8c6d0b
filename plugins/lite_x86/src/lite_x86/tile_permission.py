"""Permission to use matrix tiles (AMX), which a process on Linux must ask for before its first use of them.

All of its threads then have it, also earlier ones, and so have forked processes; a program that is started anew asks
again. The requests are described in https://docs.kernel.org/arch/x86/xstate.html.
"""

from __future__ import annotations

import ctypes
import os
import sys

__all__ = ["refusal"]

_SYSCALL_ARCH_PRCTL = 158
_GET_PERMISSION, _REQUEST_PERMISSION, _TILE_DATA = 0x1022, 0x1023, 18


def refusal() -> str:
    """Ask for the permission, and return an empty text if this process has it, else the reason why not."""
    if sys.platform != "linux":
        return "Lite knows only how to ask Linux for them"
    try:
        call = ctypes.CDLL(None, use_errno=True).syscall
    except (AttributeError, OSError) as error:
        return f"the C library has no system calls ({error})"
    call.restype, call.argtypes = ctypes.c_long, [ctypes.c_long, ctypes.c_long, ctypes.c_void_p]
    if call(_SYSCALL_ARCH_PRCTL, _REQUEST_PERMISSION, _TILE_DATA):
        return f"the system refused them (arch_prctl: {os.strerror(ctypes.get_errno())})"
    granted = ctypes.c_uint64()
    call(_SYSCALL_ARCH_PRCTL, _GET_PERMISSION, ctypes.addressof(granted))
    return "" if granted.value >> _TILE_DATA & 1 else "the system did not grant them"
