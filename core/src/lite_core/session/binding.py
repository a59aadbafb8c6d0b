"""Running a session repeatedly on the same arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from lite_core.deadline import run_within
from lite_core.ir import Array

__all__ = ["Binding"]

Outputs = dict[str, Array]


class Binding:
    """Arrays bound to a session's inputs and outputs. Not thread-safe.

    Args:
        run: runs the session.
        bind: returns a function that runs again on arrays that ``run`` has accepted, or None if there is none.
        inputs: arrays that the caller writes before each run.
        outputs: arrays that receive the outputs; if omitted, those returned by a first run.
    """

    def __init__(
        self,
        run: Callable[..., Outputs],
        bind: Callable[[Outputs, Outputs], Callable[[], object] | None],
        inputs: Mapping[str, Array],
        outputs: Mapping[str, Array] | None = None,
    ) -> None:
        self._run, self._bind = run, bind
        self._inputs = dict(inputs)
        self._outputs = dict(outputs) if outputs else run(self._inputs)
        self._run_again: Callable[[], object] | None = None
        #: The arrays that each run reads.
        self.inputs = MappingProxyType(self._inputs)
        #: The arrays that each run writes.
        self.outputs = MappingProxyType(self._outputs)

    def run(self, *, timeout: float | None = None) -> dict[str, Array]:
        """Run on the present content of the input arrays; return the output arrays, overwritten.

        Args:
            timeout: see :meth:`lite_core.Session.run`.
        """
        if timeout is not None:
            return run_within(timeout, self.run)
        if self._run_again is None:
            found = self._run(self._inputs, out=self._outputs)
            self._run_again = self._bind(self._inputs, self._outputs)
            return found
        self._run_again()
        return self._outputs.copy()
