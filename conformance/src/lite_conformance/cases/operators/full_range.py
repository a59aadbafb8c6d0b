"""Comparisons of integers of the whole range, and of large integers that differ by a few.

A kernel that compares in floating point, or takes an unsigned type for a signed one, is right for small integers.
"""

from __future__ import annotations

import numpy as np

from lite_conformance.cases.op_cases import table_of
from lite_conformance.cases.operators import (  # noqa: F401 - these modules create the tables extended here
    comparison,
    elementwise_binary,
    reduction,
    search,
)
from lite_conformance.cases.operators.operands import INTEGERS, whole_range
from lite_conformance.cases.tensors import Array, Tensor, const, ints, t
from lite_core.ir import DType


def _near_the_largest(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    """Return the largest integers of the type, in random order with repetitions."""
    info = np.iinfo(dtype.numpy)
    return np.asarray(info.max - random.integers(0, 5, shape).astype(dtype.numpy)).astype(dtype.numpy)


def _both(op: str, *shapes: tuple[int, ...]) -> None:
    """Add cases of an operator on run-time inputs of these shapes."""
    for label, init in (("full-range", whole_range), ("near-the-largest", _near_the_largest)):
        inputs: list[Tensor] = [t(*shape, init=init) for shape in shapes]
        table_of(op)(label, *inputs, dtypes=INTEGERS)
        if len(shapes) == 2:
            table_of(op)(f"{label},constant", inputs[0], const(*shapes[1], init=init), dtypes=INTEGERS)


for _op in ("Max", "Min", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Equal"):
    _both(_op, (7, 33), (33,))
for _op in ("ReduceMax", "ReduceMin"):
    table_of(_op)("near-the-largest", t(7, 33, init=_near_the_largest), ints(1), dtypes=INTEGERS)
table_of("TopK")("near-the-largest", t(7, 33, init=_near_the_largest), ints(9), outputs=2, dtypes=INTEGERS)
for _op in ("ArgMax", "ArgMin"):
    table_of(_op)("near-the-largest", t(7, 33, init=_near_the_largest), axis=1, dtypes=INTEGERS)
