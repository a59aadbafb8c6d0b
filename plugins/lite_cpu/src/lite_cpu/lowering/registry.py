"""Which operators CPU backends run, and how each becomes steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from lite_core.ir import Node
from lite_cpu.lowering.families import import_all_families, import_family
from lite_cpu.lowering.half import has_halves, in_float32
from lite_cpu.lowering.left_out import LEFT_OUT

if TYPE_CHECKING:
    from lite_compiler.fusion import Group
    from lite_cpu.lowering.context import Lowering

__all__ = ["Lower", "find_lowering", "lowers", "native_operators", "refusal", "rewritten", "takes_epilogue"]

#: Emits the steps of a group, whose head is of the operator it is registered for.
Lower = Callable[["Lowering", "Group"], None]
#: Why a node cannot be run, a sentence, or None.
Refuse = Callable[[Node], "str | None"]

_TABLE: dict[str, tuple[Lower, Refuse, bool]] = {}
_REWRITTEN: dict[str, Refuse] = {}


def lowers(*ops: str, refuse: Refuse = lambda node: None, epilogue: bool = False) -> Callable[[Lower], Lower]:
    """Register how operators are run.

    Args:
        ops: qualified names, ``Conv`` or ``lite.YoloBox``.
        refuse: says why a node with its types and attributes cannot be run, if so.
        epilogue: the element-wise nodes that follow can be part of the step: the function then runs
            all of its group, else it will only see groups without a tail.
    """

    def add(function: Lower) -> Lower:
        for op in ops:
            if op in _TABLE:
                raise ValueError(f"there are two ways to lower {op}")
            _TABLE[op] = (function, refuse, epilogue)
        return function

    return add


def rewritten(*ops: str, refuse: Refuse = lambda node: None) -> None:
    """Register operators that are written with others before a graph is lowered."""
    _REWRITTEN.update(dict.fromkeys(ops, refuse))


def native_operators() -> set[str]:
    """Qualified names of the operators that are run, if not in every element type and with every attribute."""
    import_all_families()
    return {*_TABLE, *_REWRITTEN}


def refusal(node: Node) -> str | None:
    """Why a node of a model cannot be run, a sentence; None when it can, as it is or with others in its place."""
    import_family(node.qualified_op)
    if node.qualified_op in _REWRITTEN:
        return _REWRITTEN[node.qualified_op](node)
    function, reason = find_lowering(node)
    if function is None and has_halves(node):
        function, reason = find_lowering(in_float32(node))
    return None if function is not None else reason


def find_lowering(node: Node) -> tuple[Lower | None, str]:
    """How a node is lowered, or None and the reason why it cannot be."""
    entry = _entry(node)
    if entry is None:
        why = LEFT_OUT.get(node.qualified_op)
        return None, f"there is no CPU kernel for {node.qualified_op}{f': {why}' if why else ''}"
    reason = entry[1](node)
    return (entry[0], "") if reason is None else (None, reason)


def takes_epilogue(node: Node) -> bool:
    """Whether the element-wise nodes that follow can be part of its step."""
    entry = _entry(node)
    return entry is not None and entry[2]


def _entry(node: Node) -> tuple[Lower, Refuse, bool] | None:
    import_family(node.qualified_op)
    return _TABLE.get(node.qualified_op)
