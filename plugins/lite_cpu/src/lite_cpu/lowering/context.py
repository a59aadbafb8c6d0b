"""The lowering context: turns the nodes of a partition into the steps of a native program."""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Hashable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import partial
from math import prod
from typing import Any, TypeVar

import numpy as np

from lite_compiler.chains import read_chain
from lite_compiler.fusion import Group
from lite_compiler.kernel_log import KernelLog
from lite_compiler.observing import LoweredGroup
from lite_compiler.tensors import dense_strides
from lite_compiler.tournaments.choice import problem
from lite_compiler.tournaments.chooser import Chooser
from lite_compiler.tracing.numbers import TracedArray, is_traced
from lite_core.backend import Options
from lite_core.errors import ExecutionError
from lite_core.ir import DType, Graph, Node, PanelLayout, Value
from lite_cpu.chains import Chain, Operand
from lite_cpu.external import ExternalSgemm, no_external_sgemm
from lite_cpu.kernels.base import Kernel
from lite_cpu.kernels.gemm import gemm_tile
from lite_cpu.lowering.chaining import run_chain
from lite_cpu.lowering.copying import copy_elements, vectorizable
from lite_cpu.lowering.lowering_cache import LoweringCache
from lite_cpu.lowering.steps import PlannedStep, StepEmitter
from lite_cpu.lowering.weights import Recipe, WeightCache
from lite_cpu.panel_preparation import prepare_panels
from lite_cpu.tensors import ABSOLUTE, FIRST_ARGUMENT, Storage, Tensor

__all__ = ["Lowering", "channels_last_order"]

logger = logging.getLogger("lite.cpu.kernels")

Array = np.ndarray[Any, Any]
_Object = TypeVar("_Object")
_Candidate = TypeVar("_Candidate")


