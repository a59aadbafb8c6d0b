"""The optional part of an executable that runs a plan without a buffer for each array."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from lite_core.ir import Array

__all__ = ["DirectRun", "RunsDirectly"]

#: ``run`` of a :class:`lite_core.schedule.Plan` without profile and observer. It returns None if it declines: then the
#: plan runs its step. It tests the time, and declines if the log ``lite.run`` is on.
DirectRun = Callable[[Sequence[Array], Mapping[str, Array] | None], list[Array] | None]


class RunsDirectly(Protocol):
    """Optional part of an executable in main memory: the short way through a plan that has only its step.

    ``direct_run`` receives the graph, the step, the arenas and the pool of the plan.
    """

    def direct_run(self, graph: Any, step: Any, arenas: Any, pool: Any) -> DirectRun | None: ...
