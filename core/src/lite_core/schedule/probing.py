"""Asking backends for their devices, with marks on disk that find backends which end the process that asks them.

While a backend is asked, a line in a locked file marks the question. If the process ends before the answer, the line
stays and the lock is released: the driver ended the process, or something else did at that moment. Therefore
``backend="auto"`` does not ask this backend for an hour; for longer, if it ends another process after that. An answer
removes the marks of earlier questions. Marks do not count on another machine, or after a restart of the machine.
"""

from __future__ import annotations

import io
import logging
import math
import os
import re
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO, Any

from lite_core.backend import Backend, Device, Unavailable
from lite_core.plugins.contracts import fault_text
from lite_core.private_files import open_private
from lite_core.storage import cache_folder

if sys.platform != "win32":
    import fcntl

__all__ = ["Faulty", "probe"]

logger = logging.getLogger("lite.schedule")

#: How long a backend is not asked: at first, at most, and as a multiple of the time since it first ended a process.
_FIRST_SECONDS, _LONGEST_SECONDS, _GROWTH = 3600.0, 30 * 24 * 3600.0, 10

#: A question that the user interrupts later than this counts like one that ended the process.
_PATIENCE_SECONDS = 20.0


class Faulty(Unavailable):
    """The reason why a backend has no device if the backend itself is at fault: it raised, or its answer is invalid."""

    __slots__ = ()


def probe(backend: Backend, source: str = "", *, automatic: bool = False) -> Sequence[Device] | Unavailable:
    """Return the devices that a backend finds; any failure is reported as Unavailable, so that it is isolated.

    Args:
        backend: the backend.
        source: its distribution and version: questions to backends of installed distributions are marked on disk.
        automatic: do not ask a backend that has ended a process. False if the user has named the backend.
    """
    machine, now = _start_of_machine(), time.time()
    with _marks(backend.name, source) as marks:
        found = marks.read().decode(errors="replace")
        ends = re.findall(rf"^{re.escape(machine)} ([0-9]+[.][0-9]+)$", found, re.MULTILINE) if found else []
        times = [float(end) for end in ends if float(end) <= now] or [0.0]
        again = max(times) + min(max(_FIRST_SECONDS, _GROWTH * (max(times) - min(times))), _LONGEST_SECONDS)
        if automatic and now < again:
            at = time.strftime("%Y-%m-%d %H:%M", time.localtime(again))
            reason = f"a process ended while it asked {source} for devices, so it is not asked before {at}"
            logger.warning("backend %r: %s; `lite backends` tells more", backend.name, reason)
            return Unavailable(reason, f"`lite backends` asks it in a separate process, backend={backend.name!r} here")
        kept: int | None = marks.tell()
        try:
            with suppress(OSError):
                marks.write(f"{machine} {now:.6f}\n".encode())
            answer = _answer(backend, source)
            kept = 0
        except KeyboardInterrupt:
            seconds = time.time() - now
            logger.warning("interrupted after backend %r was asked for devices for %.0f s", backend.name, seconds)
            kept = None if seconds > _PATIENCE_SECONDS else kept
            raise
        finally:
            with suppress(OSError):
                marks.truncate(kept)  # None: at the end
    return answer


def _marks(backend: str, source: str) -> IO[bytes]:
    """Return the file with the marks of a backend, locked; an empty file in memory if there is none.

    There is none if the backend is not installed, the cache is off or not writable, or another process asks at present.
    """
    is_installed = source and not source.endswith(" -")  # a plugin that a program registers has no version
    folder = cache_folder("probing") if is_installed and sys.platform != "win32" else None
    if folder is not None:
        with suppress(OSError), ExitStack() as stack:
            path = folder / "".join(c if c.isalnum() or c in "@.-" else "_" for c in f"{backend}@{source}")
            file = stack.enter_context(open(open_private(path, os.O_RDWR | os.O_CREAT), "r+b", buffering=0))
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            stack.pop_all()  # the caller closes the file, which releases the lock
            return file
    return io.BytesIO()


def _start_of_machine() -> str:
    """Return an id of this start of this machine, which its containers share; a constant where the system has none."""
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return "unknown"


def _answer(backend: Backend, source: str) -> Sequence[Device] | Unavailable:
    try:
        answer: Any = backend.probe()
        if isinstance(answer, Unavailable):
            return answer
        devices = [*answer] if isinstance(answer, Iterable) else []
        wrong = [device for device in devices if not _is_valid(device, backend.name)]
        if isinstance(answer, Iterable) and not wrong and len({device.index for device in devices}) == len(devices):
            return devices or Unavailable("its probe() found no device")
        shown = wrong[0] if wrong else devices or answer
        fault = f"returned {shown!r:.200}, expected Unavailable or a list of Device({backend.name!r}, index=0, ...)"
    except BaseException as error:
        fault = f"failed with {fault_text(error)}"
        logger.debug("backend %r failed in probe()", backend.name, exc_info=True)
    logger.warning("backend %r (%s): its probe() %s", backend.name, source, fault)
    return Faulty(f"its probe() {fault}", "Report it to the authors of the backend")


def _is_valid(device: Any, backend: str) -> bool:
    if not isinstance(device, Device) or device.backend != backend or not isinstance(device.details, Mapping):
        return False
    numbers = device.score + device.flops + device.bandwidth + device.launch_seconds
    return math.isfinite(numbers) and isinstance(device.name, str) and type(device.index) is int and device.index >= 0
