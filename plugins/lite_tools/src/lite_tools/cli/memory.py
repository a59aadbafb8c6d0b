"""``lite inspect --memory``: the memory that a run needs, and the arenas' sizes compared with lower bounds."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from lite_core.backend import Interval, MemoryUse, ReportsMemoryUse, ViewsMemory
from lite_core.memory.arena import plan_arena
from lite_core.plugins.contracts import fault_text
from lite_core.schedule.compile import CompiledPartition
from lite_core.schedule.plan import Plan
from lite_tools.commands.printing import console, table

__all__ = ["memory_report", "print_memory_report"]

logger = logging.getLogger("lite.tools")

_UNKNOWN = "-"


def memory_report(plan: Plan) -> dict[str, Any]:
    """Return the arenas of a plan, one for each memory space, and the memory of each partition; all sizes in bytes.

    Sizes that a backend does not report are None. The arena and the scratch memory of a partition are part of the arena
    of its memory space.
    """
    intervals = _arena_intervals(plan)
    return {
        "arenas": [
            # Without views, an arena contains no tensors, only the scratch memory of one partition: nothing to plan.
            {"space": memory.space, **_arena_report(size, found if isinstance(memory, ViewsMemory) else [])}
            for (memory, size), found in zip(plan.arenas, intervals)
        ],
        "partitions": [_partition_report(compiled) for compiled in plan.compiled],
    }


def print_memory_report(report: dict[str, Any]) -> None:
    """Print a report as tables."""
    arenas = [(f"{arena['space']} memory", arena) for arena in report["arenas"]]
    arenas += [(f"inside {part['name']} ({part['backend']})", part["arena"]) for part in report["partitions"]]
    headers = ("arena (KiB)", "size", "lower bound", "excess", "without reuse")
    table(headers, [(name, *_arena_row(arena)) for name, arena in arenas])
    console.print()
    table(
        ("partition (KiB)", "backend", "nodes", "scratch", "weights in the model", "packed weights"),
        [
            (p["name"], p["backend"], p["nodes"], *map(_kib, (p["scratch"], p["constants"], p["weights"])))
            for p in report["partitions"]
        ],
    )


def _partition_report(compiled: CompiledPartition) -> dict[str, Any]:
    graph = compiled.part.graph
    use = _memory_use(compiled)
    return {
        "name": compiled.part.name,
        "backend": compiled.candidate.device.label,
        "nodes": len(graph.nodes),
        "arena": None if use is None else _arena_report(use.arena_bytes, use.intervals),
        "scratch": compiled.executable.scratch_bytes if use is None else use.scratch_bytes,
        "constants": sum(array.nbytes for scope in graph.walk() for array in scope.constants.values()),
        "weights": None if use is None else use.weight_bytes,
    }


def _memory_use(compiled: CompiledPartition) -> MemoryUse | None:
    """Return what an executable reports of its memory; None if it reports nothing, or fails, which is logged."""
    if not isinstance(compiled.executable, ReportsMemoryUse):
        return None
    try:
        use: object = compiled.executable.memory_use()
        fault = f"returned {type(use).__name__}, expected a MemoryUse"
    except (Exception, SystemExit) as error:
        use, fault = None, f"failed with {fault_text(error)}"
    if isinstance(use, MemoryUse):
        return use
    logger.warning("%s, partition %r: memory_use() %s", compiled.candidate, compiled.part.name, fault)
    return None


def _arena_report(size: int, intervals: Sequence[Interval]) -> dict[str, Any]:
    if size and not intervals:
        return {"size": size, "lower_bound": None, "without_reuse": None}
    return {
        "size": size,
        "lower_bound": plan_arena(intervals).lower_bound,
        "without_reuse": sum(interval.size for interval in intervals),
    }


def _arena_intervals(plan: Plan) -> list[list[Interval]]:
    """Return the allocations in each arena of a plan, with their lifetimes."""
    found: list[list[Interval]] = [[] for _ in plan.arenas]
    last_reads = {value: number for number, step in enumerate(plan.steps) for value in step.reads}
    for number, step in enumerate(plan.steps):
        if step.scratch is not None:
            found[step.scratch.arena].append(Interval(step.scratch_bytes, number, number))
        for value, allocation in step.allocations.items():
            size = int(value.type.size or 0) * value.dtype.itemsize  # type: ignore[arg-type]  # allocated: static
            found[allocation.arena].append(Interval(size, number, last_reads.get(value, number)))
    return found


def _arena_row(arena: dict[str, Any] | None) -> tuple[str, ...]:
    if arena is None:
        return (_UNKNOWN,) * 4
    size, bound = arena["size"], arena["lower_bound"]
    excess = f"{100 * (size / bound - 1):.1f} %" if bound else _UNKNOWN
    return _kib(size), _kib(bound), excess, _kib(arena["without_reuse"])


def _kib(size: int | None) -> str:
    return _UNKNOWN if size is None else f"{size / 1024:,.1f}"
