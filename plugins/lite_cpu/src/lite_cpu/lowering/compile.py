"""Compilation of a partition: group nodes, lower groups to steps, plan memory, load kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from lite_compiler.fusion import absorb_producers, group_nodes
from lite_compiler.known_values import evaluate_if_known
from lite_compiler.lifetimes import assign_offsets
from lite_compiler.observing import Segment
from lite_compiler.tournaments.chooser import Chooser
from lite_compiler.tournaments.table import ChoiceTable
from lite_compiler.tracing.numbers import call, is_traced
from lite_core.backend import Options
from lite_core.errors import ExecutionError
from lite_core.ir import DType, Graph, Node
from lite_core.ops.evaluate import evaluate_node
from lite_cpu.executable import CompiledProgram, Pieces, StepInfo, Tuned
from lite_cpu.external import ExternalSgemm, no_external_sgemm
from lite_cpu.lowering.caches import find_caches
from lite_cpu.lowering.context import Lowering
from lite_cpu.lowering.depthwise import is_depthwise_node, reserve_spaced_images
from lite_cpu.lowering.depthwise_pointwise import worth_fusing
from lite_cpu.lowering.destinations import reserve_destinations
from lite_cpu.lowering.half import has_halves, widen_halves
from lite_cpu.lowering.half_products import is_product_of_halves
from lite_cpu.lowering.memory import lifetimes_of
from lite_cpu.lowering.pairs import PRODUCTS, is_product_of_pairs
from lite_cpu.lowering.partition_analysis import NodeRoles, PartitionAnalysis
from lite_cpu.lowering.registry import find_lowering
from lite_cpu.lowering.steps import PlannedStep
from lite_cpu.lowering.weights import WeightCache
from lite_cpu.machine import Machine
from lite_cpu.machine_code.library import KernelLibrary
from lite_cpu.runtime import Program, Step
from lite_cpu.tensors import Tensor

__all__ = ["compile_graph", "lower_body", "lower_graph"]

Array = np.ndarray[Any, Any]

#: Operators that make :mod:`.quantization` rewrite a graph. Like attention, it is imported only by models that need it.
_QUANTIZED = frozenset({"DequantizeLinear", "DynamicQuantizeLinear", "QLinearConv", "QLinearMatMul", "QuantizeLinear"})


#: Minimum size at which an array computed before the run is treated as weights and not as a shape.
_MIN_WEIGHT_ELEMENTS = 1024


def lower_graph(
    graph: Graph,
    options: Options,
    library: KernelLibrary,
    weights: WeightCache,
    external_sgemm: Callable[[], ExternalSgemm | None] = no_external_sgemm,
    analysis: PartitionAnalysis | None = None,
    choices: ChoiceTable | None = None,
) -> Lowering:
    """Lower a graph whose shapes are known, without planning memory. Arguments as for :func:`compile_graph`."""
    graph, analysis, roles = _with_roles(graph, analysis or PartitionAnalysis(), weights, library.machine, options)
    lowering = Lowering(
        library, graph, options, weights, external_sgemm, analysis.cache, roles.with_constant_weights,
        _chooser(library, options, choices), caches=find_caches(graph),
    )  # fmt: skip
    _lower_nodes(lowering, roles)
    return lowering


def lower_body(outer: Lowering, graph: Graph, arguments: Sequence[Tensor], results: Sequence[Tensor]) -> Lowering:
    """Append the steps of a control node's body to those of the graph that contains the node.

    Args:
        outer: the context of that graph.
        graph: the body, with captured values as inputs and constants; every shape is known.
        arguments: the tensors of its inputs.
        results: the tensors that receive its outputs, which its own nodes compute.

    Returns:
        The context of the body, which knows where its values are.
    """
    graph, analysis, roles = _with_roles(graph, PartitionAnalysis(), outer.weights, outer.machine, outer.options)
    inner = Lowering(
        outer.library, graph, outer.options, outer.weights, outer.external_sgemm, analysis.cache,
        roles.with_constant_weights, outer.chooser, outer.faults, outer.makers, log=outer.log, outer=outer,
        arguments=arguments, results=results, steps=outer.steps,
    )  # fmt: skip
    _lower_nodes(inner, roles)
    return inner


def _lower_nodes(lowering: Lowering, roles: NodeRoles) -> None:
    """Emit the steps of a graph's nodes, and of copies into its outputs."""
    graph = lowering.graph
    nodes = graph.nodes
    elementwise = {nodes[i] for i in roles.elementwise}
    reserve_destinations(lowering, elementwise)
    reserve_spaced_images(lowering)
    uses = dict(zip(graph.defined(), roles.uses))
    groups = group_nodes(graph, uses, elementwise, {nodes[i] for i in roles.takes_epilogue}.__contains__)
    if any(node.op == "Softmax" for node in nodes):
        from lite_cpu.lowering.attention import group_attention

        groups = group_attention(groups, uses)
    if any(node.op == "DequantizeLinear" for node in nodes):
        from lite_cpu.lowering.dequantized_operands import absorb_dequantized

        groups = absorb_dequantized(groups, uses)
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


