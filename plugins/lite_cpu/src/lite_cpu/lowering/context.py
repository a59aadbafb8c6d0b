"""Lowering a partition: from nodes to the steps of a native program."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence, Set
from dataclasses import dataclass, field
from math import prod
from typing import Any, TypeVar

import numpy as np

from lite_compiler.chains import read_chain
from lite_compiler.fusion import Group
from lite_compiler.tensors import dense_strides
from lite_core.backend import Options
from lite_core.errors import ExecutionError
from lite_core.ir import DType, Graph, Node, Value
from lite_cpu.chains import Chain, Operand
from lite_cpu.external import ExternalSgemm, no_external_sgemm
from lite_cpu.kernels.gemm import gemm_tile, pack_panels
from lite_cpu.lowering.chaining import run_chain
from lite_cpu.lowering.copying import copy_elements, walkable
from lite_cpu.lowering.kept import Kept
from lite_cpu.lowering.steps import StepEmitter
from lite_cpu.lowering.weights import WeightCache
from lite_cpu.tensors import FIRST_ARGUMENT, Storage, Tensor

__all__ = ["Lowering", "channels_last_order"]

Array = np.ndarray[Any, Any]
_Made = TypeVar("_Made")


@dataclass
class Lowering(StepEmitter):
    """What lowering functions work with.

    Attributes:
        graph: the partition, every shape known.
        options: what the session allows.
        weights: packed constants, shared by all plans of the process.
        external_sgemm: tells the matrix product of another library that is faster for large ones, if there is one;
            to be asked only when one is to be lowered.
        kept: what is the same for graphs that differ in sizes only.
        weighted: positions of the nodes that read something beside their first input, all of it constants.
        positions: where each node stands in the graph.
        elements: of the values that are known before the run.
        faults: what may turn out wrong in a run, as messages: ``{}`` takes the number that a kernel found.
    """

    graph: Graph
    options: Options
    weights: WeightCache
    external_sgemm: Callable[[], ExternalSgemm | None] = no_external_sgemm
    kept: Kept = field(default_factory=Kept)
    weighted: Set[int] = frozenset()
    faults: list[str] = field(default_factory=list)
    _tensors: dict[Value, Tensor] = field(default_factory=dict)
    elements: dict[Value, Array] = field(default_factory=dict)
    _targets: dict[Value, Tensor] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for i, value in enumerate(self.graph.inputs):
            self._tensors[value] = self._argument(value, FIRST_ARGUMENT + i)
        first_output = FIRST_ARGUMENT + len(self.graph.inputs)
        self.outputs = {v: self._argument(v, first_output + i) for i, v in enumerate(self.graph.outputs)}
        self.elements.update(self.graph.constants)
        self.positions = {node: i for i, node in enumerate(self.graph.nodes)}

    def _argument(self, value: Value, base: int) -> Tensor:
        shape = tuple(value.shape)
        bytes = prod(shape) * value.dtype.itemsize
        return Tensor(Storage(bytes, base), value.dtype, shape, dense_strides(shape))

    def fault(self, message: str) -> tuple[Tensor, int]:
        """Where a kernel records that something is wrong, as two int64: the number given here, and what it found."""
        self.faults.append(message)
        base = FIRST_ARGUMENT + len(self.graph.inputs) + len(self.graph.outputs)
        return Tensor(Storage(16, base), DType.INT64, (2,), (1,)), len(self.faults)

    # **** values ****

    def known(self, value: Value | None) -> Array | None:
        """The elements of a value where they are known before the run: a constant, or computed from some."""
        return None if value is None else self.elements.get(value)

    def know(self, value: Value, array: Array) -> None:
        """Record the elements of a value; nothing needs to run for it."""
        self.elements[value] = array
        self._tensors.pop(value, None)  # a place that was chosen for it before this was clear stays unwritten

    def tensor(self, value: Value) -> Tensor:
        """Where a value is when the program runs."""
        found = self._tensors.get(value)
        if found is None:
            array = self.elements.get(value)
            if array is None:
                raise ExecutionError(f"value {value.name!r} is used before a step makes it")
            if value in self.graph.constants:
                # The tensor keeps the array alive, so no other one can have its id.
                found = self.kept.once(id(array), lambda: self.constant(array))
            else:
                found = self.constant(array)
            self._tensors[value] = found
        return found

    def bind(self, value: Value, tensor: Tensor) -> None:
        """Say where a value is; free of cost, so views are made this way."""
        if tensor.shape != tuple(value.shape) or tensor.dtype is not value.dtype:
            raise ExecutionError(f"value {value!r} was given a tensor {tensor.dtype}{list(tensor.shape)}")
        self._tensors[value] = tensor

    def constant(self, array: Array) -> Tensor:
        """An array as a tensor. It must not change, and is kept alive by the program."""
        return self.weights.tensor(array)

    def packed(self, key: Hashable, arrays: Sequence[Array], pack: Callable[[], Array]) -> Tensor:
        """Prepared weights: made once in the process for the same ``arrays`` and ``key``."""
        return self.constant(self.weights.get(key, arrays, pack))

    def packed_panels(self, weights: Value) -> Tensor:
        """Weights [columns, depth, 1, ...] of a pointwise convolution, known before the run, as panels of B."""
        lanes, (_, vectors) = self.machine.lanes(), gemm_tile(self.machine)
        array = self.known(weights)
        if array is None:
            raise ExecutionError(f"weights {weights.name!r} are not known before the run")
        matrix: Array = array.reshape(array.shape[:2]).T
        return self.packed(("panels", lanes, vectors), [array], lambda: pack_panels(matrix[None], lanes, vectors))

    def bias(self, bias: Value | None, columns: int) -> Tensor:
        """A bias, or zeros in its place."""
        if bias is None:
            return self.packed(("zeros", columns), [], lambda: np.zeros(columns, np.float32))
        return self.dense(self.tensor(bias))

    def once(self, node: Node, what: Hashable, make: Callable[[], _Made]) -> _Made:
        """Something made of a node's attributes and of all its inputs but the first.

        Where those are constants, ``make`` is called once for all sizes of the graph's tensors.

        Args:
            node: one of the graph.
            what: tells apart what is made for one node, by whatever it depends on beside that.
            make: makes it; it must not look at sizes, or hold nodes or values of the graph.
        """
        position = self.positions[node]
        if position not in self.weighted:
            return make()
        return self.kept.once((position, what), make)

    # **** tensors ****

    def target(self, value: Value, order: Sequence[int] | None = None) -> Tensor:
        """Where a step should write a value: a place reserved for it, an output of the partition, or the arena.

        Args:
            value: what will be written; it is bound to the tensor.
            order: the order of dimensions in memory that the step would like, outermost first.
        """
        tensor = self._targets.get(value)
        if tensor is None:
            tensor = self.allocate(value.shape, value.dtype, order)
            output = self.outputs.get(value)
            if output is not None and tensor.is_dense:
                tensor = output
        self.bind(value, tensor)
        return tensor

    def reserve(self, value: Value, tensor: Tensor) -> None:
        """Have the step that makes ``value`` write it into ``tensor``, for example a slice of a concatenation."""
        self._targets[value] = tensor

    def is_reserved(self, value: Value) -> bool:
        return value in self._targets

    def channels_last(self, tensor: Tensor) -> Tensor:
        """The tensor [batch, channels, ...], copied if need be so that its pixels follow each other evenly."""
        if tensor.is_channels_last:
            return tensor
        copy = self.allocate(tensor.shape, tensor.dtype, channels_last_order(tensor.rank))
        self.copy(tensor, copy)
        return copy

    def dense(self, tensor: Tensor) -> Tensor:
        """The tensor in the order of its dimensions without gaps, copied if need be."""
        if tensor.is_dense:
            return tensor
        copy = self.allocate(tensor.shape, tensor.dtype)
        self.copy(tensor, copy)
        return copy

    # **** steps ****

    def copy(self, source: Tensor, destination: Tensor) -> None:
        """Copy elements between tensors of one shape and element type."""
        copy_elements(self, source, destination)

    def elementwise(self, chain: Chain, sources: Sequence[Tensor], destination: Tensor) -> None:
        """Run a chain over all elements; see :func:`run_chain`. Sources that it could only walk slowly are copied."""
        if chain.steps:
            sources = [walkable(self, s, destination) for s in sources]
        run_chain(self, chain, sources, destination)

    # **** groups ****

    def lower(self, group: Group, function: Callable[[Lowering, Group], None]) -> None:
        """Emit the steps of a group."""
        nodes = (*(group.producer.nodes if group.producer else ()), *group.nodes)
        self._names = tuple([n.name or n.op for n in nodes])
        function(self, group)
        self._names = ()

    def chain(self, start: Value, nodes: Sequence[Node]) -> tuple[Chain, list[Value]]:
        """What element-wise ``nodes`` do to ``start``, and the values they read beside it, in operand order."""
        if not nodes:
            return Chain(Operand(start.dtype)), []
        key = (nodes[0].inputs.index(start), *[self.positions[n] for n in nodes])
        found = self.kept.chains.get(key)
        if found is not None:
            chain, places = found
            return chain, [nodes[i].inputs[k] for i, k in places]  # type: ignore[misc]  # none is left out
        chain, reads = self._new_chain(start, nodes)
        if all(o.constant is None or v in self.graph.constants for o, v in zip(chain.operands, reads)):
            places = [next((i, n.inputs.index(v)) for i, n in enumerate(nodes) if v in n.inputs) for v in reads]
            self.kept.chains[key] = chain, places
        return chain, reads

    def _new_chain(self, start: Value, nodes: Sequence[Node]) -> tuple[Chain, list[Value]]:
        reads, steps = read_chain(start, nodes)
        clips = "Clip" in [node.op for node in nodes]
        operands = tuple([Operand(v.dtype, False, self._clip_bound(v, nodes) if clips else None) for v in reads])
        return Chain(Operand(start.dtype), operands, steps), reads

    def _clip_bound(self, value: Value, nodes: Sequence[Node]) -> float | None:
        """The number a value is, if it is known and only a bound of Clip.

        Loading the bounds and asking whether they are NaN made a depthwise convolution 1.6 times slower. Other numbers
        differ from layer to layer, and each would need code of its own.
        """
        array = self.known(value)
        if array is None or array.size != 1 or value.dtype is not DType.FLOAT32:
            return None
        if any(n.qualified_op != "Clip" or value is n.inputs[0] for n in nodes if value in n.inputs):
            return None
        number = float(array.reshape(()))
        return number if np.isfinite(number) else None

    def epilogue(self, group: Group, shape: Sequence[int], axis: int) -> tuple[Chain, list[Tensor]]:
        """The tail of a group as a chain, and its operands broadcast to ``shape``.

        Args:
            group: its head's first output is what the chain starts from.
            shape: of the head's output.
            axis: the dimension along which the kernel works in vectors: operands are made contiguous there.
        """
        start = group.head.outputs[0]
        assert start is not None
        chain, reads = self.chain(start, group.tail)
        tensors = []
        for value in reads:
            tensor = self.tensor(value)
            wide = tensor.expand(shape)
            if shape[axis] > 1 and wide.strides[axis] not in (0, 1):
                order = [a for a in range(tensor.rank) if a != axis - (len(shape) - tensor.rank)]
                order.append(axis - (len(shape) - tensor.rank))
                copy = self.allocate(tensor.shape, tensor.dtype, order)
                self.copy(tensor, copy)
                wide = copy.expand(shape)
            tensors.append(wide)
        spread = [t.strides[axis] == 0 and shape[axis] > 1 for t in tensors]
        operands = tuple([Operand(o.dtype, flag, o.constant) for o, flag in zip(chain.operands, spread)])
        return Chain(chain.start, operands, chain.steps), tensors


def channels_last_order(rank: int) -> list[int]:
    """Batch, space, channels."""
    return [0, *range(2, rank), 1]
