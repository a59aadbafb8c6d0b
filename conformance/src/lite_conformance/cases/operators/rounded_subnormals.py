"""Subnormal results next to halves: the nearest number, halves to even, or zero where subnormal numbers are flushed."""

from __future__ import annotations

import numpy as np

from lite_conformance.cases.op_cases import table_of
from lite_conformance.cases.operators import (  # noqa: F401 - these modules create the tables extended here
    elementwise_binary,
    shape,
)
from lite_conformance.cases.tensors import Array, Initializer, Tensor, as_type, const, short_name, t, values
from lite_conformance.judge.tolerances import ROUNDED, epsilon, smallest_normal
from lite_core.ir import DType
from lite_core.ops.dtypes import FLOATS

# A little less and more than one half. NOTE: float32 has these digits, so that a cast of float64 by way of float32
# rounds once.
_FRACTIONS = (0.5, 0.5 - 2.0**-12, 0.5 + 2.0**-12, 0.25, 0.75, 0.0)

# **** Cast ****


def near_halves_of(to: DType) -> Initializer:
    """Return an initializer of numbers of both signs at and next to the halves between subnormal numbers of a type."""
    step = smallest_normal(to) * epsilon(to)
    count = round(1 / epsilon(to))

    def near_halves(random: np.random.Generator, size: tuple[int, ...], dtype: DType) -> Array:
        whole = random.integers(0, count, size)
        # Between zero and the smallest number, below an odd number and an even one, and below the smallest normal one.
        whole.flat[:24] = np.repeat([0, 1, 2, count - 1], len(_FRACTIONS))
        numbers = (whole + np.resize(_FRACTIONS, size)) * step
        return as_type(numbers * random.choice([-1, 1], size), dtype)

    return near_halves


#: The types with numbers between the subnormal numbers of a smaller type.
_WIDER = {
    DType.FLOAT16: ("float64", "float32", "bfloat16"),
    DType.BFLOAT16: ("float64", "float32"),
    DType.FLOAT32: ("float64",),
}
for _to, _from in _WIDER.items():
    for _suffix, _make in (("", t), (",constant", const)):
        table_of("Cast")(f"subnormal-halves,to-{short_name(_to)}{_suffix}", _make(259, init=near_halves_of(_to)),
                         to=_to, dtypes=_from, numerics=ROUNDED)  # fmt: skip

# **** Mul: normal factors, whose products are multiples of a quarter of the smallest number ****


def multiples_of_smallest_normal(random: np.random.Generator, size: tuple[int, ...], dtype: DType) -> Array:
    """Return multiples of the smallest normal number, of both signs, the first ones among them."""
    limit = round(1.25 / epsilon(dtype))
    factors = random.integers(1, limit, size)
    factors[:16] = np.arange(1, 17)
    return as_type(factors * random.choice([-1, 1], size) * smallest_normal(dtype), dtype)


def _halves(*factors: float) -> Tensor:
    def half_steps(random: np.random.Generator, size: tuple[int, ...], dtype: DType) -> Array:
        return as_type(np.reshape(factors, size) * (epsilon(dtype) / 2), dtype)

    return t(len(factors), 1, init=half_steps)


table_of("Mul")("subnormal-halves", t(257, init=multiples_of_smallest_normal), _halves(1, 1.5, 0.5, -1), dtypes=FLOATS,
                numerics=ROUNDED)  # fmt: skip
table_of("Mul")("subnormal-halves,constant", values([2.0**-14 * k for k in (1, 3, 5, 7, 1025, 2047)], "float16"),
                values(2.0**-11, "float16", constant=True), dtypes=("float16",), numerics=ROUNDED)  # fmt: skip
