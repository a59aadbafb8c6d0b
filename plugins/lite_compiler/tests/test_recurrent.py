"""Tests of the activation functions of recurrent layers."""

from __future__ import annotations

from typing import Any

import pytest

from lite_compiler.recurrent import activation_functions


def attributes(**given: Any) -> dict[str, Any]:
    return {"activations": None, "activation_alpha": None, "activation_beta": None, **given}


@pytest.mark.parametrize(
    ("op", "names"), [("LSTM", ["sigmoid", "tanh", "tanh"]), ("GRU", ["sigmoid", "tanh"]), ("RNN", ["tanh"])]
)
def test_default_functions_of_each_operator_and_direction(op: str, names: list[str]) -> None:
    directions = activation_functions(op, attributes(), 2)
    assert [[function.name for function in functions] for functions in directions] == [names, names]


def test_alphas_and_betas_are_assigned_in_order_to_functions_that_take_them() -> None:
    given = attributes(
        activations=("LeakyRelu", "HardSigmoid", "Affine", "Tanh"),
        activation_alpha=(0.25, 0.75),
        activation_beta=(0.125,),
    )
    (first, second) = activation_functions("GRU", given, 2)
    assert first == (("leakyrelu", (0.25,)), ("hardsigmoid", (0.75, 0.125)))
    assert second == (("affine", (1.0, 0.0)), ("tanh", ()))
