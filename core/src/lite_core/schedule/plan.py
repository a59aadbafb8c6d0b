"""Plans: compiled partitions and the copies between them for one input signature."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from lite_core.backend import Buffer, Interval, Memory, Options, Partition, ViewsMemory
from lite_core.deadline import check_time
from lite_core.direct import DirectRun
from lite_core.errors import ExecutionError, InputError, LiteError
from lite_core.in_place import is_cache
from lite_core.ir import Array, Graph, Value
from lite_core.log import tracked
from lite_core.memory import HostMemory, read_only
from lite_core.memory.arena import plan_arena
from lite_core.memory.scratch import ScratchPool
from lite_core.memory.sharing import can_share
from lite_core.notebooks import Shown
from lite_core.observing import IdleObserver, Observer
from lite_core.plugins.contracts import fault_text
from lite_core.resizing import PlansOtherSizes
from lite_core.schedule.compile import CompiledPartition, compile_partition
from lite_core.schedule.control import ControlExecutable, PlanBody
from lite_core.schedule.partition import PartitionIdentities, split
from lite_core.schedule.placement import Placement
from lite_core.schedule.profile import RunProfile
from lite_core.schedule.steps import Allocation, ControlStep, CopyStep, PartitionStep, Run, Step

__all__ = ["Plan", "copy_into", "make_plan"]

logger = logging.getLogger("lite.run")

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
        graph: the graph with the types of the signature, all input dimensions known.
        placement: the device of every node of ``graph``.
        options: the session's options.
        pool: provides the memory of runs.
        plan_body: makes the plans of sub-graphs when their input shapes are known; if None, the backend of a node also
            runs its sub-graphs.
        prefix: prefix of the partitions' names.
        identities: identities shared with the graph's partitions for other shapes.

    Raises:
        CompileError: a backend failed to compile; names the backend and the partition.
    """
    placement.log()
    parts = split(graph, placement, prefix, identities)
    compiled = [compile_partition(placed, options, plan_body) for placed in tracked(parts, "compiling partitions")]
    return Plan(graph, placement, compiled, pool)


