"""Operators that OpenCL computes, and on which images.

Each image kernel here has been compared with what Paddle-Lite's own converter writes for it. The rest stays on the
processor, which is always right: so do tensors with more than four dimensions, which have no image, and broadcasting
other than that of one number for each channel.
"""

from __future__ import annotations

from ..source import SourceOp, SourceValue
from .draft import Draft, rank
from .kernels import Kernel, Layout, Target, kernels_of
from .locations import Choice, Location

__all__ = ["opencl_choice"]

_ONE_INPUT_TEXT = """
abs acos asin atan bilinear_interp bilinear_interp_v2 clip concat cos dropout exp gelu hard_sigmoid hard_swish
leaky_relu log nearest_interp nearest_interp_v2 pad2d pool2d relu relu6 reshape2 rsqrt scale shuffle_channel sigmoid
sin split sqrt square swish tanh transpose2
"""
# Operators that read X only.
_ONE_INPUT = frozenset(_ONE_INPUT_TEXT.split())
_CONVOLUTIONS = frozenset({"conv2d", "depthwise_conv2d", "conv2d_transpose"})
_ELEMENTWISE = tuple(
    f"{before}elementwise_{name}{after}"
    for name in ("add", "sub", "mul", "div")
    for before, after in (("", ""), ("fusion_", "_activation"))
)
# Paddle-Lite computes the softmax of more classes than this on the processor.
_MOST_CLASSES = 500
_HIGHEST_RANK = 4


def opencl_choice(draft: Draft, op: SourceOp) -> Choice | None:
    """Return the OpenCL kernel for an operator, None if the processor computes it."""
    values = [value for values in op.outputs.values() for value in values]
    values += [value for values in op.inputs.values() for value in values if value not in draft.constants]
    if not values or not all(_has_image(value) for value in values):
        return None
    if op.type in _ONE_INPUT and list(op.inputs) == ["X"] and not _constants(draft, op):
        return _chosen(op, Layout.IMAGE_DEFAULT, Location.IMAGE)
    if op.type in _CONVOLUTIONS and _constants(draft, op) == [slot for slot in op.inputs if slot != "Input"]:
        if not _has_simple_groups(draft, op):
            return None
        return _chosen(op, Layout.IMAGE_DEFAULT, Location.IMAGE, "Filter", "Bias")
    if op.type in _ELEMENTWISE and _fits_channels(draft, op):
        return _chosen(op, Layout.IMAGE_DEFAULT, Location.IMAGE, "Y")
    if op.type == "fc" and _constants(draft, op) == [slot for slot in op.inputs if slot != "Input"]:
        return _chosen(op, Layout.IMAGE_FOLDER, Location.FOLDER, "W", "Bias") if _is_matrix(op) else None
    if op.type == "softmax" and rank(op.inputs["X"][0]) == 2 and op.attrs.get("axis", -1) in (-1, 1):
        type_ = op.inputs["X"][0].type
        if type_ is not None and type_.shape is not None and 0 < type_.shape[1] <= _MOST_CLASSES:
            return _chosen(op, Layout.IMAGE_FOLDER, Location.FOLDER)
    return None


def _chosen(op: SourceOp, layout: Layout, location: Location, *constants: str) -> Choice | None:
    kernels = [k for k in kernels_of(op.type) if k.target is Target.OPENCL and k.layout is layout]
    if not kernels:
        return None
    return Choice(_plainest(kernels), location, location, frozenset(constants))


def _plainest(kernels: list[Kernel]) -> Kernel:
    """Return the kernel whose weights are packed when the model is loaded."""
    return next((kernel for kernel in kernels if not kernel.alias.endswith("_pc")), kernels[0])


def _has_image(value: SourceValue) -> bool:
    known = rank(value)
    return value.type is not None and value.type.dtype == "float32" and known is not None and 0 < known <= _HIGHEST_RANK


def _constants(draft: Draft, op: SourceOp) -> list[str]:
    return [slot for slot, values in op.inputs.items() if any(value in draft.constants for value in values)]


def _has_simple_groups(draft: Draft, op: SourceOp) -> bool:
    """Return True for convolutions without groups, and with one output channel for each group."""
    filters, groups = draft.constant(op, "Filter"), op.attrs.get("groups", 1)
    if filters is None or op.type == "conv2d_transpose":
        return filters is not None and groups == 1
    return bool(groups == 1 or (filters.shape[1] == 1 and filters.shape[0] == groups))


def _is_matrix(op: SourceOp) -> bool:
    """Return True if the operand of ``fc`` is a matrix, or channels of one pixel."""
    type_ = op.inputs["Input"][0].type
    if type_ is None or type_.shape is None or op.attrs.get("in_num_col_dims") != 1:
        return False
    return len(type_.shape) == 2 or (len(type_.shape) == _HIGHEST_RANK and type_.shape[2:] == (1, 1))


def _fits_channels(draft: Draft, op: SourceOp) -> bool:
    """Return True if the operands have the same shape, or the second has one number for each channel."""
    first, second = op.inputs["X"][0], op.inputs["Y"][0]
    if first in draft.constants or first.type is None or second.type is None:
        return False
    large, small = first.type.shape, second.type.shape
    if large is None or small is None or len(large) != len(small) or op.attrs.get("axis", -1) not in (-1, 0):
        return False
    if large == small:
        return True
    return len(large) == _HIGHEST_RANK and large[:2] == small[:2] and small[2:] == (1, 1)
