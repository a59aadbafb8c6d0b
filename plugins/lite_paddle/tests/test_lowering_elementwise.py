"""Element-wise operators against Paddle, broadcasting with ``axis``, and the behaviour of older files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hand_made import run
from paddle_cases import Case, check, parametrize_cases

from lite_core.errors import UnsupportedOperatorError

RNG = np.random.default_rng(0)
X = (RNG.standard_normal((2, 3, 4)) * 3).astype(np.float32)
Y = (RNG.standard_normal((3, 4)) * 3).astype(np.float32)
POSITIVE = np.abs(X) + np.float32(0.1)
UNIT = np.tanh(X) * np.float32(0.9)
INTEGERS = RNG.integers(-20, 20, (2, 3, 4))
DIVISORS = np.where(RNG.integers(-5, 5, (3, 4)) >= 0, 3, -4)
BOOLEANS = X > 0
ODD = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5], np.float32)
HALVES = np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 2.4, -2.6], np.float32)
TINY = np.array([-0.9, -0.5, -1e-4, -1e-9, 0, 1e-9, 1e-4, 0.3, 5, 30], np.float32)


def api(name: str, *arguments: Any, **keywords: Any) -> Callable[[Any], Any]:
    return lambda p: lambda *tensors: getattr(p, name)(*tensors, *arguments, **keywords)


def _pairs() -> list[Case]:
    cases = [Case(name, api(name), [X, Y]) for name in ("add", "subtract", "multiply", "divide", "maximum", "minimum")]
    cases += [
        Case(f"{name}_open", api(name), [X, Y], shapes=[(None, None, 4), (None, 4)]) for name in ("add", "divide")
    ]
    cases += [
        Case(f"{name}_int", api(name), [INTEGERS, DIVISORS]) for name in ("add", "subtract", "multiply", "maximum")
    ]
    cases += [Case(name, api(name), [X, Y]) for name in ("remainder", "floor_divide", "fmax", "fmin", "heaviside")]
    cases += [Case(f"{name}_int", api(name), [INTEGERS, DIVISORS]) for name in ("remainder", "floor_divide")]
    for name in ("equal", "not_equal", "less_than", "less_equal", "greater_than", "greater_equal"):
        cases += [
            Case(name, api(name), [np.round(X), np.round(Y)]),
            Case(f"{name}_int", api(name), [INTEGERS, DIVISORS]),
        ]
    cases += [Case(f"logical_{name}", api(f"logical_{name}"), [BOOLEANS, Y > 0]) for name in ("and", "or", "xor")]
    cases += [Case(f"bitwise_{name}", api(f"bitwise_{name}"), [INTEGERS, DIVISORS]) for name in ("and", "or", "xor")]
    cases += [Case(f"bitwise_{name}_bool", api(f"bitwise_{name}"), [BOOLEANS, Y > 0]) for name in ("and", "or", "xor")]
    return cases


def _unary() -> list[Case]:
    cases = [
        Case(name, api(name), [X], rtol=1e-5)
        for name in [
            "exp",
            "abs",
            "square",
            "sign",
            "floor",
            "ceil",
            "sin",
            "cos",
            "tan",
            "atan",
            "sinh",
            "cosh",
            "asinh",
            "erf",
            "trunc",
            "reciprocal",
            "round",
            "expm1",
        ]
    ]
    cases += [
        Case(name, api(name), [POSITIVE], rtol=1e-5) for name in ["log", "log2", "log10", "log1p", "sqrt", "rsqrt"]
    ]
    cases += [Case(name, api(name), [UNIT]) for name in ("asin", "acos", "atanh")]
    cases += [Case("acosh", api("acosh"), [POSITIVE + 1])]
    cases += [Case(f"{name}_small", api(name), [TINY], atol=0) for name in ("log1p", "expm1")]
    cases += [Case(name, api(name), [ODD]) for name in ("isnan", "isinf", "isfinite")]
    cases += [Case(f"{name}_int", api(name), [INTEGERS]) for name in ("abs", "square", "sign", "isnan", "exp", "sin")]
    cases += [Case("logical_not", api("logical_not"), [BOOLEANS]), Case("bitwise_not", api("bitwise_not"), [INTEGERS])]
    return cases


CASES = [
    *_pairs(),
    *_unary(),
    Case("pow_tensor", api("pow"), [POSITIVE, Y]),
    Case("pow_number", api("pow", 3.0), [X]),
    Case("pow_int", api("pow", 2), [INTEGERS]),
    Case("round_halves", api("round"), [HALVES]),
    Case("scale", api("scale", 2.0, 1.5), [X]),
    Case("scale_bias_first", api("scale", 2.0, 1.5, False), [X]),
    Case("scale_int", api("scale", 3.0, 1.0), [INTEGERS]),
    Case("scale_tensor", lambda p: lambda x, s: p.scale(x, s), [X, np.array([2.5], np.float32)]),
    Case("python_operators", lambda p: lambda x: (x + 1) * 2 - x / 3, [X]),
    Case("clip", api("clip", -1.0, 1.5), [X]),
    Case("clip_below", api("clip", min=0.5), [X]),
    Case("clip_int", api("clip", -3, 4), [INTEGERS]),
    Case("clip_tensor", lambda p: lambda x, low: p.clip(x, low, 2.0), [X, np.array([-0.5], np.float32)]),
    Case("add_n", lambda p: lambda a, b: p.add_n([a, b, a]), [X, X * 2]),
    Case("atan2", api("atan2"), [np.round(X) + 0.0, np.round(X[::-1])]),
    Case("lerp", api("lerp"), [X, X + 1, UNIT]),
    Case("equal_all", api("equal_all"), [X, X]),
    Case("isclose", api("isclose", rtol=0.1, atol=0.01), [ODD, ODD * np.float32(1.05)]),
    Case("isclose_nan", api("isclose", equal_nan=True), [ODD, ODD]),
    Case("allclose", api("allclose"), [X, X + np.float32(1e-9)]),
    Case("logit", api("logit", 1e-3), [np.abs(UNIT)]),
    Case("clip_by_norm", lambda p: lambda x: p.nn.clip.clip_by_norm(x, 1.0), [X]),
]


@parametrize_cases(CASES)
def test_matches_paddle(case: Case, kind: str, paddle_models: Callable[[str], Path]) -> None:
    check(case, paddle_models(kind), kind)


@pytest.mark.parametrize(
    ("shape", "axis", "aligned_shape"),
    [
        ((3, 4), 1, (1, 3, 4, 1)),
        ((4,), 2, (1, 1, 4, 1)),
        ((2,), 0, (2, 1, 1, 1)),
        ((3, 1, 1), 1, (1, 3, 1, 1)),
        ((5,), -1, (1, 1, 1, 5)),
        ((5,), 3, (1, 1, 1, 5)),
        ((1, 4), 1, (1, 1, 4, 1)),
        ((2, 3, 4, 5), 0, (2, 3, 4, 5)),
    ],
)
def test_axis_aligns_the_smaller_tensor(shape: tuple[int, ...], axis: int, aligned_shape: tuple[int, ...]) -> None:
    x = RNG.standard_normal((2, 3, 4, 5)).astype(np.float32)
    y = RNG.standard_normal(shape).astype(np.float32)
    (out,) = run("elementwise_sub", {"X": x, "Y": y}, {"axis": axis})
    np.testing.assert_array_equal(out, x - y.reshape(aligned_shape))
    (out,) = run("elementwise_sub", {"X": y, "Y": x}, {"axis": axis})
    np.testing.assert_array_equal(out, y.reshape(aligned_shape) - x)


def test_axis_drops_trailing_ones_of_a_tensor_of_equal_rank() -> None:
    x, y = (RNG.standard_normal(s).astype(np.float32) for s in ((2, 3, 4, 5), (3, 1, 1, 1)))
    (out,) = run("elementwise_sub", {"X": x, "Y": y}, {"axis": 1})
    np.testing.assert_array_equal(out, x - y.reshape(1, 3, 1, 1))


def test_axis_beyond_the_larger_tensor_is_refused() -> None:
    with pytest.raises(UnsupportedOperatorError, match="axis 3 puts 'Y_0' of rank 2 beyond the 4 axes"):
        run("elementwise_add", {"X": X[None], "Y": Y}, {"axis": 3})


def test_rounding_of_halves_by_version() -> None:
    x = np.array([-2.5, -0.5, 0.5, 1.5, 2.5, 0.4], np.float32)
    np.testing.assert_array_equal(run("round", {"X": x}, version=2_006_002)[0], [-3, -1, 1, 2, 3, 0])
    np.testing.assert_array_equal(run("round", {"X": x}, version=3_000_000)[0], [-2, -0.0, 0, 2, 2, 0])
    np.testing.assert_allclose(
        run("round", {"X": np.array([1.26, -1.24], np.float32)}, {"decimals": 1}, version=3_003_000)[0],
        [1.3, -1.2],
        rtol=1e-6,
    )


def test_whole_tensor_tests_of_paddle_1() -> None:
    for name, expected in (("isnan", True), ("isinf", True), ("isfinite", False)):
        (found,) = run(name, {"X": ODD}, version=1_008_005)
        assert found.shape == (1,)
        assert bool(found[0]) is expected


def test_full_comparison_has_rank_1_in_old_files() -> None:
    assert run("equal_all", {"X": X, "Y": X}, version=2_004_000)[0].shape == (1,)
    assert run("equal_all", {"X": X, "Y": X}, version=2_005_000)[0].shape == ()


def test_bounds_outside_the_element_type_are_dropped() -> None:
    largest = 3.4028234663852886e38
    for x in (X, INTEGERS, INTEGERS.astype(np.int32)):
        (y,) = run("clip", {"X": x}, {"min": -largest, "max": 2.0})
        np.testing.assert_array_equal(y, np.minimum(x, 2))


def test_scale_of_integers_stays_exact() -> None:
    x = np.array([2**53 + 1], np.int64)
    (y,) = run("scale", {"X": x}, {"scale": 1.0, "bias": 1.0})
    assert y.tolist() == [2**53 + 2]


def test_factor_tensor_takes_precedence_over_the_attribute() -> None:
    (y,) = run("pow", {"X": X, "FactorTensor": np.array([2.0], np.float32)}, {"factor": 5.0})
    np.testing.assert_allclose(y, X**2, rtol=1e-6)


def test_sum_of_integers_and_of_one() -> None:
    np.testing.assert_array_equal(run("sum", {"X": [INTEGERS, INTEGERS]})[0], INTEGERS * 2)
    np.testing.assert_array_equal(run("sum", {"X": [X]})[0], X)
