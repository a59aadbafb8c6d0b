"""Prepared parts of a model file: the placement of nodes and compiled partitions for a session's devices."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from shlex import quote
from typing import Any

import numpy as np

from lite_core.backend import Options, Partition, Stale
from lite_core.container import ModelFile, PartitionRecord, PlanRecord, TargetRecord
from lite_core.errors import ModelFormatError, UnsupportedOperatorError, UntrustedCodeError
from lite_core.ir import Graph, SymbolicDim, TensorType
from lite_core.schedule import (
    Candidate,
    NodeAssignment,
    PlacedPartition,
    Placement,
    Plan,
    cut,
    place,
    restore_partition,
)
from lite_core.schedule.compile import CompiledPartition
from lite_core.schedule.placement import place_bodies
from lite_core.schedule.planner import Planner

__all__ = ["Prepared", "place_without_code"]

Array = np.ndarray[Any, Any]


def place_without_code(
    file: ModelFile | None, graph: Graph, candidates: Sequence[Candidate], pins: Mapping[str, str], saved: str
) -> Placement:
    """Place the nodes of a model whose prepared code, if its file has any, is not used.

    Raises:
        UntrustedCodeError: the code is not trusted, and the device that it was prepared for cannot run without it.
        UnsupportedOperatorError: some nodes run on no candidate.
    """
    first = candidates[0].device.backend
    is_prepared = file is not None and any(first in record.devices for record in file.targets if record.plans)
    refused: UnsupportedOperatorError | None = None
    try:
        placement = place(graph, candidates, pins)
    except UnsupportedOperatorError as error:
        if not is_prepared:
            raise
        refused = error
    is_stuck = is_prepared and saved != "ignore" and (refused or 0 not in placement.choice)
    if file is not None and is_stuck and not file.code_is_trusted(saved):
        problems = refused.problems if refused else ()
        reasons = [p.reason for p in problems] or [why for a in placement.assignments for _, why in a.refusals] or [""]
        raise UntrustedCodeError(
            f"model {str(file.path)!r}: {first} cannot run it without the file's code ({reasons[0]}), which this user "
            f"did not make on this machine. If you trust its origin: lite trust {quote(str(file.path))}"
        ) from refused
    if refused:
        raise refused
    return placement


class Prepared:
    """The placement and the plans that a model file contains for one target, which fit a session's devices.

    Args:
        file: the model file.
        record: the file's record of the target.
        candidates: the session's devices.
    """

    def __init__(self, file: ModelFile, record: TargetRecord, candidates: Sequence[Candidate]) -> None:
        self._file = file
        self._record = record
        self._candidates = tuple(candidates)
        self._by_name = {c.device.backend: c for c in reversed(candidates)}

    @staticmethod
    def find(
        file: ModelFile,
        candidates: Sequence[Candidate],
        options: Options,
        sources: Mapping[str, str],
        saved: str,
        log: list[str],
    ) -> Prepared | None:
        """Return the file's prepared part for the session's first device, or None with the reason in ``log``.

        Args:
            file: the model file.
            candidates: the session's devices.
            options: the session's options.
            sources: distribution and version of each installed backend.
            saved: one of :data:`lite_core.container.trust.SAVED`.
            log: receives a line with the reason if the prepared part, or its preferred level, cannot be used.
        """
        first = candidates[0].device.backend
        levels = [record for record in file.targets if record.backend == first]
        lacking = [sorted({*record.features}.difference(candidates[0].device.features)) for record in levels]
        record = next((record for record, lacks in zip(levels, lacking) if not lacks), None)
        for level, lacks in zip(levels, lacking):
            if level is record:
                break
            log.append(f"{first}: the file's {level.level} needs {', '.join(lacks)}, which this processor lacks")
        if record is None:
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
        elif (record.precision, record.exact) != (options.precision, options.exact):
            why = (
                f"it is for precision={record.precision!r}, exact={record.exact}, requested is "
                f"precision={options.precision!r}, exact={options.exact}"
            )
        elif missing:
            why = f"it also needs {', '.join(missing)}, which this session does not use"
        elif not file.code_is_trusted(saved):
            if not file.has_code:  # then its placement and types are the file's word only, and soon made again
                return None
            why = f"this user did not make their code on this machine. To trust it: lite trust {quote(str(file.path))}"
        else:
            return Prepared(file, record, candidates)
        log.append(f"{first}: the prepared plans of the model's file are not used: {why}; the model is compiled again")
        return None

    def placement(self, graph: Graph) -> Placement:
        """Return the placement of the nodes that was recorded when the file was made."""
        numbers = {c.device.backend: self._candidates.index(c) for c in self._by_name.values()}
        labels = {name: c.device.label for name, c in self._by_name.items()}
        assignments = tuple(
            NodeAssignment(
                node.name, node.qualified_op, str(node.origin) if node.origin else "", labels[device], refusals
            )
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
        self,
        record: PlanRecord,
        graph: Graph,
        infer: Callable[[], None],
        planner: Planner,
        options: Options,
        log: list[str],
    ) -> Plan:
        """Build the plan of a record: restore its partitions, and compile the stale ones.

        Args:
            record: one of the file's plans.
            graph: the graph, with the signature's types for its inputs.
            infer: infers the types of all other values of the graph; called only if a partition must be compiled.
            planner: compiles partitions.
            options: the session's options.
            log: receives a line for each partition that could not be restored.

        Raises:
            CompileError: a backend failed to compile a stale partition.
            ModelFormatError: the record does not fit the graph, or a section that is read is damaged.
        """
        if self._file.is_stripped:  # it cannot be compiled for another number of threads
            options = replace(options, threads=record.threads)
        self._set_types(record, graph)
        placement = self.placement(graph)
        compiled: list[CompiledPartition] = []
        inferred = False
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
                if not inferred:
                    self._file.verify_constants(graph.every_constant())
                    infer()
                    inferred = True
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
        for value in (v for node in graph.nodes for v in node.outputs if v is not None):
            type = types.get(value.name)
            if type is not None:
                if not _fits(type, value.type):
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
        return PlacedPartition(part, self._by_name[record.backend], is_control)


def _fits(type: TensorType, declared: TensorType) -> bool:
    """Return True if a type is an instance of the type that a graph declares, which may have symbolic dimensions."""
    if declared.shape is None or type.shape is None:
        return type.dtype is declared.dtype
    return (type.dtype, type.rank) == (declared.dtype, declared.rank) and all(
        isinstance(dim, SymbolicDim) or dim == size for dim, size in zip(declared.shape, type.shape)
    )
