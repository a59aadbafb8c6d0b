"""The shapes that every element-wise operator is tried with: of one tensor, and of two that broadcast."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hypothesis import strategies as st

from lite_conformance.cases.op_cases import Draw, OpCase, OpTable
from lite_conformance.cases.operators.strategies import broadcastable, shape
from lite_conformance.cases.tensors import Initializer, const, normal, t
from lite_core.ir import DType

__all__ = ["add_binary_shapes", "add_unary_shapes", "draw_fraction", "draw_length"]


def draw_length(draw: Draw) -> tuple[int, ...]:
    """The shape of a vector whose end may leave a rest after whole registers, or any small shape."""
    return (draw(st.integers(0, 130)),) if draw(st.booleans()) else shape(draw, 0, 5)


def draw_fraction(draw: Draw, low: float, high: float) -> float:
    """A multiple of 1/8: the same number in every floating type, so that attributes lose nothing."""
    return float(draw(st.integers(int(low * 8), int(high * 8)))) / 8


def add_unary_shapes(
    unary: OpTable, fill: Initializer = normal, *, dtypes: Iterable[DType] | None = None, **attributes: Any
) -> None:
    """The cases of every operator on one tensor, and drawn ones.

    Args:
        unary: the table to fill.
        fill: what the tensor holds.
        dtypes: fewer element types than the table's.
        attributes: of every case, for operators that need some.
    """
    unary("scalar", t(fill=fill), dtypes=dtypes, **attributes)
    unary("1", t(1, fill=fill), dtypes=dtypes, **attributes)
    unary("2x3x7", t(2, 3, 7, fill=fill), dtypes=dtypes, **attributes)
    unary("1x257,odd", t(1, 257, fill=fill), dtypes=dtypes, **attributes)
    unary("2x3x1x5x1x3,rank6", t(2, 3, 1, 5, 1, 3, fill=fill), dtypes=dtypes, **attributes)
    unary("10007,long", t(10007, fill=fill), dtypes=dtypes, **attributes)
    unary("0x3,empty", t(0, 3, fill=fill), dtypes=dtypes, **attributes)

    @unary.drawn_for(dtypes)
    def draw_one(draw: Draw, dtype: DType) -> OpCase:
        return unary.given(t(*draw_length(draw), fill=fill), **attributes)


def add_binary_shapes(
    binary: OpTable, left: Initializer = normal, right: Initializer = normal, **attributes: Any
) -> None:
    """The cases of every operator that broadcasts two tensors, and drawn ones.

    Args:
        binary: the table to fill.
        left: what the first operand holds.
        right: what the second operand holds, for operators that cannot take everything.
        attributes: of every case, for operators that need some.
    """
    binary("2x3", t(2, 3, fill=left), t(2, 3, fill=right), **attributes)
    binary("scalar", t(fill=left), t(fill=right), **attributes)
    binary("4x1,1x5", t(4, 1, fill=left), t(1, 5, fill=right), **attributes)
    binary("2x3x4x5,3x1x1,channel", t(2, 3, 4, 5, fill=left), const(3, 1, 1, fill=right), **attributes)
    binary("2x3x4x5,3x1x1,channel-at-run-time", t(2, 3, 4, 5, fill=left), t(3, 1, 1, fill=right), **attributes)
    binary("7,2x3x7,left-is-smaller", t(7, fill=left), t(2, 3, 7, fill=right), **attributes)
    binary("33,scalar-constant", t(33, fill=left), const(fill=right), **attributes)
    binary("9,3x9,constant-on-the-left", const(9, fill=left), t(3, 9, fill=right), **attributes)
    binary("5x33,5x1,row", t(5, 33, fill=left), t(5, 1, fill=right), **attributes)
    binary("2x1x3x1,4x1x5,interleaved", t(2, 1, 3, 1, fill=left), t(4, 1, 5, fill=right), **attributes)
    binary("2x1x2x1x3x2,3x2x1x3x1,rank6", t(2, 1, 2, 1, 3, 2, fill=left), t(3, 2, 1, 3, 1, fill=right), **attributes)
    binary("1x257,odd", t(1, 257, fill=left), t(1, 257, fill=right), **attributes)
    binary("10007,long", t(10007, fill=left), t(10007, fill=right), **attributes)
    binary("0x3,1x3,empty", t(0, 3, fill=left), t(1, 3, fill=right), **attributes)

    @binary.drawn
    def draw_pair(draw: Draw, dtype: DType) -> OpCase:
        one, other = broadcastable(draw)
        return binary.given(t(*one, fill=left), t(*other, fill=right), **attributes)
