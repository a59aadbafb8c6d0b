"""The shapes that every element-wise operator is tested with: of one tensor, and of two that broadcast."""

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
    """Draw the shape of a vector, often not a multiple of a register's length, or any small shape."""
    return (draw(st.integers(0, 130)),) if draw(st.booleans()) else shape(draw, 0, 5)


def draw_fraction(draw: Draw, low: float, high: float) -> float:
    """Draw a multiple of 1/8, which every floating type represents exactly, so that attributes are not rounded."""
    return float(draw(st.integers(int(low * 8), int(high * 8)))) / 8


def add_unary_shapes(
    unary: OpTable, init: Initializer = normal, *, dtypes: Iterable[DType] | None = None, **attributes: Any
) -> None:
    """Add the cases of every operator on one tensor, and drawn ones.

    Args:
        unary: the table to extend.
        init: initializer of the tensor.
        dtypes: a subset of the table's element types.
        attributes: attributes of every case, for operators that require some.
    """
    unary("scalar", t(init=init), dtypes=dtypes, **attributes)
    unary("1", t(1, init=init), dtypes=dtypes, **attributes)
    unary("2x3x7", t(2, 3, 7, init=init), dtypes=dtypes, **attributes)
    unary("1x257,odd", t(1, 257, init=init), dtypes=dtypes, **attributes)
    unary("2x3x1x5x1x3,rank6", t(2, 3, 1, 5, 1, 3, init=init), dtypes=dtypes, **attributes)
    unary("10007,long", t(10007, init=init), dtypes=dtypes, **attributes)
    unary("0x3,empty", t(0, 3, init=init), dtypes=dtypes, **attributes)

    @unary.drawn_for(dtypes)
    def draw_one(draw: Draw, dtype: DType) -> OpCase:
        return unary.case(t(*draw_length(draw), init=init), **attributes)


def add_binary_shapes(
    binary: OpTable, left: Initializer = normal, right: Initializer = normal, **attributes: Any
) -> None:
    """Add the cases of every operator that broadcasts two tensors, and drawn ones.

    Args:
        binary: the table to extend.
        left: initializer of the first operand.
        right: initializer of the second operand, such as divisors.
        attributes: attributes of every case, for operators that require some.
    """
    binary("2x3", t(2, 3, init=left), t(2, 3, init=right), **attributes)
    binary("scalar", t(init=left), t(init=right), **attributes)
    binary("4x1,1x5", t(4, 1, init=left), t(1, 5, init=right), **attributes)
    binary("2x3x4x5,3x1x1,channel", t(2, 3, 4, 5, init=left), const(3, 1, 1, init=right), **attributes)
    binary("2x3x4x5,3x1x1,channel-at-run-time", t(2, 3, 4, 5, init=left), t(3, 1, 1, init=right), **attributes)
    binary("7,2x3x7,left-is-smaller", t(7, init=left), t(2, 3, 7, init=right), **attributes)
    binary("33,scalar-constant", t(33, init=left), const(init=right), **attributes)
    binary("9,3x9,constant-on-the-left", const(9, init=left), t(3, 9, init=right), **attributes)
    binary("5x33,5x1,row", t(5, 33, init=left), t(5, 1, init=right), **attributes)
    binary("2x1x3x1,4x1x5,interleaved", t(2, 1, 3, 1, init=left), t(4, 1, 5, init=right), **attributes)
    binary("2x1x2x1x3x2,3x2x1x3x1,rank6", t(2, 1, 2, 1, 3, 2, init=left), t(3, 2, 1, 3, 1, init=right), **attributes)
    binary("1x257,odd", t(1, 257, init=left), t(1, 257, init=right), **attributes)
    binary("10007,long", t(10007, init=left), t(10007, init=right), **attributes)
    binary("0x3,1x3,empty", t(0, 3, init=left), t(1, 3, init=right), **attributes)

    @binary.drawn
    def draw_pair(draw: Draw, dtype: DType) -> OpCase:
        one, other = broadcastable(draw)
        return binary.case(t(*one, init=left), t(*other, init=right), **attributes)
