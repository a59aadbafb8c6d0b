"""Quantized models: products of 8-bit tensors, and products with weights of 8 or 4 bits that are widened.

Backends fuse these forms into kernels that read the narrow numbers. The runtime inputs of the 8-bit products are
8-bit tensors, so that no close decision of a rounding is part of a case.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from lite_conformance.cases.graphs.draft import Draft, GraphTable
from lite_conformance.cases.tensors import integers
from lite_core.ir import Value

__all__ = ["graphs"]

graphs = GraphTable()

#: The range of numbers of each type of weights.
_RANGES = {"int8": (-128, 128), "uint8": (0, 256), "int4": (-8, 8), "uint4": (0, 16)}
_BITS = {"int8": 8, "uint8": 8, "int4": 4, "uint4": 4}
#: Rows of products: one is limited by reading the weights; the others are not a multiple of a tile.
_ROWS = (1, 2, 33)


def _narrow(g: Draft, dtype: str, *shape: int) -> Value:
    low, high = _RANGES[dtype]
    return g.constant(np.random.default_rng([low + 128, *shape]).integers(low, high, shape), dtype)


def _scales(g: Draft, *shape: int) -> Value:
    return g.constant(np.random.default_rng(shape).uniform(0.01, 0.05, shape))


def _activation(g: Draft, *shape: int) -> Value:
    x = g.input(*shape, dtype="uint8", init=integers(0, 255))
    return g("DequantizeLinear", x, g.constant(0.04), g.constant(117, "uint8"))


@graphs.case("quantized-conv", op="QLinearConv")
def _(g: Draft) -> None:
    """A convolution whose weights have a scale for each channel, and a depthwise one."""
    x = _activation(g, 2, 16, 9, 7)
    weights = g("DequantizeLinear", _narrow(g, "int8", 24, 16, 3, 3), _scales(g, 24), axis=0)
    dense = g("Conv", x, weights, g.weight(24), pads=(1, 1, 1, 1))
    each = g("DequantizeLinear", _narrow(g, "int8", 16, 1, 3, 3), _scales(g, 16), axis=0)
    g.output(g("Relu", dense), g("Conv", x, each, g.weight(16), pads=(1, 1, 1, 1), strides=(2, 2), group=16))


@graphs.case("quantized-linear", op="QLinearMatMul")
def _(g: Draft) -> None:
    """A product with weights that have a scale for each column, and one of two run-time tensors."""
    x = _activation(g, 5, 96)
    weights = g("DequantizeLinear", _narrow(g, "int8", 96, 33), _scales(g, 33), axis=1)
    y = g("Add", g("MatMul", x, weights), g.weight(33))
    other = g("DequantizeLinear", g.input(96, 7, dtype="uint8", init=integers(0, 255)), g.constant(0.02))
    g.output(y, g("MatMul", x, other))


def _weights_only(g: Draft, dtype: str, rows: int, block: int) -> None:
    """Add a product with narrow weights: one scale and zero point for each block of a column, or for each column."""
    depth, columns = 512, 136  # backends may dequantize smaller weights before the run
    blocks = depth // block if block else 1
    shape = (blocks, columns) if block else (columns,)
    middle = _RANGES[dtype][0] + (1 << _BITS[dtype] - 1)
    points = g.constant(np.full(shape, middle) + np.arange(columns) % 3, dtype)
    attributes = {"axis": 0, "block_size": block} if block else {"axis": 1}
    weights = g("DequantizeLinear", _narrow(g, dtype, depth, columns), _scales(g, *shape), points, **attributes)
    g.output(g("Add", g("MatMul", g.input(rows, depth), weights), g.weight(columns)))


for _dtype, _count in _BITS.items():
    for _rows in _ROWS:
        for _block in (0, 32):
            _form = f"blocks-of-{_block}" if _block else "columns"
            graphs.case(f"weights{_count}-{_dtype},{_form},{_rows}-rows", op="MatMul")(
                partial(_weights_only, dtype=_dtype, rows=_rows, block=_block)
            )
