"""Profiles of runs: times by partition, by kernel and by operator."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

from lite_core.backend import KernelTime, Partition
from lite_core.notebooks import Shown

__all__ = ["CopyTime", "KernelRecord", "PartitionTime", "RunProfile"]


class PartitionTime(NamedTuple):
    """The time of one partition in one run, in seconds, with notes of its backend."""

    partition: str
    device: str
    nodes: int
    seconds: float
    notes: tuple[str, ...] = ()


class CopyTime(NamedTuple):
    """The time of one copy between memory spaces (IoCopy) in one run, in seconds.

    ``bytes`` is 0 if the device used the array in main memory directly.
    """

    value: str
    source: str
    target: str
    bytes: int
    seconds: float


class KernelRecord(NamedTuple):
    """One kernel of one run, as its backend measured it.

    Attributes:
        kernel: the kernel's name.
        device: label of the device it ran on.
        partition: the partition it belongs to.
        op: the operators it computes: ``Conv``, or ``Conv+Clip`` if the backend fused nodes.
        nodes: names of those nodes.
        seconds: its run time.
        flops: floating-point operations; 0 if the backend does not report them.
        bytes: bytes read and written; 0 if the backend does not report them.
        peak_share: achieved share of the device's peak, 0 to 1; None if the backend does not report it.
    """

    kernel: str
    device: str
    partition: str
    op: str
    nodes: tuple[str, ...]
    seconds: float
    flops: float = 0.0
    bytes: float = 0.0
    peak_share: float | None = None


_Record = TypeVar("_Record", "PartitionTime", "CopyTime", "KernelRecord")


class RunProfile(Shown):
    """The times of one run, recorded by ``session.run(..., profile=...)``.

    Attributes:
        partitions: the time of each partition, in run order.
        copies: the time of each copy between memory spaces, in run order.
        kernels: the time of each kernel, in run order; none for a partition whose backend does not measure kernels.
        seconds: the time of the whole run.
    """

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Remove the times of an earlier run."""
        self.partitions: list[PartitionTime] = []
        self.copies: list[CopyTime] = []
        self.kernels: list[KernelRecord] = []
        self.seconds = 0.0

    def add(
        self, part: Partition, device: str, seconds: float, kernels: Iterable[KernelTime], notes: Sequence[str] = ()
    ) -> None:
        """Record the time of a partition, and of its kernels if they were measured."""
        self.partitions.append(PartitionTime(part.name, device, len(part.graph.nodes), seconds, tuple(notes)))
        ops = {node.name: node.qualified_op for node in part.graph.nodes}
        for kernel in kernels:
            op = "+".join(dict.fromkeys(ops[name] for name in kernel.nodes if name in ops))
            name, nodes, measured = kernel.name, tuple(kernel.nodes), kernel[2:]
            self.kernels.append(KernelRecord(name, device, part.name, op or "-", nodes, *measured))

    def add_repeated(self, inside: RunProfile) -> None:
        """Record the profile of a node's bodies; repeated runs of a partition, copy or kernel are summed."""
        self.partitions += _summed(inside.partitions, lambda p: (p.partition, p.device), "seconds")
        self.copies += _summed(inside.copies, lambda c: (c.value, c.source, c.target), "seconds", "bytes")
        self.kernels += _summed(inside.kernels, lambda k: (k.kernel, k.partition, k.nodes), "seconds", "flops", "bytes")

    def accounted_seconds(self) -> float:
        """Return the seconds spent in partitions and copies."""
        return sum(part.seconds for part in self.partitions) + sum(copy.seconds for copy in self.copies)

    def by_device(self) -> dict[str, float]:
        """Return the seconds spent on each device."""
        return _totals((part.device, part.seconds) for part in self.partitions)

    def by_op(self) -> dict[str, float]:
        """Return the seconds spent in the kernels of each operator or group of fused operators, longest first."""
        totals = _totals((kernel.op, kernel.seconds) for kernel in self.kernels)
        return dict(sorted(totals.items(), key=lambda item: -item[1]))

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain dictionaries, lists, numbers and strings."""
        return {
            "seconds": self.seconds,
            "partitions": [part._asdict() for part in self.partitions],
            "copies": [copy._asdict() for copy in self.copies],
            "kernels": [kernel._asdict() for kernel in self.kernels],
            "seconds_by_op": self.by_op(),
        }

    def to_json(self) -> str:
        """Return everything as JSON."""
        import json  # not at the top: every session imports this module, but few need JSON

        return json.dumps(self.as_dict(), indent=2)

    def __repr__(self) -> str:
        on = "".join(f", {seconds * 1e3:.3f} ms on {name}" for name, seconds in self.by_device().items())
        ops = [f"\n  {s * 1e3:9.3f} ms  {'other' if name == '-' else name}" for name, s in self.by_op().items()]
        return f"Profile of a run: {self.seconds * 1e3:.3f} ms{on}{''.join(ops[:6])}"

    def __str__(self) -> str:
        """Return a line for each kernel, slowest first, copy and partition, and the notes; `lite run` prints tables."""
        kernels = sorted(self.kernels, key=lambda kernel: -kernel.seconds)
        times = [(k.seconds, f"{k.kernel} ({k.op}): {', '.join(k.nodes)}") for k in kernels]
        times += [
            (c.seconds, f"copied {c.value}, {c.bytes or 'zero copy'}, {c.source} to {c.target}") for c in self.copies
        ]
        times += [(p.seconds, f"{p.partition} on {p.device}, {p.nodes} nodes") for p in self.partitions]
        notes = [f"{part.partition}: {note}" for part in self.partitions for note in part.notes]
        lines = [f"{seconds * 1e3:9.3f} ms  {text}" for seconds, text in [*times, (self.seconds, "the whole run")]]
        return "\n".join([*lines, *notes])


def _summed(records: Iterable[_Record], key: Callable[[_Record], Hashable], *amounts: str) -> list[_Record]:
    """Merge records with equal keys: the last record of each key is kept, with its amounts summed."""
    found: dict[Hashable, _Record] = {}
    for record in records:
        before = found.get(key(record))
        sums = {} if before is None else {a: getattr(before, a) + getattr(record, a) for a in amounts}
        found[key(record)] = record._replace(**sums)
    return list(found.values())


def _totals(pairs: Iterable[tuple[str, float]]) -> dict[str, float]:
    totals: dict[str, float] = {}
    for key, amount in pairs:
        totals[key] = totals.get(key, 0.0) + amount
    return totals
