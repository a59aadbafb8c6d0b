"""Activation functions of recurrent layers, which are given by attributes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lite_compiler.recurrent import ActivationFunction, activation_functions
from lite_opencl.lowering.vectors import Defines

__all__ = ["activation_defines"]


def activation_defines(op: str, attributes: Mapping[str, Any], directions: int) -> list[Defines]:
    """Define ``FUNCTION_0(x)`` and so on for each direction, and ``CLIP`` if the layer clips."""
    clip: Defines = [] if attributes["clip"] is None else [("CLIP", repr(float(attributes["clip"])))]
    return [
        [*((f"FUNCTION_{i}(x)", _call(function)) for i, function in enumerate(functions)), *clip]
        for functions in activation_functions(op, attributes, directions)
    ]


def _call(function: ActivationFunction) -> str:
    alpha, beta = (*function.parameters, 0.0, 0.0)[:2]
    return f"ACT_{function.name.upper()}(x, {alpha!r}, {beta!r})"
