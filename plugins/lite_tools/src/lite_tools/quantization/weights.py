"""Quantization of the weights of a graph.

Rules:
    1. ``int8``: a constant that is only used as a weight (see :data:`_WEIGHTS`) becomes int8 with a scale for each
       output channel, followed by a DequantizeLinear.
    2. ``int4``: a matrix that is only the right operand of MatMul or Gemm, and is as deep as a block, becomes int4 with
       a scale for each block of each column; other weights become int8.
    3. ``float16``: any constant of float32 or float64 becomes float16, followed by a Cast, except scales of quantized
       tensors.
    4. For a table that is only used by one Gather along axis 0, the rows are gathered first and widened afterwards, so
       that the table is small in memory, too.
    5. Constants of fewer than 1,024 elements, such as biases, constants that are outputs of a graph, and those whose
       names match a given pattern do not change.

A constant is stored once in its graph, even if several nodes use it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

import numpy as np

from lite_core import ops
from lite_core.errors import InputError
from lite_core.ir import Attribute, DType, Graph, Node, Value
from lite_core.passes.rewriting import first_origin
from lite_tools.quantization.blocks import BLOCK, store_int4
from lite_tools.quantization.schemes import SCHEMES, Stored, Unsuitable, relative_rms_error, stored_bytes

__all__ = ["QuantizationResult", "WeightRecord", "quantize_weights"]

Array = np.ndarray[Any, Any]

#: The scales and the additional node of smaller constants outweigh the savings.
_MIN_ELEMENTS = 1024

_Axis = Callable[[Mapping[str, Any], int], int]

#: The inputs of each operator that are weights, with a function from attributes and rank to the output channels' axis.
_WEIGHTS: dict[str, dict[int, _Axis]] = {
    "Conv": {1: lambda attributes, rank: 0},
    # [inputs, outputs / groups, ...]: with several groups, axis 0 has a finer granularity than axis 1.
    "ConvTranspose": {1: lambda attributes, rank: 1 if attributes["group"] == 1 else 0},
    "DeformConv": {1: lambda attributes, rank: 0},
    "Gather": {0: lambda attributes, rank: rank - 1},
    "Gemm": {
        0: lambda attributes, rank: 1 if attributes["transA"] else 0,
        1: lambda attributes, rank: 0 if attributes["transB"] else 1,
    },
    "MatMul": {0: lambda attributes, rank: rank - 2, 1: lambda attributes, rank: rank - 1},
    **{op: {1: lambda attributes, rank: 1, 2: lambda attributes, rank: 1} for op in ("GRU", "LSTM", "RNN")},
}
# The scales of these operators stay constants: backends that compute with integers need them at compile time.
_TAKE_SCALES = ("DequantizeLinear", "QuantizeLinear", "QLinearConv", "QLinearMatMul")


@dataclass(frozen=True, slots=True)
class WeightRecord:
    """The record of one constant that was considered.

    Attributes:
        name: the name of its value, which is kept.
        op: the operators that use it, separated by commas.
        shape: its shape.
        dtype: its element type before.
        bytes_before: its size before.
        bytes_after: its stored size, including scales.
        max_error: the largest difference of an element.
        relative_rms_error: the root mean square of the differences, divided by that of the elements.
        kept: the reason why it was not changed; empty if it was.
        stored_as: the type of its elements in the file.
    """

    name: str
    op: str
    shape: tuple[int, ...]
    dtype: DType
    bytes_before: int
    bytes_after: int
    max_error: float = 0.0
    relative_rms_error: float = 0.0
    kept: str = ""
    stored_as: str = ""


@dataclass(frozen=True, slots=True)
class QuantizationResult:
    """A graph with weights in fewer bits.

    Attributes:
        graph: the new graph, with the inputs, outputs and value names of the original.
        scheme: one of :data:`SCHEMES`.
        weights: a record for each constant that was considered, in the order of the graph.
        bytes_before: the size of all constants before.
        bytes_after: the size of all constants after.
    """

    graph: Graph
    scheme: str
    weights: tuple[WeightRecord, ...]
    bytes_before: int
    bytes_after: int


class _Use(NamedTuple):
    node: Node
    input_index: int


def quantize_weights(graph: Graph, scheme: str, *, block: int = BLOCK, keep: Sequence[str] = ()) -> QuantizationResult:
    """Store trained weights in fewer bits without changing arithmetic.

    Args:
        graph: the graph, which is not changed. Run the passes first: they fold constants into weights only while these
            are constants.
        scheme: ``int8``, ``int4`` or ``float16``, see the rules above.
        block: elements of a block of ``int4``, a multiple of 16.
        keep: patterns of names of constants that are not changed, with ``*`` and ``?``.

    Returns:
        A new graph and a record of each weight. Weights that already have as few bits do not change.

    Raises:
        InputError: the scheme is unknown, the size of a block is no multiple of 16, or a pattern matches no constant.
    """
    if scheme not in SCHEMES:
        raise InputError(f"unknown quantization scheme {scheme!r}; the schemes are: {', '.join(SCHEMES)}")
    if block < 16 or block % 16:
        raise InputError(f"a block of int4 weights must have a multiple of 16 elements, such as 32 or 128; not {block}")
    constants = [value.name for scope in graph.walk() for value in scope.constants]
    for pattern in keep:
        if not any(fnmatchcase(name, pattern) for name in constants):
            raise InputError(f"no constant of the graph is named {pattern!r}; `lite inspect --weights` lists them")
    result = graph.copy()
    names = {value.name for scope in result.walk() for value in scope.defined()}
    uses = _uses(result)
    outputs = {value for scope in result.walk() for value in scope.outputs}
    records = []
    for scope in list(result.walk()):
        for value, array in list(scope.constants.items()):
            users = uses.get(value, [])
            if value in outputs or array.size < _MIN_ELEMENTS or not _is_candidate(scheme, value, users):
                continue
            is_kept = any(fnmatchcase(value.name, pattern) for pattern in keep)
            stored = Unsuitable("asked for") if is_kept else _store(scheme, array, users, block)
            if isinstance(stored, Stored):
                _Editor(scope, names).replace(value, stored, users)
            records.append(_record(value, array, users, stored))
    return QuantizationResult(result, scheme, tuple(records), _constant_bytes(graph), _constant_bytes(result))


# **** finding weights ****


def _uses(graph: Graph) -> dict[Value, list[_Use]]:
    found: dict[Value, list[_Use]] = {}
    for scope in graph.walk():
        for node in scope.nodes:
            for index, value in enumerate(node.inputs):
                if value is not None:
                    found.setdefault(value, []).append(_Use(node, index))
    return found


def _is_candidate(scheme: str, value: Value, users: list[_Use]) -> bool:
    if not users or not value.dtype.is_floating:
        return False
    if scheme == "float16":
        takes_scales = any(use.node.qualified_op in _TAKE_SCALES for use in users)
        return not value.dtype.is_half and not takes_scales
    return any(_channel_axis(use, len(value.shape)) is not None for use in users)


def _channel_axis(use: _Use, rank: int) -> int | None:
    """Return the axis of the output channels; None if the tensor is not used as a weight, -1 if it has no channels."""
    axis_of = _WEIGHTS.get(use.node.qualified_op, {}).get(use.input_index)
    if axis_of is None:
        return None
    # A vector has no channels: as the right operand of a product it belongs to one output.
    return -1 if rank < 2 else axis_of(ops.attributes_of(use.node), rank)


def _depth_axis(use: _Use, rank: int) -> int | None:
    """Return the axis of a right operand that the product sums over; None for other weights."""
    if rank != 2 or use.input_index != 1 or use.node.qualified_op not in ("Gemm", "MatMul"):
        return None
    return 1 if use.node.op == "Gemm" and ops.attributes_of(use.node)["transB"] else 0


def _store(scheme: str, array: Array, users: list[_Use], block: int) -> Stored | Unsuitable:
    depths = {_depth_axis(use, array.ndim) for use in users}
    depth = depths.pop() if scheme == "int4" and len(depths) == 1 else None
    if depth is not None and array.shape[depth] >= block:
        return store_int4(array, depth, block)
    axes = [_channel_axis(use, array.ndim) for use in users]
    if scheme != "float16" and None in axes:
        return Unsuitable(f"{users[axes.index(None)].node.op} uses it, too, but not as a weight")
    axis = axes[0]
    return SCHEMES[scheme](array, None if axis == -1 else axis)


# **** editing ****


@dataclass(slots=True)
class _Editor:
    """Editor of one graph; ``names`` are the names of all values in it and in enclosing graphs."""

    graph: Graph
    names: set[str]

    def replace(self, value: Value, stored: Stored, users: list[_Use]) -> None:
        """Compute ``value`` from ``stored``; its users do not change."""
        del self.graph.constants[value]
        source = self._constant(f"{value.name}.{stored.array.dtype.name}", stored.array)
        scales = None if stored.scales is None else self._constant(f"{value.name}.scale", stored.scales)
        gather = self._only_gather(value, users)
        if gather is None:
            first = next(n for n in self.graph.nodes if value in n.used())
            axis = stored.axis if stored.block else _channel_axis(users[0], len(value.shape))
            self._widen(source, scales, value, axis, self.graph.nodes.index(first), first, stored.block)
        else:
            rows = gather.outputs[0]
            assert rows is not None
            gathered = Value(self._unique(f"{rows.name}.{source.dtype}"), rows.type.with_dtype(source.dtype))
            gather.inputs = (source, *gather.inputs[1:])
            gather.outputs = (gathered,)
            self._widen(gathered, scales, rows, -1, self.graph.nodes.index(gather) + 1, gather)

    def _only_gather(self, value: Value, users: list[_Use]) -> Node | None:
        """Return the Gather along axis 0 in this graph if it is the only user of a table, else None."""
        (node, index), *others = users
        if others or index or node.qualified_op != "Gather" or node not in self.graph.nodes or len(value.shape) < 2:
            return None
        return None if ops.attributes_of(node)["axis"] % len(value.shape) else node

    def _widen(
        self,
        source: Value,
        scales: Value | None,
        result: Value,
        axis: int | None,
        position: int,
        user: Node,
        block: int = 0,
    ) -> None:
        name, origin = f"{result.name}.stored", first_origin([user])
        if scales is None:
            node = Node("Cast", [source], [result], {"to": result.dtype}, name=name, origin=origin)
        else:
            attributes: dict[str, Attribute] = {} if axis is None or not scales.shape else {"axis": axis}
            attributes |= {"block_size": block} if block else {}
            node = Node("DequantizeLinear", [source, scales], [result], attributes, name=name, origin=origin)
        self.graph.nodes.insert(position, node)

    def _constant(self, name: str, array: Array) -> Value:
        array.flags.writeable = False
        return self.graph.add_constant(self._unique(name), array)

    def _unique(self, wanted: str) -> str:
        name, number = wanted, 1
        while name in self.names:
            name, number = f"{wanted}_{number}", number + 1
        self.names.add(name)
        return name


# **** records ****


def _record(value: Value, array: Array, users: list[_Use], stored: Stored | Unsuitable) -> WeightRecord:
    op = ", ".join(dict.fromkeys(use.node.qualified_op for use in users))
    about = (value.name, op, array.shape, DType.of(array), array.nbytes)
    if isinstance(stored, Unsuitable):
        return WeightRecord(*about, array.nbytes, kept=stored.reason)
    finite = np.isfinite(array)
    differences = np.abs(stored.restored[finite].astype(np.float64) - array[finite])
    largest = float(differences.max(initial=0.0))
    stored_as = DType.of(stored.array).value
    return WeightRecord(*about, stored.bytes, largest, relative_rms_error(array, stored.restored), stored_as=stored_as)


def _constant_bytes(graph: Graph) -> int:
    arrays: Iterator[Array] = (a for scope in graph.walk() for a in scope.constants.values())
    return sum(map(stored_bytes, arrays))
