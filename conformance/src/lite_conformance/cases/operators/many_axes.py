"""Tensors of five and more axes, for operators that accept any number of them: kernels often end at four."""

from __future__ import annotations

from typing import Any

import numpy as np

from lite_conformance.cases.op_cases import table_of
from lite_conformance.cases.operators import (  # noqa: F401 - these modules create the tables extended here
    comparison,
    control,
    determinant,
    einsum,
    gather,
    generate,
    matmul,
    movement,
    normalization,
    quantization,
    scatter,
    search,
    shape,
    slicing,
    softmax,
)
from lite_conformance.cases.operators.determinant import well_conditioned
from lite_conformance.cases.operators.layer_initializers import all_integers
from lite_conformance.cases.operators.operands import distinct_indices, index_tuples, indices
from lite_conformance.cases.operators.spatial import scales
from lite_conformance.cases.tensors import Tensor, const, distinct, integers, ints, t, values
from lite_core.ir import DType

_SIZES = (2, 3, 2, 3, 5)


def _add(op: str, *inputs: Tensor | None, dtype: str = "float32", **attributes: Any) -> None:
    table_of(op)("five-axes", *inputs, dtypes=[dtype], **attributes)


_add("Cast", t(*_SIZES), to=DType.INT32)
_add("CastLike", t(*_SIZES), t(1, dtype="int32"))
_add("CenterCropPad", t(*_SIZES), ints(4, 2), axes=(1, -1))
_add("Compress", t(*_SIZES), values([1, 0, 1], "bool"), axis=3)
_add("Dropout", t(*_SIZES), outputs=2)
_add("DequantizeLinear", t(*_SIZES, init=integers(-99, 99), dtype="int8"), scales(0.5, 0.25, 2), axis=3)
_add("QuantizeLinear", t(*_SIZES, dtype="float32"), scales(0.5, 0.25, 2), const(3, init=integers(3, 9)), dtype="uint8",
     axis=1)  # fmt: skip
_add("DynamicQuantizeLinear", t(*_SIZES, init=integers(-100, 156)), outputs=3)
_add("Det", t(2, 3, 2, 3, 3, init=well_conditioned))
_add("Einsum", t(*_SIZES), t(*_SIZES), equation="abcde,abfde->cf")
_add("GatherElements", t(*_SIZES), indices(5, *_SIZES), axis=-1)
_add("GatherND", t(*_SIZES), index_tuples((2, 3, 2, 3), 7))
_add("ScatterElements", t(*_SIZES), distinct_indices(5, 4, *_SIZES), t(*_SIZES), axis=4)
_add("ScatterND", t(*_SIZES), values(np.array([[1, 2, 0, 1], [0, 1, 1, 2]]), "int64"), t(2, 5))
_add("TopK", t(*_SIZES, init=distinct), ints(2), outputs=2, axis=3)
_add("Hardmax", t(*_SIZES, init=distinct), axis=2)
_add("LogSoftmax", t(*_SIZES), axis=1)
_add("LayerNormalization", t(*_SIZES), const(3, 5), const(3, 5), axis=-2)
_add("LpNormalization", t(*_SIZES), axis=2)
_add("MeanVarianceNormalization", t(*_SIZES), axes=(1, 3))
_add("OneHot", t(2, 3, 2, 2, init=integers(0, 4), dtype="int64"), values(4, "int64", constant=True), values([0, 1]))
_add("ReverseSequence", t(*_SIZES), ints(1, 2, 1), batch_axis=1, time_axis=0)
_add("NonZero", t(*_SIZES, init=integers(0, 2)))
_add("Trilu", t(*_SIZES))
_add("MatMulInteger", t(2, 1, 2, 3, 4, init=all_integers), t(3, 1, 4, 5, init=all_integers), dtype="uint8")
_point = const(init=integers(3, 9))
_add("QLinearMatMul", t(2, 1, 2, 3, 4, init=all_integers), scales(0.5), _point, t(3, 1, 4, 5, init=all_integers),
     scales(0.5), _point, scales(64), _point, dtype="uint8")  # fmt: skip
_add("Slice", t(*_SIZES), ints(1, 0, 2), ints(2, 3, 0), ints(0, 3, 4), ints(1, 2, -1))
_add("Size", t(*_SIZES))
_add("Shape", t(*_SIZES))
_add("Unique", t(*_SIZES, init=integers(0, 2)), outputs=4, axis=2)
