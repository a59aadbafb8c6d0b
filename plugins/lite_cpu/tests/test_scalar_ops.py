"""Element-wise operators, in all types and on each level of this processor, compared with the references.

The functions of :mod:`lite_cpu.vector_math` are tested as operators, and over their whole range.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from levels import machine_params
from operator_case import Case, check_cases, run_kernel

from lite_core import ops
from lite_core.ir import DType
from lite_core.ops.dtypes import ALL
from lite_core.ops.error_function import error_function
from lite_cpu import vector_math
from lite_cpu.emitter import Emitter, Val
from lite_cpu.machine import X86_64_V3, Machine
from lite_cpu.machine_code.objects import compile_ir, load
from lite_cpu.scalar_ops import OPERATORS, cost, emit_operator, supports

Array = np.ndarray[Any, Any]


each_machine = pytest.mark.parametrize("machine", machine_params())


# **** the cases ****

FLOATS = (DType.FLOAT32, DType.FLOAT16, DType.BFLOAT16, DType.FLOAT64)

# Tolerances of functions, in epsilons; other operators are exact.
_FUNCTIONS = {
    **dict.fromkeys(("Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Cos", "Sin", "Log", "Sinh", "Cosh", "Exp"), 2),
    **dict.fromkeys(("Sigmoid", "Tanh", "Softplus", "Elu", "Selu", "Celu", "lite.Swish", "Softsign", "Reciprocal"), 3),
    **dict.fromkeys(("Mish", "Erf", "Tan"), 5),
    **dict.fromkeys(("HardSigmoid", "HardSwish", "LeakyRelu", "PRelu", "Shrink"), 1),
    "Gelu": 10,
    "Pow": 1,
}
_RELATIVE = {"Exp", "Pow", "Sinh", "Cosh", "Reciprocal", "LeakyRelu", "PRelu", "Sigmoid", "Tanh", "Softplus"}

_ATTRIBUTES: dict[str, list[dict[str, Any]]] = {
    "BitShift": [{"direction": "LEFT"}, {"direction": "RIGHT"}],
    "Celu": [{}, {"alpha": 0.5}],
    "Elu": [{}, {"alpha": 2.0}],
    "Gelu": [{}, {"approximate": "tanh"}],
    "HardSigmoid": [{"alpha": 0.25}],
    "IsInf": [{}, {"detect_negative": 0}, {"detect_positive": 0}],
    "LeakyRelu": [{"alpha": 0.125}, {"alpha": -0.5}],
    "Mod": [{"fmod": 0}, {"fmod": 1}],
    "Shrink": [{}, {"bias": 1.0, "lambd": 1.0}],
    "ThresholdedRelu": [{}, {"alpha": -1.0}],
    "lite.Swish": [{}, {"beta": 1.5}, {"beta": -1.0}],
}


def _moderate(operands: Sequence[Any]) -> Sequence[Any]:
    """Replace angles that are too large for an exact reduction in float64."""
    return [np.where(np.abs(a.astype(np.float64)) < 1e6, a, a.dtype.type(0.5)) for a in operands]


def _shifts(operands: Sequence[Any]) -> Sequence[Any]:
    x, y = operands
    return x, (y % (8 * y.dtype.itemsize + 2)).astype(y.dtype)


def _in_range_of_shrink(operands: Sequence[Any]) -> Sequence[Any]:
    """Limit integers to a range in which the results are positive and exact in float64."""
    return [a if a.dtype.kind not in "iu" else np.clip(a, 4, 100).astype(a.dtype) for a in operands]


_RESTRICTIONS: dict[str, Callable[[Sequence[Any]], Sequence[Any]]] = {
    "BitShift": _shifts,
    "Cos": _moderate,
    "Shrink": _in_range_of_shrink,
    "Sin": _moderate,
    "Tan": _moderate,
}


def _one_bound(operands: Sequence[Any]) -> Sequence[Any]:
    """Repeat one bound, because the NumPy reference takes scalars as bounds."""
    return [a if p == 0 or a is None else np.full_like(a, a[20 * p]) for p, a in enumerate(operands)]


def _castable(to: DType) -> Callable[[Sequence[Any]], Sequence[Any]]:
    """Limit floats to int64 if converted to integers, and 64-bit numbers to those that round to a half only once."""

    def restrict(operands: Sequence[Any]) -> Sequence[Any]:
        x, *rest = operands
        if x.dtype.kind in "fV" and to.is_integer:
            x = np.where(np.abs(x.astype(np.float64)) < 2.0**62, x, x.dtype.type(-3.75))
        elif to.is_half and x.dtype.itemsize == 8:
            x = x.astype(np.float32).astype(x.dtype) if x.dtype.kind == "f" else x % x.dtype.type(1000)
        return [x, *rest]

    return restrict


def _small_exponents(operands: Sequence[Any]) -> Sequence[Any]:
    x, y = operands
    return x, y if y.dtype.kind in "fV" else (y % y.dtype.type(9)).astype(y.dtype)


def _squares(operands: Sequence[Any]) -> Sequence[Any]:
    x, y = operands
    return x, np.where(np.arange(y.size) < 300, y.dtype.type(2), (np.arange(y.size) % 4).astype(y.dtype))


def _not_negative(operands: Sequence[Any]) -> Sequence[Any]:
    x, y = operands
    return x, (y % y.dtype.type(70)).astype(y.dtype)


def _negative(operands: Sequence[Any]) -> Sequence[Any]:
    x, y = operands
    return np.where(x == 0, x.dtype.type(-1), x), -(y % y.dtype.type(9)) - y.dtype.type(1)


def _halves(operands: Sequence[Any]) -> Sequence[Any]:
    """Return exponents in steps of a half, and non-negative bases whose powers fit into an int32."""
    x, y = operands
    return (np.abs(x.astype(np.int64)) % 50).astype(x.dtype), (np.arange(y.size) % 10 / 2).astype(y.dtype)


def _signature_cases(op: str) -> list[Case]:
    """Return the cases of an operator in all supported types of its signature, with all inputs."""
    domain, _, name = op.rpartition(".")
    definition = ops.find(name, domain)
    assert definition is not None
    cases = []
    for dtype in (t for t in definition.types.get("T", (DType.BOOL,)) if t is not DType.STRING):
        inputs = [dtype if p.type == "T" else DType(p.type) for p in definition.inputs]
        if definition.inputs[0].variadic:
            inputs = [dtype] * 3
        output = dtype if definition.outputs[0].type == "T" else DType(definition.outputs[0].type)
        for attributes in _ATTRIBUTES.get(op, [{}]):
            ulps = _FUNCTIONS.get(op, 0) if dtype.is_floating else 0
            restrict = _RESTRICTIONS.get(op, lambda operands: operands)
            case = Case(op, inputs, output, attributes, ulps, op in _RELATIVE, restrict)
            if supports(op, inputs, output, attributes) is None:
                cases.append(case)
    return cases


_SPECIAL_SIGNATURES = ("Cast", "CastLike", "Clip", "DequantizeLinear", "Dropout", "Pow", "QuantizeLinear")


@each_machine
@pytest.mark.parametrize("op", sorted(OPERATORS.keys() - set(_SPECIAL_SIGNATURES)))
def test_operator(op: str, machine: Machine) -> None:
    cases = [c for c in _signature_cases(op) if machine.half or DType.FLOAT16 not in c.inputs]
    assert cases
    check_cases(cases, machine)


@each_machine
def test_clip(machine: Machine) -> None:
    cases = [
        Case("Clip", inputs, dtype)
        for dtype in (DType.FLOAT32, DType.BFLOAT16, DType.FLOAT64, DType.INT8, DType.INT64, DType.UINT32)
        for inputs in ([dtype], [dtype, dtype], [dtype, None, dtype], [dtype] * 3)
    ]
    check_cases([replace(c, restrict=_one_bound) for c in cases], machine)


@each_machine
def test_dropout(machine: Machine) -> None:
    check_cases([Case("Dropout", [DType.FLOAT32, DType.FLOAT32, None], DType.FLOAT32)], machine)


@each_machine
@pytest.mark.parametrize("source", ALL)
def test_cast(source: DType, machine: Machine) -> None:
    if source is DType.FLOAT16 and not machine.half:
        pytest.skip("this level does not convert float16")
    targets = [to for to in ALL if machine.half or to is not DType.FLOAT16]
    cases = [Case("Cast", [source], to, {"to": to}, restrict=_castable(to)) for to in targets]
    cases.append(Case("CastLike", [source, DType.INT64], DType.INT64, restrict=_castable(DType.INT64)))
    check_cases(cases, machine)


@each_machine
def test_power_of_floats(machine: Machine) -> None:
    """Includes squares, which have a separate code path, in all lanes and in some lanes of a vector."""
    cases = [
        Case("Pow", [DType.FLOAT32, exponent], DType.FLOAT32, ulps=1, relative=True, restrict=restrict)
        for exponent in ALL
        if exponent is not DType.BOOL and (machine.half or exponent is not DType.FLOAT16)
        for restrict in (_small_exponents, _squares)
    ]
    check_cases(cases, machine)


@each_machine
def test_power_of_integers(machine: Machine) -> None:
    cases = [
        Case("Pow", [base, exponent], base, restrict=restrict)
        for base in (DType.INT32, DType.INT64)
        for exponent, restrict in (
            (DType.INT8, _not_negative),
            (DType.INT64, _not_negative),
            (DType.UINT64, _not_negative),
            (DType.INT32, _negative),
            (DType.FLOAT32, _halves),
            (DType.FLOAT64, _halves),
        )
    ]
    check_cases(cases, machine)


_QUANTIZED = (DType.INT8, DType.UINT8, DType.INT16, DType.UINT16)


def _not_zero(operands: Sequence[Any]) -> Sequence[Any]:
    """Replace scales that are zero or not finite."""
    x, scale, *zero_point = operands
    return [x, np.where(np.isfinite(scale) & (scale != 0), scale, scale.dtype.type(3)), *zero_point]


@each_machine
def test_quantize(machine: Machine) -> None:
    """Each element has its own scale and zero point, which the reference takes along the only axis."""
    cases = [Case("QuantizeLinear", [real, real, to], to, restrict=_not_zero) for to in _QUANTIZED for real in
             (DType.FLOAT32, DType.INT32)]  # fmt: skip
    cases.append(Case("QuantizeLinear", [DType.FLOAT32] * 2, DType.UINT8, restrict=_not_zero))
    check_cases(cases, machine)


@each_machine
def test_dequantize(machine: Machine) -> None:
    real = DType.FLOAT32
    cases = [Case("DequantizeLinear", [small, real, small], real) for small in (*_QUANTIZED, DType.INT32)]
    cases += [Case("DequantizeLinear", [small, real], real) for small in (DType.INT8, DType.INT32)]
    check_cases(cases, machine)


def test_every_elementwise_operator_is_in_the_table() -> None:
    """The table contains the operators of the element-wise families and no others."""
    families = ("activation", "elementwise_unary", "elementwise_binary", "comparison")
    listed = {d.qualified_name for d in ops.all_ops() if d.reference.__module__.rpartition(".")[2] in families}
    others = {"Cast", "CastLike", "DequantizeLinear", "Dropout", "Identity", "QuantizeLinear"}
    assert listed | others == OPERATORS.keys()


def test_refusals_say_why() -> None:
    f32, f64 = DType.FLOAT32, DType.FLOAT64
    assert "not an element-wise operator" in str(supports("Conv", [f32, f32], f32, {}))
    assert "float64" in str(supports("Tanh", [f64], f64, {}))
    assert "alpha must be positive" in str(supports("Celu", [f32], f32, {"alpha": -1.0}))
    assert "training mode" in str(supports("Dropout", [f32, None, DType.BOOL], f32, {}))
    assert supports("Pow", [f32, f64], f32, {}) is None


def test_costs_are_known() -> None:
    assert all(cost(op) >= 0 for op in OPERATORS)
    assert cost("Tanh") > cost("Add")


def test_a_wrong_output_type_is_an_error() -> None:
    k = Emitter(X86_64_V3)
    one = k.constant(1, DType.INT32)
    with k.kernel("sum"), pytest.raises(TypeError, match="Add gives int32, but its output is declared float32"):
        emit_operator(k, "Add", [one, one], {}, DType.FLOAT32)


@pytest.mark.parametrize("numbers", [(0.0, -0.0), (0, 0.0), (1, True), (2.0**24, 2**24 + 1)])
@pytest.mark.parametrize("lanes", [1, 8])
def test_a_constant_is_its_own_number(numbers: tuple[float, float], lanes: int) -> None:
    """Constants are kept by their number: numbers that are equal to Python but differ in bits stay apart."""
    k = Emitter(X86_64_V3)
    for number in numbers:
        with k.kernel(f"store_{type(number).__name__}_{number!r}") as (pointers, *_):
            pointers.tensor(0, DType.FLOAT32)[0].store(k.constant(number, DType.FLOAT32, lanes))
    names = [f"store_{type(number).__name__}_{number!r}" for number in numbers]
    code = load([compile_ir(k.text(), X86_64_V3)])
    for name, number in zip(names, numbers):
        actual = np.full(lanes, np.nan, np.float32)
        run_kernel(code.address(0, name), [], actual)
        assert actual.tobytes() == np.full(lanes, number, np.float32).tobytes(), name


# **** the functions over their range ****

# (function of a Val, same function in float64, lowest and highest argument, relative error in epsilons)
_RANGES = [
    (vector_math.exp, np.exp, -87.3, 88.7, 2.0),
    (vector_math.exp_of_nonpositive, np.exp, -87.3, 0, 2.0),
    (vector_math.expm1_of_nonpositive, np.expm1, -100, 0, 1.5),
    (vector_math.log, np.log, 1e-45, 3e38, 1.5),
    (vector_math.tanh, np.tanh, -12, 12, 3.0),
    (vector_math.sigmoid, lambda x: 1 / (1 + np.exp(-x)), -87, 90, 3.0),
    (vector_math.erf, error_function, -5, 5, 5.0),
    (vector_math.sin, np.sin, -20000, 20000, 2.0),
    (vector_math.cos, np.cos, -20000, 20000, 2.0),
    (vector_math.atanh, np.arctanh, -1, 1, 1.0),
    (vector_math.sinh, np.sinh, -89.3, 89.3, 1.0),
]


@each_machine
@pytest.mark.parametrize(
    ("function", "truth", "low", "high", "epsilons"), _RANGES, ids=[r[0].__name__ for r in _RANGES]
)
def test_function_over_its_range(
    function: Callable[[Val], Val],
    truth: Callable[[Array], Array],
    low: float,
    high: float,
    epsilons: float,
    machine: Machine,
) -> None:
    """Arguments are evenly spaced, and evenly spaced in their bit patterns to include the smallest numbers."""
    k = Emitter(machine)
    with k.kernel("function") as (pointers, _, begin, end, _scratch):
        target, source = pointers.tensor(0, DType.FLOAT32), pointers.tensor(1, DType.FLOAT32)
        k.span(end - begin, k.machine.lanes(), lambda i, lanes: target[i].store(function(source[i].load(lanes))))
    code = load([compile_ir(k.text(), machine)])
    patterns = np.arange(0, 1 << 32, 65521, np.uint64).astype(np.uint32).view(np.float32)
    inside = patterns[(patterns > low) & (patterns < high)]
    x = np.concatenate([np.linspace(low, high, 100_003), inside]).astype(np.float32)
    actual = np.empty_like(x)
    run_kernel(code.address(0, "function"), [x], actual)
    with np.errstate(divide="ignore"):
        expected = truth(x.astype(np.float64))
    # Results at the limits may be infinite; nan_to_num makes them comparable.
    actual, expected = np.nan_to_num(actual.astype(np.float64)), np.nan_to_num(expected)
    allowed = np.maximum(epsilons * 2.0**-23 * np.abs(expected), 2.0**-126)
    near = (np.abs(actual - expected) <= allowed) | (actual == expected)
    assert near.all(), f"of {x[~near][0]!r} is {actual[~near][0]!r}, expected {expected[~near][0]!r}"


@each_machine
def test_limits(machine: Machine) -> None:
    """Results for infinities and zero are exact, as masks of -Inf and saturated gates require."""
    expected = {
        vector_math.exp: [0, 1, np.inf],
        vector_math.sigmoid: [0, 0.5, 1],
        vector_math.tanh: [-1, 0, 1],
        vector_math.erf: [-1, 0, 1],
        vector_math.exp_of_nonpositive: [0, 1],
    }
    k = Emitter(machine)
    for function in expected:
        with k.kernel(function.__name__) as (pointers, _, begin, end, _scratch):
            target, source = pointers.tensor(0, DType.FLOAT32), pointers.tensor(1, DType.FLOAT32)
            with k.loop(begin, end) as i:
                target[i].store(function(source[i].load()))
    code = load([compile_ir(k.text(), machine)])
    for function, limits in expected.items():
        actual = np.empty(len(limits), np.float32)
        run_kernel(code.address(0, function.__name__), [np.array([-np.inf, 0, np.inf], np.float32)], actual)
        assert actual.tolist() == limits, function.__name__
