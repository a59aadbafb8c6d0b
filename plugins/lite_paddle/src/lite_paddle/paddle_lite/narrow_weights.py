"""Weights that Paddle-Lite's converter stored with 8 or 16 bits to make the file smaller (its option quant_model)."""

from __future__ import annotations

import math

import numpy as np

from lite_core.errors import ModelFormatError

from .program import Array, Operator, Program

__all__ = ["BITS", "CHANNELS_FIRST", "METHOD", "SCALE", "widened"]

#: Attributes of an operator with such weights; the last is the ending of the attribute with a weight's scales.
METHOD, BITS, SCALE = "quantization_type", "quantize_weight_bits", "_quant_scale"
METHODS = ("post_weight_channel_wise_abs_max", "post_weight_abs_max")
#: Operators whose weights have the output channels on axis 0; all others have them on axis 1.
CHANNELS_FIRST = frozenset({"conv2d", "depthwise_conv2d"})


def widened(program: Program) -> dict[str, Array]:
    """Return the parameters of a program, with those of narrow weights as float32.

    An operator with such weights has the attribute ``quantization_type``, and for each of its weights an attribute
    ``WEIGHT_quant_scale`` with one scale, or one for each output channel. Paddle-Lite multiplies by them when it loads
    the model, too.

    Raises:
        ModelFormatError: the scales do not fit a weight, or the method is unknown.
    """
    result = dict(program.parameters)
    for block in program.blocks:
        for operator in block.operators:
            if METHOD in operator.attributes and BITS in operator.attributes:
                for names in operator.inputs.values():
                    for name in names:
                        scales = operator.get(name + SCALE)
                        if scales is not None and name in program.parameters:
                            result[name] = _widen(operator, name, program.parameters[name], scales)
    return result


def _widen(operator: Operator, name: str, weights: Array, scales: tuple[float, ...]) -> Array:
    if weights.dtype not in (np.int8, np.int16):
        return weights
    method, bits = operator.get(METHOD), operator.get(BITS)
    if method not in METHODS or bits != 8 * weights.itemsize:
        raise ModelFormatError(
            f"{operator.type}: the weight {name!r} is {weights.dtype.name} by {method!r} with {bits} bits; expected "
            f"{' or '.join(METHODS)}, and 8 bits in int8 or 16 in int16"
        )
    factors = np.array(scales, np.float32)
    if factors.size != 1:
        axis = 0 if operator.type in CHANNELS_FIRST or weights.ndim < 2 else 1
        if weights.ndim == 0 or weights.shape[axis] != factors.size or not math.prod(weights.shape):
            raise ModelFormatError(
                f"{operator.type}: the weight {name!r} has the shape {list(weights.shape)}, but {factors.size} scales; "
                f"expected one for each item of axis {axis}"
            )
        factors = factors.reshape([-1 if a == axis else 1 for a in range(weights.ndim)])
    wide: Array = weights.astype(np.float32) * factors
    return wide
