"""The table of element-wise operators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

from lite_core.ir import DType
from lite_opencl.programs.element_types import c_type
from lite_opencl.scalar_ops.definition import Call, Emit, Operator

__all__ = ["OPERATORS"]


def _format(text: str) -> Emit:
    """Emit a template where ``{a}``, ``{b}`` and ``{c}`` are the inputs and ``{T}`` the first one's compute type."""

    def emit(call: Call) -> str:
        names = dict(zip("abc", call.given))
        return text.format(T=call.compute, **names)

    return emit


def _by_kind(floating: str, integer: str) -> Emit:
    """Emit one template for floating-point types and another one for integers."""
    of_floats, of_integers = _format(floating), _format(integer)
    return lambda call: (of_floats if call.dtype().is_floating else of_integers)(call)


def _folded(text: str) -> Emit:
    """Emit a template of ``{a}`` and ``{b}`` folded over any number of inputs, from left to right."""
    return lambda call: reduce(lambda a, b: text.format(a=a, b=b, T=call.compute), call.given)


def _mean(call: Call) -> str:
    return f"({' + '.join(call.given)}) / {call.literal(len(call.given))}"


def _clip(call: Call) -> str:
    lowest, highest, result = call.optional(1), call.optional(2), call[0]
    if lowest is not None:
        result = f"larger_{call.compute}({result}, {lowest})"
    return result if highest is None else f"smaller_{call.compute}({result}, {highest})"


def _modulo(call: Call) -> str:
    if call.attributes["fmod"]:
        return f"fmod{'' if call.dtype().is_floating else '_' + call.compute}({call[0]}, {call[1]})"
    return f"modulo_{call.compute}({call[0]}, {call[1]})"


def _power(call: Call) -> str:
    if call.dtype().is_floating:
        return f"pow({call[0]}, ({call.compute}){call[1]})"
    return f"power_{call.compute}({call[0]}, (long){call[1]})"


def _refuse_power(attributes: Mapping[str, Any], inputs: Sequence[DType | None]) -> str | None:
    base, exponent = inputs
    fractional = base is not None and base.is_integer and exponent is not None and exponent.is_floating
    return "a fractional power of an integer needs float64, which few devices have" if fractional else None


def _bit_shift(call: Call) -> str:
    x, y = call[0], call[1]
    operator = "<<" if call.attributes["direction"] == "LEFT" else ">>"
    # NOTE: OpenCL takes the shift count modulo the number of bits.
    return f"{y} < {8 * call.dtype().itemsize} ? ({call.compute})({x} {operator} {y}) : ({call.compute})0"


def _is_infinite(call: Call) -> str:
    x = call[0]
    signs = [("positive", f"{x} == INFINITY"), ("negative", f"{x} == -INFINITY")]
    return " || ".join(text for sign, text in signs if call.attributes[f"detect_{sign}"]) or "0"


def _convert(call: Call) -> str:
    source, target, x = call.dtype(), call.output, call[0]
    if target is DType.BOOL:
        return f"{x} != 0"
    if source.is_floating and target.is_integer:
        # NOTE: devices differ in direct conversions of out-of-range values to smaller types.
        if target is DType.UINT64:
            return f"{x} >= {2**63}.0f ? (ulong){x} : (ulong)(long){x}"
        return f"({c_type(target).compute})(long){x}"
    if target.is_half and source is not target:
        return f"rounded_to_{'half' if target is DType.FLOAT16 else 'bfloat16'}((float){x})"
    return f"({c_type(target).compute}){x}"


def _shrink(call: Call) -> str:
    x, bias, threshold = call[0], call.number("bias"), call.number("lambd")
    return f"{x} < -{threshold} ? {x} + {bias} : {x} <= {threshold} ? ({call.compute})0 : {x} - {bias}"


def _elu(call: Call) -> str:
    return f"{call[0]} > 0 ? {call[0]} : {call.number('alpha')} * expm1({call[0]})"


def _selu(call: Call) -> str:
    return f"{call.number('gamma')} * ({_elu(call)})"


def _celu(call: Call) -> str:
    alpha = call.number("alpha")
    return f"{call[0]} > 0 ? {call[0]} : {alpha} * expm1({call[0]} / {alpha})"


def _hard_sigmoid(call: Call) -> str:
    return f"limited_{call.compute}({call.number('alpha')} * {call[0]} + {call.number('beta')})"


def _hard_swish(call: Call) -> str:
    return f"{call[0]} * limited_{call.compute}({call[0]} / 6 + {call.literal(0.5)})"


def _leaky_relu(call: Call) -> str:
    return f"{call[0]} >= 0 ? {call[0]} : {call[0]} * {call.number('alpha')}"


def _thresholded_relu(call: Call) -> str:
    return f"{call[0]} <= {call.number('alpha')} ? ({call.compute})0 : {call[0]}"


def _gelu(call: Call) -> str:
    x = call[0]
    if call.attributes["approximate"] == "tanh":
        # (1 + tanh(t)) / 2 is the sigmoid of 2t. NOTE: some drivers' tanh never reaches -1, an error that x magnifies.
        inner = f"{call.literal(1.5957691216057308)} * ({x} + {call.literal(0.044715)} * {x} * {x} * {x})"
        return f"{x} * sigmoid_{call.compute}({inner})"
    return f"{call.literal(0.5)} * {x} * erfc(-{x} * {call.literal(0.7071067811865476)})"


def _swish(call: Call) -> str:
    return f"{call[0]} * sigmoid_{call.compute}({call.number('beta')} * {call[0]})"


