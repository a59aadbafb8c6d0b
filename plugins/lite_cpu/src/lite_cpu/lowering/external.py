"""Large matrix products that an external library computes, if the backend offers one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod

from lite_compiler.fusion import Group
from lite_compiler.tracing.numbers import decided, is_traced
from lite_core.ir import DType, Value
from lite_cpu.lowering.context import Lowering
from lite_cpu.lowering.products import Epilogue, insert_axis
from lite_cpu.tensors import Tensor, collapse

__all__ = ["external_product"]

#: Minimum number of operations of a product whose speed is predicted by the measurement of a large product.
_MIN_FLOPS = 2 * 256**3

#: Minimum size of each dimension; products with a smaller one are not limited by arithmetic.
_MIN_DIMENSION = 64

#: Sizes and strides of the library are 32-bit integers.
_MAX_INTEGER = 2**31 - 1


@dataclass(frozen=True, slots=True)
class _ProductLayout:
    """The layout of a product in memory; strides are those of C, A and B, in elements."""

    rows: int
    row_strides: tuple[int, int, int]
    batches: int
    batch_strides: tuple[int, int, int]
    transposed: bool


def external_product(
    lowering: Lowering,
    group: Group,
    a: Tensor,
    right: Value,
    *,
    transposed: bool = False,
    head_epilogue: Callable[[], Epilogue] | None = None,
) -> bool:
    """Emit a group as a product of the backend's external library and an element-wise step, if that is faster.

    Args:
        lowering: the context that steps are emitted into.
        group: a group whose head is the product.
        a: [*batch, rows, depth].
        right: [*batch, depth, columns], or [*batch, columns, depth] if ``transposed``.
        transposed: True if the last two dimensions of ``right`` are swapped.
        head_epilogue: returns the element-wise operations that belong to the head itself.

    Returns:
        False if nothing was emitted: the product is small, its layout is not supported, or there is no library.
    """
    result = group.head.outputs[0]
    assert result is not None
    if a.rank < 2 or len(right.shape) < 2 or not a.dtype is right.dtype is DType.FLOAT32:
        return False
    sizes, depth = tuple(result.shape), a.shape[-1]
    # Without a library it does not matter whether a product of traced sizes is large.
    sgemm = lowering.external_sgemm() if is_traced(sizes, depth) or _is_large(sizes, depth) else None
    if sgemm is None or not _is_large(sizes, depth):
        return False
    b = lowering.tensor(right)
    if transposed:
        b = b.permute((*range(b.rank - 2), b.rank - 1, b.rank - 2))
    product = lowering.allocate(result.shape, result.dtype)
    layout = _layout_of(product, a, b)
    if layout is None:
        return False
    chain, reads = lowering.chain(result, group.tail)
    operands = [lowering.tensor(v) for v in reads]
    if head_epilogue is not None:
        head = head_epilogue()
        chain, operands = head.chain.then(chain), [*head.operands, *operands]
    target = lowering.target(group.output)
    if not chain.steps and target.is_dense:
        product = target
    # Imported late: few models use an external library.
    from lite_cpu.kernels.external_product import ExternalProduct, ExternalShape

    c_row, a_row, b_row = layout.row_strides
    c_batch, a_batch, b_batch = layout.batch_strides
    # The library packs B again for every block, so there are only as many blocks as the threads need.
    row_blocks = -(-lowering.options.threads // layout.batches)
    shape = ExternalShape(
        sgemm.address, layout.rows, b.shape[-1], a.shape[-1], a_row, b_row, c_row,
        layout.batches, a_batch, b_batch, c_batch, -(-layout.rows // row_blocks),
    )  # fmt: skip
    kernel = ExternalProduct(layout.transposed, sgemm.convention)
    lowering.step(kernel, [product, a, b], shape.params(), shape.items, flops=shape.flops, label=f"{sgemm.name} sgemm")
    if product is not target:
        lowering.elementwise(chain, [product, *operands], target)
    return True


@decided
def _is_large(shape: tuple[int, ...], depth: int) -> bool:
    """Return True if a product [*batch, rows, columns] may be large enough; batches that share B count as rows."""
    return min(prod(shape[:-1]), shape[-1], depth) >= _MIN_DIMENSION and (2 * prod(shape) * depth >= _MIN_FLOPS)


def _layout_of(c: Tensor, a: Tensor, b: Tensor) -> _ProductLayout | None:
    """Return the layout to call the library with for ``C = A * B``; None if it is not supported or too small."""
    batch, (depth, columns) = c.shape[:-2], b.shape[-2:]
    transposed = b.strides[-1] != 1
    b_row, b_step = b.strides[-2:][:: -1 if transposed else 1]
    if a.strides[-1] != 1 or b_step != 1 or b_row < (depth if transposed else columns):
        return None
    matrices = replace(b, shape=b.shape[:-2], strides=b.strides[:-2]).expand(batch)
    tensors = [c, a.expand((*batch, *a.shape[-2:]))]
    sizes, strides = collapse([
        *(replace(t, shape=t.shape[:-1], strides=t.strides[:-1]) for t in tensors),
        insert_axis(matrices, len(batch)).expand(c.shape[:-1]),
    ])  # fmt: skip
    rows, (c_row, a_row, b_step_of_rows) = sizes[-1], (s[-1] for s in strides)
    if len(sizes) > 2 or b_step_of_rows != 0 or a_row < depth or max(rows, a_row, b_row, c_row) > _MAX_INTEGER:
        return None
    if rows < _MIN_DIMENSION or 2 * rows * columns * depth < _MIN_FLOPS:
        return None
    batches, (c_batch, a_batch, b_batch) = (sizes[0], (s[0] for s in strides)) if len(sizes) > 1 else (1, (0, 0, 0))
    return _ProductLayout(rows, (c_row, a_row, b_row), batches, (c_batch, a_batch, b_batch), transposed)
