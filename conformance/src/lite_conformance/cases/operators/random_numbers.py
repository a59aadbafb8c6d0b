"""Cases of the random operators: shapes and element types. Part ``random`` of the suite checks the distributions.

The cases called certain have one possible result: no spread, or probabilities of 0 and 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from lite_conformance.cases.op_cases import Draw, OpCase, OpTable, table
from lite_conformance.cases.operators.operands import FLOATS
from lite_conformance.cases.operators.strategies import shape
from lite_conformance.cases.tensors import Array, as_type, const, integers, t, uniform
from lite_core.ir import DType


def _any_value(*operands: Array) -> Array:
    return np.ones((), bool)


def _own_type(dtype: DType) -> DType:
    return dtype


_SHAPES = (
    ("2x3", (2, 3)),
    ("scalar", ()),
    ("0x3,empty", (0, 3)),
    ("1x2x1x33,odd", (1, 2, 1, 33)),
    ("five-axes", (1,) * 5),
)
#: A number of float32 that float16 and bfloat16 round to 1.
_CENTRE = 1 + 2**-12
#: Attributes with which each random number is that one.
_NORMAL: dict[str, Any] = {"mean": _CENTRE, "scale": 0.0}
_UNIFORM: dict[str, Any] = {"low": _CENTRE, "high": _CENTRE}


def _of_shape(name: str, certain: dict[str, Any]) -> None:
    cases = table(name)
    cases("3x5,certain", shape=(3, 5), dtype=_own_type, **certain)
    for label, sizes in _SHAPES:
        cases(label, shape=sizes, dtype=_own_type, seed=1.0, unspecified=_any_value)
    cases("2x3,no-seed", shape=(2, 3), dtype=_own_type, unspecified=_any_value)

    @cases.drawn
    def draw(draw: Draw, dtype: DType) -> OpCase:
        return cases.case(shape=shape(draw, 0, 4), dtype=dtype, unspecified=_any_value)


def _like(name: str, cases: OpTable, **attributes: Any) -> None:
    for label, sizes in _SHAPES:
        cases(label, t(*sizes, init=uniform(0, 1)), seed=1.0, unspecified=_any_value, **attributes)
    for to in FLOATS:
        cases(f"2x3,to-{to}", t(2, 3, init=uniform(0, 1)), dtype=to, unspecified=_any_value)

    @cases.drawn
    def draw(draw: Draw, dtype: DType) -> OpCase:
        return cases.case(t(*shape(draw, 0, 4), init=uniform(0, 1)), unspecified=_any_value, **attributes)


def _one_class(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    """Return logarithms of probabilities: in each row one class that is drawn, and others that never are."""
    logarithms = np.full(shape, -200.0)
    for row, chosen in zip(logarithms, (-2, 0, -1)):
        row[chosen] = 200.0
    return as_type(logarithms, dtype)


_of_shape("RandomNormal", _NORMAL)
_of_shape("RandomUniform", _UNIFORM)
for _name, _certain in (("RandomNormalLike", _NORMAL), ("RandomUniformLike", _UNIFORM)):
    _cases = table(_name)
    _like(_name, _cases, dtype=DType.FLOAT32)
    for _to in FLOATS:
        _cases(f"3x5,certain,to-{_to}", t(3, 5), dtype=_to, **_certain)
    _cases("3x5,certain,own-type", const(3, 5), dtypes=FLOATS, **_certain)

bernoulli = table("Bernoulli")
_like("Bernoulli", bernoulli)
bernoulli("2x3,certain", t(2, 3, init=uniform(1, 2)), seed=1.0)
bernoulli("3x5,certain,zeros-and-ones", t(3, 5, init=integers(0, 2)))
bernoulli("3x5,certain,constant", const(3, 5, init=integers(0, 2)), dtype=DType.INT64)

multinomial = table("Multinomial")
multinomial("2x5,7", t(2, 5), sample_size=7, seed=1.0, unspecified=_any_value)
multinomial("2x5,int64", t(2, 5), sample_size=7, dtype=DType.INT64, unspecified=_any_value)
multinomial("0x5,empty", t(0, 5), sample_size=3, unspecified=_any_value)
multinomial("3x1,certain", t(3, 1), sample_size=4)
for _label, _make in (("3x3,certain", t), ("3x3,certain,constant", const)):
    multinomial(_label, _make(3, 3, init=_one_class), sample_size=3)
multinomial("3x5,certain,int64", t(3, 5, init=_one_class), sample_size=33, dtype=DType.INT64)
multinomial("2x33000,certain", t(2, 33000, init=_one_class), sample_size=3)


@multinomial.drawn
def draw_multinomial(draw: Draw, dtype: DType) -> OpCase:
    sizes = [draw(st.integers(1, 9)) for _ in range(2)]
    return multinomial.case(t(*sizes), sample_size=draw(st.integers(1, 9)), unspecified=_any_value)
