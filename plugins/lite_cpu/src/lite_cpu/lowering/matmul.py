"""Lowering of MatMul and Gemm."""

from __future__ import annotations

from math import prod

import numpy as np

from lite_compiler.chains import Apply
from lite_compiler.fusion import Group
from lite_core import ops
from lite_core.ir import DType, Node, Value
from lite_cpu.chains import Chain, Operand
from lite_cpu.kernels.bfloat16_pairs import PAIR, group_of_pairs
from lite_cpu.kernels.plain_matmul import PlainMatMul
from lite_cpu.lowering.attention import AttentionGroup, attention
from lite_cpu.lowering.context import Lowering
from lite_cpu.lowering.external import external_product
from lite_cpu.lowering.half_products import pack_constant_halves
from lite_cpu.lowering.narrow_weights import stored_weights
from lite_cpu.lowering.packing import pack_at_run_time, pack_constant
from lite_cpu.lowering.pairs import as_pairs, pack_constant_pairs, reads_pairs
from lite_cpu.lowering.products import Epilogue, Panels, emit_product, insert_axis, with_contiguous_rows
from lite_cpu.lowering.registry import lowers
from lite_cpu.lowering.widening import bias_of
from lite_cpu.tensors import Tensor, collapse

__all__ = ["panels_at_run_time", "product_to"]

F32 = DType.FLOAT32
_PLAIN = (DType.FLOAT64, DType.INT32, DType.INT64, DType.UINT32, DType.UINT64)


def refuse_gemm(node: Node) -> str | None:
    a = node.inputs[0]
    assert a is not None
    if a.dtype is F32 or a.dtype.is_half:
        return None
    return f"{node.op} on {a.dtype}: the CPU kernels compute in float32"


def refuse_matmul(node: Node) -> str | None:
    a = node.inputs[0]
    assert a is not None
    return None if a.dtype in _PLAIN else refuse_gemm(node)


