"""The activation functions of recurrent layers, which their attributes name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lite_opencl.lowering.vectors import Defines

__all__ = ["activation_defines"]

_DEFAULTS = {"LSTM": ("Sigmoid", "Tanh", "Tanh"), "GRU": ("Sigmoid", "Tanh"), "RNN": ("Tanh",)}
#: What alpha and beta are where they are not given, for the functions that have them.
_PARAMETERS: Mapping[str, tuple[float, ...]] = {
    "affine": (1.0, 0.0),
    "leakyrelu": (0.01,),
    "thresholdedrelu": (1.0,),
    "scaledtanh": (1.0, 1.0),
    "hardsigmoid": (0.2, 0.5),
    "elu": (1.0,),
}


def activation_defines(op: str, attributes: Mapping[str, Any], directions: int) -> list[Defines]:
    """For each direction ``FUNCTION_0(x)`` and so on, and ``CLIP`` where there is one.

    Alphas and betas are handed out to the functions that take them, in order.
    """
    names = [name.lower() for name in attributes["activations"] or _DEFAULTS[op] * directions]
    alphas, betas = (iter(attributes[f"activation_{which}"] or ()) for which in ("alpha", "beta"))
    texts = [_function(name, alphas, betas) for name in names]
    count = len(names) // directions
    clip: Defines = [] if attributes["clip"] is None else [("CLIP", repr(float(attributes["clip"])))]
    return [
        [*((f"FUNCTION_{i}(x)", text) for i, text in enumerate(texts[d * count : (d + 1) * count])), *clip]
        for d in range(directions)
    ]


def _function(name: str, alphas: Iterator[float], betas: Iterator[float]) -> str:
    defaults = _PARAMETERS.get(name, ())
    given = [float(next(numbers, default)) for numbers, default in zip((alphas, betas), defaults)]
    alpha, beta = (*given, 0.0, 0.0)[:2]
    return f"ACT_{name.upper()}(x, {alpha!r}, {beta!r})"
