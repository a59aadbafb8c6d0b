"""The contract between Lite and a hardware backend, API version 1.

A backend is an object with ``name``, ``probe``, ``supports`` and ``compile`` (:class:`Backend`). Lite calls ``probe``
to list the devices, ``supports`` for each node of a model, and ``compile`` for each partition: nodes of one device that
are compiled together. The returned :class:`Executable` runs many times, possibly in several threads at once.

All other parts are optional. Each is a small Protocol named after what it adds, and Lite detects it by its members. If
a class lists the Protocol among its bases, as in ``class MyBackend(ProvidesMemory, RestoresState)``, mypy checks its
members and reports a missing or misspelt one.

A backend can also be written as one function per operator: see :mod:`lite_core.kernel_backend`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from lite_core.errors import ExecutionError
from lite_core.ir import Array, Graph, Node, SavedWeights, TensorType
from lite_core.reports import Interval, KernelTime, MemoryUse

__all__ = [
    "API_VERSION",
    "Backend",
    "Buffer",
    "DescribesTarget",
    "Device",
    "Executable",
    "HasLevels",
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
    "SavedWeights",
    "SavesState",
    "SharesHostMemory",
    "Stale",
    "StatesCompatibility",
    "TakesOptions",
    "Unavailable",
    "ViewsMemory",
    "Yes",
]

#: The version of this contract. A plugin declares the version it was written for as ``LITE_API_VERSION``.
API_VERSION = 1


@dataclass(frozen=True, slots=True)
class Device:
    """A device that can run partitions, reported by ``probe``.

    Attributes:
        backend: name of its backend.
        index: its number among the backend's devices.
        name: readable name, for example the processor's model.
        score: ``backend="auto"`` prefers devices with higher scores. ``host`` has 0.
        details: information to show; sessions log ``tuning``, and note what ``float16`` and ``bfloat16`` compute in.
        flops: floating-point operations per second of all its processors together; 0 if unknown.
        bandwidth: bytes per second that it can read or write in its memory; 0 if unknown.
        launch_seconds: overhead of one kernel launch. From these three values the scheduler estimates the cost of a
            node and weighs it against copies. It moves no node away from a device whose first two are 0.
        features: names of what prepared code may need: instruction sets. A model file may hold several levels of code;
            the first whose features the device has is used.
        level: name of the level that models are compiled for on this device, with exactly these features.
    """

    backend: str
    index: int = 0
    name: str = ""
    score: float = 1.0
    details: Mapping[str, str] = field(default_factory=dict, hash=False, compare=False)
    flops: float = 0.0
    bandwidth: float = 0.0
    launch_seconds: float = 0.0
    features: frozenset[str] = frozenset()
    level: str = ""

    @property
    def label(self) -> str:
        """The device as text: ``opencl`` for the first one of a backend, ``opencl:1`` for the second."""
        return f"{self.backend}:{self.index}" if self.index else self.backend


@dataclass(frozen=True, slots=True)
class Unavailable:
    """The reason why a backend has no device on this machine, and a remedy."""

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
    """Saved state does not fit this machine or version; the partition must be compiled again."""

    reason: str


class PartitionIdentity:
    """The identity shared by partitions that differ only in the sizes of their tensors.

    They have the same nodes with the same attributes in the same order, tensors of the same element types and ranks,
    and the same array objects as constants in the same order. A backend may cache what it derives from these in a
    ``weakref.WeakKeyDictionary``: an identity lives no longer than its session and the session's plans.
    """

    __slots__ = ("__weakref__",)


@dataclass(frozen=True, slots=True)
class Partition:
    """A set of nodes compiled together by one backend; convex, but not necessarily connected.

    Attributes:
        name: unique in the model, for messages and profiles.
        graph: the nodes as a separate graph. Each output is written by one of its nodes and listed once. Shapes are
            those of one input signature; a dimension is symbolic only if it depends on data. Constants are contiguous,
            aligned to their elements, and the same array objects for every signature: key packed weights by identity.
        identity: the same object for the corresponding partitions of the session's other signatures.
    """

    name: str
    graph: Graph
    identity: PartitionIdentity = field(default_factory=PartitionIdentity, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a session that apply to compilation.

    Attributes:
        threads: maximum number of threads of the backend.
        precision: ``"float32"`` computes in the model's types; ``"float16"`` and ``"bfloat16"`` allow a
            backend to compute and store floats in that type.
        exact: forbid algorithms that trade accuracy for speed (Winograd).
        tune: while a partition is compiled, measure which of the backend's kernels are fastest on this machine, and
            store the result. A backend without tunable kernels ignores it.
        own: backend-specific options from ``load(backend_options={name: ...})``; see :class:`TakesOptions`.
    """

    threads: int = 1
    precision: str = "float32"
    exact: bool = False
    tune: bool = False
    own: Mapping[str, Any] = field(default_factory=dict, hash=False)


