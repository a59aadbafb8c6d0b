"""Grouping of dequantized operands with the steps that read them, so that memory holds 8-bit integers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lite_compiler.fusion import Group
from lite_core.ir import DType, Node, Value

__all__ = ["absorb_dequantized"]

_BYTES = (DType.INT8, DType.UINT8)


def absorb_dequantized(groups: Sequence[Group], uses: Mapping[Value, int]) -> list[Group]:
    """Move each DequantizeLinear of bytes into the tail that reads its result, from a group that it ends.

    In a residual addition of quantized networks, one operand is in registers, and the other one is dequantized:
    the addition then reads a quarter of the bytes.

    Args:
        groups: the groups of a graph.
        uses: how often each value is read.

    Returns:
        The groups that remain.
    """
    last = {group.output: group for group in groups if _dequantizes(group.nodes[-1]) and uses[group.output] == 1}
    emptied: set[Group] = set()
    for group in groups:
        tail = []
        for node in group.tail:
            for value in node.inputs:
                other = None if value is None else last.get(value)
                if other is None or other is group:
                    continue
                tail.append(other.nodes[-1])
                if other.tail:
                    other.tail.pop()
                else:
                    emptied.add(other)
            tail.append(node)
        group.tail = tail
    return [group for group in groups if group not in emptied]


def _dequantizes(node: Node) -> bool:
    x = node.inputs[0] if node.inputs else None
    return node.qualified_op == "DequantizeLinear" and x is not None and x.dtype in _BYTES
