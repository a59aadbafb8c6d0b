"""Weights among the arrays that compiled programs save: which arrays count as weights, and how a file's are recognised.

Weights may come from anyone, and a start need not read all of them. Other arrays may hold indices or sizes, which
kernels do not check, so they count as code.
"""

from __future__ import annotations

import zlib

from lite_core.ir import DType

__all__ = ["is_weight", "sampled_checksum"]

_SAMPLE_BYTES = 256


def is_weight(dtype: DType) -> bool:
    """Return True for types that kernels compute with: no index or size is stored in fewer than four bytes."""
    return dtype.is_floating or (dtype.itemsize <= 2 and dtype is not DType.BOOL)


def sampled_checksum(data: bytes | memoryview) -> int:
    """Return the checksum of both ends of an array's bytes, which tells the arrays of one program apart."""
    return zlib.crc32(data[-_SAMPLE_BYTES:], zlib.crc32(data[:_SAMPLE_BYTES]))
