"""Compiling a partition: group, lower, plan memory, load kernels."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from lite_core.backend import Options
from lite_core.errors import ExecutionError
from lite_core.ir import Graph, Node, Value
from lite_core.ops.evaluate import evaluate_node
from lite_cpu import scalar_ops
from lite_cpu.executable import CompiledProgram, StepInfo
from lite_cpu.external import ExternalSgemm, no_external_sgemm
from lite_cpu.library import KernelLibrary
from lite_cpu.lowering.context import Lowering
from lite_cpu.lowering.depthwise import reserve_spaced_images
from lite_cpu.lowering.depthwise_pointwise import worth_fusing
from lite_cpu.lowering.fusion import absorb_producers, count_uses, group_nodes
from lite_cpu.lowering.half import has_halves, widen_halves
from lite_cpu.lowering.memory import lifetimes_of, plan_arena
from lite_cpu.lowering.places import reserve_places
from lite_cpu.lowering.registry import find_lowering, takes_epilogue
from lite_cpu.lowering.weights import WeightCache
from lite_cpu.runtime import Program, Step

__all__ = ["compile_graph", "is_elementwise", "lower_graph"]

Array = np.ndarray[Any, Any]


#: Where one of these is, nodes around it may be quantized too: see :mod:`.quantization`. Like attention, that is
#: imported by the models that need it only.
_QUANTIZED = ("DequantizeLinear", "DynamicQuantizeLinear", "QLinearConv", "QLinearMatMul", "QuantizeLinear")


def is_elementwise(node: Node) -> bool:
    """Whether a node can be part of a chain."""
    if len(node.outputs) != 1 or node.outputs[0] is None:
        return False
    inputs = [None if v is None else v.dtype for v in node.inputs]
    return scalar_ops.supports(node.qualified_op, inputs, node.outputs[0].dtype, node.attributes) is None


def lower_graph(
    graph: Graph,
    options: Options,
    library: KernelLibrary,
    weights: WeightCache,
    external_sgemm: Callable[[], ExternalSgemm | None] = no_external_sgemm,
) -> Lowering:
    """The steps of a graph whose shapes are known, memory not yet planned."""
    graph = simplified(graph, weights)
    lowering = Lowering(graph, library.machine, options, weights, external_sgemm)
    elementwise = {node for node in graph.nodes if is_elementwise(node)}
    reserve_places(lowering, elementwise)
    reserve_spaced_images(lowering)
    uses = count_uses(graph)
    groups = group_nodes(graph, uses, elementwise, takes_epilogue)
    if any(node.op == "Softmax" for node in graph.nodes):
        from lite_cpu.lowering.attention import group_attention

        groups = group_attention(groups, uses)
    for group in absorb_producers(groups, uses, partial(worth_fusing, lowering)):
        if _evaluate(lowering, group.nodes):
            continue
        function, reason = find_lowering(group.head)
        if function is None:
            raise ExecutionError(f"{group.head.describe()}: {reason}")
        lowering.lower(group, function)
    for value, output in lowering.outputs.items():
        tensor = lowering.tensor(value)
        if tensor.storage is not output.storage:
            lowering.copy(tensor, output)
    return lowering


def simplified(graph: Graph, weights: WeightCache) -> Graph:
    """The graph in terms of what has a kernel; a copy where that differs."""

    def has_no_kernel(node: Node) -> bool:
        return find_lowering(node)[0] is None

    quantized = any(node.op in _QUANTIZED for node in graph.nodes)
    halves = any(has_halves(node) and has_no_kernel(node) for node in graph.nodes)
    if quantized or halves:
        graph = graph.copy()
        if quantized:
            from lite_cpu.lowering.quantization import rewrite_quantized

            rewrite_quantized(graph, weights)
        if halves:
            widen_halves(graph, weights, has_no_kernel)
    return graph


def compile_graph(
    graph: Graph,
    options: Options,
    library: KernelLibrary,
    weights: WeightCache,
    external_sgemm: Callable[[], ExternalSgemm | None] = no_external_sgemm,
) -> CompiledProgram:
    """A program for a graph whose shapes are all known.

    Args:
        graph: what to compute.
        options: what the session allows.
        library: compiles and loads the kernels.
        weights: keeps packed constants.
        external_sgemm: see :class:`~lite_cpu.lowering.context.Lowering`.
    """
    lowering = lower_graph(graph, options, library, weights, external_sgemm)
    arena_bytes = plan_arena(lifetimes_of(lowering.steps))
    addresses = library.addresses([s.kernel for s in lowering.steps])
    steps = [
        Step(
            addresses[s.kernel],
            [(t.storage.base, t.storage.offset + t.byte_offset) for t in s.tensors],
            s.params,
            s.tasks,
            s.grain,
            s.label,
        )
        for s in lowering.steps
    ]
    constants = {t.storage for s in lowering.steps for t in s.tensors if t.storage.keep is not None}
    scratch_bytes = max((s.scratch_bytes for s in lowering.steps), default=0)
    program = Program(steps, arena_bytes, scratch_bytes, owners=[library, *constants])
    infos = tuple(StepInfo(s.label, s.nodes, s.flops, s.bytes) for s in lowering.steps)
    images = partial(library.images, list(addresses))
    return CompiledProgram(program, infos, tuple(lowering.faults), library.identity, images)


def _evaluate(lowering: Lowering, nodes: list[Node]) -> bool:
    """Compute nodes now if all they read is known, and say whether that was so."""
    made: dict[Value, Array] = {}
    for node in nodes:
        known = {v: made[v] if v in made else lowering.known(v) for v in node.used()}
        if any(array is None for array in known.values()) or any(node.subgraphs):
            return False
        arrays = [None if v is None else known[v] for v in node.inputs]
        made.update((v, array) for v, array in zip(node.outputs, evaluate_node(node, arrays)) if v is not None)
    for value, array in made.items():
        lowering.know(value, array)
    return True
