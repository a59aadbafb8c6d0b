"""Operators that read or change shapes without changing elements; Cast."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from lite_conformance.cases.op_cases import Draw, OpCase, table
from lite_conformance.cases.operators.operands import (
    ALL,
    EACH_SIZE,
    FLOATS,
    data,
    run_time_ints,
    some_ints,
    whole_range,
)
from lite_conformance.cases.operators.strategies import broadcastable, shape
from lite_conformance.cases.tensors import Array, Tensor, const, ints, normal, short_name, special, t, values
from lite_conformance.judge.tolerances import MOVED
from lite_core.ir import DType

_NONE = values([], "int64", constant=True)

# **** Identity, Shape, Size ****

identity = table("Identity", MOVED)
identity("2x3", data(2, 3))
identity("scalar", data())
identity("257,odd", data(257))
identity("0x3,empty", data(0, 3))
identity("constant", const(3, 5, init=whole_range))
identity("special", t(5, 7, init=special))


@identity.drawn_for(EACH_SIZE)
def draw_identity(draw: Draw, dtype: DType) -> OpCase:
    return identity.case(data(*shape(draw, 0, 5)))


shape_of = table("Shape")
shape_of("2x3x4", data(2, 3, 4))
shape_of("scalar", data())
shape_of("0x3,empty", data(0, 3))
shape_of("2x3x4x5,start1", data(2, 3, 4, 5), start=1)
shape_of("2x3x4x5,start-2", data(2, 3, 4, 5), start=-2)
shape_of("2x3x4x5,end2", data(2, 3, 4, 5), end=2)
shape_of("2x3x4x5,start1,end-1", data(2, 3, 4, 5), start=1, end=-1)
shape_of("2x3x4,start-9,end9,clamped", data(2, 3, 4), start=-9, end=9)
shape_of("2x3x4,start2,end1,nothing", data(2, 3, 4), start=2, end=1)


@shape_of.drawn_for(EACH_SIZE)
def draw_shape_of(draw: Draw, dtype: DType) -> OpCase:
    attributes: dict[str, Any] = {} if draw(st.booleans()) else {"end": draw(st.integers(-6, 6))}
    return shape_of.case(data(*shape(draw, 0, 5)), start=draw(st.integers(-6, 6)), **attributes)


size = table("Size")
size("2x3x4", data(2, 3, 4))
size("scalar", data())
size("0x3,empty", data(0, 3))
size("257,odd", data(257))
size("2x1x3x1x2x5,rank6", data(2, 1, 3, 1, 2, 5))


@size.drawn_for(EACH_SIZE)
def draw_size(draw: Draw, dtype: DType) -> OpCase:
    return size.case(data(*shape(draw, 0, 5)))


# **** Reshape, Flatten, Squeeze, Unsqueeze ****

reshape = table("Reshape", MOVED)
reshape("2x3x4,to-4x6", data(2, 3, 4), ints(4, 6))
reshape("2x3x4,to--1", data(2, 3, 4), ints(-1))
reshape("2x3x4,to-2x-1x2", data(2, 3, 4), ints(2, -1, 2))
reshape("2x3x4,to-0x-1,copied", data(2, 3, 4), ints(0, -1))
reshape("2x3x4,to-4x0x2,copied", data(2, 3, 4), ints(4, 0, 2))
reshape("2x3x4,to-1x24x1x1x1,rank5", data(2, 3, 4), ints(1, 24, 1, 1, 1))
reshape("1x1,to-scalar", data(1, 1), _NONE)
reshape("scalar,to-1x1", data(), ints(1, 1))
reshape("0x3,to-3x0,allowzero", data(0, 3), ints(3, 0), allowzero=1)
reshape("0x3,to-0x1x3,empty,copied", data(0, 3), ints(0, 1, 3))
reshape("0x4x6,to-0x-1x2,empty,copied", data(0, 4, 6), ints(0, -1, 2), dtypes=("float32",))
reshape("2x3x4,to-6x-1,at-run-time", data(2, 3, 4), run_time_ints(6, -1))
reshape("2x3x4,to-0x12,at-run-time", data(2, 3, 4), run_time_ints(0, 12))
reshape("3x257,to-257x3,odd", data(3, 257), ints(257, 3))
reshape("5x6,to-30,special", t(5, 6, init=special), ints(30))


@reshape.drawn_for(EACH_SIZE)
def draw_reshape(draw: Draw, dtype: DType) -> OpCase:
    factors = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    old, new = _grouped(draw, factors), _grouped(draw, draw(st.permutations(factors)))
    if draw(st.booleans()):
        new[draw(st.integers(0, len(new) - 1))] = -1
    for i in range(min(len(old), len(new))):
        if new[i] == old[i] and draw(st.booleans()):
            new[i] = 0
    return reshape.case(data(*old), some_ints(draw, new))


def _grouped(draw: Draw, factors: list[int]) -> list[int]:
    """Draw sizes, each the product of consecutive factors."""
    sizes = [factors[0]]
    for factor in factors[1:]:
        if draw(st.booleans()):
            sizes.append(factor)
        else:
            sizes[-1] *= factor
    return sizes


flatten = table("Flatten", MOVED)
flatten("2x3x4x5", data(2, 3, 4, 5))
flatten("2x3x4x5,axis0", data(2, 3, 4, 5), axis=0)
flatten("2x3x4x5,axis3", data(2, 3, 4, 5), axis=3)
flatten("2x3x4x5,axis-2", data(2, 3, 4, 5), axis=-2)
flatten("2x3x4,axis3,all-rows", data(2, 3, 4), axis=3)
flatten("scalar,axis0", data(), axis=0)
flatten("7", data(7))
flatten("0x3x2,empty", data(0, 3, 2))
flatten("2x0x3,axis2,empty", data(2, 0, 3), axis=2)
flatten("3x3x3,special", t(3, 3, 3, init=special))


@flatten.drawn_for(EACH_SIZE)
def draw_flatten(draw: Draw, dtype: DType) -> OpCase:
    sizes = shape(draw, 1, 5, largest=4)
    return flatten.case(data(*sizes), axis=draw(st.integers(-len(sizes), len(sizes))))


squeeze = table("Squeeze", MOVED)
squeeze("1x3x1x2", data(1, 3, 1, 2))
squeeze("1x3x1x2,axis0", data(1, 3, 1, 2), ints(0))
squeeze("1x3x1x2,axes-2+0", data(1, 3, 1, 2), ints(-2, 0))
squeeze("2x3,nothing", data(2, 3))
squeeze("1x1,to-scalar", data(1, 1))
squeeze("scalar", data())
squeeze("0x1x3,empty", data(0, 1, 3), ints(1))
squeeze("1x3x1x2,at-run-time", data(1, 3, 1, 2), run_time_ints(2))
squeeze("1x9,special", t(1, 9, init=special))


@squeeze.drawn_for(EACH_SIZE)
def draw_squeeze(draw: Draw, dtype: DType) -> OpCase:
    sizes = shape(draw, 1, 5, largest=2)
    ones = [axis for axis, n in enumerate(sizes) if n == 1]
    axes = [a - len(sizes) if draw(st.booleans()) else a for a in draw(st.permutations(ones))]
    axes = axes[draw(st.integers(0, len(axes))) :]
    return squeeze.case(data(*sizes), *([some_ints(draw, axes)] if axes else []))


unsqueeze = table("Unsqueeze", MOVED)
unsqueeze("2x3,axis0", data(2, 3), ints(0))
unsqueeze("2x3,axis-1", data(2, 3), ints(-1))
unsqueeze("2x3,axes1+3", data(2, 3), ints(1, 3))
unsqueeze("2x3,axes3+0+-3,unsorted", data(2, 3), ints(3, 0, -3))
unsqueeze("scalar,axis0", data(), ints(0))
unsqueeze("scalar,axes0+1", data(), ints(0, 1))
unsqueeze("0x3,axis1,empty", data(0, 3), ints(1))
unsqueeze("2x3,at-run-time", data(2, 3), run_time_ints(1, -1))
unsqueeze("9,special", t(9, init=special), ints(1))


@unsqueeze.drawn_for(EACH_SIZE)
def draw_unsqueeze(draw: Draw, dtype: DType) -> OpCase:
    sizes = shape(draw, 0, 3)
    extra = draw(st.integers(1, 3))
    rank = len(sizes) + extra
    axes = draw(st.permutations(range(rank)))[:extra]
    return unsqueeze.case(data(*sizes), some_ints(draw, [a - rank if draw(st.booleans()) else a for a in axes]))


# **** Transpose, Expand ****

transpose = table("Transpose", MOVED)
transpose("3x5", data(3, 5))
transpose("2x3x4,reversed-by-default", data(2, 3, 4))
transpose("2x3x4x5,0231,nhwc", data(2, 3, 4, 5), perm=(0, 2, 3, 1))
transpose("2x3x4x5,0312,nchw", data(2, 3, 4, 5), perm=(0, 3, 1, 2))
transpose("2x3x4x5,0213", data(2, 3, 4, 5), perm=(0, 2, 1, 3))
transpose("2x3x4,201,cycle", data(2, 3, 4), perm=(2, 0, 1))
transpose("2x3x4,012,nothing", data(2, 3, 4), perm=(0, 1, 2))
transpose("33x17,10,odd", data(33, 17), perm=(1, 0))
transpose("1x257x1x3,3021,ones", data(1, 257, 1, 3), perm=(3, 0, 2, 1))
transpose("2x3x2x3x2x3,504132,rank6", data(2, 3, 2, 3, 2, 3), perm=(5, 0, 4, 1, 3, 2))
transpose("scalar", data())
transpose("7", data(7))
transpose("2x0x3,empty", data(2, 0, 3), perm=(2, 0, 1))
transpose("constant", const(3, 5, init=whole_range), perm=(1, 0))
transpose("5x7,special", t(5, 7, init=special))


@transpose.drawn_for(EACH_SIZE)
def draw_transpose(draw: Draw, dtype: DType) -> OpCase:
    sizes = shape(draw, 0, 6, largest=5)
    attributes: dict[str, Any] = {"perm": tuple(draw(st.permutations(range(len(sizes)))))} if sizes else {}
    return transpose.case(data(*sizes), **attributes)


expand = table("Expand", MOVED)
expand("3x1,to-3x4", data(3, 1), ints(3, 4))
expand("3x1,to-2x1x6,both-ways", data(3, 1), ints(2, 1, 6))
expand("3x4,to-1,keeps", data(3, 4), ints(1))
expand("3,to-2x4x3,rows", data(3), ints(2, 4, 3))
expand("4x1x1,to-4x5x7,channel", data(4, 1, 1), ints(4, 5, 7))
expand("scalar,to-2x3", data(), ints(2, 3))
expand("scalar,to-scalar", data(), _NONE)
expand("2x1x3x1x2,to-1x4x1x3x1,rank5", data(2, 1, 3, 1, 2), ints(1, 4, 1, 3, 1))
expand("3x1,to-3x0,empty", data(3, 1), ints(3, 0))
expand("1x33,to-257x33,odd", data(1, 33), ints(257, 33))
expand("3x1,to-2x1x4,at-run-time", data(3, 1), run_time_ints(2, 1, 4))
expand("3x1,to-3x9,special", t(3, 1, init=special), ints(3, 9))


@expand.drawn_for(EACH_SIZE)
def draw_expand(draw: Draw, dtype: DType) -> OpCase:
    have, wanted = broadcastable(draw)
    return expand.case(data(*have), some_ints(draw, wanted))


# **** Cast, CastLike ****


def _limits(dtype: DType) -> tuple[int, int]:
    """Return the range of integers that conversions from or to a type preserve, up to one rounding."""
    if dtype is DType.BOOL:
        return 0, 1
    if dtype.is_integer:
        info = np.iinfo(dtype.numpy)
        return int(info.min), int(info.max)
    most = {DType.FLOAT16: 2**15, DType.BFLOAT16: 2**24}.get(dtype, 2**63)
    return -most, most - 1


def _castable(to: DType) -> Any:
    """Return an initializer of elements in the range of ``to``: out of range, conversions differ between machines."""

    def initialize(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
        if dtype is DType.BOOL:
            return normal(random, shape, dtype)
        if dtype.is_floating and (to.is_floating or to is DType.BOOL):
            # Representable in float32: kernels may convert float64 to a half type by way of float32.
            return normal(random, shape, DType.FLOAT32).astype(dtype.numpy)
        if dtype.is_floating:
            low = -120 if to.is_signed else 0
            return random.uniform(low, 120 if to.is_signed else 250, shape).astype(dtype.numpy)
        if to is DType.BOOL:
            return normal(random, shape, dtype)
        low, high = (pick(a, b) for pick, a, b in zip((max, min), _limits(dtype), _limits(to)))
        wide = np.uint64 if low >= 0 else np.int64
        return random.integers(low, high, shape, dtype=wide, endpoint=True).astype(dtype.numpy)

    return initialize


def _half_way(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    """Return numbers half-way between two of bfloat16: ties, which round to even."""
    odd = 256 + 2 * random.integers(0, 100, shape) + 1
    return np.asarray(random.choice([-1, 1], shape) * odd).astype(dtype.numpy)


cast = table("Cast")
for _to in ALL:
    cast(f"to-{short_name(_to)},5x7", t(5, 7, init=_castable(_to)), to=_to)
for _to in FLOATS:
    cast(f"to-{short_name(_to)},special", t(9, 7, init=special), to=_to, dtypes=FLOATS)
cast("to-bool,special", t(9, 7, init=special), to=DType.BOOL)
cast("to-bool,fractions", values([0.25, -0.25, 0.999, 0, -0.0, 1e-4]), to=DType.BOOL, dtypes=FLOATS)
cast("to-i32,towards-zero", values([-2.75, -2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 2.75]), to=DType.INT32, dtypes=FLOATS)
cast("to-u8,towards-zero", values([0.25, 0.5, 0.75, 1.5, 254.5, 127.5, 128.5]), to=DType.UINT8, dtypes=FLOATS)
cast("to-bf16,half-way", t(33, init=_half_way), to=DType.BFLOAT16, dtypes=("float32", "float64", "float16"))
cast(
    "to-f16,half-way",
    values([2049, 2051, 4098, 4102, -2049, -2051, 65519, 1.00048828125]),
    to=DType.FLOAT16,
    dtypes=("float32", "float64"),
)
cast("to-f16,too-large", values([65520, -7e4, 1e9, 65504]), to=DType.FLOAT16, dtypes=("float32", "float64"))
cast(
    "to-f32,large-integers",
    values([2**24 + 1, 2**24 + 3, -(2**24) - 1, 2**31 - 1]),
    to=DType.FLOAT32,
    dtypes=("int32", "int64"),
)
cast("to-i64,scalar", t(), to=DType.INT64)
cast("to-f32,257,odd", t(257), to=DType.FLOAT32)
cast("to-f32,0x3,empty", t(0, 3), to=DType.FLOAT32)
cast("to-i32,constant", const(3, 4), to=DType.INT32)


@cast.drawn
def draw_cast(draw: Draw, dtype: DType) -> OpCase:
    to = draw(st.sampled_from(ALL))
    return cast.case(t(*shape(draw, 0, 4), init=_castable(to)), to=to)


cast_like = table("CastLike")
for _to in ALL:
    cast_like(f"to-{short_name(_to)},5x7", t(5, 7, init=_castable(_to)), t(2, 3, dtype=_to.value))
cast_like("to-f32,scalar,constant", t(), const(dtype="float32"))
cast_like("to-i8,0x3,empty", t(0, 3), t(0, dtype="int8"))
cast_like("to-bool,special", t(9, 7, init=special), t(1, dtype="bool"))
cast_like("to-i32,towards-zero", values([-2.75, -2.5, -0.5, 0.5, 2.5, 2.75]), t(1, dtype="int32"), dtypes=FLOATS)
cast_like("to-u64,beyond-int64", values([2.0**63, 1.5 * 2.0**63, 2.0**62, 3]), t(1, dtype="uint64"),
          dtypes=("float32", "float64", "bfloat16"))  # fmt: skip
for _to in (DType.FLOAT16, DType.BFLOAT16, DType.FLOAT64):
    cast_like(f"to-{short_name(_to)},special", t(9, 7, init=special), t(1, dtype=_to.value), dtypes=FLOATS)


@cast_like.drawn_for(EACH_SIZE)
def draw_cast_like(draw: Draw, dtype: DType) -> OpCase:
    to = draw(st.sampled_from(ALL))
    like = Tensor(shape(draw, 0, 2), normal, to.value, constant=draw(st.booleans()))
    return cast_like.case(t(*shape(draw, 0, 4), init=_castable(to)), like)


# **** Dropout ****

dropout = table("Dropout", MOVED)
dropout("5x7", t(5, 7))
dropout("5x7,mask", t(5, 7), outputs=2)
dropout("5x7,ratio-means-nothing", t(5, 7), values(0.75, "float32", constant=True), outputs=2, seed=3)
dropout("5x7,not-training", t(5, 7), values(0.5, "float32"), values(False, "bool", constant=True), outputs=2)
dropout("5x7,not-training,without-ratio", t(5, 7), None, values(False, "bool"), outputs=2)
dropout("scalar", t(), outputs=2)
dropout("0x3,empty", t(0, 3), outputs=2)
dropout("257,odd", t(257), outputs=2)
dropout("5x7,special", t(5, 7, init=special))


@dropout.drawn
def draw_dropout(draw: Draw, dtype: DType) -> OpCase:
    ratio = draw(st.sampled_from([(), (values(0.5, "float32", constant=True),)]))
    return dropout.case(t(*shape(draw, 0, 4)), *ratio, outputs=draw(st.integers(1, 2)))
