"""A backend made of kernels, one Python function per operator: the easy way to write a backend.

Example::

    backend = KernelBackend("toy")

    @backend.kernel("Relu", dtypes=["float32"])
    def relu(x, *, out):
        np.maximum(x, 0, out=out)

A kernel for an operator of one's own takes the definition that ``lite_ops`` returns::

    @backend.kernel(SQUISH, dtypes=["float32"])
    def squish(x, *, slope, out):
        np.divide(x, 1 + np.abs(slope * x), out=out)
"""

from __future__ import annotations

import inspect
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from lite_core import ops
from lite_core.backend import Buffer, Device, Executable, KernelTime, No, Options, Partition, Unavailable, Yes
from lite_core.errors import ExecutionError, LiteError
from lite_core.forking import undivided
from lite_core.ir import Array, DType, Node, Value
from lite_core.memory import HostMemory, read_only
from lite_core.observing import Observable, Observer, observed_arrays
from lite_core.ops.registry import OpDef

__all__ = ["Kernel", "KernelBackend"]

logger = logging.getLogger("lite.backend")

Condition = Callable[[Node], Yes | No]
Probe = Callable[[], Sequence[Device] | Unavailable]
_RunStep = Callable[["_KernelStep", dict[Value, Array]], None]


class Kernel(NamedTuple):
    """A function that computes one operator, and the element types and conditions it accepts."""

    function: Callable[..., Any]
    dtypes: frozenset[DType]
    when: Condition | None
    writes_out: bool

    def accepts(self, node: Node) -> Yes | No:
        dtype = ops.get(node).working_dtype(node)
        if dtype is not None and self.dtypes and dtype not in self.dtypes:
            names = ", ".join(sorted(d.value for d in self.dtypes))
            return No(f"{node.qualified_op} is implemented for {names}, not {dtype}")
        return self.when(node) if self.when else Yes()


class KernelBackend:
    """A backend made of kernels; each is a function for one operator on NumPy arrays.

    Args:
        name: the backend's name.
        device: the result of ``probe``: a device, or a function that searches for devices at each call and returns
            ``Unavailable(reason, remedy)`` if there are none. By default one device, always available, with the
            backend's name.
    """

    def __init__(self, name: str, device: Device | Probe | None = None) -> None:
        self.name = name
        self._device = device or Device(name, name=name)
        self._kernels: dict[tuple[str, str], list[Kernel]] = {}
        self._unchecked: list[tuple[tuple[str, str], Callable[..., Any]]] = []

    def kernel(
        self, op: str | OpDef, *, dtypes: Iterable[str | DType] = (), domain: str = "", when: Condition | None = None
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Return a decorator that registers a function as a kernel.

        The kernel receives one array per input (None for an omitted one), the attributes, including defaults, as
        keywords, and ``out``: the array to write. If the operator has several outputs, ``out`` is a tuple with one
        array per output, None for an omitted one. A kernel must not write its inputs: the model's inputs and constants
        are read-only. A kernel without a parameter ``out`` returns its results instead; only such a kernel can compute
        an operator whose output shape depends on data.

        Args:
            op: the operator's name; for one of a plugin's own ``lite_ops`` its definition, or the name with ``domain``.
                A kernel may be registered before its operator: a name in a plugin's domain is looked up when the
                backend is first asked for devices.
            dtypes: supported element types; all if empty. The type compared is the one that inputs and output share
                (for ``Where`` that of its branches), else the type of the first input.
            domain: the operator's domain.
            when: a further condition on the node; it returns Yes, or No with a reason.

        Raises:
            ValueError: the opset has no such operator, or the kernel does not accept its attributes. For an operator
                that is registered later, :meth:`probe` raises the second, and logs a warning for the first.
        """
        definition = op if isinstance(op, OpDef) else ops.find(op, domain)
        key = (domain, op) if isinstance(op, str) else (op.domain, op.name)
        if definition is None and domain in ("", "ai.onnx", "lite"):
            raise ValueError(f"backend {self.name!r}: {ops.why_missing(key[1], domain)}")

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            if definition is None:
                self._unchecked.append((key, function))
            else:
                definition.check_kernel(function)
            writes_out = "out" in inspect.signature(function).parameters
            kernel = Kernel(function, frozenset(DType.of(d) for d in dtypes), when, writes_out)
            self._kernels.setdefault(key, []).append(kernel)
            return function

        return register

    def probe(self) -> Sequence[Device] | Unavailable:
        for (domain, op), function in self._unchecked:
            if definition := ops.find(op, domain):
                definition.check_kernel(function)
            else:
                logger.warning("kernel %s is never used: %s", function.__name__, ops.why_missing(op, domain))
        self._unchecked = []  # a kernel that fails the check fails it again
        return self._device() if callable(self._device) else [self._device]

    def supports(self, node: Node, device: Device) -> Yes | No:
        return self.choose(node)[1]

    def compile(self, part: Partition, device: Device, options: Options) -> Executable:
        steps = []
        for node in part.graph.nodes:
            kernel, answer = self.choose(node)
            if kernel is None:
                assert isinstance(answer, No)
                raise ExecutionError(f"backend {self.name!r} cannot run {node.describe()}: {answer.reason}")
            steps.append((node, kernel))
        return _KernelExecutable(self.name, part, steps)

    def choose(self, node: Node) -> tuple[Kernel | None, Yes | No]:
        """Return the first registered kernel that accepts a node, and Yes; or None and the last kernel's refusal."""
        answer: Yes | No = No(f"backend {self.name!r} has no kernel for {node.qualified_op}")
        for kernel in self._kernels.get((node.domain, node.op), ()):
            answer = kernel.accepts(node)
            if isinstance(answer, Yes):
                return kernel, answer
        return None, answer


class _KernelExecutable(Observable):
    """Executable that runs kernels one after another; a tensor between them is freed after its last use."""

    scratch_bytes = 0

    def __init__(self, backend: str, part: Partition, steps: Sequence[tuple[Node, Kernel]]) -> None:
        self._backend = backend
        self._graph = part.graph
        self._constants = {value: read_only(array) for value, array in part.graph.constants.items()}
        self._steps = [_KernelStep(node, kernel) for node, kernel in steps]
        last_use = {value: step for step in self._steps for value in step.used_values()}
        for value, step in last_use.items():
            if value not in part.graph.outputs and value not in self._constants:
                step.finished.append(value)

    def run(self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None) -> None:
        self._run(inputs, outputs, _KernelStep.run)

    def run_profiled(
        self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None
    ) -> Sequence[KernelTime]:
        times: list[KernelTime] = []
        self._run(inputs, outputs, lambda step, arrays: times.append(step.run_timed(arrays)))
        return times

    def run_observed(
        self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None, observer: Observer
    ) -> None:
        def run_step(step: _KernelStep, arrays: dict[Value, Array]) -> None:
            kernel, nodes = step.kernel.function.__name__, [step.node.name]
            observer.starts(kernel, nodes)
            step.run(arrays)
            results = [value for value in step.node.outputs if value is not None]
            observer.computed(observed_arrays(kernel, nodes, arrays, results))

        self._run(inputs, outputs, run_step)

    def _run(self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], run_step: _RunStep) -> None:
        arrays: dict[Value, Array] = dict(self._constants)
        arrays.update((v, b.data) for v, b in zip(self._graph.inputs, inputs))
        for step in self._steps:
            try:
                run_step(step, arrays)
            except (Exception, SystemExit) as error:
                function = step.kernel.function
                failed = "" if isinstance(error, LiteError) else f" failed with {type(error).__name__}"
                kernel = f"kernel {function.__module__}.{function.__name__}{failed}"
                raise ExecutionError(f"backend {self._backend!r}: {step.node.describe()}: {kernel}: {error}") from error
            for value in step.finished:
                del arrays[value]
        for value, buffer in zip(self._graph.outputs, outputs):
            buffer.store(arrays[value])


