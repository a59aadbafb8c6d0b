"""Operators that only move elements keep every bit: signs of zeros, subnormal numbers. Only a NaN's payload may change.

The suite compares these operators by :data:`lite_conformance.judge.tolerances.MOVED`, in their other cases, too.
"""

from __future__ import annotations

from math import inf, nan
from typing import Any

import numpy as np

from lite_conformance.cases.op_cases import table_of
from lite_conformance.cases.operators import (  # noqa: F401 - these modules create the tables extended here
    comparison,
    gather,
    generate,
    movement,
    padding,
    pooling,
    scatter,
    search,
    shape,
    slicing,
)
from lite_conformance.cases.operators.operands import distinct_indices, distinct_tuples, index_tuples, indices
from lite_conformance.cases.tensors import Array, Tensor, const, ints, largest_finite, t, values
from lite_conformance.judge.tolerances import epsilon, smallest_normal
from lite_core.ir import DType
from lite_core.ops.dtypes import FLOATS


def _delicate(random: np.random.Generator, sizes: tuple[int, ...], dtype: DType) -> Array:
    """Return zeros of both signs, subnormal numbers, extremes, infinities and NaN, in random order."""
    least, most = smallest_normal(dtype), largest_finite(dtype)
    smallest = least * epsilon(dtype)
    numbers = [0.0, -0.0, smallest, -smallest, least - smallest, smallest - least, least, -least, most, -most, inf, nan]
    return random.choice(np.array(numbers).astype(dtype.numpy), sizes)


def _x(*sizes: int) -> Tensor:
    return t(*sizes, init=_delicate)


def _w(*sizes: int) -> Tensor:
    return const(*sizes, init=_delicate)


def _add(op: str, *inputs: Tensor | None, label: str = "", **attributes: Any) -> None:
    attributes.setdefault("dtypes", FLOATS)
    table_of(op)(f"every-bit{label}", *inputs, **attributes)


# **** shapes and order ****

for _op in ("Identity", "Dropout", "Flatten"):
    _add(_op, _x(7, 37))
_add("Reshape", _x(7, 6), ints(14, 3))
_add("Squeeze", _x(1, 37))
_add("Unsqueeze", _x(37), ints(0))
_add("Expand", _x(37, 1), ints(2, 37, 9))
_add("Transpose", _x(7, 37))
_add("Transpose", _x(5, 33, 18), label=",planes", perm=(0, 2, 1))
_add("Concat", _x(5, 7), _w(5, 9), _x(5, 1), axis=1)
_add("Split", _x(7, 37), ints(17, 20), outputs=2, axis=1)
_add("Tile", _x(5, 7), ints(2, 3))
_add("DepthToSpace", _x(1, 8, 5, 7), blocksize=2)
_add("SpaceToDepth", _x(1, 2, 6, 8), blocksize=2)
_add("ReverseSequence", _x(9, 5), ints(9, 1, 5, 7, 3))
_add("Compress", _x(9, 5), values([1, 0, 1, 1, 0, 1, 1, 1, 0], "bool"), axis=0)
_add("Trilu", _x(9, 11))
_add("Slice", _x(9, 37), ints(1, 2), ints(9, 37), ints(0, 1), ints(1, 3))
_add("Slice", _x(9, 37), ints(-1), ints(-100), ints(1), ints(-1), label=",backwards")
_add("CenterCropPad", _x(9, 7), ints(5, 11))
for _mode in ("constant", "reflect", "edge", "wrap"):
    _add("Pad", _x(5, 7), ints(1, 2, 0, 3), label=f",{_mode}", mode=_mode)
for _number in (-0.0, 0.0):
    _add("Pad", _x(5, 7), ints(1, 2, 0, 3), values(_number, constant=True), label=f",padded-with{_number}")
_add("Where", t(9, 37, dtype="bool"), _x(9, 37), _x(37))
_add("Where", t(9, 37, dtype="bool"), _x(9, 37), values(-0.0, constant=True), label=",constant")

# **** indices ****

_add("Gather", _x(9, 37), indices(9, 5))
_add("Gather", _x(9, 37), indices(37, 5), label=",axis1", axis=1)
_add("GatherElements", _x(9, 37), indices(37, 9, 11), axis=1)
_add("GatherND", _x(9, 7, 5), index_tuples((9, 7), 11))
_add("ScatterElements", _x(9, 37), distinct_indices(37, 1, 9, 11), _x(9, 11), axis=1)
_add("ScatterND", _x(9, 7, 5), distinct_tuples((9, 7), 11), _x(11, 5))
_add(
    "OneHot",
    values([0, 3, -1, 5]),
    values(4, "int64", constant=True),
    values([-0.0, 2.0]),
    dtypes=("float32", "float64"),
)
_add("MaxUnpool", _x(1, 1, 2, 4), values([[[[0, 2, 4, 7], [16, 18, 21, 31]]]], "int64"),
     kernel_shape=(2, 2), strides=(2, 2))  # fmt: skip
_add("ConstantOfShape", ints(3, 37), value=lambda dtype: np.array([-0.0], dtype.numpy))
