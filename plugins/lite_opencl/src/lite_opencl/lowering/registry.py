"""Which operators the backend runs, and how each becomes steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from lite_core.ir import Graph, Node, Value
from lite_opencl.lowering.families import import_all_families, import_family
from lite_opencl.lowering.known import known_values
from lite_opencl.lowering.left_out import LEFT_OUT

if TYPE_CHECKING:
    from lite_compiler.fusion import Group
    from lite_opencl.lowering.context import Lowering

__all__ = ["Lower", "find_lowering", "lowers", "native_operators", "takes_epilogue", "undecided"]

#: Emits the steps of a group, whose head is of the operator it is registered for.
Lower = Callable[["Lowering", "Group"], None]
#: Why a node cannot be run, a sentence, or None.
Refuse = Callable[[Node], "str | None"]


class _Entry(NamedTuple):
    """How an operator is run: what :func:`lowers` was told."""

    lower: Lower
    refuse: Refuse
    epilogue: bool
    known: tuple[int, ...]


_TABLE: dict[str, _Entry] = {}


def lowers(
    *ops: str, refuse: Refuse = lambda node: None, epilogue: bool = False, known: Sequence[int] = ()
) -> Callable[[Lower], Lower]:
    """Register how operators are run.

    Args:
        ops: qualified names, ``Conv`` or ``lite.YoloBox``.
        refuse: says why a node with its types and attributes cannot be run, if so. Shapes may be unknown.
        epilogue: the element-wise nodes that follow can be part of the step: the function then runs all of its
            group, else it only sees groups without a tail.
        known: positions of inputs whose elements must be known when the node is lowered: axes, a number of results.
            Where they depend on data, the node runs on the host between two pieces of the partition.
    """

    def add(function: Lower) -> Lower:
        for op in ops:
            if op in _TABLE:
                raise ValueError(f"there are two ways to lower {op}")
            _TABLE[op] = _Entry(function, refuse, epilogue, tuple(known))
        return function

    return add


def native_operators() -> set[str]:
    """Qualified names of the operators that are run, if not in every element type and with every attribute."""
    import_all_families()
    return set(_TABLE)


def find_lowering(node: Node) -> tuple[Lower | None, str]:
    """How a node is lowered, or None and the reason why it cannot be."""
    import_family(node.qualified_op)
    entry = _TABLE.get(node.qualified_op)
    if entry is None:
        why = LEFT_OUT.get(node.qualified_op)
        return None, f"there is no OpenCL kernel for {node.qualified_op}{f': {why}' if why else ''}"
    reason = entry.refuse(node)
    return (entry.lower, "") if reason is None else (None, reason)


def takes_epilogue(node: Node) -> bool:
    """Whether the element-wise nodes that follow can be part of its step."""
    import_family(node.qualified_op)
    entry = _TABLE.get(node.qualified_op)
    return entry is not None and entry.epilogue


def undecided(graph: Graph) -> list[Node]:
    """Nodes that cannot be lowered whatever the shapes: elements that must be known depend on data."""
    known = known_values(graph)
    return [node for node in graph.nodes if not known.issuperset(_needs_known(node))]


def _needs_known(node: Node) -> list[Value]:
    """Inputs whose elements must be known when the node is lowered."""
    import_family(node.qualified_op)
    entry = _TABLE.get(node.qualified_op)
    inputs = [] if entry is None else [node.inputs[i] for i in entry.known if i < len(node.inputs)]
    return [v for v in inputs if v is not None]
