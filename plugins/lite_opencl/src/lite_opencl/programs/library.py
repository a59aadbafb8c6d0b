"""Compiled programs of one device: from the cache, from a model file, or built from source.

A driver may finish a program only when one of its kernels is first launched: PoCL compiles for the size of the work
group then, which takes longer than all before. So a program that was built from source is not kept until it has run;
see :meth:`ProgramLibrary.keep`.
"""

from __future__ import annotations

import hashlib
import logging
import os
import threading
import time
import warnings
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import pyopencl as cl

from lite_opencl.device.devices import FoundDevice
from lite_opencl.device.errors import opencl_call, status_name
from lite_opencl.programs.binary_cache import BinaryCache, cache_folder
from lite_opencl.programs.kernel_source import KernelSource

__all__ = ["BUILD_OPTIONS", "CacheStatistics", "Loaded", "ProgramLibrary"]

logger = logging.getLogger("lite.opencl.cache")

#: What pyopencl takes for "no cache of its own"; its annotation says otherwise.
_NO_CACHE: Any = False

#: A product and a sum may be fused, which is no less exact; no other fast-math option. They are part of every key.
BUILD_OPTIONS: tuple[str, ...] = ("-cl-mad-enable",)

#: What changes the code that PoCL makes of the same source, from outside. Those that are set are part of every key.
_COMPILER_VARIABLES = ("POCL_EXTRA_BUILD_FLAGS", "POCL_WORK_GROUP_METHOD", "POCL_WORK_GROUP_SPECIALIZATION")

#: Programs that are built at the same time. PoCL and some drivers have a lock of their own, and gain nothing.
_MOST_BUILDERS = 8


@dataclass(frozen=True, slots=True)
class CacheStatistics:
    """What a library has done so far.

    Attributes:
        hits: programs found on disk or in a model file.
        misses: programs built from source.
        rebuilt: those of the misses whose entry was damaged, or refused by the driver.
        build_seconds: time spent building from source, all threads together.
    """

    hits: int = 0
    misses: int = 0
    rebuilt: int = 0
    build_seconds: float = 0.0

    def __str__(self) -> str:
        return (
            f"{self.hits} found, {self.misses} built in {self.build_seconds:.2f} s, "
            f"{self.rebuilt} of them because what was kept was damaged or refused"
        )


class Loaded(NamedTuple):
    """What it took to make programs ready.

    Attributes:
        in_memory: programs that were there.
        found: those that were kept on disk.
        built: those that were built from source.
        seconds: that all of it took.
        unfinished: keys of those that are not kept on disk yet.
    """

    in_memory: int
    found: int
    built: int
    seconds: float
    unfinished: list[str]

    def __str__(self) -> str:
        listed = ((self.in_memory, "in memory"), (self.found, "from the cache"), (self.built, "built"))
        said = ", ".join(f"{count} {where}" for count, where in listed if count)
        return f"programs: {said or 'none'}, {1e3 * self.seconds:.0f} ms"


