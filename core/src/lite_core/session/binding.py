"""Running a session again and again on the same arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

__all__ = ["Binding"]

Array = np.ndarray[Any, Any]


class RunSession(Protocol):
    """``Session.run``, as far as a binding needs it."""

    def __call__(self, inputs: Mapping[str, Any], *, out: Mapping[str, Array] | None = None) -> dict[str, Array]: ...


class Binding:
    """Arrays tied to a session's inputs and outputs. Not for several threads at once.

    Args:
        run: runs the session.
        inputs: arrays that the caller fills before each run.
        outputs: arrays that receive the outputs; those of a first run where omitted.
    """

    def __init__(
        self, run: RunSession, inputs: Mapping[str, Array], outputs: Mapping[str, Array] | None = None
    ) -> None:
        self._run = run
        #: The arrays that each run reads.
        self.inputs = dict(inputs)
        #: The arrays that each run writes.
        self.outputs: dict[str, Array] = dict(outputs) if outputs else run(self.inputs)

    def run(self) -> dict[str, Array]:
        """Run on what the input arrays hold now; returns the output arrays, overwritten."""
        return self._run(self.inputs, out=self.outputs)
