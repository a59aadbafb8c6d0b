"""Cases of QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from lite_conformance.cases.op_cases import Draw, OpCase, table
from lite_conformance.cases.operators.layer_initializers import all_integers
from lite_conformance.cases.operators.spatial import scales
from lite_conformance.cases.operators.strategies import shape
from lite_conformance.cases.tensors import Array, Initializer, Tensor, const, integers, t, uniform, values
from lite_conformance.judge.tolerances import ARITHMETIC
from lite_core.ir import DType

EIGHT_BITS = ("int8", "uint8")


def same_type(dtype: DType) -> DType:
    """Return the element type of the case, as the value of an attribute."""
    return dtype


# NOTE: quotients are either exact ties (scales that are powers of two; ties round to even) or clearly nearer to one
# integer: otherwise the last bit of the division decides the rounding.
def quarters(low: int, high: int) -> Initializer:
    """Return an initializer of multiples of 1/4 between two numbers, including halves."""

    def initialize(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
        return np.asarray(random.integers(4 * low, 4 * high, shape) / 4).astype(dtype.numpy)

    return initialize


def near_multiples(step: float, low: int, high: int) -> Initializer:
    """Return an initializer of ``step`` times numbers within 0.3 of the integers from ``low`` to ``high - 1``."""

    def initialize(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
        positions = random.integers(low, high, shape) + random.uniform(-0.3, 0.3, shape)
        return np.asarray(positions * step).astype(dtype.numpy)

    return initialize


def real(*size: int, init: Initializer | None = None, dtype: str = "float32") -> Tensor:
    """Return a tensor to quantize."""
    return t(*size, init=init or quarters(-20, 20), dtype=dtype)


some = integers(3, 9)
quantize = table("QuantizeLinear")
quantize("3x7", real(3, 7), scales(0.5), const(init=some))
quantize("halves-to-even", values(np.arange(-9, 10) / 2, "float32"), scales(1), values(21, constant=True))
quantize("halves-to-even,even-zero-point", values(np.arange(-9, 10) / 2, "float32"), scales(1),
         values(20, constant=True))  # fmt: skip
quantize("3x33,scale0.3", real(3, 33, init=near_multiples(0.3, -30, 30)), scales(0.3), values(40, constant=True))
quantize("257,saturates", real(257, init=uniform(-90000, 90000)), scales(1), const(init=some))
quantize("far-and-infinite", values([-np.inf, -1e30, -1e10, -3e9, 0, 3e9, 1e10, 1e30, np.inf], "float32"),
         scales(0.5), const(init=some))  # fmt: skip
quantize("saturates-after-the-zero-point", values([[100.0, 127, 200, 250, 255, -100, -128, -140]], "float32"),
         scales(1), values(100, constant=True))  # fmt: skip
quantize("3x7,no-zero-point", real(3, 7), scales(0.5), output_dtype=same_type)
quantize("3x7,no-zero-point,uint8", real(3, 7), scales(0.5), dtypes=("uint8",))
quantize("3x7,negative-scale", real(3, 7), scales(-0.5), values(40, constant=True))
quantize("2x3x4x5,axis1", real(2, 3, 4, 5), scales(0.5, 0.25, 2), const(3, init=some))
quantize("3x3x3,axis0", real(3, 3, 3), scales(0.5, 0.25, 2), const(3, init=some), axis=0)
quantize("3x3x3,axis-1", real(3, 3, 3), scales(0.5, 0.25, 2), const(3, init=some), axis=-1)
quantize("3,axis0", real(3), scales(0.5, 0.25, 2), const(3, init=some), axis=0)
quantize("2x3,axis1,no-zero-point", real(2, 3), scales(0.5, 0.25, 2), output_dtype=same_type)
quantize("3x4,scale-of-1-element", real(3, 4), scales(0.5, shape=(1,)), const(1, init=some))
quantize("2x6,blocks-of-3", real(2, 6), scales(0.5, 1, 2, 0.25, shape=(2, 2)), const(2, 2, init=some), axis=1,
         block_size=3)  # fmt: skip
quantize("4x2x3,axis0,blocks-of-2", real(4, 2, 3), scales(*[0.5, 1, 2, 0.25] * 3, shape=(2, 2, 3)),
         const(2, 2, 3, init=some), axis=0, block_size=2)  # fmt: skip
quantize("scalar", real(), scales(0.5), const(init=some))
quantize("0x3,empty", real(0, 3), scales(0.5), const(init=some))
quantize("3x7,all-at-run-time", real(3, 7), values([0.5, 1, 2, 0.25, 0.5, 1, 2], "float32"), t(7, init=some))
quantize("3x7,from-float16", real(3, 7, dtype="float16"), scales(0.5, dtype="float16"), const(init=some))
quantize("3x7,from-bfloat16", real(3, 7, dtype="bfloat16"), scales(0.5, dtype="bfloat16"), const(init=some))
quantize(
    "3x7,from-int32", real(3, 7, init=integers(-40, 40), dtype="int32"), scales(2, dtype="int32"), const(init=some)
)


@quantize.drawn
def draw_quantize(draw: Draw, dtype: DType) -> OpCase:
    size = shape(draw, least=1)
    axis = draw(st.integers(-len(size), len(size) - 1))
    powers = st.integers(-2, 2).map(lambda exponent: 2.0**exponent)
    of_type = draw(st.sampled_from(("float32", "float16", "bfloat16")))
    per_axis = draw(st.booleans()) and size[axis] > 0
    scale = scales(*(draw(powers) for _ in range(size[axis])), shape=(size[axis],), dtype=of_type) if per_axis else None
    if scale is None:
        scale = scales(draw(powers), dtype=of_type)
    x = real(*size, dtype=of_type)
    if draw(st.booleans()):
        return quantize.case(x, scale, const(*scale.shape, init=integers(0, 100)), axis=axis)
    return quantize.case(x, scale, axis=axis, output_dtype=same_type)


# **** DequantizeLinear ****


def whole(*size: int, dtype: str = "uint8") -> Tensor:
    """Return a tensor to dequantize."""
    return t(*size, init=all_integers, dtype=dtype)


def point(*size: int, dtype: str = "uint8") -> Tensor:
    """Return a constant zero point."""
    return const(*size, init=some, dtype=dtype)


dequantize = table("DequantizeLinear", ARITHMETIC)
for _type in EIGHT_BITS:
    dequantize(f"3x7,{_type}", whole(3, 7, dtype=_type), const(init=uniform(0.1, 2)), point(dtype=_type))
    dequantize(f"257,{_type},no-zero-point", whole(257, dtype=_type), const(init=uniform(0.1, 2)))
for _type in ("int16", "uint16"):
    dequantize(f"3x7,{_type}", whole(3, 7, dtype=_type), const(init=uniform(0.1, 2)), point(dtype=_type),
               dtypes=("float32",))  # fmt: skip
dequantize("3x7,int32", t(3, 7, init=integers(-90000, 90000), dtype="int32"), const(init=uniform(0.1, 2)),
           dtypes=("float32",))  # fmt: skip
dequantize("extremes", values([0, 1, 127, 128, 254, 255], "uint8"), scales(0.5, dtype="float32"),
           values(255, "uint8", constant=True), dtypes=("float32",))  # fmt: skip
dequantize("2x3x4x5,axis1", whole(2, 3, 4, 5), const(3, init=uniform(0.1, 2)), point(3))
dequantize("3x3x3,axis0", whole(3, 3, 3), const(3, init=uniform(0.1, 2)), point(3), axis=0)
dequantize("3x3x3,axis-1,no-zero-point", whole(3, 3, 3), const(3, init=uniform(0.1, 2)), axis=-1)
dequantize("3,axis0", whole(3), const(3, init=uniform(0.1, 2)), point(3), axis=0)
dequantize("3x4,scale-of-1-element", whole(3, 4), const(1, init=uniform(0.1, 2)), point(1))
dequantize("2x6,blocks-of-3", whole(2, 6), const(2, 2, init=uniform(0.1, 2)), point(2, 2), axis=1, block_size=3)
dequantize("4x2x3,axis0,blocks-of-2", whole(4, 2, 3), const(2, 2, 3, init=uniform(0.1, 2)), axis=0, block_size=2)
dequantize("scalar", whole(), const(init=uniform(0.1, 2)), point())
dequantize("0x3,empty", whole(0, 3), const(init=uniform(0.1, 2)), point())
dequantize("constant", const(5, 3, init=all_integers, dtype="int8"), const(3, init=uniform(0.1, 2)),
           point(3, dtype="int8"))  # fmt: skip
dequantize("3x7,all-at-run-time", whole(3, 7), t(7, init=uniform(0.1, 2)), t(7, init=some, dtype="uint8"))


@dequantize.drawn
def draw_dequantize(draw: Draw, dtype: DType) -> OpCase:
    size = shape(draw, least=1)
    axis = draw(st.integers(-len(size), len(size) - 1))
    of_type = draw(st.sampled_from(EIGHT_BITS))
    granularity = (size[axis],) if draw(st.booleans()) else ()
    scale = const(*granularity, init=uniform(0.1, 2))
    zero_point = point(*granularity, dtype=of_type) if draw(st.booleans()) else None
    return dequantize.case(whole(*size, dtype=of_type), scale, zero_point, axis=axis)


# **** DynamicQuantizeLinear ****


def between(low: float, high: float, step: float) -> Initializer:
    """Return an initializer of numbers near multiples of ``step``; the first is ``low`` and the last ``high``."""

    def initialize(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
        positions = random.integers(round(low / step) + 1, round(high / step), shape) + random.uniform(-0.3, 0.3, shape)
        flat = (positions * step).reshape(-1)
        flat[0], flat[-1] = low, high
        return flat.reshape(shape).astype(dtype.numpy)

    return initialize


# The range is 255 times a power of two, so that every formula gives the exact scale.
dynamic = table("DynamicQuantizeLinear", ARITHMETIC)
dynamic("3x7", t(3, 7, init=between(-32, 31.75, 0.25)), outputs=3)
dynamic("257", t(257, init=between(-10, 245, 1)), outputs=3)
dynamic("33,scale0.1", t(33, init=between(-10, 15.5, 0.1)), outputs=3)
dynamic("2x3x4x5", t(2, 3, 4, 5, init=between(-100.25, 154.75, 1)), outputs=3)
dynamic("33,big", t(33, init=between(-32 * 2.0**80, 31.75 * 2.0**80, 0.25 * 2.0**80)), outputs=3)
dynamic("33,tiny", t(33, init=between(-32 * 2.0**-80, 31.75 * 2.0**-80, 0.25 * 2.0**-80)), outputs=3)
dynamic("33,positive", t(33, init=between(8, 127.5, 0.5)), outputs=3)
dynamic("33,negative", t(33, init=between(-127.5, -8, 0.5)), outputs=3)
dynamic("1,one-element", values([63.75]), outputs=3)
dynamic("scalar", values(-63.75), outputs=3)
dynamic("halves-to-even", values([-100.0, 155, 0.5, 1.5, 2.5, -0.5, -1.5, -2.5]), outputs=3)
dynamic("halves-to-even,odd-zero-point", values([-101.0, 154, 0.5, 1.5, 2.5, -0.5, -1.5, -2.5]), outputs=3)


@dynamic.drawn
def draw_dynamic(draw: Draw, dtype: DType) -> OpCase:
    size = (*shape(draw, most=3, smallest=1), draw(st.integers(2, 9)))
    step = 2.0 ** draw(st.integers(-6, 6))
    low = -step * draw(st.integers(1, 250))
    return dynamic.case(t(*size, init=between(low, low + 255 * step, step)), outputs=3)
