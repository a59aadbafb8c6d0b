"""The records in a model file: its sections, and for each target the plans and the saved state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from lite_core.ir import PanelLayout, TensorType

__all__ = ["PackedConstant", "PartitionRecord", "PlanRecord", "Section", "TargetRecord"]


class Section(NamedTuple):
    """A named range of bytes in the file.

    Attributes:
        name: unique in the file.
        offset: in bytes from the beginning of the file, a multiple of 64.
        size: in bytes.
        checksums: CRC-32, as computed by ``zlib.crc32``, of each block of 4 MiB; the last block may be shorter.
        sealed: True if the section is covered by the seal of the file's code, see :mod:`lite_core.container.trust`.
    """

    name: str
    offset: int
    size: int
    checksums: tuple[int, ...]
    sealed: bool = False


class PackedConstant(NamedTuple):
    """A constant of the graph in the order in which a program reads it; the name of its section is ``packed/N``.

    Attributes:
        array: the constant, float32, the same object as in the graph.
        layout: the order of its elements.
        data: the elements in that order.
    """

    array: np.ndarray[Any, Any]
    layout: PanelLayout
    data: bytes | memoryview


class PartitionRecord(NamedTuple):
    """One partition of a plan, with the sections of its saved state.

    Attributes:
        name: the partition's name, unique in its plan.
        backend: name of the backend that compiled it.
        nodes: indices of its nodes in the graph.
        inputs: names of its input values.
        outputs: names and types of its output values.
        compatibility: text that must match before the saved state is used; empty if the backend states none.
        sections: names of the sections with the pieces of the saved state, in order; empty if the backend saved
            nothing. Equal pieces of several partitions are stored in one section: ``code/N``, ``weights/N``, or
            ``packed/N`` for a :class:`PackedConstant`.
        reads: names of the constants that the restored partition reads from the graph.
    """

    name: str
    backend: str
    nodes: tuple[int, ...]
    inputs: tuple[str, ...]
    outputs: tuple[tuple[str, TensorType], ...]
    compatibility: str = ""
    sections: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()


class PlanRecord(NamedTuple):
    """The partitions for one set of input shapes and one number of threads, in run order."""

    shapes: Mapping[str, tuple[int, ...]]
    threads: int
    partitions: tuple[PartitionRecord, ...]


class TargetRecord(NamedTuple):
    """Placement, plans and saved state for one target of the conversion.

    Attributes:
        backend: the target, a backend's name.
        plugin: distribution and version of the backend: ``"lite-x86 0.1.0"``.
        precision: the precision it was compiled for, as written by :attr:`lite_core.schedule.precision.Precision.text`.
        exact: see :class:`lite_core.backend.Options`.
        devices: for each node of the graph, the name of the backend that runs it; all empty if the target had no
            device during conversion, so that nodes are placed when the model is loaded.
        refusals: for each node, pairs of a refusing backend and its reason.
        plans: one for each prepared set of input shapes and number of threads.
        level: name of the processor level that the plans were compiled for, such as ``x86-64-v3``.
        features: what a device must contain to run them, see :attr:`lite_core.backend.Device.features`. A target has
            one record for each level, the preferred one first.
        kernels: for each backend with :class:`~lite_core.saved_kernels.SavesKernels`, the sections of its kernels and
            what they are compatible with. The name is the command that made them, without input shapes.
    """

    backend: str
    plugin: str
    precision: str
    exact: bool
    devices: tuple[str, ...]
    refusals: tuple[tuple[tuple[str, str], ...], ...]
    plans: tuple[PlanRecord, ...] = ()
    level: str = ""
    features: tuple[str, ...] = ()
    kernels: tuple[PartitionRecord, ...] = ()
