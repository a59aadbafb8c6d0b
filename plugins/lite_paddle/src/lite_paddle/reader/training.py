"""Recognition of programs that were saved for training."""

from __future__ import annotations

import re
from collections.abc import Iterable

from lite_core.errors import ModelFormatError

_OPTIMIZERS_TEXT = """
sgd momentum adam adamw adamax adagrad adadelta rmsprop ftrl lamb lars_momentum dgc_momentum merged_adam
merged_momentum fused_adam dpsgd decayed_adagrad proximal_gd proximal_adagrad sparse_momentum
check_finite_and_unscale update_loss_scaling tuple_push tuple_pop stack_create
"""
_OPTIMIZERS = frozenset(_OPTIMIZERS_TEXT.split())
_BACKWARD_NAME = re.compile(r"\w_(double_|triple_)?grad$")

# OpRole is a set of bits: 1 backward, 2 optimize.
BACKWARD_OR_OPTIMIZE = 3


def is_training_op(op_type: str) -> bool:
    """Return True for gradients, optimizers and operators that pass values from forward to backward pass."""
    name = op_type.rstrip("_")
    return name in _OPTIMIZERS or _BACKWARD_NAME.search(name) is not None


def refuse_training_program(path: object, op_types: Iterable[str]) -> None:
    """Raise an error if any operators of a training program were found.

    Raises:
        ModelFormatError: There is at least one; the message names some, and the remedy.
    """
    found = sorted(set(op_types))
    if found:
        raise ModelFormatError(
            f"{path} is a training program: it contains {', '.join(found[:6])}"
            f"{f' and {len(found) - 6} more kinds' if len(found) > 6 else ''}. Export the network for inference with "
            "paddle.jit.save (dynamic graph, after layer.eval()) or "
            "paddle.static.save_inference_model (static graph)."
        )
