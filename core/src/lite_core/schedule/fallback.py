"""Moving nodes to other devices after their backend failed to compile them."""

from __future__ import annotations

import logging
from dataclasses import replace

from lite_core.backend import Yes
from lite_core.ir import Graph
from lite_core.schedule.compile import CompileError
from lite_core.schedule.placement import Placement, ask

__all__ = ["placement_without"]

logger = logging.getLogger("lite.schedule")


def placement_without(graph: Graph, placement: Placement, error: CompileError) -> Placement:
    """Return the placement with the nodes of a failed partition on the next devices that accept them.

    Raises:
        CompileError: ``error`` itself, if no other device accepts a node.
    """
    failed = error.placed.candidate.device.label
    why = (failed, f"failed to compile it: {error.reason}")
    nodes = set(error.placed.partition.graph.nodes)
    choice, assignments = list(placement.choice), list(placement.assignments)
    for index, node in enumerate(graph.nodes):
        if node not in nodes:
            continue
        tried = {failed, *(label for label, _ in assignments[index].refusals)}
        for number, candidate in enumerate(placement.candidates):
            label = candidate.device.label
            if label not in tried and isinstance(ask(candidate, node), Yes):
                choice[index] = number
                before = assignments[index]
                assignments[index] = before._replace(device=label, refusals=(*before.refusals, why))
                break
        else:
            raise error
    logger.warning("%s; its nodes go to other devices", error)
    return replace(placement, choice=tuple(choice), assignments=tuple(assignments))
