"""Runs of ONNX Runtime that contain loops: Ctrl-C and the time limit of the run end them."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import Any

from lite_core.deadline import check_time
from lite_onnxruntime.forkable import import_onnxruntime

__all__ = ["run_stoppably"]

_FATAL_ERRORS_ONLY = 4
#: Seconds after which Ctrl-C and the time limit are noticed at the latest.
_PATIENCE = 0.05


def run_stoppably(run: Callable[[Any], None], describe: Callable[[], str]) -> None:
    """Run in another thread; terminate the run after Ctrl-C, or when the time of this thread's run is over.

    Args:
        run: runs ONNX Runtime with the ``RunOptions`` that it is given.
        describe: returns the names of the loops, for the message.

    Raises:
        RunTimeoutError: the time is over.
        Exception: what ``run`` raises.
    """
    options = import_onnxruntime().RunOptions()
    options.log_severity_level = _FATAL_ERRORS_ONLY  # a terminated run would be logged as an error
    running = _Running(run, options)
    try:
        running.start()
        while not running.ended.wait(_PATIENCE):
            check_time(describe)
    finally:
        running.stop()
    if running.error is not None:
        raise running.error


class _Running(threading.Thread):
    """The thread of a run.

    NOTE: a ``join`` that Ctrl-C interrupts takes a running thread for ended, in some versions of Python. Ctrl-C may
    also interrupt ``start`` before or after the thread has begun.
    """

    def __init__(self, run: Callable[[Any], None], options: Any) -> None:
        super().__init__(name="lite-onnxruntime", daemon=True)
        self._run_with = run
        self._options = options
        self._begun = threading.Event()
        self._is_stopped = False
        self.ended = threading.Event()
        self.error: Exception | None = None

    def run(self) -> None:
        self._begun.set()
        try:
            if not self._is_stopped:
                self._run_with(self._options)
        except Exception as error:
            self.error = error
        finally:
            self.ended.set()

    def stop(self) -> None:
        """Terminate the run, and wait for its end: it writes to the caller's arrays."""
        self._is_stopped = True
        self._options.terminate = True
        while self._begun.is_set() and not self.ended.is_set():
            with contextlib.suppress(KeyboardInterrupt):
                self.ended.wait()
