"""What the nodes of a graph are to lowering, whatever the sizes of its tensors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lite_compiler.fusion import count_uses
from lite_compiler.registry import Lower
from lite_core.ir import Graph, Node
from lite_cpu.lowering.context import Lowering
from lite_cpu.lowering.elementwise import is_elementwise
from lite_cpu.lowering.kept import Kept
from lite_cpu.lowering.registry import find_lowering, takes_epilogue

__all__ = ["NodeRoles", "Structure"]


@dataclass(frozen=True, slots=True)
class NodeRoles:
    """What the nodes of a graph are to lowering. Nodes are known by their positions, which are the same for all sizes.

    Attributes:
        elementwise: those that can be part of a chain. Decided by operator, attributes and element types.
        hosts: those whose step can do what follows it, too. Decided by the operator.
        lowerings: for each node the function that lowers it, or the reason why there is none. Decided by operator,
            attributes, element types and ranks.
        weighted: those that read something beside their first input, all of it constants of the graph.
        uses: how often each of the values is read that :meth:`Graph.defined` lists.
    """

    elementwise: frozenset[int]
    hosts: frozenset[int]
    lowerings: tuple[tuple[Lower[Lowering] | None, str], ...]
    weighted: frozenset[int]
    uses: tuple[int, ...]

    @staticmethod
    def of(graph: Graph) -> NodeRoles:
        """Find them out."""

        def positions(has_role: Callable[[Node], bool]) -> frozenset[int]:
            return frozenset(i for i, node in enumerate(graph.nodes) if has_role(node))

        def is_weighted(node: Node) -> bool:
            rest = [v for v in node.inputs[1:] if v is not None]
            return bool(rest) and all(v in graph.constants for v in rest)

        uses = count_uses(graph)
        return NodeRoles(
            elementwise=positions(is_elementwise),
            hosts=positions(takes_epilogue),
            lowerings=tuple([find_lowering(node) for node in graph.nodes]),
            weighted=positions(is_weighted),
            uses=tuple([uses.get(value, 0) for value in graph.defined()]),
        )


class Structure:
    """What is the same for all graphs of one identity on one machine; see :class:`lite_core.backend.PartitionIdentity`.

    Those graphs have the same nodes, attributes, element types, ranks and constants: what follows from nothing else is
    found out for the first of them.

    Attributes:
        roles: what the nodes are; None until the first graph is lowered.
        kept: what is made of them.
    """

    def __init__(self) -> None:
        self.roles: NodeRoles | None = None
        self.kept = Kept()
