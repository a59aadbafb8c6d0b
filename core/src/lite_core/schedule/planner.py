"""Making plans: of a model, and of the sub-graphs in it while it runs."""

from __future__ import annotations

from collections.abc import Mapping

from lite_core.backend import Options
from lite_core.ir import Graph
from lite_core.memory.scratch import ScratchPool
from lite_core.schedule.compile import CompiledPartition, CompileError, compile_partition
from lite_core.schedule.costs import Costs
from lite_core.schedule.devices import Selection
from lite_core.schedule.fallback import placement_without
from lite_core.schedule.islands import merge_islands
from lite_core.schedule.partition import PartitionIdentities, PlacedPartition
from lite_core.schedule.placement import Placement, place_nodes
from lite_core.schedule.plan import Plan, make_plan

__all__ = ["Planner", "decide_branches"]


def decide_branches(graph: Graph) -> Graph | None:
    """See :func:`lite_core.passes.branch_inlining.with_branches_decided`, which few models need."""
    if not any(node.op == "If" for node in graph.nodes):
        return None
    from lite_core.passes.branch_inlining import with_branches_decided

    return with_branches_decided(graph)


class Planner:
    """Makes the plans of one session. May be used by many threads at once.

    Args:
        selection: the devices.
        pins: node name pattern to device label.
        options: what the session allows.
        pool: where the plans take their memory from.
        log: gets a line for each partition that could not be compiled where it was placed.
    """

    def __init__(
        self, selection: Selection, pins: Mapping[str, str], options: Options, pool: ScratchPool, log: list[str]
    ) -> None:
        self._selection = selection
        self._pins = pins
        self._options = options
        self.pool = pool
        self._log = log
        self._costs = Costs()
        self._identities = PartitionIdentities()

    def plan(
        self, graph: Graph, placement: Placement, prefix: str = "", identities: PartitionIdentities | None = None
    ) -> Plan:
        """The plan of a graph for the shapes that its inputs have.

        Islands whose copies cost more than they gain are merged with their surroundings. Where nobody named the
        devices, and a backend fails to compile, its nodes go to the next.

        Args:
            graph: the graph, with inferred types.
            placement: the device of every node.
            prefix: what the names of the partitions begin with.
            identities: those of the partitions, where they are not the planner's.

        Raises:
            CompileError: a backend failed to compile what it was named for, or what no other takes.
        """
        placement = merge_islands(graph, placement, self._costs)
        while True:
            try:
                own = identities or self._identities
                return make_plan(graph, placement, self._options, self.pool, self.plan_body, prefix, own)
            except CompileError as error:
                if not self._selection.automatic:
                    raise
                placement = placement_without(graph, placement, error)
                self._log.append(str(error))

    def plan_decided(self, graph: Graph, prefix: str = "") -> Plan | None:
        """As :meth:`plan`, where the shapes decide which branch of an If is taken; None where they decide none."""
        decided = decide_branches(graph)
        if decided is None:
            return None
        placement = place_nodes(decided, self._selection.candidates, self._pins)
        # NOTE: identities of its own, for the graph of other sizes may have other nodes and constants in these places.
        return self.plan(decided, placement, prefix, PartitionIdentities())

    def plan_body(self, graph: Graph, prefix: str) -> Plan:
        """The plan of a sub-graph, as a graph of its own: as :meth:`plan`, and finds the devices, too."""
        return self.plan_decided(graph, prefix) or self.plan(
            graph, place_nodes(graph, self._selection.candidates, self._pins), prefix
        )

    def compile(self, placed: PlacedPartition) -> CompiledPartition:
        """One partition, ready to run.

        Raises:
            CompileError: its backend failed.
        """
        return compile_partition(placed, self._options, self.plan_body)
