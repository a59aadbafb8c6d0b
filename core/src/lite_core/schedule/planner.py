"""Making plans: for a model, and for its sub-graphs while it runs."""

from __future__ import annotations

from collections.abc import Mapping

from lite_core.backend import Options, Partition
from lite_core.ir import Graph
from lite_core.memory.scratch import ScratchPool
from lite_core.schedule.compile import CompiledPartition, CompileError, compile_partition
from lite_core.schedule.costs import Costs
from lite_core.schedule.devices import Selection
from lite_core.schedule.partition import PartitionIdentities, PlacedPartition
from lite_core.schedule.placement import Placement, place_nodes
from lite_core.schedule.plan import Plan, make_plan
from lite_core.schedule.precision import Precision

__all__ = ["Planner", "decide_branches"]


def decide_branches(graph: Graph) -> Graph | None:
    """Call :func:`lite_core.passes.branch_inlining.inline_decided_branches`; return None if the graph has no If."""
    if not any(node.op == "If" for node in graph.nodes):
        return None
    from lite_core.passes.branch_inlining import inline_decided_branches

    return inline_decided_branches(graph)


class Planner:
    """The planner of one session, which makes all of its plans. Thread-safe.

    Args:
        selection: the devices.
        pins: node name pattern to device label.
        options: the session's options.
        pool: provides the memory of runs.
        log: receives a line for each partition that its device failed to compile, or cannot run as its memory fails.
        precision: the precision of every node; by default that of ``options``.
    """

    def __init__(
        self,
        selection: Selection,
        pins: Mapping[str, str],
        options: Options,
        pool: ScratchPool,
        log: list[str],
        precision: Precision | None = None,
    ) -> None:
        self._selection, self._pins, self.options = selection, pins, options
        self.precision = precision or Precision(options.precision)
        self.pool, self._log = pool, log
        self._costs, self._identities = Costs(), PartitionIdentities()

    def plan(
        self, graph: Graph, placement: Placement, prefix: str = "", identities: PartitionIdentities | None = None
    ) -> Plan:
        """Make the plan of a graph for the shapes of its inputs.

        Islands whose copies cost more than they gain are merged with their neighbours. If a backend fails to compile,
        or copies to its memory fail, and the caller named no devices, its nodes move to the next device.

        Args:
            graph: the graph, with inferred types.
            placement: the device of every node.
            prefix: prefix of the partitions' names.
            identities: the identities of the partitions; the planner's by default.

        Raises:
            CompileError: a backend requested by name failed to compile, or no other device accepts the nodes.
        """
        from lite_core.schedule.fallback import placement_without  # not at the top: prepared plans need neither
        from lite_core.schedule.islands import merge_islands

        placement = merge_islands(graph, placement, self._costs)
        while True:
            try:
                self._check_memories(graph, placement)
                own = identities or self._identities
                placed = self.precision.applied(graph, placement)
                return make_plan(graph, placed, self.options, self.pool, self.plan_body, prefix, own)
            except CompileError as error:
                if not self._selection.automatic:
                    raise
                placement = placement_without(graph, placement, error)
                self._log.append(str(error))

    def _check_memories(self, graph: Graph, placement: Placement) -> None:
        """Raise a CompileError for all nodes of a device whose memory fails, if the caller named no devices."""
        for number in sorted({*placement.choice}) if self._selection.automatic else ():
            candidate = placement.candidates[number]
            if fault := self._costs.link(candidate).fault:
                nodes = [node for node, chosen in zip(graph.nodes, placement.choice) if chosen == number]
                part = Partition("all its nodes", Graph(graph.name, nodes=nodes))
                raise CompileError(PlacedPartition(part, candidate), f"{fault}, so this session does not use it")

    def plan_decided(self, graph: Graph, prefix: str = "") -> Plan | None:
        """Make a plan as :meth:`plan` does, without the Ifs that the input shapes decide; None if they decide none."""
        decided = decide_branches(graph)
        # NOTE: separate identities: for other shapes, the graph may have other nodes and constants at these positions.
        return None if decided is None else self.plan(decided, self.place(decided), prefix, PartitionIdentities())

    def plan_body(self, graph: Graph, prefix: str) -> Plan:
        """Place the nodes of a sub-graph, given as a separate graph, and make its plan."""
        return self.plan_decided(graph, prefix) or self.plan(graph, self.place(graph), prefix)

    def place(self, graph: Graph) -> Placement:
        """Place the nodes of a graph that may be a part of the model's graph."""
        return place_nodes(graph, self._selection.candidates, self._pins)

    def compile(self, placed: PlacedPartition) -> CompiledPartition:
        """Compile one partition.

        Raises:
            CompileError: its backend failed.
        """
        return compile_partition(placed, self.options, self.plan_body)
