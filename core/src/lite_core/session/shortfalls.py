"""Properties of a session that its user may not expect: nodes that run slowly, and a precision that is not used."""

from __future__ import annotations

from collections import Counter

from lite_core.schedule.placement import Placement
from lite_core.schedule.precision import Precision

__all__ = ["shortfalls"]

_MOST_SHOWN = 4


def shortfalls(placement: Placement, precision: Precision) -> list[str]:
    """Return a line about nodes that run on ``host`` because other devices refuse them, and one for each precision.

    A node with sub-graphs that are planned is not counted, but the nodes inside: ``host`` only decides what runs next.

    Args:
        placement: the device of every node.
        precision: the precision that the user allows for every node.
    """
    nodes = [a for i, outer in enumerate(placement.assignments) for a in placement.bodies.get(i, (outer,))]
    devices = {candidate.device.label: candidate.device for candidate in placement.candidates}
    refused: Counter[tuple[str, str, str]] = Counter()
    computed: dict[str, Counter[tuple[str, str]]] = {}
    for node in nodes:
        if node.device == "host" and node.refusals:
            refuser, reason = node.refusals[0]
            refused[node.op, refuser, reason] += 1
        asked = precision.of_node(node.node)
        used = devices[node.device].details.get(asked, "the model's types")
        if asked != "float32" and not used.startswith(asked):
            computed.setdefault(asked, Counter())[node.device, used] += 1
    lines = []
    if refused:
        told = [f"{n} x {op} ({device}: {why})" for (op, device, why), n in refused.most_common(_MOST_SHOWN)]
        told += [f"{len(refused) - _MOST_SHOWN} more"] if len(refused) > _MOST_SHOWN else []
        count = f"{sum(refused.values())} of {len(nodes)} nodes run on host, the slow NumPy references"
        advice = "`lite check MODEL` lists them, `lite backends` the backends that could be named beside"
        lines.append(f"{count}: {'; '.join(told)}. {advice}")
    for asked, counts in computed.items():
        told = [f"{device} computes {n} of {len(nodes)} nodes in {used}" for (device, used), n in counts.items()]
        lines.append(f"precision {asked} was asked for, but {'; '.join(told)}")
    return lines