class Plan(Shown):
    """The steps of a run for one set of input shapes. ``print`` shows the steps and the arenas.

    Tensors that live only during a run share one arena for each memory space. Arenas are reused from run to run.

    Args:
        graph: the graph; the types of its inputs, and of values between partitions, are those of the signature.
        placement: the device of every node.
        compiled: the partitions, in an order in which they can run.
        pool: provides the memory of runs.
    """

    def __init__(
        self, graph: Graph, placement: Placement, compiled: Sequence[CompiledPartition], pool: ScratchPool | None = None
    ) -> None:
        self.graph = graph
        self.placement = placement
        self.compiled = tuple(compiled)
        self.pool = pool or ScratchPool()
        self.steps, on_host = _link(graph, compiled)
        self.arenas = _allocate(self.steps, set(on_host.values()))
        self._inputs = list(graph.inputs)
        #: For each output that may be in the memory of an input, the name of the input.
        self.in_place = _updated_in_place(graph, self.steps)
        produced = {value for step in self.steps for value in step.writes}
        #: For each graph output: the value, its copy in main memory (None for a constant), and True if the caller may
        #: get the storage without a copy. Graph inputs are copied, and so are values that are listed twice.
        self._outputs = [
            (value, on_host.get(value), on_host.get(value) in produced and value not in graph.outputs[:index])
            for index, value in enumerate(graph.outputs)
        ]
        # NOTE: to ask whether it implements a protocol takes as long as to make a small executable.
        maker = getattr(compiled[0].executable, "direct_run", None) if len(compiled) == len(self.steps) == 1 else None
        #: The short way through runs, if the only step has one; see :class:`~lite_core.direct.RunsDirectly`.
        self._direct: DirectRun | None = maker and maker(graph, self.steps[0], self.arenas, self.pool)

    @property
    def partitions(self) -> list[tuple[Partition, str]]:
        """Each partition with the label of its device, in run order."""
        return [(c.part, c.candidate.device.label) for c in self.compiled]

    @property
    def computes(self) -> list[str]:
        """One line for each partition whose backend says which types it computes in."""
        steps = [step for step in self.steps if isinstance(step, PartitionStep) and step.computes]
        return [f"{step.part.name}: {len(step.part.graph.nodes)} node(s) in {step.computes}" for step in steps]

    def run(
        self,
        inputs: Sequence[Array],
        out: Mapping[str, Array] | None = None,
        profile: RunProfile | None = None,
        observer: Observer | None = None,
    ) -> list[Array]:
        """Run the plan.

        Args:
            inputs: an array for each graph input, in order, of the signature's types.
            out: arrays to write outputs into, by name; other outputs are newly allocated. These arrays must not share
                memory with each other, or with inputs unless :attr:`in_place` allows it.
            profile: receives the time of each partition, copy and kernel.
            observer: receives the results of each kernel; a profile then has only the times of kernels.

        Raises:
            RunTimeoutError: the time that the run was given is over before a step; see :mod:`lite_core.deadline`.

        Returns:
            One array per graph output, in order. The caller owns it: it shares memory with no input, constant, other
            output or later run.
        """
        if self._direct and profile is None and observer is None and (found := self._direct(inputs, out)):
            return found
        # The only cost of the log if it is off: this test takes a tenth of a microsecond.
        is_logged = logger.isEnabledFor(logging.DEBUG)
        observer = IdleObserver() if is_logged and observer is None else observer
        try:
            blocks = [self.pool.take(memory, size) for memory, size in self.arenas]
        except (Exception, SystemExit) as error:
            if isinstance(error, LiteError):
                raise
            owners = ", ".join(dict.fromkeys(str(c.candidate) for c in self.compiled if c.memory.space != _HOST.space))
            raise ExecutionError(f"{owners}: allocating memory for a run failed with {fault_text(error)}") from error
        buffers = {value: self._buffer(value, array) for value, array in zip(self._inputs, inputs)}
        run = Run(buffers, out, profile, observer, blocks)
        for step in self.steps:
            check_time(step.describe)
            if is_logged:
                logger.debug("%s", step.describe())
            step.run(run)
        outputs = [self._collect(value, found, is_own, run) for value, found, is_own in self._outputs]
        for block in blocks:  # after a failure they are not reused: a device may still be writing to them
            self.pool.give_back(block)
        return outputs

    def resized(self, shapes: Sequence[tuple[int, ...]]) -> Plan | None:
        """Return the plan for other shapes of the inputs, if one of the executables makes it; see PlansOtherSizes."""
        makers = [each.executable for each in self.compiled if isinstance(each.executable, PlansOtherSizes)]
        return makers[0].plan_for(self, shapes) if makers else None

    def _buffer(self, value: Value, array: Array) -> Buffer:
        is_read_in_place = array.flags.c_contiguous or (value.name in self.in_place.values() and is_cache(array))
        return Buffer(value.type, _HOST, read_only(array if is_read_in_place else np.ascontiguousarray(array)))

    def _collect(self, value: Value, found: Value | None, is_own: bool, run: Run) -> Array:
        """Return a graph output as an array that the caller owns."""
        if found is None:
            array = self.graph.constants[value].copy()
        else:
            buffer = run.buffers[found]
            # Storage that a backend substituted for the buffer's own may be used elsewhere, so that it is copied, too.
            array = buffer.data if is_own and buffer.holds_its_own else buffer.data.copy()
        target = run.out.get(value.name) if run.out else None
        return array if target is None or target is array else copy_into(target, array, value.name)

    def describe(self) -> str:
        """Return a description: the steps in run order, and the arenas."""
        lines = [f"plan for {', '.join(map(repr, self._inputs))}"]
        lines += [f"  {number} {step.describe()}" for number, step in enumerate(self.steps)]
        lines += [f"  arena in {memory.space} memory: {size} bytes" for memory, size in self.arenas]
        return "\n".join(lines)

    __str__ = __repr__ = describe


