"""The values of a run: which there are, handed over in step with another run, or read from a file."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from types import TracebackType
from typing import Any, NamedTuple, Protocol

import numpy as np

from lite_core.observing import Observed
from lite_core.schedule import Plan

__all__ = ["Key", "RunningSource", "Seen", "Source", "ValueObserver", "capture", "survey"]

Array = np.ndarray[Any, Any]

#: Bytes of results that a run may be ahead of the run that it is compared with.
_MOST_AHEAD = 64 << 20


class Key(NamedTuple):
    """A result of a run. ``occurrence`` counts how often the value was computed before: bodies of loops run often."""

    value: str
    occurrence: int = 0

    def __str__(self) -> str:
        return f"{self.value}#{self.occurrence}" if self.occurrence else self.value


class Seen(NamedTuple):
    """The kernel that computed a result, its device, and the nodes that the kernel computes."""

    kernel: str
    device: str
    nodes: tuple[str, ...]


class ValueObserver:
    """An observer that calls a function for each result with its key."""

    def __init__(self, receive: Callable[[Key, Observed], None]) -> None:
        self._receive = receive
        self._computed: Counter[str] = Counter()

    def starts(self, kernel: str, nodes: Sequence[str]) -> None:
        """Ignore it: only results matter."""

    def computed(self, results: Observed) -> None:
        """Call the function for each of the results."""
        for name in results.values:
            key = Key(name, self._computed[name])
            self._computed[name] += 1
            self._receive(key, results)


class Source(Protocol):
    """True values. ``get`` returns one, or None if the run did not compute it; each is asked for at most once."""

    def get(self, key: Key) -> Array | None: ...


def survey(
    plan: Plan, inputs: Sequence[Array], receive_array: Callable[[Key, Array], None] | None = None
) -> tuple[dict[Key, Seen], list[Array]]:
    """Run a plan; return its observable results in the order in which they are computed, and its outputs.

    Args:
        plan: the plan.
        inputs: its inputs, in order.
        receive_array: called with each result, if given; without it no result is read.
    """
    found: dict[Key, Seen] = {}

    def receive(key: Key, results: Observed) -> None:
        found[key] = Seen(results.kernel, results.device, tuple(results.nodes))
        if receive_array is not None:
            receive_array(key, results.read(key.value))

    outputs = plan.run(inputs, observer=ValueObserver(receive))
    return found, outputs


class _Stopped(Exception):
    """Ends a run whose other results nobody needs."""


def capture(plan: Plan, inputs: Sequence[Array], wanted: Collection[Key], put: Callable[[Key, Array], None]) -> None:
    """Call a function with some results of a run, which ends when it has computed all of them."""
    missing = set(wanted)

    def receive(key: Key, results: Observed) -> None:
        if key in missing:
            put(key, results.read(key.value))
            missing.discard(key)
        if not missing:
            raise _Stopped

    if missing:
        try:
            plan.run(inputs, observer=ValueObserver(receive))
        except Exception as error:
            if not _is_stop(error):
                raise


def _is_stop(error: BaseException | None) -> bool:
    """Return True if an error is, or was caused by, the end of a run that this module asked for."""
    while error is not None:
        if isinstance(error, _Stopped):
            return True
        error = error.__cause__ or error.__context__
    return False


class RunningSource:
    """The results of a run in another thread, which waits while it is far ahead of its reader.

    Args:
        plan: the plan that runs.
        inputs: its inputs, in order.
        wanted: the results that will be asked for; all others are dropped.
        most_ahead: bytes of results that are kept before the run waits.

    Use it as a context manager: at the end the run is stopped, or its error raised.
    """

    def __init__(
        self, plan: Plan, inputs: Sequence[Array], wanted: Collection[Key], most_ahead: int = _MOST_AHEAD
    ) -> None:
        self._plan, self._inputs = plan, inputs
        self._wanted = frozenset(wanted)
        self._most_ahead = most_ahead
        self._changed = threading.Condition()
        self._held: dict[Key, Array] = {}
        self._held_bytes = 0
        self._is_awaited = self._is_over = self._is_stopped = False
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="lite-compare", daemon=True)

    def __enter__(self) -> RunningSource:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._changed:
            self._is_stopped = True
            self._changed.notify_all()
        self._thread.join()
        if kind is None and self._error is not None:
            raise self._error

    def get(self, key: Key) -> Array | None:
        """Return a result when it is there; None if the run ends without it.

        Raises:
            LiteError: the run failed.
        """
        with self._changed:
            self._is_awaited = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: key in self._held or self._is_over)
            self._is_awaited = False
            if self._error is not None:
                raise self._error
            array = self._held.pop(key, None)
            self._held_bytes -= 0 if array is None else array.nbytes
            self._changed.notify_all()
            return array

    def _run(self) -> None:
        try:
            self._plan.run(self._inputs, observer=ValueObserver(self._receive))
        except BaseException as error:
            if not _is_stop(error):
                self._error = error
        finally:
            with self._changed:
                self._is_over = True
                self._changed.notify_all()

    def _receive(self, key: Key, results: Observed) -> None:
        if key not in self._wanted:
            return
        array = results.read(key.value)
        with self._changed:
            self._held[key] = array
            self._held_bytes += array.nbytes
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._is_stopped or self._is_awaited or self._held_bytes <= self._most_ahead)
            if self._is_stopped:
                raise _Stopped
