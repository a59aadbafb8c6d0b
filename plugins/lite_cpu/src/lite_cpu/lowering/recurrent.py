"""Lowering of LSTM, GRU and RNN: one product projects the inputs of all time steps, and one kernel runs the time steps.

Sizes: T time steps, B sequences, I inputs, H hidden units, D directions, G gates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lite_compiler.fusion import Group
from lite_compiler.recurrent import ActivationFunction, activation_functions
from lite_core import ops
from lite_core.ir import DType, Node, Value
from lite_cpu.chains import Chain, Operand
from lite_cpu.kernels.recurrent import Activation, Gru, Lstm, Recurrent, Rnn
from lite_cpu.lowering.context import Lowering
from lite_cpu.lowering.divided_recurrent import emit_divided, vectors_of_chunk
from lite_cpu.lowering.indices import check_bounds
from lite_cpu.lowering.pairs import as_pairs, is_product_of_pairs, reads_pairs
from lite_cpu.lowering.products import Epilogue, Panels, emit_product, insert_axis, with_contiguous_rows
from lite_cpu.lowering.recurrent_weights import gate_vectors, input_panels, recurrent_weights
from lite_cpu.lowering.registry import lowers
from lite_cpu.lowering.widening import widened, widened_value
from lite_cpu.tensors import Tensor

Array = np.ndarray[Any, Any]
F32 = DType.FLOAT32

#: Position of P among the inputs of an LSTM.
_PEEPHOLES = 7


def refuse_recurrent(node: Node) -> str | None:
    x = node.inputs[0]
    assert x is not None
    if x.dtype is F32 or x.dtype.is_half:
        return None
    return f"{node.op} on {x.dtype}: the CPU kernels compute in float32"


@dataclass(frozen=True, slots=True)
class Layer:
    """The tensors of a recurrent node; states have the dimensions T, D, B, H."""

    lowering: Lowering
    node: Node

    @property
    def attributes(self) -> dict[str, Any]:
        return dict(ops.attributes_of(self.node))

    def value(self, index: int) -> Value | None:
        return self.node.inputs[index] if index < len(self.node.inputs) else None

    def required(self, index: int) -> Value:
        value = self.value(index)
        assert value is not None
        return value

    def weights(self, index: int) -> Value:
        """Return an input as float32."""
        return widened_value(self.lowering, self.required(index))

    def tensor(self, index: int) -> Tensor:
        return self.lowering.tensor(self.required(index))

    @property
    def batch_first(self) -> bool:
        return bool(self.attributes["layout"] == 1)

    @property
    def x(self) -> Tensor:
        """The input, [T, B, I]."""
        x = self.tensor(0)
        return x.permute((1, 0, 2)) if self.batch_first else x

    def initial(self, index: int, shape: Sequence[int]) -> Tensor:
        """Return an initial state as [1, D, B, H]; zeros if it is left out."""
        if self.value(index) is None:
            return self.lowering.constant(np.zeros((1, 1, 1, shape[-1]), np.float32)).expand((1, *shape))
        state = with_contiguous_rows(self.lowering, self.tensor(index))
        return (state.permute((1, 0, 2)) if self.batch_first else state).expand((1, *shape))

    def outputs(self, steps: int, shape: Sequence[int]) -> Iterator[tuple[Tensor, Tensor | None]]:
        """Yield for Y and each final state the tensor that the kernel writes, and the tensor to copy it to, or None.

        Both have the dimensions [T or 1, D, B, H].
        """
        for number in range(3):
            value = self.node.outputs[number] if number < len(self.node.outputs) else None
            whole = (steps, *shape) if number == 0 else (1, *shape)
            target = None if value is None else self._in_order(self.lowering.target(value), number)
            if target is not None and (target.strides[-1] == 1 or shape[-1] == 1):
                yield target, None
            else:
                yield self.lowering.allocate(whole, F32 if target is None else target.dtype), target

    def _in_order(self, tensor: Tensor, number: int) -> Tensor:
        if number == 0:
            return tensor.permute((1, 2, 0, 3)) if self.batch_first else tensor
        return insert_axis(tensor.permute((1, 0, 2)) if self.batch_first else tensor, 0)


@lowers("LSTM", "GRU", "RNN", refuse=refuse_recurrent)
def recurrent(lowering: Lowering, group: Group) -> None:
    """Emit the projection of the inputs and the recurrence."""
    layer = Layer(lowering, group.head)
    constants = lowering.graph.constants
    pairs = reads_pairs(lowering, layer.required(0)) and is_product_of_pairs(lowering.machine, layer.node, constants)

    def choose(batch: int, activations: tuple[Activation, ...]) -> Recurrent:
        return replace(_kernel(layer, batch, activations), pairs=pairs)

    emit_layer(layer, choose, _tensors)


def emit_layer(
    layer: Layer,
    choose: Callable[[int, tuple[Activation, ...]], Recurrent],
    tensors_of: Callable[[Layer, Recurrent, tuple[int, int, int], Sequence[Tensor]], dict[str, Tensor]],
) -> None:
    """Emit all directions as one step if they have the same activations, else one step for each direction.

    Args:
        layer: the layer.
        choose: returns the kernel for a number of sequences with activation functions.
        tensors_of: returns the tensors that the kernel reads and writes, given its outputs; see :func:`_tensors`.
    """
    lowering, attributes = layer.lowering, layer.attributes
    steps, batch, _ = layer.x.shape
    directions, hidden = layer.tensor(2).shape[0], layer.tensor(2).shape[2]
    shape = (directions, batch, hidden)
    written = list(layer.outputs(steps, shape))
    if 0 not in shape:
        activations = [
            tuple([_activation(function, attributes["clip"]) for function in functions])
            for functions in activation_functions(layer.node.op, attributes, directions)
        ]
        reversed_from = 0 if attributes["direction"] == "reverse" else 1
        kernel = choose(batch, activations[0])
        tensors = tensors_of(layer, kernel, shape, [t for t, _ in written])
        narrow = [(n, t.dtype) for n, t in tensors.items() if t.dtype.is_half]
        kernel = replace(kernel, narrow=tuple(narrow))
        is_one_step = all(a == activations[0] for a in activations)
        for first in [0] if is_one_step else range(directions):
            count = directions if is_one_step else 1
            part = {n: t.slice(1, first, count) if t.shape[1] > 1 else t for n, t in tensors.items()}
            _emit(
                lowering, replace(kernel, activations=activations[first]), part,
                [steps, batch, hidden, max(0, reversed_from - first)], count,
            )  # fmt: skip
    for tensor, target in written:
        if target is not None:
            lowering.copy(tensor, target)


def rows_together(layer: Layer, batch: int) -> int:
    """Return the number of sequences that a kernel computes together."""
    most = 4 if layer.lowering.machine.vector_registers >= 32 else 2
    return 1 if layer.value(4) is not None else min(batch, most)


def _kernel(layer: Layer, batch: int, activations: tuple[Activation, ...]) -> Recurrent:
    attributes, lengths = layer.attributes, layer.value(4) is not None
    rows = rows_together(layer, batch)
    if layer.node.op == "LSTM":
        peepholes = layer.value(_PEEPHOLES) is not None
        return Lstm(rows, activations, lengths, peepholes, bool(attributes["input_forget"]))
    if layer.node.op == "GRU":
        return Gru(rows, activations, lengths, bool(attributes["linear_before_reset"]))
    return Rnn(rows, activations, lengths)


def _tensors(
    layer: Layer, kernel: Recurrent, shape: tuple[int, int, int], written: Sequence[Tensor]
) -> dict[str, Tensor]:
    """Return the tensors that the kernel reads and writes by name, each [T or 1, D or 1, B or 1, ...]."""
    lowering, pairs = layer.lowering, kernel.pairs
    x = as_pairs(lowering, layer.x) if pairs else with_contiguous_rows(lowering, widened(lowering, layer.x))
    directions, batch, hidden = shape
    if layer.value(3) is None:
        lanes = lowering.machine.lanes()
        width = -(-hidden // lanes) * lanes * kernel.gates
        input_bias = recurrent_bias = lowering.constant(np.zeros((directions, width), np.float32))
    else:
        bias = layer.weights(3)
        input_bias, recurrent_bias = (
            gate_vectors(lowering, bias, kernel.gates, hidden, first) for first in (0, kernel.gates * hidden)
        )
    width = input_bias.shape[1]
    steps, depth, columns = x.shape[0], x.shape[2], input_bias.size
    projected = lowering.allocate((steps, batch, columns), F32)
    of_input = input_panels(lowering, layer.weights(1), kernel.gates, hidden, pairs=pairs)
    panels = Panels.of(of_input, (), depth, columns)
    emit_product(
        lowering,
        x,
        panels,
        view_as(input_bias, (columns,)),
        projected,
        Epilogue(Chain(Operand(F32))),
        label="projection",
    )
    tensors = {
        "projected": view_as(projected, (steps, batch, directions, width)).permute((0, 2, 1, 3)),
        "weights": by_direction(recurrent_weights(lowering, layer.weights(2), kernel.passes, hidden, pairs=pairs)),
        "bias": by_direction(recurrent_bias),
    }
    return tensors | states_and_lengths(layer, kernel, shape, steps, written)


def states_and_lengths(
    layer: Layer, kernel: Recurrent, shape: tuple[int, int, int], steps: int, written: Sequence[Tensor]
) -> dict[str, Tensor]:
    """Return the states and outputs, and the lengths and peepholes if there are any, by name."""
    lowering, (_, batch, hidden) = layer.lowering, shape
    tensors = {
        "initial_h": layer.initial(5, shape),
        "y": written[0],
        "y_h": written[1],
    }
    if kernel.has_cell:
        tensors |= {"initial_c": layer.initial(6, shape), "y_c": written[2]}
    if kernel.lengths:
        message = lowering.text(
            lambda: f"{layer.node.describe()}: length {{}} is out of range, it must be from 0 to {steps}"
        )
        check_bounds(lowering, layer.required(4), [(0, steps + 1)], message)
        tensors["lengths"] = view_as(lowering.dense(layer.tensor(4)), (1, 1, batch, 1))
    if kernel.has_peepholes:
        tensors["peepholes"] = by_direction(gate_vectors(lowering, layer.weights(_PEEPHOLES), 3, hidden))
    return tensors


def by_direction(tensor: Tensor) -> Tensor:
    """Return [D, n] as [1, D, 1, n]."""
    return insert_axis(insert_axis(tensor, 1), 0)


def view_as(tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return a dense tensor in another shape."""
    view = tensor.reshape(shape)
    assert view is not None, "the tensor is dense"
    return view


