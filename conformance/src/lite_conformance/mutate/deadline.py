"""A time limit for mutants, which may loop without end."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["TimeUp", "time_limit"]


class TimeUp(BaseException):
    """The time is up. No handler of ordinary errors catches it."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise TimeUp in the main thread if the statements inside take longer."""

    def ring(number: int, frame: Any) -> None:
        raise TimeUp

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
