"""The stream of a command's result, which what plugins print cannot get into."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import TextIO

__all__ = ["only_results", "prints_kept_out", "result_stream"]

_reserved: list[TextIO | None] = []


def result_stream() -> TextIO | None:
    """Return the stream to print a command's result on: standard output; None if the parent process has closed it."""
    return _reserved[-1] if _reserved else sys.stdout


@contextmanager
def only_results() -> Iterator[None]:
    """Reserve standard output for :func:`result_stream`; what else prints there prints to standard error.

    A plugin may print when it is imported, or while it runs a model. Text that native code prints is not redirected.
    """
    _reserved.append(sys.stdout)
    try:
        with prints_kept_out():
            yield
    finally:
        _reserved.pop()


@contextmanager
def prints_kept_out() -> Iterator[None]:
    """Redirect what Python code prints to standard error."""
    with redirect_stdout(sys.stderr):
        yield
