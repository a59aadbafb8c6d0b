"""Cases of the random operators: shapes and element types. Part ``random`` of the suite checks the distributions."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from lite_conformance.cases.op_cases import Draw, OpCase, OpTable, table
from lite_conformance.cases.operators.operands import FLOATS
from lite_conformance.cases.operators.strategies import shape
from lite_conformance.cases.tensors import Array, t, uniform
from lite_core.ir import DType


def _any_value(*operands: Array) -> Array:
    return np.ones((), bool)


def _own_type(dtype: DType) -> DType:
    return dtype


def _of_shape(name: str) -> None:
    cases = table(name)
    for label, sizes in (("2x3", (2, 3)), ("scalar", ()), ("0x3,empty", (0, 3)), ("1x2x1x33,odd", (1, 2, 1, 33))):
        cases(label, shape=sizes, dtype=_own_type, seed=1.0, unspecified=_any_value)
    cases("2x3,no-seed", shape=(2, 3), dtype=_own_type, unspecified=_any_value)

    @cases.drawn
    def draw(draw: Draw, dtype: DType) -> OpCase:
        return cases.case(shape=shape(draw, 0, 4), dtype=dtype, unspecified=_any_value)


def _like(name: str, cases: OpTable, **attributes: Any) -> None:
    for label, sizes in (("2x3", (2, 3)), ("scalar", ()), ("0x3,empty", (0, 3)), ("1x2x1x33,odd", (1, 2, 1, 33))):
        cases(label, t(*sizes, init=uniform(0, 1)), seed=1.0, unspecified=_any_value, **attributes)
    for to in FLOATS:
        cases(f"2x3,to-{to}", t(2, 3, init=uniform(0, 1)), dtype=to, unspecified=_any_value)

    @cases.drawn
    def draw(draw: Draw, dtype: DType) -> OpCase:
        return cases.case(t(*shape(draw, 0, 4), init=uniform(0, 1)), unspecified=_any_value, **attributes)


_of_shape("RandomNormal")
_of_shape("RandomUniform")
_like("RandomNormalLike", table("RandomNormalLike"), dtype=DType.FLOAT32)
_like("RandomUniformLike", table("RandomUniformLike"), dtype=DType.FLOAT32)

bernoulli = table("Bernoulli")
_like("Bernoulli", bernoulli)
bernoulli("2x3,certain", t(2, 3, init=uniform(1, 2)), seed=1.0)

multinomial = table("Multinomial")
multinomial("2x5,7", t(2, 5), sample_size=7, seed=1.0, unspecified=_any_value)
multinomial("2x5,int64", t(2, 5), sample_size=7, dtype=DType.INT64, unspecified=_any_value)
multinomial("0x5,empty", t(0, 5), sample_size=3, unspecified=_any_value)
multinomial("3x1,certain", t(3, 1), sample_size=4)


@multinomial.drawn
def draw_multinomial(draw: Draw, dtype: DType) -> OpCase:
    sizes = [draw(st.integers(1, 9)) for _ in range(2)]
    return multinomial.case(t(*sizes), sample_size=draw(st.integers(1, 9)), unspecified=_any_value)
