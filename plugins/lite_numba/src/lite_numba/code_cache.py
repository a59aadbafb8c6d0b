"""Machine code that Numba made, stored in the user's cache folder.

An entry is named by the hash of everything that decides its content: the code of the loop and of the functions that it
calls, its constants, the argument types, the processor, and the versions of Python, Numba and LLVM. Nothing is ever
out of date: what changes has another name.

An entry is a pickle and machine code, that is, code: it is read only from a file in a folder that no other user can
change (:mod:`lite_core.private_files`), and only if it is complete. A failure of the cache never fails a run.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.metadata
import logging
import pickle
import platform
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np
from numba.core import compiler, serialize

from lite_core.private_files import read_private, write_private
from lite_core.storage import cache_folder, cache_limit

__all__ = ["CodeCache", "fingerprint"]

logger = logging.getLogger("lite.numba")

_SUFFIX = ".numba"
#: A folder above its size limit is reduced to this share of it.
_KEPT_SHARE = 3 / 4
_DIGEST_BYTES = hashlib.sha256().digest_size


class CodeCache:
    """The cache of one loop's machine code; Numba asks it before it compiles, and gives it the result.

    Args:
        identity: the loop's :func:`fingerprint`, and the options that it is compiled with.
    """

    def __init__(self, identity: str) -> None:
        self._identity = identity
        #: Signatures that were read instead of compiled.
        self.read: list[Any] = []

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        target_context.refresh()
        path = self._path(sig, target_context)
        content = path and _read(path)
        if not content:
            return None
        try:
            result = compiler.CompileResult._rebuild(target_context, *pickle.loads(content))
        except Exception as error:  # made by this user, complete, and yet not readable: compile it again
            logger.warning("%s cannot be used (%s: %s): it is compiled again", path, type(error).__name__, error)
            return None
        self.read.append(sig)
        return result

    def save_overload(self, sig: Any, data: Any) -> None:
        path = self._path(sig, data.target_context)
        if path is None or data.lifted or data.library.has_dynamic_globals:
            return  # its code holds addresses of this process
        content = serialize.dumps(data._reduce())
        try:
            write_private(path, hashlib.sha256(content).digest() + content)
            _evict(path.parent)
        except OSError as error:
            _warn_once(path.parent, str(error))

    def _path(self, sig: Any, target_context: Any) -> Path | None:
        folder = cache_folder("numba")
        if folder is None:
            return None
        processor = target_context.codegen().magic_tuple()  # its triple, its name and its features
        text = repr((self._identity, str(sig), processor, _versions()))
        return folder.absolute() / f"{hashlib.sha256(text.encode()).hexdigest()}{_SUFFIX}"


def fingerprint(function: FunctionType) -> str:
    """Return a text that changes with what a function computes: its code, its constants, and functions it calls.

    Values that have no lasting text, such as objects of other types, are described by their type.
    """
    return hashlib.sha256("\n".join(_described(function, [])).encode()).hexdigest()


def _described(value: Any, seen: list[FunctionType]) -> Iterator[str]:
    if isinstance(value, FunctionType):
        if any(value is other for other in seen):  # it calls itself
            yield f"function {value.__qualname__}"
            return
        seen.append(value)
        yield from _described(value.__code__, seen)
        yield from _described(value.__defaults__, seen)
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        names = sorted(set(_names(value.__code__)) & value.__globals__.keys())
        for part in (*cells, *(value.__globals__[name] for name in names)):
            yield from _described(part, seen)
    elif isinstance(value, CodeType):
        yield repr((value.co_name, value.co_code.hex(), value.co_names, value.co_varnames, value.co_freevars))
        for constant in value.co_consts:
            yield from _described(constant, seen)
    elif isinstance(value, (tuple, list, frozenset)):
        yield f"{type(value).__name__} {len(value)}"
        for part in sorted(value, key=repr) if isinstance(value, frozenset) else value:
            yield from _described(part, seen)
    elif isinstance(value, np.ndarray):
        yield repr((value.dtype.str, value.shape, hashlib.sha256(value.tobytes()).hexdigest()))
    elif isinstance(value, ModuleType):
        yield f"module {value.__name__} {getattr(value, '__version__', '')}"
    elif isinstance(value, (bool, int, float, complex, str, bytes, type(None), np.generic, np.dtype, type)):
        yield f"{type(value).__name__} {value!r}"
    else:
        yield f"{type(value).__module__}.{type(value).__qualname__} {getattr(value, '__name__', '')}"


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


@functools.cache
def _versions() -> tuple[str, ...]:
    packages = tuple(importlib.metadata.version(name) for name in ("lite-numba", "numba", "llvmlite", "numpy"))
    return (*packages, sys.implementation.cache_tag or platform.python_version())


def _read(path: Path) -> bytes | None:
    """Return the content of an entry; None if it is missing, damaged, or not this user's."""
    try:
        stored = read_private(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        _warn_once(path.parent, str(error))
        return None
    content = stored[_DIGEST_BYTES:]
    if hashlib.sha256(content).digest() != stored[:_DIGEST_BYTES]:
        logger.warning("%s is damaged: it is compiled again", path)
        return None
    return content


def _evict(folder: Path) -> None:
    """Remove the entries that were made first, if the folder is above its limit."""
    limit = cache_limit()
    entries = [(path.stat(), path) for path in folder.glob(f"*{_SUFFIX}")]
    held = sum(status.st_size for status, _ in entries)
    if held > limit:
        for status, path in sorted(entries, key=lambda entry: entry[0].st_mtime):
            if held <= _KEPT_SHARE * limit:
                break
            with contextlib.suppress(OSError):  # Windows does not remove what is open
                path.unlink(missing_ok=True)
            held -= status.st_size


@functools.cache
def _warn_once(folder: Path, reason: str) -> None:
    logger.warning(
        "%s cannot be used (%s): what is compiled stays in memory. Set LITE_CACHE_DIR to another folder", folder, reason
    )
