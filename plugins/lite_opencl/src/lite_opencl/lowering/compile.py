"""Compiling a partition whose shapes are known: group, lower, plan memory, load kernels."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from lite_compiler.fusion import count_uses, group_nodes
from lite_compiler.known import evaluate_if_known
from lite_compiler.lifetimes import Lifetime, lifetimes_of, place
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
from lite_opencl.lowering.choosing import Chooser
from lite_opencl.lowering.context import Lowering
from lite_opencl.lowering.destinations import reserve_destinations
from lite_opencl.lowering.elementwise import is_elementwise
from lite_opencl.lowering.half import unheeded_precision
from lite_opencl.lowering.registry import find_lowering, takes_epilogue
from lite_opencl.lowering.steps import Argument
from lite_opencl.tensors import Tensor
from lite_opencl.tuning.stopwatch import Stopwatch

__all__ = ["compile_graph", "lower_graph"]

logger = logging.getLogger("lite.opencl.compile")

Array = np.ndarray[Any, Any]


def compile_graph(graph: Graph, options: Options, runtime: DeviceRuntime) -> OpenClExecutable:
    """An executable for a graph whose shapes are all known.

    Raises:
        ExecutionError: an operator cannot be run, or a kernel not be built.
    """
    lowering = lower_graph(graph, options, runtime)
    lives, arena_bytes = _plan_memory(lowering)
    _check_sizes(graph, arena_bytes, runtime)
    loaded = runtime.programs.load(step.kernel for step in lowering.steps)
    logger.debug("%s on %s: %s", graph.name, runtime.name, loaded)
    notes = [str(loaded), *lowering.chooser.describe(), *unheeded_precision(options, runtime.found)]
    executable = OpenClExecutable(_described(lowering, lives, arena_bytes, runtime), runtime, notes)
    if loaded.unfinished:
        executable.rehearse()
        runtime.programs.keep(loaded.unfinished)
    return executable


def lower_graph(graph: Graph, options: Options, runtime: DeviceRuntime) -> Lowering:
    """The steps of a graph, memory not yet planned."""
    chooser = Chooser(runtime.tuning, Stopwatch(runtime) if options.tune else None)
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
    """Compute nodes now if all they read is known, and say whether that was so."""
    made = evaluate_if_known(nodes, lowering.elements)
    for value, array in () if made is None else made.items():
        lowering.know(value, array)
    return made is not None


def _plan_memory(lowering: Lowering) -> tuple[list[Interval], int]:
    """Give every storage in the arena its offset; returns when each is needed, and the bytes of the arena."""
    lives = lifetimes_of([t.storage for t in step.tensors if t.storage.place is None] for step in lowering.steps)
    if lowering.faults:  # the record is cleared before the first step, and read after the last
        record = lowering.record.storage
        lives[record] = Lifetime([record], 0, len(lowering.steps) - 1)
    size = place(lives.values())
    # Kernels are given empty tensors, too, that lie in the arena.
    return [life.interval for life in lives.values()], max(size, 1) if lives else 0


def _check_sizes(graph: Graph, arena_bytes: int, runtime: DeviceRuntime) -> None:
    """Find out now what would fail in the first run.

    Raises:
        OpenClError: the device has no buffers of the size that the partition needs.
    """
    sizes = {repr(v): prod(v.shape) * v.dtype.itemsize for v in (*graph.inputs, *graph.outputs)}
    for what, size in {"what is computed on the way": arena_bytes, **sizes}.items():
        if size > runtime.found.largest_buffer_bytes:
            raise buffer_too_large(runtime.name, f"{what} needs {size} bytes", runtime.found.largest_buffer_bytes)


def _described(lowering: Lowering, lives: list[Interval], arena_bytes: int, runtime: DeviceRuntime) -> CompiledGraph:
    """The steps as plain data, their constants numbered."""
    numbers: dict[Allocation, int] = {}
    names = {runtime.constants.find_plain(array): v.name for v, array in lowering.graph.constants.items()}

    def located(argument: Argument) -> Location | ImageLocation | np.generic:
        if isinstance(argument, ConstantImage):
            number = numbers.setdefault(argument.constant, len(numbers))
            return ImageLocation(number, argument.tensor.dtype.value)
        if not isinstance(argument, Tensor):
            return argument
        where, size = argument.storage.place, argument.dtype.itemsize
        offset = argument.storage.offset + argument.offset * size
        if isinstance(where, Allocation):
            return Location(Space.CONSTANT, numbers.setdefault(where, len(numbers)), offset, size)
        if where is None:
            return Location(Space.ARENA, 0, offset, size)
        return Location(Space.ARGUMENT, where, offset, size)

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
    chooser = lowering.chooser
    return CompiledGraph(
        lowering.graph, launches, constants, named, arena_bytes, lives, faults, chooser.used, chooser.is_tuning
    )
