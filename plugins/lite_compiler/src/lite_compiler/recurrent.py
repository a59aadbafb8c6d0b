"""The activation functions of LSTM, GRU and RNN, which their attributes name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

__all__ = ["ActivationFunction", "activation_functions"]

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


class ActivationFunction(NamedTuple):
    """A function by its name, in lower case, with its alpha, or alpha and beta, if it has them."""

    name: str
    parameters: tuple[float, ...]


def activation_functions(
    op: str, attributes: Mapping[str, Any], directions: int
) -> list[tuple[ActivationFunction, ...]]:
    """The functions of each direction; alphas and betas are handed out to those that take them, in order.

    Args:
        op: LSTM, GRU or RNN.
        attributes: all that the node has, defaults included.
        directions: one or two.
    """
    names = [name.lower() for name in attributes["activations"] or _DEFAULTS[op] * directions]
    given = [iter(attributes[f"activation_{which}"] or ()) for which in ("alpha", "beta")]
    functions = []
    for name in names:
        parameters = [float(next(numbers, default)) for numbers, default in zip(given, _PARAMETERS.get(name, ()))]
        functions.append(ActivationFunction(name, tuple(parameters)))
    count = len(names) // directions
    return [tuple(functions[d * count : (d + 1) * count]) for d in range(directions)]
