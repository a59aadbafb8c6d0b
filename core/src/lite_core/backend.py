"""The contract between Lite and a hardware backend, API version 1, and :class:`KernelBackend`, the easy way.

A backend is an object with ``name``, ``probe``, ``supports`` and ``compile``; what is marked (optional)
may be left out. Lite asks ``probe`` which devices there are, ``supports`` for each node of a model, and
``compile`` for each connected set of nodes (a partition) that the backend was given. The executable that
comes back is run many times, possibly by several threads at once.

An author who does not want to compile partitions writes kernels::

    backend = KernelBackend("toy")

    @backend.kernel("Relu", dtypes=["float32"])
    def relu(x, *, out):
        np.maximum(x, 0, out=out)
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np

from lite_core import ops
from lite_core.errors import ExecutionError, LiteError
from lite_core.ir import DType, Graph, Node, TensorType, Value, evaluate_shape
from lite_core.ops.inference import Inference

__all__ = [
    "API_VERSION",
    "Backend",
    "Buffer",
    "Device",
    "Executable",
    "HostMemory",
    "KernelBackend",
    "Memory",
    "No",
    "Options",
    "Partition",
    "Stale",
    "Unavailable",
    "Yes",
]

#: The version of this contract. A plugin states the one it was written for as ``LITE_API_VERSION``.
API_VERSION = 1

Array = np.ndarray[Any, Any]


# **** answers ****


@dataclass(frozen=True, slots=True)
class Device:
    """Something that can run partitions, found by ``probe``.

    Attributes:
        backend: name of the backend that found it.
        index: its number among the backend's devices.
        name: what a person would call it, for example the processor's model.
        score: the higher, the sooner ``backend="auto"`` takes it. ``host`` has 0.
        details: anything worth showing: driver version, memory, instruction sets.
    """

    backend: str
    index: int = 0
    name: str = ""
    score: float = 1.0
    details: Mapping[str, str] = field(default_factory=dict, hash=False, compare=False)

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


# **** what is compiled and run ****


@dataclass(frozen=True, slots=True)
class Partition:
    """A connected set of nodes given to one backend.

    Attributes:
        name: unique in the model, for messages and profiles.
        graph: a graph of its own; its inputs and outputs are the partition's. Shapes are those of the
            input signature at hand; a dimension is symbolic only where it depends on data. Constants
            are the same array objects for every signature, so prepared weights can be kept by identity.
    """

    name: str
    graph: Graph


@dataclass(frozen=True, slots=True)
class Options:
    """What the session allows.

    Attributes:
        threads: how many threads the backend may use.
        precision: ``"float32"`` computes as the model says; ``"float16"`` and ``"bfloat16"`` allow a
            backend to compute and store floats in that type.
        exact: forbid algorithms that trade accuracy for speed (Winograd).
        extra: settings for one backend, by name.
    """

    threads: int = 1
    precision: str = "float32"
    exact: bool = False
    extra: Mapping[str, Any] = field(default_factory=dict, hash=False)


class Memory(Protocol):
    """A memory space: where a device's tensors live."""

    #: Two devices with the same space share buffers without copies.
    space: str

    def allocate(self, type: TensorType) -> Any:
        """Storage for a tensor of a static type; its content is undefined."""
        ...

    def upload(self, array: Array, data: Any) -> None:
        """Copy a host array into storage."""
        ...

    def download(self, data: Any) -> Array:
        """A host copy of storage; the caller owns it."""
        ...


class HostMemory:
    """Main memory; storage is a NumPy array."""

    space = "host"

    def allocate(self, type: TensorType) -> Array:
        return np.empty(evaluate_shape(type.shape or (), {}), dtype=type.dtype.numpy)

    def upload(self, array: Array, data: Array) -> None:
        np.copyto(data, array)

    def download(self, data: Array) -> Array:
        copy: Array = data.copy()
        return copy


class Buffer:
    """A tensor in a memory space.

    ``data`` is what the memory's ``allocate`` returns: a NumPy array for host memory. The buffer of an
    output whose shape depends on data arrives with ``data`` None; the executable calls :meth:`allocate`.
    """

    __slots__ = ("data", "memory", "type")

    def __init__(self, type: TensorType, memory: Memory, data: Any = None) -> None:
        self.type = type
        self.memory = memory
        self.data = data

    def allocate(self, shape: Sequence[int]) -> Any:
        """Give the buffer storage of a shape that has just become known; returns the storage."""
        self.type = self.type.with_shape(tuple(shape))
        self.data = self.memory.allocate(self.type)
        return self.data

    def store(self, array: Array) -> None:
        """Copy a host array into the buffer, allocating it first where the shape was unknown."""
        data = self.allocate(array.shape) if self.data is None else self.data
        self.memory.upload(array, data)


class Executable(Protocol):
    """A compiled partition. ``run`` may be called by several threads at once."""

    #: Bytes of scratch memory that every run needs.
    scratch_bytes: int

    def run(self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None) -> None:
        """Run the partition.

        Args:
            inputs: one buffer for each input of the partition's graph, not to be written.
            outputs: one for each output, to be filled.
            scratch: ``scratch_bytes`` bytes, or None when that is 0.
        """
        ...

    # def save(self) -> bytes: (optional) what restore() takes


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

    # def memory(self, device: Device) -> Memory: (optional) where tensors live; main memory when omitted
    # def restore(self, blob: bytes, part: Partition, device: Device, options: Options)
    #     -> Executable | Stale: (optional) as compile(), from what Executable.save() gave


