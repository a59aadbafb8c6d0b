"""The activation functions of LSTM, GRU and RNN, read from their attributes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

__all__ = ["ActivationFunction", "activation_functions"]

_DEFAULTS = {
    "LSTM": ("Sigmoid", "Tanh", "Tanh"),
    "QuantizedLSTM": ("Sigmoid", "Tanh", "Tanh"),
    "GRU": ("Sigmoid", "Tanh"),
    "RNN": ("Tanh",),
}

#: Default values of alpha and beta, for the functions that have them.
_PARAMETERS: Mapping[str, tuple[float, ...]] = {
    "affine": (1.0, 0.0),
    "leakyrelu": (0.01,),
    "thresholdedrelu": (1.0,),
    "scaledtanh": (1.0, 1.0),
    "hardsigmoid": (0.2, 0.5),
    "elu": (1.0,),
}


class ActivationFunction(NamedTuple):
    """An activation function: its name in lower case, and its parameters: none, alpha, or alpha and beta."""

    name: str
    parameters: tuple[float, ...]


def activation_functions(
    op: str, attributes: Mapping[str, Any], directions: int
) -> list[tuple[ActivationFunction, ...]]:
    """Return the activation functions of each direction.

    The values of ``activation_alpha`` and ``activation_beta`` are assigned in order to the functions that take them.

    Args:
        op: LSTM, QuantizedLSTM, GRU or RNN.
        attributes: all attributes of the node, defaults included.
        directions: 1 or 2.
    """
    names = [name.lower() for name in attributes["activations"] or _DEFAULTS[op] * directions]
    explicit = [iter(attributes[f"activation_{parameter}"] or ()) for parameter in ("alpha", "beta")]
    functions = []
    for name in names:
        parameters = [float(next(numbers, default)) for numbers, default in zip(explicit, _PARAMETERS.get(name, ()))]
        functions.append(ActivationFunction(name, tuple(parameters)))
    count = len(names) // directions
    return [tuple(functions[d * count : (d + 1) * count]) for d in range(directions)]
