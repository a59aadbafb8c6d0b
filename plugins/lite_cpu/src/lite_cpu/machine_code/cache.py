"""Cache of compiled kernels, in memory and on disk, so that no kernel is compiled twice on a machine.

The cache never makes a run fail: a kernel that cannot be read is compiled again, one that cannot be written stays in
memory, and the log (``lite.cpu.cache``) reports it. :mod:`lite_core.storage` chooses the folder and limits its size.
"""

from __future__ import annotations

import functools
import hashlib
import logging
import os
import struct
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lite_compiler.disk_cache import DiskCache
from lite_core.forking import new_lock
from lite_core.log import tracked
from lite_core.storage import cache_folder
from lite_cpu.machine_code.file_lock import file_lock
from lite_cpu.machine_code.image import CodeImage, CodeImageError
from lite_cpu.machine_code.llvm import installed_version
from lite_cpu.machine_code.objects import require_memory
from lite_cpu.sources import sources_version

__all__ = ["CacheStatistics", "KernelCache", "code_version", "default_folder"]

logger = logging.getLogger("lite.cpu.cache")

_HEADER = struct.Struct("<8sI32s")  # magic, bytes of the key, SHA-256 of the key and the image that follow
_MAGIC = b"LITEKRN1"
# Longer than any kernel takes to compile: a process that holds a lock for longer has probably been stopped.
_PATIENCE_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class CacheStatistics:
    """Statistics of a kernel cache.

    Attributes:
        hits: number of kernels found, in memory or on disk.
        misses: number of kernels compiled.
        rebuilt: number of misses whose entry on disk was damaged.
        compile_seconds: time spent compiling, summed over threads.
    """

    hits: int = 0
    misses: int = 0
    rebuilt: int = 0
    compile_seconds: float = 0.0


def default_folder() -> Path | None:
    """Return the folder of the kernel cache, or None if kernels are kept in memory only."""
    return cache_folder("kernels")


