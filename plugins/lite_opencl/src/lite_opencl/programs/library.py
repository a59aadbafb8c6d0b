"""Compiled programs of one device: from the cache, from a model file, or built from source.

A driver may finish compiling a program only at the first launch of its kernel: PoCL compiles for the size of the work
group then, which takes longer than all earlier phases. A program that was built from source is therefore written to
the cache only after it has run; see :meth:`ProgramLibrary.store`.
"""

from __future__ import annotations

import hashlib
import linecache
import logging
import os
import time
import warnings
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import pyopencl as cl

from lite_core.forking import new_lock
from lite_core.log import tracked
from lite_opencl.device.devices import FoundDevice
from lite_opencl.device.errors import opencl_call, status_name
from lite_opencl.programs.binary_cache import BinaryCache, cache_folder
from lite_opencl.programs.kernel_source import KernelSource

__all__ = ["BUILD_OPTIONS", "CacheStatistics", "Loaded", "ProgramLibrary"]

logger = logging.getLogger("lite.opencl.cache")

#: The value that disables pyopencl's own cache; its annotation does not allow it.
_NO_CACHE: Any = False

#: Multiplication and addition may be fused, which is no less exact; no other fast-math option. Part of every key.
BUILD_OPTIONS: tuple[str, ...] = ("-cl-mad-enable",)

#: Environment variables that change the code PoCL generates from a source. Those that are set are part of every key.
_COMPILER_VARIABLES = ("POCL_EXTRA_BUILD_FLAGS", "POCL_WORK_GROUP_METHOD", "POCL_WORK_GROUP_SPECIALIZATION")

#: Mark in the key of a program from a model file, before the checksum of its binary.
_OF_FILE = " of file "

#: The largest number of concurrent builds. PoCL and some drivers hold a lock while they build, and gain nothing.
_MAX_BUILDERS = 8


@dataclass(frozen=True, slots=True)
class CacheStatistics:
    """Counters of a library.

    Attributes:
        hits: programs found on disk or in a model file.
        misses: programs built from source.
        rebuilt: misses whose entry was damaged or was refused by the driver.
        build_seconds: time spent building from source, summed over all threads.
    """

    hits: int = 0
    misses: int = 0
    rebuilt: int = 0
    build_seconds: float = 0.0

    def __str__(self) -> str:
        return (
            f"{self.hits} found, {self.misses} built in {self.build_seconds:.2f} s, "
            f"{self.rebuilt} of them because the cached binary was damaged or refused"
        )


class Loaded(NamedTuple):
    """The result of :meth:`ProgramLibrary.load`.

    Attributes:
        in_memory: number of programs that were already loaded.
        found: number of programs loaded from disk.
        built: number of programs built from source.
        seconds: total time.
        unfinished: keys of programs that are not on disk yet.
    """

    in_memory: int
    found: int
    built: int
    seconds: float
    unfinished: list[str]

    def __str__(self) -> str:
        listed = ((self.in_memory, "in memory"), (self.found, "from the cache"), (self.built, "built"))
        counts = ", ".join(f"{count} {where}" for count, where in listed if count)
        return f"programs: {counts or 'none'}, {1e3 * self.seconds:.0f} ms"


class _Entry:
    """A program that is ready, or that one thread is about to load or build."""

    def __init__(self) -> None:
        self.lock = new_lock()
        self.program: cl.Program | None = None
        self.is_cached = False


