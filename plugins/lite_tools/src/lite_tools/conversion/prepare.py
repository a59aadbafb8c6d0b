"""Compilation of a model for a target, with records of the saved state for a model file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from lite_core.backend import ListsConstantsRead, Options, SavedWeights, SavesState, Stale
from lite_core.container import PartitionRecord, PlanRecord, TargetRecord
from lite_core.ir import Graph
from lite_core.memory.scratch import ScratchPool
from lite_core.schedule import Candidate, CompileError, PlacedPartition, Plan, Selection, compatibility_of, place
from lite_core.schedule.compile import CompiledPartition
from lite_core.schedule.planner import Planner
from lite_core.schedule.precision import Precision
from lite_tools.conversion.other_sizes import OtherSizes, collecting, kernel_records
from lite_tools.conversion.pieces import Pieces
from lite_tools.conversion.report import TargetReport
from lite_tools.conversion.targets import Coverage
from lite_tools.conversion.typed import Shapes

__all__ = ["PreparedTarget", "prepare_target"]

_BRANCHES_NOTE = "input shapes decide which branches are taken: sessions compile for them at run time"


@dataclass(frozen=True, slots=True)
class PreparedTarget:
    """The record for one target in the file, and its part of the report."""

    record: TargetRecord
    report: TargetReport


def prepare_target(
    graph: Graph,
    coverage: Coverage,
    others: Sequence[Candidate],
    signatures: Sequence[tuple[Shapes, Graph]],
    options: Sequence[Options],
    pieces: Pieces | None,
    other_sizes: OtherSizes | None = None,
    *,
    precision: Precision | None = None,
    may_move: bool = False,
) -> PreparedTarget:
    """Compile a model for a target and save the state of its backends.

    Args:
        graph: the model as it will be in the file.
        coverage: the target, and its answers about the nodes.
        others: devices that may run nodes that the target refuses, in order of preference; empty if none may.
        signatures: the input shapes to prepare plans for, each with the graph whose types follow from them.
        options: the options of expected sessions, in ascending order of threads; a plan is saved for each.
        pieces: receives the state that backends save; None if it is not stored in the file.
        other_sizes: the sizes for which kernels are saved besides the plans; None if there are none.
        precision: the precision of every node; by default that of ``options``.
        may_move: True if nodes that fail to compile may move to ``others``, too.

    Raises:
        CompileError: the backend failed to compile or to save, and no other device may run those nodes.
        UnsupportedOperatorError: for some of the shapes, no device supports some nodes.
    """
    target, candidate = coverage.target, coverage.target.candidate
    precision, exact = precision or Precision(options[0].precision), options[0].exact
    if candidate is None:
        # Empty names let the session place the nodes, which is not possible here without a device.
        no_devices, no_refusals = ("",) * len(graph.nodes), ((),) * len(graph.nodes)
        record = TargetRecord(target.name, target.plugin, precision.text, exact, no_devices, no_refusals)
        return PreparedTarget(record, _report(coverage, record, 0))
    candidates, failures = (candidate, *others), list[str]()
    if other_sizes is not None:
        candidates = tuple(map(collecting, candidates))
    selection = Selection(candidates, (), automatic=may_move)
    wanted = options[-1:] if pieces is None else options
    planners = [(allowed, Planner(selection, {}, allowed, ScratchPool(), failures, precision)) for allowed in wanted]
    plans = [
        (shapes, allowed, planner.plan(typed, place(typed, candidates)))
        for shapes, typed in signatures
        for allowed, planner in planners
        if planner.plan_decided(typed) is None  # with decided branches, the plan does not match the graph in the file
    ]
    placement = plans[0][2].placement if plans else place(graph, candidates)
    records, notes = list[PlanRecord](), list[str]()
    if pieces is not None:
        every = [
            PlanRecord(shapes, own.threads, _partition_records(plan, own, pieces, notes)) for shapes, own, plan in plans
        ]
        # Drop prepared plans that would save a session no work.
        records = [record for record in every if any(part.sections for part in record.partitions)]
    kernels: tuple[PartitionRecord, ...] = ()
    if pieces is not None and other_sizes is not None:
        planner = Planner(Selection(candidates, ()), {}, options[-1], ScratchPool(), [], precision)
        other_sizes.compile([(shapes, plan) for shapes, _, plan in plans], candidates, planner)
        kernels = kernel_records(candidates, options[-1], pieces, other_sizes.command)
    names = [c.device.backend for c in placement.candidates]
    record = TargetRecord(
        backend=target.name,
        plugin=target.plugin,
        precision=precision.text,
        exact=exact,
        devices=tuple(names[index] for index in placement.choice),
        refusals=tuple(assignment.refusals for assignment in placement.assignments),
        plans=tuple(records),
        level=candidate.device.level,
        features=tuple(sorted(candidate.device.features)) if records or kernels else (),
        kernels=kernels,
    )
    saved = {name for parts in (kernels, *(plan.partitions for plan in records)) for p in parts for name in p.sections}
    saved_bytes = 0 if pieces is None else pieces.size(saved)
    saves_nothing = pieces is not None and len(plans) > len(records)
    report = _report(coverage, record, saved_bytes, failures, saves_nothing=saves_nothing)
    if len(plans) < len(signatures) * len(planners):
        notes.append(_BRANCHES_NOTE)
    return PreparedTarget(record, replace(report, notes=(*report.notes, *dict.fromkeys(notes))))


def _partition_records(plan: Plan, options: Options, pieces: Pieces, notes: list[str]) -> tuple[PartitionRecord, ...]:
    """Return a record of each partition; ``notes`` receives the reasons why state that could be saved is not."""
    numbers = {node: number for number, node in enumerate(plan.graph.nodes)}
    records = []
    for compiled in plan.compiled:
        inner = compiled.part.graph
        constants = {value.name: array for value, array in inner.constants.items()}
        executable = compiled.executable
        text = compatibility_of(compiled.candidate, options) if isinstance(executable, SavesState) else ""
        if isinstance(text, Stale):
            notes.append(f"{text.reason}, so that the file has no state for {compiled.part.name}")
        saved = () if isinstance(text, Stale) else _save(compiled)
        sections = tuple(pieces.add(piece, constants) for piece in saved)
        records.append(
            PartitionRecord(
                name=compiled.part.name,
                backend=compiled.candidate.device.backend,
                nodes=tuple(numbers[node] for node in inner.nodes),
                inputs=tuple(value.name for value in inner.inputs),
                outputs=tuple((value.name, value.type) for value in inner.outputs),
                compatibility=text if sections and isinstance(text, str) else "",
                sections=sections,
                reads=tuple(executable.constants_read() if isinstance(executable, ListsConstantsRead) else constants),
            )
        )
    return tuple(records)


def _save(compiled: CompiledPartition) -> Sequence[bytes | memoryview | SavedWeights]:
    """Return the pieces that the backend saves for a partition; empty if it saves nothing."""
    if not isinstance(compiled.executable, SavesState):
        return ()
    placed = PlacedPartition(compiled.part, compiled.candidate)
    try:
        saved = compiled.executable.save()
    except (Exception, SystemExit) as error:
        raise CompileError(placed, f"its save() failed with {type(error).__name__}: {error}") from error
    # NOTE: a bytes object is a Sequence, too: of integers.
    if not isinstance(saved, Sequence) or not all(isinstance(p, (bytes, memoryview, SavedWeights)) for p in saved):
        raise CompileError(
            placed, f"its save() returned {type(saved).__name__}, not a sequence of bytes, memoryviews and SavedWeights"
        )
    return saved


def _report(
    coverage: Coverage,
    record: TargetRecord,
    saved_bytes: int,
    failures: Sequence[str] = (),
    saves_nothing: bool = False,
) -> TargetReport:
    target = coverage.target
    notes = [f"{failure}; other devices run those nodes" for failure in dict.fromkeys(failures)]
    if target.candidate is None:
        notes.append(
            f"{target.name} could not be asked: {target.absent}. The model is in the file; sessions on {target.name} "
            "place and compile it when they load"
        )
    elif saves_nothing:
        notes.append(f"{target.name} saves no state: sessions on it compile the model when they load")
    return TargetReport(
        name=target.name,
        level=target.level,
        plugin=target.plugin,
        absent=target.absent,
        nodes=dict(Counter(filter(None, record.devices))),
        refusals=coverage.refusals or (),
        plans=tuple({tuple(plan.shapes.items()): dict(plan.shapes) for plan in record.plans}.values()),
        threads=tuple(dict.fromkeys(plan.threads for plan in record.plans)),
        saved_bytes=saved_bytes,
        notes=tuple(notes),
    )
