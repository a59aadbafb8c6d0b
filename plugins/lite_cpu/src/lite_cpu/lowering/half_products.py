"""Products of float16 on machines that multiply it: which nodes are, and their constant operands."""

from __future__ import annotations

from collections.abc import Container
from math import prod
from typing import Any

import numpy as np

from lite_core import ops
from lite_core.ir import DType, Node, Value
from lite_cpu.dot_panels import DotPanels, Matrices, pack_halves, unit_of_halves
from lite_cpu.kernels.half_products import with_lanes_of_halves
from lite_cpu.kernels.tiles import gemm_tile
from lite_cpu.lowering.context import Lowering
from lite_cpu.lowering.pairs import PRODUCTS
from lite_cpu.lowering.products import Panels
from lite_cpu.lowering.window import window_of
from lite_cpu.lowering.winograd import best_tile
from lite_cpu.machine import Machine

__all__ = ["is_product_of_halves", "pack_constant_halves"]

Array = np.ndarray[Any, Any]

#: Minimum depth of a product: adding the sums of float16 to those of float32 takes as long as 8 steps.
_LEAST_DEPTH = 16

#: The time of a direct convolution in float16, as a share of that in float32.
_SHARE = 0.55


def is_product_of_halves(machine: Machine, node: Node, constants: Container[Value]) -> bool:
    """Return True if a node is a product that is computed in float16 if its first input is float16.

    Its weights are constants, because the unit of :mod:`lite_cpu.kernels.half_products` follows from them. Convolutions
    that Winograd's algorithm computes faster in float32 are none.

    Args:
        machine: the processor.
        node: any node.
        constants: the values that are constants.
    """
    if not machine.half_products or node.domain or node.op not in PRODUCTS:
        return False
    x, w, y = *node.inputs[:2], node.outputs[0]
    assert x is not None
    assert w is not None
    assert y is not None
    if w not in constants or x.dtype is DType.BFLOAT16 or 0 in (prod(w.shape), prod(y.shape)):
        return False
    if node.op == "Conv":
        groups = ops.attributes_of(node)["group"]
        if len(x.shape) not in (3, 4) or prod(w.shape[1:]) < _LEAST_DEPTH:
            return False
        # Depthwise convolutions have kernels of their own, which are limited by memory.
        if w.shape[1] == 1 and groups > 1:
            return False
        return len(x.shape) == 3 or best_tile(machine, window_of(node), x.shape, y.shape, _SHARE) is None
    depth = x.shape[0] if node.attributes.get("transA", 0) else x.shape[-1]
    columns = prod(w.shape) // (depth * prod(w.shape[:-2]))
    return bool(depth >= _LEAST_DEPTH and columns > 1)


def pack_constant_halves(
    lowering: Lowering, array: Array, shape: tuple[int, ...], *, transposed: bool = False, scale: float = 1.0
) -> Panels:
    """Pack constant matrices [..., depth, columns] of several columns, multiplied by ``scale``, once in the process.

    Args:
        lowering: the lowering context.
        array: the constant, floats.
        shape: the shape of the constant; all dimensions before the last two are batches.
        transposed: True if ``array`` is [..., columns, depth].
        scale: multiplies every element.
    """
    machine = with_lanes_of_halves(lowering.machine)
    lanes, (_, vectors) = machine.lanes(), gemm_tile(machine)
    stacked = (prod(shape[:-2]), 1, *shape[-2:])
    order = (0, 1, 3, 2) if transposed else (0, 1, 2, 3)
    matrices = Matrices(stacked, order, tuple(stacked[i] for i in order), ())
    layout = DotPanels(matrices, DType.FLOAT16, 1, lanes, vectors)

    def scaled() -> Array:
        return matrices.of(array if scale == 1 else array.astype(np.float32) * np.float32(scale))

    unit = lowering.cache.get_or_make(("unit", id(array), scale, matrices), lambda: unit_of_halves(scaled()))
    packed = lowering.packed(
        ("float16 panels", scale, layout), [array], lambda: pack_halves(scaled(), unit, lanes, vectors),
        layout if scale == 1 else None,
    )  # fmt: skip
    depth, columns = matrices.shape[2:]
    return Panels.of(packed, shape[:-2], depth, columns, unit=unit)
