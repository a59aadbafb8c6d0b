"""Addresses of the server, arrays of every element type, and wrong requests: the clients share them.

Runs in the environment of the clients. ``serving_process.write_repository`` describes the models.
"""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

__all__ = ["ARRAYS", "GRPC", "HOST", "HTTP", "WRONG", "Wrong", "equal_bits", "sample", "zeros"]

#: The addresses: with scheme, without it, and of gRPC.
HTTP = os.environ["LITE_TEST_HTTP"]
HOST = HTTP.partition("://")[2]
GRPC = os.environ["LITE_TEST_GRPC"]

Array = np.ndarray[Any, Any]

_FLOATS = [[np.nan, np.inf, -np.inf], [-0.0, 1.5, -3e-5]]
#: An array [2, 3] of each element type, with its extreme values.
ARRAYS: dict[str, Array] = {
    "BOOL": np.array([[True, False, True], [False, False, True]]),
    **{
        f"{kind.upper()}{bits}": np.array([[np.iinfo(t).min, 0, 1], [2, 3, np.iinfo(t).max]], t)
        for kind in ("int", "uint")
        for bits in (8, 16, 32, 64)
        for t in [np.dtype(f"{kind}{bits}")]
    },
    "FP16": np.array(_FLOATS, np.float16),
    "FP32": np.array(_FLOATS, np.float32),
    "FP64": np.array(_FLOATS, np.float64),
    "BF16": np.array(_FLOATS, ml_dtypes.bfloat16),
    "BYTES": np.array([["", "a", "wörter"], ["\0", "三", "x" * 70000]], object),
}


def sample(datatype: str, rows: int = 2) -> Array:
    """Return the first rows of the array of an element type; strings as ``bytes``, as clients return them."""
    array = ARRAYS[datatype][:rows]
    if datatype != "BYTES":
        return array
    return np.array([[text.encode() for text in row] for row in array], object).reshape(array.shape)


def equal_bits(found: Array | None, expected: Array) -> bool:
    """Return whether two arrays have the same type, shape and content, bit by bit."""
    if found is None or found.dtype != expected.dtype or found.shape != expected.shape:
        return False
    return found.tolist() == expected.tolist() if found.dtype == object else found.tobytes() == expected.tobytes()


class Wrong(NamedTuple):
    """A request that does not fit the model.

    Attributes:
        model: the model.
        inputs: for each input its name, element type, and the shape that is sent with its data.
        named: what the message must name.
        found: whether the model, the version and the outputs exist: else the answer is "not found".
        version: the version that is asked for.
        output: the output that is asked for; none for all.
    """

    model: str
    inputs: tuple[tuple[str, str, tuple[int, ...]], ...]
    named: str
    found: bool = True
    version: str = ""
    output: str = ""


WRONG = {
    "columns": Wrong("echo_fp32", (("x", "FP32", (2, 4)),), "'x'"),
    "rank": Wrong("echo_fp32", (("x", "FP32", (6,)),), "'x'"),
    "type": Wrong("echo_fp32", (("x", "FP64", (2, 3)),), "'x'"),
    "type of strings": Wrong("echo_bytes", (("x", "FP32", (2, 3)),), "'x'"),
    "strings instead of numbers": Wrong("echo_fp32", (("x", "BYTES", (2, 3)),), "'x'"),
    "missing": Wrong("sum", (("a", "FP32", (2, 3)),), "'b'"),
    "unknown": Wrong("sum", (("a", "FP32", (2, 3)), ("b", "FP32", (2, 3)), ("c", "FP32", (2, 3))), "'c'"),
    "twice": Wrong("sum", (("a", "FP32", (2, 3)), ("a", "FP32", (2, 3))), "'a'"),
    "rows that differ": Wrong("sum", (("a", "FP32", (2, 3)), ("b", "FP32", (4, 3))), "'b'"),
    "no model": Wrong("nothing", (("x", "FP32", (2, 3)),), "'nothing'", found=False),
    "no version": Wrong("scale", (("x", "FP32", (1, 2)),), "'3'", found=False, version="3"),
    "no output": Wrong("echo_fp32", (("x", "FP32", (2, 3)),), "'z'", output="z"),
    "another folder": Wrong("../echo_fp32", (("x", "FP32", (2, 3)),), "echo_fp32", found=False),
}


def zeros(datatype: str, shape: tuple[int, ...]) -> Array:
    """Return zeros of an element type, or strings."""
    if datatype == "BYTES":
        return np.full(shape, b"0", object)
    return np.zeros(shape, ARRAYS[datatype].dtype)
