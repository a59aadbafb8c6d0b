"""Infinities in LSTM, GRU and RNN: the formulas of ONNX in IEEE 754 arithmetic, with sigmoid(-inf) = 0 and so on.

An operand that is left out takes no part: without peepholes, an infinite cell does not change the gates. Where an
infinite state meets a gate of 0 or 1, rounding has decided whether the product is that of 0 or of a tiny number, NaN or
infinity: from there on, the sequence may have any value.
"""

from __future__ import annotations

from math import inf, nan
from typing import Any

import numpy as np

from lite_conformance.cases.op_cases import table_of
from lite_conformance.cases.operators import recurrent  # noqa: F401 - creates the tables extended here
from lite_conformance.cases.operators.initializers import with_elements
from lite_conformance.cases.tensors import Array, Initializer, Tensor, const, normal, t, uniform
from lite_core.ir import DType
from lite_core.ops.dtypes import FLOATS

_GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
_STEPS, _BATCH, _INPUTS, _HIDDEN = 3, 4, 5, 7
_F32 = ("float32",)


def some_infinite_inputs(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    """Return standard normal numbers; the first two sequences have infinities, one of either sign at most in a step."""
    array = normal(random, shape, dtype)
    array[0, 0, 1], array[1, 0, 3] = inf, -inf
    array[1, 1, 2], array[2, 1, 2] = -inf, -inf
    return array


def infinite_columns(*numbers: float) -> Initializer:
    """Return an initializer of standard normal numbers whose last elements are these for every row."""

    def with_infinities(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
        array = normal(random, shape, dtype)
        array[..., -len(numbers) :] = np.array(numbers, dtype.numpy)
        return array

    return with_infinities


def _has_infinities(x: Array, *_: Array) -> Array:
    infinite = np.asarray(np.isinf(x.astype(np.float64)))
    return np.asarray(infinite.any(axis=(0, 2)))[:, np.newaxis]


def _add(op: str, label: str, *more: Tensor | None, x: Tensor | None = None, **attributes: Any) -> None:
    """Add a case with weights of either sign, none of which is 0."""
    attributes.setdefault("dtypes", FLOATS)
    gates = _GATES[op]
    layer = (x or t(_STEPS, _BATCH, _INPUTS), const(1, gates * _HIDDEN, _INPUTS), const(1, gates * _HIDDEN, _HIDDEN))
    table_of(op)(f"infinities{label}", *layer, *more, hidden_size=_HIDDEN, **attributes)


_x = t(_STEPS, _BATCH, _INPUTS, init=some_infinite_inputs)

# **** infinite inputs: gates become 0 or 1, candidates 1 or -1, and the state stays finite ****

for _op, _attribute in (("GRU", "linear_before_reset"), ("LSTM", "input_forget")):
    _add(_op, "", x=_x, outputs=2)
    _add(_op, f",{_attribute.replace('_', '-')}", x=_x, outputs=2, **{_attribute: 1})
# An infinite state of an RNN is multiplied by its weights only. Softsign's formula has no value there: inf / inf.
for _name in ("Tanh", "Relu", "Sigmoid", "Softplus", "HardSigmoid", "LeakyRelu", "Elu"):
    _add("RNN", f",{_name.lower()}", x=_x, outputs=2, activations=(_name,),
         dtypes=FLOATS if _name in ("Tanh", "Relu") else _F32)  # fmt: skip
_PARAMETERS: dict[str, dict[str, Any]] = {
    "ThresholdedRelu": {"activation_alpha": (0.75,)},
    "ScaledTanh": {"activation_alpha": (0.75,), "activation_beta": (0.5,)},
    "Affine": {"activation_alpha": (0.75,), "activation_beta": (0.5,)},
}
for _name, _own in _PARAMETERS.items():
    _add("RNN", f",{_name.lower()}", x=_x, outputs=2, activations=(_name,), dtypes=_F32, **_own)

# **** infinite states and candidates that meet gates between 0 and 1 ****

_infinite_state = t(1, _BATCH, _HIDDEN, init=infinite_columns(inf, -inf))
_add("LSTM", ",cell", None, None, None, _infinite_state, outputs=3)
_add("LSTM", ",cell,input-forget", None, None, None, _infinite_state, outputs=3, input_forget=1)
_peepholes = const(1, 3 * _HIDDEN, init=uniform(0.25, 0.75))
_one_infinity = t(1, _BATCH, _HIDDEN, init=infinite_columns(inf))
_add("LSTM", ",cell,peepholes", None, None, None, _one_infinity, _peepholes, outputs=3, dtypes=_F32)
_add("RNN", ",state", None, None, _one_infinity, outputs=2, dtypes=_F32)
_infinite_bias = infinite_columns(inf, -inf)  # of the last two candidates
_add("GRU", ",candidate", const(1, 6 * _HIDDEN, init=_infinite_bias), x=t(1, _BATCH, _INPUTS), outputs=2,
     activations=("Sigmoid", "Relu"))  # fmt: skip
_add("LSTM", ",candidate", const(1, 8 * _HIDDEN, init=_infinite_bias), outputs=3,
     activations=("Sigmoid", "Relu", "Tanh"))  # fmt: skip

# **** infinite states that meet gates of 0 or 1: any value in these sequences, but not in the others ****

for _op, _count in (("GRU", 1), ("LSTM", 2)):
    _add(_op, ",relu", x=_x, activations=("Sigmoid", *("Relu",) * _count), unspecified=_has_infinities, dtypes=_F32)

# **** NaN in the activations that not_a_number.py does not have ****

for _name in ("Tanh", "Sigmoid", *_PARAMETERS):
    table_of("RNN")(f"nan,{_name}", t(_STEPS, _BATCH, _INPUTS, init=with_elements(nan)), const(1, _HIDDEN, _INPUTS),
                    const(1, _HIDDEN, _HIDDEN), hidden_size=_HIDDEN, activations=(_name,), dtypes=_F32,
                    **_PARAMETERS.get(_name, {}))  # fmt: skip
