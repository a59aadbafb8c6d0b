"""The contract between Lite and a hardware backend, API version 1.

A backend is an object with ``name``, ``probe``, ``supports`` and ``compile`` (:class:`Backend`). Lite asks ``probe``
which devices there are, ``supports`` for each node of a model, and ``compile`` for each partition: nodes for one device
that can run in one go. The :class:`Executable` that comes back is run many times, possibly by several threads at once.

All else is optional. Each optional part is a small Protocol, named after what it adds, and Lite finds it by its
members. A class that names the Protocol among its bases, ``class MyBackend(ProvidesMemory, RestoresState)``, has them
checked by mypy, which then also says where one is missing or misspelt.

An author who does not want to compile partitions writes kernels: see :mod:`lite_core.kernel_backend`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from lite_core.errors import ExecutionError
from lite_core.ir import Graph, Node, TensorType

__all__ = [
    "API_VERSION",
    "Backend",
    "Buffer",
    "DescribesTarget",
    "Device",
    "Executable",
    "HasNotes",
    "Interval",
    "KernelTime",
    "ListsConstantsRead",
    "MeasuresSpeed",
    "Memory",
    "MemoryUse",
    "No",
    "Options",
    "Partition",
    "PartitionIdentity",
    "ProfilesKernels",
    "ProvidesMemory",
    "ReportsFindings",
    "ReportsMemoryUse",
    "RestoresState",
    "SavesState",
    "SharesHostMemory",
    "Stale",
    "StatesCompatibility",
    "TakesOptions",
    "Unavailable",
    "ViewsMemory",
    "Yes",
]

#: The version of this contract. A plugin states the one it was written for as ``LITE_API_VERSION``.
API_VERSION = 1

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Device:
    """Something that can run partitions, found by ``probe``.

    Attributes:
        backend: name of the backend that found it.
        index: its number among the backend's devices.
        name: what a person would call it, for example the processor's model.
        score: the higher, the sooner ``backend="auto"`` takes it. ``host`` has 0.
        details: anything worth showing: driver version, memory, instruction sets.
        flops: floating-point operations it can do in a second, all its processors together; 0 where that is unknown.
        bandwidth: bytes it can read or write in its memory in a second; 0 where that is unknown.
        launch_seconds: the cost of running one more kernel. From these three the scheduler estimates what a node costs,
            to weigh it against copies; it moves no node away from a device that leaves the first two out.
    """

    backend: str
    index: int = 0
    name: str = ""
    score: float = 1.0
    details: Mapping[str, str] = field(default_factory=dict, hash=False, compare=False)
    flops: float = 0.0
    bandwidth: float = 0.0
    launch_seconds: float = 0.0

    @property
    def label(self) -> str:
        """``opencl``, or ``opencl:1`` for any but the first device."""
        return f"{self.backend}:{self.index}" if self.index else self.backend


@dataclass(frozen=True, slots=True)
class Unavailable:
    """Why a backend has no device on this machine, and what would change that."""

    reason: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Yes:
    """The backend can run the node."""


@dataclass(frozen=True, slots=True)
class No:
    """The backend cannot run the node; ``reason`` is a sentence for the user."""

    reason: str


@dataclass(frozen=True, slots=True)
class Stale:
    """Saved state does not fit this machine or version; the partition is compiled again."""

    reason: str


class PartitionIdentity:
    """What partitions have in common that differ in the sizes of their tensors only.

    They have the same nodes with the same attributes in the same order, tensors of the same element types and ranks,
    and the same array objects as constants in the same order. A backend may keep what it made of all that in a
    ``weakref.WeakKeyDictionary``: a identity lives no longer than its session and the session's plans.
    """

    __slots__ = ("__weakref__",)


@dataclass(frozen=True, slots=True)
class Partition:
    """A set of nodes given to one backend, convex but not necessarily connected.

    Attributes:
        name: unique in the model, for messages and profiles.
        graph: a graph of its own; its inputs and outputs are the partition's. Each output is made by one of its nodes,
            and listed once. Shapes are those of the input signature at hand; a dimension is symbolic only where it
            depends on data. Constants are the same array objects for every signature: keep packed weights by identity.
        identity: the same object for the partitions that other signatures of the session have in this one's place.
    """

    name: str
    graph: Graph
    identity: PartitionIdentity = field(default_factory=PartitionIdentity, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Options:
    """What the session allows.

    Attributes:
        threads: how many threads the backend may use.
        precision: ``"float32"`` computes as the model says; ``"float16"`` and ``"bfloat16"`` allow a
            backend to compute and store floats in that type.
        exact: forbid algorithms that trade accuracy for speed (Winograd).
        tune: while a partition is compiled, measure which of the backend's ways to compute it are fastest here, and
            keep that. A backend whose choices need no measuring ignores it.
        own: the backend's own options, those that ``load(backend_options={name: ...})`` gives for it; see
            :class:`TakesOptions`.
    """

    threads: int = 1
    precision: str = "float32"
    exact: bool = False
    tune: bool = False
    own: Mapping[str, Any] = field(default_factory=dict, hash=False)


class Memory(Protocol):
    """A memory space: where a device's tensors live. Devices with the same ``space`` share buffers without copies.

    ``allocate`` gives storage for a tensor of a static type, of undefined content; ``upload`` copies a host array into
    storage; ``download`` gives a copy of storage in main memory, which the caller owns.
    """

    space: str

    def allocate(self, type: TensorType) -> Any: ...

    def upload(self, array: Array, data: Any) -> None: ...

    def download(self, data: Any) -> Array: ...


@runtime_checkable
class ViewsMemory(Protocol):
    """Optional part of a memory space: tensors lie in larger blocks, so that Lite plans an arena for each run.

    ``view`` gives the storage of a tensor that lies ``offset`` bytes, a multiple of 64, into storage of uint8 elements.
    Conformance puts guard zones round it.
    """

    def view(self, data: Any, offset: int, type: TensorType) -> Any: ...


@runtime_checkable
class SharesHostMemory(Protocol):
    """Optional part of the memory space of a device that works in main memory: arrays are used instead of copied.

    ``wrap`` gives storage that is a host array itself. The array is contiguous, not empty, begins at a multiple of
    ``wrap_alignment`` bytes (at least the size of the widest element), and is only read where it is read-only. Storage
    is made for one run: it keeps the array alive, and nothing may use the array once the storage is gone. An array may
    be wrapped several times at once, by other devices too, and is then only read. ``synchronize`` waits until the host
    sees what finished runs have written to a wrapped array; later runs may still read it.
    """

    wrap_alignment: int

    def wrap(self, array: Array) -> Any: ...

    def synchronize(self, data: Any) -> None: ...


class Buffer:
    """A tensor in a memory space.

    ``data`` is what the memory's ``allocate`` returns: a NumPy array for host memory, read-only for an
    input of the model. The buffer of an output whose shape depends on data arrives with ``data`` None; the
    executable calls :meth:`allocate` or :meth:`store`.
    """

    __slots__ = ("_provided", "data", "memory", "type")

    def __init__(self, type: TensorType, memory: Memory, data: Any = None) -> None:
        self.type = type
        self.memory = memory
        self.data = data
        self._provided = data

    @property
    def holds_its_own(self) -> bool:
        """Whether ``data`` is the storage this buffer was given or allocated, not something put in its place."""
        return self.data is not None and self.data is self._provided

    def allocate(self, shape: Sequence[int]) -> Any:
        """Give the buffer storage of a shape that has just become known; returns the storage."""
        self.type = self.type.with_shape(tuple(shape))
        self.data = self._provided = self.memory.allocate(self.type)
        return self.data

    def store(self, array: Array) -> None:
        """Copy a host array into the buffer, allocating it first where the shape was unknown.

        Raises:
            ExecutionError: the array is not of the buffer's type; nothing is converted or broadcast.
        """
        if array.dtype != self.type.dtype.numpy or not self.type.accepts(array.shape):
            raise ExecutionError(f"a result must be {self.type}, is {array.dtype}{list(array.shape)}")
        data = self.allocate(array.shape) if self.data is None else self.data
        self.memory.upload(array, data)


class KernelTime(NamedTuple):
    """How long one kernel of a partition took in one run.

    Attributes:
        name: the kernel's name.
        nodes: names of the nodes that it computes; several where the backend fused them.
        seconds: the time it took.
        flops: floating-point operations that it did, two for a multiply-add; 0 where they are not counted.
        bytes: bytes that it read and wrote, each tensor once; 0 where they are not counted.
        peak_share: the share, 0 to 1, of the device's peak arithmetic or memory bandwidth, whichever limits it.
    """

    name: str
    nodes: tuple[str, ...]
    seconds: float
    flops: float = 0.0
    bytes: float = 0.0
    peak_share: float | None = None


class Interval(NamedTuple):
    """``size`` bytes of memory, from the step that writes them, ``first``, to the last that reads them."""

    size: int
    first: int
    last: int


class MemoryUse(NamedTuple):
    """What the memory of a compiled partition is used for.

    Attributes:
        arena_bytes: size of the memory that tensors inside the partition share during a run.
        intervals: what lies there, from which kernel to which; empty where nobody knows.
        scratch_bytes: what kernels work in beside that, all threads together.
        weight_bytes: constants as the kernels read them, packed ones as they are packed.
    """

    arena_bytes: int
    intervals: tuple[Interval, ...]
    scratch_bytes: int
    weight_bytes: int


class Executable(Protocol):
    """A compiled partition. Every run needs ``scratch_bytes``; several threads may call ``run`` at once."""

    scratch_bytes: int

    def run(self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None) -> None:
        """Run the partition.

        Args:
            inputs: one buffer for each input of the partition's graph, not to be written.
            outputs: one for each output, to be filled.
            scratch: ``scratch_bytes`` bytes, or None when that is 0. Their content is undefined: the memory
                is used by run after run. In main memory they begin at a multiple of 64.
        """
        ...


@runtime_checkable
class ProfilesKernels(Protocol):
    """Optional part of an executable: as :meth:`Executable.run`, and returns the time of each kernel in their order."""

    def run_profiled(
        self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None
    ) -> Sequence[KernelTime]: ...


@runtime_checkable
class HasNotes(Protocol):
    """Optional part of an executable: lines for profiles, such as whether compiled code came from a cache."""

    @property
    def notes(self) -> Sequence[str]: ...


@runtime_checkable
class ReportsMemoryUse(Protocol):
    """Optional part of an executable, for `lite inspect --memory`."""

    def memory_use(self) -> MemoryUse: ...


@runtime_checkable
class SavesState(Protocol):
    """Optional part of an executable: its compiled form can be stored in a model file.

    ``save`` gives the pieces that :meth:`RestoresState.restore` takes, none where there is nothing to save. A piece
    that several partitions, shapes or targets save is stored once, so what programs share, such as each packed weight,
    is a piece of its own.
    """

    def save(self) -> Sequence[bytes | memoryview]: ...


@runtime_checkable
class ListsConstantsRead(Protocol):
    """Optional part of a restored executable: names of the constants of the partition's graph that runs still read.

    Only their checksums are verified; where it is omitted, all are.
    """

    def constants_read(self) -> Collection[str]: ...


@runtime_checkable
class Backend(Protocol):
    """What a plugin's ``lite_backends`` hook returns."""

    name: str

    def probe(self) -> Sequence[Device] | Unavailable:
        """The devices of this machine. Never raises for a missing driver or library."""
        ...

    def supports(self, node: Node, device: Device) -> Yes | No:
        """Whether the device can run the node, with the types it has."""
        ...

    def compile(self, part: Partition, device: Device, options: Options) -> Executable:
        """Prepare a partition for running."""
        ...


