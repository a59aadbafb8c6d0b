"""The part of llvmlite that compiles: which versions are supported, and its private functions that are in use.

Importing this module does not import llvmlite; the first call of :func:`binding` does.
"""

from __future__ import annotations

import ctypes
import functools
import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from lite_core.forking import new_lock

__all__ = ["SUPPORTED", "binding", "installed_version", "missing_compiler", "optimize_and_emit"]

#: The versions of llvmlite that the tests compile with: the oldest one, and the first one that is too new.
SUPPORTED = ((0, 45), (0, 51))

_initialize_lock = new_lock()
_initialized = False
_emitting_lock = new_lock()
_emitting = 0  # threads that emit machine code


@functools.cache
def missing_compiler() -> str:
    """Return why this environment cannot compile kernels, and what to install; an empty text if it can."""
    installed = installed_version()
    if installed is None:
        return "compiling kernels needs llvmlite, which is not installed: pip install 'lite-cpu[compile]'"
    numbers = tuple(int(number) for number in re.findall(r"\d+", installed)[:2])
    if numbers and not SUPPORTED[0] <= numbers < SUPPORTED[1]:
        return f"llvmlite {installed} is not supported: {_remedy()}"
    return ""


@functools.cache
def installed_version() -> str | None:
    """Return the version of llvmlite, None if it is not installed; empty if its metadata is missing."""
    # find_spec does not import llvmlite, which saved programs run without. Its metadata folder has the version in its
    # name: "llvmlite-0.50.0.dist-info".
    found = find_spec("llvmlite")
    if found is None:
        return None
    folders = Path(found.origin).parents[1].glob("llvmlite-*-info") if found.origin else ()
    matches = (re.match(r"llvmlite-(.+?)(-py[\d.]+)?\.(dist|egg)-info", folder.name) for folder in folders)
    return ", ".join(sorted(match[1] for match in matches if match))


def binding() -> Any:
    """Import llvmlite's binding, initialize all of its targets once, and return it."""
    from llvmlite import binding

    global _initialized
    with _initialize_lock:
        if not _initialized:
            binding.initialize_all_targets()
            binding.initialize_all_asmprinters()
            _initialized = True
    return binding


def optimize_and_emit(pipeline: Any, module: Any, passes: Any, target_machine: Any, *, as_text: bool = False) -> bytes:
    """Run passes over a module, and return it as an object file; other threads may do the same at the same time.

    With ``as_text`` the result is the text of the same instructions.

    NOTE: these are llvmlite's ``ModulePassManager.run`` and ``TargetMachine.emit_object``, without the lock that admits
    one thread at a time: LLVM only requires that threads share no context. The two calls take nine tenths of the time
    of a compilation. The functions are private to llvmlite, hence the limit of its version.

    Raises:
        RuntimeError: LLVM cannot emit the module, or llvmlite lacks one of the functions.
    """
    llvm = binding()
    _unlocked("LLVMPY_RunNewModulePassManager")(pipeline, module, passes)
    with _addresses_as_written(), llvm.ffi.OutputString() as error:
        buffer = _unlocked("LLVMPY_TargetMachineEmitToMemory")(target_machine, module, not as_text, error)
        if not buffer:
            raise RuntimeError(str(error))
    try:
        start, size = _unlocked("LLVMPY_GetBufferStart")(buffer), _unlocked("LLVMPY_GetBufferSize")(buffer)
        return ctypes.string_at(start, size)
    finally:
        _unlocked("LLVMPY_DisposeMemoryBuffer")(buffer)


@contextmanager
def _addresses_as_written() -> Iterator[None]:
    """Make LLVM emit the address arithmetic of loops as it is, while at least one thread is in the body.

    LLVM's loop strength reduction looks for better addresses. That takes half of the time of emitting a kernel, and
    measured on Zen 4, no kernel gets faster. Only an option of the whole process switches it off, so that it is
    switched on again for other users of llvmlite.
    """
    global _emitting
    with _emitting_lock:
        if not _emitting:
            binding().set_option("lite", "-disable-lsr")
        _emitting += 1
    try:
        yield
    finally:
        with _emitting_lock:
            _emitting -= 1
            if not _emitting:
                binding().set_option("lite", "-disable-lsr=false")


def _unlocked(name: str) -> Any:
    """Return a function of llvmlite's library without its lock. It checks its arguments against its signature."""
    try:
        function = getattr(binding().ffi.lib, name)
    except AttributeError:
        raise RuntimeError(f"llvmlite {installed_version()} has no function {name}: {_remedy()}") from None
    return getattr(function, "_cfn", function)


def _remedy() -> str:
    oldest, too_new = (".".join(map(str, version)) for version in SUPPORTED)
    return f"pip install 'llvmlite>={oldest},<{too_new}'"
