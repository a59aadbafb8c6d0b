"""Compiled kernels, kept in memory and on disk so that no kernel is compiled twice on a machine.

The cache never fails a run: what cannot be read is compiled again, what cannot be written stays in memory, and the
log (``lite.cpu.cache``) says so. Where entries lie, and how they stay few, is :mod:`lite_core.storage`'s.
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
from importlib.util import find_spec
from pathlib import Path

from lite_core.storage import DiskCache, cache_folder
from lite_cpu.machine_code.file_lock import file_lock
from lite_cpu.machine_code.image import CodeImage, CodeImageError
from lite_cpu.sources import sources_version

__all__ = ["CacheStatistics", "KernelCache", "code_version", "default_folder"]

logger = logging.getLogger("lite.cpu.cache")

_HEADER = struct.Struct("<8sI32s")  # magic, bytes of the key, SHA-256 of the key and the image that follow
_MAGIC = b"LITEKRN1"
# Longer than any kernel takes to compile: a process that holds a lock for longer than this is stopped.
_PATIENCE_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class CacheStatistics:
    """What a cache has done so far.

    Attributes:
        hits: kernels found, in memory or on disk.
        misses: kernels compiled.
        rebuilt: those of the misses whose entry on disk was damaged.
        compile_seconds: time spent compiling, added up over threads.
    """

    hits: int = 0
    misses: int = 0
    rebuilt: int = 0
    compile_seconds: float = 0.0


def default_folder() -> Path | None:
    """The folder that kernels are kept in, or None for memory only."""
    return cache_folder("kernels")


class KernelCache:
    """Kernels by key, in memory and in a folder that any number of threads and processes may share.

    A key names what a kernel is made from: which kernel, its options, the machine. The version of llvmlite and the
    code of this package, which emits kernels, are part of every entry without being named.

    Args:
        folder: where entries are kept, one file each; made when the first is written. None keeps them in memory.
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self._images: dict[str, CodeImage] = {}
        self._turns: dict[str, threading.Lock] = {}  # for each key, held by the thread that reads or builds it
        self._guard = threading.Lock()  # of the tables and counts; never held while reading or building
        self._statistics = CacheStatistics()
        self._files = DiskCache(folder, ".kernel", logger)

    @property
    def statistics(self) -> CacheStatistics:
        """Counts and time so far, of this object."""
        return self._statistics

    def get(self, key: str, build: Callable[[], CodeImage]) -> CodeImage:
        """The kernel named ``key``: from memory, from disk, or else what ``build`` makes.

        Threads and processes that ask for the same key at once wait for the one that builds it. What ``build``
        raises is raised here, and nothing is kept.
        """
        with self._guard:
            turn = self._turns.setdefault(key, threading.Lock())
        with turn:
            image = self._images.get(key) or self._read(key)
            if image is None:
                return self._build_in_turn(key, build)
            self._keep(key, image, hits=1)
            return image

    def get_many(self, requests: Sequence[tuple[str, Callable[[], CodeImage]]], threads: int) -> list[CodeImage]:
        """:meth:`get` for every request, in order; ``threads`` threads compile what is missing."""
        missing = {key: build for key, build in requests if key not in self._images and not self._is_stored(key)}
        if len(missing) < 2 or threads < 2:
            return [self.get(key, build) for key, build in requests]
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(min(threads, len(missing))) as pool:
            built = dict(zip(missing, pool.map(self.get, missing, missing.values())))
        return [built[key] if key in built else self.get(key, build) for key, build in requests]

    def _build_in_turn(self, key: str, build: Callable[[], CodeImage]) -> CodeImage:
        """Build and store a kernel, unless another process has done so while this one waited for it."""
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
        image = build()
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
        """The entry on disk; None, with a line in the log, where it is damaged."""
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


def _name(key: str) -> str:
    """Of a kernel's entry."""
    return hashlib.sha256(_full_key(key)).hexdigest()


def _pack(image: CodeImage, full_key: bytes) -> bytes:
    content = full_key + image.to_bytes()
    return _HEADER.pack(_MAGIC, len(full_key), hashlib.sha256(content).digest()) + content


def _unpack(entry: bytes, full_key: bytes) -> CodeImage:
    """The image in an entry.

    Raises:
        CodeImageError: the entry is not whole, or is another kernel's.
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
    """What changes the code of a kernel besides its key: llvmlite and the sources of this package."""
    # Found, not imported: stored kernels run without it. Its metadata's folder has the version in its name.
    llvmlite = find_spec("llvmlite")
    folder = Path(llvmlite.origin).parents[1] if llvmlite is not None and llvmlite.origin else None
    versions = sorted(path.name for path in folder.glob("llvmlite-*")) if folder else ["no llvmlite"]
    return f"{', '.join(versions)}, lite_cpu {sources_version()}"
