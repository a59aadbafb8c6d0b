"""Lowering of QuantizedLSTM: one kernel runs all time steps on projected inputs.

Sizes: T time steps, B sequences, H hidden units, D directions.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from lite_compiler.fusion import Group
from lite_cpu.dot_panels import pack_dots
from lite_cpu.kernels.integer_dots import DotForm
from lite_cpu.kernels.quantized_recurrent import QuantizedLstm, dot_form
from lite_cpu.kernels.recurrent import Activation, Recurrent
from lite_cpu.lowering.context import Lowering
from lite_cpu.lowering.products import with_contiguous_rows
from lite_cpu.lowering.recurrent import Layer, by_direction, emit_layer, rows_together, states_and_lengths
from lite_cpu.lowering.recurrent_weights import gate_vectors, in_blocks
from lite_cpu.lowering.registry import lowers
from lite_cpu.tensors import Tensor

Array = np.ndarray[Any, Any]

_GATES = 4
#: Positions among the inputs.
_SCALE, _WEIGHTS, _BIAS, _LENGTHS, _PEEPHOLES, _ZERO = 1, 2, 3, 4, 7, 8


@lowers("lite.QuantizedLSTM", known_inputs=(_SCALE, _WEIGHTS, _ZERO))
def quantized_lstm(lowering: Lowering, group: Group) -> None:
    """Emit the recurrence; weights, scales and zero points are known."""
    layer = Layer(lowering, group.head)
    form: DotForm = lowering.cached(layer.node, "form of the recurrence", lambda: _form(layer))
    hidden = layer.required(_WEIGHTS).shape[2]

    def choose(batch: int, activations: tuple[Activation, ...]) -> Recurrent:
        return QuantizedLstm(
            rows_together(layer, batch),
            activations,
            layer.value(_LENGTHS) is not None,
            layer.value(_PEEPHOLES) is not None,
            bool(layer.attributes["input_forget"]),
            form,
            hidden % lowering.machine.lanes() == 0,
        )

    emit_layer(layer, choose, partial(_tensors, form))


def _form(layer: Layer) -> DotForm:
    weights = _differences(layer)
    return dot_form(layer.lowering.machine, fits_bytes=weights.min() >= -128 and weights.max() <= 127)


def _differences(layer: Layer) -> Array:
    """Return the weights [D, 4H, H] with their zero points subtracted, as int16."""
    weights, zero = (layer.lowering.known(layer.value(i)) for i in (_WEIGHTS, _ZERO))
    assert weights is not None
    wide = weights.astype(np.int16)
    return wide if zero is None else wide - zero.reshape(len(wide), -1, 1).astype(np.int16)


def _tensors(
    form: DotForm, layer: Layer, kernel: Recurrent, shape: tuple[int, int, int], written: Sequence[Tensor]
) -> dict[str, Tensor]:
    """Return the tensors that the kernel reads and writes by name, each [T or 1, D or 1, B or 1, ...]."""
    lowering, (directions, batch, hidden) = layer.lowering, shape
    lanes, columns = lowering.machine.lanes(), _GATES * hidden
    x = with_contiguous_rows(lowering, layer.x)
    steps = x.shape[0]
    split = x.view((steps, batch, directions, columns), (*x.strides[:2], columns * x.strides[2], x.strides[2]))
    scale, weights, zero = (lowering.known(layer.value(i)) for i in (_SCALE, _WEIGHTS, _ZERO))
    assert scale is not None
    assert weights is not None
    integers = [weights] if zero is None else [weights, zero]

    def panels() -> Array:
        blocked = in_blocks(_differences(layer), _GATES, lanes).transpose(0, 2, 4, 1, 3)
        matrices = blocked.reshape(-1, 1, hidden, _GATES * lanes)
        none = np.zeros((), np.int16)
        return pack_dots(matrices, none, form.right, form.group, lanes, _GATES).reshape(directions, -1)

    def vectors(array: Array) -> Array:
        wide = np.broadcast_to(array.reshape(directions, -1), (directions, columns))
        blocked: Array = in_blocks(wide[..., None], _GATES, lanes).transpose(0, 2, 1, 3, 4)
        return blocked.reshape(directions, -1)

    if layer.value(_BIAS) is None:
        bias = lowering.constant(np.zeros((directions, -(-hidden // lanes) * lanes * _GATES), np.float32))
    else:
        bias = gate_vectors(lowering, layer.required(_BIAS), _GATES, hidden)
    panel_key = ("integers of a recurrence", lanes, form)
    sums_key, scales_key = (("vectors of a recurrence", what, directions, hidden, lanes) for what in ("sums", "scales"))
    tensors = {
        "projected": split.permute((0, 2, 1, 3)),
        "weights": by_direction(lowering.packed(panel_key, integers, panels)),
        "bias": by_direction(bias),
        "scales": by_direction(lowering.packed(scales_key, [scale], lambda: vectors(scale))),
        "sums": by_direction(
            lowering.packed(sums_key, integers, lambda: vectors(_differences(layer).sum(2, dtype=np.int32)))
        ),
    }
    return tensors | states_and_lengths(layer, kernel, shape, steps, written)