@runtime_checkable
class ProvidesMemory(Protocol):
    """Optional part of a backend: where the tensors of a device live; main memory where it is omitted."""

    def memory(self, device: Device) -> Memory: ...


@runtime_checkable
class DescribesTarget(Protocol):
    """Optional part of a backend: the device to convert models for on a machine where ``probe`` finds none."""

    def target(self) -> Device: ...


@runtime_checkable
class StatesCompatibility(Protocol):
    """Optional part of a backend that restores: what must be the same for saved state to be used.

    That is the driver, the instruction set, the version of the code. A model file records it, and Lite compares it
    before it calls :meth:`RestoresState.restore`.
    """

    def compatibility(self, device: Device, options: Options) -> str: ...


@runtime_checkable
class RestoresState(Protocol):
    """Optional part of a backend: as :meth:`Backend.compile`, from the pieces that :meth:`SavesState.save` gave.

    Lite has compared their checksums: the pieces are whole, unchanged and in their order. Each is read-only, begins at
    a multiple of 64 in memory, is usually mapped from the model file, and stays valid as long as anything refers to it.
    Stale is the answer to pieces that were not saved for this partition: missing, cut short, another's, in another
    order. The types of the partition's inputs and outputs are those of the signature; those between may still have
    symbolic dimensions.
    """

    def restore(
        self, pieces: Sequence[memoryview], part: Partition, device: Device, options: Options
    ) -> Executable | Stale: ...


@runtime_checkable
class ReportsFindings(Protocol):
    """Optional part of a backend, for `lite doctor`: lines that say what it looked for, where, and what it chose."""

    def report(self) -> Sequence[str]: ...


@runtime_checkable
class MeasuresSpeed(Protocol):
    """Optional part of a backend whose ``probe`` leaves out how fast a device is, because measuring takes time.

    ``measured`` gives the device with its ``flops``, ``bandwidth`` and ``launch_seconds``; it is asked when costs are
    compared.
    """

    def measured(self, device: Device) -> Device: ...


@runtime_checkable
class TakesOptions(Protocol):
    """Optional part of a backend that has options of its own: ``load(backend_options={name: {...}})``.

    ``check_options`` checks them before anything is compiled, and raises InputError for one that is unknown or has a
    value that does not fit; :attr:`Options.own` has them then. A backend without it refuses every option.
    """

    def check_options(self, options: Mapping[str, Any]) -> None: ...
