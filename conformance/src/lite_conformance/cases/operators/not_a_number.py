"""NaN: it propagates through arithmetic, extremes, activations, pools and reductions, and has a place in orders.

Each tensor holds NaN in every lane of a vector register and in the rest behind the last register.
"""

from __future__ import annotations

from math import inf, nan
from typing import Any

import numpy as np

from lite_conformance.cases.op_cases import table_of
from lite_conformance.cases.operators import (  # noqa: F401 - these modules create the tables extended here
    activation,
    cumulative,
    detection,
    elementwise_binary,
    elementwise_unary,
    lite_regions,
    normalization,
    pooling,
    recurrent,
    reduction,
    scatter,
    search,
    softmax,
)
from lite_conformance.cases.operators.initializers import specials, with_elements
from lite_conformance.cases.operators.operands import distinct_indices, index_tuples, indices
from lite_conformance.cases.tensors import Array, Tensor, const, distinct, ints, normal, positive, t, values
from lite_conformance.judge.tolerances import EXACT
from lite_core.ir import DType
from lite_core.ops.dtypes import FLOATS

#: Of cases whose kernels differ by shapes, not by types.
_ONE_TYPE = ("float32",)
_half_nan = with_elements(nan)


def _some_nan(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    """Return standard normal numbers, one in nine of them NaN: some rows and windows have none, others several."""
    array = normal(random, shape, dtype).reshape(-1)
    array[random.permutation(array.size)[: (array.size + 8) // 9]] = nan
    return array.reshape(shape)


def _positive_or_nan(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    return np.where(np.isnan(_some_nan(random, shape, dtype)), dtype.numpy.type(nan), positive(random, shape, dtype))


def _distinct_or_nan(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    """Return distinct numbers and a few NaN, so that every maximum has one position."""
    return np.where(np.isnan(_some_nan(random, shape, dtype)), dtype.numpy.type(nan), distinct(random, shape, dtype))


def _add(op: str, label: str, *inputs: Tensor | None, domain: str = "", **attributes: Any) -> None:
    attributes.setdefault("dtypes", FLOATS)
    table_of(op, domain)(f"nan{label}", *inputs, **attributes)


def _bound(number: float, constant: bool = True) -> Tensor:
    return values(number, constant=constant)


# **** extremes and limits ****

for _op in ("Max", "Min"):
    _add(_op, "", t(8, 33, init=_half_nan), t(8, 33, init=_half_nan))
    _add(_op, "-and-specials", t(11, 1, init=specials), t(1, 11, init=specials))
    _add(_op, ",left", t(257, init=_half_nan), t(257))
    _add(_op, ",right", t(257), t(257, init=_half_nan))
    _add(_op, ",scalar-constant", t(257, init=_half_nan), const())
    _add(_op, ",constant", t(33), _bound(nan))
    _add(_op, ",constant-on-the-left", _bound(nan), t(33))
    _add(_op, ",channel", t(2, 3, 5, 7, init=_half_nan), const(3, 1, 1), dtypes=_ONE_TYPE)
    _add(_op, ",three", t(3, 33, init=_some_nan), t(3, 33, init=_some_nan), t(33, init=_some_nan))

for _constant, _suffix in ((True, ""), (False, ",at-run-time")):
    _add("Clip", _suffix, t(257, init=_half_nan), _bound(-0.5, _constant), _bound(0.75, _constant))
    _add("Clip", f",only-minimum{_suffix}", t(257, init=_half_nan), _bound(-0.5, _constant))
    _add("Clip", f",only-maximum{_suffix}", t(257, init=_half_nan), None, _bound(0.75, _constant))
    _add("Clip", f"-as-minimum{_suffix}", t(33), _bound(nan, _constant), _bound(0.75, _constant))
    _add("Clip", f"-as-maximum{_suffix}", t(33), _bound(-0.5, _constant), _bound(nan, _constant))
_add("Clip", ",relu6", t(2, 3, 5, 7, init=_half_nan), _bound(0), _bound(6))
_add("Clip", ",infinite-bounds", t(257, init=_half_nan), _bound(-inf), _bound(inf))

# **** activations, signs and roundings ****

_SIMPLE = (
    "Relu",
    "ThresholdedRelu",
    "Shrink",
    "HardSwish",
    "Elu",
    "Selu",
    "Celu",
    "Abs",
    "Neg",
    "Sign",
    "Ceil",
    "Floor",
)
for _op in (*_SIMPLE, "Round", "Sqrt", "Reciprocal", "Softplus", "Mish", "Gelu", "Sigmoid", "Tanh", "Erf"):
    _add(_op, "-in-every-lane", t(257, init=_half_nan))
    _add(_op, "-alone", values(nan), dtypes=_ONE_TYPE)
_add("Swish", "-in-every-lane", t(257, init=_half_nan), domain="lite")
_add("HardSigmoid", "-in-every-lane", t(257, init=_half_nan), alpha=0.25)
_add("HardSigmoid", ",alpha-below-zero", t(257, init=_half_nan), alpha=-0.25)
for _alpha in (0.125, 0.0, 1.5, -0.5):
    _add("LeakyRelu", f",alpha{_alpha}", t(257, init=_half_nan), alpha=_alpha)
_add("ThresholdedRelu", ",alpha-below-zero", t(257, init=_half_nan), alpha=-1.0)
_add("Shrink", ",bias", t(257, init=_half_nan), bias=0.25, lambd=0.25)
_add("PRelu", "", t(257, init=_half_nan), const(1))
_add("PRelu", ",channel", t(2, 3, 5, 7, init=_half_nan), const(3, 1, 1))
_add("PRelu", ",slopes-above-one", t(33, init=_half_nan), _bound(1.5))

# **** sums, products and powers ****

for _op in ("Add", "Sub", "Mul", "Div"):
    _add(_op, "", t(8, 33, init=_half_nan), t(8, 33, init=_half_nan))
    _add(_op, ",scalar-constant", t(257, init=_half_nan), _bound(0.5))
_add("Mul", ",zero", t(257, init=_half_nan), _bound(0))
# As in IEEE 754 and C: the power 0 of everything is 1, and so is every power of 1.
_add("Pow", ",zeroth-power", values([nan, inf, 1, -1]), values([[0], [nan], [1]]))
_add("CumSum", ",axis1", t(9, 33, init=with_elements(nan, among=positive)), values(1, "int64", constant=True))
_add("CumSum", ",exclusive,reverse", t(9, 7, init=_some_nan), values(0, "int64", constant=True), exclusive=1, reverse=1)

# **** reductions: NaN in the first, a middle and the last place ****

_KINDS = ("Max", "Min", "Sum", "Mean", "Prod", "SumSquare", "L1", "L2", "LogSum", "LogSumExp")
for _op in (f"Reduce{kind}" for kind in _KINDS):
    _add(_op, ",axis1", t(9, 33, init=_positive_or_nan), ints(1))
    _add(_op, ",axis0", t(33, 9, init=_positive_or_nan), ints(0), keepdims=0)
    _add(_op, ",axes0+2", t(3, 5, 7, init=_positive_or_nan), ints(0, 2))
    _add(_op, ",all", t(3, 257, init=_positive_or_nan))
    _add(_op, ",first-and-last", values([[nan, 1, 2, 3, 4], [1, 2, 3, 4, nan], [1, 2, 3, 4, 5]]), ints(1))
for _op in ("Softmax", "LogSoftmax"):
    _add(_op, ",axis1", t(33, 9, init=_positive_or_nan))
    _add(_op, ",axis0", t(9, 33, init=_positive_or_nan), axis=0)

# **** pools: NaN appears in exactly the windows that include it ****

_WINDOWS: dict[str, tuple[tuple[int, ...], dict[str, Any]]] = {
    "k2s2": ((1, 3, 8, 8), {"kernel_shape": (2, 2), "strides": (2, 2)}),
    "k3s2p1": ((2, 3, 9, 33), {"kernel_shape": (3, 3), "strides": (2, 2), "pads": (1, 1, 1, 1)}),
    "k3p1": ((1, 5, 9, 35), {"kernel_shape": (3, 3), "pads": (1, 1, 1, 1)}),
    "k5p2": ((1, 2, 13, 17), {"kernel_shape": (5, 5), "pads": (2, 2, 2, 2)}),
    "k2,dilation2": ((1, 2, 9, 7), {"kernel_shape": (2, 2), "dilations": (2, 2)}),
    "k1": ((1, 3, 5, 5), {"kernel_shape": (1, 1)}),
    "k3s2,1d": ((2, 2, 65), {"kernel_shape": (3,), "strides": (2,)}),
    "k2,3d": ((1, 2, 4, 5, 3), {"kernel_shape": (2, 2, 2)}),
}
for _label, (_shape, _window) in _WINDOWS.items():
    _pool_types = FLOATS if _label in ("k2s2", "k3s2p1", "k3p1") else _ONE_TYPE
    for _op in ("MaxPool", "AveragePool", "LpPool"):
        _add(_op, f",{_label}", t(*_shape, init=_some_nan), dtypes=_pool_types, **_window)
    # Of several NaN in a window, the first has the index.
    _add("MaxPool", f",{_label},indices", t(*_shape, init=_distinct_or_nan), outputs=2, dtypes=("float64", "float32"),
         **_window)  # fmt: skip
_add("MaxPool", ",minus-infinity-too", t(1, 2, 6, 6, init=with_elements(nan, -inf, -inf, -inf)), kernel_shape=(2, 2))
for _op in ("GlobalMaxPool", "GlobalAveragePool", "GlobalLpPool"):
    _add(_op, "", t(2, 33, 3, 3, init=_some_nan))
    _add(_op, ",1d", t(9, 3, 35, init=_some_nan))

_add("RoiPool", "", t(1, 2, 9, 9, init=_some_nan), values([[0, 1, 7, 8], [2, 2, 5, 6]]), values([2], "int32"),
     domain="lite", pooled_height=3, pooled_width=2)  # fmt: skip
_add("RoiAlign", ",max", t(1, 2, 9, 9, init=_some_nan), values([[0, 1, 7, 8], [2, 2, 5, 6]]), values([0, 0], "int64"),
     mode="max", output_height=3, output_width=2, sampling_ratio=2)  # fmt: skip

# **** orders: the first NaN is the largest number and the smallest; in sorts it is larger than any number ****

for _op in ("ArgMax", "ArgMin"):
    _add(_op, ",axis1", t(9, 33, init=_some_nan), axis=1)
    _add(_op, ",axis0", t(33, 9, init=_some_nan), axis=0, keepdims=0)
    _add(_op, ",infinities", t(9, 17, init=with_elements(nan, inf, -inf, inf, -inf)), axis=1)
    _add(_op, ",last", t(9, 33, init=_some_nan), axis=1, select_last_index=1)
    _add(_op, ",first-and-last", values([[nan, 9, 1], [9, 1, nan], [1, nan, nan], [inf, -inf, nan]]), axis=1)
_add("Hardmax", "", t(9, 33, init=_some_nan))
for _largest in (1, 0):
    _suffix = "" if _largest else ",smallest"
    _add("TopK", f",k4{_suffix}", t(9, 33, init=_some_nan), ints(4), outputs=2, largest=_largest)
    _add("TopK", f",everything{_suffix}", t(9, 17, init=with_elements(nan, inf, -inf)), ints(17), outputs=2, axis=1,
         largest=_largest)  # fmt: skip
    _add("TopK", f",axis0,k2{_suffix}", t(9, 5, init=_some_nan), ints(2), outputs=2, axis=0, largest=_largest)

# **** activations and limits of recurrent layers ****

for _activation in ("Relu", "LeakyRelu", "HardSigmoid", "Elu", "Softplus", "Softsign"):
    _add("RNN", f",{_activation}", t(3, 4, 5, init=_some_nan), const(1, 7, 5), const(1, 7, 7), hidden_size=7,
         activations=(_activation,))  # fmt: skip
for _op, _gates in (("RNN", 1), ("GRU", 3), ("LSTM", 4)):
    _add(_op, ",clip", t(3, 4, 5, init=_some_nan), const(1, _gates * 7, 5), const(1, _gates * 7, 7), hidden_size=7,
         clip=1.5)  # fmt: skip

# **** scatters ****

for _reduction in ("max", "min"):
    _add("ScatterElements", f",{_reduction}", t(3, 33, init=_some_nan), indices(33, 3, 40), t(3, 40, init=_some_nan),
         axis=1, reduction=_reduction, numerics=EXACT)  # fmt: skip
    _add("ScatterND", f",{_reduction}", t(9, 7, init=_some_nan), index_tuples((9,), 12), t(12, 7, init=_some_nan),
         reduction=_reduction, numerics=EXACT)  # fmt: skip
_add("ScatterElements", "", t(3, 33, init=_some_nan), distinct_indices(33, 1, 3, 9), t(3, 9, init=_some_nan), axis=1)
