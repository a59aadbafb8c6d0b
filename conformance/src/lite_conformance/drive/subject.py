"""The backend under test, driven through its contract with checks of every buffer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from lite_conformance.drive.backend_call import backend_call
from lite_conformance.drive.find_backend import find_backend
from lite_conformance.drive.guards import GuardedStorage, Storage, download
from lite_conformance.drive.precision_options import PrecisionRequest, request_precision
from lite_conformance.judge.compare import Array, allowed
from lite_conformance.judge.oracle import expect
from lite_conformance.judge.outcome import Failure, Refused, Replay
from lite_conformance.judge.precision import FLOAT32, Precision
from lite_conformance.judge.rounding_noise import is_affected
from lite_conformance.judge.tolerances import SCALED
from lite_core.backend import (
    Backend,
    Buffer,
    Device,
    Executable,
    Memory,
    No,
    Options,
    Partition,
    ProvidesMemory,
    Unavailable,
    Yes,
)
from lite_core.errors import BackendUnavailableError, LiteError
from lite_core.ir import DType, Graph, Node, TensorType
from lite_core.memory import HostMemory
from lite_core.ops.infer import infer_graph
from lite_core.plugins import PluginManager, available_backends, plugins_with
from lite_core.plugins.contracts import missing_members
from lite_core.schedule.probing import Faulty, probe

__all__ = [
    "Compiled",
    "Run",
    "Subject",
    "first_difference",
    "in_form_of_a_session",
    "replay_of",
    "require_same",
    "same_bits",
]

# The suite's cases are small: a larger size is an error of the backend, and could exhaust the machine's memory.
_MAX_SCRATCH_BYTES = 2**32


def _devices(backend: Backend) -> Sequence[Device]:
    with backend_call("probe()"):
        devices = probe(backend)
        if isinstance(devices, Faulty):  # a case of level 0 reports what is invalid: test the devices nevertheless
            answer: Any = devices
            with suppress(Exception):
                answer = backend.probe()
            devices = [d for d in answer if isinstance(d, Device)] or devices if isinstance(answer, list) else devices
    if isinstance(devices, Unavailable):
        remedy = f". {devices.remedy}" if devices.remedy else ""
        raise BackendUnavailableError(f"backend {backend.name!r} is not available: {devices.reason}{remedy}")
    return devices


class Subject:
    """A device of a backend, driven directly through the contract: no session, no fallback, no passes.

    Args:
        backend: the backend.
        device: one of its devices.
        plugins: a plugin manager that contains the backend, for cases that need a session.
        module: the module that defines the backend; that of its class when omitted.

    Raises:
        Failure: memory() raised, or returned an object that is not a memory.
    """

    def __init__(
        self, backend: Backend, device: Device, plugins: PluginManager | None = None, module: str = ""
    ) -> None:
        self.backend = backend
        #: The backend's module; its ``conformance.toml`` is in the same folder.
        self.module = module or type(backend).__module__
        self.device = device
        builtin = available_backends(PluginManager(list)).get(backend.name)
        self.plugins = plugins or (PluginManager(list) if type(builtin) is type(backend) else plugins_with(backend))
        with backend_call(f"memory() of {device.label}"):
            self.memory: Memory = backend.memory(device) if isinstance(backend, ProvidesMemory) else HostMemory()
        missing = missing_members(self.memory, "memory")
        if missing:
            raise Failure(f"memory() gave {type(self.memory).__name__}, which lacks {', '.join(missing)}")
        #: The precision level that partitions and sessions are asked for.
        self.precision = FLOAT32
        self.request = PrecisionRequest()
        #: The specification by which :meth:`open` found the backend; empty if it was given as an object.
        self.specification = ""
        #: Called before each compilation and run with the data to repeat it, for a case that may crash the process.
        self.on_run: Callable[[Replay], object] | None = None
        #: Called with each drawn example before it runs, so that the log of a crashed process names the example.
        self.on_example: Callable[[str], object] | None = None

    @staticmethod
    def open(spec: str) -> Subject:
        """Return the device that a specification names; ``name:1`` is a backend's second device.

        See :func:`lite_conformance.drive.find_backend.find_backend`.

        Raises:
            BackendUnavailableError: there is no such backend or device; the message has the reason.
            Failure: the backend raised where it must not.
        """
        backend, plugins, module = find_backend(spec)
        devices = _devices(backend)
        index = spec.rpartition(":")[2]
        number = int(index) if index.isdecimal() else devices[0].index
        for device in devices:
            if device.index == number:
                subject = Subject(backend, device, plugins, module)
                subject.specification = spec
                return subject
        listed = ", ".join(f"{d.label} ({d.name})" for d in devices)
        raise BackendUnavailableError(f"backend {backend.name!r} has no device {number}; it has: {listed}")

    @staticmethod
    def first(backend: Backend) -> Subject:
        """Return the first device of a backend object.

        Raises:
            BackendUnavailableError: the backend has no device.
            Failure: the backend raised where it must not.
        """
        return Subject(backend, _devices(backend)[0])

    def ask_for(self, precision: Precision) -> None:
        """Ask for a precision level in what is compiled from now on."""
        if precision != self.precision:
            self.request = request_precision(self.backend, precision)
            self.precision = precision

    def require_precision(self, graph: Graph) -> None:
        """Raise Refused if the backend cannot be asked for the precision level, and the level matters to the graph."""
        if self.request.refusal and is_affected(graph, self.precision):
            raise Refused(self.request.refusal)

    def require(self, graph: Graph) -> None:
        """Require that the backend supports every node.

        Raises:
            Refused: it answers No to a node; the reason is that of the first.
            Failure: it answers neither Yes nor No, or a No without a reason, or raises.
        """
        refusals = self.refusals(graph.nodes)
        if refusals:
            others = f" (and {len(refusals) - 1} more node(s))" if len(refusals) > 1 else ""
            raise Refused(refusals[0] + others)

    def refusals(self, nodes: Sequence[Node]) -> list[str]:
        """Return the reasons of all refusals among nodes.

        Raises:
            Failure: an answer is neither Yes nor No, or a No without a reason, or an exception.
        """
        reasons = []
        for node in nodes:
            with backend_call(f"supports() of {node.describe()}"):
                answer = self.backend.supports(node, self.device)
            if isinstance(answer, No):
                if not isinstance(answer.reason, str) or not answer.reason.strip():
                    raise Failure(f"supports() answered No without a reason for {node.describe()}")
                reasons.append(answer.reason)
            elif not isinstance(answer, Yes):
                raise Failure(f"supports() gave {answer!r} for {node.describe()}; it must answer Yes or No")
        return reasons

    def compile(self, graph: Graph, options: Options | None = None) -> Compiled:
        """Compile a graph with static input shapes as one partition.

        Raises:
            Refused: the backend does not support a node.
            Failure: the backend supports every node, but fails to compile the graph, or writes to its constants.
        """
        graph = in_form_of_a_session(graph)
        self.require(graph)
        self.require_precision(graph)
        before = {value: array.copy() for value, array in graph.constants.items()}
        if self.on_run is not None:
            self.on_run(Replay(graph))
        try:
            with backend_call("compile()"):
                part = Partition(graph.name, graph)
                executable = self.backend.compile(part, self.device, options or self.request.options)
        except Failure as failure:
            failure.replay = Replay(graph)
            raise
        for value, array in before.items():
            if not same_bits(array, graph.constants[value]):
                raise Failure(f"compile() changed the constant {value.name!r}; constants must not be written")
        return Compiled(self, graph, executable)


class Compiled:
    """A compiled graph. Each run has separate storage with guard zones, poisoned outputs and compared inputs.

    Raises:
        Failure: the object that the backend returned is not an executable.
    """

    def __init__(self, subject: Subject, graph: Graph, executable: Executable) -> None:
        missing = missing_members(executable, "executable")
        if missing:
            raise Failure(f"the backend gave {type(executable).__name__}, which lacks {', '.join(missing)}")
        self.subject = subject
        self.graph = graph
        self.executable = executable
        self._constants = {v: a.copy() for v, a in graph.constants.items()}

    def constants(self) -> Iterator[tuple[str, Array, Array]]:
        """Yield the name, content at compile time and current content of every constant."""
        for value, array in self._constants.items():
            yield value.name, array, self.graph.constants[value]

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """Run once and return copies of the outputs.

        Raises:
            Failure: the run raised, wrote outside its outputs, or left an output unwritten or of another type.
        """
        run = Run(self, inputs)
        run.start()
        return run.finish()


class Run:
    """The storage of a run, which can be repeated.

    Args:
        compiled: the compiled graph.
        inputs: an array for each input of its graph.
        storage: makes the storage of tensors of static shape.
        scratch_storage: makes the storage of scratch memory, which must begin at a multiple of 64 in main memory.
    """

    def __init__(
        self,
        compiled: Compiled,
        inputs: Sequence[Array],
        storage: Callable[[Memory, TensorType], Storage] = GuardedStorage,
        scratch_storage: Callable[[Memory, TensorType], Storage] = GuardedStorage,
    ) -> None:
        self._compiled = compiled
        self._inputs = inputs
        memory = compiled.subject.memory
        self._arguments = [storage(memory, TensorType.of_array(a)) for a in inputs]
        self.store(inputs)
        outputs = compiled.graph.outputs
        self._results = [storage(memory, v.type) if v.type.is_static else None for v in outputs]
        self._scratch = self._make_scratch(scratch_storage)
        self._outputs: list[Buffer] = []

    def store(self, inputs: Sequence[Array]) -> None:
        """Replace the contents of the inputs for the next start; their storage stays the same."""
        self._inputs = inputs
        for tensor, array in zip(self._arguments, inputs):
            tensor.store(array)

    def storages(self) -> dict[str, Storage]:
        """Return the storage of every tensor of static shape by a description of the tensor, and of scratch memory."""
        graph = self._compiled.graph
        found = {f"input {value.name!r}": storage for value, storage in zip(graph.inputs, self._arguments)}
        for value, result in zip(graph.outputs, self._results):
            if result is not None:
                found[f"output {value.name!r}"] = result
        return found if self._scratch is None else {**found, "scratch": self._scratch}

    def start(self, *, poison: bool = True) -> None:
        """Run; raise a Failure if the backend raises.

        Args:
            poison: fill outputs and scratch memory with NaN before; otherwise they hold what was there.
        """
        memory = self._compiled.subject.memory
        if self._compiled.subject.on_run is not None:
            self._compiled.subject.on_run(replay_of(self._compiled.graph, self._inputs))
        for storage in (*self._results, self._scratch) if poison else ():
            if storage is not None:
                storage.poison()
        arguments = [Buffer(s.type, memory, s.data) for s in self._arguments]
        pairs = zip(self._compiled.graph.outputs, self._results)
        self._outputs = [Buffer(v.type, memory, None if s is None else s.data) for v, s in pairs]
        scratch = None if self._scratch is None else Buffer(self._scratch.type, memory, self._scratch.data)
        try:
            with backend_call("run()"):
                self._compiled.executable.run(arguments, self._outputs, scratch)
        except Failure as failure:
            failure.replay = replay_of(self._compiled.graph, self._inputs)
            raise

    def finish(self) -> list[Array]:
        """Check inputs, guard zones and constants for changes, and return copies of the outputs."""
        graph = self._compiled.graph
        for value, storage, array in zip(graph.inputs, self._arguments, self._inputs):
            _check_zones(f"input {value.name!r}", storage)
            if not same_bits(storage.read(), array):
                raise Failure(f"run() changed its input {value.name!r}; inputs must not be written")
        _check_zones("scratch", self._scratch)
        for value, result in zip(graph.outputs, self._results):
            _check_zones(f"output {value.name!r}", result)
        for name, before, now in self._compiled.constants():
            if not same_bits(before, now):
                raise Failure(f"run() changed the constant {name!r}")
        return self.read()

    def read(self) -> list[Array]:
        """Return copies of the current outputs."""
        triples = zip(self._compiled.graph.outputs, self._outputs, self._results)
        return [self._read(v.name, v.type, buffer, storage) for v, buffer, storage in triples]

    def _make_scratch(self, storage: Callable[[Memory, TensorType], Storage]) -> Storage | None:
        with backend_call("scratch_bytes"):
            size = self._compiled.executable.scratch_bytes
        if not isinstance(size, (int, np.integer)) or isinstance(size, bool) or not 0 <= size <= _MAX_SCRATCH_BYTES:
            raise Failure(f"scratch_bytes must be a number of bytes from 0 to {_MAX_SCRATCH_BYTES}, is {size!r}")
        return storage(self._compiled.subject.memory, TensorType(DType.UINT8, (int(size),))) if size else None

    def _read(self, name: str, type: TensorType, buffer: Buffer, storage: Storage | None) -> Array:
        if buffer.data is None:
            raise Failure(f"run() left output {name!r} without storage; call Buffer.allocate or Buffer.store")
        if storage is not None and buffer.data is not storage.data:
            raise Failure(f"run() replaced the storage of output {name!r} instead of writing to it")
        if not buffer.holds_its_own:
            raise Failure(f"run() set the storage of output {name!r} itself; call Buffer.allocate or Buffer.store")
        array = download(self._compiled.subject.memory, buffer.data)
        if array.dtype != type.dtype.numpy or not type.accepts(array.shape):
            raise Failure(f"output {name!r} is {array.dtype}{list(array.shape)}, expected {type}")
        if type.dtype is DType.BOOL and (array.view(np.uint8) > 1).any():
            raise Failure(f"output {name!r} holds bytes that are neither true nor false: not all of it was written")
        return array


def in_form_of_a_session(graph: Graph) -> Graph:
    """Return a copy with inferred types, and with constants aligned and contiguous, as sessions give it to backends."""
    graph = graph.copy()
    infer_graph(graph)
    graph.align_constants()
    return graph


def replay_of(graph: Graph, inputs: Sequence[Array]) -> Replay:
    """Return the data to repeat a run of a graph, with generous tolerances."""
    try:
        pairs = [allowed(e, 1e-4, 1e-5) for e in expect(graph, inputs, SCALED)]
    except LiteError:  # the inputs are an error, such as an index out of range: any result is allowed
        pairs = [(np.zeros(v.shape if v.type.is_static else ()), np.array(np.inf)) for v in graph.outputs]
    return Replay(graph, inputs, [truth for truth, _ in pairs], [limits for _, limits in pairs])


def _check_zones(what: str, storage: Storage | None) -> None:
    breach = None if storage is None else storage.breach()
    if breach:
        raise Failure(f"run() wrote outside {what}: {breach}")


def same_bits(one: Array, other: Array) -> bool:
    """Return True for equal shapes and bits: NaN equals itself, zeros of different sign differ."""
    return one.shape == other.shape and one.tobytes() == other.tobytes()


def require_same(one: Sequence[Array], other: Sequence[Array], what: str) -> None:
    """Raise a Failure unless two results have the same bits; ``what`` begins the message."""
    for first, second in zip(one, other):
        if not same_bits(first, second):
            raise Failure(f"{what} gave another result: {first_difference(first, second)}")


def first_difference(one: Array, other: Array) -> str:
    """Return a description of where two arrays differ."""
    if one.shape != other.shape:
        return f"shape {list(one.shape)}, then {list(other.shape)}"
    different = np.flatnonzero((one != other).reshape(-1))
    if not different.size:
        return "zeros of different sign, or other NaN"
    index = np.unravel_index(int(different[0]), one.shape)
    shown = [int(i) for i in index]
    return f"{different.size} of {one.size} elements, first at {shown}: {one[index]}, then {other[index]}"
