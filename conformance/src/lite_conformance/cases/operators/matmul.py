"""Cases of Gemm, MatMul, MatMulInteger, QLinearMatMul."""

from __future__ import annotations

from hypothesis import strategies as st

from lite_conformance.cases.op_cases import Draw, OpCase, table
from lite_conformance.cases.operators.layer_initializers import all_integers, unbounded
from lite_conformance.cases.operators.spatial import scales
from lite_conformance.cases.tensors import Tensor, big, const, integers, t, tiny, values
from lite_conformance.judge.tolerances import SUM
from lite_core.ir import DType

REAL = ("float64", "float32", "float16", "bfloat16")

gemm = table("Gemm", SUM)
gemm("3x4,4x5", t(3, 4), const(4, 5))
gemm("3x4,4x5,bias5", t(3, 4), const(4, 5), const(5))
gemm("7x33,33x9,trans-a", t(33, 7), const(33, 9), transA=1)
gemm("7x33,33x9,trans-b,bias1x9", t(7, 33), const(9, 33), const(1, 9), transB=1)
gemm("5x7,7x3,trans-both,bias5x1", t(7, 5), const(3, 7), const(5, 1), transA=1, transB=1)
gemm("4x3,3x4,square,bias-scalar", t(4, 3), const(3, 4), const())
gemm("4x3,3x4,bias1", t(4, 3), const(3, 4), const(1))
gemm("3x4,4x5,bias3x5,alpha2,beta3", t(3, 4), const(4, 5), const(3, 5), alpha=2.0, beta=3.0)
gemm("3x4,4x5,bias5,alpha0.3,beta0.7", t(3, 4), const(4, 5), const(5), dtypes=REAL, alpha=0.3, beta=0.7)
gemm("3x4,4x5,alpha-0.5", t(3, 4), const(4, 5), dtypes=REAL, alpha=-0.5)
gemm("3x4,4x5,bias5,beta0", t(3, 4), const(4, 5), const(5), beta=0.0)
gemm("1x257,257x1", t(1, 257), const(257, 1), const(1))
gemm("33x1,1x17,outer", t(33, 1), const(1, 17))
gemm("17x65,65x19,bias19", t(17, 65), const(65, 19), const(19))
gemm("2x0,0x3,bias3,nothing-to-sum", t(2, 0), const(0, 3), const(3))
gemm("0x4,4x5,empty", t(0, 4), const(4, 5), const(5))
gemm("5x6,6x7,bias5x7,all-at-run-time", t(6, 5), t(7, 6), t(5, 7), transA=1, transB=1)
gemm("unbounded", t(9, 5, init=unbounded), const(5, 7), const(7), dtypes=REAL)
gemm("big", t(4, 7, init=big), const(7, 5, init=big), dtypes=REAL)
gemm("tiny", t(4, 7, init=tiny), const(7, 5, init=tiny), dtypes=REAL)


@gemm.drawn
def draw_gemm(draw: Draw, dtype: DType) -> OpCase:
    rows, inner, columns = (draw(st.integers(0, 20)) for _ in range(3))
    trans_a, trans_b = draw(st.integers(0, 1)), draw(st.integers(0, 1))
    factors = st.sampled_from((1.0, 2.0, 0.5 if dtype.is_floating else 3.0))
    of_b = draw(st.sampled_from((const, t)))
    biases = (None, (), (1,), (columns,), (1, columns), (rows, 1), (rows, columns))
    bias = draw(st.sampled_from(biases))
    return gemm.case(
        t(inner, rows) if trans_a else t(rows, inner),
        of_b(columns, inner) if trans_b else of_b(inner, columns),
        *([] if bias is None else [of_b(*bias)]),
        alpha=draw(factors),
        beta=draw(factors),
        transA=trans_a,
        transB=trans_b,
    )


# **** MatMul ****

