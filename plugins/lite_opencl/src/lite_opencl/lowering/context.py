"""The context of lowering a partition, which is passed to the lowering functions of all families."""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import numpy as np

from lite_compiler.fusion import Group
from lite_compiler.kernel_log import KernelLog
from lite_compiler.observing import LoweredGroup
from lite_compiler.tensors import dense_strides
from lite_compiler.tournaments.chooser import Chooser
from lite_core.backend import Options
from lite_core.errors import ExecutionError
from lite_core.ir import Graph, Node, Value
from lite_opencl.chains import Chain
from lite_opencl.compiled.faults import RECORD, RECORD_LENGTH
from lite_opencl.device.constants import ConstantPool
from lite_opencl.device.memory import DeviceArray
from lite_opencl.lowering.chaining import Epilogue, addressed, chain_of, run_chain
from lite_opencl.lowering.copying import copy_elements
from lite_opencl.lowering.half import stored_type
from lite_opencl.lowering.steps import PlannedStep, StepEmitter, checked_size
from lite_opencl.programs.element_types import scalar
from lite_opencl.tensors import Storage, Tensor

__all__ = ["Lowering"]

logger = logging.getLogger("lite.opencl.kernels")

Array = np.ndarray[Any, Any]
C = TypeVar("C")


@dataclass
class Lowering(StepEmitter):
    """The state of lowering one partition.

    Attributes:
        graph: the partition, whose shapes are all known.
        options: the options of the session.
        constants: uploads, shared by all plans of the process.
        chooser: chooses among candidates that compute the same.
        elements: elements of the values that are known before the run.
        faults: messages of the faults that may happen in a run; see :meth:`fault`.
        destinations: views that values should be written to if their steps can; see :mod:`.destinations`.
        record: the record of the first fault, in the arena.
        groups: the groups lowered so far.
        log: receives the kernels of each group, and the reasons for them.
    """

    graph: Graph
    options: Options
    constants: ConstantPool
    chooser: Chooser[PlannedStep] = field(default_factory=Chooser[PlannedStep])
    _tensors: dict[Value, Tensor] = field(default_factory=dict)
    elements: dict[Value, Array] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    destinations: dict[Value, Tensor] = field(default_factory=dict)
    groups: list[LoweredGroup[Tensor]] = field(default_factory=list)
    log: KernelLog = field(default_factory=partial(KernelLog, logger))
    _copies: dict[Tensor, Tensor] = field(default_factory=dict)
    _producer: Node | None = None

    def __post_init__(self) -> None:
        for i, value in enumerate(self.graph.inputs):
            self._tensors[value] = self._argument(value, i)
        first = len(self.graph.inputs)
        self.outputs = {v: self._argument(v, first + i) for i, v in enumerate(self.graph.outputs)}
        self.elements.update(self.graph.constants)
        self._read_inside = {value for node in self.graph.nodes for value in node.used()}
        self.record = self.allocate((RECORD_LENGTH,), RECORD.dtype)

    def _argument(self, value: Value, number: int) -> Tensor:
        shape = tuple(value.shape)
        size = checked_size(shape, value.dtype)
        return Tensor(Storage(size * value.dtype.itemsize, number), value.dtype, shape, dense_strides(shape))

    # **** values ****

    def known(self, value: Value | None) -> Array | None:
        """Return the elements of a value if they are known before the run: a constant, or computed from constants."""
        return None if value is None else self.elements.get(value)

    def always_known(self, value: Value) -> Array:
        """Return the elements of an input that the operator is registered to need ``known``; see :meth:`known`."""
        array = self.known(value)
        assert array is not None
        return array

    def set_known(self, value: Value, array: Array) -> None:
        """Record the elements of a value that no step has to compute."""
        self.elements[value] = array

    def tensor(self, value: Value) -> Tensor:
        """Return the tensor of a value. It may be strided; see :meth:`dense`."""
        found = self._tensors.get(value)
        if found is None:
            array = self.elements.get(value)
            if array is None:
                raise ExecutionError(f"{value.name!r} is read before a step computes it")
            found = self._tensors[value] = _uploaded(self.constants.plain(array))
        return found

    def constant(self, key: Hashable, sources: Sequence[Array], make: Callable[[], Array]) -> Tensor:
        """Return the upload of the result of ``make``, one for all sessions; see :meth:`ConstantPool.get`.

        ``key`` identifies what ``make`` computes from the sources, such as ``("conv panels", 4)`` for packed weights.
        """
        return _uploaded(self.constants.get(key, sources, make))

    def target(self, value: Value, fits: Callable[[Tensor], bool] = lambda tensor: tensor.is_dense) -> Tensor:
        """Return the destination of a value: the partition's output, a reserved destination, or a new tensor.

        Its elements may be narrower than the value's; see :func:`stored_type`.

        Args:
            value: the value that a step computes.
            fits: returns True if the step can write to a reserved destination; the other destinations are dense.
        """
        dtype = stored_type(value, self._producer, self.options, self.device)
        reserved = self.destinations.get(value)
        if reserved is not None and not (reserved.dtype is dtype and fits(reserved)):
            reserved = None
        output = self.outputs.get(value)
        if output is not None and output.dtype is not dtype and value in self._read_inside:
            output = None  # readers in the partition get the same narrow elements as if the value were not an output
        found = output or reserved or self.allocate(tuple(value.shape), dtype)
        self._tensors[value] = found
        return found

    def bind(self, value: Value, tensor: Tensor) -> None:
        """Record that a value is a view of an existing tensor."""
        self._tensors[value] = tensor

    def dense(self, tensor: Tensor) -> Tensor:
        """Return a dense tensor in the order of its dimensions; a copy is made once for all readers, if needed."""
        if tensor.is_dense:
            return tensor
        copy = self._copies.get(tensor)
        if copy is None:
            copy = self._copies[tensor] = self.allocate(tensor.shape, tensor.dtype)
            self.copy(tensor, copy)
        return copy

    def fault(self, messages: Sequence[str]) -> int:
        """Return the number that a kernel records for the first of some faults; the numbers of the others follow.

        Args:
            messages: the messages of the errors that a run raises; ``{}`` stands for the offending value.
        """
        self.faults += messages
        return len(self.faults) - len(messages) + 1

    # **** steps ****

    def choose(self, problem: str, candidates: Sequence[C], emit: Callable[[Lowering, C], None]) -> None:
        """Emit the steps of the fastest of several candidates that compute the same.

        Args:
            problem: see :func:`lite_compiler.tournaments.choice.problem`.
            candidates: the candidates; the first one is used if nothing was measured.
            emit: emits a candidate into the lowering that it is given: this one, or one that is only measured.
        """

        def steps(candidate: C) -> list[PlannedStep]:
            trial = copy.copy(self)
            trial.steps, trial.faults, trial.log = [], [*self.faults], KernelLog()
            trial._tensors, trial.elements, trial._copies = {**self._tensors}, {**self.elements}, {**self._copies}
            emit(trial, candidate)
            return trial.steps

        chosen = self.chooser.choose(problem, candidates, steps)
        self.log.choice(problem, candidates, chosen, self.chooser.used.get(problem))
        emit(self, chosen)

    def copy(self, source: Tensor, destination: Tensor) -> None:
        """Copy elements between tensors of one shape, strided or not; see :func:`copy_elements`."""
        copy_elements(self, source, destination)

    def elementwise(
        self, chain: Chain, start: Tensor, operands: Sequence[Tensor | np.generic], destination: Tensor
    ) -> None:
        """Run a chain over all elements; see :func:`run_chain`."""
        run_chain(self, chain, start, operands, destination)

    # **** groups ****

    def lower(self, group: Group, function: Callable[[Lowering, Group], None]) -> None:
        """Emit the steps of a group by its lowering function."""
        nodes, begin = group.nodes, len(self.steps)
        self._names, self._producer = tuple(n.name or n.op for n in nodes), nodes[-1]
        function(self, group)
        self._names, self._producer = (), None
        tensors = {v: self._tensors[v] for node in nodes for v in node.outputs if v in self._tensors}
        # An observer cannot replace a value that was copied before it is shown: later steps read the copy.
        replaceable = {value: tensor for value, tensor in tensors.items() if tensor not in self._copies}
        self.groups.append(LoweredGroup(nodes, begin, len(self.steps), replaceable))
        self.log.group(nodes, [step.label for step in self.steps[begin:]])

    def epilogue(self, group: Group, split: int) -> Epilogue:
        """Return the tail of a group, for a kernel that computes the head and stores ``EPILOGUE(value, row, column)``.

        Args:
            group: the group; the chain starts from the first output of its head.
            split: number of dimensions of that output that the kernel counts as rows; the others are its columns. It
                is 2 for a convolution whose rows are batch and channel.
        """
        start = group.head.outputs[0]
        assert start is not None
        chain, operands = self.chain(start, group.tail)
        return self.epilogue_of(chain, operands, tuple(start.shape), split)

    def epilogue_of(
        self, chain: Chain, operands: Sequence[Tensor | np.generic], shape: Sequence[int], split: int
    ) -> Epilogue:
        """Return the epilogue of a chain with its operands, broadcast to ``shape``; see :meth:`epilogue`."""
        return addressed(chain, operands, shape, split)

    def chain(self, start: Value, nodes: Sequence[Node]) -> tuple[Chain, list[Tensor | np.generic]]:
        """Return the chain of element-wise ``nodes`` that starts from ``start``, and its operands."""
        return chain_of(start, nodes, self._read)

    def _read(self, value: Value) -> Tensor | np.generic:
        """Return an operand of a chain. Known numbers are passed by value: not part of the code, and not loaded."""
        array = self.known(value)
        return self.tensor(value) if array is None or array.size != 1 else scalar(array.reshape(()), value.dtype)


def _uploaded(upload: DeviceArray) -> Tensor:
    storage = Storage(upload.bytes, upload.allocation)
    return Tensor(storage, upload.type.dtype, upload.shape, dense_strides(upload.shape))
