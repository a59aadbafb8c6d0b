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
    refused = Counter((a.op, *a.refusals[0]) for a in nodes if a.device == "host" and a.refusals)
    lines = []
    if refused:
        shown = [f"{n} x {op} ({device}: {why})" for (op, device, why), n in refused.most_common(_MOST_SHOWN)]
        more = ["others"] if len(refused) > _MOST_SHOWN else []
        lines.append(
            f"{sum(refused.values())} of {len(nodes)} nodes run on host, the slow NumPy references: "
            f"{'; '.join(shown + more)}. `lite check MODEL` lists them, `lite backends` what else could be named"
        )
    devices = {candidate.device.label: candidate.device for candidate in placement.candidates}
    computed: dict[str, Counter[tuple[str, str]]] = {}
    for assignment in nodes:
        asked = precision.of_node(assignment.node)
        used = devices[assignment.device].details.get(asked, "the model's types")
        if asked != "float32" and not used.startswith(asked):
            computed.setdefault(asked, Counter())[assignment.device, used] += 1
    for asked, counts in computed.items():
        told = [f"{device} computes {n} of {len(nodes)} nodes in {used}" for (device, used), n in counts.items()]
        lines.append(f"precision {asked} was asked for, but {'; '.join(told)}")
    return lines