@lowers("MatMul", refuse=refuse_matmul, epilogue=True)
def matmul(lowering: Lowering, group: Group) -> None:
    """Emit a product of stacks of matrices that broadcast; a vector is a single row (left) or column (right)."""
    if isinstance(group, AttentionGroup):
        attention(lowering, group)
        return
    left, right = group.head.inputs[0], group.head.inputs[1]
    assert left is not None
    assert right is not None
    if left.dtype in _PLAIN:
        plain_matmul(lowering, group)
        return
    a = _as_matrix(lowering.tensor(left), 0)
    pairs = reads_pairs(lowering, left)
    if external_product(lowering, group, a, right):
        return
    array = lowering.known(right)
    if array is None:
        b = _as_matrix(lowering.tensor(right), 1)
        panels = _pairs_at_run_time(lowering, b) if pairs else panels_at_run_time(lowering, b)
    elif pairs:
        *batch, depth, columns = array.shape if array.ndim > 1 else (*array.shape, 1)
        shape = (*batch, depth, columns)
        adjacent = group_of_pairs(lowering.machine, depth)
        packed = lowering.cached(
            group.head, "pairs", lambda: pack_constant_pairs(lowering, array, shape, group=adjacent)
        )
        panels = Panels.of(packed, batch, depth // 2, columns, adjacent == 4)
    elif left.dtype is DType.FLOAT16:
        panels = lowering.cached(group.head, "halves", lambda: pack_constant_halves(lowering, array, array.shape))
    else:
        *batch, depth, columns = array.shape if array.ndim > 1 else (*array.shape, 1)
        dtype = stored_weights(lowering, array, prod(a.shape[:-1]))
        is_vector = array.ndim == 1
        packed = lowering.cached(
            group.head,
            ("panels", dtype),
            lambda: pack_constant(lowering, array, transposed=is_vector, dtype=dtype),
        )
        panels = Panels.of(packed, batch, depth, columns)
    a = as_pairs(lowering, a) if pairs else a
    product_to(lowering, group, a, panels, vectors=(len(left.shape) == 1, len(right.shape) == 1))


@lowers("Gemm", refuse=refuse_gemm, epilogue=True)
def gemm(lowering: Lowering, group: Group) -> None:
    """Emit ``alpha * A' * B' + beta * C``: alpha is folded into a constant B, and C into the bias if possible."""
    node = group.head
    attributes = ops.attributes_of(node)
    left, right, result = node.inputs[0], node.inputs[1], node.outputs[0]
    addend = node.inputs[2] if len(node.inputs) > 2 and attributes["beta"] != 0 else None
    assert left is not None
    assert right is not None
    assert result is not None
    alpha, beta, transposed = attributes["alpha"], attributes["beta"], bool(attributes["transB"])
    a = lowering.tensor(left)
    if attributes["transA"]:
        a = a.permute((1, 0))
    rows, columns = result.shape
    if external_product(
        lowering, group, a, right, transposed=transposed,
        head_epilogue=lambda: _scaled_sum(lowering, alpha, beta, addend, result),
    ):  # fmt: skip
        return
    array = lowering.known(right)
    pairs = reads_pairs(lowering, left)
    if array is None:
        b = lowering.tensor(right)
        b = b.permute((1, 0)) if transposed else b
        panels = _pairs_at_run_time(lowering, b) if pairs else panels_at_run_time(lowering, b)
    elif pairs:
        adjacent = group_of_pairs(lowering.machine, a.shape[1])
        packed = pack_constant_pairs(lowering, array, array.shape, transposed=transposed, scale=alpha, group=adjacent)
        panels = Panels.of(packed, (), a.shape[1] // 2, columns, adjacent == 4)
        alpha = 1.0
    elif left.dtype is DType.FLOAT16:
        panels = pack_constant_halves(lowering, array, array.shape, transposed=transposed, scale=alpha)
        alpha = 1.0
    else:
        dtype = stored_weights(lowering, array, rows, scale=alpha)
        packed = pack_constant(lowering, array, transposed=transposed, scale=alpha, dtype=dtype)
        panels = Panels.of(packed, (), a.shape[1], columns)
        alpha = 1.0
    bias = None
    if addend is not None and alpha == 1 and prod(addend.shape[:-1]) == 1:
        bias = _bias(lowering, addend, beta, columns)
    if bias is not None:
        addend = None
    head_epilogue = _scaled_sum(lowering, alpha, beta, addend, result)
    a = as_pairs(lowering, a) if pairs else a
    product_to(lowering, group, a, panels, bias=bias, head_epilogue=head_epilogue)


def _bias(lowering: Lowering, addend: Value, beta: float, columns: int) -> Tensor | None:
    """Return ``beta * C`` as one number for each column; None if every run would have to compute it."""
    array = lowering.known(addend)
    if array is not None:
        wide = array.astype(np.float32, copy=False)
        return lowering.constant(np.broadcast_to(wide.reshape(-1) * np.float32(beta), (columns,)))
    if beta != 1 or prod(addend.shape) != columns or addend.dtype is not F32:
        return None
    return lowering.dense(lowering.tensor(addend)).reshape((columns,))


def _scaled_sum(lowering: Lowering, alpha: float, beta: float, addend: Value | None, result: Value) -> Epilogue:
    """Return ``alpha * x + beta * addend``, the elements of ``result``, as a chain with its operands."""
    shape = tuple(result.shape)
    operands: list[Tensor] = []
    steps: list[tuple[str, int, int]] = []  # 0 is x, 1, 2... are operands, -1, -2... are results of earlier steps

    def number(value: float) -> int:
        operands.append(lowering.constant(np.full((1, 1), value, np.float32)).expand(shape))
        return len(operands)

    x = 0
    if alpha != 1:
        steps.append(("Mul", 0, number(alpha)))
        x = -len(steps)
    if addend is not None:
        operands.append(with_contiguous_rows(lowering, lowering.tensor(addend)).expand(shape))
        y = len(operands)
        if beta != 1:
            steps.append(("Mul", y, number(beta)))
            y = -len(steps)
        steps.append(("Add", x, y))
    resolved = [tuple(i if i >= 0 else len(operands) - i for i in (a, b)) for _, a, b in steps]
    applied = tuple(Apply(op, inputs, result.dtype) for (op, _, _), inputs in zip(steps, resolved))
    spread = (Operand(t.dtype, t.strides[-1] == 0 and shape[-1] > 1) for t in operands)
    return Epilogue(Chain(Operand(result.dtype), tuple(spread), applied), tuple(operands))


def panels_at_run_time(lowering: Lowering, b: Tensor) -> Panels:
    """Emit steps that pack [*batch, depth, columns] of any strides; a matrix that is broadcast is packed once."""
    *batch, depth, columns = b.shape
    unrepeated = b.view(tuple(1 if s == 0 else n for n, s in zip(batch, b.strides)) + b.shape[-2:], b.strides)
    flat = unrepeated.reshape((prod(unrepeated.shape[:-2]), depth, columns))
    if flat is None:
        flat = lowering.dense(unrepeated).reshape((prod(unrepeated.shape[:-2]), depth, columns))
    assert flat is not None
    packed = lowering.dense(flat).reshape(flat.shape[:2]) if columns == 1 else pack_at_run_time(lowering, flat)
    assert packed is not None
    return Panels.of(packed, unrepeated.shape[:-2], depth, columns)


def _pairs_at_run_time(lowering: Lowering, b: Tensor) -> Panels:
    """Emit steps that pack bfloat16 [*batch, depth, columns] as pairs, in the order of the machine's products."""
    group = group_of_pairs(lowering.machine, b.shape[-2])
    panels = panels_at_run_time(lowering, as_pairs(lowering, b, -2, group))
    if group == 2:
        return panels
    groups = panels.packed
    shape, strides = (groups.shape[0], 2 * groups.shape[1]), (2 * groups.strides[0], 1)
    packed = Tensor(groups.storage, PAIR, shape, strides, 2 * groups.offset)
    return Panels.of(packed, panels.batch.shape, 2 * panels.depth, panels.columns, matrices=True)


def product_to(
    lowering: Lowering,
    group: Group,
    a: Tensor,
    panels: Panels,
    *,
    bias: Tensor | None = None,
    head_epilogue: Epilogue | None = None,
    vectors: tuple[bool, bool] = (False, False),
) -> None:
    """Emit the steps of a group: a product, then ``head_epilogue``, then the group's tail.

    Args:
        lowering: the context that steps are emitted into.
        group: a group whose head is the product.
        a: [*batch, rows, depth].
        panels: the right operand.
        bias: [columns], or None for zeros.
        head_epilogue: the element-wise operations that belong to the head itself.
        vectors: for the left and the right operand, True if it is a vector, whose dimension the result lacks.
    """
    shape = tuple(group.output.shape) or (1,)
    chain, operands = lowering.epilogue(group, shape, len(shape) - 1)
    target = lowering.target(group.output)

    def as_matrix(tensor: Tensor) -> Tensor:
        tensor = tensor.view(shape, tensor.strides or (1,))
        left, right = vectors
        if left:
            return insert_axis(tensor, tensor.rank - 1)
        return insert_axis(tensor, tensor.rank) if right else tensor

    c = as_matrix(target)
    written = c if c.strides[-1] == 1 or c.shape[-1] == 1 else lowering.allocate(c.shape, c.dtype)
    epilogue = Epilogue(chain, tuple(as_matrix(t) for t in operands))
    if head_epilogue is not None:
        epilogue = Epilogue(head_epilogue.chain.then(chain), (*head_epilogue.operands, *epilogue.operands))
    emit_product(
        lowering,
        with_contiguous_rows(lowering, a),
        panels,
        bias or bias_of(lowering, None, panels.columns),
        written,
        epilogue,
    )
    if written is not c:
        lowering.copy(written, c)


def plain_matmul(lowering: Lowering, group: Group) -> None:
    """Emit a product of integers or float64, and its tail as a separate step."""
    left, right, result = group.head.inputs[0], group.head.inputs[1], group.head.outputs[0]
    assert left is not None
    assert right is not None
    assert result is not None
    target = lowering.target(group.output)
    product = lowering.allocate(tuple(result.shape), result.dtype) if group.tail else target
    c = product
    if len(left.shape) == 1:
        c = insert_axis(c, max(0, c.rank - 1))
    if len(right.shape) == 1:
        c = insert_axis(c, c.rank)
    a, b = _as_matrix(lowering.tensor(left), 0), _as_matrix(lowering.tensor(right), 1)
    batch = c.shape[:-2]
    tensors = [c, a.expand((*batch, *a.shape[-2:])), b.expand((*batch, *b.shape[-2:]))]
    sizes, strides = collapse([t.view(batch, t.strides[:-2]) for t in tensors])
    rows, columns, depth = c.shape[-2], c.shape[-1], a.shape[-1]
    inner = [(t.strides[-2], t.strides[-1]) for t in tensors]
    if c.size:
        lowering.step(
            PlainMatMul(result.dtype, len(sizes)), tensors,
            PlainMatMul.params(rows, columns, depth, inner, sizes, strides),
            prod(sizes) * rows, flops=2 * c.size * depth,
        )  # fmt: skip
    if group.tail:
        chain, reads = lowering.chain(result, group.tail)
        lowering.elementwise(chain, [product, *map(lowering.tensor, reads)], target)


def _as_matrix(tensor: Tensor, position: int) -> Tensor:
    """Return a vector as a matrix of one row (``position`` 0) or one column (1); a matrix is returned unchanged."""
    return insert_axis(tensor, position) if tensor.rank == 1 else tensor
