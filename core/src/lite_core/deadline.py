"""The time limit of a run, which the steps of a plan and each iteration of a loop test.

The limit belongs to the thread that runs a session. Whatever runs there can test it, such as an executable that
contains an endless loop of another runtime.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from lite_core.checks import require
from lite_core.errors import RunTimeoutError

__all__ = ["check_time", "run_in_thread", "run_within"]

#: The moment at which the run of this thread must end, and the seconds that it was given.
_limit: ContextVar[tuple[float, float]] = ContextVar("lite_time_limit", default=(float("inf"), 0))
#: Not empty if the caller of the run no longer waits for it.
_cancelled: ContextVar[list[bool]] = ContextVar("lite_cancelled", default=[])  # noqa: B039 - never changed


def run_within(seconds: float, run: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Call a function, in which :func:`check_time` raises an error after some seconds, or earlier by an outer limit.

    Raises:
        InputError: ``seconds`` is not a positive number.
        RunTimeoutError: the function tested the time when it was over.
    """
    is_number = isinstance(seconds, (int, float)) and not isinstance(seconds, bool)
    require(is_number and seconds > 0, "timeout", "a positive number of seconds", seconds)
    before = _limit.set(min(_limit.get(), (time.monotonic() + min(seconds, 1e9), seconds)))
    try:
        return run()
    finally:
        _limit.reset(before)


async def run_in_thread(run: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Call a function in a thread, with the context of the caller, while the event loop goes on.

    If the caller is cancelled, :func:`check_time` raises an error in the function, and the caller is resumed with the
    ``CancelledError`` when the function has ended.
    """
    import asyncio  # not at the top: few programs need it

    cancelled: list[bool] = []
    before = _cancelled.set(cancelled)
    running = asyncio.create_task(asyncio.to_thread(run))  # with a copy of this context
    _cancelled.reset(before)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        cancelled.append(True)
        await asyncio.wait([running])
        raise


def check_time(describe: Callable[..., str], *arguments: object) -> None:
    """Raise an error if the time of this thread's run is over.

    Args:
        describe: returns the place in the run, for the message.
        arguments: passed to ``describe``.

    Raises:
        RunTimeoutError: the time is over, or the caller was cancelled.
    """
    if _cancelled.get():
        raise RunTimeoutError(f"cancelled at {describe(*arguments)}")
    end, seconds = _limit.get()
    if time.monotonic() >= end:
        raise RunTimeoutError(f"stopped after the {seconds:g} seconds of its timeout, at {describe(*arguments)}")
