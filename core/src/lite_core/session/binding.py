"""Running a session repeatedly on the same arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

__all__ = ["Binding"]

Array = np.ndarray[Any, Any]


class RunSession(Protocol):
    """The part of ``Session.run``'s signature that a binding needs."""

    def __call__(self, inputs: Mapping[str, Any], **options: Any) -> dict[str, Array]: ...


class Binding:
    """Arrays bound to a session's inputs and outputs. Not thread-safe.

    Args:
        run: runs the session.
        inputs: arrays that the caller writes before each run.
        outputs: arrays that receive the outputs; if omitted, those returned by a first run.
    """

    def __init__(
        self, run: RunSession, inputs: Mapping[str, Array], outputs: Mapping[str, Array] | None = None
    ) -> None:
        self._run = run
        #: The arrays that each run reads.
        self.inputs = dict(inputs)
        #: The arrays that each run writes.
        self.outputs: dict[str, Array] = dict(outputs) if outputs else run(self.inputs)

    def run(self, *, timeout: float | None = None) -> dict[str, Array]:
        """Run on the present content of the input arrays; return the output arrays, overwritten.

        Args:
            timeout: see :meth:`lite_core.Session.run`.
        """
        return self._run(self.inputs, out=self.outputs, timeout=timeout)
