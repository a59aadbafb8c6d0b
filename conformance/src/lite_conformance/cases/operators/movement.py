"""Operators that move elements: concatenate, split, repeat, rearrange, reverse, select."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from lite_conformance.cases.op_cases import Draw, OpCase, table
from lite_conformance.cases.operators.operands import EACH_SIZE, data, run_time_ints, some_ints, whole_range
from lite_conformance.cases.operators.strategies import axis_of, shape
from lite_conformance.cases.tensors import Tensor, const, integers, ints, special, t, values
from lite_conformance.judge.tolerances import MOVED
from lite_core.ir import DType

# **** Concat, Split ****

concat = table("Concat", MOVED)
concat("2x3,2x3,axis0", data(2, 3), data(2, 3), axis=0)
concat("2x3x4,2x1x4,2x5x4,axis1", data(2, 3, 4), data(2, 1, 4), data(2, 5, 4), axis=1)
concat("2x3,2x33,axis-1", data(2, 3), data(2, 33), axis=-1)
concat("5x1,5x1,5x1,5x1,5x1,axis1,columns", *[data(5, 1)] * 5, axis=1)
concat("3x257,3x7,axis1,odd", data(3, 257), data(3, 7), axis=1)
concat("2x3x2x2x3,2x3x2x1x3,axis-2,rank5", data(2, 3, 2, 2, 3), data(2, 3, 2, 1, 3), axis=-2)
concat("2x3,alone", data(2, 3), axis=1)
concat("2x3,constant,axis0", data(2, 3), const(1, 3, init=whole_range), axis=0)
concat("2x0,2x3,axis1,one-is-empty", data(2, 0), data(2, 3), axis=1)
concat("0x3,0x4,axis1,empty", data(0, 3), data(0, 4), axis=1)
concat("9,7,special", t(9, init=special), t(7, init=special), axis=0)


@concat.drawn_for(EACH_SIZE)
def draw_concat(draw: Draw, dtype: DType) -> OpCase:
    sizes = shape(draw, 1, 4)
    axis = axis_of(draw, len(sizes))
    position = axis % len(sizes)
    parts = [
        Tensor((*sizes[:position], length, *sizes[position + 1 :]), whole_range, constant=draw(st.booleans()))
        for length in draw(st.lists(st.integers(0, 5), min_size=1, max_size=5))
    ]
    return concat.case(*parts, axis=axis)


split = table("Split", MOVED)
split("6x2,in-3,axis0-by-default", data(6, 2), outputs=3, num_outputs=3)
split("2x7,in-3,last-is-smaller", data(2, 7), outputs=3, axis=1, num_outputs=3)
split("2x6x3,sizes1+2+3,axis1", data(2, 6, 3), ints(1, 2, 3), outputs=3, axis=1)
split("3x40,sizes33+7,axis-1", data(3, 40), ints(33, 7), outputs=2, axis=-1)
split("2x6,sizes6+0,one-is-empty", data(2, 6), ints(6, 0), outputs=2, axis=1)
split("2x6,sizes0+6,one-is-empty", data(2, 6), ints(0, 6), outputs=2, axis=1)
split("5x4,alone", data(5, 4), ints(5), outputs=1)
split("2x8x2x2x2,in-2,axis1,rank5", data(2, 8, 2, 2, 2), outputs=2, axis=1, num_outputs=2)
split("0x6,in-2,empty", data(0, 6), outputs=2, axis=1, num_outputs=2)
split("2x9,sizes-at-run-time", data(2, 9), run_time_ints(4, 2, 3), outputs=3, axis=-1)
split("17,sizes8+9,special", t(17, init=special), ints(8, 9), outputs=2)


@split.drawn_for(EACH_SIZE)
def draw_split(draw: Draw, dtype: DType) -> OpCase:
    sizes = shape(draw, 1, 4)
    axis = axis_of(draw, len(sizes))
    parts = draw(st.lists(st.integers(0, 4), min_size=1, max_size=4))
    sizes = tuple(sum(parts) if i == axis % len(sizes) else n for i, n in enumerate(sizes))
    return split.case(data(*sizes), some_ints(draw, parts), outputs=len(parts), axis=axis)


# **** Tile ****

tile = table("Tile", MOVED)
tile("7,3x", data(7), ints(3))
tile("2x3,1x1,nothing-repeated", data(2, 3), ints(1, 1))
tile("2x3,2x3", data(2, 3), ints(2, 3))
tile("2x3x5,3x1x2", data(2, 3, 5), ints(3, 1, 2))
tile("1x33,4x1,rows", data(1, 33), ints(4, 1))
tile("33x1,1x5,columns", data(33, 1), ints(1, 5))
tile("2x1x3x1x2,1x2x1x3x2,rank5", data(2, 1, 3, 1, 2), ints(1, 2, 1, 3, 2))
tile("2x3,2x0,zero-times", data(2, 3), ints(2, 0))
tile("0x3,2x2,empty", data(0, 3), ints(2, 2))
tile("scalar", data(), values([], "int64", constant=True))
tile("2x3,3x2,at-run-time", data(2, 3), run_time_ints(3, 2))
tile("3x3,2x1,special", t(3, 3, init=special), ints(2, 1))


@tile.drawn_for(EACH_SIZE)
def draw_tile(draw: Draw, dtype: DType) -> OpCase:
    sizes = shape(draw, 1, 4, largest=5)
    return tile.case(data(*sizes), some_ints(draw, [draw(st.integers(0, 3)) for _ in sizes]))


# **** DepthToSpace, SpaceToDepth ****

depth_to_space = table("DepthToSpace", MOVED)
space_to_depth = table("SpaceToDepth", MOVED)
depth_to_space("n1c4h2w3,b2", data(1, 4, 2, 3), blocksize=2)
depth_to_space("n2c12h3w2,b2,dcr", data(2, 12, 3, 2), blocksize=2, mode="DCR")
depth_to_space("n2c12h3w2,b2,crd", data(2, 12, 3, 2), blocksize=2, mode="CRD")
depth_to_space("n1c27h1w5,b3,dcr", data(1, 27, 1, 5), blocksize=3, mode="DCR")
depth_to_space("n1c27h1w5,b3,crd", data(1, 27, 1, 5), blocksize=3, mode="CRD")
depth_to_space("n1c5h3w3,b1", data(1, 5, 3, 3), blocksize=1)
depth_to_space("n0c8h2w2,b2,empty", data(0, 8, 2, 2), blocksize=2)
depth_to_space("n1c8h3w3,b2,special", t(1, 8, 3, 3, init=special), blocksize=2, mode="CRD")
space_to_depth("n1c1h4w6,b2", data(1, 1, 4, 6), blocksize=2)
space_to_depth("n2c3h4w2,b2", data(2, 3, 4, 2), blocksize=2)
space_to_depth("n1c2h9w3,b3", data(1, 2, 9, 3), blocksize=3)
space_to_depth("n1c5h3w3,b1", data(1, 5, 3, 3), blocksize=1)
space_to_depth("n0c2h4w4,b2,empty", data(0, 2, 4, 4), blocksize=2)
space_to_depth("n1c2h4w6,b2,special", t(1, 2, 4, 6, init=special), blocksize=2)


@depth_to_space.drawn_for(EACH_SIZE)
def draw_depth_to_space(draw: Draw, dtype: DType) -> OpCase:
    n, c, h, w = draw(st.tuples(*[st.integers(1, 3)] * 4))
    block = draw(st.integers(1, 3))
    return depth_to_space.case(data(n, c * block**2, h, w), blocksize=block, mode=draw(st.sampled_from(["DCR", "CRD"])))


@space_to_depth.drawn_for(EACH_SIZE)
def draw_space_to_depth(draw: Draw, dtype: DType) -> OpCase:
    n, c, h, w = draw(st.tuples(*[st.integers(1, 3)] * 4))
    block = draw(st.integers(1, 3))
    return space_to_depth.case(data(n, c, h * block, w * block), blocksize=block)


# **** ReverseSequence, Compress, Trilu ****

reverse_sequence = table("ReverseSequence", MOVED)
reverse_sequence("time4,batch4", data(4, 4), ints(4, 3, 2, 1))
reverse_sequence("batch3,time5", data(3, 5), ints(5, 1, 2), batch_axis=0, time_axis=1)
reverse_sequence("time7,batch2,3x2", data(7, 2, 3, 2), ints(6, 7))
reverse_sequence("batch2,time33,3", data(2, 33, 3), ints(33, 32), batch_axis=0, time_axis=1)
reverse_sequence("time5,batch3,length0", data(5, 3), ints(0, 5, 1))
reverse_sequence("time5,batch3,at-run-time", data(5, 3, 2), run_time_ints(2, 4, 3))
reverse_sequence("time1,batch1", data(1, 1), ints(1))
reverse_sequence("time3,batch0,empty", data(3, 0, 2), values([], "int64", constant=True))
reverse_sequence("time9,batch2,special", t(9, 2, init=special), ints(8, 9))


@reverse_sequence.drawn_for(EACH_SIZE)
def draw_reverse_sequence(draw: Draw, dtype: DType) -> OpCase:
    time, batch = draw(st.integers(1, 7)), draw(st.integers(1, 4))
    batch_axis = draw(st.integers(0, 1))
    front = (batch, time) if batch_axis == 0 else (time, batch)
    lengths = [draw(st.integers(0, time)) for _ in range(batch)]
    return reverse_sequence.case(
        data(*front, *shape(draw, 0, 2, largest=4)),
        some_ints(draw, lengths),
        batch_axis=batch_axis,
        time_axis=1 - batch_axis,
    )


def _mask(*chosen: int, constant: bool = False) -> Tensor:
    return values(chosen, "bool", constant=constant)


compress = table("Compress", MOVED)
compress("5x3,axis0", data(5, 3), _mask(1, 0, 1, 1, 0), axis=0)
compress("2x5x3,axis1,constant", data(2, 5, 3), _mask(0, 1, 0, 0, 1, constant=True), axis=1)
compress("3x33,axis-1", data(3, 33), t(33, dtype="bool"), axis=-1)
compress("3x4,flattened", data(3, 4), t(12, dtype="bool"))
compress("3x4,flattened,constant", data(3, 4), const(12, dtype="bool"))
compress("4x3,axis0,shorter-condition", data(4, 3), _mask(0, 1), axis=0)
compress("3x4,flattened,shorter-condition", data(3, 4), _mask(0, 1, 1, 0, 1))
compress("4x3,none", data(4, 3), _mask(0, 0, 0, 0), axis=0)
compress("4x3,every", data(4, 3), _mask(1, 1, 1, 1), axis=0)
compress("0x3,axis1,empty", data(0, 3), _mask(1, 0, 1), axis=1)
compress("9,special", t(9, init=special), _mask(1, 0, 1, 1, 1, 1, 0, 1, 1), axis=0)


@compress.drawn_for(EACH_SIZE)
def draw_compress(draw: Draw, dtype: DType) -> OpCase:
    sizes = shape(draw, 1, 4, smallest=1)
    flat = draw(st.booleans())
    axis = axis_of(draw, len(sizes))
    attributes: dict[str, Any] = {} if flat else {"axis": axis}
    most = 9 if flat else sizes[axis]
    length = draw(st.integers(1, min(most, _count(sizes))))
    condition = Tensor((length,), integers(0, 2), "bool", constant=draw(st.booleans()))
    return compress.case(data(*sizes), condition, **attributes)


def _count(sizes: tuple[int, ...]) -> int:
    count = 1
    for size in sizes:
        count *= size
    return count


def _scalar(number: int) -> Tensor:
    return values(number, "int64", constant=True)


trilu = table("Trilu", MOVED)
trilu("5x5", data(5, 5))
trilu("5x5,lower", data(5, 5), upper=0)
trilu("4x7,k2", data(4, 7), _scalar(2))
trilu("7x4,k-2", data(7, 4), _scalar(-2))
trilu("4x7,k1,lower", data(4, 7), _scalar(1), upper=0)
trilu("7x4,k-3,lower", data(7, 4), _scalar(-3), upper=0)
trilu("2x3x5x6,k1,batches", data(2, 3, 5, 6), _scalar(1))
trilu("5x4,k-at-run-time", data(5, 4), values(-1, "int64"))
trilu("5x4,k-at-run-time,lower", data(5, 4), values(2, "int64"), upper=0)
trilu("4x4,k-beyond-everything", data(4, 4), _scalar(2**40))
trilu("4x4,k-below-everything", data(4, 4), _scalar(-(2**40)))
trilu("4x5,k-largest", data(4, 5), _scalar(2**63 - 1))
trilu("33x7,odd", data(33, 7))
trilu("1x1", data(1, 1))
trilu("2x0x3,empty", data(2, 0, 3), upper=0)
# Kernels that multiply by a mask of zeros turn removed infinities into NaN.
trilu("9x9,special", t(9, 9, init=special))


@trilu.drawn_for(EACH_SIZE)
def draw_trilu(draw: Draw, dtype: DType) -> OpCase:
    k = [values(draw(st.integers(-8, 8)), "int64", constant=draw(st.booleans()))] if draw(st.booleans()) else []
    return trilu.case(data(*shape(draw, 2, 4)), *k, upper=draw(st.integers(0, 1)))