matmul = table("MatMul", SUM)
matmul("3x4,4x5", t(3, 4), t(4, 5))
matmul("33x257,257x7,constant", t(33, 257), const(257, 7))
matmul("17x9,9x19,left-constant", const(17, 9), t(9, 19))
matmul("1x33,33x1", t(1, 33), t(33, 1))
matmul("7,7,vectors", t(7), t(7))
matmul("7,7x3,left-vector", t(7), t(7, 3))
matmul("5x7,7,right-vector", t(5, 7), const(7))
matmul("2x3x5x7,7,right-vector", t(2, 3, 5, 7), t(7))
matmul("7,2x7x3,left-vector", t(7), t(2, 7, 3))
matmul("2x3x4,2x4x5", t(2, 3, 4), t(2, 4, 5))
matmul("2x3x4x5,5x3,constant", t(2, 3, 4, 5), const(5, 3))
matmul("2x1x3x4,5x4x2,broadcast", t(2, 1, 3, 4), t(5, 4, 2))
matmul("3x4,2x4x5,left-is-smaller", t(3, 4), t(2, 4, 5))
matmul("1x3x4,7x4x1,broadcast-left", t(1, 3, 4), t(7, 4, 1))
matmul("2x1x2x1x3x4,2x1x3x4x2,high-rank", t(2, 1, 2, 1, 3, 4), t(2, 1, 3, 4, 2))
matmul("2x0,0x3,nothing-to-sum", t(2, 0), t(0, 3))
matmul("0x3x4,4x5,empty", t(0, 3, 4), t(4, 5))
matmul("3x5,5x0,no-columns", t(3, 5), t(5, 0))
matmul("0x2x3,0x3x4,empty-stacks", t(0, 2, 3), t(0, 3, 4))
matmul("unbounded", t(9, 5, init=unbounded), t(5, 7, init=unbounded), dtypes=REAL)
matmul("big", t(4, 7, init=big), t(7, 5, init=big), dtypes=REAL)
matmul("tiny", t(4, 7, init=tiny), t(7, 5, init=tiny), dtypes=REAL)


