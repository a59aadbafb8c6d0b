"""Ends of the process inside a command, so that the plugin that causes one is named.

``os._exit`` becomes an exception, which isolates the plugin that called it as any other failure does. A crash of native
code cannot be stopped, but Python then prints the stack, which shows whose code it was.
"""

from __future__ import annotations

import faulthandler
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import get_ident

__all__ = ["contained_exits"]


@contextmanager
def contained_exits() -> Iterator[None]:
    """Raise SystemExit where this thread calls ``os._exit``; print the stack at crashes.

    Forked children and other threads end as they asked.
    """
    end, owner = os._exit, (os.getpid(), get_ident())

    def raise_instead(status: int) -> None:
        if (os.getpid(), get_ident()) != owner:
            end(status)
        raise SystemExit(f"it tried to end the process by os._exit({status})")

    if not faulthandler.is_enabled():
        with suppress(AttributeError, OSError, ValueError):  # standard error is closed, or has no descriptor
            faulthandler.enable(sys.stderr, all_threads=False)
    os._exit = raise_instead  # type: ignore[assignment]
    try:
        yield
    finally:
        os._exit = end
