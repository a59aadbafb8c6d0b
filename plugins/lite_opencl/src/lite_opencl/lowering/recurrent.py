"""LSTM, GRU and RNN: one product projects the inputs of all steps, one kernel runs the steps.

Sizes: T steps, B sequences, I inputs, H hidden units, D directions, G gates.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lite_compiler.fusion import Group
from lite_core.ir import DType, Value
from lite_opencl.lowering.chain_building import ChainBuilder
from lite_opencl.lowering.context import Lowering
from lite_opencl.lowering.indices import check_ranges
from lite_opencl.lowering.product_choice import widest_vector
from lite_opencl.lowering.products import Matrices, emit_product
from lite_opencl.lowering.recurrent_activations import activation_defines
from lite_opencl.lowering.registry import lowers
from lite_opencl.lowering.steps import Argument
from lite_opencl.lowering.vectors import Defines, sum_defines, vector_defines
from lite_opencl.programs.kernel_source import KernelSource
from lite_opencl.tensors import Tensor, types_of

__all__ = ["recurrent"]

_GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
#: Vectors of hidden units of a work item on a processor: with all their gates they fill its registers.
_VECTORS = {"LSTM": 2, "GRU": 3, "RNN": 4}
_MAX_ITEMS = 256
#: Position of P, the peepholes, in the inputs of an LSTM.
_PEEPHOLES = 7


@dataclass(frozen=True, slots=True)
class _Layer:
    """A recurrent layer: its node and its sizes."""

    lowering: Lowering
    group: Group
    steps: int
    batch: int
    inputs: int
    hidden: int
    directions: int

    @staticmethod
    def of(lowering: Lowering, group: Group) -> _Layer:
        first, second, inputs = group.input(0).shape
        steps, batch = (second, first) if group.attributes["layout"] == 1 else (first, second)
        directions, _, hidden = group.input(2).shape
        return _Layer(lowering, group, steps, batch, inputs, hidden, directions)

    @property
    def op(self) -> str:
        return self.group.head.op

    @property
    def gates(self) -> int:
        return _GATES[self.op]

    @property
    def batch_first(self) -> bool:
        return bool(self.group.attributes["layout"] == 1)

    @property
    def dtype(self) -> DType:
        """The element type of sums and states."""
        dtype = self.group.input(0).dtype
        return DType.FLOAT32 if dtype.is_half else dtype

    def outputs(self) -> list[Value | None]:
        given = self.group.head.outputs
        return [given[i] if i < len(given) else None for i in range(3)]


@lowers("LSTM", "GRU", "RNN")
def recurrent(lowering: Lowering, group: Group) -> None:
    """Lower LSTM, GRU and RNN. Directions with the same activations run in one step, others in separate steps."""
    layer = _Layer.of(lowering, group)
    targets = [None if v is None else lowering.target(v) for v in layer.outputs()]
    if not layer.batch * layer.hidden:
        return
    projected = _projection(layer)
    state_rows = {"LSTM": 4, "GRU": 2 if group.attributes.get("linear_before_reset") else 4, "RNN": 2}[layer.op]
    state = lowering.allocate((layer.batch, layer.directions, state_rows, layer.hidden), layer.dtype)
    functions = activation_defines(layer.op, group.attributes, layer.directions)
    together = all(f == functions[0] for f in functions)
    for first in [0] if together else range(layer.directions):
        count = layer.directions if together else 1
        _run(layer, projected, state, targets, functions[first], first, count)


def _projection(layer: _Layer) -> Tensor:
    """Multiply the inputs of all steps by their weights and add the bias: [T, B, D, G, H], or with the batch first."""
    lowering, group = layer.lowering, layer.group
    x = lowering.tensor(group.input(0))
    width = layer.gates * layer.hidden
    shape = (*x.shape[:2], layer.directions, width)
    w, array = lowering.dense(lowering.tensor(group.input(1))), lowering.known(group.input(1))
    columns = layer.directions * width
    weights = Matrices(
        w.view((layer.inputs, columns), (1, layer.inputs)),
        None if array is None else array.reshape(columns, layer.inputs).T,
        array,
    )
    chain = ChainBuilder(layer.dtype)
    bias = group.optional(3)
    if bias is not None:
        input_bias = lowering.tensor(bias).slice(1, 0, width)
        chain.apply("Add", [chain.last, chain.operand(input_bias, input_bias.dtype)], layer.dtype)
    projected = lowering.allocate(shape, layer.dtype)
    epilogue = lowering.epilogue_of(*chain.built(), shape, split=2)
    emit_product(lowering, Matrices(x), weights, projected, epilogue, label="projection")
    return projected


def _weights(layer: _Layer) -> Tensor:
    """Pack R [D, G * H, H] as [D, H, G, H]: the weights that multiply the same hidden state are neighbours."""
    lowering, value = layer.lowering, layer.group.input(2)
    split = (layer.directions, layer.gates, layer.hidden, layer.hidden)
    order = (0, 3, 1, 2)
    array = lowering.known(value)
    if array is not None:
        return lowering.constant(
            ("recurrent weights", layer.gates),
            [array],
            lambda: np.ascontiguousarray(array.reshape(split).transpose(order)),
        )
    parts = lowering.dense(lowering.tensor(value)).reshape(split)
    assert parts is not None
    return lowering.dense(parts.permute(order))


def _run(
    layer: _Layer,
    projected: Tensor,
    state: Tensor,
    targets: list[Tensor | None],
    functions: Defines,
    first: int,
    count: int,
) -> None:
    """Emit one step for ``count`` directions from ``first`` on."""
    lowering, group, hidden = layer.lowering, layer.group, layer.hidden
    attributes = group.attributes
    width, vectors, local = _tile(layer)
    # Tensors by the kernel's names, in the order of its parameters.
    tensors: dict[str, Tensor] = {"S": state, "P": projected, "R": _weights(layer)}
    arguments: list[Argument] = [state, projected, tensors["R"]]
    defines: Defines = [(layer.op, 1), ("GATES", layer.gates), ("VECTORS", vectors), *functions]
    defines += [("STATES", 2 if layer.op == "LSTM" else 1), ("STATE_ROWS", state.shape[2])]
    defines += [(name.upper(), 1) for name in ("input_forget", "linear_before_reset") if attributes.get(name)]

    def add_argument(flag: str, name: str, tensor: Tensor, strides: list[int]) -> None:
        defines.append((flag, 1))
        tensors[name] = tensor
        arguments.extend([tensor, *map(np.int32, strides)])

    bias, lengths = group.optional(3), group.optional(4)
    if bias is not None:
        recurrent_bias = lowering.dense(lowering.tensor(bias))
        begin = layer.gates * hidden
        add_argument("HAS_BIAS", "B", recurrent_bias.slice(1, begin, begin), [2 * begin])
    if lengths is not None:
        check_ranges(lowering, group.head, lengths, "length", [range(layer.steps + 1)])
        defines.append(("HAS_LENGTHS", 1))
        arguments.append(lowering.dense(lowering.tensor(lengths)))
    for flag, name, position in (("HAS_H", "H", 5), ("HAS_C", "C", 6)):
        value = group.optional(position)
        if value is not None:
            tensor = lowering.dense(lowering.tensor(value))
            add_argument(flag, name, tensor, _state_strides(layer, tensor))
    peepholes = group.optional(_PEEPHOLES)
    if peepholes is not None:
        add_argument("HAS_PEEPHOLES", "O", lowering.dense(lowering.tensor(peepholes)), [])
    written = [0]
    for flag, name, target in zip(("HAS_Y", "HAS_Y_H", "HAS_Y_C"), ("Y", "YH", "YC"), targets):
        if target is not None:
            written.append(len(arguments))
            add_argument(flag, name, target, _state_strides(layer, target))
    steps_first, batch_first = projected.strides[:2]
    projected_strides = (batch_first, steps_first) if layer.batch_first else (steps_first, batch_first)
    reversed_from = 0 if attributes["direction"] == "reverse" else 1
    numbers = [layer.steps, hidden, layer.directions, *projected_strides, first, reversed_from]
    defines += sum_defines(layer.dtype, width)
    loaded = [(name, tensors[name].dtype) for name in ("S", "P", "R", "B", "O") if name in tensors]
    defines += vector_defines(layer.dtype, width, loaded)
    kernel = KernelSource("recurrent", "recurrent", (local, 1, 1), tuple(defines), types_of(**tensors))
    lowering.step(
        kernel,
        [*arguments, *map(np.int32, numbers)],
        (local, layer.batch, count),
        results=written,
        flops=2 * layer.steps * layer.batch * count * layer.gates * hidden * hidden,
        label=layer.op.lower(),
    )


def _tile(layer: _Layer) -> tuple[int, int, int]:
    """Return the width of a vector of units, the vectors of a work item, and the work items of a group."""
    if layer.lowering.device.is_gpu:
        return 1, 1, min(layer.hidden, _MAX_ITEMS)
    # One work item, which needs no barriers: with several, the compiler would split the loop over the steps at them.
    width = min(widest_vector(layer.dtype), 1 << (layer.hidden.bit_length() - 1))
    return width, min(_VECTORS[layer.op], layer.hidden // width), 1


def _state_strides(layer: _Layer, tensor: Tensor) -> list[int]:
    """Return the strides of [*T, D, B] in a dense tensor whose order is the node's layout."""
    if not layer.batch_first:
        return list(tensor.strides[:-1])
    batch, *steps_and_directions = tensor.strides[:-1]
    return [*steps_and_directions, batch]
