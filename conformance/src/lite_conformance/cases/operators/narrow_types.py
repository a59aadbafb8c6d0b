"""8-bit floats and 4-bit integers: conversions, quantization, limits, halves, NaN and infinities.

The element types of the tables are the ordinary ones; these cases name a narrow type for an operand or for the result.
"""

from __future__ import annotations

from math import inf, nan

import numpy as np

from lite_conformance.cases.op_cases import Unspecified, table_of
from lite_conformance.cases.operators import (  # noqa: F401 - these modules create the tables extended here
    quantization,
    shape,
)
from lite_conformance.cases.operators.spatial import scales
from lite_conformance.cases.tensors import Array, Tensor, short_name, t, values
from lite_core.ir import DType

_FLOATS8 = (DType.FLOAT8E4M3FN, DType.FLOAT8E4M3FNUZ, DType.FLOAT8E5M2, DType.FLOAT8E5M2FNUZ)
_INTEGERS4 = (DType.INT4, DType.UINT4)

# Half-way between two numbers with 3 and with 4 significant bits; and just above, which float16 does not tell apart.
_halves = [9, 11, 13, 15, 17, 19, 21, 23, -9, -11, -17, -19, 9.001, 17.001, -9.001, -17.001, 1.0625, 1.125, 1.1875]
_halves += [0, 1, -1.5, 0.0703125, 100, 208, -240]
_too_large = [448, -448, 470, -470, 1e4, -1e4, 57344, -57344, 7e4, -7e4, 1e6, -1e6, 1e30, inf, -inf, nan, 1.5]
_for_integers = [
    -8.5,
    -8,
    -7.5,
    -0.5,
    0.5,
    1.5,
    2.5,
    6.5,
    7.5,
    8.5,
    14.5,
    15,
    15.5,
    16.5,
    100,
    -100,
    3,
    4.25,
    -inf,
    inf,
]


def _is_nan(x: Array, *_: Array) -> Array:
    return np.isnan(x)


def _numbers(to: DType) -> Tensor:
    return values([*_for_integers, nan] if to.is_integer else _halves)


def _nothing_said(to: DType) -> Unspecified | None:
    """Return which results may be anything: integers of NaN."""
    return _is_nan if to.is_integer else None


# **** Cast and CastLike to narrow types ****

_cast, _cast_like = table_of("Cast"), table_of("CastLike")
for _to in (*_FLOATS8, *_INTEGERS4):
    _name, _like = short_name(_to), t(1, dtype=_to.value)
    _cast(f"to-{_name},halves", _numbers(_to), to=_to, dtypes=("float32", "float64"), unspecified=_nothing_said(_to))
    _cast_like(f"to-{_name},halves", _numbers(_to), _like, dtypes=["float32"], unspecified=_nothing_said(_to))
    _cast(f"to-{_name},from-half", values([0, 1, -1.5, 2.5, 3, 4, 5, -6]), to=_to, dtypes=("float16", "bfloat16"))
for _to in _FLOATS8:
    _name, _like = short_name(_to), t(1, dtype=_to.value)
    for _saturate in (0, 1):
        _label = f"to-{_name},{'saturates' if _saturate else 'overflows'}"
        _cast(_label, values(_too_large), to=_to, saturate=_saturate, dtypes=["float32"])
        _cast_like(_label, values(_too_large), _like, saturate=_saturate, dtypes=["float32"])
for _to in _INTEGERS4:
    _cast(f"to-{short_name(_to)},integers", values([0, 1, 7, 3, 5]), to=_to, dtypes=("int8", "uint8", "int32", "int64"))

# **** Cast from narrow types ****

_exact = {to: values([0, 1, -1.5, 2.5, 3.5, -48, 224, 0.25], to.value) for to in _FLOATS8}
_exact[DType.INT4] = values([-8, -7, -1, 0, 1, 6, 7], "int4")
_exact[DType.UINT4] = values([0, 1, 7, 8, 14, 15], "uint4")
for _from, _tensor in _exact.items():
    for _to in (DType.FLOAT32, DType.FLOAT16, DType.INT32, DType.BOOL):
        _label = f"{short_name(_from)}-to-{short_name(_to)}"
        _cast(_label, _tensor, to=_to, dtypes=["float32"])
        _cast_like(_label, _tensor, t(1, dtype=_to.value), dtypes=["float32"])
for _from in _FLOATS8:
    _cast(f"{short_name(_from)}-to-f32,not-finite", values([nan, inf, -inf, 1], _from.value), to=DType.FLOAT32,
          dtypes=["float32"])  # fmt: skip

# **** QuantizeLinear, DequantizeLinear ****

_quantize, _dequantize = table_of("QuantizeLinear"), table_of("DequantizeLinear")
for _to in _FLOATS8:
    _name, _point = short_name(_to), values(0, _to.value, constant=True)
    _quantize(f"to-{_name},halves", values(_halves, "float32"), scales(1), _point, dtypes=["uint8"])
    _quantize(f"to-{_name},scale0.5", values(_halves, "float32"), scales(0.5), _point, dtypes=["uint8"])
    _quantize(f"to-{_name},no-zero-point", values(_halves, "float32"), scales(2), output_dtype=_to, dtypes=["uint8"])
    for _saturate in (0, 1):
        _quantize(f"to-{_name},{'saturates' if _saturate else 'overflows'}", values(_too_large, "float32"), scales(1),
                  _point, saturate=_saturate, dtypes=["uint8"])  # fmt: skip
    _dequantize(f"from-{_name}", _exact[_to], scales(0.75), dtypes=["float32"])
    _dequantize(f"from-{_name},zero-point", _exact[_to], scales(0.75), _point, dtypes=["float32"])
for _to in _INTEGERS4:
    _name, _reals = short_name(_to), values(_for_integers, "float32")
    for _zero in (0, 3):
        _point = values(_zero, _to.value, constant=True)
        _quantize(f"to-{_name},point{_zero}", _reals, scales(1), _point, dtypes=["uint8"])
        _dequantize(f"from-{_name},point{_zero}", _exact[_to], scales(0.75), _point, dtypes=["float32"])
    _quantize(f"to-{_name},no-zero-point", _reals, scales(2), output_dtype=_to, dtypes=["uint8"])
    _dequantize(f"from-{_name}", _exact[_to], scales(0.75), dtypes=["float32"])
    _blocks = np.random.default_rng(4).integers(-8, 8, (4, 6)) + (8 if _to is DType.UINT4 else 0)
    for _axis, _shape in ((0, (2, 6)), (1, (4, 2))):  # of 2 and 4 elements; the last block along axis 1 is shorter
        _factors, _points = np.linspace(0.1, 1.2, 2 * max(_shape)).reshape(_shape), np.arange(2 * max(_shape)) % 7
        _operands = (values(_blocks, _to.value), values(_factors, "float32", constant=True))
        _zeros = values(_points.reshape(_shape), _to.value, constant=True)
        for _label, _tensors in (("", _operands), (",points", (*_operands, _zeros))):
            _dequantize(f"from-{_name},blocks-along-{_axis}{_label}", *_tensors, axis=_axis,
                        block_size=2 * (_axis + 1), dtypes=["float32"])  # fmt: skip
    _quantize(f"to-{_name},axis1", values([[1.0, 2, 3], [4, 7, 9]], "float32"), scales(1, 0.5, 2),
              values([1, 2, 3], _to.value, constant=True), dtypes=["uint8"])  # fmt: skip
