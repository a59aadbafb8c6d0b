"""Element-wise arithmetic, comparisons, logic and Where: cases that ONNX's node data does not cover."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest
from op_runner import infer_op, run_op

from lite_core.builder import GraphBuilder
from lite_core.errors import GraphError
from lite_core.ir import DType, SymbolicDim, TensorType, evaluate_shape
from lite_core.ops.dim_arithmetic import equal, less, never_negative
from lite_core.ops.error_function import error_function
from lite_core.ops.inference import broadcast_shapes

NAN, INF = np.nan, np.inf


def f32(*elements):
    return np.array(elements, dtype=np.float32)


def one(op, *inputs, **attributes):
    return run_op(op, list(inputs), **attributes)[0]


# **** integers ****


@pytest.mark.parametrize("dtype", ["int8", "int64"])
def test_integer_division_truncates_towards_zero(dtype):
    a, b = np.array([7, -7, 7, -7, 6, -6, 0], dtype), np.array([2, 2, -2, -2, 3, 3, -5], dtype)
    np.testing.assert_array_equal(one("Div", a, b), np.array([3, -3, -3, 3, 2, -2, 0], dtype))


def test_integer_division_that_overflows_or_divides_by_zero():
    lowest = np.array([-128], np.int8)
    assert one("Div", lowest, np.array([-1], np.int8)) == -128  # wraps around
    np.testing.assert_array_equal(one("Div", np.array([-3, 0, 3]), np.array([0, 0, 0])), [0, 0, 0])
    large = np.array([2**64 - 1], np.uint64)
    assert one("Div", large, np.array([2], np.uint64)) == 2**63 - 1


def test_integers_wrap_around():
    assert one("Add", np.array([250], np.uint8), np.array([10], np.uint8)) == 4
    assert one("Mul", np.array([100], np.int8), np.array([3], np.int8)) == 44
    assert one("Abs", np.array([-128], np.int8)) == -128


def test_mod_of_floats_takes_the_sign_of_the_divisor():
    np.testing.assert_allclose(one("Mod", f32(-7.5), f32(2)), f32(0.5))


def test_power_keeps_the_type_of_the_base():
    assert one("Pow", np.array([3], np.int64), np.array([39], np.uint8)) == 3**39  # exact beyond 2^53
    np.testing.assert_array_equal(
        one("Pow", np.array([1, -1, 2], np.int32), np.array([-3, -3, -3], np.int64)), [1, -1, 0]
    )
    np.testing.assert_array_equal(one("Pow", np.array([4, 9], np.int32), f32(0.5, 0.5)), [2, 3])
    assert one("Pow", f32(2), np.array([-1], np.int64)) == 0.5


def test_zeros_are_shifted_in():
    x, y = np.array([255, 1, 16], np.uint8), np.array([1, 7, 4], np.uint8)
    np.testing.assert_array_equal(one("BitShift", x, y, direction="LEFT"), [254, 128, 0])
    np.testing.assert_array_equal(one("BitShift", x, y, direction="RIGHT"), [127, 0, 1])


# **** floats ****


def test_maximum_minimum_and_clip_propagate_nan():
    x = f32(NAN, 1, NAN)
    np.testing.assert_array_equal(one("Max", x, f32(0, NAN, 2)), f32(NAN, NAN, NAN))
    np.testing.assert_array_equal(one("Min", f32(0, 2, 2), f32(0, NAN, 1), f32(1, 0, 0)), f32(0, NAN, 0))
    np.testing.assert_array_equal(one("Clip", x, np.float32(0), np.float32(0.5)), f32(NAN, 0.5, NAN))


def test_clip_with_crossed_bounds_and_vector_bounds():
    x = np.array([-5, 0, 5], np.int8)
    np.testing.assert_array_equal(one("Clip", x, np.array(3, np.int8), np.array(1, np.int8)), [1, 1, 1])
    assert one("Clip", np.array(7.0, np.float32), f32(1), f32(2)).shape == ()


def test_rounding_keeps_the_sign_of_zero():
    assert np.signbit(one("Round", f32(-0.5)))[0]


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_half_types_are_computed_wider_and_rounded_once(name):
    dtype = np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else np.float16)
    a, b = np.array([1, 2, 3], dtype), np.array([3, 7, 11], dtype)
    result = one("Div", a, b)
    assert result.dtype == dtype
    np.testing.assert_array_equal(result, (a.astype(np.float32) / b.astype(np.float32)).astype(dtype))
    # Three additions in float32, one rounding: in half precision 2048 + 1 would stay 2048 twice.
    if name == "float16":
        assert one("Sum", *(np.array([n], dtype) for n in (2048, 1, 1))) == 2050
    assert one("Less", a, b).dtype == np.bool_


def test_zero_size_tensors():
    empty = np.zeros((0, 3), np.float32)
    assert one("Add", empty, f32(1, 2, 3)).shape == (0, 3)
    assert one("Erf", empty).shape == (0, 3)
    assert one("Where", np.ones((2, 1, 1), bool), empty, np.float32(1)).shape == (2, 0, 3)
    assert one("Pow", np.zeros(0, np.int32), np.zeros(0, np.int32)).shape == (0,)
    assert one("Max", empty, empty, empty).shape == (0, 3)


# **** the error function ****


@pytest.mark.parametrize(("low", "high"), [(1e-300, 0.46875), (0.46875, 1), (1, 4), (4, 6), (6, 1e300)])
def test_erf_is_accurate_to_the_last_bits(low, high):
    x = np.geomspace(low, high, 5000)
    expected = np.array([math.erf(v) for v in x])
    np.testing.assert_allclose(error_function(x), expected, rtol=1e-15, atol=0)
    np.testing.assert_array_equal(error_function(-x), -error_function(x))


def test_erf_of_special_values_and_integers():
    np.testing.assert_array_equal(one("Erf", f32(NAN, INF, -INF, 0)), f32(NAN, 1, -1, 0))
    assert np.signbit(one("Erf", f32(-0.0)))[0]
    np.testing.assert_array_equal(one("Erf", np.array([-9, 0, 1, 9], np.int16)), [-1, 0, 0, 1])


def test_erf_of_float32_is_rounded_correctly():
    x = np.linspace(-6, 6, 1 << 20, dtype=np.float32)
    result = error_function(x)
    some = slice(None, None, 997)
    expected = np.array([math.erf(v) for v in x[some].tolist()])
    np.testing.assert_array_max_ulp(result[some], expected.astype(np.float32), maxulp=1)


# **** shapes ****


def test_broadcasting_with_symbols():
    n, h = SymbolicDim.named("n"), SymbolicDim.named("h")
    a, b = TensorType(DType.FLOAT32, (n, 1, 3)), TensorType(DType.FLOAT32, (h, 1))
    assert infer_op("Add", [a, b]) == ["float32[n, h, 3]"]
    assert infer_op("Less", [a, b]) == ["bool[n, h, 3]"]
    assert infer_op("Add", [a, TensorType(DType.FLOAT32, (h, 1, 1))]) == ["float32[broadcast(h, n), 1, 3]"]
    assert infer_op("Add", [a, TensorType(DType.FLOAT32, None)]) == ["float32[?]"]


def test_errors_name_shapes_and_types():
    two, three = TensorType(DType.FLOAT32, (2,)), TensorType(DType.FLOAT32, (3,))
    with pytest.raises(GraphError, match=r"\[2\] and \[3\] .*2 and 3"):
        infer_op("Mul", [two, three])
    with pytest.raises(GraphError, match=r"min .*scalar.*\[2\]"):
        infer_op("Clip", [three, two])
    with pytest.raises(GraphError, match=r"Max.* at least one input"):
        infer_op("Max", [])
    with pytest.raises(GraphError, match=r"input B .*int64.*float32"):
        run_op("Add", [f32(1), np.array([1])])
    with pytest.raises(GraphError, match="'direction' .*LEFT, RIGHT.*'UP'"):
        _builder_with_shift("UP")


def test_element_types_are_checked_for_each_combination():
    """Bound type variables are cached by the element types of all inputs, and only if these fit."""
    b = GraphBuilder()
    one, whole = b.input("one", "float32", [2]), b.input("whole", "int64", [2])
    for _ in range(2):
        assert str(b.add("Add", [one, one]).type) == "float32[2]"
        with pytest.raises(GraphError, match=r"input B .*int64.*float32"):
            b.add("Add", [one, whole])
        assert str(b.add("Add", [whole, whole]).type) == "int64[2]"


def _builder_with_shift(direction):
    b = GraphBuilder()
    x = b.input("x", "uint8", [3])
    return b.add("BitShift", [x, x], {"direction": direction})


# **** shape arithmetic ****


class Arithmetic:
    """A builder over the dimensions of an input, which returns the known elements of results."""

    def __init__(self):
        self.b = GraphBuilder()
        self.dims = self.b.add("Shape", [self.b.input("x", "float32", ["n", "h"])])

    def known(self, op, *inputs, **attributes):
        values = [i if hasattr(i, "type") else self.b.constant(np.asarray(i)) for i in inputs]
        found = self.b.known(self.b.add(op, values, attributes))
        return None if found is None else [str(e) for e in found.reshape(-1).tolist()]


@pytest.mark.parametrize(
    ("op", "other", "expected"),
    [
        ("Add", [1, -2], ["n + 1", "h - 2"]),
        ("Sub", [1, 2], ["n - 1", "h - 2"]),
        ("Mul", [4], ["4*n", "4*h"]),
        ("Div", [2, 1], ["n//2", "h"]),
        ("Div", [-2, 2], ["-(n//2)", "h//2"]),
        ("Div", [0, 1], ["0", "h"]),
        ("Mod", [2, 1], ["n%2", "0"]),
        ("Mod", [0, 1], ["0", "0"]),
        ("Max", [7, -1], ["max(n, 7)", "h"]),
        ("Equal", [-1, -5], ["False", "False"]),
        ("Equal", [1, 1], None),
        ("Less", [0, -1], ["False", "False"]),
        ("Greater", [-1, -3], ["True", "True"]),
        ("GreaterOrEqual", [0, 0], ["True", "True"]),
        ("LessOrEqual", [-1, -1], ["False", "False"]),
        ("Less", [5, 5], None),
    ],
)
def test_arithmetic_on_dimensions(op, other, expected):
    a = Arithmetic()
    assert a.known(op, a.dims, other) == expected


def test_more_arithmetic_on_dimensions():
    a = Arithmetic()
    assert a.known("Neg", a.dims) == ["-n", "-h"]
    assert a.known("Abs", a.dims) == ["n", "h"]
    assert a.known("Mod", a.dims, [2, 3], fmod=1) == ["n%2", "h%3"]
    assert a.known("Where", [True, False], a.dims, [8, 9]) == ["n", "9"]
    assert a.known("Equal", a.dims, a.dims) == ["True", "True"]
    assert a.known("LessOrEqual", a.dims, a.dims) == ["True", "True"]
    assert a.known("GreaterOrEqual", a.dims, a.dims) == ["True", "True"]
    assert a.known("Less", a.dims, a.dims) == ["False", "False"]
    smaller = a.b.known(a.b.add("Min", [a.dims, a.b.ints(10, 20)]))
    assert [d.evaluate({"n": 7, "h": 33}) for d in smaller] == [7, 20]
    clipped = a.b.known(a.b.add("Clip", [a.dims, a.b.constant(5), a.b.constant(9)]))
    assert [d.evaluate({"n": 1, "h": 33}) for d in clipped] == [5, 9]


def test_arithmetic_on_numbers_uses_the_reference():
    a = Arithmetic()
    assert a.known("Floor", np.float32([2.7])) == ["2.0"]
    assert a.known("Sqrt", np.float32([16])) == ["4.0"]
    assert a.known("Div", [-7], [2]) == ["-3"]
    assert a.known("Not", [True]) == ["False"]
    assert a.known("And", [True, True], [True, False]) == ["True", "False"]
    assert a.known("Pow", [2], [5]) == ["32"]
    assert a.known("Add", np.float16([1]), np.float16([1])) is None  # no shape is computed in half precision


def test_comparisons_of_dimensions_are_sound():
    n, m = SymbolicDim.named("n"), SymbolicDim.named("m")
    dims = [0, 1, -1, 3, n, -n, n + 1, 2 * n * m + 3, (n + 1) // 2, (n - 1) // 2, n % 4, n - m, m + n]
    for a in dims:
        for b in dims:
            for i in range(5):
                for j in range(5):
                    x, y = evaluate_shape((a, b), {"n": i, "m": j})
                    assert less(a, b) in (None, x < y), (a, b)
                    assert equal(a, b) in (None, x == y), (a, b)
    assert less(n, n + 1) is True
    assert less(n + 1, n) is False
    assert less(n, m) is None
    assert equal((n + 1) // 2, -1) is False
    assert equal(n, m) is None
    assert [never_negative(d) for d in (n, n % 4, n - 1, -n, 0, -1)] == [
        True,
        True,
        False,
        False,
        True,
        False,
    ]


@pytest.mark.parametrize("divisor", [2, -3])
def test_division_of_possibly_negative_dimensions_rounds_towards_zero(divisor):
    a = Arithmetic()
    shifted = a.b.add("Sub", [a.dims, a.b.ints(5, 5)])
    for op, attributes in (("Div", {}), ("Mod", {"fmod": 0}), ("Mod", {"fmod": 1})):
        found = a.b.known(a.b.add(op, [shifted, a.b.ints(divisor, divisor)], attributes))
        for n in range(12):
            numbers = np.array([n - 5, n - 5])
            (expected,) = run_op(op, [numbers, np.array([divisor, divisor])], **attributes)
            assert [d.evaluate({"n": n, "h": n}) for d in found] == expected.tolist()


def test_size_divided_by_itself_is_zero_for_size_zero():
    a = Arithmetic()
    whole = a.b.known(a.b.add("Div", [a.dims, a.dims]))
    assert [d.evaluate({"n": 0, "h": 3}) for d in whole] == [0, 1]
    assert a.known("Mod", a.dims, [1, 1]) == ["0", "0"]


@pytest.mark.parametrize(
    ("shapes", "expected"),
    [
        (((3,), (2, 1)), (2, 3)),
        (((2, 1), (3,)), (2, 3)),
        (((), (4,), (5, 1)), (5, 4)),
        (((1,), (0,)), (0,)),
        (((2,), None), None),
    ],
)
def test_broadcast_shapes_aligns_the_last_axes(shapes: tuple[tuple[int, ...] | None, ...], expected: object) -> None:
    assert broadcast_shapes(*shapes) == expected
