"""Sessions of ONNX Runtime that are opened again in a forked child, which has a copy of them without their threads."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from typing import Any
from weakref import WeakSet

from lite_core.forking import new_lock, undivided

__all__ = ["ForkableSession", "import_onnxruntime"]


def import_onnxruntime() -> Any:
    """Import ONNX Runtime without the thread that sends statistics of use; a setting of the user is left as it is.

    A forked child that ends by ``sys.exit`` would wait for this thread, or be aborted.
    """
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    import onnxruntime

    return onnxruntime


class ForkableSession:
    """An ONNX Runtime session; a child opens its own when it first needs it.

    Args:
        open: opens the session; it is called again in each child that needs one.
    """

    def __init__(self, open: Callable[[], Any]) -> None:
        self._open = open
        self._lock = new_lock()
        self._session = open()
        _every_session.add(self)

    def get(self) -> Any:
        """Return the session of this process."""
        if self._session is None:
            with undivided(), self._lock:
                self._session = self._session or self._open()
        return self._session

    def drop(self) -> None:
        """Drop a session that belongs to the parent of this process."""
        # NOTE: its destructor would wait for its threads, so it must never run, not even at the end of the process.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._session))
        self._session = None


_every_session: WeakSet[ForkableSession] = WeakSet()


def _drop_all() -> None:
    for session in list(_every_session):
        session.drop()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_drop_all)
