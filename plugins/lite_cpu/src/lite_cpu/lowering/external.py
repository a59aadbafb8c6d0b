"""Large matrix products that a library beside Lite computes, where the backend offers one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod

from lite_compiler.fusion import Group
from lite_core.ir import DType, Value
from lite_cpu.lowering.context import Lowering
from lite_cpu.lowering.products import Tail, insert_axis
from lite_cpu.tensors import Tensor, collapse

__all__ = ["external_product"]

#: Floating-point operations from which a product is one whose speed the measurement of a large product tells.
_FEWEST_FLOPS = 2 * 256**3

#: Below this in any dimension a product is bound by something else, whatever its size.
_SMALLEST_DIMENSION = 64

#: Sizes and strides of the library are 32-bit integers.
_LARGEST_INTEGER = 2**31 - 1


@dataclass(frozen=True, slots=True)
class _Place:
    """How the dimensions of a product lie in memory; strides are those of C, A and B, in elements."""

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
    before: Callable[[], Tail] | None = None,
) -> bool:
    """Write the output of a group by the backend's library and an element-wise step, if that is faster.

    Args:
        lowering: where the steps go.
        group: its head is the product.
        a: [*batch, rows, depth].
        right: [*batch, depth, columns], or with these two swapped where it is ``transposed``.
        transposed: whether ``right`` is.
        before: what the head itself does to elements of the product.

    Returns:
        False where nothing was written: the product is small, its memory not laid out in rows, or there is no library.
    """
    result = group.head.outputs[0]
    assert result is not None
    if a.rank < 2 or len(right.shape) < 2 or a.dtype is not DType.FLOAT32 or not _is_large(tuple(result.shape), a):
        return False
    sgemm = lowering.external_sgemm()
    if sgemm is None:
        return False
    b = lowering.tensor(right)
    if transposed:
        b = b.permute((*range(b.rank - 2), b.rank - 1, b.rank - 2))
    product = lowering.allocate(result.shape, result.dtype)
    place = _place(product, a, b)
    if place is None:
        return False
    chain, reads = lowering.chain(result, group.tail)
    operands = [lowering.tensor(v) for v in reads]
    if before is not None:
        head = before()
        chain, operands = head.chain.then(chain), [*head.operands, *operands]
    target = lowering.target(group.output)
    if not chain.steps and target.is_dense:
        product = target
    # Imported late: few models have such a product where there is a library for it.
    from lite_cpu.kernels.external_product import ExternalProduct, ExternalShape

    c_row, a_row, b_row = place.row_strides
    c_batch, a_batch, b_batch = place.batch_strides
    # The library packs B again for every block: no more blocks than threads need.
    row_blocks = -(-lowering.options.threads // place.batches)
    shape = ExternalShape(
        sgemm.address, place.rows, b.shape[-1], a.shape[-1], a_row, b_row, c_row,
        place.batches, a_batch, b_batch, c_batch, -(-place.rows // row_blocks),
    )  # fmt: skip
    kernel = ExternalProduct(place.transposed, sgemm.convention)
    lowering.step(kernel, [product, a, b], shape.params(), shape.items, flops=shape.flops, label=f"{sgemm.name} sgemm")
    if product is not target:
        lowering.elementwise(chain, [product, *operands], target)
    return True


def _is_large(shape: tuple[int, ...], a: Tensor) -> bool:
    """Whether a product [*batch, rows, columns] may be worth handing over; where B repeats, batches add to the rows."""
    depth = a.shape[-1]
    return min(prod(shape[:-1]), shape[-1], depth) >= _SMALLEST_DIMENSION and (2 * prod(shape) * depth >= _FEWEST_FLOPS)


def _place(c: Tensor, a: Tensor, b: Tensor) -> _Place | None:
    """How to call the library for ``C = A * B``, None where it cannot be, or where single products are small."""
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
    rows, (c_row, a_row, b_repeats) = sizes[-1], (s[-1] for s in strides)
    if len(sizes) > 2 or b_repeats != 0 or a_row < depth or max(rows, a_row, b_row, c_row) > _LARGEST_INTEGER:
        return None
    if rows < _SMALLEST_DIMENSION or 2 * rows * columns * depth < _FEWEST_FLOPS:
        return None
    batches, (c_batch, a_batch, b_batch) = (sizes[0], (s[0] for s in strides)) if len(sizes) > 1 else (1, (0, 0, 0))
    return _Place(rows, (c_row, a_row, b_row), batches, (c_batch, a_batch, b_batch), transposed)
