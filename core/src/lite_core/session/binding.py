"""Running a session repeatedly on the same arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import get_ident
from types import MappingProxyType

from lite_core.deadline import run_within
from lite_core.ir import Array, TensorType
from lite_core.notebooks import Shown, signature_text

__all__ = ["Binding"]

Outputs = dict[str, Array]


class Binding(Shown):
    """Arrays bound to a session's inputs and outputs. Not thread-safe.

    Args:
        run: runs the session.
        bind: returns a function that runs again on arrays that ``run`` has accepted, or None if there is none.
        inputs: arrays that the caller writes before each run.
        outputs: arrays that receive the outputs; if omitted, those returned by a first run.
        threads: those with runs in flight, to which the thread of each run is added while it lasts.
    """

    def __init__(
        self,
        run: Callable[..., Outputs],
        bind: Callable[[Outputs, Outputs], Callable[[], object] | None],
        inputs: Mapping[str, Array],
        outputs: Mapping[str, Array] | None = None,
        threads: list[int] | None = None,
    ) -> None:
        self._run, self._bind, self._threads = run, bind, [] if threads is None else threads
        self._inputs = dict(inputs)
        self._outputs = dict(outputs) if outputs else run(self._inputs)
        self._run_again: Callable[[], object] | None = None
        #: The arrays that each run reads.
        self.inputs = MappingProxyType(self._inputs)
        #: The arrays that each run writes.
        self.outputs = MappingProxyType(self._outputs)

    def __repr__(self) -> str:
        types = ({n: TensorType.of_array(a) for n, a in side.items()} for side in (self.inputs, self.outputs))
        return f"<Binding {signature_text(*types)}>"

    def run(self, *, timeout: float | None = None) -> dict[str, Array]:
        """Run on the present content of the input arrays; return the output arrays, overwritten.

        Args:
            timeout: see :meth:`lite_core.Session.run`.
        """
        if timeout is not None:
            return run_within(timeout, self.run)
        thread, run_again = get_ident(), self._run_again
        self._threads.append(thread)
        try:
            if run_again is None:
                found = self._run(self._inputs, out=self._outputs)
                self._run_again = self._bind(self._inputs, self._outputs)
                return found
            run_again()
            return self._outputs.copy()
        finally:
            self._threads.remove(thread)

    def release(self) -> None:
        """Release the compiled code, which the next run asks the session for again."""
        self._run_again = None
