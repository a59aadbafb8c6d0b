"""The segments of a compiled program, for observers of its runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lite_compiler.observing import LoweredGroup, Segment, find_segments
from lite_core.ir import Graph, Value
from lite_cpu.lowering.steps import PlannedStep
from lite_cpu.tensors import ARENA, FIRST_ARGUMENT, Storage, Tensor

__all__ = ["segments_of"]


def segments_of(
    graph: Graph,
    groups: Sequence[LoweredGroup[Tensor]],
    steps: Sequence[PlannedStep],
    outputs: Mapping[Value, Tensor],
) -> list[Segment]:
    """Return the segments of a program whose memory is planned; for the arguments see :func:`find_segments`."""
    first_output = FIRST_ARGUMENT + len(graph.inputs)

    def memory_of(storage: Storage) -> int | None:
        if storage.base == ARENA:
            return 0
        number = storage.base - first_output
        return 1 + number if 0 <= number < len(graph.outputs) else None

    return find_segments(groups, [step.tensors for step in steps], outputs, graph, memory_of)
