"""All of a compiled partition, as data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lite_core.backend import Interval
from lite_core.ir import Graph
from lite_opencl.compiled.faults import Faults
from lite_opencl.compiled.launches import Launch
from lite_opencl.device.memory import DeviceArray
from lite_opencl.tuning.table import Choice

__all__ = ["CompiledGraph"]


@dataclass(frozen=True)
class CompiledGraph:
    """All that an executable is made of.

    Attributes:
        graph: the partition.
        launches: kernels in their order.
        constants: what their constants are, by number.
        names: for each of them the name of the constant of the graph that it is a copy of; None where it was packed.
        arena_bytes: size of the memory that tensors between kernels share.
        lives: what lies there, from which launch to which.
        faults: what data may turn out to be wrong, if there is such data.
        choices: what was known to be fastest, by problem.
        is_tuned: whether what was not known was measured.
    """

    graph: Graph
    launches: Sequence[Launch]
    constants: Sequence[DeviceArray]
    names: Sequence[str | None]
    arena_bytes: int
    lives: Sequence[Interval]
    faults: Faults | None = None
    choices: Mapping[str, Choice] = field(default_factory=dict)
    is_tuned: bool = False

    @property
    def programs(self) -> list[str]:
        """Keys of the programs that it runs, each once."""
        return list(dict.fromkeys(launch.program for launch in self.launches))
