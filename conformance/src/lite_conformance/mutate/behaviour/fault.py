"""A fault of behaviour, and helpers that many faults share."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lite_conformance.mutate.mutant import Array, Compute, NodeCall
from lite_core.ops import OpDef, Parameter

__all__ = ["Fault", "is_data", "replaced", "spoiled"]


class Fault(NamedTuple):
    """A fault of behaviour.

    Attributes:
        kind: the kind of fault.
        detail: the attribute, operand, output or element type concerned.
        compute: computes a node with the fault.
    """

    kind: str
    detail: str
    compute: Compute


def spoiled(array: Array) -> Array:
    """Return an array of the same shape and element type in which every element is wrong."""
    kind = array.dtype.kind
    if kind == "b":
        return np.asarray(~array)
    if kind in "iu":
        return np.asarray(array ^ array.dtype.type(1))
    with np.errstate(all="ignore"):
        wide = array.astype(np.float64)
        return np.asarray(np.where(np.isfinite(wide), 1 - wide * 1.25, 7).astype(array.dtype))


def replaced(call: NodeCall, index: int, array: Array | None) -> list[Any]:
    """Return the inputs of a node with another array in the place of one of them."""
    return [*call.inputs[:index], array, *call.inputs[index + 1 :]]


def is_data(definition: OpDef, parameter: Parameter) -> bool:
    """Return True for an input of the element type that the operator computes in."""
    return parameter.type == definition.working_type
