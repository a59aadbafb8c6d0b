"""The size that a model's functions expand to, counted before any of them is expanded.

Functions that call one another twice each double the number of nodes with every level: two kilobytes can stand for more
nodes than any memory holds. Counting them takes no longer than reading the file, because each function is counted once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from onnx import FunctionProto, GraphProto, NodeProto

from lite_core.errors import ModelFormatError
from lite_onnx.lowering.scope import FunctionKey

__all__ = ["MAX_DEPTH", "MAX_NODES", "check_expansion"]

#: The maximum depth of nested graphs and functions; deeper ones are a sign of a damaged model.
MAX_DEPTH = 40
#: The maximum number of nodes, besides those that the model's own graphs contain, that functions and loops expand to.
MAX_NODES = 100_000


def check_expansion(graph: GraphProto, functions: Mapping[FunctionKey, FunctionProto], path: Path) -> None:
    """Check the size of a model with all calls of its functions replaced by the functions' nodes.

    Args:
        graph: the model's graph.
        functions: the functions that the model defines.
        path: the model's file, for messages.

    Raises:
        ModelFormatError: functions call themselves, are nested too deep, or expand to too many nodes.
    """
    if functions:
        _Counter(functions, path).check(graph)


class _Counter:
    def __init__(self, functions: Mapping[FunctionKey, FunctionProto], path: Path) -> None:
        self._functions = functions
        self._path = path
        #: For each function that has been counted: the nodes it expands to, and the depth of what it contains.
        self._counted: dict[FunctionKey, tuple[int, int]] = {}
        self._open: set[FunctionKey] = set()

    def check(self, graph: GraphProto) -> None:
        calls = (key for node in _every_node(graph.node) if (key := self._called(node)) is not None)
        count = sum(self._function(key, 1)[0] for key in calls)
        if count > MAX_NODES:
            raise self._error(f"has functions that expand to {count} nodes, more than {MAX_NODES}")

    def _called(self, node: NodeProto) -> FunctionKey | None:
        key = ("" if node.domain == "ai.onnx" else node.domain, node.op_type, node.overload)
        return key if key in self._functions else None

    def _function(self, key: FunctionKey, depth: int) -> tuple[int, int]:
        """Return the nodes that one call expands to, and the depth below it."""
        if key in self._open:
            raise self._error(f"is damaged: the function {key[1]!r} calls itself")
        count, height = self._counted.get(key, (0, 0))
        if depth + height > MAX_DEPTH:
            raise self._error("is damaged: its functions are nested too deep")
        if key not in self._counted:
            self._open.add(key)
            for node in _every_node(self._functions[key].node):
                called = self._called(node)
                below = (0, 0) if called is None else self._function(called, depth + 1)
                count, height = count + 1 + below[0], max(height, 1 + below[1])
            self._open.remove(key)
            self._counted[key] = count, height
        return count, height

    def _error(self, problem: str) -> ModelFormatError:
        return ModelFormatError(f"model {str(self._path)!r} {problem}")


def _every_node(nodes: Iterable[NodeProto]) -> Iterator[NodeProto]:
    """Yield nodes, and the nodes in their graphs; protocol buffers limit how deep graphs are nested."""
    for node in nodes:
        yield node
        for attribute in node.attribute:
            for graph in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
                yield from _every_node(graph.node)
