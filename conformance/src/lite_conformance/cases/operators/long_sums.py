"""Sums of thousands of positive terms of nearly the same size, for which an accumulator in half precision is too small.

With terms of mean zero, errors of an accumulator hardly grow with the length of the sum. With these terms, an
accumulator in float16 or bfloat16 stops growing, and each of several partial sums is rounded in the same direction at
each step. Float32 and float64 have shorter sums, because an accumulator in the element type itself is allowed there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lite_conformance.cases.op_cases import table_of
from lite_conformance.cases.operators import (  # noqa: F401 - these modules create the tables extended here
    convolution,
    cumulative,
    einsum,
    matmul,
    normalization,
    pooling,
    reduction,
    softmax,
    transposed_convolution,
)
from lite_conformance.cases.tensors import Array, Tensor, as_type, const, ints, t, values
from lite_core.ir import DType

_HALF = ("float16", "bfloat16")
_WIDE = ("float32", "float64")
# Terms of the sums; odd, so that vectors have a remainder.
_LONG, _SHORT = 8195, 1031


def _steady(low: float, high: float) -> Callable[[np.random.Generator, tuple[int, ...], DType], Array]:
    """Return an initializer of uniform numbers; :func:`uniform` would give all of them the same description."""

    def steady(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
        return as_type(random.uniform(low, high, shape), dtype)

    return steady


# Terms between 1.06 and 1.12: all are rounded down to 1 where numbers are spaced by 1/4, and to 0 where they are
# spaced by 4. Factors are the square roots.
_terms, _factors = _steady(1.06, 1.12), _steady(1.03, 1.058)
# Terms for means and variances: far from zero, and different enough for a variance.
_spread = _steady(3, 5)


def _long(
    op: str,
    label: str,
    make: Callable[[int], tuple[Tensor | None, ...]],
    attributes: Callable[[int], dict[str, Any]] = lambda length: {},
) -> None:
    """Add a case with a long sum for half types and one with a shorter sum for wide types.

    Args:
        op: the operator.
        label: start of the cases' labels.
        make: returns the inputs for a number of terms.
        attributes: returns the attributes for a number of terms.
    """
    for length, dtypes in ((_LONG, _HALF), (_SHORT, _WIDE)):
        table_of(op)(f"{label},{length}-terms", *make(length), dtypes=dtypes, **attributes(length))


def _always(**attributes: Any) -> Callable[[int], dict[str, Any]]:
    return lambda length: attributes


_long("MatMul", "3x5", lambda n: (t(3, n, init=_factors), t(n, 5, init=_factors)))
_long("MatMul", "1x17,weights", lambda n: (t(1, n, init=_factors), const(n, 17, init=_factors)))
_long("Gemm", "3x5,transB", lambda n: (t(3, n, init=_factors), const(5, n, init=_factors), const(5)), _always(transB=1))
_long("Conv", "k1", lambda n: (t(1, n, 2, 3, init=_factors), const(3, n, 1, 1, init=_factors)))
_long(
    "Conv",
    "k3p1",
    lambda n: (t(1, n // 9, 4, 5, init=_factors), const(3, n // 9, 3, 3, init=_factors)),
    _always(pads=(1, 1, 1, 1)),
)
_long(
    "Conv",
    "depthwise",
    lambda n: (t(1, 2, 1, n + 2, init=_factors), const(2, 1, 1, n, init=_factors)),
    _always(group=2),
)
_long("ConvTranspose", "k1", lambda n: (t(1, n, 2, 3, init=_factors), const(n, 3, 1, 1, init=_factors)))
_long("Einsum", "ij,jk", lambda n: (t(3, n, init=_factors), t(n, 5, init=_factors)), _always(equation="ij,jk->ik"))
_long("CumSum", "2-rows", lambda n: (t(2, n, init=_terms), values(1, "int64", constant=True)))
for _op in ("ReduceSum", "ReduceMean", "ReduceL1", "ReduceLogSum", "ReduceLogSumExp"):
    _long(_op, "rows", lambda n: (t(3, n, init=_terms), ints(1)), _always(keepdims=0))
    _long(_op, "columns", lambda n: (t(n, 3, init=_terms), ints(0)))
for _op in ("ReduceSumSquare", "ReduceL2"):
    _long(_op, "rows", lambda n: (t(3, n, init=_factors), ints(1)), _always(keepdims=0))
    _long(_op, "columns", lambda n: (t(n, 3, init=_factors), ints(0)))
_long("GlobalAveragePool", "2-channels", lambda n: (t(1, 2, 5, n // 5, init=_terms),))
_long("AveragePool", "wide", lambda n: (t(1, 2, 1, n + 1, init=_terms),), lambda n: {"kernel_shape": (1, n)})
_long("Softmax", "2-rows", lambda n: (t(2, n, init=_terms),))
_long("LogSoftmax", "2-rows", lambda n: (t(2, n, init=_terms),))
_long("LayerNormalization", "2-rows", lambda n: (t(2, n, init=_spread), const(n), const(n)))
_long("InstanceNormalization", "2-channels", lambda n: (t(1, 2, n, init=_spread), const(2), const(2)))
