"""Lowering of MatMul and Gemm."""

from __future__ import annotations

from lite_compiler.fusion import Group
from lite_core.ir import Node
from lite_opencl.lowering.chain_building import ChainBuilder
from lite_opencl.lowering.chaining import Epilogue
from lite_opencl.lowering.context import Lowering
from lite_opencl.lowering.products import emit_product, matrices_of
from lite_opencl.lowering.registry import lowers

__all__ = ["gemm", "matmul"]


@lowers("MatMul", epilogue=True)
def matmul(lowering: Lowering, group: Group) -> None:
    """Lower MatMul. A vector becomes a matrix of one row or column, a dimension that the result does not have."""
    a, b = (matrices_of(lowering, group.input(i)) for i in (0, 1))
    is_matrix = b.tensor.rank > 1
    if a.tensor.rank == 1:
        a = a.add_axis(0)
    if not is_matrix:
        b = b.add_axis(1)
    product = group.head.outputs[0]
    assert product is not None
    rank = len(product.shape)
    epilogue = lowering.epilogue(group, split=rank - 1 if is_matrix else rank)
    emit_product(lowering, a, b, lowering.target(group.output), epilogue)


def _refuse_gemm(node: Node) -> str | None:
    dtypes = {value.dtype for value in node.inputs if value is not None}
    factors = [float(node.attributes.get(name, 1.0)) for name in ("alpha", "beta")]  # type: ignore[arg-type]
    if all(dtype.is_floating for dtype in dtypes):
        return None
    if not all(factor.is_integer() for factor in factors):
        return "it multiplies integers by a fractional alpha or beta"
    if min(factors) < 0 and not all(dtype.is_signed for dtype in dtypes):
        return "it multiplies unsigned integers by a negative alpha or beta"
    return None


@lowers("Gemm", refuse=_refuse_gemm, epilogue=True)
def gemm(lowering: Lowering, group: Group) -> None:
    """Lower Gemm. Transposed operands are read in place; the addend is part of the epilogue."""
    a, b = (matrices_of(lowering, group.input(i)) for i in (0, 1))
    attributes = group.attributes
    a = a.swap() if attributes["transA"] else a
    b = b.swap() if attributes["transB"] else b
    emit_product(lowering, a, b, lowering.target(group.output), _gemm_epilogue(lowering, group), label="gemm")


def _gemm_epilogue(lowering: Lowering, group: Group) -> Epilogue:
    """Return the epilogue ``alpha * sum + beta * C``, followed by the tail of the group."""
    product, addend = group.head.outputs[0], group.optional(2)
    assert product is not None
    alpha, beta = group.attributes["alpha"], group.attributes["beta"]
    chain = ChainBuilder(product.dtype)
    if alpha != 1:
        chain.apply("Mul", [chain.last, chain.number(alpha, product.dtype)])
    if addend is not None and beta != 0:
        term, scaled = chain.operand(lowering.tensor(addend), addend.dtype), chain.last
        if beta != 1:
            term = chain.apply("Mul", [term, chain.number(beta, product.dtype)])
        chain.apply("Add", [scaled, term])
    chain.follow(*lowering.chain(product, group.tail))
    return lowering.epilogue_of(*chain.built(), tuple(product.shape), split=1)
