"""Pausing Python's cyclic garbage collector while long-lived objects are built."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from lite_core.forking import undivided

__all__ = ["collector_paused"]


@contextmanager
def collector_paused(*, for_life: bool = False) -> Iterator[None]:
    """Pause the garbage collector while long-lived objects are built: imports, models, plans.

    Its repeated scans took a tenth of the measured time from process start to first result. A fork in another thread
    waits for the end, because the collector of the child would stay paused.

    Args:
        for_life: the objects live as long as the process, as modules do. At the end they count as old, so that only a
            full collection scans them: the next collection of young objects would begin at once, with all of these.
            Each time the collector begins to count anew, so that work that is repeated would keep it from collecting.
    """
    with undivided():
        was_enabled = gc.isenabled()
        gc.disable()
        try:
            yield
        finally:
            if was_enabled:
                # What the program itself has frozen stays frozen. CPython 3.12 freezes 375 objects when it starts.
                if for_life and gc.get_freeze_count() < 1000:
                    gc.freeze()
                    gc.unfreeze()  # moves all objects to the oldest generation
                gc.enable()
