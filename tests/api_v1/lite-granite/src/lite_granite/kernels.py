"""Sand, a second backend: one function for each operator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from lite_core import Device, KernelBackend, No, Unavailable, Yes
from lite_core.ir import Node
from lite_core.ops import add

from lite_granite.operators import SHRINKAGE

Array = np.ndarray[Any, Any]


def find() -> Sequence[Device] | Unavailable:
    """Return the one device of this backend."""
    return [Device("sand", name="Sand", score=0.2, details={"float16": "float32: it has no float16"})]


def absolute_only(node: Node) -> Yes | No:
    """Refuse the squares."""
    mode = node.attributes.get("mode", "absolute")
    return Yes() if mode == "absolute" else No("Sand has no multiplier")


sand = KernelBackend("sand", device=find)
add(SHRINKAGE)  # a kernel is for an operator that the opset has


@sand.kernel("Relu", dtypes=["float32", "float64"])
def relu(x: Array, *, out: Array) -> None:
    np.maximum(x, 0, out=out)


@sand.kernel("Shrinkage", domain="granite", dtypes=["float32"], when=absolute_only)
def shrinkage(x: Array, *, slope: float, mode: str, out: Array) -> None:
    np.divide(x, 1 + np.abs(slope * x), out=out)


@sand.kernel("NonZero")
def nonzero(x: Array) -> Array:
    """Return the result, because its shape depends on the elements."""
    return np.asarray(np.nonzero(np.atleast_1d(x)), np.int64)
