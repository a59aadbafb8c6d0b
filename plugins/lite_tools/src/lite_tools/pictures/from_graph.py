"""The picture of a graph: a box for each node, frames for fused nodes and for the bodies of control flow."""

from __future__ import annotations

from dataclasses import replace

from lite_core.ir import Graph, Node, Value
from lite_core.ir.attributes import format_attribute
from lite_tools.pictures.annotations import Annotations, KernelUse, kernel_titles
from lite_tools.pictures.picture import Edge, Group, Picture, PictureNode, error_text, time_text

__all__ = ["picture_of_graph"]

Facts = list[tuple[str, str]]


def picture_of_graph(graph: Graph, known: Annotations | None = None) -> Picture:
    """Return the picture of a graph with its sub-graphs.

    Nodes that one kernel computes form a group, and so do the nodes of a sub-graph. Constants have no boxes; the facts
    of a node list them among its inputs.
    """
    drawing = _Drawing(known or Annotations())
    drawing.add_graph(graph, None)
    return Picture(graph.name, drawing.nodes, drawing.groups, drawing.edges)


class _Drawing:
    """A picture while it is made."""

    def __init__(self, known: Annotations) -> None:
        self.nodes: list[PictureNode] = []
        self.groups: list[Group] = []
        self.edges: list[Edge] = []
        self._known = known
        self._kernels = kernel_titles(known.kernels)
        self._producers: dict[Value, int] = {}

    def add_graph(self, graph: Graph, group: int | None) -> list[int]:
        """Add a graph's nodes; return the indices of the boxes that compute its outputs."""
        for value in graph.inputs:
            facts = (("type", str(value.type)),)
            self._producers[value] = len(self.nodes)
            self.nodes.append(PictureNode(value.name, str(value.type), "input", group, facts=facts))
        groups = self._kernel_groups(graph, group)
        for node in graph.nodes:
            self._add_node(node, groups.get(node.name, group), group)
        for value in graph.outputs if group is None else ():
            self.nodes.append(PictureNode(value.name, str(value.type), "output", group))
            self._connect(value, len(self.nodes) - 1)
        return [self._producers[value] for value in graph.outputs if value in self._producers]

    def _kernel_groups(self, graph: Graph, outer: int | None) -> dict[str, int]:
        """Add a group for each kernel that computes several nodes of the graph; return the groups by node."""
        names = {node.name for node in graph.nodes}
        uses: dict[frozenset[str], list[KernelUse]] = {}
        for kernel in self._known.kernels:
            uses.setdefault(frozenset(names.intersection(kernel.nodes)), []).append(kernel)
        groups: dict[str, int] = {}
        for members, kernels in uses.items():
            if len(members) > 1 and not members.intersection(groups):
                times = [kernel.seconds for kernel in kernels if kernel.seconds is not None]
                title = " + ".join(dict.fromkeys(kernel.kernel for kernel in kernels))
                groups.update(dict.fromkeys(members, len(self.groups)))
                time = f" · {time_text(sum(times))}" if times else ""
                self.groups.append(Group(title + time, "kernel", outer))
        return groups

    def _add_node(self, node: Node, group: int | None, outer: int | None) -> None:
        bodies = [(name, a) for name, a in node.attributes.items() if isinstance(a, Graph)]
        ends: list[int] = []
        for name, body in bodies:
            title = f"{name} of {node.name}" if node.name else f"{name} of {node.qualified_op}"
            self.groups.append(Group(title, "body", outer))
            ends += self.add_graph(body, len(self.groups) - 1)
        index = len(self.nodes)
        self.nodes.append(self._described(node, group))
        for value in dict.fromkeys(v for v in node.inputs if v is not None):
            self._connect(value, index)
        self.edges += [Edge(end, index, "result of the sub-graph") for end in dict.fromkeys(ends)]
        self._producers.update((value, index) for value in node.outputs if value is not None)

    def _connect(self, value: Value, target: int) -> None:
        source = self._producers.get(value)
        if source is not None:  # None for constants
            self.edges.append(Edge(source, target, f"{value.name}: {value.type}"))

    def _described(self, node: Node, group: int | None) -> PictureNode:
        name, known = node.name, self._known
        kernels = self._kernels.get(name, [])
        times = [kernel.seconds for kernel in kernels if kernel.seconds is not None]
        device = known.devices.get(name) or next((kernel.device for kernel in kernels), "")
        error = known.errors.get(name)
        drawn = PictureNode(
            name,
            node.qualified_op,
            group=group,
            device=device,
            seconds=sum(times) if times else None,
            error=error.size if error else None,
            status=error.status if error else "",
        )
        return replace(drawn, facts=tuple(self._facts(node, drawn, kernels)))

    def _facts(self, node: Node, drawn: PictureNode, kernels: list[KernelUse]) -> Facts:
        facts: Facts = [("operator", node.qualified_op), ("name", node.name)]
        if node.origin is not None:
            facts.append(("origin", str(node.origin)))
        if drawn.device:
            facts.append(("device", drawn.device))
        facts += [("refused by", reason) for reason in self._known.refusals.get(node.name, ())]
        for kernel in kernels:
            others = f", with {len(kernel.nodes) - 1} other node(s)" if len(kernel.nodes) > 1 else ""
            time = "" if kernel.seconds is None else f", {time_text(kernel.seconds)}"
            facts.append(("kernel", f"{kernel.kernel}{time}{others}"))
        if (error := self._known.errors.get(node.name)) is not None:
            size = "" if error.size is None else f"{error_text(error.size)} of the largest element"
            facts.append(("error", ": ".join(filter(None, (error.status, size)))))
            facts += [("reason", error.reason)] if error.reason else []
        facts += [("input", f"{v.name}: {v.type}") for v in node.inputs if v is not None]
        facts += [("output", f"{v.name}: {v.type}") for v in node.outputs if v is not None]
        plain = [(n, a) for n, a in node.attributes.items() if not isinstance(a, Graph)]
        return facts + [(name, format_attribute(attribute)) for name, attribute in plain]
