"""The optional part of an executable that makes plans for other sizes of the inputs without compiling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

__all__ = ["PlansOtherSizes"]


@runtime_checkable
class PlansOtherSizes(Protocol):
    """Optional part of an executable: make a plan for other shapes of the model's inputs from one that it is part of.

    ``plan_for`` receives a :class:`lite_core.schedule.Plan` and the shape of each of its inputs, and returns the plan
    for them, which computes what a new one would compute, bit for bit. It returns None if partitions must be compiled.
    """

    def plan_for(self, plan: Any, shapes: Sequence[tuple[int, ...]]) -> Any: ...
