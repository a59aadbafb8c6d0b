"""Tables of a profile: kernels, slowest first, totals by operator, copies, partitions."""

from __future__ import annotations

from collections import Counter

from lite_core.session import RunProfile
from lite_tools.commands.printing import console, table

__all__ = ["print_profile"]


def print_profile(profile: RunProfile) -> None:
    """Print the times of a run as tables, and the notes of the backends."""
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
    rows = [
        (name, device, nodes, _milliseconds(seconds), _share(seconds, profile))
        for name, device, nodes, seconds in [*parts, ("the whole run", "", "", profile.seconds)]
    ]
    table(("partition", "device", "nodes", "ms", "of run"), rows)
    for part in profile.partitions:
        for note in part.notes:
            console.print(f"{part.partition}: {note}", markup=False)


def _print_kernels(profile: RunProfile) -> None:
    rows = [
        (k.kernel, k.op, _milliseconds(k.seconds), _share(k.seconds, profile), _rate(k.flops, k.seconds),
         _rate(k.bytes, k.seconds), "-" if k.peak_share is None else f"{k.peak_share:.0%}", ", ".join(k.nodes))
        for k in sorted(profile.kernels, key=lambda kernel: -kernel.seconds)
    ]  # fmt: skip
    table(("kernel", "op", "ms", "of run", "GFLOP/s", "GB/s", "of peak", "nodes"), rows)
    console.print()


def _print_operators(profile: RunProfile) -> None:
    counts = Counter(kernel.op for kernel in profile.kernels)
    rows = [
        (op, counts[op], _milliseconds(seconds), _share(seconds, profile)) for op, seconds in profile.by_op().items()
    ]
    table(("op", "kernels", "ms", "of run"), rows)
    console.print()


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.3f}"


def _share(seconds: float, profile: RunProfile) -> str:
    return f"{seconds / profile.seconds:.1%}" if profile.seconds else "-"


def _rate(amount: float, seconds: float) -> str:
    """Format a rate in billions per second."""
    return f"{amount / seconds / 1e9:.1f}" if amount and seconds else "-"
