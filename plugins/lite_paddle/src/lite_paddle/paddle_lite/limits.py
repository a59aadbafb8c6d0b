"""Operators with attributes or shapes for which Paddle-Lite 2.13 computes wrong numbers, or ends the process.

Each was found by comparing its predictor with Paddle's results. They are refused; Paddle-Lite's own converter writes
files for them that are wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from ..source import SourceOp, SourceValue
from .draft import Draft, rank

__all__ = ["limit"]

_LIMITS: dict[str, Callable[[SourceOp], str]] = {}


def limit(draft: Draft, op: SourceOp, used: set[SourceValue]) -> str:
    """Return why Paddle-Lite cannot compute an operator with such attributes or shapes, empty if it can.

    Args:
        draft: the program.
        op: the operator.
        used: the values that are read.
    """
    if op.type == "rnn" and any(value in used for value in op.outputs.get("State", [])):
        return "Paddle-Lite leaves its last states without values, and the model reads them"
    if op.type in ("instance_norm", "group_norm") and rank(op.inputs["X"][0]) not in (None, 4):
        return f"Paddle-Lite normalizes tensors with 4 dimensions only, not {rank(op.inputs['X'][0])}"
    if op.type == "layer_norm" and not {"Scale", "Bias"} <= set(op.inputs):
        return (
            "Paddle-Lite ends the process where a scale or a bias is missing, and the number of elements is not known"
        )
    return _LIMITS[op.type](op) if op.type in _LIMITS else ""


def _limited(*types: str) -> Callable[[Callable[[SourceOp], str]], Callable[[SourceOp], str]]:
    def register(function: Callable[[SourceOp], str]) -> Callable[[SourceOp], str]:
        _LIMITS.update(dict.fromkeys(types, function))
        return function

    return register


@_limited("logical_and", "logical_or", "logical_xor", "bitwise_and")
def _without_broadcasting(op: SourceOp) -> str:
    shapes = [value.type.shape for slot in ("X", "Y") for value in op.inputs[slot] if value.type is not None]
    if len(shapes) == 2 and None not in shapes and shapes[0] != shapes[1]:
        first, second = (list(shape or ()) for shape in shapes)
        return f"Paddle-Lite computes it for equal shapes only, not for {first} and {second}"
    return ""


@_limited("deformable_conv")
def _deformable_conv(op: SourceOp) -> str:
    groups = op.attrs.get("deformable_groups", 1)
    return "" if groups == 1 else f"Paddle-Lite takes one deformable group, not {groups}"


@_limited("max_pool2d_with_index")
def _max_pool_with_index(op: SourceOp) -> str:
    return "Paddle-Lite computes results of a wrong size"


@_limited("p_norm")
def _p_norm(op: SourceOp) -> str:
    return "Paddle-Lite returns zeros for the order -inf" if op.attrs.get("porder") == -math.inf else ""


@_limited("pad3d")
def _pad3d(op: SourceOp) -> str:
    if op.attrs.get("mode", "constant") == "constant" and op.attrs.get("value", 0.0) != 0:
        return f"Paddle-Lite pads with zeros, not with {op.attrs['value']}"
    return ""


@_limited("prior_box")
def _prior_box(op: SourceOp) -> str:
    sizes = [*op.attrs.get("min_sizes", []), *op.attrs.get("max_sizes", [])]
    return "" if all(float(size).is_integer() for size in sizes) else f"Paddle-Lite cuts its sizes {sizes} to integers"


@_limited("temporal_shift")
def _temporal_shift(op: SourceOp) -> str:
    type_, ratio = op.inputs["X"][0].type, float(op.attrs["shift_ratio"])
    axis = -1 if op.attrs.get("data_format") == "NHWC" else 1
    channels = type_.shape[axis] if type_ is not None and type_.shape is not None and len(type_.shape) == 4 else -1
    if channels > 0 and (channels * ratio).is_integer():
        return ""
    return f"Paddle-Lite rounds the share {ratio} of the channels in another way than Paddle"


@_limited("yolo_box")
def _yolo_box(op: SourceOp) -> str:
    if op.attrs.get("iou_aware"):
        return "Paddle-Lite has no yolo_box with iou_aware"
    type_ = op.inputs["X"][0].type
    if type_ is not None and type_.shape is not None and len(type_.shape) == 4 and type_.shape[2] != type_.shape[3]:
        return f"Paddle-Lite computes wrong boxes for a grid of {type_.shape[2]} rows and {type_.shape[3]} columns"
    return ""
