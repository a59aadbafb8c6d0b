"""Selection of the nodes that a graph needs, in an order in which they can run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from onnx import GraphProto, NodeProto

from lite_core.errors import ModelFormatError

__all__ = ["in_order"]


def in_order(nodes: Sequence[NodeProto], wanted: Iterable[str], path: Path) -> list[NodeProto]:
    """Return the nodes that the wanted names depend on, sorted topologically if their order is not valid.

    Other nodes are ignored, also if Lite cannot lower them.

    Args:
        nodes: the nodes of a graph or a function.
        wanted: the names of its outputs.
        path: the model's file, for messages.

    Raises:
        ModelFormatError: the nodes are in a cycle, or two compute the same name.
    """
    makers: dict[str, int] = {}
    for position, node in enumerate(nodes):
        for name in filter(None, node.output):
            if name in makers:
                raise ModelFormatError(f"model {str(path)!r} is damaged: {name!r} is computed twice")
            makers[name] = position
    needed: dict[int, set[int]] = {}  # by node: the nodes that compute what it reads
    waiting = [makers[name] for name in wanted if name in makers]
    while waiting:
        position = waiting.pop()
        if position not in needed:
            needed[position] = {makers[name] for name in _reads(nodes[position]) if name in makers}
            waiting.extend(needed[position])
    if all(maker < position for position, read in needed.items() for maker in read):
        return [nodes[position] for position in sorted(needed)]
    return [nodes[position] for position in _sorted(needed, nodes, path)]


def _sorted(needed: dict[int, set[int]], nodes: Sequence[NodeProto], path: Path) -> list[int]:
    """Sort positions topologically, so that each node comes after the nodes that it reads from."""
    readers: dict[int, list[int]] = {position: [] for position in needed}
    for position in sorted(needed):
        for maker in needed[position]:
            readers[maker].append(position)
    missing = {position: len(read) for position, read in needed.items()}
    ready = [position for position in sorted(needed) if not missing[position]]
    for position in ready:  # the list grows during the loop
        for reader in readers[position]:
            missing[reader] -= 1
            if not missing[reader]:
                ready.append(reader)
    if len(ready) < len(needed):
        stuck = nodes[next(position for position in sorted(needed) if missing[position])]
        name = stuck.name or next(filter(None, stuck.output))
        raise ModelFormatError(f"model {str(path)!r} is damaged: node {name!r} is in a cycle, or depends on one")
    return ready


def _reads(node: NodeProto) -> Iterator[str]:
    """Yield every name that a node reads, including names that its graph attributes use from enclosing graphs."""
    yield from node.input
    for attribute in node.attribute:
        for graph in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
            yield from _free_names(graph)


def _free_names(graph: GraphProto) -> Iterator[str]:
    """Yield names that a graph uses but does not define. It may redefine names of the enclosing graph."""
    own = {value.name for value in (*graph.input, *graph.initializer)}
    own.update(sparse.values.name for sparse in graph.sparse_initializer)
    own.update(name for node in graph.node for name in node.output)
    for inner in graph.node:
        yield from (name for name in _reads(inner) if name not in own)
    yield from (output.name for output in graph.output if output.name not in own)
