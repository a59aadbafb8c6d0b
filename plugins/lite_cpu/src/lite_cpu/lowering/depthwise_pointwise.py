"""Lowering of a depthwise Conv and the pointwise Conv after it as one step."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from lite_compiler.fusion import Group
from lite_compiler.tracing.numbers import call, computed, largest, smallest
from lite_core.ir import DType, Node
from lite_cpu.chains import Chain, Operand
from lite_cpu.kernels.depthwise import Depthwise
from lite_cpu.kernels.depthwise_pointwise import DepthwisePointwise
from lite_cpu.lowering.context import Lowering, channels_last_order
from lite_cpu.lowering.depthwise import is_depthwise, plan_depthwise
from lite_cpu.lowering.widening import bias_of
from lite_cpu.lowering.window import cached_window
from lite_cpu.tensors import Tensor

__all__ = ["depthwise_pointwise", "worth_fusing"]


def worth_fusing(lowering: Lowering, first: Group, second: Group) -> bool:
    """Return True if ``first``, which only ``second`` reads, should be computed inside ``second``.

    Both must be convolutions of images with known weights, the first depthwise, the second pointwise and of float32;
    the input of the first may have 16 bits. Fusion then pays if the image between them does not fit into half of the
    second-level cache. Measured on a Zen 4 core with 1 MiB, on the pairs of MobileNet v1 and v2 whose image has 0.6 MiB
    or more (28x28x192, 28x28x256, 56x56x128, 56x56x144, 112x112x32): 5 to 19 % faster in isolation; within whole models
    between 3 % slower and 10 % faster, 0.5 to 1.5 % of the model. For smaller images the difference is within the
    noise.
    """
    if not (_is_convolution_of_images(first.head) and _is_convolution_of_images(second.head)):
        return False
    if first.output.dtype is not DType.FLOAT32:
        return False  # the product would be one of 16-bit floats
    batch, channels, rows, columns = first.output.shape
    image_bytes = batch * channels * rows * columns * first.output.dtype.itemsize
    if image_bytes <= lowering.machine.l2_bytes // 2:
        return False
    pointwise = cached_window(lowering, second.head)
    if not pointwise.is_pointwise or pointwise.strides != (1, 1) or pointwise.groups != 1:
        return False
    if any(v is not None and lowering.known(v) is None for v in second.head.inputs[1:]):
        return False
    return is_depthwise(lowering, first, cached_window(lowering, first.head))


def depthwise_pointwise(lowering: Lowering, group: Group, target: Tensor) -> None:
    """Emit ``group``, a pointwise convolution, with its producer; ``target`` is channels last."""
    first = group.producer
    assert first is not None
    x, (_, w, *rest) = first.head.inputs[0], group.head.inputs
    assert x is not None
    assert w is not None
    source = lowering.tensor(x)
    # Only its strides are used. No step writes it, so it takes no memory in the arena.
    intermediate = lowering.allocate(first.output.shape, first.output.dtype, channels_last_order(4))
    plan = plan_depthwise(lowering, first, cached_window(lowering, first.head), source, intermediate)
    batch, outputs, rows, columns = target.shape
    weights = lowering.cached(group.head, "panels", lambda: lowering.packed_panels(w))
    bias = lowering.cached(group.head, "bias", lambda: bias_of(lowering, rest[0] if rest else None, outputs))
    chain, others = lowering.epilogue(group, target.shape, axis=1)
    spaced = [_with_pixel_stride(lowering, tensor) for tensor in others]
    operands = [tensor for tensor, _ in spaced]
    spread = [t.strides[1] == 0 and outputs > 1 for t in operands]
    kinds = tuple([Operand(o.dtype, flag, o.constant) for o, flag in zip(chain.operands, spread)])
    kernel = call(_kernels(Chain(chain.start, kinds, chain.steps)), plan.kernel)
    row_bytes = 4 * intermediate.strides[2]
    band = _band(rows, batch, row_bytes, plan.tile_rows, lowering.machine.l2_bytes, lowering.options.threads)
    c_pixel = target.pixel_stride
    assert c_pixel is not None
    image, taps, _, *first_operands = plan.tensors
    pixels = batch * rows * columns
    lowering.step(
        kernel,
        [image, taps, weights, bias, target, *first_operands, *operands],
        DepthwisePointwise.params(
            plan.shape, plan.operand_strides, outputs, c_pixel, band, [stride for _, stride in spaced]
        ),
        DepthwisePointwise.items(plan.shape, band),
        flops=plan.flops + 2 * pixels * plan.shape.channels * outputs,
        scratch_bytes=band * row_bytes,
    )


@lru_cache(1024)  # the layers of a block are alike
def _kernels(epilogue: Chain) -> Callable[[Depthwise], DepthwisePointwise]:
    """Return the function that adds a product and its epilogue to a depthwise kernel."""
    known: dict[int, DepthwisePointwise] = {}

    def kernel(first: Depthwise) -> DepthwisePointwise:
        # Kernels are remembered by identity, since there are few: to hash one takes as long as a size's other numbers.
        found = known.get(id(first))
        if found is None:
            found = known[id(first)] = DepthwisePointwise(first, epilogue)
        return found

    return kernel


def _is_convolution_of_images(node: Node) -> bool:
    x = node.inputs[0] if node.inputs else None
    return node.qualified_op == "Conv" and x is not None and len(x.shape) == 4


def _band(rows: int, batch: int, row_bytes: int, tile_rows: int, l2_bytes: int, threads: int) -> int:
    """Return the rows of a work item: at most an eighth of the second-level cache, and balanced between the threads.

    An eighth leaves space for the input, the weights and the output. The packed weights, which are read once for each
    band, remain a small part of the memory traffic.
    """
    tallest = largest(tile_rows, l2_bytes // 8 // row_bytes // tile_rows * tile_rows)
    return _balanced_band(rows, batch, smallest(tallest, -(-rows // tile_rows) * tile_rows), tile_rows, threads)


@computed
@lru_cache(1024)
def _balanced_band(rows: int, batch: int, tallest: int, tile_rows: int, threads: int) -> int:
    """Return the rows of a work item, at most as many as the tallest, of which the busiest thread gets fewest."""

    def rows_of_busiest_thread(band: int) -> int:
        return -(-batch * -(-rows // band) // threads) * band

    return min(range(tallest, 0, -tile_rows), key=rows_of_busiest_thread)


def _with_pixel_stride(lowering: Lowering, operand: Tensor) -> tuple[Tensor, int]:
    """Return an operand of the epilogue and the stride between its pixels; it is copied if the stride varies."""
    stride = operand.slice(1, 0, 1).pixel_stride if operand.strides[1] == 0 else operand.pixel_stride
    if stride is None:
        operand = lowering.channels_last(operand)
        stride = operand.pixel_stride
    assert stride is not None
    return operand, stride