def _chooser(library: KernelLibrary, options: Options, choices: ChoiceTable | None) -> Chooser[PlannedStep]:
    """Return the choices of a partition; a session that tunes holds tournaments, if this processor runs the kernels."""
    if not (options.tune and library.runs_here):
        return Chooser(choices)
    # Imported late: few sessions tune.
    from lite_cpu.comparison import ColdComparison

    return Chooser(choices, ColdComparison(library, options.threads))


def _with_roles(
    graph: Graph, analysis: PartitionAnalysis, weights: WeightCache, machine: Machine, options: Options
) -> tuple[Graph, PartitionAnalysis, NodeRoles]:
    """Return the graph rewritten to operators that have kernels, its analysis, and the roles of its nodes."""
    if analysis.roles is not None:
        return graph, analysis, analysis.roles
    simple = simplified(graph, weights, machine, options)
    if simple is not graph:
        # The rewriting may depend on sizes, so the nodes of a graph with other sizes may differ.
        analysis = PartitionAnalysis()
    analysis.roles = NodeRoles.of(simple)
    return simple, analysis, analysis.roles


def simplified(graph: Graph, weights: WeightCache, machine: Machine, options: Options) -> Graph:
    """Return the graph rewritten to operators that have kernels, as a copy if anything changes.

    If the session allows 16-bit floats and the machine multiplies them, products compute in them.
    """

    def has_no_kernel(node: Node) -> bool:
        if find_lowering(node)[0] is None:
            return True
        x = node.inputs[0] if node.op in PRODUCTS and not node.domain else None
        if x is None or not x.dtype.is_half:
            return False
        if x.dtype is DType.FLOAT16 and options.precision == DType.FLOAT16:
            is_product = is_product_of_halves(machine, node, graph.constants)
        else:
            is_product = is_product_of_pairs(machine, node, graph.constants)
        return not (is_product or is_depthwise_node(node, graph.constants))

    if any(node.op == "DFT" and not node.domain for node in graph.nodes):
        # Imported late: few models have it.
        from lite_cpu.lowering.fourier import without_fourier

        graph = without_fourier(graph)
    if any(node.domain == "lite" for node in graph.nodes):
        # Imported late: few models have such operators.
        from lite_cpu.lowering.boxes import without_box_operators

        graph = without_box_operators(graph)
    if not _QUANTIZED.isdisjoint([node.op for node in graph.nodes]):
        from lite_cpu.lowering.narrow_products import keep_narrow
        from lite_cpu.lowering.quantization import dequantize_weights, rewrite_quantized

        graph = keep_narrow(graph)
        graph = dequantize_weights(graph, weights) or graph
        if not _QUANTIZED.isdisjoint([node.op for node in graph.nodes]):
            graph = graph.copy()
            rewrite_quantized(graph, weights)
    if options.precision != DType.FLOAT32:
        # Imported late: few sessions allow others.
        from lite_cpu.lowering.narrow_floats import narrow_floats, narrow_type

        narrow = narrow_type(machine, options.precision)
        graph = graph if narrow is None else narrow_floats(graph, machine, narrow)
    uses_half = any(dtype.is_half for dtype in {value.dtype for value in graph.defined()})
    if uses_half and any(has_halves(node) and has_no_kernel(node) for node in graph.nodes):
        graph = graph.copy()
        widen_halves(graph, weights, has_no_kernel)
    if any(node.op == "DeformConv" for node in graph.nodes):
        # Imported late: few models have it.
        from lite_cpu.lowering.deformable import rewrite_deformable

        graph = graph.copy()
        rewrite_deformable(graph, weights)
    if any(node.op == "Attention" and not node.domain for node in graph.nodes):
        # Imported late: few models have it.
        from lite_cpu.lowering.decoder import rewrite_attention

        graph = rewrite_attention(graph)
    return graph


