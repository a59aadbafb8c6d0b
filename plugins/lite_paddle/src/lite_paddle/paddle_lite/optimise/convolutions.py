"""Folding of what follows a convolution into its filter and bias."""

from __future__ import annotations

import numpy as np

from ...source import SourceOp, SourceValue
from ..draft import Draft
from ..program import Array
from .patterns import Chains, along_axis

__all__ = ["CONVOLUTIONS", "fold_into_convolutions"]

_TRANSPOSED = ("conv2d_transpose", "depthwise_conv2d_transpose")
#: The convolutions that have a bias and an activation in Paddle-Lite.
CONVOLUTIONS = ("conv2d", "depthwise_conv2d", *_TRANSPOSED)
_RANK, _CHANNEL = 4, 1


def fold_into_convolutions(draft: Draft) -> None:
    """Fold batch normalization, constant scales and constant terms for each channel into the convolution before."""
    for block in draft.blocks():
        chains = Chains(draft, block)
        for op in block.ops:
            if op.type not in CONVOLUTIONS or op.attrs.get("data_format", "NCHW") != "NCHW":
                continue
            filters = draft.constant(op, "Filter")
            if filters is None or filters.dtype != np.float32 or filters.ndim != _RANK:
                continue
            if "Bias" in op.inputs and draft.constant(op, "Bias") is None:
                continue
            _fold_following(draft, chains, op, filters)
        chains.finish()


def _fold_following(draft: Draft, chains: Chains, op: SourceOp, filters: Array) -> None:
    groups = int(op.attrs.get("groups", 1))
    channels = filters.shape[1] * groups if op.type in _TRANSPOSED else filters.shape[0]
    scale = np.ones(channels)
    given = draft.constant(op, "Bias")
    shift = np.zeros(channels) if given is None else given.astype(np.float64).reshape(-1)
    name = op.inputs["Bias"][0].name if given is not None else ""
    found = False
    while True:
        following = chains.next(op.outputs["Output"][0])
        factors = None if following is None else _affine(draft, following, op.outputs["Output"][0], channels)
        if following is None or factors is None:
            break
        factor, term, label = factors
        scale, shift, name = scale * factor, shift * factor + term, label or name
        chains.absorb(following, "Y" if following.type.endswith("batch_norm") else "Out", op, "Output")
        found = True
    if not found:
        return
    if np.any(scale != 1):
        kept = op.inputs["Filter"][0].name
        op.inputs["Filter"] = [draft.add_constant(kept, _scaled(op, filters, scale, groups).astype(np.float32))]
    bias = name or f"{op.inputs['Filter'][0].name}/bias"
    op.inputs["Bias"] = [draft.add_constant(bias, shift.astype(np.float32))]


def _scaled(op: SourceOp, filters: Array, scale: Array, groups: int) -> Array:
    """Return filters whose output channels are multiplied by ``scale``."""
    wide = filters.astype(np.float64)
    if op.type not in _TRANSPOSED:
        return wide * scale[:, None, None, None]
    # [input channels, output channels of a group, height, width]
    grouped = wide.reshape(groups, -1, *filters.shape[1:])
    scaled: Array = (grouped * scale.reshape(groups, 1, -1, 1, 1)).reshape(filters.shape)
    return scaled


def _affine(draft: Draft, op: SourceOp, value: SourceValue, channels: int) -> tuple[Array, Array, str] | None:
    """Return the factor and the term of each channel that an operator applies to ``value``, and a name for the bias.

    None if it does something else.
    """
    if op.type in ("batch_norm", "sync_batch_norm"):
        return _batch_norm(draft, op, channels)
    zeros, ones = np.zeros(channels), np.ones(channels)
    if op.type == "scale" and list(op.inputs) == ["X"]:
        factor, term = float(op.attrs["scale"]), float(op.attrs["bias"])
        if not op.attrs.get("bias_after_scale", True):
            term *= factor
        return factor * ones, term * ones, ""
    if op.type not in ("elementwise_add", "elementwise_sub", "elementwise_mul", "elementwise_div"):
        return None
    is_first = op.inputs["X"][0] is value
    other = draft.constant(op, "Y" if is_first else "X")
    if other is None or other.dtype != np.float32:
        return None
    numbers = along_axis(other, int(op.attrs.get("axis", -1)), _RANK, _CHANNEL, channels)
    if numbers is None:
        return None
    name = op.inputs["Y" if is_first else "X"][0].name
    if op.type == "elementwise_add":
        return ones, numbers, name
    if op.type == "elementwise_mul":
        return numbers, zeros, ""
    if op.type == "elementwise_sub":
        return (ones, -numbers, name) if is_first else (-ones, numbers, name)
    return (1 / numbers, zeros, "") if is_first and np.all(numbers != 0) else None


def _batch_norm(draft: Draft, op: SourceOp, channels: int) -> tuple[Array, Array, str] | None:
    arrays = [draft.constant(op, slot) for slot in ("Scale", "Bias", "Mean", "Variance")]
    if any(array is None or array.size != channels for array in arrays):
        return None
    if op.attrs.get("data_layout", "NCHW") != "NCHW":
        return None
    gamma, beta, mean, variance = (array.astype(np.float64).reshape(-1) for array in arrays if array is not None)
    factor = gamma / np.sqrt(variance + float(op.attrs["epsilon"]))
    return factor, beta - mean * factor, op.inputs["Bias"][0].name
