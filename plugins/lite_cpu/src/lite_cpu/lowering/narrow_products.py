"""Products whose right operand is a constant of 4 or 8 bits, which is not dequantized before it is multiplied.

Rule: MatMul and Gemm with a matrix of at least 64 K elements from ``DequantizeLinear`` of constants, also transposed,
become the internal operator ``lite_cpu.NarrowMatMul``: inputs x, weights, scales, zero points and bias, where the last
two may be left out; attributes as described at :class:`_Narrow`. Scales may be single, one for each column, or one for
each column and each block of the depth. Smaller matrices stay in the caches between runs, and are dequantized when a
plan is compiled, like all other constants.

The results are as exact as those of float32 (:mod:`lite_cpu.kernels.split_rows`). With a precision of 16 bits, the left
operand is rounded to 16 bits for each block, which is finer than rounding to float16.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial
from math import prod
from typing import Any, NamedTuple

import numpy as np

from lite_compiler.fusion import Group
from lite_core import ops
from lite_core.ir import DType, Graph, Node, Value
from lite_cpu.kernels.narrow_product import NarrowProduct, middle_of, tile_rows, vectors_of
from lite_cpu.kernels.split_rows import SplitRows, words_of_block
from lite_cpu.kernels.tiles import gemm_tile
from lite_cpu.kernels.widened_product import WidenedProduct
from lite_cpu.lowering.context import Lowering
from lite_cpu.lowering.products import with_contiguous_rows
from lite_cpu.lowering.registry import lowers
from lite_cpu.lowering.widening import bias_of
from lite_cpu.narrow_panels import NarrowPanels
from lite_cpu.tensors import Tensor

__all__ = ["keep_narrow", "narrow_product"]

Array = np.ndarray[Any, Any]
F32 = DType.FLOAT32
_FOUR_BITS = (DType.INT4, DType.UINT4)
_NARROW = (*_FOUR_BITS, DType.INT8, DType.UINT8)
_FEWEST_ELEMENTS = 1 << 16
#: Elements of a block, the most first. Longer blocks of the weights are cut.
_BLOCKS = (128, 64, 32, 16)
#: Blocks of rows with one scale for each column may add this share of padding to the depth.
_MOST_PADDING = 1 / 32
#: Work items for each thread, so that a thread that was late has work to give away.
_ITEMS_OF_A_THREAD = 8
#: Elements of a work item that splits rows.
_ITEM_ELEMENTS = 1 << 14
#: Products of one left operand, such as queries, keys and values, follow one another within so many steps.
_RECENT_STEPS = 8
#: Without dot products of bytes, with so many rows it is faster to widen the weights for tiles of float32.
_FEWEST_ROWS = 4


class _Narrow(NamedTuple):
    """A dequantized constant as the right operand of a product.

    Attributes:
        node: the DequantizeLinear.
        transposed: True if the constant is [columns, depth].
        block_size: elements of the depth with a common scale; 0 for all.
    """

    node: Node
    transposed: bool
    block_size: int


def keep_narrow(graph: Graph) -> Graph:
    """Apply the rule, to a copy if it applies anywhere; every shape of the graph is known."""
    producers = {v: node for node in graph.nodes for v in node.outputs if v is not None}
    replaced: dict[Node, Node] = {}
    for node in graph.nodes:
        product = _narrow_node(node, producers, graph.constants)
        if product is not None:
            replaced[node] = product
    if not replaced:
        return graph
    nodes = [replaced.get(node, node) for node in graph.nodes]
    used = {v for node in nodes for v in node.used()} | {*graph.outputs}
    kept = [n for n in nodes if n.op not in ("DequantizeLinear", "Transpose") or any(v in used for v in n.outputs)]
    used = {v for node in kept for v in node.used()} | {*graph.outputs}
    kept = [n for n in kept if n.op != "DequantizeLinear" or any(v in used for v in n.outputs)]
    return Graph(graph.name, inputs=graph.inputs, outputs=graph.outputs, nodes=kept, constants=graph.constants)


def _narrow_node(node: Node, producers: Mapping[Value, Node], constants: Mapping[Value, Array]) -> Node | None:
    if node.domain or node.op not in ("MatMul", "Gemm"):
        return None
    left, right = node.inputs[0], node.inputs[1]
    assert left is not None
    if right is None or not left.shape:
        return None
    bias, swapped = None, False
    if node.op == "Gemm":
        attributes = ops.attributes_of(node)
        addend = node.inputs[2] if len(node.inputs) > 2 else None
        if attributes["alpha"] != 1 or attributes["transA"] or (addend is not None and attributes["beta"] != 1):
            return None
        swapped, columns = bool(attributes["transB"]), node.outputs[0].shape[-1]  # type: ignore[union-attr]
        if addend is not None and (prod(addend.shape) != columns or addend.shape[-1] != columns):
            return None
        bias = addend
    source = producers.get(left)
    if source is not None and source.op == "DequantizeLinear":
        return None  # both operands are integers
    found = _narrow_operand(right, swapped, producers, constants)
    if found is None:
        return None
    w, scales, zeros = (found.node.inputs[i] if i < len(found.node.inputs) else None for i in range(3))
    return Node(
        "NarrowMatMul", [left, w, scales, zeros, bias], node.outputs,
        {"transposed": int(found.transposed), "block_size": found.block_size},
        domain="lite_cpu", name=node.name, origin=node.origin,
    )  # fmt: skip


def _narrow_operand(
    value: Value, transposed: bool, producers: Mapping[Value, Node], constants: Mapping[Value, Array]
) -> _Narrow | None:
    """Return a right operand that a kernel can read narrow, or None."""
    node = producers.get(value)
    if node is not None and node.op == "Transpose" and not node.domain and len(value.shape) == 2:
        if tuple(ops.attributes_of(node)["perm"] or (1, 0)) != (1, 0):
            return None
        transposed, node = not transposed, producers.get(node.inputs[0])  # type: ignore[arg-type]
    if node is None or node.op != "DequantizeLinear" or node.domain:
        return None
    arrays = [constants.get(v) for v in node.used()]
    if any(array is None for array in arrays):
        return None
    w, scales = arrays[0], arrays[1]
    assert w is not None
    assert scales is not None
    if w.ndim != 2 or w.size < _FEWEST_ELEMENTS or DType.of(w) not in _NARROW:
        return None
    attributes = ops.attributes_of(node)
    along = 1 if transposed else 0
    axis, size = attributes["axis"] % 2, attributes["block_size"]
    if scales.size == 1 or (not size and axis != along):
        return _Narrow(node, transposed, 0)
    if not size or axis != along:
        return None
    if size >= w.shape[along]:
        return _Narrow(node, transposed, 0)
    return _Narrow(node, transposed, size) if size % _BLOCKS[-1] == 0 else None


class _Division(NamedTuple):
    """The division of the depth into blocks.

    Attributes:
        block: elements of a block.
        repeats: blocks that share a scale.
        blocks: the number of blocks.
    """

    block: int
    repeats: int
    blocks: int

    @staticmethod
    def of(depth: int, block_size: int) -> _Division:
        if block_size:
            block = next(size for size in _BLOCKS if block_size % size == 0)
            return _Division(block, block_size // block, -(-depth // block_size) * (block_size // block))
        block = next((n for n in _BLOCKS if -depth % n <= _MOST_PADDING * depth), _BLOCKS[-1])
        return _Division(block, 1, -(-depth // block))


def _refuse(node: Node) -> str | None:
    x = node.inputs[0]
    assert x is not None
    return None if x.dtype is F32 else f"{node.op} of {x.dtype}: the CPU kernels compute in float32"


@lowers("lite_cpu.NarrowMatMul", refuse=_refuse, epilogue=True)
def narrow_product(lowering: Lowering, group: Group) -> None:
    """Emit a product that reads narrow weights, or, for many rows without dot products, widens a panel at a time."""
    x, w, scales, zeros, bias = group.head.inputs
    assert x is not None
    assert w is not None
    transposed, block_size = (group.head.attributes[name] for name in ("transposed", "block_size"))
    assert isinstance(block_size, int)
    depth, columns = tuple(w.shape)[::-1] if transposed else tuple(w.shape)
    shape, machine = tuple(group.output.shape), lowering.machine
    rows = prod(shape[:-1])
    chain, operands = lowering.epilogue(group, shape, len(shape) - 1)
    target = lowering.target(group.output)
    if not target.size:
        return
    division = _Division.of(depth, block_size)
    weights, of_blocks, points = _packed(lowering, w, scales, zeros, bool(transposed), block_size, division)
    c = target if _row_stride(target) is not None else lowering.allocate(shape, target.dtype)
    a = with_contiguous_rows(lowering, lowering.tensor(x))
    a = a if _row_stride(a) is not None else lowering.dense(a)
    rest = [t if _row_stride(t) is not None else _dense(lowering, t) for t in operands]
    bits = 4 if w.dtype in _FOUR_BITS else 8
    form = (of_blocks.dtype, bool(block_size), points is not None)
    kernel: NarrowProduct | WidenedProduct
    if machine.dot_product or rows < _FEWEST_ROWS:
        pieces = _pieces(lowering)
        a = _split_rows(lowering, a, rows, division, SplitRows(division.block, pieces, middle_of(machine, bits)))
        kernel, scratch, row_bytes = NarrowProduct(chain, bits, division.block, pieces, *form), 0, 4 * a.shape[1]
        height, more = tile_rows(machine), []
    else:
        kernel, row_bytes = WidenedProduct(chain, bits, division.block, *form), 4 * depth
        scratch, height, more = (
            kernel.scratch_bytes(machine, division.blocks),
            gemm_tile(machine)[0],
            [depth, _row_stride(a) or 0],
        )
    row_block, column_block = _blocks_of_items(lowering, rows, columns, height, row_bytes)
    lowering.step(
        kernel, [a, weights, of_blocks, points or weights, bias_of(lowering, bias, columns), c, *rest],
        [rows, columns, division.blocks, _row_stride(c) or 0, row_block, column_block, *more]
        + [_row_stride(t) or 0 for t in rest],
        -(-rows // row_block) * -(-columns // column_block), flops=2 * rows * depth * columns, scratch_bytes=scratch,
    )  # fmt: skip
    if c is not target:
        lowering.copy(c, target)


def _pieces(lowering: Lowering) -> int:
    if not lowering.machine.dot_product:
        return 0
    return 2 if DType(lowering.options.precision).is_half else 3


def _split_rows(lowering: Lowering, x: Tensor, rows: int, division: _Division, kernel: SplitRows) -> Tensor:
    """Emit the splitting of rows, unless another product has just split them alike; return the split rows."""
    for step in lowering.steps[-_RECENT_STEPS:]:
        if step.kernel == kernel and step.tensors[0] == x:
            return step.tensors[1]
    split = lowering.allocate((rows, division.blocks * words_of_block(division.block, kernel.pieces)), DType.INT32)
    depth = x.shape[-1]
    params = [depth, _row_stride(x) or 0, division.blocks]
    lowering.step(kernel, [x, split], params, rows, max(1, _ITEM_ELEMENTS // depth), flops=4 * x.size)
    return split


def _packed(
    lowering: Lowering,
    w: Value,
    scales: Value | None,
    zeros: Value | None,
    transposed: bool,
    block_size: int,
    division: _Division,
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Return the panels of the weights, of the scales, and of the zero points; None if these are all 0."""
    machine, array, factors = lowering.machine, lowering.known(w), lowering.known(scales)
    assert array is not None
    assert factors is not None
    bits = 4 if w.dtype in _FOUR_BITS else 8
    depth, columns = array.shape[::-1] if transposed else array.shape
    width = vectors_of(machine) * machine.lanes()
    counts, repeats = (-(-depth // block_size), division.repeats) if block_size else (1, 1)

    def numbers(values: Array, dtype: DType, middle: int = 0) -> Tensor:
        panels = NarrowPanels(transposed, counts, columns, 0, repeats, width, middle, dtype)
        if values.size == counts * columns:
            return lowering.packed(panels, [values], partial(panels.pack, values), panels)
        wide = np.broadcast_to(values.reshape(()), (columns, counts) if transposed else (counts, columns))
        return lowering.packed(("single", panels), [values], partial(panels.pack, wide))

    layout = NarrowPanels(
        transposed, depth, columns, bits, max(block_size, division.block), width, middle_of(machine, bits), DType.UINT8
    )
    weights = lowering.packed(layout, [array], partial(layout.pack, array), layout)
    of_blocks = numbers(factors, _scale_type(lowering, factors))
    points, middle = lowering.known(zeros), 0 if w.dtype.is_signed else 1 << (bits - 1)
    if points is None and middle:
        points = _constant_points(w.dtype)
    if points is None or np.all(points.astype(np.int16) == middle):
        return weights, of_blocks, None
    return weights, of_blocks, numbers(points, DType.INT8, middle)


@cache
def _constant_points(dtype: DType) -> Array:
    """Return the zero point of weights that have none."""
    return np.zeros(1, dtype.numpy)


def _scale_type(lowering: Lowering, scales: Array) -> DType:
    """Return float16 if it holds all scales exactly, which halves the memory that is read for them."""

    def find() -> DType:
        with np.errstate(over="ignore"):
            halves = scales.astype(np.float16)
        return DType.FLOAT16 if np.array_equal(halves.astype(np.float32), scales) else F32

    return lowering.cache.get_or_make(("scale type", id(scales)), find) if lowering.machine.half else F32


def _blocks_of_items(lowering: Lowering, rows: int, columns: int, height: int, row_bytes: int) -> tuple[int, int]:
    """Return rows and columns of a work item: its rows of A take at most half of the second-level cache.

    Args:
        lowering: the lowering context.
        rows: rows of A.
        columns: columns of the weights.
        height: rows of a register tile.
        row_bytes: bytes of a row of A.
    """
    machine, threads = lowering.machine, lowering.options.threads
    width = vectors_of(machine) * machine.lanes()
    fitting = max(1, machine.l2_bytes // 2 // max(1, row_bytes) // height) * height
    row_block = -(-rows // -(-rows // fitting) // height) * height if rows > fitting else rows
    panels, row_blocks = -(-columns // width), -(-rows // row_block)
    wanted = 1 if threads == 1 else max(1, _ITEMS_OF_A_THREAD * threads // row_blocks)
    return row_block, max(1, panels // wanted) * width


def _row_stride(tensor: Tensor) -> int | None:
    """Return the distance of rows, merged over all dimensions but the last; None if it varies, or rows have gaps."""
    if tensor.shape[-1] > 1 and tensor.strides[-1] not in (0, 1):
        return None
    merged = tensor.view(tensor.shape[:-1], tensor.strides[:-1]).reshape((prod(tensor.shape[:-1]),))
    return None if merged is None else merged.strides[0]


def _dense(lowering: Lowering, tensor: Tensor) -> Tensor:
    copy = lowering.allocate(tensor.shape, tensor.dtype)
    lowering.copy(tensor, copy)
    return copy