def compile_graph(
    graph: Graph,
    options: Options,
    library: KernelLibrary,
    weights: WeightCache,
    external_sgemm: Callable[[], ExternalSgemm | None] = no_external_sgemm,
    analysis: PartitionAnalysis | None = None,
    choices: ChoiceTable | None = None,
) -> CompiledProgram:
    """Compile a graph whose shapes are all known.

    Args:
        graph: the graph of a partition.
        options: the options of the session.
        library: compiles and loads the kernels.
        weights: the cache of packed constants.
        external_sgemm: see :class:`~lite_cpu.lowering.context.Lowering`.
        analysis: the analysis shared by graphs that differ only in sizes; it is used and extended.
        choices: results of earlier tournaments; None to use estimates only.
    """
    lowering = lower_graph(graph, options, library, weights, external_sgemm, analysis, choices)
    lifetimes = lifetimes_of(lowering.steps)
    arena_bytes = assign_offsets(lifetimes)
    addresses = library.addresses([s.kernel for s in lowering.steps])
    steps = [
        Step(
            addresses[s.kernel],
            [(t.storage.base, t.storage.offset + t.byte_offset) for t in s.tensors],
            s.params,
            s.tasks,
            s.grain_for(options.threads, library.machine.l2_bytes),
            s.label,
            s.jump,
        )
        for s in lowering.steps
    ]
    constants = {t.storage for s in lowering.steps for t in s.tensors if t.storage.keep is not None}
    scratch_bytes = max((s.scratch_bytes for s in lowering.steps), default=0)
    program = Program(steps, arena_bytes, scratch_bytes, owners=[library, *constants], code=library.native)
    infos = tuple(StepInfo(s.label, s.nodes, s.flops, s.bytes) for s in lowering.steps)
    faults, planned, chooser = tuple(lowering.faults), lowering.steps, lowering.chooser
    groups, outputs = lowering.groups, lowering.outputs
    in_place = {
        lowering.graph.outputs.index(new): lowering.graph.inputs.index(old) for new, old in lowering.caches.items()
    }
    tuned_on = choices.device if choices is not None and chooser.is_tuning else ""
    tuned = Tuned(chooser.used, tuned_on, tuple(chooser.describe()))

    def segments() -> list[Segment]:
        # Imported late: few programs are observed or saved.
        from lite_cpu.lowering.segments import segments_of

        return segments_of(graph, groups, planned, outputs)

    def save() -> Pieces:
        # Imported late: few programs are saved.
        from lite_cpu.saved.writing import save_program

        return save_program(
            graph, options, planned, program, infos, faults, library, weights, tuned, segments(), in_place
        )

    def computes() -> str:
        # Imported late: few programs are described.
        from lite_cpu.lowering.computing import computed_types

        return computed_types(planned, library.machine)

    intervals = tuple([life.interval for life in lifetimes])
    kernels = frozenset([*(step.kernel for step in planned), *lowering.makers])
    return CompiledProgram(
        program, infos, faults, intervals, sum(s.bytes for s in constants), save, segments, tuned, kernels, computes,
        in_place,
    )  # fmt: skip


def _evaluate(lowering: Lowering, nodes: Sequence[Node]) -> bool:
    """Compute nodes now if all their inputs are known, and return True if so; internal operators have no reference."""
    if any(node.domain == "lite_cpu" for node in nodes):
        return False
    computed = evaluate_if_known(nodes, lowering.elements, partial(_evaluate_node, lowering.weights))
    for value, array in () if computed is None else computed.items():
        lowering.set_known(value, array)
    return computed is not None


def _evaluate_node(weights: WeightCache, node: Node, arrays: Sequence[Array | None]) -> Sequence[Array]:
    """Compute a node with known inputs. An array derived from weights alone is shared by all programs."""
    source = arrays[0] if len(arrays) == 1 == len(node.outputs) and not is_traced(*arrays) else None
    if source is not None and source.size >= _MIN_WEIGHT_ELEMENTS:
        derivation = (node.qualified_op, str(node.attributes))
        return [weights.derived(derivation, source, lambda array: evaluate_node(node, [array])[0])]
    if node.qualified_op == "QuantizeLinear" and arrays[0] is not None and arrays[1] is None:
        # The input is already divided by the scale (quantization.py), which the operator's definition requires.
        arrays = [arrays[0], np.ones((), arrays[0].dtype), *arrays[2:]]
    if not is_traced(*arrays):
        return evaluate_node(node, arrays)
    from lite_compiler.tracing.evaluation import Evaluation  # imported late: most sessions have inputs of one shape

    results: Sequence[Array] = call(Evaluation(node), *arrays)
    return results
