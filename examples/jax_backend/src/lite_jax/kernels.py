"""The table of kernels: for each operator a function that JAX traces."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import jax.numpy as jnp

from lite_core.ir import DType, Node
from lite_core.ops import attributes_of

__all__ = ["apply", "is_float", "kernel", "refusal"]

#: Takes the node's attributes and inputs, and returns its outputs. The attributes also have the node as ``node``, and
#: shape and type of its first output as ``shape`` and ``result``. Inputs that are numbers are NumPy arrays.
Kernel = Callable[..., Any]
#: Returns the reason why a node with these attributes cannot be run, or None.
Refuse = Callable[[Any, SimpleNamespace], "str | None"]

_KERNELS: dict[str, tuple[Kernel, bool, Refuse]] = {}


def kernel(*ops: str, moves: bool = False, refuse: Refuse = lambda node, a: None) -> Callable[[Kernel], Kernel]:
    """Return a decorator that registers a kernel. One that only ``moves`` elements gets 16-bit floats as they are."""

    def register(function: Kernel) -> Kernel:
        _KERNELS.update(dict.fromkeys(ops, (function, moves, refuse)))
        return function

    return register


def refusal(node: Node) -> str | None:
    """Return the reason why a node cannot be run, or None."""
    if node.qualified_op not in _KERNELS:
        return f"there is no JAX kernel for {node.qualified_op}"
    dtypes = {v.dtype for v in (*node.inputs, *node.outputs) if v is not None}
    if others := sorted(dtype.value for dtype in dtypes if dtype.is_narrow or dtype is DType.STRING):
        return f"the JAX kernels have no {', '.join(others)}"
    return _KERNELS[node.qualified_op][2](node, SimpleNamespace(**attributes_of(node)))


def apply(node: Node, inputs: list[Any]) -> list[Any]:
    """Trace a node whose shapes are known. 16-bit floats are computed in float32, and rounded once."""
    function, moves, _ = _KERNELS[node.qualified_op]
    first = next(v for v in node.outputs if v is not None)
    a = SimpleNamespace(**attributes_of(node), node=node, shape=first.shape, result=first.dtype.numpy)
    if not moves:
        inputs = [x.astype(jnp.float32) if x is not None and DType.of(x.dtype).is_half else x for x in inputs]
    results = function(a, *inputs)
    results = results if isinstance(results, tuple) else (results,)
    return [None if v is None else jnp.asarray(r, v.dtype.numpy) for v, r in zip(node.outputs, results)]


def is_float(x: Any) -> bool:
    return bool(jnp.issubdtype(x.dtype, jnp.floating))
