"""8-bit floats and 4-bit integers in Cast, QuantizeLinear and DequantizeLinear."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from op_runner import run_op

from lite_core.ir import DType
from lite_core.ops.dtypes import ALL, NARROW

FLOATS = [d for d in NARROW if d.is_floating]
REAL = np.array([0.0, -0.0, 0.3, -1.0, 17.3, 448.0, 1e6, -1e6, np.inf, -np.inf, np.nan], np.float32)


def test_narrow_types_are_stored_only() -> None:
    assert {str(d) for d in NARROW} == {
        "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz", "int4", "uint4",
    }  # fmt: skip
    assert not set(NARROW) & set(ALL)
    assert {d.itemsize for d in NARROW} == {1}


@pytest.mark.parametrize("dtype", NARROW)
def test_a_narrow_type_is_found_by_its_name_and_its_numpy_type(dtype: DType) -> None:
    assert DType.of(str(dtype)) is dtype
    assert DType.of(dtype.numpy) is dtype
    assert DType.of(np.zeros(2, dtype.numpy)) is dtype


@pytest.mark.parametrize("dtype", FLOATS)
def test_floats_are_saturated(dtype: DType) -> None:
    (narrow,) = run_op("Cast", [REAL], to=dtype)
    most = float(ml_dtypes.finfo(dtype.numpy).max)
    expected = np.clip(REAL, -most, most).astype(dtype.numpy).astype(np.float32)
    np.testing.assert_array_equal(narrow.astype(np.float32), expected)
    assert np.isnan(narrow.astype(np.float32)).tolist() == np.isnan(REAL).tolist()


@pytest.mark.parametrize("dtype", FLOATS)
def test_floats_overflow_to_infinity_or_nan_without_saturation(dtype: DType) -> None:
    (narrow,) = run_op("Cast", [REAL], to=dtype, saturate=0)
    beyond = narrow.astype(np.float32)[6:10]
    assert (np.isinf(beyond) if dtype is DType.FLOAT8E5M2 else np.isnan(beyond)).all()


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("back", ["float32", "float16", "float64"])
def test_cast_round_trip(dtype: DType, back: str) -> None:
    numbers = np.array([0, 1, 2, 3, 4, 5, 6, 7], back)
    (narrow,) = run_op("Cast", [numbers], to=dtype)
    (again,) = run_op("Cast", [narrow], to=DType.of(back))
    np.testing.assert_array_equal(again, numbers)


@pytest.mark.parametrize(("dtype", "low", "high"), [(DType.INT4, -8, 7), (DType.UINT4, 0, 15)])
def test_integers_are_rounded_and_saturated(dtype: DType, low: int, high: int) -> None:
    x = np.array([-100, -8.6, -0.5, 0.5, 1.5, 2.5, 6.4, 15.2, 100], np.float32)
    (narrow,) = run_op("Cast", [x], to=dtype)
    np.testing.assert_array_equal(narrow.astype(np.int32), np.clip(np.rint(x), low, high))


@pytest.mark.parametrize("dtype", NARROW)
def test_quantize_and_dequantize(dtype: DType) -> None:
    x = np.array([-3.0, -1.0, 0.0, 1.0, 2.0, 3.0], np.float32)
    scale, zero = np.array(0.5, np.float32), np.zeros((), dtype.numpy)
    (narrow,) = run_op("QuantizeLinear", [x, scale, zero])
    assert narrow.dtype == dtype.numpy
    (real,) = run_op("DequantizeLinear", [narrow, scale, zero])
    expected = np.clip(x, 0, None) if dtype is DType.UINT4 else x
    np.testing.assert_array_equal(real, expected)


def test_other_operators_refuse_narrow_types() -> None:
    with pytest.raises(Exception, match="float8e5m2"):
        run_op("Add", [np.zeros(2, ml_dtypes.float8_e5m2), np.zeros(2, ml_dtypes.float8_e5m2)])