def _link(graph: Graph, compiled: Sequence[CompiledPartition]) -> tuple[list[Step], dict[Value, Value]]:
    """Return the steps, with copies between memory spaces, and for each graph output its copy in main memory."""
    steps: list[Step] = []
    copied: set[Value] = set()
    owners = {partition.memory.space: partition.candidate for partition in compiled}
    #: For each value its copies by memory space, including the original, each with its memory.
    copies: dict[Value, dict[str, tuple[Value, Memory]]] = {v: {_HOST.space: (v, _HOST)} for v in graph.inputs}

    def in_memory(value: Value, memory: Memory) -> Value:
        by_space = copies[value]
        if memory.space not in by_space:
            source, origin = by_space.get(_HOST.space) or next(iter(by_space.values()))
            copy = Value(f"{value.name}@{memory.space}", value.type)
            backends = [owners[m.space] for m in (origin, memory) if m.space != _HOST.space]
            steps.append(CopyStep(source, copy, origin, memory, backends))
            copied.add(source)
            by_space[memory.space] = (copy, memory)
        return by_space[memory.space][0]

    for partition in compiled:
        memory = partition.memory
        reads = [in_memory(value, memory) for value in partition.part.graph.inputs]
        is_control = isinstance(partition.executable, ControlExecutable)
        steps.append((ControlStep if is_control else PartitionStep)(partition, reads))
        copies.update((value, {memory.space: (value, memory)}) for value in partition.part.graph.outputs)
    on_host = {value: in_memory(value, _HOST) for value in graph.outputs if value in copies}
    for step in steps:
        if isinstance(step, PartitionStep):
            step.mark_copied(copied)
    return steps, on_host


def _allocate(steps: Sequence[Step], outputs: set[Value]) -> list[tuple[Memory, int]]:
    """Allocate all memory that is used only during a run in arenas; return each arena's memory and size in bytes."""
    last_reads = _last_reads(steps)
    requests: dict[str, list[tuple[Step, Value | None, Interval]]] = {}
    arenas: list[tuple[Memory, int]] = []
    for number, step in enumerate(steps):
        memory = step.memory
        if not isinstance(memory, ViewsMemory):  # each tensor must be allocated separately
            if step.scratch_bytes:
                step.scratch = Allocation(len(arenas), 0)
                arenas.append((memory, step.scratch_bytes))
            continue
        in_space = requests.setdefault(memory.space, [])
        if step.scratch_bytes:
            in_space.append((step, None, Interval(step.scratch_bytes, number, number)))
        for value in step.writes:
            if value not in outputs and value.type.is_static and not step.has_own_storage(value):
                size = int(value.type.size or 0) * value.dtype.itemsize  # type: ignore[arg-type]
                in_space.append((step, value, Interval(size, number, last_reads.get(value, number))))
    for in_space in requests.values():
        plan = plan_arena([interval for _, _, interval in in_space])
        for (step, result, _), offset in zip(in_space, plan.offsets):
            allocation = Allocation(len(arenas), offset)
            if result is None:
                step.scratch = allocation
            else:
                step.allocations[result] = allocation
        if in_space:
            arenas.append((in_space[0][0].memory, max(plan.size, 1)))  # empty tensors need an arena, too
    return arenas


def _updated_in_place(graph: Graph, steps: Sequence[Step]) -> dict[str, str]:
    """Return the outputs that may be in the memory of an input: only the step that computes them reads the input."""
    reads = Counter([value for step in steps for value in step.reads] + graph.outputs)
    pairs = [(step.reads[i], step.writes[o]) for step in steps for o, i in step.in_place.items()]
    results = Counter(graph.outputs)
    return {new.name: old.name for old, new in pairs if old in graph.inputs and reads[old] == 1 and results[new] == 1}


def _last_reads(steps: Sequence[Step]) -> dict[Value, int]:
    """Return for each value the number of the last step that reads it, or a copy that may share its storage."""
    last = {value: number for number, step in enumerate(steps) for value in step.reads}
    for step in steps:
        if isinstance(step, CopyStep) and can_share(step.memory):
            source, result = step.reads[0], step.writes[0]
            last[source] = max(last[source], last.get(result, 0))
    return last


def copy_into(target: Array, array: Array, name: str) -> Array:
    """Copy an output into the caller's array, and return that array.

    Raises:
        InputError: the caller's array has another shape; nothing is broadcast.
    """
    if target.shape != array.shape:
        raise InputError(f"out[{name!r}] must have shape {list(array.shape)} for these inputs, is {list(target.shape)}")
    np.copyto(target, array)
    return target