def _refuse_training(attributes: Mapping[str, Any], inputs: Sequence[DType | None]) -> str | None:
    is_inference = len(inputs) < 3 or inputs[2] is None
    return None if is_inference else "its training mode is known only when the model runs"


def _floats_only(attributes: Mapping[str, Any], inputs: Sequence[DType | None]) -> str | None:
    first = inputs[0]
    return None if first is None or first.is_floating else f"it is implemented for floating types, not {first}"


#: The operators by qualified name.
OPERATORS: dict[str, Operator] = {
    # **** arithmetic ****
    "Abs": Operator(_by_kind("fabs({a})", "absolute_{T}({a})")),
    "Add": Operator(_by_kind("{a} + {b}", "add_{T}({a}, {b})")),
    "Clip": Operator(_clip, 2),
    "Div": Operator(_by_kind("{a} / {b}", "divide_{T}({a}, {b})"), 4),
    "Max": Operator(_folded("larger_{T}({a}, {b})")),
    "Mean": Operator(_mean, 2),
    "Min": Operator(_folded("smaller_{T}({a}, {b})")),
    "Mod": Operator(_modulo, 12),
    "Mul": Operator(_by_kind("{a} * {b}", "multiply_{T}({a}, {b})")),
    "Neg": Operator(_by_kind("-{a}", "subtract_{T}(0, {a})")),
    "Pow": Operator(_power, 60, _refuse_power),
    "Reciprocal": Operator(_format("1 / {a}"), 4),
    "Sign": Operator(_format("sign_{T}({a})"), 2),
    "Sqrt": Operator(_format("sqrt({a})"), 4),
    "Sub": Operator(_by_kind("{a} - {b}", "subtract_{T}({a}, {b})")),
    "Sum": Operator(_folded("({a} + {b})")),
    # **** rounding ****
    "Ceil": Operator(_format("ceil({a})")),
    "Floor": Operator(_format("floor({a})")),
    "Round": Operator(_format("rint({a})")),
    # **** bits ****
    "BitShift": Operator(_bit_shift),
    "BitwiseAnd": Operator(_format("{a} & {b}")),
    "BitwiseNot": Operator(_format("~{a}")),
    "BitwiseOr": Operator(_format("{a} | {b}")),
    "BitwiseXor": Operator(_format("{a} ^ {b}")),
    # **** comparison, logic, choice ****
    "And": Operator(_format("{a} && {b}")),
    "Equal": Operator(_format("{a} == {b}")),
    "Greater": Operator(_format("{a} > {b}")),
    "GreaterOrEqual": Operator(_format("{a} >= {b}")),
    "IsInf": Operator(_is_infinite, 2),
    "IsNaN": Operator(_format("{a} != {a}")),
    "Less": Operator(_format("{a} < {b}")),
    "LessOrEqual": Operator(_format("{a} <= {b}")),
    "Not": Operator(_format("!{a}")),
    "Or": Operator(_format("{a} || {b}")),
    "Where": Operator(_format("{a} ? {b} : {c}")),
    "Xor": Operator(_format("!{a} != !{b}")),
    # **** conversion and identity ****
    "Cast": Operator(_convert),
    "CastLike": Operator(_convert),
    "Dropout": Operator(_format("{a}"), 0, _refuse_training),
    "Identity": Operator(_format("{a}"), 0),
    # **** exponential and trigonometric ****
    "Acos": Operator(_format("acos({a})"), 20),
    "Acosh": Operator(_format("acosh({a})"), 50),
    "Asin": Operator(_format("asin({a})"), 20),
    "Asinh": Operator(_format("asinh({a})"), 50),
    "Atan": Operator(_format("atan({a})"), 24),
    "Atanh": Operator(_format("atanh({a})"), 50),
    "Cos": Operator(_format("cos({a})"), 32),
    "Cosh": Operator(_format("cosh({a})"), 40),
    "Erf": Operator(_format("erf({a})"), 26, _floats_only),
    "Exp": Operator(_format("exp({a})"), 20),
    "Log": Operator(_format("log({a})"), 30),
    "Sin": Operator(_format("sin({a})"), 32),
    "Sinh": Operator(_format("sinh({a})"), 40),
    "Tan": Operator(_format("tan({a})"), 36),
    "Tanh": Operator(_format("tanh({a})"), 22),
    # **** activations ****
    "Celu": Operator(_celu, 24),
    "Elu": Operator(_elu, 24),
    "Gelu": Operator(_gelu, 30),
    "HardSigmoid": Operator(_hard_sigmoid, 4),
    "HardSwish": Operator(_hard_swish, 5),
    "LeakyRelu": Operator(_leaky_relu, 2),
    "Mish": Operator(_format("{a} * tanh(softplus_{T}({a}))"), 60),
    "PRelu": Operator(_by_kind("{a} >= 0 ? {a} : {a} * {b}", "{a} >= 0 ? {a} : multiply_{T}({a}, {b})"), 2),
    "Relu": Operator(_format("larger_{T}({a}, ({T})0)")),
    "Selu": Operator(_selu, 25),
    "Shrink": Operator(_shrink, 4, _floats_only),
    "Sigmoid": Operator(_format("sigmoid_{T}({a})"), 24),
    "Softplus": Operator(_format("softplus_{T}({a})"), 38),
    "Softsign": Operator(_format("{a} / (1 + fabs({a}))"), 6),
    "ThresholdedRelu": Operator(_thresholded_relu, 1),
    "lite.Swish": Operator(_swish, 25),
}
