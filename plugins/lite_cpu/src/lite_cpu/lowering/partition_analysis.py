"""Analysis of a partition that does not depend on tensor sizes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lite_compiler.fusion import count_uses
from lite_compiler.registry import Lower
from lite_core.ir import Graph, Node
from lite_cpu.lowering.context import Lowering
from lite_cpu.lowering.elementwise import is_elementwise
from lite_cpu.lowering.lowering_cache import LoweringCache
from lite_cpu.lowering.registry import find_lowering, takes_epilogue

__all__ = ["NodeRoles", "PartitionAnalysis"]


@dataclass(frozen=True, slots=True)
class NodeRoles:
    """Properties of a graph's nodes that lowering needs. Nodes are identified by their positions in the graph.

    Attributes:
        elementwise: nodes that can be part of a chain. Depends on operator, attributes and element types.
        takes_epilogue: nodes whose step can also compute the element-wise nodes after it. Depends on the operator.
        lowerings: for each node the lowering function, or None and the reason why there is none. Depends on operator,
            attributes, element types and ranks.
        with_constant_weights: nodes with inputs after the first, all of them constants of the graph.
        uses: how often each value of :meth:`Graph.defined` is read.
    """

    elementwise: frozenset[int]
    takes_epilogue: frozenset[int]
    lowerings: tuple[tuple[Lower[Lowering] | None, str], ...]
    with_constant_weights: frozenset[int]
    uses: tuple[int, ...]

    @staticmethod
    def of(graph: Graph) -> NodeRoles:
        """Analyze the nodes of a graph."""

        def positions(has_role: Callable[[Node], bool]) -> frozenset[int]:
            return frozenset(i for i, node in enumerate(graph.nodes) if has_role(node))

        def has_constant_weights(node: Node) -> bool:
            rest = [v for v in node.inputs[1:] if v is not None]
            return bool(rest) and all(v in graph.constants for v in rest)

        uses = count_uses(graph)
        return NodeRoles(
            elementwise=positions(is_elementwise),
            takes_epilogue=positions(takes_epilogue),
            lowerings=tuple([find_lowering(node) for node in graph.nodes]),
            with_constant_weights=positions(has_constant_weights),
            uses=tuple([uses.get(value, 0) for value in graph.defined()]),
        )


class PartitionAnalysis:
    """The analysis shared by all graphs of one :class:`~lite_core.backend.PartitionIdentity` on one machine.

    These graphs have the same nodes, attributes, element types, ranks and constants. Results that depend only on those
    are computed for the first graph.

    Attributes:
        roles: the properties of the nodes; None until the first graph is lowered.
        cache: the results of lowering that the graphs share.
    """

    def __init__(self) -> None:
        self.roles: NodeRoles | None = None
        self.cache = LoweringCache()
