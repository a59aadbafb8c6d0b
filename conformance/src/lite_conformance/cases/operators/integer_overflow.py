"""Overflow of integers: results wrap around modulo 2**n, in every integer type of an operator."""

from __future__ import annotations

from typing import Any

import numpy as np

from lite_conformance.cases.op_cases import table_of
from lite_conformance.cases.operators import (  # noqa: F401 - these modules create the tables extended here
    activation,
    convolution,
    cumulative,
    einsum,
    elementwise_binary,
    elementwise_unary,
    matmul,
    reduction,
    scatter,
)
from lite_conformance.cases.operators.initializers import specials
from lite_conformance.cases.operators.operands import index_tuples, indices, whole_range
from lite_conformance.cases.tensors import Array, Tensor, const, integers, ints, t, values
from lite_core.ir import DType
from lite_core.ops.dtypes import INTEGERS, SIGNED_INTEGERS


def _add(op: str, label: str, *inputs: Tensor | None, **attributes: Any) -> None:
    attributes.setdefault("dtypes", INTEGERS)
    table_of(op)(f"overflow{label}", *inputs, **attributes)


def _wide(*shape: int) -> Tensor:
    return t(*shape, init=whole_range)


def _fixed(*shape: int) -> Tensor:
    return const(*shape, init=whole_range)


def _farthest(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    """Return the integer farthest from zero everywhere: products have the largest magnitude that is possible."""
    info = np.iinfo(dtype.numpy)
    return np.full(shape, info.min if dtype.is_signed else info.max, dtype.numpy)


# **** element by element ****

for _op in ("Add", "Sub", "Mul"):
    _add(_op, "", _wide(9, 37), _wide(9, 37))
    _add(_op, ",extremes", t(5, 1, init=specials), t(1, 5, init=specials))
    _add(_op, ",scalar-constant", _wide(257), _fixed())
    _add(_op, ",channel", _wide(2, 3, 5, 7), _fixed(3, 1, 1))
    _add(_op, ",itself", _wide(1031), _wide(1031))
for _op in ("Neg", "Abs"):
    # The lowest number stays the lowest.
    _add(_op, ",lowest", t(37, init=specials), dtypes=SIGNED_INTEGERS)
    _add(_op, "", _wide(257))
for _power in range(6):
    _add("Pow", f",power{_power}", _wide(257), values(_power, constant=True))
_add("Pow", ",powers-at-run-time", _wide(9, 37), t(9, 37, init=integers(0, 9)))
_add("Pow", ",high-powers", t(33, init=integers(-9, 10)), values([[63], [64], [100]]))
_add("Pow", ",uint8-exponents", _wide(9, 37), t(9, 37, init=integers(0, 9), dtype="uint8"))
_add("PRelu", "", _wide(9, 37), _fixed(37))

# **** sums and products ****

for _op in ("ReduceSum", "ReduceProd", "ReduceSumSquare", "ReduceL1"):
    _add(_op, ",axis1", _wide(5, 37), ints(1))
    _add(_op, ",axis0", _wide(37, 5), ints(0), keepdims=0)
    _add(_op, ",all", _wide(3, 257))
_add("ReduceL1", ",lowest", t(4, 5, init=_farthest), ints(1))
_add("CumSum", "", _wide(3, 37), values(1, "int64", constant=True))
_add("CumSum", ",axis0,exclusive,reverse", _wide(37, 5), values(0, "int64", constant=True), exclusive=1, reverse=1)
_add("MatMul", "", _wide(9, 37), _wide(37, 11))
_add("MatMul", ",constant", _wide(2, 9, 37), _fixed(37, 11))
_add("MatMul", ",vector", _wide(3, 37), _fixed(37))
_add("Gemm", "", _wide(9, 37), _fixed(37, 11), _fixed(11))
_add("Gemm", ",trans-both", _wide(37, 9), _wide(11, 37), _wide(9, 11), transA=1, transB=1)
_add("Einsum", ",matrix-product", _wide(9, 37), _wide(37, 11), equation="ij,jk->ik")
_add("Einsum", ",sum", _wide(9, 37), equation="ij->i")
for _reduction in ("add", "mul"):
    _add(
        "ScatterElements", f",{_reduction}", _wide(3, 9), indices(9, 3, 40), _wide(3, 40), axis=1, reduction=_reduction
    )
    _add("ScatterND", f",{_reduction}", _wide(9, 7), index_tuples((9,), 40), _wide(40, 7), reduction=_reduction)

# **** sums of products of bytes, long enough to exceed 32 bits ****

_LONG = 140_000
for _other in ("int8", "uint8"):
    _add("MatMulInteger", f",{_other}", t(1, _LONG, init=_farthest), const(_LONG, 3, init=_farthest, dtype=_other))
    _add("ConvInteger", f",weights-{_other}", t(1, _LONG, 1, 1, init=_farthest),
         const(3, _LONG, 1, 1, init=_farthest, dtype=_other))  # fmt: skip