class Memory(Protocol):
    """A memory space that holds the tensors of a device. Devices with the same ``space`` share buffers without copies.

    ``allocate`` returns storage with undefined content for a tensor of a static type. ``upload`` copies a host array
    into storage. ``download`` returns a copy of storage in main memory, which the caller owns.
    """

    space: str

    def allocate(self, type: TensorType) -> Any: ...

    def upload(self, array: Array, data: Any) -> None: ...

    def download(self, data: Any) -> Array: ...


@runtime_checkable
class ViewsMemory(Protocol):
    """Optional part of a memory space: tensors can be views of larger blocks, so that Lite plans one arena for a run.

    ``view`` returns the storage of a tensor at ``offset`` bytes, a multiple of 64, of storage of uint8 elements. The
    conformance suite surrounds such tensors with guard zones.
    """

    def view(self, data: Any, offset: int, type: TensorType) -> Any: ...


@runtime_checkable
class SharesHostMemory(Protocol):
    """Optional part of a memory space for devices that can access main memory: arrays are wrapped instead of copied.

    ``wrap`` returns storage that aliases a host array. The array is contiguous, not empty, and aligned to
    ``wrap_alignment`` bytes (at least the size of the widest element); a read-only array must not be written. The
    storage is used for one run. It keeps the array alive, and the device must not access the array after the storage is
    released. An array may be wrapped several times at once, also by other devices, and is then only read.
    ``synchronize`` waits until the host sees what finished runs wrote to a wrapped array; later runs may still read it.
    """

    wrap_alignment: int

    def wrap(self, array: Array) -> Any: ...

    def synchronize(self, data: Any) -> None: ...


class Buffer:
    """A tensor in a memory space.

    ``data`` is storage as the memory's ``allocate`` returns it: a NumPy array for host memory, read-only for an input
    of the model. If the shape of an output depends on data, its buffer arrives with ``data`` None, and the executable
    calls :meth:`allocate` or :meth:`store`.
    """

    __slots__ = ("_provided", "data", "memory", "type")

    def __init__(self, type: TensorType, memory: Memory, data: Any = None) -> None:
        self.type = type
        self.memory = memory
        self.data = data
        self._provided = data

    @property
    def holds_its_own(self) -> bool:
        """True if ``data`` is the storage given to or allocated by this buffer; False if a backend replaced it."""
        return self.data is not None and self.data is self._provided

    def allocate(self, shape: Sequence[int]) -> Any:
        """Allocate the buffer's storage for a shape that has just become known; return the storage."""
        self.type = self.type.with_shape(tuple(shape))
        self.data = self._provided = self.memory.allocate(self.type)
        return self.data

    def store(self, array: Array) -> None:
        """Copy a host array into the buffer; allocate its storage first if the shape was unknown.

        Raises:
            ExecutionError: the array is not of the buffer's type. Nothing is converted or broadcast.
        """
        if array.dtype != self.type.dtype.numpy or not self.type.accepts(array.shape):
            raise ExecutionError(f"a result must be {self.type}, is {array.dtype}{list(array.shape)}")
        data = self.allocate(array.shape) if self.data is None else self.data
        self.memory.upload(array, data)


class Executable(Protocol):
    """A compiled partition. Each run needs ``scratch_bytes`` bytes of scratch memory; ``run`` must be thread-safe."""

    scratch_bytes: int

    def run(self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None) -> None:
        """Run the partition.

        Args:
            inputs: one buffer for each input of the partition's graph; they must not be written.
            outputs: one buffer for each output, to be written.
            scratch: ``scratch_bytes`` bytes, or None if that is 0. Their content is undefined, because runs reuse the
                memory. In main memory they are aligned to 64 bytes.
        """
        ...


@runtime_checkable
class ProfilesKernels(Protocol):
    """Optional part of an executable: run as :meth:`Executable.run` does, and return the times of kernels in order."""

    def run_profiled(
        self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None
    ) -> Sequence[KernelTime]: ...