def _emit(
    lowering: Lowering, kernel: Recurrent, tensors: Mapping[str, Tensor], params: Sequence[int], directions: int
) -> None:
    """Emit the recurrence of some directions. ``params`` are the parameters of the kernel before the strides."""
    steps, batch, hidden, _ = params
    strides = {
        name: [stride if size > 1 else 0 for size, stride in zip(tensors[name].shape[:3], tensors[name].strides[:3])]
        for name in kernel.tensors
    }
    items = directions * -(-batch // kernel.rows)
    flops = 2 * steps * batch * directions * kernel.gates * hidden * hidden
    vectors = vectors_of_chunk(lowering, kernel, items, steps, hidden)
    if vectors:
        emit_divided(lowering, kernel, tensors, params, strides, items, vectors, flops)
        return
    lowering.step(
        kernel,
        [tensors[name] for name in kernel.tensors],
        [*params, *(stride for name in kernel.tensors for stride in strides[name])],
        items,
        flops=flops,
        scratch_bytes=kernel.scratch_bytes(lowering.machine, hidden),
    )


# **** activation functions ****

# Operators by the name of the activation function, with the names of the attributes that alpha and beta set.
_OPERATORS: dict[str, tuple[str, tuple[str, ...]]] = {
    "relu": ("Relu", ()),
    "tanh": ("Tanh", ()),
    "sigmoid": ("Sigmoid", ()),
    "softsign": ("Softsign", ()),
    "softplus": ("Softplus", ()),
    "leakyrelu": ("LeakyRelu", ("alpha",)),
    "thresholdedrelu": ("ThresholdedRelu", ("alpha",)),
    "hardsigmoid": ("HardSigmoid", ("alpha", "beta")),
    "elu": ("Elu", ("alpha",)),
}


def _activation(function: ActivationFunction, clip: float | None) -> Activation:
    name, parameters = function
    if name == "affine":
        return Activation(None, scale_out=parameters[0], offset=parameters[1], clip=clip)
    if name == "scaledtanh":
        return Activation("Tanh", scale_in=parameters[1], scale_out=parameters[0], clip=clip)
    op, attributes = _OPERATORS[name]
    return Activation(op, tuple(zip(attributes, parameters)), clip=clip)
