"""The table of element-wise operators."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import Any

from lite_compiler.chains import default_attributes
from lite_core.ir import DType
from lite_cpu import vector_math
from lite_cpu.emitter import Emitter, Val
from lite_cpu.scalar_ops import activation, arithmetic, quantization
from lite_cpu.scalar_ops.conversion import convert_to_output
from lite_cpu.scalar_ops.definition import Call, Emit, Operator, compute_type

__all__ = ["OPERATORS", "cost", "emit_operator", "emit_quantized_and_dequantized", "supports"]


def _unary(function: Callable[[Val], Val]) -> Emit:
    return lambda call: function(call[0])


def _binary(function: Callable[[Val, Val], Val]) -> Emit:
    return lambda call: function(call[0], call[1])


def _is_infinite(call: Call) -> Val:
    """Return True for an infinity of a sign that the attributes select."""
    x = call[0]
    positive = x.eq(inf) & bool(call.attributes["detect_positive"])
    return positive | (x.eq(-inf) & bool(call.attributes["detect_negative"]))


def _refuse_training(attributes: Mapping[str, Any], inputs: Sequence[DType | None]) -> str | None:
    known = len(inputs) < 3 or inputs[2] is None
    return None if known else "whether it is in training mode is known only when the model runs"


#: All element-wise operators by qualified name.
OPERATORS: dict[str, Operator] = {
    # **** arithmetic ****
    "Abs": Operator(_unary(arithmetic.absolute), wide=True),
    "Add": Operator(_binary(operator.add), wide=True),
    "Clip": Operator(arithmetic.clip, 2, wide=True),
    "Div": Operator(_binary(arithmetic.divide), 4, wide=True),
    "Max": Operator(arithmetic.maximum, wide=True),
    "Mean": Operator(arithmetic.mean, 2, wide=True),
    "Min": Operator(arithmetic.minimum, wide=True),
    "Mod": Operator(arithmetic.modulo, 12),
    "Mul": Operator(_binary(operator.mul), wide=True),
    "Neg": Operator(_unary(operator.neg), wide=True),
    "Pow": Operator(_binary(arithmetic.power), 60),
    "Reciprocal": Operator(_unary(lambda x: 1.0 / x), 4, wide=True),
    "Sign": Operator(_unary(arithmetic.sign), 2, wide=True),
    "Sqrt": Operator(_unary(vector_math.sqrt), 4, wide=True),
    "Sub": Operator(_binary(operator.sub), wide=True),
    "Sum": Operator(arithmetic.total, wide=True),
    # **** rounding ****
    "Ceil": Operator(_unary(vector_math.ceil), wide=True),
    "Floor": Operator(_unary(vector_math.floor), wide=True),
    "Round": Operator(_unary(vector_math.round_half_even), wide=True),
    # **** bits ****
    "BitShift": Operator(arithmetic.bit_shift),
    "BitwiseAnd": Operator(_binary(operator.and_)),
    "BitwiseNot": Operator(_unary(operator.invert)),
    "BitwiseOr": Operator(_binary(operator.or_)),
    "BitwiseXor": Operator(_binary(operator.xor)),
    # **** comparison, logic, choice ****
    "And": Operator(_binary(operator.and_)),
    "Equal": Operator(_binary(lambda a, b: a.eq(b)), wide=True),
    "Greater": Operator(_binary(operator.gt), wide=True),
    "GreaterOrEqual": Operator(_binary(operator.ge), wide=True),
    "IsInf": Operator(_is_infinite, 2, wide=True),
    "IsNaN": Operator(_unary(lambda x: x.is_nan()), wide=True),
    "Less": Operator(_binary(operator.lt), wide=True),
    "LessOrEqual": Operator(_binary(operator.le), wide=True),
    "Not": Operator(_unary(operator.invert)),
    "Or": Operator(_binary(operator.or_)),
    "Where": Operator(lambda call: call[0].select(call[1], call[2]), wide=True),
    "Xor": Operator(_binary(operator.xor)),
    # **** conversion and identity ****
    "Cast": Operator(convert_to_output, wide=True),
    "CastLike": Operator(convert_to_output, wide=True),
    "Dropout": Operator(_unary(lambda x: x), 0, wide=True, refuse=_refuse_training),
    "Identity": Operator(_unary(lambda x: x), 0, wide=True),
    # **** quantization; scales and zero points are operands that broadcast ****
    "DequantizeLinear": Operator(quantization.dequantize, 3),
    "QuantizeLinear": Operator(quantization.quantize, 8),
    # **** exponential and trigonometric ****
    "Acos": Operator(_unary(vector_math.acos), 20),
    "Acosh": Operator(_unary(vector_math.acosh), 50),
    "Asin": Operator(_unary(vector_math.asin), 20),
    "Asinh": Operator(_unary(vector_math.asinh), 50),
    "Atan": Operator(_unary(vector_math.atan), 24),
    "Atanh": Operator(_unary(vector_math.atanh), 50),
    "Cos": Operator(_unary(vector_math.cos), 32),
    "Cosh": Operator(_unary(vector_math.cosh), 40),
    "Erf": Operator(_unary(activation.erf), 26),
    "Exp": Operator(_unary(vector_math.exp), 20),
    "Log": Operator(_unary(vector_math.log), 30),
    "Sin": Operator(_unary(vector_math.sin), 32),
    "Sinh": Operator(_unary(vector_math.sinh), 40),
    "Tan": Operator(_unary(vector_math.tan), 36),
    "Tanh": Operator(_unary(vector_math.tanh), 22),
    # **** activations ****
    "Celu": Operator(activation.celu, 24, refuse=activation.refuse_celu),
    "Elu": Operator(activation.elu, 24),
    "Gelu": Operator(activation.gelu, 30),
    "HardSigmoid": Operator(activation.hard_sigmoid, 4, wide=True),
    "HardSwish": Operator(_unary(activation.hard_swish), 5, wide=True),
    "LeakyRelu": Operator(activation.leaky_relu, 2, wide=True),
    "Mish": Operator(_unary(activation.mish), 30),
    "PRelu": Operator(_binary(activation.prelu), 2, wide=True),
    "Relu": Operator(_unary(activation.relu), wide=True),
    "Selu": Operator(activation.selu, 25),
    "Shrink": Operator(activation.shrink, 4, wide=True),
    "Sigmoid": Operator(_unary(vector_math.sigmoid), 24),
    "Softplus": Operator(_unary(vector_math.softplus), 38),
    "Softsign": Operator(_unary(activation.softsign), 6, wide=True),
    "ThresholdedRelu": Operator(activation.thresholded_relu, 1, wide=True),
    "lite.Swish": Operator(lambda call: vector_math.silu(call[0], call.attributes["beta"]), 25),
}


def emit_operator(
    k: Emitter, op: str, arguments: Sequence[Val | None], attributes: Mapping[str, Any], output: DType
) -> Val:
    """Emit one operator on scalars or vectors.

    Args:
        k: the emitter.
        op: the qualified name of the operator, a key of :data:`OPERATORS`.
        arguments: the inputs, all with the same number of lanes, 16-bit floats as float32; None for an omitted one.
        attributes: the attributes of the node; the others have their default values.
        output: the element type of the stored output.

    Returns:
        The result; float32 where the output is a 16-bit float.
    """
    result = OPERATORS[op].emit(Call(k, arguments, {**default_attributes(op), **attributes}, output))
    if result.dtype is not compute_type(output):
        raise TypeError(f"{op} gives {result.dtype}, but its output is declared {output}")
    return result


def emit_quantized_and_dequantized(
    k: Emitter, arguments: Sequence[Val | None], output: DType, scale: Val | None
) -> Val:
    """Emit DequantizeLinear, with its ``scale``, of the result of QuantizeLinear with the same zero point.

    Args:
        k: the emitter.
        arguments: the inputs of QuantizeLinear.
        output: the element type of its result.
        scale: the scale of DequantizeLinear.
    """
    return quantization.quantize_and_dequantize(Call(k, arguments, {}, output), Call(k, [scale], {}, output)[0])


def supports(op: str, inputs: Sequence[DType | None], output: DType, attributes: Mapping[str, Any]) -> str | None:
    """Return why an operator cannot be emitted, as a sentence; None if it can.

    The types must fit the operator's signature in the opset.

    Args:
        op: the qualified name of the operator.
        inputs: element types of the stored inputs, None for an omitted input.
        output: element type of the output.
        attributes: the attributes of the node.
    """
    entry = OPERATORS.get(op)
    if entry is None:
        return f"{op} is not an element-wise operator of the CPU kernels"
    if not entry.wide and DType.FLOAT64 in (output, *inputs[:1]):
        return f"{op} is computed in float32, which is not accurate enough for float64"
    return entry.refuse({**default_attributes(op), **attributes}, inputs)


def cost(op: str) -> int:
    """Return the approximate number of floating-point operations per element."""
    return OPERATORS[op].cost
