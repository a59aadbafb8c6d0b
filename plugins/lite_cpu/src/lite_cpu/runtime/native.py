"""The runtime's machine code, compiled or taken from a cache, and the functions of the operating system it calls."""

from __future__ import annotations

import ctypes
import functools
import platform
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lite_core.errors import BackendUnavailableError
from lite_cpu.machine import ARM_V8, X86_64_V2, Machine
from lite_cpu.machine_code.image import CodeImage
from lite_cpu.machine_code.loading import LoadedCode, load
from lite_cpu.runtime.layout import SystemField

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["IS_WINDOWS", "Native", "load_native", "machine_of_runtime", "native", "runtime_image"]

IS_WINDOWS = sys.platform == "win32"

_MACHINES = {"x86_64": X86_64_V2, "amd64": X86_64_V2, "aarch64": ARM_V8, "arm64": ARM_V8}
_POSIX_FUNCTIONS = {
    SystemField.CLOCK: "clock_gettime",
    SystemField.YIELD: "sched_yield",
    SystemField.LOCK: "pthread_mutex_lock",
    SystemField.UNLOCK: "pthread_mutex_unlock",
    SystemField.WAIT: "pthread_cond_wait",
    SystemField.BROADCAST: "pthread_cond_broadcast",
}
_LINUX_FUNCTIONS = {
    SystemField.GET_THREAD_ID: "gettid",
    SystemField.GET_PROCESSOR: "sched_getcpu",
    SystemField.SET_AFFINITY: "sched_setaffinity",
}


class Native(NamedTuple):
    """Python interface of the runtime. Calls release the GIL.

    Attributes:
        run: ``run(program, bases, pool, times, resume)``; arguments are addresses, or bytes, passed by address.
        stop: ``stop(pool)`` asks the workers to exit.
        worker: address of the threads' start routine; 0 on systems without POSIX threads.
        system: the addresses described by :class:`SystemField`.
        image: the code, for :func:`load_native`.
        code: the mapping of the code, which must stay alive.
    """

    run: Callable[[int, bytes, int | None, int | None, int | None], None]
    stop: Callable[[int], None]
    worker: int
    system: npt.NDArray[np.int64]
    image: bytes
    code: LoadedCode


@functools.cache
def native() -> Native:
    """Return the runtime that is compiled on this machine; the first call loads it from the cache, or compiles it.

    Raises:
        BackendUnavailableError: this processor is neither x86-64 nor AArch64.
    """
    machine = machine_of_runtime()
    system = "windows" if IS_WINDOWS else "posix"
    name = f"runtime {machine.name} {system}"
    return load_native(_compiled(name, machine, windows=IS_WINDOWS).to_bytes())


def machine_of_runtime() -> Machine:
    """Return the machine that code is compiled for which runs on every processor of this architecture.

    Raises:
        BackendUnavailableError: this processor is neither x86-64 nor AArch64.
    """
    processor = platform.machine().lower()
    if processor not in _MACHINES:
        raise BackendUnavailableError(
            f"the CPU runtime has code for {', '.join(_MACHINES)}, this processor is {processor!r}; "
            "use the host backend"
        )
    return _MACHINES[processor]


@functools.lru_cache(maxsize=8)
def load_native(image: bytes) -> Native:
    """Return the runtime with this code, which a model file may bring: programs of the file run in it.

    Raises:
        CodeImageError: the bytes are not a runtime.
        CodeLoadError: the code is for another processor.
    """
    code = load([CodeImage.from_bytes(image)])
    run = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 5)(code.address(0, "lite_run"))
    if IS_WINDOWS:
        return Native(run, _nothing_to_stop, 0, _windows_functions(), image, code)
    stop = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(code.address(0, "lite_stop"))
    return Native(run, stop, code.address(0, "lite_worker"), _posix_functions(), image, code)


def runtime_image(triple: str) -> bytes:
    """Return the code of the runtime for a target, to be saved beside kernels for it.

    For another architecture than this machine's, it is that of a system with POSIX threads.

    Args:
        triple: the LLVM target, see :attr:`~lite_cpu.machine.Machine.triple`.
    """
    machine = _MACHINES[triple.partition("-")[0]]
    if machine is _MACHINES.get(platform.machine().lower()):
        return native().image
    return _compiled(f"runtime {machine.name} posix", machine, windows=False).to_bytes()


def _compiled(name: str, machine: Machine, *, windows: bool) -> CodeImage:
    from lite_cpu.machine_code.cache import KernelCache, default_folder

    return KernelCache(default_folder()).get(name, functools.partial(_compile, machine, windows))


def _compile(machine: Machine, windows: bool) -> CodeImage:
    from lite_cpu.machine_code.objects import compile_ir
    from lite_cpu.runtime.native_code import runtime_ir

    return compile_ir(runtime_ir(machine.triple, windows=windows), machine)


def _posix_functions() -> npt.NDArray[np.int64]:
    library = ctypes.CDLL(None)
    table = np.zeros(len(SystemField), np.int64)
    functions = _POSIX_FUNCTIONS
    if all(hasattr(library, name) for name in _LINUX_FUNCTIONS.values()):  # glibc has gettid since 2.30
        functions = _POSIX_FUNCTIONS | _LINUX_FUNCTIONS
    for field, name in functions.items():
        table[field] = _address(library[name])
    table[SystemField.CLOCK_ARGUMENT] = time.CLOCK_MONOTONIC
    return table


def _windows_functions() -> npt.NDArray[np.int64]:
    library = ctypes.CDLL("kernel32")
    frequency = ctypes.c_int64()
    library.QueryPerformanceFrequency(ctypes.byref(frequency))
    table = np.zeros(len(SystemField), np.int64)
    table[SystemField.CLOCK] = _address(library["QueryPerformanceCounter"])
    table[SystemField.CLOCK_ARGUMENT] = 1_000_000_000 // frequency.value
    return table


def _address(function: object) -> int:
    address = ctypes.cast(function, ctypes.c_void_p).value  # type: ignore[arg-type]
    assert address is not None
    return address


def _nothing_to_stop(pool: int) -> None:
    del pool