@runtime_checkable
class HasNotes(Protocol):
    """Optional part of an executable: notes shown in profiles, for example that its code came from a cache."""

    @property
    def notes(self) -> Sequence[str]: ...


@runtime_checkable
class ReportsMemoryUse(Protocol):
    """Optional part of an executable: report its memory use, for `lite inspect --memory`."""

    def memory_use(self) -> MemoryUse: ...


@runtime_checkable
class SavesState(Protocol):
    """Optional part of an executable: its compiled form can be stored in a model file.

    ``save`` returns the pieces that :meth:`RestoresState.restore` takes, or none if there is nothing to save. Each
    packed weight should be a :class:`SavedWeights`: it is stored once for all partitions, shapes and targets. All other
    pieces count as code, and are restored only if the user trusts the file.
    """

    def save(self) -> Sequence[bytes | memoryview | SavedWeights]: ...


@runtime_checkable
class ListsConstantsRead(Protocol):
    """Optional part of an executable that is saved: the constants that ``restore`` and the restored executable read.

    They are names in the partition's graph. When the state is restored, the elements of other constants are undefined;
    without this part, all constants are read from the file.
    """

    def constants_read(self) -> Collection[str]: ...


@runtime_checkable
class Backend(Protocol):
    """The required part of a backend, as returned by a plugin's ``lite_backends`` hook."""

    name: str

    def probe(self) -> Sequence[Device] | Unavailable:
        """Return this machine's devices, or Unavailable. A missing driver or library must not raise an exception."""
        ...

    def supports(self, node: Node, device: Device) -> Yes | No:
        """Return Yes if the device can run the node with its element types and shapes, else No with the reason."""
        ...

    def compile(self, part: Partition, device: Device, options: Options) -> Executable:
        """Compile a partition for a device."""
        ...


@runtime_checkable
class ProvidesMemory(Protocol):
    """Optional part of a backend: the memory space of a device's tensors; without this part, main memory."""

    def memory(self, device: Device) -> Memory: ...


@runtime_checkable
class DescribesTarget(Protocol):
    """Optional part of a backend: the device to convert models for if ``probe`` finds none on this machine."""

    def target(self) -> Device: ...


@runtime_checkable
class HasLevels(Protocol):
    """Optional part of a backend whose code differs between levels of a processor: a device to convert models for.

    ``device_of_level`` returns the device of a named level, to which ``compile`` then restricts itself. It raises
    InputError, which lists the levels, for an unknown name.
    """

    def device_of_level(self, level: str) -> Device: ...


@runtime_checkable
class StatesCompatibility(Protocol):
    """Optional part of a backend with :class:`RestoresState`: a text that must match before saved state is used.

    It names the driver and the version of the code. A model file records it; Lite compares it before ``restore``.
    """

    def compatibility(self, device: Device, options: Options) -> str: ...


@runtime_checkable
class RestoresState(Protocol):
    """Optional part of a backend: rebuild an executable from the pieces that :meth:`SavesState.save` returned.

    The pieces are complete, unchanged and in order. Each is read-only, aligned to 64 bytes in memory, and valid as long
    as it is referenced. ``restore`` returns Stale for pieces that were not saved for this partition: missing,
    truncated, of another partition, or in another order. The types of the partition's inputs and outputs are those of
    the signature; types of values between them may still have symbolic dimensions.
    """

    def restore(
        self, pieces: Sequence[memoryview], part: Partition, device: Device, options: Options
    ) -> Executable | Stale: ...


@runtime_checkable
class ReportsFindings(Protocol):
    """Optional part of a backend, for `lite doctor`: lines about what it searched for, where, and what it chose."""

    def report(self) -> Sequence[str]: ...


@runtime_checkable
class MeasuresSpeed(Protocol):
    """Optional part of a backend whose ``probe`` omits the speed of a device, because measuring takes time.

    ``measured`` returns the device with its ``flops``, ``bandwidth`` and ``launch_seconds``. It is called when the
    scheduler compares costs.
    """

    def measured(self, device: Device) -> Device: ...


@runtime_checkable
class TakesOptions(Protocol):
    """Optional part of a backend with backend-specific options: ``load(backend_options={name: {...}})``.

    ``check_options`` is called before anything is compiled, and raises InputError for an unknown option or an invalid
    value. ``compile`` then receives the options in :attr:`Options.own`. Without this part, any option is an error.
    """

    def check_options(self, options: Mapping[str, Any]) -> None: ...
