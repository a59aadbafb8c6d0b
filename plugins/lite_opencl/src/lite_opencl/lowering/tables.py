"""Small tables that kernels read: sizes, strides, indices, weights. Equal tables are uploaded once."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from lite_opencl.lowering.context import Lowering
from lite_opencl.tensors import Tensor

__all__ = ["upload_table"]


def upload_table(lowering: Lowering, array: np.ndarray[Any, Any]) -> Tensor:
    """Return the upload of a constant that is computed during lowering; equal tables share an upload."""
    digest = hashlib.blake2b(np.ascontiguousarray(array).tobytes(), digest_size=16).hexdigest()
    return lowering.constant(("table", str(array.dtype), array.shape, digest), [], lambda: array)
