"""What cannot be said in ONNX, collected for one error."""

from __future__ import annotations

from lite_core.errors import OperatorProblem, UnsupportedOperatorError
from lite_core.ir import Node

__all__ = ["Problems", "Unwritable"]


class Unwritable(ValueError):
    """A node cannot be said in ONNX.

    Args:
        reason: why not.
        remedy: what the reader can do.
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
        """A node and why it cannot be written."""
        self._found.setdefault((node.qualified_op, problem.reason, problem.remedy), []).append(node.name)

    def raise_if_any(self) -> None:
        """One error for all of them.

        Raises:
            UnsupportedOperatorError: there are some.
        """
        if self._found:
            raise UnsupportedOperatorError(
                f"graph {self._graph_name!r} cannot be written as ONNX",
                [OperatorProblem(op, why, tuple(names), cure) for (op, why, cure), names in self._found.items()],
            )
