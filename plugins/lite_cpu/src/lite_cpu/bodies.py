"""Control nodes that are no steps of a program: Python runs the control flow, and programs run the bodies."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lite_core.backend import Buffer, Executable, Partition
from lite_core.ir import Array, Graph
from lite_core.memory import HostMemory
from lite_core.memory.scratch import ScratchPool
from lite_core.observing import Observer
from lite_core.schedule.control import ControlExecutable
from lite_core.schedule.profile import RunProfile

__all__ = ["control_executable"]

_HOST = HostMemory()


def control_executable(graph: Graph, compile: Callable[[Graph], Executable]) -> ControlExecutable:
    """Return the executable of a graph that consists of one control node.

    Args:
        graph: the graph.
        compile: compiles a body for the shapes of its inputs.
    """
    pool = ScratchPool()
    return ControlExecutable(Partition(graph.name, graph), lambda body, name: _BodyPlan(body, compile(body), pool))


class _BodyPlan:
    """A body that is compiled as a whole, run on arrays."""

    def __init__(self, graph: Graph, executable: Executable, pool: ScratchPool) -> None:
        self._graph, self._executable, self._pool = graph, executable, pool

    def run(
        self, inputs: Sequence[Array], *, profile: RunProfile | None = None, observer: Observer | None = None
    ) -> list[Array]:
        arguments = [Buffer(v.type, _HOST, array) for v, array in zip(self._graph.inputs, inputs)]
        types = [value.type for value in self._graph.outputs]
        results = [Buffer(type, _HOST, _HOST.allocate(type) if type.is_static else None) for type in types]
        block = self._pool.take(_HOST, self._executable.scratch_bytes)
        self._executable.run(arguments, results, block.at(0, self._executable.scratch_bytes))
        self._pool.give_back(block)
        return [result.data for result in results]
