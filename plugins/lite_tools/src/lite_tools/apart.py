"""Plans that run node by node, so that an observer sees the results of every node."""

from __future__ import annotations

from collections.abc import Sequence

from lite_core.backend import Partition
from lite_core.ir import Graph
from lite_core.schedule import PlacedPartition, Placement, Plan, cut
from lite_core.schedule.compile import compile_partition
from lite_core.schedule.planner import Planner

__all__ = ["plan_apart"]


def plan_apart(
    planner: Planner, graph: Graph, placement: Placement, positions: Sequence[int], prefix: str = ""
) -> Plan:
    """Make a plan whose partitions are single nodes, also in sub-graphs.

    Args:
        planner: the planner of a session; its options are those of the plan.
        graph: the graph, with inferred types.
        placement: the placement of a larger graph.
        positions: the positions of the nodes in the larger graph.
        prefix: prefix of the partitions' names.

    Raises:
        CompileError: a backend failed to compile a node.
    """

    def plan_body(body: Graph, prefix: str) -> Plan:
        return plan_apart(planner, body, planner.place(body), range(len(body.nodes)), prefix)

    chosen = Placement(
        placement.candidates,
        tuple([placement.choice[index] for index in positions]),
        tuple([placement.assignments[index] for index in positions]),
        bodies={index: () for index, node in enumerate(graph.nodes) if node.subgraphs},
    )
    chosen = planner.precision.applied(graph, chosen)
    compiled = []
    for number, (node, choice) in enumerate(zip(graph.nodes, chosen.choice)):
        candidate = chosen.candidates[choice]
        name = f"{prefix}{candidate.device.label}/{number}"
        placed = PlacedPartition(Partition(name, cut(graph, name, [node])), candidate, bool(node.subgraphs))
        compiled.append(compile_partition(placed, planner.options, plan_body))
    return Plan(graph, chosen, compiled, planner.pool)