class KernelCache:
    """Kernels by key, in memory and in a folder that any number of threads and processes may share.

    A key contains everything that determines a kernel: its class, its options and the machine. The version of llvmlite
    and the code of this package, which emits kernels, are added to every entry.

    Args:
        folder: the folder of entries, one file each, created with the first entry. None keeps kernels in memory only.
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self._images: dict[str, CodeImage] = {}
        self._key_locks: dict[str, threading.RLock] = {}  # each held by the thread that reads or builds the kernel
        self._guard = new_lock()  # protects tables and statistics; never held while reading or building
        self._statistics = CacheStatistics()
        self._files = DiskCache(folder, ".kernel", logger)

    @property
    def statistics(self) -> CacheStatistics:
        """The statistics of this object so far."""
        return self._statistics

    def get(self, key: str, build: Callable[[], CodeImage]) -> CodeImage:
        """Return the kernel of ``key`` from memory or from disk, or build it.

        Threads and processes that request the same key at once wait for the one that builds it. Exceptions of
        ``build`` are passed on, and nothing is kept.
        """
        with self._guard:
            key_lock = self._key_locks.setdefault(key, new_lock())
        with key_lock:
            image = self._images.get(key) or self._read(key)
            if image is None:
                return self._build_locked(key, build)
            self._keep(key, image, hits=1)
            return image

    def get_many(self, requests: Sequence[tuple[str, Callable[[], CodeImage]]], threads: int) -> list[CodeImage]:
        """Return the kernels of all requests in order, see :meth:`get`; ``threads`` threads build missing ones."""
        missing = {key: build for key, build in requests if key not in self._images and not self._is_stored(key)}
        if missing:
            require_memory()
        if len(missing) < 2 or threads < 2:
            return [self.get(key, build) for key, build in requests]
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(min(threads, len(missing))) as pool:
            images = pool.map(self.get, missing, missing.values())
            built = dict(zip(tracked(missing, "compiling kernels"), images))
        return [built[key] if key in built else self.get(key, build) for key, build in requests]

    def _build_locked(self, key: str, build: Callable[[], CodeImage]) -> CodeImage:
        """Build and store a kernel under the file lock, unless another process stored it in the meantime."""
        if self.folder is None:
            return self._build(key, build)
        with file_lock(self._path(key).with_suffix(".lock"), _PATIENCE_SECONDS) as waited:
            image = self._read(key) if waited else None
            if image is not None:
                self._keep(key, image, hits=1)
                return image
            image = self._build(key, build)
            self._files.write(_name(key), _pack(image, _full_key(key)))
        return image

    def _build(self, key: str, build: Callable[[], CodeImage]) -> CodeImage:
        start = time.perf_counter()
        image = _remotely(build) if os.environ.get("LITE_COMPILE_COMMAND") else build()
        seconds = time.perf_counter() - start
        logger.debug("compiled %s in %.1f ms", key, 1e3 * seconds)
        self._keep(key, image, misses=1, seconds=seconds)
        return image

    def _keep(self, key: str, image: CodeImage, *, hits: int = 0, misses: int = 0, seconds: float = 0.0) -> None:
        with self._guard:
            self._images[key] = image
            count = self._statistics
            self._statistics = replace(
                count,
                hits=count.hits + hits,
                misses=count.misses + misses,
                compile_seconds=count.compile_seconds + seconds,
            )

    def _path(self, key: str) -> Path:
        return self._files.path(_name(key))

    def _is_stored(self, key: str) -> bool:
        return self.folder is not None and os.path.exists(self._path(key))

    def _read(self, key: str) -> CodeImage | None:
        """Return the kernel of the entry on disk, or None; a damaged entry is logged."""
        entry = self._files.read(_name(key))
        if entry is None:
            return None
        try:
            return _unpack(entry, _full_key(key))
        except CodeImageError as error:
            logger.warning("kernel cache: %s (%s) is compiled again: %s", self._path(key), key, error)
            with self._guard:
                self._statistics = replace(self._statistics, rebuilt=self._statistics.rebuilt + 1)
        return None


def _remotely(build: Callable[[], CodeImage]) -> CodeImage:
    """Build a kernel in another process, which tests under emulation ask for."""
    from lite_cpu.machine_code import remote

    return remote.build(build, code_version())


def _name(key: str) -> str:
    """Return the file name of a kernel's entry, without its suffix."""
    return hashlib.sha256(_full_key(key)).hexdigest()


def _pack(image: CodeImage, full_key: bytes) -> bytes:
    content = full_key + image.to_bytes()
    return _HEADER.pack(_MAGIC, len(full_key), hashlib.sha256(content).digest()) + content


def _unpack(entry: bytes, full_key: bytes) -> CodeImage:
    """Return the image in an entry.

    Raises:
        CodeImageError: the entry is incomplete, damaged, or belongs to another kernel.
    """
    if len(entry) < _HEADER.size:
        raise CodeImageError(f"an entry has at least {_HEADER.size} bytes, this one has {len(entry)}")
    magic, key_bytes, checksum = _HEADER.unpack_from(entry)
    if magic != _MAGIC:
        raise CodeImageError(f"expected an entry that starts with {_MAGIC!r}, found {magic!r}")
    content = entry[_HEADER.size :]
    if hashlib.sha256(content).digest() != checksum:
        raise CodeImageError("its checksum does not match its content")
    if content[:key_bytes] != full_key:
        raise CodeImageError(f"it belongs to {content[:key_bytes].decode(errors='replace')!r}")
    return CodeImage.from_bytes(content[key_bytes:])


@functools.cache
def _full_key(key: str) -> bytes:
    return f"{key}\n{code_version()}".encode()


@functools.cache
def code_version() -> str:
    """Return the versions of llvmlite and of this package's sources, which determine a kernel's code with its key."""
    return f"llvmlite {installed_version()}, lite_cpu {sources_version()}"
