"""Element-wise operators. Most are functions of JAX."""

from __future__ import annotations

from functools import partial, reduce
from typing import Any

import jax.numpy as jnp
from jax import lax, nn

from lite_jax.kernels import is_float, kernel

#: Operators, and the functions of jax.numpy or jax.nn: by default the operator's name in lower case.
_FUNCTIONS = """
Abs Acos Acosh Add And:logical_and Asin Asinh Atan Atanh BitwiseAnd:bitwise_and BitwiseNot:bitwise_not
BitwiseOr:bitwise_or BitwiseXor:bitwise_xor Ceil Cos Cosh Equal Exp Floor Greater
GreaterOrEqual:greater_equal IsNaN Less LessOrEqual:less_equal Log Mish:nn.mish Mul:multiply Neg:negative
Not:logical_not Or:logical_or Reciprocal Round Sigmoid:nn.sigmoid Sign Sin Sinh Softplus:nn.softplus
Softsign:nn.soft_sign Sqrt Sub:subtract Tan Tanh Xor:logical_xor
"""
for _entry in _FUNCTIONS.split():
    _op, _, _name = _entry.partition(":")
    _module, _, _function = (_name or _op.lower()).rpartition(".")
    _call = getattr({"": jnp, "nn": nn}[_module], _function)
    kernel(_op)(partial(lambda call, a, *inputs: call(*inputs), _call))

kernel("Identity", moves=True)(lambda a, x: x)
kernel("Where", moves=True)(lambda a, condition, x, y: jnp.where(condition, x, y))
kernel("Max")(lambda a, *xs: reduce(jnp.maximum, xs))
kernel("Min")(lambda a, *xs: reduce(jnp.minimum, xs))
kernel("Sum")(lambda a, *xs: reduce(jnp.add, xs))
kernel("Mean")(lambda a, *xs: reduce(jnp.add, xs) / len(xs))
kernel("Clip")(lambda a, x, low=None, high=None: jnp.clip(x, low, high))
kernel("Relu")(lambda a, x: jnp.maximum(x, 0))
kernel("LeakyRelu")(lambda a, x: jnp.where(x < 0, x * a.alpha, x))
kernel("PRelu")(lambda a, x, slope: jnp.where(x < 0, x * slope, x))
kernel("ThresholdedRelu")(lambda a, x: jnp.where(x <= a.alpha, 0, x))
kernel("Elu")(lambda a, x: jnp.where(x > 0, x, a.alpha * jnp.expm1(x)))
kernel("Selu")(lambda a, x: a.gamma * jnp.where(x > 0, x, a.alpha * jnp.expm1(x)))
kernel("Erf")(lambda a, x: lax.erf(x + 0.0))
kernel("Gelu")(lambda a, x: nn.gelu(x, approximate=a.approximate == "tanh"))
kernel("HardSigmoid")(lambda a, x: jnp.clip(a.alpha * x + a.beta, 0, 1))
kernel("HardSwish")(lambda a, x: x * jnp.clip(x / 6 + 0.5, 0, 1))
kernel("lite.Swish")(lambda a, x: x * nn.sigmoid(a.beta * x))
kernel("Shrink")(lambda a, x: jnp.where(x < -a.lambd, x + a.bias, jnp.where(x > a.lambd, x - a.bias, x * 0)))
kernel("IsInf")(lambda a, x: (jnp.isposinf(x) & bool(a.detect_positive)) | (jnp.isneginf(x) & bool(a.detect_negative)))


@kernel("Div")
def divide(a: Any, x: Any, y: Any) -> Any:
    """Integers are rounded towards zero, by lax.div and not by ``//``."""
    x, y = jnp.broadcast_arrays(x, y)
    # NOTE: behind a broadcast, XLA would multiply by 1 / y, which is 0 for a large y.
    return lax.div(x, lax.optimization_barrier(y))


@kernel("Pow")
def power(a: Any, x: Any, y: Any) -> Any:
    """The type is that of the base. A negative power of an integer is truncated to 0, except of 1 and -1."""
    if is_float(x) or is_float(y):
        return jnp.power(x.astype(jnp.result_type(x, y, jnp.float32)), y)
    negative = jnp.where(x == 1, 1, jnp.where(x == -1, jnp.where(y % 2 == 0, 1, x), 0))
    result, exponent = jnp.ones(a.shape, x.dtype), jnp.maximum(y, 0)
    for bit in range(8 * y.dtype.itemsize):  # jnp.power reads six bits of an exponent
        result, x = jnp.where(exponent >> bit & 1 == 1, result * x, result), x * x
    return jnp.where(y < 0, negative, result)


@kernel("Cast", "CastLike", moves=True)
def cast(a: Any, x: Any, like: Any = None) -> Any:
    """Lite converts floats to integers by way of int64 and wraps around; XLA alone would saturate."""
    if is_float(x) and jnp.issubdtype(a.result, jnp.integer):
        positive = x.astype(jnp.uint64 if a.result == jnp.uint64 else jnp.int64).astype(a.result)
        return jnp.where(x < 0, x.astype(jnp.int64).astype(a.result), positive)
    return x.astype(a.result)
