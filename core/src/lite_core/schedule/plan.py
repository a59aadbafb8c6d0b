"""A plan: compiled partitions and the copies between them, for one input signature; and running it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lite_core.backend import Buffer, Interval, Memory, Options, Partition, ViewsMemory
from lite_core.errors import InputError
from lite_core.ir import Graph, Value
from lite_core.memory import HostMemory, read_only
from lite_core.memory.arena import plan_arena
from lite_core.memory.scratch import ScratchPool
from lite_core.schedule.compile import CompiledPartition, compile_partition
from lite_core.schedule.control import ControlExecutable, PlanBody
from lite_core.schedule.partition import PartitionIdentities, split
from lite_core.schedule.placement import Placement
from lite_core.schedule.profile import RunProfile
from lite_core.schedule.steps import ControlStep, CopyStep, PartitionStep, Place, Run, Step

__all__ = ["Plan", "copy_into", "make_plan"]

Array = np.ndarray[Any, Any]

_HOST = HostMemory()


def make_plan(
    graph: Graph,
    placement: Placement,
    options: Options,
    pool: ScratchPool | None = None,
    plan_body: PlanBody | None = None,
    prefix: str = "",
    identities: PartitionIdentities | None = None,
) -> Plan:
    """Cut a graph into partitions, and compile them.

    Args:
        graph: the graph with the types of the signature: every input's dimensions known.
        placement: the device of every node of ``graph``.
        options: what the session allows.
        pool: where the runs take their memory from.
        plan_body: makes the plans of sub-graphs, once the shapes of what goes into them are known; None leaves
            sub-graphs to the backend of the node that has them.
        prefix: what the names of the partitions begin with.
        identities: those of the partitions that the graph has for other shapes.

    Raises:
        CompileError: a backend failed to compile; names the backend and the partition.
    """
    parts = split(graph, placement, prefix, identities)
    compiled = [compile_partition(placed, options, plan_body) for placed in parts]
    return Plan(graph, placement, compiled, pool)


class Plan:
    """What runs when the inputs have given shapes.

    Tensors that only live in a run share an arena, one for each memory space, that goes from run to run.

    Args:
        graph: the graph; the types of its inputs, and of what passes between partitions, are those of the signature.
        placement: the device of every node.
        compiled: the partitions, in an order in which they can run.
        pool: where the runs take their memory from.
    """

    def __init__(
        self,
        graph: Graph,
        placement: Placement,
        compiled: Sequence[CompiledPartition],
        pool: ScratchPool | None = None,
    ) -> None:
        self.graph = graph
        self.placement = placement
        self.compiled = tuple(compiled)
        self._pool = pool or ScratchPool()
        self.steps, at_home = _link(graph, compiled)
        self.arenas = _place(self.steps, set(at_home.values()))
        self._inputs = list(graph.inputs)
        produced = {value for step in self.steps for value in step.writes}
        #: For each output of the graph where it is found, None for a constant, and whether it may be handed out without
        #: a copy: storage that was made for it, not a graph input, and not a value that an earlier output is, too.
        self._outputs = [
            (value, at_home.get(value), at_home.get(value) in produced and value not in graph.outputs[:index])
            for index, value in enumerate(graph.outputs)
        ]

    @property
    def partitions(self) -> list[tuple[Partition, str]]:
        """Each partition with the label of its device, in the order they run."""
        return [(c.part, c.label) for c in self.compiled]

    def run(
        self,
        inputs: Sequence[Array],
        out: Mapping[str, Array] | None = None,
        profile: RunProfile | None = None,
    ) -> list[Array]:
        """Run the plan.

        Args:
            inputs: an array for each graph input, in order, of the signature's types.
            out: arrays to write outputs into, by name; the others are newly allocated. They share memory
                neither with inputs nor with each other.
            profile: told the time of each partition, copy and kernel.

        Returns:
            One array per graph output, in order. Each is the caller's own: it shares memory with no
            input, constant, other output or later run.
        """
        buffers = {v: Buffer(v.type, _HOST, read_only(array)) for v, array in zip(self._inputs, inputs)}
        run = Run(buffers, [self._pool.take(memory, size) for memory, size in self.arenas], out, profile)
        for step in self.steps:
            step.run(run)
        outputs = [self._collect(value, found, is_own, run) for value, found, is_own in self._outputs]
        for block in run.blocks:  # after a failure they are not kept: who knows what still writes there
            self._pool.give_back(block)
        return outputs

    def _collect(self, value: Value, found: Value | None, is_own: bool, run: Run) -> Array:
        """A graph output as an array that belongs to the caller."""
        if found is None:
            array = self.graph.constants[value].copy()
        else:
            buffer = run.buffers[found]
            # Storage that a backend put in the place of the buffer's own may be anybody's: it is copied as well.
            array = buffer.data if is_own and buffer.holds_its_own else buffer.data.copy()
        target = run.out.get(value.name) if run.out else None
        return array if target is None or target is array else copy_into(target, array, value.name)

    def describe(self) -> str:
        """The plan in words: the steps in their order, and the arenas."""
        shapes = ", ".join(repr(v) for v in self._inputs)
        lines = [f"plan for {shapes}"]
        lines += [f"  {number} {step.describe()}" for number, step in enumerate(self.steps)]
        lines += [f"  arena in {memory.space} memory: {size} bytes" for memory, size in self.arenas]
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.describe()


def _link(graph: Graph, compiled: Sequence[CompiledPartition]) -> tuple[list[Step], dict[Value, Value]]:
    """The steps, with a copy wherever a value is needed in another memory space, and where each output is found."""
    steps: list[Step] = []
    leaving: set[Value] = set()
    #: For each value what stands for it in each memory space, and that memory.
    homes: dict[Value, dict[str, tuple[Value, Memory]]] = {v: {_HOST.space: (v, _HOST)} for v in graph.inputs}

    def in_memory(value: Value, memory: Memory) -> Value:
        known = homes[value]
        if memory.space not in known:
            source, origin = known.get(_HOST.space) or next(iter(known.values()))
            copy = Value(f"{value.name}@{memory.space}", value.type)
            steps.append(CopyStep(source, copy, origin, memory))
            leaving.add(source)
            known[memory.space] = (copy, memory)
        return known[memory.space][0]

    for partition in compiled:
        memory = partition.memory
        reads = [in_memory(value, memory) for value in partition.part.graph.inputs]
        is_control = isinstance(partition.executable, ControlExecutable)
        steps.append((ControlStep if is_control else PartitionStep)(partition, reads))
        homes.update((value, {memory.space: (value, memory)}) for value in partition.part.graph.outputs)
    found = {value: in_memory(value, _HOST) for value in graph.outputs if value in homes}
    for step in steps:
        if isinstance(step, PartitionStep):
            step.leave(leaving)
    return steps, found


def _place(steps: Sequence[Step], outputs: set[Value]) -> list[tuple[Memory, int]]:
    """Give everything that only lives in a run a place in an arena; returns the arenas: memory and size in bytes."""
    last_reads = _last_reads(steps)
    wanted: dict[str, list[tuple[Step, Value | None, Interval]]] = {}
    arenas: list[tuple[Memory, int]] = []
    for number, step in enumerate(steps):
        memory = step.memory
        if not isinstance(memory, ViewsMemory):  # every tensor has to be allocated for itself
            if step.scratch_bytes:
                step.scratch = Place(len(arenas), 0)
                arenas.append((memory, step.scratch_bytes))
            continue
        here = wanted.setdefault(memory.space, [])
        if step.scratch_bytes:
            here.append((step, None, Interval(step.scratch_bytes, number, number)))
        for value in step.writes:
            if value not in outputs and value.type.is_static and not step.has_storage_for(value):
                size = int(value.type.size or 0) * value.dtype.itemsize  # type: ignore[arg-type]
                here.append((step, value, Interval(size, number, last_reads.get(value, number))))
    for entries in wanted.values():
        plan = plan_arena([interval for _, _, interval in entries])
        for (step, result, _), offset in zip(entries, plan.offsets):
            place = Place(len(arenas), offset)
            if result is None:
                step.scratch = place
            else:
                step.places[result] = place
        if entries:
            arenas.append((entries[0][0].memory, max(plan.size, 1)))  # empty tensors have a place, too
    return arenas


def _last_reads(steps: Sequence[Step]) -> dict[Value, int]:
    """For each value the number of the last step that reads it, or what may share its storage."""
    last = {value: number for number, step in enumerate(steps) for value in step.reads}
    for step in steps:
        if isinstance(step, CopyStep) and step.may_share:
            source, result = step.reads[0], step.writes[0]
            last[source] = max(last[source], last.get(result, 0))
    return last


def copy_into(target: Array, array: Array, name: str) -> Array:
    """Copy an output into the array the caller gave for it, and return that.

    Raises:
        InputError: the caller's array has another shape; nothing is broadcast.
    """
    if target.shape != array.shape:
        raise InputError(
            f"out[{name!r}] must have shape {list(array.shape)} for these inputs, has {list(target.shape)}"
        )
    np.copyto(target, array)
    return target
