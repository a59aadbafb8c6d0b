"""An LSTM of the domain ``lite`` whose recurrent weights are small integers, as ONNX Runtime's tools quantize it.

Sizes: T steps, B sequences, H hidden units, D directions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lite_core.ir import DType, Shape, fresh_dim
from lite_core.ops.inference import Inference, fail
from lite_core.ops.quantization import dynamic_quantize_linear
from lite_core.ops.recurrent import (
    LSTM_ACTIVATIONS,
    activations_of,
    attributes_of_layer,
    expect,
    lstm_steps,
    run_sequences,
)
from lite_core.ops.registry import op

Array = np.ndarray[Any, Any]


def _infer(inference: Inference) -> list[Shape]:
    attributes = inference.attributes
    directions = 2 if attributes["direction"] == "bidirectional" else 1
    activations_of(dict(attributes), LSTM_ACTIVATIONS, directions)
    if attributes["layout"] != 0:
        raise fail(f"layout must be 0 (steps first), is {attributes['layout']}")
    x, r, scale = (inference.shape(i) for i in (0, 2, 1))
    if x is not None and len(x) != 3:
        raise fail(f"X must be [steps, batch, directions * 4 * hidden], has {len(x)} dimensions")
    if r is None or len(r) != 3:
        if r is not None:
            raise fail(f"R must be [directions, 4 * hidden, hidden], has {len(r)} dimensions")
        r = (directions, fresh_dim("gates"), fresh_dim("hidden"))
    steps, batch = x[:2] if x is not None else (fresh_dim("steps"), fresh_dim("batch"))
    hidden = r[2]
    if isinstance(hidden, int):
        expect(inference, 0, "X", (steps, batch, directions * 4 * hidden))
        expect(inference, 2, "R", (directions, 4 * hidden, hidden))
        expect(inference, 3, "B", (directions, 4 * hidden))
        expect(inference, 7, "P", (directions, 3 * hidden))
        wanted: Shape = (directions,) if scale is not None and len(scale) == 1 else (directions, 4 * hidden)
        expect(inference, 1, "R_scale", wanted)
        expect(inference, 8, "R_zero_point", wanted)
    expect(inference, 4, "sequence_lens", (batch,))
    state = (directions, batch, hidden)
    for number, name in enumerate(("initial_h", "initial_c")):
        expect(inference, 5 + number, name, state)
    return [(steps, directions, batch, hidden), state, state]


@op(
    "QuantizedLSTM",
    "X: float32, R_scale: float32, R: Q, B: float32?, sequence_lens: int32?, initial_h: float32?, initial_c: float32?, "
    "P: float32?, R_zero_point: Q? -> Y: float32?, Y_h: float32?, Y_c: float32?",
    domain="lite",
    types={"Q": (DType.INT8, DType.UINT8)},
    attributes=attributes_of_layer(input_forget=0),
    infer=_infer,
)
def quantized_lstm(
    x: Array,
    scale: Array,
    r: Array,
    b: Array | None,
    sequence_lens: Array | None,
    initial_h: Array | None,
    initial_c: Array | None,
    p: Array | None,
    zero_point: Array | None,
    *,
    direction: str,
    layout: int,
    input_forget: int,
    **attributes: Any,
) -> tuple[Array, ...]:
    """LSTM on projected inputs, with 8-bit recurrent weights and a state that is rounded to 8 bits in every step.

    ``X`` [T, B, D * 4H] is the product of the inputs and their weights, ``B`` [D, 4H] the sum of both biases. A weight
    is ``(R - R_zero_point) R_scale``, with R [D, 4H, H] and a scale for each direction, [D], or column, [D, 4H]. Before
    the product of a step, the state of each sequence is quantized like DynamicQuantizeLinear does. The rest is LSTM.
    """
    directions, rows, hidden = r.shape
    zeros = np.zeros_like(scale, dtype=r.dtype) if zero_point is None else zero_point
    weights = r.astype(np.int32) - zeros.reshape(directions, -1, 1).astype(np.int32)
    scales = np.broadcast_to(scale.reshape(directions, -1), (directions, rows))

    def product(d: int, h: Array) -> Array:
        sums = np.empty((len(h), rows), x.dtype)
        for own, row in zip(sums, h):
            codes, unit, zero = dynamic_quantize_linear(row)
            own[:] = (weights[d] @ (codes.astype(np.int32) - int(zero))).astype(x.dtype) * (unit * scales[d])
        return sums

    bias = np.zeros((directions, rows), x.dtype) if b is None else b
    steps = lstm_steps(product, p, input_forget, directions, attributes)
    return run_sequences(
        x, None, bias, sequence_lens, (initial_h, initial_c), steps, hidden, direction=direction, layout=layout
    )
