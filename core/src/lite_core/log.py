"""Logging: one logger per area below ``lite``, enabled by environment variables.

``LITE_LOG=debug`` (or info, warning, error) sets the level, and Paddle-Lite's ``GLOG_v=N`` sets it too: 0 is info, 1 or
more is debug. ``LITE_TRACE_PLUGINS=1`` logs every step of finding, loading and querying plugins, at any level.

At the level debug each kernel is logged before it runs, and Python's faulthandler is enabled: if native code ends the
process, the last line of the log names the kernel, and Python's stack follows.

Work that may take longer than a second reports its steps to the logger ``lite.progress``, see :func:`tracked`.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Iterator
from contextlib import suppress
from types import SimpleNamespace
from typing import TypeVar

__all__ = ["configure_from_environment", "tracked"]

_T = TypeVar("_T")

_progress = logging.getLogger("lite.progress")
_progress.propagate = False  # its records are for displays; the log has lines of its own

_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


def _level() -> int | None:
    if named := os.environ.get("LITE_LOG", "").lower():
        return _LEVELS.get(named, logging.DEBUG)
    verbosity = os.environ.get("GLOG_v", "")
    if verbosity.isdigit():
        return logging.DEBUG if int(verbosity) else logging.INFO
    return None


def configure_from_environment() -> None:
    """Send Lite's log to standard error at the level that the environment sets; otherwise leave logging unchanged."""
    level = _level()
    trace_plugins = os.environ.get("LITE_TRACE_PLUGINS") == "1"
    root = logging.getLogger("lite")
    if (level is None and not trace_plugins) or root.handlers:
        return
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(levelname).1s %(relativeCreated)7.0f ms %(name)s: %(message)s"))
    root.addHandler(handler)
    root.setLevel(logging.WARNING if level is None else level)
    root.propagate = False
    if level == logging.DEBUG:
        import faulthandler  # not at the top: few programs need it

        with suppress(RuntimeError, ValueError, AttributeError, OSError):  # no standard error, or it is no file
            faulthandler.enable()
    if trace_plugins:
        logging.getLogger("lite.plugins").setLevel(logging.DEBUG)


def tracked(items: Collection[_T], what: str) -> Iterator[_T]:
    """Yield items, and report them as the steps of work that may take longer than a second.

    Each step is a record of the logger ``lite.progress`` at the level debug. Its attribute ``work`` has the fields
    ``what``, ``done``, ``total`` and ``is_over``, and is the same object in all records of one piece of work. Nothing
    is printed: the command ``lite``, and ``lite_tools.commands.shown_progress`` in programs, show what is being done.

    Args:
        items: the steps, or what they are about.
        what: what is being done, such as "compiling kernels".
    """
    work = SimpleNamespace(what=what, done=0, total=len(items), is_over=False)
    try:
        for work.done, item in enumerate(items):
            _progress.debug("%s: %d of %d done", what, work.done, work.total, extra={"work": work})
            yield item
    finally:
        work.is_over = True
        _progress.debug("%s: over", what, extra={"work": work})
