"""The tuning in use on this machine: measured and stored, or else what is known of the processor's family.

A measurement is stored as JSON in the folder ``tuning`` of the cache, by the processor, the level of its kernels and
the version of Lite. A file that is damaged, or of another processor, is logged and not used. Only :func:`measure`
measures.
"""

from __future__ import annotations

import json
import logging
import zlib
from pathlib import Path
from typing import Any

from lite_compiler.disk_cache import DiskCache
from lite_core.errors import LiteError
from lite_core.forking import new_lock, undivided
from lite_core.storage import cache_folder
from lite_core.version import __version__
from lite_cpu.machine import Machine
from lite_cpu.tuning import Tuning, tuning_of_json, tuning_to_json
from lite_x86 import detect

__all__ = ["forget", "in_use", "known", "measure", "measured", "path", "read", "write"]

logger = logging.getLogger("lite.x86.tuning")

_lock = new_lock()
#: The tunings in use, by the machine, its processor, and the folder that was searched.
_in_use: dict[tuple[Machine, detect.Identity, Path | None], Tuning] = {}


def known(machine: Machine) -> Tuning:
    """Return what is known of this processor's family."""
    # Imported late: with a stored measurement it is not needed.
    from lite_x86.families import family_tuning

    processor = detect.this_processor()
    return family_tuning(processor.identity, processor.features, machine)


def in_use(machine: Machine) -> Tuning:
    """Return the measured tuning if there is one, else what is known; it is read once.

    Args:
        machine: this processor without a tuning, as :func:`lite_x86.detect.this_machine` returns it.
    """
    key = _key(machine)
    with _lock:
        if key not in _in_use:
            _in_use[key] = read(machine) or known(machine)
        return _in_use[key]


def measured(machine: Machine) -> Tuning:
    """Return the measured tuning; measure it if it is missing. If that fails, log it and return what is known."""
    with undivided(), _lock:
        tuning = in_use(machine)
        if not tuning.is_measured:
            try:
                return measure(machine)
            except (LiteError, MemoryError, OSError) as error:
                logger.warning("this machine is not measured, its tuning is %s: %s", tuning.source, error)
        return tuning


def measure(machine: Machine) -> Tuning:
    """Measure the tuning, store it and use it; takes one to two seconds."""
    # Imported late: it needs the compiler, and most processes do not measure.
    from lite_core.processors import useful_threads
    from lite_cpu.measuring.measure import measure_tuning

    with undivided(), _lock:
        caches = detect.this_processor().cache_bytes
        tuning = measure_tuning(machine.with_tuning(known(machine)), caches, useful_threads())
        write(machine, tuning)
        _in_use[_key(machine)] = tuning
        return tuning


def forget(machine: Machine) -> bool:
    """Remove the measured tuning, and use what is known; return True if there was one.

    Raises:
        OSError: the file cannot be removed.
    """
    with _lock:
        _in_use.pop(_key(machine), None)
        file = path(machine)
        existed = file is not None and file.exists()
        if file is not None:
            file.unlink(missing_ok=True)
        return existed


def path(machine: Machine) -> Path | None:
    """Return the file of the measured tuning, which need not exist; None if the cache is off."""
    files = _files()
    return None if files.folder is None else files.path(_name(machine))


def read(machine: Machine, files: DiskCache | None = None) -> Tuning | None:
    """Return the stored tuning; None if there is none or, with a warning, if it cannot be used.

    Args:
        machine: this processor.
        files: the folder of tunings; by default that of the cache.
    """
    files = files or _files()
    content = files.read(_name(machine))
    if content is None:
        return None
    try:
        stored = json.loads(content)
        if not isinstance(stored, dict) or stored.get("measured") != _subject(machine):
            raise ValueError(f"it is not of {_subject(machine)}")
        return tuning_of_json(stored.get("tuning"))
    except (ValueError, OverflowError, RecursionError) as error:
        logger.warning("the tuning %s is not used: %s; `lite tune` measures it", files.path(_name(machine)), error)
        return None


def write(machine: Machine, tuning: Tuning, files: DiskCache | None = None) -> None:
    """Store a tuning; a failure is logged, and this process uses the tuning all the same.

    Args:
        machine: this processor.
        tuning: what was measured.
        files: the folder of tunings; by default that of the cache.
    """
    text = json.dumps({"measured": _subject(machine), "tuning": tuning_to_json(tuning)}, indent=2)
    (files or _files()).write(_name(machine), text.encode())


def _subject(machine: Machine) -> dict[str, Any]:
    """Return what a measurement depends on: the processor, the level of the kernels, the version of Lite."""
    processor = detect.this_processor()
    return {
        "lite": __version__,
        "level": machine.name,
        "processor": processor.model,
        "identity": [*processor.identity],
        "caches": processor.caches,
    }


def _key(machine: Machine) -> tuple[Machine, detect.Identity, Path | None]:
    return machine, detect.this_processor().identity, cache_folder("tuning")


def _files() -> DiskCache:
    return DiskCache(cache_folder("tuning"), ".json", logger)


def _name(machine: Machine) -> str:
    return f"{machine.name}-{zlib.crc32(json.dumps(_subject(machine)).encode()):08x}"
