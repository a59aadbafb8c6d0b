"""Cases of Gather, GatherElements, GatherND."""

from __future__ import annotations

from hypothesis import strategies as st

from lite_conformance.cases.op_cases import Draw, OpCase, table
from lite_conformance.cases.operators.operands import EACH_SIZE, data, index_tuples, indices, whole_range
from lite_conformance.cases.operators.strategies import axis_of, shape
from lite_conformance.cases.tensors import Tensor, const, special, t, values
from lite_conformance.judge.tolerances import MOVED
from lite_core.ir import DType

gather = table("Gather", MOVED)
gather("5x3,2", data(5, 3), indices(5, 2))
gather("5x3,2x4,rank2-indices", data(5, 3), indices(5, 2, 4))
gather("2x7x3,4,axis1", data(2, 7, 3), indices(7, 4), axis=1)
gather("2x3x33,5x2,axis-1", data(2, 3, 33), indices(33, 5, 2), axis=-1)
gather("2x5x3x4,3,axis-3", data(2, 5, 3, 4), indices(5, 3), axis=-3)
gather("5x3,one-index,axis-goes", data(5, 3), indices(5))
gather("7,one-index,scalar", data(7), values(-1, "int64", constant=True))
gather("5x3,4,int32", data(5, 3), indices(5, 4, dtype="int32"))
gather("5x3,ends", data(5, 3), values([0, 4, -5, -1, 2, 2], "int64"))
gather("2x5,3,axis1,constant-indices", data(2, 5), indices(5, 3, constant=True), axis=1)
gather("257x33,3x5,embedding", const(257, 33, init=whole_range), indices(257, 3, 5))
gather("5x3,0,no-indices", data(5, 3), indices(5, 0))
gather("5x0,2,empty", data(5, 0), indices(5, 2))
gather("9x5,7,special", t(9, 5, init=special), indices(9, 7))


@gather.drawn_for(EACH_SIZE)
def draw_gather(draw: Draw, dtype: DType) -> OpCase:
    sizes = shape(draw, 1, 4, smallest=1)
    axis = axis_of(draw, len(sizes))
    kind, constant = draw(st.sampled_from(["int32", "int64"])), draw(st.booleans())
    index = indices(sizes[axis], *shape(draw, 0, 2, largest=5), dtype=kind, constant=constant)
    return gather.case(data(*sizes), index, axis=axis)


gather_elements = table("GatherElements", MOVED)
gather_elements("5x3,2x3,axis0-by-default", data(5, 3), indices(5, 2, 3))
gather_elements("3x5,3x7,axis1", data(3, 5), indices(5, 3, 7), axis=1)
gather_elements("2x3x33,2x3x9,axis-1", data(2, 3, 33), indices(33, 2, 3, 9), axis=-1)
gather_elements("4x5x6,2x7x3,axis1,smaller-indices", data(4, 5, 6), indices(5, 2, 7, 3), axis=1)
gather_elements("4x5x6,9x2x3,axis-3,smaller-indices", data(4, 5, 6), indices(4, 9, 2, 3), axis=-3)
gather_elements("7,11", data(7), indices(7, 11))
gather_elements("3x5,3x4,int32", data(3, 5), indices(5, 3, 4, dtype="int32"), axis=1)
gather_elements("3x5,3x4,constant-indices", data(3, 5), indices(5, 3, 4, constant=True), axis=1)
gather_elements("3x5,constant", const(3, 5, init=whole_range), indices(3, 2, 5))
gather_elements("3x5,0x5,no-indices", data(3, 5), indices(3, 0, 5))
gather_elements("5x257,5x257,odd", data(5, 257), indices(257, 5, 257), axis=1)
gather_elements("9x5,7x5,special", t(9, 5, init=special), indices(9, 7, 5))


@gather_elements.drawn_for(EACH_SIZE)
def draw_gather_elements(draw: Draw, dtype: DType) -> OpCase:
    sizes = shape(draw, 1, 4, smallest=1)
    axis = axis_of(draw, len(sizes))
    wanted = [draw(st.integers(0, 7 if i == axis % len(sizes) else n)) for i, n in enumerate(sizes)]
    index = indices(sizes[axis], *wanted, dtype=draw(st.sampled_from(["int32", "int64"])))
    return gather_elements.case(data(*sizes), index, axis=axis)


gather_nd = table("GatherND", MOVED)
gather_nd("3x4,5x2,elements", data(3, 4), index_tuples((3, 4), 5))
gather_nd("3x4x5,6x1,slices", data(3, 4, 5), index_tuples((3,), 6))
gather_nd("3x4x5,2x3x2,slices", data(3, 4, 5), index_tuples((3, 4), 2, 3))
gather_nd("3x4,2,one-element", data(3, 4), index_tuples((3, 4)))
gather_nd("7,3x1", data(7), index_tuples((7,), 3))
gather_nd("2x3x4,2x5x1,batch1", data(2, 3, 4), index_tuples((3,), 2, 5), batch_dims=1)
gather_nd("2x3x4,2x2,batch1,one-each", data(2, 3, 4), index_tuples((3, 4), 2), batch_dims=1)
gather_nd("2x3x4x5,2x3x6x1,batch2", data(2, 3, 4, 5), index_tuples((4,), 2, 3, 6), batch_dims=2)
gather_nd("33x7x3,257x2,odd", data(33, 7, 3), index_tuples((33, 7), 257))
gather_nd("3x4,ends,constant", data(3, 4), values([[0, 0], [2, 3], [-3, -4], [-1, -1]], "int64", constant=True))
gather_nd("constant", const(3, 4, 2, init=whole_range), index_tuples((3, 4), 5))
gather_nd("3x4,0x2,no-indices", data(3, 4), index_tuples((3, 4), 0))
gather_nd("5x9,7x1,special", t(5, 9, init=special), index_tuples((5,), 7))


@gather_nd.drawn_for(EACH_SIZE)
def draw_gather_nd(draw: Draw, dtype: DType) -> OpCase:
    sizes = shape(draw, 1, 4, smallest=1, largest=5)
    batch = draw(st.integers(0, len(sizes) - 1))
    depth = draw(st.integers(1, len(sizes) - batch))
    index: Tensor = index_tuples(sizes[batch : batch + depth], *sizes[:batch], *shape(draw, 0, 2, largest=4))
    return gather_nd.case(data(*sizes), index, batch_dims=batch)
