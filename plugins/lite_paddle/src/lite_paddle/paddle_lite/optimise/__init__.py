"""Optimization of drafts in Paddle-Lite's vocabulary of fused operators; every pass leaves a valid program."""

from __future__ import annotations

from ..draft import Draft
from ..placing import Targets
from .activations import fuse_activations
from .constants import fold_constants
from .convolutions import fold_into_convolutions
from .elementwise import merge_scales, order_operands, scales_from_constants
from .identities import remove_identities
from .linear import make_linear_layers
from .shuffles import make_channel_shuffles

__all__ = ["optimise"]


def optimise(draft: Draft, targets: Targets) -> None:
    """Optimize a draft for targets, which decide what kernels can fuse."""
    remove_identities(draft)
    draft.remove_unused()
    fold_constants(draft)
    fold_into_convolutions(draft)
    scales_from_constants(draft)
    merge_scales(draft)
    order_operands(draft)
    make_channel_shuffles(draft)
    make_linear_layers(draft, targets)
    fuse_activations(draft, targets)
    draft.remove_unused()