class _KernelStep:
    """One kernel applied to one node."""

    def __init__(self, node: Node, kernel: Kernel) -> None:
        self.node = node
        self.kernel = kernel
        self.definition = ops.get(node)
        self.attributes = self.definition.attributes_of(node)
        #: Values whose last use is this step.
        self.finished: list[Value] = []

    def used_values(self) -> Iterable[Value]:
        return (v for v in (*self.node.inputs, *self.node.outputs) if v is not None)

    def run(self, arrays: dict[Value, Array]) -> None:
        """Compute the node's outputs into ``arrays``."""
        inputs = [None if v is None else arrays[v] for v in self.node.inputs]
        inputs += [None] * (self.definition.fixed_inputs - len(inputs))
        with undivided():  # NumPy's matrix products hold locks
            if self.kernel.writes_out:
                results = self._run_with_out(inputs)
            else:
                returned = self.kernel.function(*inputs, **self.attributes)
                results = returned if isinstance(returned, (tuple, list)) else (returned,)
        for value, array in zip(self.node.outputs, results):
            if value is not None:
                is_array = isinstance(array, np.ndarray)
                if not (is_array and array.dtype == value.dtype.numpy and value.type.accepts(array.shape)):
                    found = f"{array.dtype}{[*array.shape]}" if is_array else type(array).__name__
                    raise ExecutionError(f"its kernel returned {found} for {value.name!r}, expected {value.type}")
                arrays[value] = array

    def run_timed(self, arrays: dict[Value, Array]) -> KernelTime:
        """Run like :meth:`run`, and return the measured time."""
        start = time.perf_counter()
        self.run(arrays)
        seconds = time.perf_counter() - start
        moved = sum(arrays[value].nbytes for value in dict.fromkeys(self.used_values()))
        return KernelTime(self.kernel.function.__name__, (self.node.name,), seconds, bytes=moved)

    def _run_with_out(self, inputs: list[Array | None]) -> Sequence[Any]:
        """Allocate the outputs and let the kernel write them."""
        types = self.definition.types_in_run(self.node, inputs)
        out = [None if t is None else HostMemory().allocate(t) for t in types]
        several = len(self.definition.outputs) > 1 or self.definition.outputs[0].variadic
        if several and not self.definition.outputs[-1].variadic:
            out += [None] * (len(self.definition.outputs) - len(out))
        self.kernel.function(*inputs, **self.attributes, out=tuple(out) if several else out[0])
        return out
