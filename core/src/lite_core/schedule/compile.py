"""Compiling partitions, or restoring them from the saved state in a model file."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from lite_core.backend import (
    Executable,
    Memory,
    Options,
    Partition,
    ProvidesMemory,
    RestoresState,
    Stale,
    StatesCompatibility,
)
from lite_core.errors import ExecutionError
from lite_core.memory import HostMemory
from lite_core.plugins.contracts import Kind, fault_text, missing_members
from lite_core.schedule.control import ControlExecutable, PlanBody
from lite_core.schedule.devices import Candidate
from lite_core.schedule.partition import PlacedPartition

__all__ = ["CompileError", "CompiledPartition", "compatibility_of", "compile_partition", "restore_partition"]

logger = logging.getLogger("lite.schedule")

_HOST = HostMemory()


class CompileError(ExecutionError):
    """A backend failed to compile the partition ``placed``; ``reason`` is its error."""

    def __init__(self, placed: PlacedPartition, reason: str) -> None:
        self.placed, self.reason, self.source = placed, reason, placed.candidate.source
        super().__init__(
            f"{placed.candidate} failed to compile partition {placed.partition.name!r} "
            f"({len(placed.partition.graph.nodes)} nodes): {reason}"
        )


class CompiledPartition(NamedTuple):
    """A compiled partition and the memory space of its tensors."""

    part: Partition
    candidate: Candidate
    executable: Executable
    memory: Memory


def compile_partition(
    placed: PlacedPartition, options: Options, plan_body: PlanBody | None = None
) -> CompiledPartition:
    """Compile a partition with its backend. ``plan_body`` makes the plans of a control node's sub-graphs.

    Raises:
        CompileError: the backend failed, or returned an object that is not an executable.
    """
    candidate, part = placed.candidate, placed.partition
    if placed.is_control and plan_body is not None:
        return CompiledPartition(part, candidate, ControlExecutable(part, plan_body), _HOST)
    logger.debug("compiling partition %s, %d nodes", part.name, len(part.graph.nodes))
    try:
        executable = candidate.backend.compile(part, candidate.device, candidate.options(options))
        return _checked_result(placed, executable, memory_of(candidate))
    except BaseException as error:
        raise CompileError(placed, fault_text(error)) from error


def restore_partition(
    placed: PlacedPartition, pieces: Sequence[memoryview], compatibility: str, options: Options
) -> CompiledPartition | Stale:
    """Restore a partition from saved state, or return the reason why it must be compiled again. Never raises."""
    candidate, part, backend = placed.candidate, placed.partition, placed.candidate.backend
    if not isinstance(backend, RestoresState):
        return Stale(f"the backend {backend.name!r} that is installed here restores nothing")
    try:
        if isinstance(here := compatibility_of(candidate, options), Stale):
            return here
        if compatibility != here:
            return Stale(f"it was prepared for {compatibility or 'anything'}; this machine has {here or 'anything'}")
        found = backend.restore(pieces, part, candidate.device, candidate.options(options))
        return found if isinstance(found, Stale) else _checked_result(placed, found, memory_of(candidate))
    except BaseException as error:
        logger.debug("%s failed to restore %s", candidate, part.name, exc_info=True)
        return Stale(f"restoring it failed with {fault_text(error)}")


def compatibility_of(candidate: Candidate, options: Options) -> str | Stale:
    """Return the text that must match before a backend's saved state is used; empty if the backend states none.

    If the backend does not tell because it fails, its state can be neither saved nor used: return the reason.
    """
    if not isinstance(backend := candidate.backend, StatesCompatibility):
        return ""
    try:
        text: object = backend.compatibility(candidate.device, candidate.options(options))
        fault = f"returned {type(text).__name__}, expected a text"
    except (Exception, SystemExit) as error:
        text, fault = None, f"failed with {fault_text(error)}"
    return text if isinstance(text, str) else Stale(f"compatibility() of {candidate.source.removesuffix(' -')} {fault}")


def memory_of(candidate: Candidate) -> Memory:
    """Return the memory space of a device's tensors."""
    backend = candidate.backend
    return backend.memory(candidate.device) if isinstance(backend, ProvidesMemory) else _HOST


def _checked_result(placed: PlacedPartition, executable: Executable, memory: Memory) -> CompiledPartition:
    kinds: tuple[tuple[object, Kind], ...] = ((executable, "executable"), (memory, "memory"))
    for instance, kind in kinds:
        if missing := missing_members(instance, kind):
            raise ExecutionError(f"its {type(instance).__name__} lacks {', '.join(missing)}; see lite_core/backend.py")
    size: object = executable.scratch_bytes
    if not (isinstance(size, (int, np.integer)) and size >= 0):
        raise ExecutionError(f"the scratch_bytes of its {type(executable).__name__} are {size!r}, expected an int >= 0")
    return CompiledPartition(placed.partition, placed.candidate, executable, memory)
