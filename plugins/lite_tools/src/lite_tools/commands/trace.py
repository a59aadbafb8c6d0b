"""A profile as a trace of events, the JSON format that Chrome's tracing and Perfetto open.

The format is described in "Trace Event Format" of the Catapult project. Used are complete events (``"ph": "X"``) with
times in microseconds, and metadata events (``"ph": "M"``) with the names of the process and of its tracks.

Backends measure durations, not when a kernel began: the steps of a run therefore follow each other without gaps, in the
order of the plan, and so do the kernels of a partition from its beginning. The time that no kernel accounts for is the
empty end of a partition. The trace says so in ``otherData``.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from lite_core.schedule import Plan
from lite_core.schedule.profile import CopyTime, KernelRecord, PartitionTime
from lite_core.schedule.steps import CopyStep
from lite_core.session import RunProfile
from lite_core.version import __version__

__all__ = ["trace_document", "trace_text"]

_PROCESS = 1
_COPIES = "copies between memory spaces"
_LAYOUT = (
    "Durations are measured, beginnings are not: steps follow each other in the order of the plan, and kernels follow "
    "each other from the beginning of their partition. The empty end of a partition is time outside of its kernels."
)


def trace_text(profile: RunProfile, plan: Plan, model: str) -> str:
    """Return the trace as JSON, see :func:`trace_document`."""
    return json.dumps(trace_document(profile, plan, model), allow_nan=False)


def trace_document(profile: RunProfile, plan: Plan, model: str) -> dict[str, Any]:
    """Return the trace of a run as plain data.

    Args:
        profile: the profile of the run.
        plan: the plan that ran; its steps are in the order in which they ran.
        model: the model's name for the user.
    """
    tracks = {device: number for number, device in enumerate(dict.fromkeys(p.device for p in profile.partitions), 1)}
    if profile.copies:
        tracks[_COPIES] = len(tracks) + 1
    events = [_metadata("process_name", 0, {"name": f"lite: {model}"})]
    for name, track in tracks.items():
        events.append(_metadata("thread_name", track, {"name": name}))
        events.append(_metadata("thread_sort_index", track, {"sort_index": track}))
    kernels: dict[str, list[KernelRecord]] = {}
    for kernel in profile.kernels:
        kernels.setdefault(kernel.partition, []).append(kernel)
    start = 0.0
    for record in _in_order(profile, plan):
        if isinstance(record, CopyTime):
            events.append(_copy(record, start, tracks[_COPIES]))
            start += record.seconds
        else:
            own = list(_kernels(kernels.get(record.partition, []), start, tracks[record.device]))
            taken = max([record.seconds, sum(event["dur"] for event in own) * 1e-6])
            events += [_partition(record, start, taken, tracks[record.device]), *own]
            start += taken
    return {
        "traceEvents": events,
        "displayTimeUnit": "ms",
        "otherData": {
            "model": model,
            "lite": __version__,
            "times": _LAYOUT,
            "run_ms": profile.seconds * 1e3,
            "outside_of_steps_ms": (profile.seconds - profile.accounted_seconds()) * 1e3,
        },
    }


def _in_order(profile: RunProfile, plan: Plan) -> Iterator[PartitionTime | CopyTime]:
    """Return the records of partitions and copies in the order in which they ran.

    A profile has the order of the partitions and that of the copies; the plan says how they alternate. The records of
    the bodies of a control node, which the plan's steps do not list, follow the node.
    """
    partitions, copies = deque(profile.partitions), deque(profile.copies)
    names = {part.name for part, _ in plan.partitions}
    for step in plan.steps:
        if isinstance(step, CopyStep):
            while copies and copies[0].value != step.reads[0].name:
                yield copies.popleft()
            if copies:
                yield copies.popleft()
        elif partitions:
            yield partitions.popleft()
            while partitions and partitions[0].partition not in names:
                yield partitions.popleft()
    yield from partitions
    yield from copies


def _kernels(kernels: Iterable[KernelRecord], start: float, track: int) -> Iterator[dict[str, Any]]:
    for kernel in kernels:
        arguments: dict[str, Any] = {"op": kernel.op, "nodes": list(kernel.nodes)}
        if kernel.flops:
            arguments |= {"flops": kernel.flops, "gflops_per_second": _rate(kernel.flops, kernel.seconds)}
        if kernel.bytes:
            arguments |= {"bytes": kernel.bytes, "gigabytes_per_second": _rate(kernel.bytes, kernel.seconds)}
        if kernel.peak_share is not None:
            arguments["share_of_peak"] = kernel.peak_share
        yield _complete(kernel.kernel, "kernel", start, kernel.seconds, track, arguments)
        start += kernel.seconds


def _partition(part: PartitionTime, start: float, seconds: float, track: int) -> dict[str, Any]:
    arguments = {"device": part.device, "nodes": part.nodes, "measured_ms": part.seconds * 1e3, "notes": [*part.notes]}
    return _complete(part.partition, "partition", start, seconds, track, arguments)


def _copy(copy: CopyTime, start: float, track: int) -> dict[str, Any]:
    arguments: dict[str, Any] = {"value": copy.value, "from": copy.source, "to": copy.target, "bytes": copy.bytes}
    if copy.bytes:
        arguments["gigabytes_per_second"] = _rate(copy.bytes, copy.seconds)
    return _complete(f"{copy.source} to {copy.target}: {copy.value}", "copy", start, copy.seconds, track, arguments)


def _complete(
    name: str, category: str, start: float, seconds: float, track: int, arguments: dict[str, Any]
) -> dict[str, Any]:
    return {
        "name": name,
        "cat": category,
        "ph": "X",
        "ts": start * 1e6,
        "dur": seconds * 1e6,
        "pid": _PROCESS,
        "tid": track,
        "args": arguments,
    }


def _metadata(name: str, track: int, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "ph": "M", "pid": _PROCESS, "tid": track, "args": arguments}


def _rate(amount: float, seconds: float) -> float:
    """Return a rate in billions per second; 0 if the time is too short to be measured."""
    return amount / seconds / 1e9 if seconds > 0 else 0.0
