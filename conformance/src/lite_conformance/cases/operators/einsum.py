"""Cases of Einsum."""

from __future__ import annotations

from hypothesis import strategies as st

from lite_conformance.cases.op_cases import Draw, OpCase, table
from lite_conformance.cases.operators.layer_initializers import small
from lite_conformance.cases.tensors import Tensor, big, t, tiny
from lite_conformance.cases.tensors import const as constant
from lite_conformance.judge.tolerances import SUM
from lite_core.ir import DType

REAL = ("float64", "float32", "float16", "bfloat16")


def some(*shape: int) -> Tensor:
    """Return a run-time tensor whose products and small sums fit every element type."""
    return t(*shape, init=small)


einsum = table("Einsum", SUM)
einsum("matrix-product", some(3, 4), some(4, 5), equation="ij,jk->ik")
einsum("matrix-product,transposed-output", some(3, 4), some(4, 5), equation="ij,jk->ki")
einsum("matrix-product,spaces", some(3, 4), some(4, 5), equation=" i j , j k -> i k ")
einsum("matrix-product,implicit", some(3, 4), some(4, 5), equation="ij,jk")
einsum("implicit-output-is-alphabetical", some(3, 4, 5), equation="cab")
einsum("matrix-product,constant", some(7, 9), constant(9, 3, init=small), equation="ij,jk->ik")
einsum("batch,right-transposed", some(2, 3, 4, 7), some(2, 3, 5, 7), equation="bhqd,bhkd->bhqk")
einsum("batch-axis-in-the-middle", some(3, 2, 4), some(4, 2, 5), equation="ibj,jbk->bik")
einsum("right-transposed,constant", some(2, 4, 3, 5), constant(2, 6, 3, 5, init=small), equation="bihd,bjhd->bhij")
einsum("two-summed-axes", some(2, 3, 2, 3), some(2, 3, 5, 2), equation="abcd,cdef->abef")
einsum("two-summed-axes,apart", some(2, 2, 3, 3), some(2, 4, 5, 3), equation="acbd,cefd->abef")
einsum("diagonal-of-a-factor", some(3, 3), some(3, 4), equation="ii,ij->j")
einsum("sum-of-a-free-axis", some(3, 3), some(3, 2), equation="ij,jk->i")
einsum("two-axes-summed", some(2, 3, 3), some(3, 3, 4), equation="abc,bcd->ad")
einsum("transpose", some(2, 3, 5), equation="ijk->kij")
einsum("sum-of-all", some(3, 4), equation="ij->")
einsum("sum-of-one-axis", some(3, 7, 5), equation="ijk->ik")
einsum("diagonal", some(4, 4), equation="ii->i")
einsum("trace", some(5, 5), equation="ii")
einsum("diagonal-of-stack", some(2, 3, 3), equation="...ii->...i")
einsum("inner", some(7), some(7), equation="i,i->")
einsum("outer", some(3), some(5), equation="i,j->ij")
einsum("hadamard", some(3, 7), some(3, 7), equation="ij,ij->ij")
einsum("ellipsis,broadcast", some(2, 1, 3, 4), some(5, 4, 2), equation="...ij,...jk->...ik")
einsum("ellipsis,implicit", some(2, 3, 4), some(2, 4, 5), equation="...ij,...jk")
einsum("ellipsis,in-the-middle", some(3, 2, 2, 4), some(4), equation="i...j,j->...i")
einsum("ellipsis-of-nothing", some(3, 4), some(4), equation="...ij,...j->...i")
einsum("upper-case-before-lower-case", some(2, 3), equation="bA")
einsum("three-operands", some(2, 3), some(3, 2), some(2, 4), equation="ij,jk,kl->il")
einsum("three-operands,bilinear", some(2, 3), some(4, 3, 2), some(2, 2), equation="bn,anm,bm->ba")
einsum("scalar", some(), some(3), equation=",i->i")
einsum("33x257,257x7", t(33, 257), t(257, 7), dtypes=(*REAL, "int32", "int64"), equation="ik,kj->ij")
einsum("0x3,3x2,empty", some(0, 3), some(3, 2), equation="ij,jk->ik")
einsum("2x0,0x3,nothing-to-sum", some(2, 0), some(0, 3), equation="ij,jk->ik")
einsum("big", t(3, 4, init=big), t(4, 5, init=big), dtypes=REAL, equation="ij,jk->ik")
einsum("tiny", t(3, 4, init=tiny), t(4, 5, init=tiny), dtypes=REAL, equation="ij,jk->ik")


@einsum.drawn
def draw_einsum(draw: Draw, dtype: DType) -> OpCase:
    sizes = {letter: draw(st.integers(1, 3)) for letter in "abcd"}
    terms = ["".join(draw(st.permutations("abcd"))[: draw(st.integers(0, 3))]) for _ in range(draw(st.integers(1, 2)))]
    named = sorted(set("".join(terms)))
    output = "".join(draw(st.permutations(named))[: draw(st.integers(0, len(named)))])
    # At most two summed axes of size 3 and products of two factors: 9 * 4 fits into eight bits.
    output += "".join(letter for letter in named if letter not in output)[2:]
    equation = ",".join(terms) + (f"->{output}" if draw(st.integers(0, 3)) else "")
    return einsum.case(*(some(*(sizes[letter] for letter in term)) for term in terms), equation=equation)
