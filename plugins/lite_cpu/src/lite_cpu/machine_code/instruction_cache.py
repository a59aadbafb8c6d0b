"""Instruction caches: on ARM they do not notice that code was written, so stale instructions must be removed.

New code is in the data cache of one core. It must be written back to where all instruction fetches find it (``dc cvau``
for each cache line), then every core's instruction cache must drop what it has of those addresses (``ic ivau``), and
both must be complete (``dsb ish``) before any thread learns the address of the code. What a core has fetched ahead it
drops by ``isb``: this thread does that itself, and ``membarrier`` lets every core that runs a thread of this process do
it.

Linux flushes a page when it becomes executable for the first time, but nothing obliges it to. The library of a C
compiler has a function for it, which :func:`flush_instruction_cache` calls.
"""

from __future__ import annotations

import ctypes
import functools
import logging
import mmap
import os
import platform
import struct
import sys
from collections.abc import Callable

__all__ = ["flush_instruction_cache"]

#: Number of the system call ``membarrier`` on AArch64, and its commands.
_MEMBARRIER, _SYNCHRONIZE_CORES, _REGISTER = 283, 1 << 5, 1 << 6

logger = logging.getLogger("lite.cpu.machine_code")

#: ``routine(begin, end)`` for AArch64, for systems without a library that has it. CTR_EL0 holds the sizes of the
#: smallest cache lines as powers of two, in units of 4 bytes.
_ROUTINE = struct.pack(
    "<22I",
    0xD53B0022,  # mrs x2, ctr_el0
    0xD3504C43,  # ubfx x3, x2, #16, #4    the data cache
    0xD2800084,  # mov x4, #4
    0x9AC32083,  # lsl x3, x4, x3
    0xD1000465,  # sub x5, x3, #1
    0x8A250005,  # bic x5, x0, x5          the line that begins at or before the code
    0xD50B7B25,  # dc cvau, x5             write it back
    0x8B0300A5,  # add x5, x5, x3
    0xEB0100BF,  # cmp x5, x1
    0x54FFFFA3,  # b.lo                    to dc
    0xD5033B9F,  # dsb ish
    0x92400C43,  # and x3, x2, #15         the instruction cache
    0x9AC32083,  # lsl x3, x4, x3
    0xD1000465,  # sub x5, x3, #1
    0x8A250005,  # bic x5, x0, x5
    0xD50B7525,  # ic ivau, x5             drop it
    0x8B0300A5,  # add x5, x5, x3
    0xEB0100BF,  # cmp x5, x1
    0x54FFFFA3,  # b.lo                    to ic
    0xD5033B9F,  # dsb ish
    0xD5033FDF,  # isb
    0xD65F03C0,  # ret
)


def flush_instruction_cache(address: int, size: int) -> None:
    """Let every core fetch the ``size`` bytes of code at ``address`` as they are now; nothing to do on x86.

    Call it after the code was written and before another thread learns the address.
    """
    if platform.machine().lower() in ("aarch64", "arm64"):
        _flush()(address, size)


@functools.cache
def _flush() -> Callable[[int, int], None]:
    """Return the system's function, as ``flush(address, size)``."""
    if sys.platform == "win32":
        kernel = ctypes.WinDLL("kernel32")
        process = ctypes.c_void_p(-1)  # this one
        return lambda address, size: kernel.FlushInstructionCache(
            process, ctypes.c_void_p(address), ctypes.c_size_t(size)
        )
    if sys.platform == "darwin":
        system = ctypes.CDLL(None)
        return lambda address, size: system.sys_icache_invalidate(ctypes.c_void_p(address), ctypes.c_size_t(size))
    routine = _of_a_library() or _own_routine()
    if routine is None:
        logger.warning(
            "no way to flush the instruction cache: neither libgcc_s.so.1 with __clear_cache nor executable memory "
            "files (memfd_create); relying on Linux, which flushes pages that become executable. If a run crashes with "
            "an illegal instruction, install libgcc_s"
        )
        return lambda address, size: None
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(routine)

    def flush(address: int, size: int) -> None:
        function(address, address + size)
        _synchronize_cores()

    return flush


def _synchronize_cores() -> None:
    """Let every core that runs a thread of this process drop the instructions that it has fetched ahead.

    Linux has this since version 4.16. Where a call fails, the threads' system calls and interrupts, which have the same
    effect, must do: no thread runs code at an address before it learned it, much later than it was written.
    """
    call = ctypes.CDLL(None).syscall
    for command in (_REGISTER, _SYNCHRONIZE_CORES):  # a child of a fork must register again
        call(ctypes.c_long(_MEMBARRIER), ctypes.c_int(command), ctypes.c_uint(0), ctypes.c_int(0))


def _of_a_library() -> int | None:
    """Return the address of ``__clear_cache(begin, end)``, which the library of GCC has and others may have."""
    for name in ("libgcc_s.so.1", None):
        try:
            return ctypes.cast(getattr(ctypes.CDLL(name), "__clear_cache"), ctypes.c_void_p).value
        except (OSError, AttributeError):
            continue
    return None


def _own_routine() -> int | None:
    """Return the address of a mapping of :data:`_ROUTINE`, which is never unmapped; None where that is refused.

    It is mapped from a file, as the code of every program is: the system itself makes such code fetchable.
    """
    try:
        file = os.memfd_create("lite-flush", os.MFD_CLOEXEC)
    except (AttributeError, OSError):
        return None
    try:
        os.write(file, _ROUTINE)
        system = ctypes.CDLL(None, use_errno=True)
        system.mmap.restype = ctypes.c_void_p
        protection, failed = mmap.PROT_READ | mmap.PROT_EXEC, ctypes.c_void_p(-1).value
        size, offset = ctypes.c_size_t(len(_ROUTINE)), ctypes.c_long(0)
        address: int | None = system.mmap(None, size, protection, mmap.MAP_PRIVATE, file, offset)
        return None if address == failed else address
    except OSError:
        return None
    finally:
        os.close(file)
