"""Compilation of a partition whose shapes are known: group, lower, plan memory, load kernels."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np

from lite_compiler.fusion import count_uses, group_nodes
from lite_compiler.known_values import evaluate_if_known
from lite_compiler.lifetimes import Lifetime, assign_offsets, lifetimes_of
from lite_compiler.observing import ARENA, Segment, find_segments
from lite_compiler.tournaments.chooser import Chooser
from lite_core.backend import Interval, Options
from lite_core.errors import ExecutionError
from lite_core.ir import DType, Graph, Node, TensorType
from lite_opencl.compiled.executable import OpenClExecutable
from lite_opencl.compiled.faults import Faults
from lite_opencl.compiled.graph import CompiledGraph
from lite_opencl.compiled.launches import ImageLocation, Launch, Location, Space
from lite_opencl.device.errors import buffer_too_large
from lite_opencl.device.images import ConstantImage
from lite_opencl.device.memory import Allocation, DeviceArray
from lite_opencl.device.runtime import DeviceRuntime
from lite_opencl.lowering.boxes import without_box_operators
from lite_opencl.lowering.context import Lowering
from lite_opencl.lowering.decoder import without_decoder_operators
from lite_opencl.lowering.deformable import without_deformable
from lite_opencl.lowering.destinations import reserve_destinations
from lite_opencl.lowering.elementwise import is_elementwise
from lite_opencl.lowering.fourier import without_fourier
from lite_opencl.lowering.half import computed_types, unsupported_precision
from lite_opencl.lowering.registry import find_lowering, takes_epilogue
from lite_opencl.lowering.steps import Argument, PlannedStep
from lite_opencl.tensors import Storage, Tensor
from lite_opencl.tuning.stopwatch import Stopwatch

__all__ = ["compile_graph", "lower_graph"]

logger = logging.getLogger("lite.opencl.compile")

Array = np.ndarray[Any, Any]


def compile_graph(graph: Graph, options: Options, runtime: DeviceRuntime) -> OpenClExecutable:
    """Return an executable for a graph whose shapes are all known.

    Raises:
        ExecutionError: an operator is not supported, or a kernel cannot be built.
    """
    lowering = lower_graph(graph, options, runtime)
    lifetimes, arena_bytes = _plan_memory(lowering)
    _check_sizes(graph, arena_bytes, runtime)
    loaded = runtime.programs.load(step.kernel for step in lowering.steps)
    logger.debug("%s on %s: %s", graph.name, runtime.name, loaded)
    notes = [str(loaded), *lowering.chooser.describe(), *unsupported_precision(options, runtime.found)]
    compiled = _compiled_graph(lowering, lifetimes, arena_bytes, runtime)
    executable = OpenClExecutable(compiled, runtime, notes, computed_types(graph, options, runtime.found))
    if loaded.unfinished:
        executable.warm_up()
        runtime.programs.store(loaded.unfinished)
    return executable


def lower_graph(graph: Graph, options: Options, runtime: DeviceRuntime) -> Lowering:
    """Return the steps of a graph before memory is planned."""
    graph = without_box_operators(without_deformable(without_fourier(without_decoder_operators(graph))))
    chooser: Chooser[PlannedStep] = Chooser(runtime.tuning, Stopwatch(runtime) if options.tune else None)
    lowering = Lowering(runtime.found, graph, options, runtime.constants, chooser)
    elementwise = {node for node in graph.nodes if is_elementwise(node)}
    uses = count_uses(graph)
    reserve_destinations(lowering, uses)
    for group in group_nodes(graph, uses, elementwise, takes_epilogue):
        if _evaluate(lowering, group.nodes):
            continue
        function, reason = find_lowering(group.head)
        if function is None:
            raise ExecutionError(f"{group.head.describe()}: {reason}")
        lowering.lower(group, function)
    for value, output in lowering.outputs.items():
        tensor = lowering.tensor(value)
        if not tensor.occupies_same_memory(output):
            lowering.copy(tensor, output)
    return lowering


def _evaluate(lowering: Lowering, nodes: Sequence[Node]) -> bool:
    """Compute nodes now if all their inputs are known. Return True if they were computed.

    Internal operators have no reference.
    """
    if any(node.domain == "lite_opencl" for node in nodes):
        return False
    results = evaluate_if_known(nodes, lowering.elements)
    for value, array in () if results is None else results.items():
        lowering.set_known(value, array)
    return results is not None


def _plan_memory(lowering: Lowering) -> tuple[list[Interval], int]:
    """Assign an offset to every storage in the arena. Return their lifetimes, and the bytes of the arena."""
    lifetimes = lifetimes_of([t.storage for t in step.tensors if t.storage.memory is None] for step in lowering.steps)
    if lowering.faults:  # the record is cleared before the first step, and read after the last
        record = lowering.record.storage
        lifetimes[record] = Lifetime([record], 0, len(lowering.steps) - 1)
    size = assign_offsets(lifetimes.values())
    # The arena must exist even if it holds only empty tensors: they are arguments of kernels, too.
    return [lifetime.interval for lifetime in lifetimes.values()], max(size, 1) if lifetimes else 0


def _check_sizes(graph: Graph, arena_bytes: int, runtime: DeviceRuntime) -> None:
    """Check the sizes of buffers, which would otherwise fail in the first run.

    Raises:
        OpenClError: the partition needs a larger buffer than the device supports.
    """
    sizes = {repr(v): prod(v.shape) * v.dtype.itemsize for v in (*graph.inputs, *graph.outputs)}
    for what, size in {"the memory of intermediate results": arena_bytes, **sizes}.items():
        if size > runtime.found.largest_buffer_bytes:
            raise buffer_too_large(runtime.name, f"{what} needs {size} bytes", runtime.found.largest_buffer_bytes)


def _compiled_graph(
    lowering: Lowering, lifetimes: list[Interval], arena_bytes: int, runtime: DeviceRuntime
) -> CompiledGraph:
    """Return the steps as plain data with numbered constants."""
    numbers: dict[Allocation, int] = {}
    names = {runtime.constants.find_plain(array): v.name for v, array in lowering.graph.constants.items()}

    def located(argument: Argument) -> Location | ImageLocation | np.generic:
        if isinstance(argument, ConstantImage):
            number = numbers.setdefault(argument.constant, len(numbers))
            return ImageLocation(number, argument.tensor.dtype.value)
        if not isinstance(argument, Tensor):
            return argument
        memory, size = argument.storage.memory, argument.dtype.itemsize
        offset = argument.storage.offset + argument.offset * size
        if isinstance(memory, Allocation):
            return Location(Space.CONSTANT, numbers.setdefault(memory, len(numbers)), offset, size)
        if memory is None:
            return Location(Space.ARENA, 0, offset, size)
        return Location(Space.ARGUMENT, memory, offset, size)

    launches = [
        Launch(
            runtime.programs.key(step.kernel),
            step.kernel.name,
            step.kernel.local,
            step.global_size,
            tuple(map(located, step.arguments)),
            step.label,
            step.nodes,
            step.flops,
            step.bytes,
        )
        for step in lowering.steps
    ]
    constants = [DeviceArray(a, 0, TensorType(DType.UINT8, (a.bytes,))) for a in numbers]
    faults = Faults(lowering.record.storage.offset, tuple(lowering.faults)) if lowering.faults else None
    named = [names.get(a) for a in numbers]
    graph, groups, outputs, chooser = lowering.graph, lowering.groups, lowering.outputs, lowering.chooser
    tensors = [step.tensors for step in lowering.steps]

    def segments() -> list[Segment]:
        return find_segments(groups, tensors, outputs, graph, partial(_memory_of, len(graph.inputs)))

    return CompiledGraph(
        graph, launches, constants, named, arena_bytes, lifetimes, segments, faults, chooser.used, chooser.is_tuning
    )


def _memory_of(inputs: int, storage: Storage) -> int | None:
    """Return 0 for the arena, n for the n-th output of a partition with that many inputs, and None for the rest."""
    if storage.memory is None:
        return ARENA
    if isinstance(storage.memory, int) and storage.memory >= inputs:
        return storage.memory - inputs + 1
    return None
