"""The nodes of a step that diverges, one by one and without fusion, and the case of the one that is at fault."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from lite_core.errors import LiteError
from lite_core.ir import Graph, Node
from lite_core.ops.evaluate import evaluate_graph
from lite_core.schedule import Plan
from lite_tools.apart import plan_apart
from lite_tools.comparing.regions import Region
from lite_tools.comparing.sides import Side
from lite_tools.comparing.values import Key

__all__ = ["Alone", "StoredSource", "region_alone"]

Array = np.ndarray[Any, Any]


class StoredSource:
    """True values in memory."""

    def __init__(self, arrays: Mapping[str, Array]) -> None:
        self._arrays = arrays

    def get(self, key: Key) -> Array | None:
        """Return a value; None for one that is unknown, or computed a second time."""
        return None if key.occurrence else self._arrays.get(key.value)

    def __enter__(self) -> StoredSource:
        return self

    def __exit__(self, *error: object) -> None:
        pass


class Alone(NamedTuple):
    """A region as a graph, with a plan in which each node is compiled by itself, and the results of the references.

    Attributes:
        graph: the nodes; the results of all of them are outputs.
        plan: the plan on the devices of the side in doubt.
        inputs: the region's inputs by name.
        results: what the references compute from them, by name.
    """

    graph: Graph
    plan: Plan
    inputs: Mapping[str, Array]
    results: Mapping[str, Array]


def region_alone(side: Side, region: Region, arrays: Mapping[str, Array]) -> Alone | None:
    """Compile the nodes of a region separately, on the devices that run them in the side's plan.

    Args:
        side: the side in doubt.
        region: a region of the side's graph.
        arrays: the true inputs of the region, by name.

    Returns:
        None if that is impossible: the region is part of a body, or a node does not compile by itself.
    """
    plan = side.plan
    if region.graph is not plan.graph:
        return None
    graph = graph_of(region.nodes, region, arrays)
    positions = {id(node): index for index, node in enumerate(plan.graph.nodes)}
    chosen = [positions[id(node)] for node in region.nodes]
    try:
        own = plan_apart(side.session.planner, graph, plan.placement, chosen)
        results = evaluate_graph(graph, [arrays[value.name] for value in graph.inputs])
    except LiteError:
        return None
    return Alone(graph, own, arrays, dict(zip([value.name for value in graph.outputs], results)))


def graph_of(nodes: Sequence[Node], region: Region, arrays: Mapping[str, Array]) -> Graph:
    """Return nodes of a region as a graph whose inputs have the types of arrays, and whose outputs are all results."""
    made = {value for node in nodes for value in node.outputs if value is not None}
    read = dict.fromkeys(value for node in nodes for value in node.used() if value not in made)
    graph = Graph(
        "part",
        inputs=[value for value in read if value.name not in region.constants],
        outputs=[value for node in nodes for value in node.outputs if value is not None],
        nodes=list(nodes),
        constants={value: region.constants[value.name] for value in read if value.name in region.constants},
    ).copy()
    from lite_core.ops.infer import infer_graph

    infer_graph(graph, {value.name: value.type.with_shape(arrays[value.name].shape) for value in graph.inputs})
    return graph