@dataclass
class Lowering(StepEmitter):
    """The context that lowering functions emit steps into.

    Attributes:
        graph: the graph of the partition; every shape is known.
        options: the options of the session.
        weights: the cache of packed constants, shared by all plans of the process.
        external_sgemm: returns another library's matrix product that is faster for large products, or None; to be
            called only when such a product is lowered.
        cache: results of lowering that are shared by graphs that differ only in sizes.
        with_constant_weights: positions of the nodes with inputs after the first, all of them constants.
        positions: the index of each node in the graph.
        chooser: chooses among candidates that compute the same.
        elements: the elements of known values.
        makers: kernels that make weights before the program runs.
        faults: messages of errors that kernels may detect; ``{}`` stands for the number that the kernel reports.
        groups: the groups lowered so far.
        log: receives the kernels of each group, and the reasons for them.
        caches: outputs of the partition that may be in the memory of an input, with that input.
        outer: for the body of a control node, the context of the graph that contains the node.
        arguments: for a body, the tensors of its inputs.
        results: for a body, the tensors that receive its outputs.
    """

    graph: Graph
    options: Options
    weights: WeightCache
    external_sgemm: Callable[[], ExternalSgemm | None] = no_external_sgemm
    cache: LoweringCache = field(default_factory=LoweringCache)
    with_constant_weights: Set[int] = frozenset()
    chooser: Chooser[PlannedStep] = field(default_factory=Chooser[PlannedStep])
    faults: list[str] = field(default_factory=list)
    makers: set[Kernel] = field(default_factory=set)
    groups: list[LoweredGroup[Tensor]] = field(default_factory=list)
    log: KernelLog = field(default_factory=partial(KernelLog, logger))
    caches: Mapping[Value, Value] = field(default_factory=dict)
    outer: Lowering | None = None
    arguments: Sequence[Tensor] = ()
    results: Sequence[Tensor] = ()
    _tensors: dict[Value, Tensor] = field(default_factory=dict)
    elements: dict[Value, Array] = field(default_factory=dict)
    _targets: dict[Value, Tensor] = field(default_factory=dict)

    def __post_init__(self) -> None:
        graph = self.graph
        if self.outer is None:
            first_output = FIRST_ARGUMENT + len(graph.inputs)
            self.arguments = [self._argument(v, FIRST_ARGUMENT + i) for i, v in enumerate(graph.inputs)]
            self.results = [self._argument(v, first_output + i) for i, v in enumerate(graph.outputs)]
        self._tensors.update(zip(graph.inputs, self.arguments))
        self.outputs = dict(zip(graph.outputs, self.results))
        #: True if sizes of the inputs are recorded; see :mod:`lite_compiler.tracing`.
        self.is_traced = is_traced(*[tensor.shape for tensor in self.arguments])
        self.elements.update(self.graph.constants)
        self.positions = {node: i for i, node in enumerate(self.graph.nodes)}

    def _argument(self, value: Value, base: int) -> Tensor:
        shape = tuple(value.shape)
        bytes = prod(shape) * value.dtype.itemsize
        return Tensor(Storage(bytes, base), value.dtype, shape, dense_strides(shape))

    def fault(self, message: str) -> tuple[Tensor, int]:
        """Register an error that a kernel may detect, and return the record it writes to and the error's number.

        The record has two int64: the error's number and the offending value.
        """
        self.faults.append(message)
        return self._record(0), len(self.faults)

    def text(self, describe: Callable[[], str]) -> str:
        """Return a text that contains sizes; none while sizes are traced, as it would be that of a single size."""
        return "" if self.is_traced else describe()

    def strides(self, value: Value) -> Tensor | None:
        """Return the strides of the first two dimensions of a cache, in elements; None for a value of known strides."""
        if not self.caches:
            return None
        numbered = [cache for pair in self.caches.items() for cache in pair]
        return self._record(1 + numbered.index(value)) if value in numbered else None

    def _record(self, pair: int) -> Tensor:
        """Return two int64 of the record that a run has besides its arguments."""
        if self.outer is not None:
            return self.outer._record(pair)
        base = FIRST_ARGUMENT + len(self.graph.inputs) + len(self.graph.outputs)
        return Tensor(Storage(16 * (pair + 1), base), DType.INT64, (2,), (1,), 2 * pair)

    # **** values ****

    def known(self, value: Value | None) -> Array | None:
        """Return the elements of a known value (a constant, or computed from constants and shapes), or None."""
        return None if value is None else self.elements.get(value)

    def set_known(self, value: Value, array: Array) -> None:
        """Record the elements of a value, so that no step needs to compute it."""
        self.elements[value] = array
        self._tensors.pop(value, None)  # no step will write the destination assigned earlier

    def tensor(self, value: Value) -> Tensor:
        """Return the tensor that holds a value when the program runs."""
        found = self._tensors.get(value)
        if found is None:
            array = self.elements.get(value)
            if array is None:
                raise ExecutionError(f"value {value.name!r} is used before a step makes it")
            if value in self.graph.constants:
                # The tensor keeps the array alive, so no other array can get its id.
                found = self.cache.get_or_make(id(array), lambda: self.constant(array))
            else:
                found = self.constant(array)
            self._tensors[value] = found
        return found

    def bind(self, value: Value, tensor: Tensor) -> None:
        """Record the tensor that holds a value. No step runs, so this is how views are lowered."""
        if tensor.shape != tuple(value.shape) or tensor.dtype is not value.dtype:
            raise ExecutionError(f"value {value!r} was given a tensor {tensor.dtype}{list(tensor.shape)}")
        self._tensors[value] = tensor

    def constant(self, array: Array | TracedArray) -> Tensor:
        """Return an array as a tensor. The array must not change; the program keeps it alive."""
        if isinstance(array, TracedArray):
            storage = Storage(array.nbytes, ABSOLUTE, keep=array)
            return Tensor(storage, DType.of(array.dtype), array.shape, dense_strides(array.shape))
        return self.weights.tensor(array)

    def packed(
        self, key: Hashable, arrays: Sequence[Array], pack: Callable[[], Array], recipe: Recipe | None = None
    ) -> Tensor:
        """Return packed weights; ``pack`` is called once in the process for the same ``arrays`` and ``key``.

        Args:
            key: identifies the packing.
            arrays: the constants that are packed.
            pack: packs them.
            recipe: how to pack the arrays without the compiler, so that a model file need not store both.
        """
        return self.constant(self.weights.get(key, arrays, pack, recipe))

    def packed_panels(self, weights: Value) -> Tensor:
        """Pack the known weights [columns, depth, 1, ...] of a pointwise convolution into panels of B."""
        lanes, (_, vectors) = self.machine.lanes(), gemm_tile(self.machine)
        array = self.known(weights)
        if array is None:
            raise ExecutionError(f"weights {weights.name!r} are not known before the run")
        matrix: Array = array.reshape(array.shape[:2]).T
        columns, depth = array.shape[:2]
        layout = PanelLayout((columns, depth), (1, 0), depth, columns, lanes * vectors, lanes)
        pack = partial(prepare_panels, self.library, matrix[None])
        return self.packed(("panels", lanes, vectors), [array], pack, layout)

    def cached(self, node: Node, key: Hashable, make: Callable[[], _Object]) -> _Object:
        """Return an object that depends on a node's attributes and on its inputs after the first.

        If those inputs are constants, ``make`` is called once for all sizes of the graph's tensors.

        Args:
            node: a node of the graph.
            key: distinguishes the objects of one node; it contains everything else that the object depends on.
            make: creates the object; it must not depend on sizes, or keep nodes or values of the graph.
        """
        position = self.positions[node]
        if position not in self.with_constant_weights:
            return make()
        return self.cache.get_or_make((position, key), make)

    # **** tensors ****

    def target(self, value: Value, order: Sequence[int] | None = None) -> Tensor:
        """Return the destination of a value: the reserved one, an output of the partition, or memory in the arena.

        Args:
            value: the value that a step will write; it is bound to the destination.
            order: the order of dimensions in memory that the step prefers, outermost first.
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
        """Make ``tensor``, for example a slice of a concatenation, the destination of ``value``."""
        self._targets[value] = tensor

    def is_reserved(self, value: Value) -> bool:
        return value in self._targets

    def channels_last(self, tensor: Tensor) -> Tensor:
        """Return the tensor [batch, channels, ...] in channels-last layout, copied if necessary."""
        if tensor.is_channels_last:
            return tensor
        copy = self.allocate(tensor.shape, tensor.dtype, channels_last_order(tensor.rank))
        self.copy(tensor, copy)
        return copy

    def dense(self, tensor: Tensor) -> Tensor:
        """Return the tensor as a contiguous one, copied if necessary."""
        if tensor.is_dense:
            return tensor
        copy = self.allocate(tensor.shape, tensor.dtype)
        self.copy(tensor, copy)
        return copy

    # **** steps ****

    def choose(
        self,
        kind: str,
        tensors: Sequence[Tensor],
        sizes: Mapping[str, object],
        candidates: Sequence[_Candidate],
        emit: Callable[[Lowering, _Candidate], None],
    ) -> None:
        """Emit the steps of the fastest of several candidates that compute the same.

        Args:
            kind: the kind of problem.
            tensors: tensors whose element types matter.
            sizes: the numbers that the fastest candidate depends on, by name; the number of threads is always one.
            candidates: the candidates, identified by their text; the first one is used if no tournament was held.
            emit: emits a candidate into the lowering that it is given: this one, or one that is only measured.
        """

        def steps(candidate: _Candidate) -> list[PlannedStep]:
            trial = copy.copy(self)
            trial.steps, trial.faults, trial.log = [], [*self.faults], KernelLog()
            trial._tensors, trial.elements = {**self._tensors}, {**self.elements}
            emit(trial, candidate)
            return trial.steps

        chosen = candidates[0]
        if len(candidates) > 1 and (self.chooser.may_choose or self.log.is_on):
            described = problem(kind, tensors, **sizes, threads=self.options.threads)
            chosen = self.chooser.choose(described, candidates, steps)
            self.log.choice(described, candidates, chosen, self.chooser.used.get(described))
        emit(self, chosen)

    def copy(self, source: Tensor, destination: Tensor) -> None:
        """Copy elements between tensors of one shape and element type."""
        copy_elements(self, source, destination)

    def elementwise(self, chain: Chain, sources: Sequence[Tensor], destination: Tensor) -> None:
        """Apply a chain to all elements; see :func:`run_chain`. Sources whose layout prevents vectors are copied."""
        if chain.steps:
            sources = [vectorizable(self, s, destination) for s in sources]
        run_chain(self, chain, sources, destination)

    # **** groups ****

    def lower(self, group: Group, function: Callable[[Lowering, Group], None]) -> None:
        """Emit the steps of a group."""
        nodes = (*(group.producer.nodes if group.producer else ()), *group.nodes)
        self._names = tuple([n.name or n.op for n in nodes])
        begin = len(self.steps)
        function(self, group)
        self._names = ()
        tensors = {v: self._tensors[v] for node in nodes for v in node.outputs if v in self._tensors}
        self.groups.append(LoweredGroup(nodes, begin, len(self.steps), tensors))
        self.log.group(nodes, [step.label for step in self.steps[begin:]])

    def chain(self, start: Value, nodes: Sequence[Node]) -> tuple[Chain, list[Value]]:
        """Return the chain of element-wise ``nodes`` applied to ``start``, and the operands' values in order."""
        if not nodes:
            return Chain(Operand(start.dtype)), []
        reader = next(node for node in nodes if start in node.inputs)
        key = (reader.inputs.index(start), *[self.positions[n] for n in nodes])
        found = self.cache.chains.get(key)
        if found is not None:
            chain, positions = found
            return chain, [nodes[i].inputs[k] for i, k in positions]  # type: ignore[misc]  # none is left out
        chain, reads = self._new_chain(start, nodes)
        if all(o.constant is None or v in self.graph.constants for o, v in zip(chain.operands, reads)):
            positions = [next((i, n.inputs.index(v)) for i, n in enumerate(nodes) if v in n.inputs) for v in reads]
            self.cache.chains[key] = chain, positions
        return chain, reads

    def _new_chain(self, start: Value, nodes: Sequence[Node]) -> tuple[Chain, list[Value]]:
        reads, steps = read_chain(start, nodes)
        has_clip = "Clip" in [node.op for node in nodes]
        operands = tuple([Operand(v.dtype, False, self._clip_bound(v, nodes) if has_clip else None) for v in reads])
        return Chain(Operand(start.dtype), operands, steps), reads

    def _clip_bound(self, value: Value, nodes: Sequence[Node]) -> float | None:
        """Return the number in a known value that is only used as a bound of Clip, else None.

        Loading the bounds and testing them for NaN made a depthwise convolution 1.6 times slower. Other numbers differ
        from layer to layer, and each would need separate code.
        """
        array = self.known(value)
        if array is None or array.size != 1 or value.dtype is not DType.FLOAT32:
            return None
        if any(n.qualified_op != "Clip" or value is n.inputs[0] for n in nodes if value in n.inputs):
            return None
        number = float(array.reshape(()))
        return number if np.isfinite(number) else None

    def epilogue(self, group: Group, shape: Sequence[int], axis: int) -> tuple[Chain, list[Tensor]]:
        """Return the tail of a group as a chain, and its operands broadcast to ``shape``.

        Args:
            group: the group; the chain starts from the first output of its head.
            shape: the shape of the head's output.
            axis: the dimension along which the kernel uses vectors; operands are made contiguous there.
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
        single = [t.strides == (0,) * t.rank for t in tensors]
        operands = tuple(
            [Operand(o.dtype, flag, o.constant, one) for o, flag, one in zip(chain.operands, spread, single)]
        )
        return Chain(chain.start, operands, chain.steps), tensors


def channels_last_order(rank: int) -> list[int]:
    """Return the order of dimensions batch, space, channels of a tensor [batch, channels, space...]."""
    return [0, *range(2, rank), 1]
