"""Functions for ``prepare=``: they give a loop its arrays in a form that suits more shapes than one."""

from __future__ import annotations

from typing import Any

from lite_core.ir import Array

__all__ = ["flat"]


def flat(*inputs: Array | None, out: Array, **attributes: Any) -> tuple[Any, ...]:
    """Return the inputs as vectors, the attributes in the operator's order, and the output as a vector.

    For operators that compute each element from the elements at the same position, of inputs of one shape. A loop over
    vectors is compiled once for all ranks.
    """
    return (*(None if a is None else a.reshape(-1) for a in inputs), *attributes.values(), out.reshape(-1))
