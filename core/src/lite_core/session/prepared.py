"""Prepared parts of a model file: the placement of nodes and compiled partitions for a session's devices."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from shlex import quote

from lite_core.backend import No, Options, Partition, Stale
from lite_core.container import ModelFile, PartitionRecord, PlanRecord, TargetRecord
from lite_core.errors import ModelFormatError, UnsupportedOperatorError, UntrustedCodeError
from lite_core.ir import Graph
from lite_core.saved_kernels import SavesKernels
from lite_core.schedule import Candidate, PlacedPartition, Plan, Selection, cut
from lite_core.schedule.compile import CompiledPartition, compatibility_of, restore_partition
from lite_core.schedule.placement import NodeAssignment, Placement, ask, place, place_bodies
from lite_core.schedule.planner import Planner
from lite_core.schedule.precision import Precision

__all__ = ["Prepared", "place_without_code"]


def place_without_code(
    file: ModelFile | None,
    graph: Graph,
    candidates: Sequence[Candidate],
    pins: Mapping[str, str],
    saved: str,
    notes: Sequence[str],
) -> Placement:
    """Place the nodes of a model whose prepared code, if its file has any, is not used.

    Raises:
        UntrustedCodeError: the code is not trusted, and the device that it was prepared for cannot run without it.
        UnsupportedOperatorError: some nodes run on no candidate; the message contains the notes, which say why the
            prepared code is not used.
    """
    first = candidates[0].device.backend
    prepared = [record for record in (file.targets if file else ()) if record.plans or record.kernels]
    if file and saved != "ignore" and any(first in r.devices for r in prepared) and not file.code_is_trusted(saved):
        refused = [a.reason for a in (ask(candidates[0], node) for node in graph.nodes) if isinstance(a, No)]
        if refused and (len(refused) == len(graph.nodes) or len(candidates) == 1):
            raise UntrustedCodeError(
                f"model {str(file.path)!r}: {first} cannot run it without the file's code ({refused[0]}), which this "
                f"user did not make on this machine. If you trust its origin: lite trust {quote(str(file.path))}"
            )
    try:
        return place(graph, candidates, pins)
    except UnsupportedOperatorError as error:
        subject = f"graph {graph.name!r} on {', '.join(c.device.label for c in candidates)}"
        raise UnsupportedOperatorError("; ".join([*notes, subject]), error.problems) from error


class Prepared:
    """The placement and the plans that a model file contains for one target, which fit a session's devices.

    Args:
        file: the model file.
        record: the file's record of the target.
        candidates: the session's devices.
        options: the session's options.
    """

    def __init__(
        self, file: ModelFile, record: TargetRecord, candidates: Sequence[Candidate], options: Options
    ) -> None:
        self._file = file
        self._record = record
        self._precision = Precision.of(record.precision)
        self._candidates = tuple([_with_kernels(c, file, record, options) for c in candidates])
        self._by_name = {c.device.backend: c for c in reversed(self._candidates)}
        self._stands_in = self._candidates != tuple(candidates)

    @staticmethod
    def find(
        file: ModelFile,
        candidates: Sequence[Candidate],
        options: Options,
        precision: Precision,
        sources: Mapping[str, str],
        saved: str,
        log: list[str],
    ) -> Prepared | None:
        """Return the file's prepared part for the session's first device, or None with the reason in ``log``.

        Args:
            file: the model file.
            candidates: the session's devices.
            options: the session's options.
            precision: the precision of every node.
            sources: distribution and version of each installed backend.
            saved: one of :data:`lite_core.container.trust.SAVED`.
            log: receives a line with the reason if the prepared part, or its preferred level, cannot be used.
        """
        first = candidates[0].device.backend
        for record in (each for each in file.targets if each.backend == first):
            lacks = sorted({*record.features} - candidates[0].device.features)
            if not lacks:
                break
            log.append(f"{first}: the file's {record.level} needs {', '.join(lacks)}, which this processor lacks")
        else:
            return None
        if "" in record.devices:
            log.append(f"{first}: the model's file is not prepared for this device; the model is compiled again")
            return None
        needed = {*record.devices, *(part.backend for plan in record.plans for part in plan.partitions)}
        missing = sorted(needed - {c.device.backend for c in candidates})
        if saved == "ignore":
            why = "saved='ignore' or LITE_SAVED=ignore is set"
        elif record.plugin != sources.get(first):
            why = f"it was made with {record.plugin}, installed is {sources.get(first, 'none')}"
        elif (record.precision, record.exact) != (precision.text, options.exact):
            why = (
                f"it is for precision={record.precision!r}, exact={record.exact}, requested is "
                f"precision={precision.text!r}, exact={options.exact}"
            )
        elif missing:
            why = f"it also needs {', '.join(missing)}, which this session does not use"
        elif not file.code_is_trusted(saved):
            if not file.has_code:  # then its placement and types are the file's word only, and soon made again
                return None
            why = f"this user did not make their code on this machine. To trust it: lite trust {quote(str(file.path))}"
        else:
            return Prepared(file, record, candidates, options)
        log.append(f"{first}: the prepared plans of the model's file are not used: {why}; the model is compiled again")
        return None

    def selection(self, selection: Selection) -> Selection:
        """Return the session's devices; where the file's kernels stand in for a compiler, nodes may move to others."""
        automatic = selection.automatic or self._stands_in
        return selection._replace(candidates=self._candidates, automatic=automatic)

    def advice(self, shapes: Mapping[str, tuple[int, ...]]) -> list[str]:
        """Return a line with the command that prepares input shapes, if this session cannot compile for them."""
        options = [f"--input-shape {name}={'x'.join(map(str, shape))}" for name, shape in shapes.items()]
        made = self._record.kernels[:1] if self._stands_in else ()
        return [f"to prepare these sizes: {' '.join([part.name, *options])}" for part in made]

    def placement(self, graph: Graph) -> Placement:
        """Return the placement of the nodes that was recorded when the file was made."""
        numbers = {c.device.backend: self._candidates.index(c) for c in self._by_name.values()}
        labels = {name: c.device.label for name, c in self._by_name.items()}
        assignments = tuple(
            NodeAssignment(node.name, node.qualified_op, str(node.origin or ""), labels[device], refusals)
            for node, device, refusals in zip(graph.nodes, self._record.devices, self._record.refusals)
        )
        bodies = place_bodies(graph, assignments, self._candidates, {})
        choice = tuple(numbers[device] for device in self._record.devices)
        return Placement(self._candidates, choice, assignments, bodies=bodies)

    def plan_record(self, shapes: Mapping[str, tuple[int, ...]], threads: int) -> PlanRecord | None:
        """Return the record of the plan for input shapes, or None.

        Prefer the same number of threads, else the next larger number, else the largest.
        """
        fitting = [record for record in self._record.plans if dict(record.shapes) == dict(shapes)]
        return min(fitting, key=lambda r: (r.threads < threads, abs(r.threads - threads)), default=None)

    def restore(
        self, record: PlanRecord, graph: Graph, infer: Callable[[], None], planner: Planner, log: list[str]
    ) -> Plan:
        """Build the plan of a record: restore its partitions, and compile the stale ones.

        Args:
            record: one of the file's plans.
            graph: the graph, with the signature's types for its inputs.
            infer: infers the types of all other values of the graph, whose constants it verifies; called only if a
                partition must be compiled.
            planner: compiles partitions, with the session's options.
            log: receives a line for each partition that could not be restored.

        Raises:
            CompileError: a backend failed to compile a stale partition.
            ModelFormatError: the record does not fit the graph, or a section that is read is damaged.
        """
        # A stripped file cannot be compiled for another number of threads.
        options = replace(planner.options, threads=record.threads) if self._file.stripped else planner.options
        self._set_types(record, graph)
        placement = self.placement(graph)
        placement.log()
        compiled: list[CompiledPartition] = []
        infer = cache(infer)
        computed = set(graph.inputs)
        for part in record.partitions:
            placed = self._placed_partition(part, graph, placement)
            own = placed.partition.graph
            if not computed.issuperset(own.inputs):
                raise self._mismatch(f"partition {part.name!r} comes before one whose results it needs")
            computed.update(own.outputs)
            if placed.is_control:
                self._file.verify_constants(own.every_constant())
                compiled.append(planner.compile(placed))
                continue
            restored = self._restore_partition(part, placed, options)
            if isinstance(restored, Stale):
                if part.sections:
                    log.append(f"{placed.candidate.device.label}: {part.name} is compiled again: {restored.reason}")
                infer()
                restored = planner.compile(placed)
            compiled.append(restored)
        return Plan(graph, placement, compiled, planner.pool)

    def _restore_partition(
        self, record: PartitionRecord, placed: PlacedPartition, options: Options
    ) -> CompiledPartition | Stale:
        if not record.sections:
            return Stale("the file has nothing prepared for it")
        own = placed.partition.graph
        names = [v.name for v in own.inputs], [v.name for v in own.outputs]
        if names != ([*record.inputs], [name for name, _ in record.outputs]):
            return Stale("it was prepared with other inputs or outputs")
        unread = {id(array) for value, array in own.constants.items() if value.name not in record.reads}
        self._file.verify_constants(array for array in own.every_constant() if id(array) not in unread)
        return restore_partition(placed, self._file.contents(record.sections), record.compatibility, options)

    def _set_types(self, record: PlanRecord, graph: Graph) -> None:
        """Set the types of values between partitions to the types recorded for the record's shapes."""
        types = {name: type for part in record.partitions for name, type in part.outputs}
        for value in (v for node in graph.nodes for v in node.outputs if v is not None and v.name in types):
            type = types[value.name]
            # The graph may declare fewer dimensions, or symbolic ones.
            if type.dtype is not value.dtype or not (type.shape is None or value.type.accepts(type.shape)):
                raise self._mismatch(f"{value.name!r} is {value.type} in the graph, and {type} in a plan")
            value.type = type

    def _mismatch(self, reason: str) -> ModelFormatError:
        return ModelFormatError(
            f"model {str(self._file.path)!r}: section 'targets' does not fit the graph: {reason}; "
            "convert the model again"
        )

    def _placed_partition(self, record: PartitionRecord, graph: Graph, placement: Placement) -> PlacedPartition:
        nodes = [graph.nodes[i] for i in record.nodes]
        part = Partition(record.name, cut(graph, record.name, nodes))
        is_control = len(nodes) == 1 and record.nodes[0] in placement.bodies
        candidate = self._precision.variant(self._by_name[record.backend], nodes[0].name if nodes else "")
        return PlacedPartition(part, candidate, is_control)


def _with_kernels(candidate: Candidate, file: ModelFile, record: TargetRecord, options: Options) -> Candidate:
    """Return the candidate with the device that compiles from the file's kernels, if it has no compiler."""
    backend, device = candidate.backend, candidate.device
    wanted = device.backend, compatibility_of(candidate, options)
    kernels = next((part.sections for part in record.kernels if (part.backend, part.compatibility) == wanted), None)
    if kernels and isinstance(backend, SavesKernels):
        return candidate._replace(device=backend.with_kernels(file.contents(kernels), device))
    return candidate
