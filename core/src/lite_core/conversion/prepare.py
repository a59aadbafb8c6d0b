"""Compiling a model for a target, and turning what its backend saves into records of a model file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lite_core.backend import Options
from lite_core.container import PartitionRecord, PlanRecord, TargetRecord
from lite_core.conversion.report import TargetReport
from lite_core.conversion.targets import Coverage
from lite_core.errors import GraphError, InputError
from lite_core.ir import Graph
from lite_core.ops.infer import infer_graph
from lite_core.schedule import Candidate, CompileError, PlacedPartition, Plan, Selection, compatibility_of, place
from lite_core.schedule.compile import CompiledPartition
from lite_core.schedule.planner import Planner
from lite_core.schedule.scratch import ScratchPool

__all__ = ["Blob", "PreparedTarget", "Shapes", "prepare_target", "typed_graph"]

#: What a backend saved of a partition: the bytes, or pieces of them in order.
Blob = bytes | Sequence[bytes | memoryview]
#: A shape for each input, by name.
Shapes = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class PreparedTarget:
    """What goes into the file for one target, and what to tell about it."""

    record: TargetRecord
    blobs: Mapping[str, Blob]
    report: TargetReport


def typed_graph(graph: Graph, shapes: Shapes) -> Graph:
    """A copy of a graph with the types that follow from the shapes of its inputs.

    Raises:
        InputError: the model does not accept them.
    """
    typed = graph.copy()
    try:
        infer_graph(typed, {v.name: v.type.with_shape(shapes[v.name]) for v in graph.inputs})
    except GraphError as error:
        listed = ", ".join(f"{name}={list(shape)}" for name, shape in shapes.items())
        raise InputError(f"the model does not accept the input shapes {listed}: {error}") from None
    return typed


def prepare_target(
    graph: Graph,
    coverage: Coverage,
    others: Sequence[Candidate],
    signatures: Sequence[tuple[Shapes, Graph]],
    options: Options,
    *,
    may_move: bool = False,
    store: bool = True,
) -> PreparedTarget:
    """Compile a model for a target and save what can be saved.

    Args:
        graph: the model as it will be in the file.
        coverage: the target, and what it said about the nodes.
        others: devices that may run what the target cannot, in order of preference; none where nothing may.
        signatures: for each plan the input shapes, and the graph with the types that follow from them.
        options: what the sessions will allow.
        may_move: whether what fails to compile may go to ``others``, too.
        store: whether what the backends save goes into the file.

    Raises:
        CompileError: the backend failed to compile or to save, and no other device may run those nodes.
        UnsupportedOperatorError: with some of the shapes nodes run nowhere.
    """
    target, candidate = coverage.target, coverage.target.candidate
    if candidate is None:
        # No backend's name: where the nodes run is found out where the model is loaded.
        nowhere, nothing = ("",) * len(graph.nodes), ((),) * len(graph.nodes)
        record = TargetRecord(target.name, target.plugin, options.precision, options.exact, nowhere, nothing)
        return PreparedTarget(record, {}, _report(coverage, record, {}))
    candidates, failures = (candidate, *others), list[str]()
    selection = Selection(candidates, (), automatic=may_move)
    planner = Planner(selection, {}, options, ScratchPool(), failures)
    plans = [(shapes, planner.plan(typed, place(typed, candidates))) for shapes, typed in signatures]
    placement = plans[0][1].placement if plans else place(graph, candidates)
    blobs: dict[str, Blob] = {}
    records = []
    for number, (shapes, plan) in enumerate(plans if store else []):
        saved_before = len(blobs)
        partitions = _partition_records(plan, f"{target.name}/{number}", options, blobs)
        if len(blobs) > saved_before:  # else there is nothing that the file could spare a session
            records.append(PlanRecord(shapes, partitions))
    names = [c.device.backend for c in placement.candidates]
    record = TargetRecord(
        backend=target.name,
        plugin=target.plugin,
        precision=options.precision,
        exact=options.exact,
        devices=tuple(names[index] for index in placement.choice),
        refusals=tuple(assignment.refusals for assignment in placement.assignments),
        plans=tuple(records),
    )
    return PreparedTarget(
        record, blobs, _report(coverage, record, blobs, failures, saves_nothing=store and len(plans) > len(records))
    )


def _partition_records(
    plan: Plan, prefix: str, options: Options, blobs: dict[str, Blob]
) -> tuple[PartitionRecord, ...]:
    numbers = {node: number for number, node in enumerate(plan.graph.nodes)}
    records = []
    for index, compiled in enumerate(plan.compiled):
        saved = _save(compiled)
        section = f"{prefix}/{index}" if saved else ""
        if saved:
            blobs[section] = saved
        inner = compiled.part.graph
        records.append(
            PartitionRecord(
                name=compiled.part.name,
                backend=compiled.candidate.device.backend,
                nodes=tuple(numbers[node] for node in inner.nodes),
                inputs=tuple(value.name for value in inner.inputs),
                outputs=tuple((value.name, value.type) for value in inner.outputs),
                compatibility=compatibility_of(compiled.candidate, options) if saved else "",
                section=section,
            )
        )
    return tuple(records)


def _save(compiled: CompiledPartition) -> Blob:
    """What the backend saves of a partition, nothing where it saves nothing."""
    save = getattr(compiled.executable, "save", None)
    if save is None:
        return b""
    try:
        saved: Blob = save()
        size = _size(saved)
    except Exception as error:
        placed = PlacedPartition(compiled.part, compiled.candidate)
        raise CompileError(placed, f"its save() failed with {type(error).__name__}: {error}") from error
    return saved if size else b""


def _size(blob: Blob) -> int:
    pieces = [blob] if isinstance(blob, (bytes, bytearray, memoryview)) else blob
    return sum(memoryview(piece).nbytes for piece in pieces)


def _report(
    coverage: Coverage,
    record: TargetRecord,
    blobs: Mapping[str, Blob],
    failures: Sequence[str] = (),
    saves_nothing: bool = False,
) -> TargetReport:
    target = coverage.target
    notes = [f"{failure}; other devices run those nodes" for failure in dict.fromkeys(failures)]
    if target.candidate is None:
        notes.append(
            f"{target.name} could not be asked: {target.absent}. The model is in the file; a session on {target.name} "
            "places and compiles it when it loads"
        )
    elif saves_nothing:
        notes.append(f"{target.name} saves nothing: a session on it compiles the model when it loads")
    return TargetReport(
        name=target.name,
        plugin=target.plugin,
        absent=target.absent,
        nodes=dict(Counter(filter(None, record.devices))),
        refusals=coverage.refusals or (),
        plans=tuple(dict(plan.shapes) for plan in record.plans),
        saved_bytes=sum(map(_size, blobs.values())),
        notes=tuple(notes),
    )
