"""Tables of a profile: kernels, slowest first, operators of each partition, copies, and the parts of the run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from lite_core.schedule import NodeAssignment
from lite_core.session import RunProfile
from lite_tools.commands.printing import console, table
from lite_tools.commands.profile_rows import UNACCOUNTED, OperatorRow, operator_rows, unaccounted_seconds

__all__ = ["print_profile"]


#: Operators of a device that are named, the most frequent first.
_MOST_OPERATORS = 5


def print_profile(profile: RunProfile, assignment: Sequence[NodeAssignment] = ()) -> None:
    """Print the times of a run as tables that add up to its time, and the notes of the backends.

    Args:
        profile: the times.
        assignment: the device of each node, to name the nodes of devices that do not measure their kernels.
    """
    if profile.kernels:
        _print_kernels(profile)
        _print_operators(profile)
    if profile.copies:
        copies = [
            (c.value, c.source, c.target, f"{c.bytes / 1024:.1f}" if c.bytes else "zero copy",
             _milliseconds(c.seconds), _rate(c.bytes, c.seconds))
            for c in profile.copies
        ]  # fmt: skip
        table(("copied", "from", "to", "KiB", "ms", "GB/s"), copies)
        console.print()
    parts = [(p.partition, p.device, p.nodes, p.seconds) for p in profile.partitions]
    copied = [("copies", "", "", sum(copy.seconds for copy in profile.copies))] if profile.copies else []
    whole = [(UNACCOUNTED, "", "", unaccounted_seconds(profile)), ("the whole run", "", "", profile.seconds)]
    rows = [
        (name, device, nodes, _milliseconds(seconds), _share(seconds, profile.seconds))
        for name, device, nodes, seconds in [*parts, *copied, *whole]
    ]
    table(("partition", "device", "nodes", "ms", "of run"), rows)
    for part in profile.partitions:
        for note in part.notes:
            console.print(f"{part.partition}: {note}", markup=False)
    _print_unmeasured(profile, assignment)


def _print_unmeasured(profile: RunProfile, assignment: Sequence[NodeAssignment]) -> None:
    """Print the operators of the devices that are missing among the kernels."""
    measured = {kernel.partition for kernel in profile.kernels}
    for device in dict.fromkeys(part.device for part in profile.partitions if part.partition not in measured):
        counts = Counter(assigned.op for assigned in assignment if assigned.device == device)
        names = [f"{count} x {op}" for op, count in counts.most_common(_MOST_OPERATORS)]
        names += ["..."] if len(counts) > _MOST_OPERATORS else []
        if names:
            console.print(f"{device} does not measure its kernels; its nodes are {', '.join(names)}", markup=False)


def _print_kernels(profile: RunProfile) -> None:
    rows = [
        (k.kernel, k.op, _milliseconds(k.seconds), _share(k.seconds, profile.seconds), _rate(k.flops, k.seconds),
         _rate(k.bytes, k.seconds), "-" if k.peak_share is None else f"{k.peak_share:.0%}", ", ".join(k.nodes))
        for k in sorted(profile.kernels, key=lambda kernel: -kernel.seconds)
    ]  # fmt: skip
    table(("kernel", "op", "ms", "of run", "GFLOP/s", "GB/s", "of peak", "nodes"), rows)
    console.print()


def _print_operators(profile: RunProfile) -> None:
    """Print the operators of the partitions whose kernels were measured, with the sum of each partition."""
    measured = {kernel.partition for kernel in profile.kernels}
    own: dict[str, list[OperatorRow]] = {}
    for row in operator_rows(profile):
        own.setdefault(row.partition, []).append(row)
    rows: list[tuple[object, ...]] = []
    for name, parts in ((name, parts) for name, parts in own.items() if name in measured):
        for number, row in enumerate(parts):
            shown = "" if number else name
            rows.append((shown, row.op, row.kernels or "", _milliseconds(row.seconds), f"{row.share:.1%}"))
        whole = sum(row.seconds for row in parts)
        rows.append(("", "sum", sum(row.kernels for row in parts), _milliseconds(whole), "100.0%"))
    table(("partition", "op", "kernels", "ms", "of partition"), rows)
    console.print()


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.3f}"


def _share(seconds: float, whole: float) -> str:
    return f"{seconds / whole:.1%}" if whole else "-"


def _rate(amount: float, seconds: float) -> str:
    """Format a rate in billions per second."""
    return f"{amount / seconds / 1e9:.1f}" if amount and seconds else "-"