class _Entry:
    """A program that is there, or that one thread is about to make."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.program: cl.Program | None = None
        self.is_kept = False


class ProgramLibrary:
    """Programs of one device by their keys. May be used by many threads at once.

    Args:
        context: of OpenCL, with the one device.
        found: the device; its identity is part of every key.
        folder: where binaries are kept, one file each; that of :func:`cache_folder` when left out.
    """

    def __init__(self, context: cl.Context, found: FoundDevice, folder: Path | None = None) -> None:
        self._context = context
        self._found = found
        self.cache = BinaryCache(folder or cache_folder())
        self._compiler_settings = [f"{n}={os.environ[n]}" for n in _COMPILER_VARIABLES if n in os.environ]
        self._lock = threading.Lock()
        self._entries: dict[str, _Entry] = {}
        self._keys: dict[str, str] = {}
        self.statistics = CacheStatistics()
        # Some compilers say "Done." of every program. NOTE: not warnings.catch_warnings() round each build: what it
        # changes and puts back is the whole process's, and programs are built by several threads.
        warnings.filterwarnings("ignore", category=cl.CompilerWarning)

    def key(self, source: KernelSource) -> str:
        """What a program is kept under: a checksum of everything that it depends on."""
        # NOTE: not the source itself: two that compare equal may differ in text, as 0.0 and -0.0 do.
        shown = repr(source)
        key = self._keys.get(shown)
        if key is None:
            text = "\0".join((source.text(), *BUILD_OPTIONS, *self._compiler_settings, self._found.identity))
            key = self._keys[shown] = hashlib.sha256(text.encode()).hexdigest()
        return key

    def load(self, sources: Iterable[KernelSource]) -> Loaded:
        """Make the programs of some sources ready.

        Raises:
            OpenClError: the driver refuses a source; with its log.
        """
        start = time.perf_counter()
        wanted = {self.key(source): source for source in sources}
        there = [key for key in wanted if self._entry(key).program is not None]
        missing = [item for item in wanted.items() if not self._find(*item)]
        if len(missing) > 1:
            with ThreadPoolExecutor(min(len(missing), os.cpu_count() or 1, _MOST_BUILDERS)) as pool:
                list(pool.map(lambda item: self._build(*item), missing))
        else:
            for key, source in missing:
                self._build(key, source)
        unfinished = [key for key in wanted if not self._entries[key].is_kept]
        found = len(wanted) - len(there) - len(missing)
        return Loaded(len(there), found, len(missing), time.perf_counter() - start, unfinished)

    def restore(self, key: str, binary: bytes) -> bool:
        """Make a program ready from a binary that was saved with a model; False where the driver refuses it."""
        entry = self._entry(key)
        with entry.lock:
            if entry.program is None:
                entry.program = self._from_binary(key, binary)
                entry.is_kept = True
            return entry.program is not None

    def kernel(self, key: str, name: str) -> cl.Kernel:
        """A kernel object of the caller's own, of a program that is ready."""
        with opencl_call(self._found.name, f"making kernel {name!r}"):
            return cl.Kernel(self._ready(key), name)

    def binary(self, key: str) -> bytes:
        """The compiled program.

        NOTE: PoCL makes it when it is first asked for, of the kernels that have run by then, and never again.
        """
        entry = self._entries[key]
        with entry.lock:
            return _binary_of(self._ready(key))

    def keep(self, keys: Sequence[str]) -> None:
        """Write programs to disk, once: their kernels have run, so drivers have finished compiling them.

        NOTE: not by a thread: PoCL compiles once more to make a binary, and launches would wait for it.
        """
        for key in keys:
            entry = self._entry(key)
            with entry.lock:
                if not entry.is_kept and self.cache.folder is not None:
                    try:
                        self.cache.write(key, _binary_of(self._ready(key)))
                    except cl.Error as error:
                        logger.warning("%s is not kept: the driver gives no binary: CL_%s", key, status_name(error))
                entry.is_kept = True

    def _entry(self, key: str) -> _Entry:
        with self._lock:
            return self._entries.setdefault(key, _Entry())

    def _ready(self, key: str) -> cl.Program:
        program = self._entries[key].program
        assert program is not None
        return program

    def _find(self, key: str, source: KernelSource) -> bool:
        """Whether a program is there, or can be had without building it from source."""
        entry = self._entry(key)
        if entry.program is not None:  # and its lock may be with who writes it
            return True
        with entry.lock:
            if entry.program is None:
                binary, was_damaged = self.cache.read(key)
                if binary is not None:
                    entry.program = self._from_binary(source.name, binary)
                    entry.is_kept = entry.program is not None
                if was_damaged:
                    self._count(rebuilt=1)
            return entry.program is not None

    def _from_binary(self, name: str, binary: bytes) -> cl.Program | None:
        """None, with a line in the log, where the driver refuses it."""
        try:
            program: cl.Program = cl.Program(self._context, [self._found.device], [binary]).build()
        except cl.Error as error:
            logger.warning("%s is built again: the driver refuses its binary with CL_%s", name, status_name(error))
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


def _binary_of(program: cl.Program) -> bytes:
    """The compiled program for its one device."""
    binaries: Any = program.get_info(cl.program_info.BINARIES)
    return bytes(binaries[0])