def _stacked_matrices(draw: Draw) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Draw two shapes whose matrices multiply and whose batch axes broadcast; sometimes vectors."""
    rows, inner, columns = (draw(st.integers(1, 18)) for _ in range(3))
    stack = tuple(draw(st.integers(1, 3)) for _ in range(draw(st.integers(0, 2))))
    one, other = (
        tuple(draw(st.sampled_from((1, n))) for n in stack[draw(st.integers(0, len(stack))) :]) for _ in range(2)
    )
    left = (inner,) if not one and draw(st.integers(0, 3)) == 0 else (*one, rows, inner)
    right = (inner,) if not other and draw(st.integers(0, 3)) == 0 else (*other, inner, columns)
    return left, right


@matmul.drawn
def draw_matmul(draw: Draw, dtype: DType) -> OpCase:
    left, right = _stacked_matrices(draw)
    of_right = draw(st.sampled_from((const, t)))
    return matmul.case(t(*left), of_right(*right))


# **** quantized products ****

byte = all_integers
some = integers(3, 9)
product = table("MatMulInteger")
product("3x4,4x5", t(3, 4, init=byte), const(4, 5, init=byte))
product("7x33,33x9,zero-points", t(7, 33, init=byte), const(33, 9, init=byte), const(init=some), const(init=some))
product("5x7,7x3,per-row,per-column", t(5, 7, init=byte), const(7, 3, init=byte), const(5, init=integers(0, 9)),
        const(3, init=integers(0, 9)))  # fmt: skip
product("5x5,5x5,square,per-row,per-column", t(5, 5, init=byte), const(5, 5, init=byte),
        const(5, init=integers(0, 9)), const(5, init=integers(0, 9)))  # fmt: skip
product("4x7,7x4,second-zero-point-only", t(4, 7, init=byte), const(7, 4, init=byte), None, const(4, init=some))
product("5x7,7x3,zero-points-vectors-of-1", t(5, 7, init=byte), const(7, 3, init=byte), const(1, init=some),
        const(1, init=some))  # fmt: skip
product("2x3x5x7,7x3,constant", t(2, 3, 5, 7, init=byte), const(7, 3, init=byte), const(init=some), const(init=some))
product("2x1x3x4,5x4x2,broadcast", t(2, 1, 3, 4, init=byte), t(5, 4, 2, init=byte), t(init=some))
product("3x17,17x5,b-int8", t(3, 17, init=byte), const(17, 5, init=byte, dtype="int8"), const(init=some),
        const(init=some, dtype="int8"))  # fmt: skip
product("3x17,17x5,b-uint8", t(3, 17, init=byte), const(17, 5, init=byte, dtype="uint8"), const(init=some),
        const(init=integers(100, 200), dtype="uint8"))  # fmt: skip
product("1x257,257x3,extremes", t(1, 257, init=integers(-128, -126)), const(257, 3, init=integers(-128, -126)))
product("7,7,vectors", t(7, init=byte), t(7, init=byte), const(init=some))
product("3x4,4x5,all-at-run-time", t(3, 4, init=byte), t(4, 5, init=byte), t(init=some), t(init=some))
product("0x4,4x5,empty", t(0, 4), const(4, 5))
product("2x0,0x3,nothing-to-sum", t(2, 0), const(0, 3), const(init=some))


@product.drawn
def draw_product(draw: Draw, dtype: DType) -> OpCase:
    left, right = _stacked_matrices(draw)
    points = [const(init=integers(0, 100)) if draw(st.booleans()) else None for _ in range(2)]
    of_right = draw(st.sampled_from((const, t)))
    return product.case(t(*left, init=byte), of_right(*right, init=byte), *points)


# NOTE: the combined scale of these cases is a power of two, or one divided by an odd number: see QLinearConv.
quantized = table("QLinearMatMul")
point = const(init=some)
quantized("3x4,4x5,halves-to-even", t(3, 4, init=integers(0, 9)), scales(0.5), point,
          const(4, 5, init=integers(0, 9)), scales(0.5), point, scales(0.5), point)  # fmt: skip
quantized("7x33,33x9,saturates", t(7, 33, init=byte), scales(0.5), point, const(33, 9, init=byte), scales(0.5),
          point, scales(63.75), point)  # fmt: skip
quantized("5x7,7x3,per-column", t(5, 7, init=byte), scales(0.5), point, const(7, 3, init=byte),
          scales(2 / 129, 2 / 65, 2 / 257), const(3, init=integers(0, 9)), scales(1), point)  # fmt: skip
quantized("3x7,7x3,square,per-row", t(3, 7, init=byte), scales(2 / 129, 2 / 65, 2 / 257),
          const(3, init=integers(0, 9)), const(7, 3, init=byte), scales(0.5), point, scales(1), point)  # fmt: skip
quantized("2x3x4x5,5x3,vectors-of-1", t(2, 3, 4, 5, init=byte), scales(0.5, shape=(1,)), const(1, init=some),
          const(5, 3, init=byte), scales(0.5, shape=(1,)), const(1, init=some), scales(64, shape=(1,)),
          const(1, init=some))  # fmt: skip
quantized("2x3x4,2x4x5,stacked", t(2, 3, 4, init=byte), scales(0.5), point, t(2, 4, 5, init=byte), scales(0.5), point,
          scales(64), point)  # fmt: skip
quantized("3x17,17x5,a-uint8,b-int8", t(3, 17, init=byte, dtype="uint8"), scales(0.5),
          const(init=integers(100, 160), dtype="uint8"), const(17, 5, init=byte, dtype="int8"), scales(0.5),
          const(init=integers(-9, 9), dtype="int8"), scales(64), point)  # fmt: skip
quantized("3x7,7x5,scales-float16", t(3, 7, init=byte), scales(0.5, dtype="float16"), point, const(7, 5, init=byte),
          scales(0.5, dtype="float16"), point, scales(64, dtype="float16"), point)  # fmt: skip
quantized("3x7,7x5,scales-bfloat16", t(3, 7, init=byte), scales(0.5, dtype="bfloat16"), point,
          const(7, 5, init=byte), scales(0.5, dtype="bfloat16"), point, scales(64, dtype="bfloat16"),
          point)  # fmt: skip
quantized("3x4,4x5,all-at-run-time", t(3, 4, init=byte), values(0.5, "float32"), t(init=some), t(4, 5, init=byte),
          values(0.5, "float32"), t(init=some), values(64.0, "float32"), t(init=some))  # fmt: skip
quantized("0x4,4x5,empty", t(0, 4), scales(0.5), point, const(4, 5), scales(0.5), point, scales(1), point)


@quantized.drawn
def draw_quantized(draw: Draw, dtype: DType) -> OpCase:
    left, right = _stacked_matrices(draw)
    powers = st.integers(-3, 1).map(lambda exponent: 2.0**exponent)

    def parameters(shape: tuple[int, ...], along: int, factor: float) -> tuple[Tensor, Tensor]:
        count = shape[along] if len(shape) == 2 and draw(st.booleans()) else 1
        scale = scales(*(factor * draw(powers) for _ in range(count)))
        return scale, const(*scale.shape, init=integers(0, 100))

    return quantized.case(
        t(*left, init=byte),
        *parameters(left, 0, 1),
        const(*right, init=byte),
        *parameters(right, 1, 1),
        scales(128 * draw(powers)),
        const(init=integers(0, 100)),
    )