# **** the easy way: one kernel a node ****


Condition = Callable[[Node], Yes | No]


@dataclass(frozen=True, slots=True)
class Kernel:
    """A function that computes one operator for some element types."""

    function: Callable[..., Any]
    dtypes: frozenset[DType]
    when: Condition | None
    writes_out: bool

    def accepts(self, node: Node) -> Yes | No:
        first = next((v for v in (*node.inputs, *node.outputs) if v is not None), None)
        if first is not None and self.dtypes and first.dtype not in self.dtypes:
            names = ", ".join(sorted(d.value for d in self.dtypes))
            return No(f"{node.qualified_op} is implemented for {names}, not {first.dtype}")
        return self.when(node) if self.when else Yes()


class KernelBackend:
    """A backend made of kernels, each a function for one operator, working on NumPy arrays.

    Args:
        name: the backend's name.
        device: what ``probe`` reports; a device named like the backend when omitted.
    """

    def __init__(self, name: str, device: Device | None = None) -> None:
        self.name = name
        self._device = device or Device(name, name=name)
        self._kernels: dict[tuple[str, str], list[Kernel]] = {}

    def kernel(
        self,
        op: str,
        *,
        dtypes: Iterable[str | DType] = (),
        domain: str = "",
        when: Condition | None = None,
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Register a kernel; decorates it.

        The kernel receives one array per input (None for one left out), the attributes with defaults
        filled in as keywords, and ``out``: the array to fill, or a tuple of them when the operator has
        several outputs. A kernel without a parameter ``out`` returns its results instead; only such a
        kernel can compute an operator whose output shape depends on data.

        Args:
            op: the operator's name.
            dtypes: element types of the first input that it can do; any when empty.
            domain: the operator's domain.
            when: a further condition on the node, with a reason for No.

        Raises:
            ValueError: the opset has no such operator, or the kernel does not take its attributes.
        """
        definition = ops.find(op, domain)
        if definition is None:
            raise ValueError(f"backend {self.name!r}: the opset has no operator {domain or 'ai.onnx'}.{op}")

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            parameters = inspect.signature(function).parameters
            takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
            missing = [k for k in definition.attributes if k not in parameters and not takes_any]
            if missing:
                raise ValueError(
                    f"backend {self.name!r}: kernel {function.__name__} of {op} does not take the "
                    f"attribute(s) {', '.join(missing)}; name them as keywords or take **attributes"
                )
            kernel = Kernel(function, frozenset(DType.of(d) for d in dtypes), when, "out" in parameters)
            self._kernels.setdefault((domain, op), []).append(kernel)
            return function

        return register

    def probe(self) -> Sequence[Device] | Unavailable:
        return [self._device]

    def supports(self, node: Node, device: Device) -> Yes | No:
        return self._choose(node)[1]

    def compile(self, part: Partition, device: Device, options: Options) -> Executable:
        steps = []
        for node in part.graph.nodes:
            kernel, answer = self._choose(node)
            if kernel is None:
                assert isinstance(answer, No)
                raise ExecutionError(f"backend {self.name!r} cannot run {node.describe()}: {answer.reason}")
            steps.append((node, kernel))
        return _KernelExecutable(self.name, part, steps)

    def _choose(self, node: Node) -> tuple[Kernel | None, Yes | No]:
        answer: Yes | No = No(f"backend {self.name!r} has no kernel for {node.qualified_op}")
        for kernel in self._kernels.get((node.domain, node.op), ()):
            answer = kernel.accepts(node)
            if isinstance(answer, Yes):
                return kernel, answer
        return None, answer


class _KernelExecutable:
    """Runs kernels one after another; tensors between them are allocated in every run."""

    scratch_bytes = 0

    def __init__(self, backend: str, part: Partition, steps: Sequence[tuple[Node, Kernel]]) -> None:
        self._backend = backend
        self._graph = part.graph
        self._steps = [(node, kernel, ops.get(node).attributes_of(node)) for node, kernel in steps]

    def run(self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None) -> None:
        arrays: dict[Value, Array] = dict(self._graph.constants)
        arrays.update((v, b.data) for v, b in zip(self._graph.inputs, inputs))
        for node, kernel, attributes in self._steps:
            arguments = [None if v is None else arrays[v] for v in node.inputs]
            try:
                results = self._run_kernel(node, kernel, arguments, attributes)
            except LiteError:
                raise
            except Exception as error:
                raise ExecutionError(
                    f"backend {self._backend!r}: {node.describe()} failed with {type(error).__name__}: {error}"
                ) from error
            arrays.update((v, a) for v, a in zip(node.outputs, results) if v is not None)
        for value, buffer in zip(self._graph.outputs, outputs):
            buffer.store(arrays[value])

    @staticmethod
    def _run_kernel(
        node: Node, kernel: Kernel, arguments: list[Array | None], attributes: Mapping[str, Any]
    ) -> Sequence[Array]:
        if not kernel.writes_out:
            results = kernel.function(*arguments, **attributes)
            return results if isinstance(results, (tuple, list)) else (results,)
        types = [v.type for v in node.outputs if v is not None]
        if not all(t.is_static for t in types):
            # The shape follows from elements (of a shape input, say) that are known only now.
            known = [None if a is None else TensorType.of_array(a) for a in arguments]
            types = ops.get(node).infer_types(Inference(known, attributes, len(node.outputs), arguments))
        out = tuple(HostMemory().allocate(t) for t in types)
        kernel.function(*arguments, **attributes, out=out[0] if len(out) == 1 else out)
        return out
