"""Pausing Python's cyclic garbage collector while long-lived objects are built."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from lite_core.forking import undivided

__all__ = ["collector_paused"]


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pause the garbage collector while long-lived objects are built: imports, models, plans.

    Its repeated scans took a tenth of the measured time from process start to first result. A fork in another thread
    waits for the end, because the collector of the child would stay paused.
    """
    with undivided():
        was_enabled = gc.isenabled()
        gc.disable()
        try:
            yield
        finally:
            if was_enabled:
                gc.enable()
