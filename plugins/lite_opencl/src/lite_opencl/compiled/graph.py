"""A compiled partition as data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lite_compiler.tournaments.choice import Choice
from lite_core.backend import Interval
from lite_core.ir import Graph
from lite_opencl.compiled.faults import Faults
from lite_opencl.compiled.launches import Launch
from lite_opencl.device.memory import DeviceArray

if TYPE_CHECKING:
    from lite_compiler.observing import Segment

__all__ = ["CompiledGraph"]


@dataclass(frozen=True)
class CompiledGraph:
    """All data of an executable.

    Attributes:
        graph: the partition.
        launches: the calls of kernels, in order.
        constants: the storage of the constants that launches refer to by number.
        names: for each of them the name of the graph's constant that it is a copy of; None for packed constants.
        arena_bytes: size of the memory that tensors between kernels share.
        lifetimes: sizes and lifetimes of the tensors in the arena, in numbers of launches.
        segments: returns the segments of the launches, for observers.
        faults: the faults that data may cause; None if there are none.
        choices: the candidates that were known to be fastest, by problem.
        is_tuned: True if unknown choices were measured.
    """

    graph: Graph
    launches: Sequence[Launch]
    constants: Sequence[DeviceArray]
    names: Sequence[str | None]
    arena_bytes: int
    lifetimes: Sequence[Interval]
    segments: Callable[[], Sequence[Segment]]
    faults: Faults | None = None
    choices: Mapping[str, Choice] = field(default_factory=dict)
    is_tuned: bool = False

    @property
    def programs(self) -> list[str]:
        """The keys of its programs, without repetitions."""
        return list(dict.fromkeys(launch.program for launch in self.launches))
