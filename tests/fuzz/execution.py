"""One execution of a target, with limits of time and memory, and the verdict on it."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import resource
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import FrameType, TracebackType
from typing import NamedTuple

from fuzz.targets import FuzzTarget

__all__ = ["HANG_SECONDS", "Execution", "Finding", "can_measure_memory", "execute", "limit_process"]

#: An execution takes milliseconds; one that takes this long counts as a hang.
HANG_SECONDS = 10.0

#: Limit of the memory that one execution may add for each byte of the input, beside the target's own limit.
_MOST_PER_BYTE = 64

#: Address space that executions may add, so that a request for terabytes fails at once.
_ADDRESS_SPACE = 2 << 30

_SOURCES = re.compile(r"/(lite_\w+/.*)\.py$")


class Finding(NamedTuple):
    """A violation of the rules.

    Attributes:
        kind: ``crash`` for an exception that is not allowed, ``hang``, ``memory``, or ``death`` of the process.
        key: a text that is equal for findings with probably the same cause.
        detail: the traceback or another explanation.
    """

    kind: str
    key: str
    detail: str


class Execution(NamedTuple):
    """The outcome of an execution.

    Attributes:
        outcome: the result in words, without numbers: equal for executions that ended alike.
        finding: the violation, or None.
        growth: bytes of memory that the execution added at its peak.
        seconds: its duration.
    """

    outcome: str
    finding: Finding | None
    growth: int
    seconds: float


class _HangsError(BaseException):
    """An execution takes too long. It is not an Exception, so that no handler takes it for an error of an input."""


def limit_process() -> None:
    """Limit the memory of this process and silence its log, before the first execution."""
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    used = _status("VmSize")
    if used:
        resource.setrlimit(resource.RLIMIT_AS, (used + _ADDRESS_SPACE, resource.getrlimit(resource.RLIMIT_AS)[1]))


def can_measure_memory() -> bool:
    """Return True if the system tells how much memory one execution adds."""
    return _start_measuring() > 0


def execute(target: FuzzTarget, data: bytes, folder: Path) -> Execution:
    """Run a target with an input.

    Args:
        target: a loaded target.
        data: the input.
        folder: a folder for the files of the input.
    """
    before = _start_measuring()
    start = time.monotonic()
    outcome, finding = _outcome(target, data, folder)
    seconds = time.monotonic() - start
    growth = max(_status("VmHWM") - before, 0) if before else 0
    if finding is None and growth > target.most_bytes + _MOST_PER_BYTE * len(data):
        finding = Finding("memory", f"memory: {outcome}"[:200], f"{growth >> 20} MiB for {len(data)} bytes: {outcome}")
    return Execution(outcome, finding, growth, seconds)


def _outcome(target: FuzzTarget, data: bytes, folder: Path) -> tuple[str, Finding | None]:
    try:
        with _time_limit():
            target.run(data, folder)
    except _HangsError as error:
        where = _place(error.__traceback__)
        return "hang", Finding("hang", f"hang in {where}", "".join(traceback.format_exception(error)[-30:]))
    except target.allowed as error:
        # The text of the error is part of the promise: it must be possible to make it.
        text = re.sub(r"[0-9]+", "#", str(error).replace(str(folder), "FOLDER"))
        return f"{type(error).__name__}: {text[:300]}", None
    except Exception as error:
        key = f"{type(error).__name__} in {_place(error.__traceback__)}"
        return key, Finding("crash", key, "".join(traceback.format_exception(error))[-20000:])
    return "result", None


@contextlib.contextmanager
def _time_limit() -> Iterator[None]:
    before = signal.signal(signal.SIGALRM, _end)
    signal.setitimer(signal.ITIMER_REAL, HANG_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _end(number: int, frame: FrameType | None) -> None:
    raise _HangsError(f"more than {HANG_SECONDS:.0f} seconds")


def _place(trace: TracebackType | None) -> str:
    """Return the innermost function of Lite in a traceback."""
    found = "code outside Lite"
    for frame, _ in traceback.walk_tb(trace):
        source = _SOURCES.search(frame.f_code.co_filename)
        if source:
            found = f"{source[1]}:{frame.f_code.co_name}"
    return found


def _start_measuring() -> int:
    """Reset the peak of this process's memory and return its present size; 0 where the system does not allow it."""
    if not sys.platform.startswith("linux"):
        return 0
    try:
        with open("/proc/self/clear_refs", "w") as peak:
            peak.write("5")
        return _status("VmRSS")
    except OSError:
        return 0


def _status(field: str) -> int:
    """Return a field of this process's status in bytes; 0 where there is none."""
    try:
        descriptor = os.open("/proc/self/status", os.O_RDONLY)
    except OSError:
        return 0
    try:
        text = os.read(descriptor, 1 << 14).decode()
    finally:
        os.close(descriptor)
    found = re.search(rf"{field}:\s+(\d+) kB", text)
    return int(found[1]) << 10 if found else 0
