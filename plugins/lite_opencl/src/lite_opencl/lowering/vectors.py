"""Macros of kernels that compute with explicit vectors: the types of sums, and vector loads."""

from __future__ import annotations

from collections.abc import Sequence

from lite_core.ir import DType
from lite_opencl.programs.element_types import c_type

__all__ = ["Defines", "sum_defines", "sum_type", "vector_defines"]

Defines = list[tuple[str, "int | str"]]

_WIDE_INTEGERS = (DType.INT64, DType.UINT64)
_BYTES = {"float": 4, "double": 8, "uint": 4, "ulong": 8}


def sum_type(dtype: DType) -> str:
    """Return the type in which products of two numbers of ``dtype`` are summed.

    NOTE: integers are summed as unsigned ones, which wrap around, while signed overflow is undefined. The low bits are
    the same.
    """
    if dtype.is_floating:
        return c_type(dtype).compute
    return "ulong" if dtype in _WIDE_INTEGERS else "uint"


def sum_defines(dtype: DType, width: int) -> Defines:
    """Define ``SUM``, ``SUM_VECTOR`` and ``WIDTH``: the type of sums, and vectors of 1, 2, 4 or 8 of them."""
    kind = sum_type(dtype)
    return [("WIDTH", width), ("SUM", kind), ("SUM_VECTOR", _vector(kind, width))]


def vector_defines(summed: DType, width: int, operands: Sequence[tuple[str, DType]]) -> Defines:
    """Define ``LOAD_<name>_VECTOR(pointer, index)`` for operands, given by the kernel's name and their type in memory.

    The vector has the type in which numbers of ``summed`` are summed.
    """
    kind = sum_type(summed)
    return [
        (f"LOAD_{name}_VECTOR(pointer, index)", _load(name, dtype, _vector(kind, width), width))
        for name, dtype in operands
    ]


def _vector(kind: str, width: int) -> str:
    return f"{kind}{width}" if width > 1 else kind


def _load(name: str, dtype: DType, vector: str, width: int) -> str:
    if width == 1:
        return f"(({vector})LOAD_{name}(pointer, index))"
    address = "(pointer) + (index)"
    if dtype is DType.FLOAT16:
        return f"convert_{vector}(vload_half{width}(0, {address}))"
    if dtype is DType.BFLOAT16:
        return f"convert_{vector}(as_float{width}(convert_uint{width}(LOAD_VECTOR(ushort, {width}, {address})) << 16))"
    # Elements as wide as their sum are loaded as that type, since the bits are the same.
    kind = sum_type(dtype)
    if dtype.itemsize == _BYTES[kind]:
        return f"convert_{vector}(LOAD_VECTOR({kind}, {width}, {address}))"
    return f"convert_{vector}(vload{width}(0, {address}))"
