"""Cases of the operators of lists of tensors."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import strategies as st

from lite_conformance.cases.op_cases import Draw, OpCase, table
from lite_conformance.cases.operators.operands import EACH_SIZE, data
from lite_conformance.cases.operators.strategies import shape
from lite_conformance.cases.tensors import Tensor, ints, special, t, values
from lite_conformance.judge.tolerances import MOVED
from lite_core.ir import DType

#: The sizes of each tensor of a list.
Sizes = list[tuple[int, ...]]


def _list(sizes: Sizes, rank: int) -> tuple[Tensor, Tensor]:
    """Return the elements and the shapes of a list of tensors with ``rank`` dimensions."""
    shapes = np.array(sizes, np.int64).reshape(len(sizes), rank)
    return data(sum(math.prod(row) for row in sizes)), values(shapes, "int64")


def _position(number: int, dtype: str = "int64", *, constant: bool = False) -> Tensor:
    return values(number, dtype, constant=constant)


def _special(*sizes: int) -> Tensor:
    return t(*sizes, init=special)


_THREE: Sizes = [(2, 3), (1, 4), (5, 1)]
_EMPTY: Sizes = [(2, 0), (0, 0), (3, 2)]

# **** ListOf ****

of = table("ListOf", MOVED, domain="lite")
of("2x3,1x4,5x1", data(2, 3), data(1, 4), data(5, 1), outputs=2)
of("one", data(33), outputs=2)
of("scalars", data(), data(), outputs=2)
of("special", _special(3, 5), _special(9, 2), outputs=2)
of("66000,large", data(66000), data(3), outputs=2)
of("2x0,3x2,empty", data(2, 0), data(3, 2), outputs=2)


@of.drawn_for(EACH_SIZE)
def draw_of(draw: Draw, dtype: DType) -> OpCase:
    rank = draw(st.integers(0, 3))
    return of.case(*[data(*shape(draw, rank, rank)) for _ in range(draw(st.integers(1, 4)))], outputs=2)


# **** ListInsert ****

insert = table("ListInsert", MOVED, domain="lite")
insert("3,at-end", *_list(_THREE, 2), data(2, 2), outputs=2)
for _at in (0, 1, 3, -1, -3):
    insert(f"3,at{_at}", *_list(_THREE, 2), data(2, 2), _position(_at), outputs=2)
insert("3,at1,constant", *_list(_THREE, 2), data(2, 2), _position(1, constant=True), outputs=2)
insert("3,at2,int32", *_list(_THREE, 2), data(2, 2), _position(2, "int32"), outputs=2)
insert("into-nothing", *_list([], 2), data(2, 2), outputs=2)
insert("into-nothing,other-rank", *_list([], 0), data(2, 2, 3), outputs=2)
insert("3,empty-tensors", *_list(_EMPTY, 2), data(0, 7), _position(1), outputs=2)
insert("special", _special(33), values([[33]], "int64"), _special(20), outputs=2)
insert("66000,large", *_list([(66000,)], 1), data(3), _position(0), outputs=2)
insert("scalars", *_list([(), ()], 0), data(), _position(1), outputs=2)


@insert.drawn_for(EACH_SIZE)
def draw_insert(draw: Draw, dtype: DType) -> OpCase:
    rank, sizes = _draw_list(draw)
    at = draw(st.integers(-len(sizes), len(sizes)))
    return insert.case(*_list(sizes, rank), data(*shape(draw, rank, rank)), _position(at), outputs=2)


def _draw_list(draw: Draw, least: int = 0) -> tuple[int, Sizes]:
    rank = draw(st.integers(0, 3))
    return rank, [tuple(shape(draw, rank, rank)) for _ in range(draw(st.integers(least, 4)))]


# **** ListErase, ListAt ****

erase = table("ListErase", MOVED, domain="lite")
at = table("ListAt", MOVED, domain="lite")
erase("3,last", *_list(_THREE, 2), outputs=2)
erase("1,the-only-one", *_list(_THREE[:1], 2), outputs=2)
for _at in (0, 1, 2, -1, -3):
    erase(f"3,at{_at}", *_list(_THREE, 2), _position(_at), outputs=2)
    at(f"3,at{_at}", *_list(_THREE, 2), _position(_at))
    at(f"3,at{_at},empty-tensors", *_list(_EMPTY, 2), _position(_at))
erase("3,at1,empty-tensors", *_list(_EMPTY, 2), _position(1), outputs=2)
at("3,at1,int32", *_list(_THREE, 2), _position(1, "int32"))
at("3,at1,vector", *_list(_THREE, 2), ints(1))
erase("3,at1,int32", *_list(_THREE, 2), _position(1, "int32"), outputs=2)
erase("special", _special(53), values([[20], [33]], "int64"), _position(0), outputs=2)
erase("66000,large", *_list([(3,), (66000,), (5,)], 1), _position(0), outputs=2)
at("66000,large", *_list([(3,), (66000,)], 1), _position(1))
at("special", _special(33), values([[33]], "int64"), _position(0))
at("scalars", *_list([(), ()], 0), _position(1))


@erase.drawn_for(EACH_SIZE)
def draw_erase(draw: Draw, dtype: DType) -> OpCase:
    rank, sizes = _draw_list(draw, 1)
    return erase.case(*_list(sizes, rank), _position(draw(st.integers(-len(sizes), len(sizes) - 1))), outputs=2)


@at.drawn_for(EACH_SIZE)
def draw_at(draw: Draw, dtype: DType) -> OpCase:
    rank, sizes = _draw_list(draw, 1)
    return at.case(*_list(sizes, rank), _position(draw(st.integers(-len(sizes), len(sizes) - 1))))


# **** ListSplit ****

split = table("ListSplit", MOVED, domain="lite")
split("5x3,ones", data(5, 3), outputs=2)
split("5x3,ones,axis1", data(5, 3), axis=1, outputs=2)
split("5x3,ones,no-axis", data(5, 3), keepdims=0, outputs=2)
split("5x3,by2", data(5, 3), _position(2), outputs=2)
split("5x3,by2,keepdims-ignored", data(5, 3), _position(2), keepdims=0, outputs=2)
split("5x3,by9", data(5, 3), _position(9, "int32"), outputs=2)
split("3x7,4+0+3,axis-1", data(3, 7), values([4, 0, 3], "int64"), axis=-1, outputs=2)
split("0x3,nothing", data(0, 3), outputs=2)
split("0x3,nothing,no-axis", data(0, 3), keepdims=0, outputs=2)
split("0x3,no-parts", data(0, 3), values(np.zeros(0, np.int64), "int64"), outputs=2)
split("5x3,by2,int32", data(5, 3), _position(2, "int32"), outputs=2)
split("66000,large", data(66000), _position(33000), outputs=2)
split("33,special", _special(33), _position(8), outputs=2)
split("33,odd", data(33), _position(8), outputs=2)


@split.drawn_for(EACH_SIZE)
def draw_split(draw: Draw, dtype: DType) -> OpCase:
    sizes = shape(draw, 1, 3)
    axis = draw(st.integers(-len(sizes), len(sizes) - 1))
    by = [_position(draw(st.integers(1, 5)))] if draw(st.booleans()) else []
    return split.case(data(*sizes), *by, axis=axis, keepdims=draw(st.integers(0, 1)), outputs=2)


# **** ListConcat ****

concat = table("ListConcat", MOVED, domain="lite")
concat("3,axis0", *_list([(2, 3), (1, 3), (4, 3)], 2), axis=0)
concat("3,axis-1", *_list([(2, 3), (2, 1), (2, 4)], 2), axis=-1)
concat("3,new-axis0", *_list([(2, 3)] * 3, 2), axis=0, new_axis=1)
concat("3,new-axis-1", *_list([(2, 3)] * 3, 2), axis=-1, new_axis=1)
concat("scalars,new-axis", *_list([(), (), ()], 0), axis=0, new_axis=1)
concat("3,empty-tensors", *_list([(2, 0), (2, 3), (2, 0)], 2), axis=1)
concat("66000,large", *_list([(66000,), (3,)], 1), axis=0)
concat("special", _special(33), values([[20], [13]], "int64"), axis=0)
concat("one", *_list([(33,)], 1), axis=0)


@concat.drawn_for(EACH_SIZE)
def draw_concat(draw: Draw, dtype: DType) -> OpCase:
    sizes = tuple(shape(draw, 1, 3))
    axis = draw(st.integers(-len(sizes), len(sizes) - 1))
    lengths = [draw(st.integers(0, 4)) for _ in range(draw(st.integers(1, 4)))]
    along = axis % len(sizes)
    rows = [(*sizes[:along], length, *sizes[along + 1 :]) for length in lengths]
    return concat.case(*_list(rows, len(sizes)), axis=axis)
