"""Candidates among the algorithms of a dense convolution, for tournaments."""

from __future__ import annotations

from typing import NamedTuple

from lite_cpu.lowering.context import Lowering
from lite_cpu.lowering.convolution_task import Convolution
from lite_cpu.lowering.filters import Filters
from lite_cpu.lowering.winograd import best_tile, can_filter

__all__ = ["Algorithm", "algorithms", "sizes_of"]

#: The m of Winograd's F(m x m, 3 x 3).
_TILES = (4, 2)


class Algorithm(NamedTuple):
    """An algorithm of a dense convolution.

    Attributes:
        tile: the m of Winograd's F(m x m, 3 x 3); None for a direct convolution.
    """

    tile: int | None = None

    def __str__(self) -> str:
        return "direct" if self.tile is None else f"winograd f{self.tile}x{self.tile}"


def algorithms(lowering: Lowering, task: Convolution, filters: Filters) -> list[Algorithm]:
    """Return the algorithms that a session allows for a convolution, the one that is estimated to be fastest first."""
    refused = _refused_winograd(lowering, task, filters)
    if refused:
        lowering.log.remark(f"direct, not winograd: {refused}")
        return [Algorithm()]
    usual = Algorithm(best_tile(lowering.machine, task.window, task.source.shape, task.target.shape))
    return list(dict.fromkeys([usual, *map(Algorithm, _TILES), Algorithm()]))


def _refused_winograd(lowering: Lowering, task: Convolution, filters: Filters) -> str:
    """Return the reason why a convolution cannot be computed by Winograd's minimal filtering, or an empty string."""
    if lowering.options.exact:
        return "the session asks for exact results"
    if task.pairs or task.halves:
        return "its transforms would lose the precision that 16 bits have"
    if filters.elements is None:
        return "the weights are not known before the run"
    return "" if can_filter(task.window) else "it needs windows of 3 x 3 elements, strides of 1 and one group"


def sizes_of(task: Convolution) -> dict[str, object]:
    """Return the sizes of a convolution by name, which decide what is fastest."""
    window = task.window
    pairs = {
        "image": task.source.shape[2:],
        "kernel": window.kernel,
        "strides": window.strides,
        "dilations": window.dilations,
        "begin": window.begin,
        "end": window.end,
    }
    return {
        "images": task.source.shape[0],
        "groups": window.groups,
        "channels": f"{task.source.shape[1]}>{task.target.shape[1]}",
        **pairs,
    }
