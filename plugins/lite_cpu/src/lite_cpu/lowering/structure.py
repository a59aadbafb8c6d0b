"""What lowering finds out about a graph that does not depend on the sizes of its tensors: kept for the next sizes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from lite_compiler.fusion import count_uses
from lite_core.ir import Graph, Node
from lite_cpu import scalar_ops
from lite_cpu.chains import Chain
from lite_cpu.lowering.registry import Lower, find_lowering, takes_epilogue

__all__ = ["NodeRoles", "Structure"]

_Made = TypeVar("_Made")


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
    lowerings: tuple[tuple[Lower | None, str], ...]
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
            elementwise=positions(_is_elementwise),
            hosts=positions(takes_epilogue),
            lowerings=tuple([find_lowering(node) for node in graph.nodes]),
            weighted=positions(is_weighted),
            uses=tuple([uses.get(value, 0) for value in graph.defined()]),
        )


class Structure:
    """What is the same for all graphs of one family on one machine; see :class:`lite_core.backend.Family`.

    Those graphs have the same nodes, attributes, element types, ranks and constants: what is made of nothing else is
    made for the first of them and kept here. Nodes and values are each graph's own, so none are kept.

    Attributes:
        roles: what the nodes are; None until the first graph is lowered.
        chains: what runs of element-wise nodes do, by where the value they start from is read and by their positions;
            each with the places, node of the run and input, where the other operands are read.
    """

    def __init__(self) -> None:
        self.roles: NodeRoles | None = None
        self.chains: dict[tuple[int, ...], tuple[Chain, Sequence[tuple[int, int]]]] = {}
        self._made: dict[Hashable, Any] = {}

    def once(self, key: Hashable, make: Callable[[], _Made]) -> _Made:
        """What ``make`` returned for this key; it is called only for the first graph."""
        if key not in self._made:
            self._made[key] = make()
        made: _Made = self._made[key]
        return made


def _is_elementwise(node: Node) -> bool:
    if len(node.outputs) != 1 or node.outputs[0] is None:
        return False
    if node.qualified_op not in scalar_ops.OPERATORS:
        return False
    inputs = [None if v is None else v.dtype for v in node.inputs]
    return scalar_ops.supports(node.qualified_op, inputs, node.outputs[0].dtype, node.attributes) is None
