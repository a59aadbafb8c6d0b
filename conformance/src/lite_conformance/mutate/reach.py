"""The lines of the references that a computation executes, so that a mutant is tried only on cases that reach it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

from lite_conformance.mutate.mutant import Lines
from lite_core import ops

__all__ = ["is_reached", "traced"]

Result = TypeVar("Result")

_FOLDER = str(Path(str(ops.__file__)).parent)


def traced(compute: Callable[[], Result], files: frozenset[str]) -> tuple[Result, frozenset[tuple[str, int]]]:
    """Return the result of a function, and the lines that it executes in some files and in the operators' modules."""
    lines: set[tuple[str, int]] = set()

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        file = frame.f_code.co_filename
        if not file.startswith(_FOLDER) and file not in files:
            return None

        def trace_lines(frame: FrameType, event: str, argument: Any) -> Any:
            lines.add((file, frame.f_lineno))
            return trace_lines

        lines.add((file, frame.f_lineno))
        return trace_lines

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        result = compute()
    finally:
        sys.settrace(before)
    return result, frozenset(lines)


def is_reached(lines: Lines, executed: frozenset[tuple[str, int]]) -> bool:
    """Return True if any of the lines is among those that a computation executed."""
    file, first, last = lines
    return any((file, line) in executed for line in range(first, last + 1))
