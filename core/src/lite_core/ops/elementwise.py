"""The element-wise operators, which compute each element of the output from one element of each broadcast input.

The limits of Clip are single numbers.
"""

from __future__ import annotations

__all__ = ["ELEMENTWISE_OPS"]

_ARITHMETIC = ("Add", "Sub", "Mul", "Div", "Pow", "Mod", "Max", "Min", "Sum", "Mean", "Abs", "Neg", "Reciprocal")
_LOGIC = ("And", "Or", "Xor", "Not", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Where")
_FUNCTIONS = ("Cos", "Erf", "Exp", "Log", "Sin", "Sqrt", "Tan", "Tanh", "Ceil", "Floor", "Round", "IsInf", "IsNaN")
_RECTIFIERS = ("Celu", "Clip", "Elu", "LeakyRelu", "PRelu", "Relu", "Selu", "ThresholdedRelu", "Softplus", "Softsign")
_GATES = ("Gelu", "HardSigmoid", "HardSwish", "Mish", "Sigmoid", "lite.Swish", "Sign", "Identity", "Cast")
#: Their qualified names.
ELEMENTWISE_OPS = frozenset((*_ARITHMETIC, *_LOGIC, *_FUNCTIONS, *_RECTIFIERS, *_GATES))
