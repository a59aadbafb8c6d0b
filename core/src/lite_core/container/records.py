"""What a model file says about itself: its sections, and for each target the plans and what was saved for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from lite_core.ir import TensorType

__all__ = ["PartitionRecord", "PlanRecord", "Section", "TargetRecord"]


class Section(NamedTuple):
    """A stretch of the file with a name.

    Attributes:
        name: unique in the file.
        offset: bytes from the file's beginning, a multiple of 64.
        size: bytes.
        checksums: CRC-32, as ``zlib.crc32`` computes it, of each 4 MiB; the last of them may be shorter.
    """

    name: str
    offset: int
    size: int
    checksums: tuple[int, ...]


class PartitionRecord(NamedTuple):
    """One partition of a plan, and where what its backend saved lies.

    Attributes:
        name: the partition's name, unique in its plan.
        backend: name of the backend that compiled it.
        nodes: numbers of its nodes among the graph's.
        inputs: names of the values that it takes.
        outputs: names and types of the values that it gives.
        compatibility: what the backend compares before it uses the saved state, empty where it said nothing.
        sections: names of the sections with the pieces of the saved state, in their order; none where the backend saved
            nothing. What several partitions saved alike is in one section.
    """

    name: str
    backend: str
    nodes: tuple[int, ...]
    inputs: tuple[str, ...]
    outputs: tuple[tuple[str, TensorType], ...]
    compatibility: str = ""
    sections: tuple[str, ...] = ()


class PlanRecord(NamedTuple):
    """The partitions for one set of input shapes and one number of threads, in the order in which they run."""

    shapes: Mapping[str, tuple[int, ...]]
    threads: int
    partitions: tuple[PartitionRecord, ...]


class TargetRecord(NamedTuple):
    """What was decided and saved for one target that the file was converted for.

    Attributes:
        backend: the target, a backend's name.
        plugin: distribution and version that brought it: ``"lite-x86 0.1.0"``.
        precision: what it was compiled for, as in :class:`lite_core.backend.Options`.
        exact: as in :class:`lite_core.backend.Options`.
        devices: for each node of the graph the name of the backend that runs it; all empty where the target had no
            device to ask, so that nodes are placed when the model is loaded.
        refusals: for each node who refused it: pairs of backend and reason.
        plans: one for each set of input shapes and each number of threads that was prepared.
    """

    backend: str
    plugin: str
    precision: str
    exact: bool
    devices: tuple[str, ...]
    refusals: tuple[tuple[tuple[str, str], ...], ...]
    plans: tuple[PlanRecord, ...] = ()