class ProgramLibrary:
    """Programs of one device by their keys. Thread-safe.

    Args:
        context: the OpenCL context with this one device.
        found: the device; its identity is part of every key.
        folder: the folder of cached binaries, one file each; :func:`cache_folder` by default.
    """

    def __init__(self, context: cl.Context, found: FoundDevice, folder: Path | None = None) -> None:
        self._context = context
        self._found = found
        self.cache = BinaryCache(folder or cache_folder())
        self._compiler_settings = [f"{n}={os.environ[n]}" for n in _COMPILER_VARIABLES if n in os.environ]
        self._lock = new_lock()
        self._entries: dict[str, _Entry] = {}
        self._keys: dict[str, str] = {}
        self.statistics = CacheStatistics()
        # Some compilers print "Done." for every program. NOTE: warnings.catch_warnings() around each build would change
        # and restore the filters of the whole process, while several threads build programs.
        warnings.filterwarnings("ignore", category=cl.CompilerWarning)

    def key(self, source: KernelSource) -> str:
        """Return the key of a program: a checksum of everything that it depends on."""
        # NOTE: sources that compare equal may differ in text, as 0.0 and -0.0 do, so their repr is looked up.
        representation = repr(source)
        key = self._keys.get(representation)
        if key is None:
            text = "\0".join((source.text(), *BUILD_OPTIONS, *self._compiler_settings, self._found.identity))
            key = self._keys[representation] = hashlib.sha256(text.encode()).hexdigest()
        return key

    def load(self, sources: Iterable[KernelSource]) -> Loaded:
        """Load or build the programs of some sources.

        Raises:
            OpenClError: the driver refuses a source; the message contains the build log.
        """
        start = time.perf_counter()
        wanted = {self.key(source): source for source in sources}
        in_memory = [key for key in wanted if self._entry(key).program is not None]
        missing = [item for item in wanted.items() if not self._find(*item)]
        if len(missing) > 1:
            with ThreadPoolExecutor(min(len(missing), os.cpu_count() or 1, _MAX_BUILDERS)) as pool:
                built = pool.map(lambda item: self._build(*item), missing)
                list(zip(tracked(missing, "building programs"), built))
        else:
            for key, source in missing:
                self._build(key, source)
        unfinished = [key for key in wanted if not self._entries[key].is_cached]
        found = len(wanted) - len(in_memory) - len(missing)
        return Loaded(len(in_memory), found, len(missing), time.perf_counter() - start, unfinished)

    def restore(self, key: str, binary: bytes) -> str | None:
        """Load a program from a binary that a model file brings, and return its key; None if the driver refuses it.

        The key contains a checksum of the binary: the program serves files with this binary only, and neither models
        that are compiled here nor the cache on disk.
        """
        own = f"{key.partition(_OF_FILE)[0]}{_OF_FILE}{hashlib.sha256(binary).hexdigest()}"
        entry = self._entry(own)
        with entry.lock:
            if entry.program is None:
                entry.program = self._from_binary(key, binary)
                entry.is_cached = True
            return own if entry.program is not None else None

    def kernel(self, key: str, name: str) -> cl.Kernel:
        """Return a new kernel object of a loaded program."""
        with opencl_call(self._found.name, f"making kernel {name!r}"):
            kernel = cl.Kernel(self._ready(key), name)
        _forget_generated_text()
        return kernel

    def binary(self, key: str) -> bytes:
        """Return the binary of a program.

        NOTE: PoCL creates it at the first query, from the kernels that have run until then, and never updates it.
        """
        entry = self._entries[key]
        with entry.lock, opencl_call(self._found.name, "reading the binary of a program"):
            return _binary_of(self._ready(key))

    def store(self, keys: Sequence[str]) -> None:
        """Write programs to disk once. Their kernels have run, so drivers have finished compiling them.

        NOTE: a background thread would not help: PoCL compiles again to create a binary, and launches wait for that.
        """
        for key in tracked(keys, "storing programs"):
            entry = self._entry(key)
            with entry.lock:
                if not entry.is_cached and self.cache.folder is not None:
                    try:
                        self.cache.write(key, _binary_of(self._ready(key)))
                    except cl.Error as error:
                        logger.warning("%s is not cached: the driver returns no binary: CL_%s", key, status_name(error))
                entry.is_cached = True

    def _entry(self, key: str) -> _Entry:
        with self._lock:
            return self._entries.setdefault(key, _Entry())

    def _ready(self, key: str) -> cl.Program:
        program = self._entries[key].program
        assert program is not None
        return program

    def _find(self, key: str, source: KernelSource) -> bool:
        """Return True if a program is in memory or was loaded from the cache, without building from source."""
        entry = self._entry(key)
        if entry.program is not None:  # without waiting for a thread that holds the lock to write it to disk
            return True
        with entry.lock:
            if entry.program is None:
                binary, was_damaged = self.cache.read(key)
                if binary is not None:
                    entry.program = self._from_binary(source.name, binary)
                    entry.is_cached = entry.program is not None
                if was_damaged:
                    self._count(rebuilt=1)
            return entry.program is not None

    def _from_binary(self, name: str, binary: bytes) -> cl.Program | None:
        """Return the program of a binary; None, with a line in the log, if the driver refuses it."""
        try:
            program: cl.Program = cl.Program(self._context, [self._found.device], [binary]).build()
        except cl.Error as error:
            logger.warning(
                "%s is built again, since the driver refuses its binary with CL_%s", name, status_name(error)
            )
            self._count(rebuilt=1)
            return None
        self._count(hits=1)
        return program

    def _build(self, key: str, source: KernelSource) -> None:
        entry = self._entry(key)
        with entry.lock:
            if entry.program is not None:
                return
            start = time.perf_counter()
            with opencl_call(self._found.name, f"building kernel {source.name!r}"):
                program: cl.Program = cl.Program(self._context, source.text()).build(
                    list(BUILD_OPTIONS), cache_dir=_NO_CACHE
                )
            entry.program = program
            seconds = time.perf_counter() - start
            logger.debug("built %s in %.1f ms", source.name, 1e3 * seconds)
            self._count(misses=1, build_seconds=seconds)

    def _count(self, hits: int = 0, misses: int = 0, rebuilt: int = 0, build_seconds: float = 0.0) -> None:
        with self._lock:
            s = self.statistics
            self.statistics = replace(
                s,
                hits=s.hits + hits,
                misses=s.misses + misses,
                rebuilt=s.rebuilt + rebuilt,
                build_seconds=s.build_seconds + build_seconds,
            )


def _forget_generated_text() -> None:
    """Drop the text of functions that pyopencl generates for each kernel object, and would keep for ever."""
    for name in [*linecache.cache]:
        if name.startswith("<generated: 'pyopencl invoker"):
            linecache.cache.pop(name, None)


def _binary_of(program: cl.Program) -> bytes:
    """Return the binary of a program for its one device."""
    binaries: Any = program.get_info(cl.program_info.BINARIES)
    return bytes(binaries[0])
