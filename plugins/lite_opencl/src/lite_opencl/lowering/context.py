"""Lowering a partition: what the functions of the families work with."""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from lite_compiler.fusion import Group
from lite_compiler.tensors import dense_strides
from lite_core.backend import Options
from lite_core.errors import ExecutionError
from lite_core.ir import Graph, Node, Value
from lite_opencl.chains import Chain
from lite_opencl.compiled.faults import RECORD, RECORD_WORDS
from lite_opencl.device.constants import ConstantPool
from lite_opencl.device.memory import DeviceArray
from lite_opencl.lowering.chaining import Epilogue, addressed, chain_of, run_chain
from lite_opencl.lowering.choosing import Chooser
from lite_opencl.lowering.copying import copy_elements
from lite_opencl.lowering.half import stored_type
from lite_opencl.lowering.steps import PlannedStep, StepEmitter, checked_size
from lite_opencl.programs.element_types import scalar
from lite_opencl.tensors import Storage, Tensor

__all__ = ["Lowering"]

Array = np.ndarray[Any, Any]
C = TypeVar("C")


@dataclass
class Lowering(StepEmitter):
    """What lowering functions work with.

    Attributes:
        graph: the partition, every shape known.
        options: what the session allows.
        constants: uploads, shared by all plans of the process.
        chooser: of what computes the same.
        elements: of the values that are known before the run.
        faults: what may turn out wrong in a run, as messages; see :meth:`fault`.
        destinations: where values are to be written, if the steps that compute them can; see :mod:`.destinations`.
        record: where kernels write which of them did, in the arena.
    """

    graph: Graph
    options: Options
    constants: ConstantPool
    chooser: Chooser = field(default_factory=Chooser)
    _tensors: dict[Value, Tensor] = field(default_factory=dict)
    elements: dict[Value, Array] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    destinations: dict[Value, Tensor] = field(default_factory=dict)
    _copies: dict[Tensor, Tensor] = field(default_factory=dict)
    _maker: Node | None = None

    def __post_init__(self) -> None:
        for i, value in enumerate(self.graph.inputs):
            self._tensors[value] = self._argument(value, i)
        first = len(self.graph.inputs)
        self.outputs = {v: self._argument(v, first + i) for i, v in enumerate(self.graph.outputs)}
        self.elements.update(self.graph.constants)
        self._read_inside = {value for node in self.graph.nodes for value in node.used()}
        self.record = self.allocate((RECORD_WORDS,), RECORD.dtype)

    def _argument(self, value: Value, number: int) -> Tensor:
        shape = tuple(value.shape)
        size = checked_size(shape, value.dtype)
        return Tensor(Storage(size * value.dtype.itemsize, number), value.dtype, shape, dense_strides(shape))

    # **** values ****

    def known(self, value: Value | None) -> Array | None:
        """The elements of a value where they are known before the run: a constant, or computed from some."""
        return None if value is None else self.elements.get(value)

    def number(self, value: Value) -> Array:
        """As :meth:`known`, of an input that the operator is registered to need ``known``: it always is."""
        array = self.known(value)
        assert array is not None
        return array

    def know(self, value: Value, array: Array) -> None:
        """Record the elements of a value; nothing needs to run for it."""
        self.elements[value] = array

    def tensor(self, value: Value) -> Tensor:
        """Where a value is when the partition runs. It may be strided; see :meth:`dense`."""
        found = self._tensors.get(value)
        if found is None:
            array = self.elements.get(value)
            if array is None:
                raise ExecutionError(f"{value.name!r} is read before a step makes it")
            found = self._tensors[value] = _uploaded(self.constants.plain(array))
        return found

    def constant(self, key: Hashable, sources: Sequence[Array], make: Callable[[], Array]) -> Tensor:
        """What ``make`` returns, uploaded once for all sessions; see :meth:`ConstantPool.get`.

        ``key`` says what is made of the sources: packed weights, for example ``("conv panels", 4)``.
        """
        return _uploaded(self.constants.get(key, sources, make))

    def target(self, value: Value, fits: Callable[[Tensor], bool] = lambda place: place.is_dense) -> Tensor:
        """A place for a value that a step is about to make: the partition's output, a reserved place, or a new one.

        Its elements may be narrower than the value's: see :func:`stored_type`.

        Args:
            value: which is made.
            fits: whether the step can write to a reserved place; the others are dense.
        """
        dtype = stored_type(value, self._maker, self.options, self.device)
        place = self.destinations.get(value)
        if place is not None and not (place.dtype is dtype and fits(place)):
            place = None
        output = self.outputs.get(value)
        if output is not None and output.dtype is not dtype and value in self._read_inside:
            output = None  # what is read here is as narrow as it would be were it no output: being seen changes nothing
        found = output or place or self.allocate(tuple(value.shape), dtype)
        self._tensors[value] = found
        return found

    def bind(self, value: Value, tensor: Tensor) -> None:
        """Say that a value is a view of a tensor that is there already."""
        self._tensors[value] = tensor

    def dense(self, tensor: Tensor) -> Tensor:
        """The tensor in the order of its dimensions without gaps, copied if need be, and then once for all readers."""
        if tensor.is_dense:
            return tensor
        copy = self._copies.get(tensor)
        if copy is None:
            copy = self._copies[tensor] = self.allocate(tensor.shape, tensor.dtype)
            self.copy(tensor, copy)
        return copy

    def fault(self, messages: Sequence[str]) -> int:
        """The number that a kernel writes into the record when the first of some things is wrong, the rest follow.

        Args:
            messages: what a run that meets it raises; ``{}`` takes the number that was found.
        """
        self.faults += messages
        return len(self.faults) - len(messages) + 1

    # **** steps ****

    def choose(self, problem: str, candidates: Sequence[C], emit: Callable[[Lowering, C], None]) -> None:
        """Emit the steps of the candidate that is known to be fastest, of several that compute the same.

        Args:
            problem: see :func:`lite_opencl.lowering.choosing.problem`.
            candidates: the first is taken where nothing was measured.
            emit: emits a candidate into the lowering that it is given: this one, or one that is only measured.
        """

        def steps(candidate: C) -> list[PlannedStep]:
            trial = copy.copy(self)
            trial.steps, trial.faults = [], [*self.faults]
            trial._tensors, trial.elements, trial._copies = {**self._tensors}, {**self.elements}, {**self._copies}
            emit(trial, candidate)
            return trial.steps

        emit(self, self.chooser.choose(problem, candidates, steps))

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
        """Emit the steps of a group."""
        self._names, self._maker = tuple(n.name or n.op for n in group.nodes), group.nodes[-1]
        function(self, group)
        self._names, self._maker = (), None

    def epilogue(self, group: Group, split: int) -> Epilogue:
        """The tail of a group, for a kernel that computes its head and stores ``EPILOGUE(value, row, column)``.

        Args:
            group: the chain starts from its head's first output.
            split: how many dimensions of that output the kernel counts as rows; the others are its columns. A
                convolution with batch and channel as rows says 2.
        """
        start = group.head.outputs[0]
        assert start is not None
        chain, operands = self.chain(start, group.tail)
        return self.epilogue_of(chain, operands, tuple(start.shape), split)

    def epilogue_of(
        self, chain: Chain, operands: Sequence[Tensor | np.generic], shape: Sequence[int], split: int
    ) -> Epilogue:
        """As :meth:`epilogue`, of a chain and what its operands are; tensors are broadcast to ``shape``."""
        return addressed(chain, operands, shape, split)

    def chain(self, start: Value, nodes: Sequence[Node]) -> tuple[Chain, list[Tensor | np.generic]]:
        """What element-wise ``nodes`` do to ``start``, and what they read beside it; see :func:`chain_of`."""
        return chain_of(start, nodes, self._read)

    def _read(self, value: Value) -> Tensor | np.generic:
        """An operand of a chain. Numbers that are known are passed by value: no part of the code, and no load."""
        array = self.known(value)
        return self.tensor(value) if array is None or array.size != 1 else scalar(array.reshape(()), value.dtype)


def _uploaded(upload: DeviceArray) -> Tensor:
    storage = Storage(upload.bytes, upload.allocation)
    return Tensor(storage, upload.type.dtype, upload.shape, dense_strides(upload.shape))
