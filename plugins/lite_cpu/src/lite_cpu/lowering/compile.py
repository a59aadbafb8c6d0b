"""Compiling a partition: group, lower, plan memory, load kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from lite_compiler.fusion import absorb_producers, group_nodes
from lite_compiler.known import evaluate_if_known
from lite_compiler.lifetimes import place
from lite_core.backend import Options
from lite_core.errors import ExecutionError
from lite_core.ir import Graph, Node
from lite_core.ops.evaluate import evaluate_node
from lite_cpu.executable import CompiledProgram, Pieces, StepInfo
from lite_cpu.external import ExternalSgemm, no_external_sgemm
from lite_cpu.lowering.context import Lowering
from lite_cpu.lowering.depthwise import reserve_spaced_images
from lite_cpu.lowering.depthwise_pointwise import worth_fusing
from lite_cpu.lowering.destinations import reserve_destinations
from lite_cpu.lowering.half import has_halves, widen_halves
from lite_cpu.lowering.memory import lifetimes_of
from lite_cpu.lowering.registry import find_lowering
from lite_cpu.lowering.structure import NodeRoles, Structure
from lite_cpu.lowering.weights import WeightCache
from lite_cpu.machine_code.library import KernelLibrary
from lite_cpu.runtime import Program, Step

__all__ = ["compile_graph", "lower_graph"]

Array = np.ndarray[Any, Any]

#: Where one of these is, nodes around it may be quantized too: see :mod:`.quantization`. Like attention, that is
#: imported by the models that need it only.
_QUANTIZED = frozenset({"DequantizeLinear", "DynamicQuantizeLinear", "QLinearConv", "QLinearMatMul", "QuantizeLinear"})


#: Elements from which an array that is computed before the run is one of weights, not of a shape.
_FEWEST_SHARED = 1024


def lower_graph(
    graph: Graph,
    options: Options,
    library: KernelLibrary,
    weights: WeightCache,
    external_sgemm: Callable[[], ExternalSgemm | None] = no_external_sgemm,
    structure: Structure | None = None,
) -> Lowering:
    """The steps of a graph whose shapes are known, memory not yet planned. Arguments as for :func:`compile_graph`."""
    graph, structure, roles = _with_roles(graph, structure or Structure(), weights)
    lowering = Lowering(library.machine, graph, options, weights, external_sgemm, structure.kept, roles.weighted)
    nodes = graph.nodes
    elementwise = {nodes[i] for i in roles.elementwise}
    reserve_destinations(lowering, elementwise)
    reserve_spaced_images(lowering)
    uses = dict(zip(graph.defined(), roles.uses))
    groups = group_nodes(graph, uses, elementwise, {nodes[i] for i in roles.hosts}.__contains__)
    if any(node.op == "Softmax" for node in nodes):
        from lite_cpu.lowering.attention import group_attention

        groups = group_attention(groups, uses)
    for group in absorb_producers(groups, uses, partial(worth_fusing, lowering)):
        if _evaluate(lowering, group.nodes):
            continue
        function, reason = roles.lowerings[lowering.positions[group.head]]
        if function is None:
            raise ExecutionError(f"{group.head.describe()}: {reason}")
        lowering.lower(group, function)
    for value, output in lowering.outputs.items():
        tensor = lowering.tensor(value)
        if tensor.storage is not output.storage:
            lowering.copy(tensor, output)
    return lowering


def _with_roles(graph: Graph, structure: Structure, weights: WeightCache) -> tuple[Graph, Structure, NodeRoles]:
    """The graph in terms of what has a kernel, its structure, and what its nodes are."""
    if structure.roles is not None:
        return graph, structure, structure.roles
    simple = simplified(graph, weights)
    if simple is not graph:
        # How nodes are rewritten may depend on sizes, so the next graph may get other ones.
        structure = Structure()
    structure.roles = NodeRoles.of(simple)
    return simple, structure, structure.roles


def simplified(graph: Graph, weights: WeightCache) -> Graph:
    """The graph in terms of what has a kernel; a copy where that differs."""

    def has_no_kernel(node: Node) -> bool:
        return find_lowering(node)[0] is None

    if not _QUANTIZED.isdisjoint([node.op for node in graph.nodes]):
        from lite_cpu.lowering.quantization import dequantize_weights

        graph = dequantize_weights(graph, weights) or graph
    quantized = not _QUANTIZED.isdisjoint([node.op for node in graph.nodes])
    some_are_half = any(dtype.is_half for dtype in {value.dtype for value in graph.defined()})
    halves = some_are_half and any(has_halves(node) and has_no_kernel(node) for node in graph.nodes)
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
    structure: Structure | None = None,
) -> CompiledProgram:
    """A program for a graph whose shapes are all known.

    Args:
        graph: what to compute.
        options: what the session allows.
        library: compiles and loads the kernels.
        weights: keeps packed constants.
        external_sgemm: see :class:`~lite_cpu.lowering.context.Lowering`.
        structure: what was found out about graphs that differ in sizes only, to be used and added to.
    """
    lowering = lower_graph(graph, options, library, weights, external_sgemm, structure)
    lifetimes = lifetimes_of(lowering.steps)
    arena_bytes = place(lifetimes)
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
    faults, planned = tuple(lowering.faults), lowering.steps

    def save() -> Pieces:
        # Imported late: few programs are saved.
        from lite_cpu.saved.writing import save_program

        return save_program(graph, options, planned, program, infos, faults, library, weights)

    intervals = tuple([life.interval for life in lifetimes])
    return CompiledProgram(program, infos, faults, intervals, sum(s.bytes for s in constants), save)


def _evaluate(lowering: Lowering, nodes: Sequence[Node]) -> bool:
    """Compute nodes now if all they read is known, and say whether that was so."""
    made = evaluate_if_known(nodes, lowering.elements, partial(_evaluated, lowering.weights))
    for value, array in () if made is None else made.items():
        lowering.know(value, array)
    return made is not None


def _evaluated(weights: WeightCache, node: Node, arrays: Sequence[Array | None]) -> Sequence[Array]:
    """The outputs of a node of constants. What is made of weights alone is the same array for all who use it."""
    if len(arrays) == 1 and arrays[0] is not None and arrays[0].size >= _FEWEST_SHARED and len(node.outputs) == 1:
        how = (node.qualified_op, str(node.attributes))
        return [weights.derived(how, arrays[0], lambda array: evaluate_node(node, [array])[0])]
    return evaluate_node(node, arrays)
