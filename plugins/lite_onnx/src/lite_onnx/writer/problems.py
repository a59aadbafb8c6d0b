"""Nodes that cannot be expressed in ONNX, collected for one error."""

from __future__ import annotations

from lite_core.errors import OperatorProblem, UnsupportedOperatorError
from lite_core.ir import Node

__all__ = ["Problems", "Unwritable"]


class Unwritable(ValueError):
    """A node cannot be expressed in ONNX.

    Args:
        reason: the cause, for the user.
        remedy: advice for the user.
    """

    def __init__(self, reason: str, remedy: str = "") -> None:
        super().__init__(reason)
        self.reason, self.remedy = reason, remedy


class Problems:
    """The nodes of a graph that cannot be written."""

    def __init__(self, graph_name: str) -> None:
        self._graph_name = graph_name
        self._found: dict[tuple[str, str, str], list[str]] = {}

    def add(self, node: Node, problem: Unwritable) -> None:
        """Add a node that cannot be written."""
        self._found.setdefault((node.qualified_op, problem.reason, problem.remedy), []).append(node.name)

    def raise_if_any(self) -> None:
        """Raise one error for all nodes.

        Raises:
            UnsupportedOperatorError: nodes cannot be written.
        """
        if self._found:
            raise UnsupportedOperatorError(
                f"graph {self._graph_name!r} cannot be written as ONNX",
                [OperatorProblem(op, why, tuple(names), cure) for (op, why, cure), names in self._found.items()],
            )
