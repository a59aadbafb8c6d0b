"""The rule that OpenCL's drivers serve the process that used them first, and none that it forks afterwards.

A forked child has neither the threads nor the connections of a driver, and drivers do not notice: most calls would wait
for ever, also for new contexts and queues.
"""

from __future__ import annotations

import os

from lite_core.backend import Unavailable

__all__ = ["about_to_use_drivers", "lost_drivers"]

_LOST = Unavailable(
    "this process was forked from one that had used OpenCL before, and drivers do not work in such a process",
    "start it with `multiprocessing.get_context('spawn')`, or fork before the first model is loaded",
)

_are_used = _are_lost = False


def about_to_use_drivers() -> None:
    """Record that this process uses drivers."""
    global _are_used
    _are_used = True


def lost_drivers() -> Unavailable | None:
    """Return the reason and the remedy if drivers were used before this process was forked, else None."""
    return _LOST if _are_lost else None


def _look_back() -> None:
    global _are_lost
    _are_lost = _are_used


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_look_back)
