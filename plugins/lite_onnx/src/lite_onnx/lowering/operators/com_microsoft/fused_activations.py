"""The domain's name, and the activations of its fused operators."""

from __future__ import annotations

from typing import Any

from lite_core.ir import Value
from lite_onnx.lowering.context import Context
from lite_onnx.lowering.unlowerable import Unlowerable

__all__ = ["MICROSOFT", "apply_activation"]

MICROSOFT = "com.microsoft"

#: The activations of fused operators, and the names of their parameters in the order in which they are listed.
_ACTIVATIONS: dict[str, tuple[str, ...]] = {
    "Relu": (),
    "Sigmoid": (),
    "Tanh": (),
    "Elu": ("alpha",),
    "LeakyRelu": ("alpha",),
    "HardSigmoid": ("alpha", "beta"),
    "Softplus": (),
    "Softsign": (),
    "HardSwish": (),
    "ThresholdedRelu": ("alpha",),
    "Selu": ("alpha", "gamma"),
}


def apply_activation(value: Value, name: Any, parameters: list[float], context: Context) -> Value:
    """Apply the activation that a fused operator names; none if the name is empty."""
    if not name:
        return value
    if name == "Clip":
        low, high = (context.scalar_like(p, value) for p in (*parameters, -3.4028235e38, 3.4028235e38)[:2])
        return context.add("Clip", [value, low, high])
    known = _ACTIVATIONS.get(name)
    if known is None:
        raise Unlowerable(f"its activation {name!r} is not one of {', '.join(_ACTIVATIONS)}, Clip")
    return context.add(name, [value], dict(zip(known, parameters)))
