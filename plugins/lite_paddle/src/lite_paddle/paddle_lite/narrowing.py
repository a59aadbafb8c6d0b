"""Storage of weights with 8 or 16 bits (``quant_model``), which Paddle-Lite widens when it loads the model.

Only weights whose widening works there are stored so: those of other operators would be left without values. Depthwise
filters stay float32: they are small, and with 8 bits they add more error than all others. So do biases, because a scale
for each of their elements would make them larger.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from .narrow_weights import BITS, CHANNELS_FIRST, METHOD, SCALE
from .program import Array, Attribute, AttributeKind, Operator, Program

__all__ = ["narrow_weights"]

_WEIGHTS = {"conv2d": "Filter", "fc": "W", "mul": "Y", "lookup_table": "W"}
_STORED = {8: np.int8, 16: np.int16}


def narrow_weights(program: Program, bits: int) -> Program:
    """Return a program whose weights have ``bits`` bits, 8 or 16, with a scale for each output channel."""
    readers = Counter(
        name
        for block in program.blocks
        for operator in block.operators
        for names in operator.inputs.values()
        for name in names
    )
    parameters = dict(program.parameters)
    blocks = []
    for block in program.blocks:
        operators = tuple(_narrowed(operator, parameters, readers, bits) for operator in block.operators)
        variables = tuple(
            replace(variable, element_type=parameters[variable.name].dtype.name)
            if variable.name in parameters
            else variable
            for variable in block.variables
        )
        blocks.append(replace(block, operators=operators, variables=variables))
    return replace(program, blocks=tuple(blocks), parameters=parameters)


def _narrowed(operator: Operator, parameters: dict[str, Array], readers: Counter[str], bits: int) -> Operator:
    (name,) = operator.inputs.get(_WEIGHTS.get(operator.type, ""), ()) or ("",)
    weights = parameters.get(name)
    if weights is None or weights.dtype != np.float32 or weights.ndim < 2 or readers[name] != 1:
        return operator
    axis = 0 if operator.type in CHANNELS_FIRST else 1
    others = tuple(a for a in range(weights.ndim) if a != axis)
    largest = 2 ** (bits - 1) - 1
    scales = (np.abs(weights).max(axis=others, keepdims=True) / np.float32(largest)).astype(np.float32)
    scales[scales == 0] = 1
    parameters[name] = np.clip(np.rint(weights / scales), -largest, largest).astype(_STORED[bits])
    attributes = {
        **operator.attributes,
        METHOD: Attribute(AttributeKind.STRING, "post_weight_channel_wise_abs_max"),
        BITS: Attribute(AttributeKind.INT, bits),
        name + SCALE: Attribute(AttributeKind.FLOATS, tuple(float(scale) for scale in scales.reshape(-1))),
    }
    return replace(operator, attributes=attributes)
