"""Fusion of activations into the operators before them, as far as the kernels of the targets can."""

from __future__ import annotations

from typing import Any

from ...source import SourceOp
from ..draft import Draft
from ..kernels import Target
from ..placing import Targets
from .convolutions import CONVOLUTIONS
from .patterns import Chains

__all__ = ["fuse_activations"]

# Activation -> its attribute, the attribute of the convolution with the same number, and the default.
_NUMBERS: dict[str, tuple[tuple[str, str, float], ...]] = {
    "relu": (),
    "relu6": (("threshold", "fuse_brelu_threshold", 6.0),),
    "leaky_relu": (("alpha", "leaky_relu_alpha", 0.02),),
    "hard_swish": (
        ("threshold", "hard_swish_threshold", 6.0),
        ("scale", "hard_swish_scale", 6.0),
        ("offset", "hard_swish_offset", 3.0),
    ),
    "hard_sigmoid": (("slope", "slope", 0.2), ("offset", "offset", 0.5)),
    "sigmoid": (),
    "tanh": (),
    "swish": (("beta", "swish_scale", 1.0),),
    "abs": (),
}
_EVERYWHERE = frozenset({"relu", "relu6", "leaky_relu", "hard_swish"})
_ELEMENTWISE = ("elementwise_add", "elementwise_sub", "elementwise_mul")


def fuse_activations(draft: Draft, targets: Targets) -> None:
    """Let convolutions and elementwise operators compute the activation that follows them."""
    for block in draft.blocks():
        chains = Chains(draft, block)
        for op in block.ops:
            if chains.is_absorbed(op):
                continue
            if op.type in CONVOLUTIONS and not op.attrs.get("with_act"):
                following = chains.next(op.outputs["Output"][0])
                if following is not None and _fits(op, following.type, targets):
                    op.attrs.update(_attributes(following))
                    chains.absorb(following, "Out", op, "Output")
            elif op.type in _ELEMENTWISE:
                following = chains.next(op.outputs["Out"][0])
                if following is not None and following.type == "relu" and _is_float(op):
                    op.type = f"fusion_{op.type}_activation"
                    op.attrs["act_type"] = "relu"
                    chains.absorb(following, "Out", op, "Out")
        chains.finish()


def _fits(op: SourceOp, activation: str, targets: Targets) -> bool:
    if op.type not in ("conv2d", "depthwise_conv2d"):
        return activation == "relu"
    if Target.OPENCL in targets:
        return activation in _NUMBERS
    if op.type == "depthwise_conv2d" and activation == "hard_swish" and Target.ARM in targets:
        return False
    return activation in _EVERYWHERE


def _attributes(activation: SourceOp) -> dict[str, Any]:
    numbers = {
        ours: float(activation.attrs.get(theirs, default)) for theirs, ours, default in _NUMBERS[activation.type]
    }
    return {"with_act": True, "act_type": activation.type, **numbers}


def _is_float(op: SourceOp) -> bool:
    return all(value.type is not None and value.type.dtype == "float32" for value in op.inputs["X"] + op.inputs["Y"])
