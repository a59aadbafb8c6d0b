"""Linear layers: a product with a constant matrix, a constant row and perhaps a relu become ``fc``."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ...source import SourceOp, SourceValue
from ..draft import Draft, rank
from ..kernels import Target
from ..placing import Targets
from ..program import Array
from .patterns import Chains, along_axis

__all__ = ["make_linear_layers"]


def make_linear_layers(draft: Draft, targets: Targets) -> None:
    """Replace products with constant matrices, and the constant terms and relus after them, by ``fc``."""
    for block in draft.blocks():
        chains, producers = Chains(draft, block), draft.producers()
        for op in block.ops:
            product = None if chains.is_absorbed(op) else _product(draft, op)
            if product is None:
                continue
            columns, weights = product
            if Target.OPENCL in targets and columns != 1:
                continue
            following = chains.next(op.outputs["Out"][0])
            bias = None if following is None else _bias(draft, op, following, columns + 1, weights.shape[1])
            if following is None or bias is None:
                continue
            names = op.inputs["Y"][0].name, following.inputs["Y"][0].name
            is_same = weights is draft.constant(op, "Y")
            op.inputs = {
                "Input": op.inputs["X"],
                "W": op.inputs["Y"] if is_same else [draft.add_constant(names[0], weights)],
                "Bias": [draft.add_constant(names[1], bias)],
            }
            # What the operator was; Paddle-Lite records it, too.
            op.attrs = {"in_num_col_dims": columns, "op_type": op.type}
            op.type = "fc"
            chains.absorb(following, "Out", op, "Out")
            activation = chains.next(op.outputs["Out"][0])
            if activation is not None and activation.type == "relu":
                op.attrs["activation_type"] = "relu"
                chains.absorb(activation, "Out", op, "Out")
            _skip_flatten(op, producers, targets)
        chains.finish()


def _skip_flatten(op: SourceOp, producers: Mapping[SourceValue, SourceOp], targets: Targets) -> None:
    """Let ``fc``, which flattens its operand itself, read what was flattened to a matrix for it."""
    flat = producers.get(op.inputs["Input"][0])
    if flat is None or flat.type != "flatten_contiguous_range" or op.attrs["in_num_col_dims"] != 1:
        return
    value = flat.inputs["X"][0]
    shape = None if value.type is None else value.type.shape
    if shape is None or flat.attrs.get("start_axis") != 1 or flat.attrs.get("stop_axis") not in (-1, len(shape) - 1):
        return
    # The images of OpenCL order channels otherwise than columns, unless there is one pixel.
    if Target.OPENCL not in targets or shape[2:] == (1, 1):
        op.inputs["Input"] = [value]
        op.attrs["op_type"] = "mul"  # a product that flattens, unlike matmul


def _product(draft: Draft, op: SourceOp) -> tuple[int, Array] | None:
    """Return the number of leading dimensions and the matrix [in, out] of a product that ``fc`` can compute."""
    if op.type not in ("matmul", "matmul_v2", "mul"):
        return None
    weights, known = draft.constant(op, "Y"), rank(op.inputs["X"][0])
    if weights is None or weights.dtype != np.float32 or weights.ndim != 2 or op.inputs["X"][0] in draft.constants:
        return None
    if op.type == "mul":
        return (int(op.attrs.get("x_num_col_dims", 1)), weights) if op.attrs.get("y_num_col_dims", 1) == 1 else None
    first, second = ("trans_x", "trans_y") if op.type == "matmul_v2" else ("transpose_X", "transpose_Y")
    if known is None or known < 2 or op.attrs.get(first):
        return None
    if op.attrs.get(second):
        weights = np.ascontiguousarray(weights.T)
    factor = float(op.attrs.get("alpha", 1.0))
    return known - 1, weights if factor == 1 else (weights * np.float32(factor))


def _bias(draft: Draft, op: SourceOp, following: SourceOp, dimensions: int, size: int) -> Array | None:
    if following.type != "elementwise_add" or following.inputs["X"][0] is not op.outputs["Out"][0]:
        return None
    term = draft.constant(following, "Y")
    if term is None or term.dtype != np.float32:
        return None
    numbers = along_axis(term, int(following.attrs.get("axis", -1)), dimensions, dimensions - 1, size)
    return None if numbers is None else numbers.astype(np.float32)
