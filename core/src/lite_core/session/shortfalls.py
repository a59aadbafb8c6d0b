"""Properties of a session that its user may not expect: nodes that run slowly, and a precision that is not used."""

from __future__ import annotations

from collections import Counter

from lite_core.ir import Graph
from lite_core.schedule.placement import Placement
from lite_core.schedule.precision import Precision

__all__ = ["shortfalls"]

_MOST_SHOWN = 4


def shortfalls(graph: Graph, placement: Placement, precision: Precision) -> list[str]:
    """Return a line about nodes that run on ``host`` because other devices refuse them, and lines about precision.

    A node with sub-graphs that are planned is not counted, but the nodes inside: ``host`` only decides what runs next.

    Args:
        graph: the model.
        placement: the device of every node.
        precision: the precision that the user allows for every node.
    """
    nodes = [a for i, outer in enumerate(placement.assignments) for a in placement.bodies.get(i, (outer,))]
    refused = Counter((a.op, *a.refusals[0]) for a in nodes if a.device == "host" and a.refusals)
    told = [f"{n} x {op} ({device}: {why})" for (op, device, why), n in refused.most_common()]
    told[_MOST_SHOWN:] = [f"{len(told) - _MOST_SHOWN} more"] if len(told) > _MOST_SHOWN else []
    count = f"{sum(refused.values())} of {len(nodes)} nodes run on host, the slow NumPy references"
    advice = "`lite check MODEL` says what to do"
    lines = [f"{count}: {'; '.join(told)}. {advice}"] if told else []
    devices = {candidate.device.label: candidate.device.details for candidate in placement.candidates}
    for asked in sorted({precision.of_node(a.node) for a in nodes} - {"float32"}):
        of_device = Counter(a.device for a in nodes if precision.of_node(a.node) == asked)
        used = {device: str(devices[device].get(asked, "the model's types")) for device in of_device}
        others = [(device, n) for device, n in of_device.items() if not used[device].startswith(asked)]
        told = [f"{device} computes {n} of {len(nodes)} nodes in {used[device]}" for device, n in others]
        lines += [f"precision {asked} was asked for, but {'; '.join(told)}"] if told else []
    whole = {a.node for a in nodes if a.device != "host"}
    for node in (node for node in graph.nodes if node.subgraphs and node.name in whole):
        found = {precision.of_node(n.name) for body in node.subgraphs for scope in body.walk() for n in scope.nodes}
        text = f"precision: the body of {node.name!r} runs as a whole, in one precision; on host it would run by parts"
        lines += [text] if found - {precision.of_node(node.name), precision.default} else []
    return lines
