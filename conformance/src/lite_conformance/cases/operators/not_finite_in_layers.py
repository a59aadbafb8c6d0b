"""NaN and infinities in layers of networks: each result that they take part in shows them, and no other.

The kernels of the convolutions are such that fast algorithms, whose tiles share intermediate sums, do not apply.
"""

from __future__ import annotations

from math import inf, nan
from typing import Any

import numpy as np

from lite_conformance.cases.op_cases import table_of
from lite_conformance.cases.operators import (  # noqa: F401 - these modules create the tables extended here
    convolution,
    deformable_convolution,
    determinant,
    einsum,
    elementwise_binary,
    elementwise_unary,
    grid_sample,
    matmul,
    normalization,
    quantization,
    recurrent,
    resize,
    shape,
    transposed_convolution,
)
from lite_conformance.cases.operators.layer_initializers import unbounded, with_nan, zeros
from lite_conformance.cases.tensors import Tensor, const, ints, t, values
from lite_core.ops.dtypes import FLOATS


def _add(op: str, *inputs: Tensor | None, label: str = "not-finite", **attributes: Any) -> None:
    attributes.setdefault("dtypes", FLOATS)
    table_of(op)(label, *inputs, **attributes)


_add("Conv", t(1, 3, 6, 7, init=unbounded), const(4, 3, 2, 2), strides=(2, 2))
_add("Conv", t(2, 3, 5, 5, init=unbounded), const(4, 3, 1, 1), label="not-finite,pointwise")
_add("Conv", t(1, 5, 6, 7, init=unbounded), const(5, 1, 2, 2), label="not-finite,depthwise", group=5, strides=(2, 1))
_add("ConvTranspose", t(1, 3, 4, 5, init=unbounded), const(3, 2, 2, 2), strides=(2, 2))
_add("DeformConv", t(1, 3, 5, 5, init=unbounded), const(2, 3, 2, 2), t(1, 8, 4, 4, init=zeros))
_add("Einsum", t(5, 7, init=unbounded), t(7, 3), equation="ij,jk->ik")
_add("Det", t(5, 3, 3, init=with_nan))
_add("LRN", t(2, 7, 3, 5, init=with_nan), size=3)
_add("LRN", t(2, 7, 3, 5, init=unbounded), label="infinities", size=1)
_add("InstanceNormalization", t(3, 2, 5, 2, init=unbounded), const(2), const(2))
_add("GroupNormalization", t(3, 4, 5, init=unbounded), const(4), const(4), num_groups=2,
     dtypes=("float32", "float16"))  # fmt: skip
for _op, _gates in (("RNN", 1), ("GRU", 3), ("LSTM", 4)):
    _add(_op, t(3, 4, 5, init=with_nan), const(1, _gates * 7, 5), const(1, _gates * 7, 7), hidden_size=7)
    _relu = ("Sigmoid",) * (_gates > 1) + ("Relu",) * (1 + (_gates == 4))
    _add(_op, t(3, 4, 5, init=with_nan), const(1, _gates * 7, 5), const(1, _gates * 7, 7), label="not-finite,relu",
         activations=_relu, hidden_size=7)  # fmt: skip
_add("LpNormalization", t(5, 7, init=with_nan))
_add("IsInf", values([inf, 1, -inf, nan, 0], constant=True), label="not-finite,constant")
_add("IsNaN", values([inf, 1, -inf, nan, 0], constant=True), label="not-finite,constant")
for _bound in (None, 0.0):
    # Without a bound, an infinity may become the largest finite number, ONNX's default bound.
    _label = "infinities,no-minimum" if _bound is None else "infinities,minimum-0"
    _add("Clip", values([inf, 1, -inf, nan, 0]), None if _bound is None else values(_bound), None, label=_label,
         unspecified=lambda x, low, high: np.isinf(x.astype(np.float64)) & ((x > 0) | (low is None)))  # fmt: skip
_add("CastLike", values([inf, 1.5, -inf, nan, 0.0], constant=True), t(1, dtype="float64"), label="not-finite,constant")
_add("Resize", t(1, 3, 5, 5, init=unbounded), None, None, ints(1, 3, 10, 10), mode="nearest")
_add("DequantizeLinear", values([-3, 0, 5], "int8"), values([inf, nan, -inf]), axis=0)
_add("AffineGrid", values([[[1, 0, nan], [0, 2, 0.5]]]), ints(1, 1, 3, 4))
