"""The verifier of a graph's structural rules; ``ops.verify`` also checks operator signatures."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from lite_core.errors import GraphError
from lite_core.ir.graph import Graph, Node, Value
from lite_core.ir.types import TensorType

__all__ = ["verify_structure"]

#: Yields the problems of one node.
CheckNode = Callable[[Node], Iterable[str]]


def verify_structure(graph: Graph, check_node: CheckNode | None = None) -> None:
    """Check a graph and its sub-graphs against structural rules.

    Rules:
        1. Every value is defined once: as an input, a constant, or the output of one node.
        2. A node uses only values defined before it, in its graph or in an enclosing graph.
        3. A node writes at least one value.
        4. Names of values are not empty, and unique in a graph and its enclosing graphs.
        5. A constant's array has the type that its value declares.
        6. Graph outputs are defined.
        7. ``check_node`` reports no problem with a node, for example with its operator's signature.
        8. The graph's name is a text, and its metadata a dict.

    Raises:
        GraphError: lists every problem found, not only the first.
    """
    texts = {"name": (graph.name, str), "metadata": (graph.metadata, dict)}
    problems = [f"its {k} is {v!r:.80}, expected a {t.__name__}" for k, (v, t) in texts.items() if not isinstance(v, t)]
    _verify(graph, set(), set(), problems, check_node)
    if problems:
        listed = "\n  ".join(problems)
        raise GraphError(f"graph {graph.name!r} is not valid, {len(problems)} problem(s):\n  {listed}")


def _verify(
    graph: Graph, visible: set[Value], names: set[str], problems: list[str], check_node: CheckNode | None
) -> None:
    """Add the problems of a graph to ``problems``, and what the graph defines to ``visible`` and ``names``."""

    def define(value: Value, where: str) -> None:
        if value in visible:
            problems.append(f"value {value.name!r} is defined a second time by {where}")
        elif not value.name:
            problems.append(f"a value defined by {where} has no name")
        elif value.name in names:
            problems.append(f"the name {value.name!r}, given by {where}, belongs to another value")
        visible.add(value)
        names.add(value.name)

    for value in graph.inputs:
        define(value, f"the inputs of graph {graph.name!r}")
    for value, array in graph.constants.items():
        define(value, f"the constants of graph {graph.name!r}")
        found = TensorType.of_array(array)
        if value.type != found:
            problems.append(f"constant {value.name!r} declares {value.type}, its array is {found}")
    for node in graph.nodes:
        for used in node.inputs:
            if used is not None and used not in visible:
                problems.append(f"{node.describe()} uses {used.name!r} before it is defined")
        if all(v is None for v in node.outputs):
            problems.append(f"{node.describe()} writes nothing, every node must have at least one output")
        if check_node is not None:
            problems.extend(f"{node.describe()}: {problem}" for problem in check_node(node))
        for subgraph in node.subgraphs:
            _verify(subgraph, set(visible), set(names), problems, check_node)
        for output in node.outputs:
            if output is not None:
                define(output, f"node {node.name!r} ({node.qualified_op})")
    undefined = [value.name for value in graph.outputs if value not in visible]
    problems += [f"the output {name!r} of graph {graph.name!r} is not defined" for name in undefined]
