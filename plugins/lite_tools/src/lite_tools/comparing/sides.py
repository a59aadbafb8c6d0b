"""The two sides of a comparison: a session with its plan, and what of it can be seen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from lite_core.observing import Observable
from lite_core.ops.infer import infer_graph
from lite_core.schedule import Plan
from lite_core.schedule.control import ControlExecutable
from lite_core.session import Session
from lite_tools.apart import plan_apart
from lite_tools.precisions import precisions_in, uses_precision

__all__ = ["COARSENESS", "Side"]

Array = np.ndarray[Any, Any]

#: Precisions by how much they round.
COARSENESS = {"float32": 0, "float16": 1, "bfloat16": 2}


@dataclass(frozen=True)
class Side:
    """One side: a session and the plan of its runs.

    Attributes:
        label: its name for the user, such as ``opencl``.
        session: the session.
        plan: the plan for the shapes of the inputs.
        runs_as_usual: True if results between kernels can be observed. Otherwise each node is a partition by itself,
            because its backend shows only the outputs of partitions: kernels may then differ from those of usual runs.
        precision: the coarsest type that a device computes in.
        passes: False if the graph passes were left out.
        file: the model.
    """

    label: str
    session: Session
    plan: Plan
    runs_as_usual: bool
    precision: str = "float32"
    passes: bool = True
    file: str = ""

    @staticmethod
    def of(
        label: str,
        session: Session,
        inputs: Mapping[str, Array],
        *,
        passes: bool = True,
        file: str = "",
    ) -> Side:
        """Make the plan for some inputs.

        Raises:
            LiteError: the session cannot run them.
        """
        plan = session.plan({name: array.shape for name, array in inputs.items()})
        is_observable = all(
            isinstance(each.executable, (Observable, ControlExecutable)) or len(each.part.graph.nodes) == 1
            for each in plan.compiled
        )
        if not is_observable:
            plan = _apart(session, plan)
        precision = max(_computed_precisions(session, plan), key=COARSENESS.__getitem__)
        return Side(label, session, plan, is_observable, precision, passes, file)

    def run_inputs(self, inputs: Mapping[str, Array]) -> list[Array]:
        """Return the inputs in the order and the element types of the plan."""
        return [np.asarray(inputs[value.name], dtype=value.dtype.numpy, order="C") for value in self.plan.graph.inputs]

    def as_dict(self) -> dict[str, Any]:
        """Return what a report says about the side."""
        options, asked = self.session.planner.options, self.session.planner.precision
        is_as_asked = self.precision in precisions_in(asked)
        precision = asked.text if is_as_asked else f"{asked.text}, computed in {self.precision}"
        return {
            "label": self.label,
            "devices": list(self.session.devices),
            "options": {"threads": options.threads, "precision": precision, "passes": self.passes},
            "computed_in": self.precision,
            "can_be_observed": self.runs_as_usual,
            "file": self.file,
        }


def _computed_precisions(session: Session, plan: Plan) -> set[str]:
    """Return the types that the devices compute in, of those that the session allows; a device says which it knows."""
    devices = {candidate.device.label: candidate.device for candidate in plan.placement.candidates}
    used = [devices[assignment.device] for assignment in plan.placement.assignments]
    asked = precisions_in(session.planner.precision)
    return {"float32"} | {name for name in asked for device in used if uses_precision(device, name)}


def _apart(session: Session, plan: Plan) -> Plan:
    graph = plan.graph.copy()
    infer_graph(graph, {value.name: value.type for value in graph.inputs})  # a restored plan knows few types
    return plan_apart(session.planner, graph, plan.placement, range(len(graph.nodes)))
