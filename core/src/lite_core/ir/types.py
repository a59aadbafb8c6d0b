"""Element types and tensor types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache, cached_property
from typing import Any

import numpy as np

from lite_core.errors import LiteError
from lite_core.ir.dims import Dim, Shape, SymbolicDim, product

__all__ = ["Array", "DType", "TensorType"]

#: A NumPy array of any shape and element type.
Array = np.ndarray[Any, Any]


class DType(str, Enum):
    """The element type of a tensor. Compares equal to its name: ``DType.FLOAT32 == "float32"``."""

    BOOL = "bool"
    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    UINT8 = "uint8"
    UINT16 = "uint16"
    UINT32 = "uint32"
    UINT64 = "uint64"
    FLOAT16 = "float16"
    BFLOAT16 = "bfloat16"
    FLOAT32 = "float32"
    FLOAT64 = "float64"
    # Narrow types of 8 and 4 bits: models store such numbers, and convert them before computing.
    FLOAT8E4M3FN = "float8e4m3fn"
    FLOAT8E4M3FNUZ = "float8e4m3fnuz"
    FLOAT8E5M2 = "float8e5m2"
    FLOAT8E5M2FNUZ = "float8e5m2fnuz"
    INT4 = "int4"
    UINT4 = "uint4"
    # Texts of any length: objects of Python, which only `host` computes with. Constants cannot have this type.
    STRING = "string"

    # NOTE: a member equals its name and must therefore have its hash; Enum's hash differs, and is slow.
    __hash__ = str.__hash__

    @staticmethod
    def of(value: Any) -> DType:
        """Return the DType of a NumPy dtype, an array of numbers, or a name. Raises ValueError for any other type."""
        if isinstance(value, DType):
            return value
        return _dtype_named(value) if isinstance(value, str) else _dtype_of(np.dtype(getattr(value, "dtype", value)))

    @cached_property
    def numpy(self) -> np.dtype[Any]:
        """The NumPy dtype: ``object`` for strings. bfloat16 and the narrow types come from ml_dtypes.

        A 4-bit integer occupies one byte.

        Raises:
            LiteError: the type needs ml_dtypes, which is not installed.
        """
        if self is not DType.BFLOAT16 and not self.is_narrow:
            return np.dtype(object if self is DType.STRING else self.value)
        try:
            import ml_dtypes  # an extra of lite-core, slow to import, and rarely needed
        except ImportError:
            remedy = 'pip install "lite-core[narrow]"'
            raise LiteError(f"NumPy has no element type {self.value}, the package ml-dtypes has it: {remedy}") from None
        found: np.dtype[Any] = np.dtype(getattr(ml_dtypes, self.value.replace("float8", "float8_")))
        return found

    @cached_property
    def itemsize(self) -> int:
        """Bytes of one element in memory."""
        return 1 if self.is_narrow else 2 if self is DType.BFLOAT16 else self.numpy.itemsize

    @property
    def is_floating(self) -> bool:
        return "float" in self.value

    @property
    def is_half(self) -> bool:
        """True for 16-bit floating types; the references compute them in float32."""
        return self is DType.FLOAT16 or self is DType.BFLOAT16

    @cached_property
    def is_narrow(self) -> bool:
        """True for 8-bit floats and 4-bit integers: only Cast, QuantizeLinear and DequantizeLinear support them."""
        return "float8" in self.value or self.value.endswith("int4")

    @property
    def is_integer(self) -> bool:
        return "int" in self.value

    @property
    def is_signed(self) -> bool:
        return self.is_floating or self.value.startswith("int")

    def __str__(self) -> str:
        return self.value


def _dtype_named(name: str) -> DType:
    try:
        return DType(name)
    except ValueError:
        known = ", ".join(d.value for d in DType)
        raise ValueError(f"element type {name!r} is not one of Lite's: {known}") from None


@cache
def _dtype_of(numpy_type: np.dtype[Any]) -> DType:
    # Cached, because NumPy computes a type's name at each access.
    return _dtype_named(numpy_type.name.replace("_", ""))


@dataclass(frozen=True, slots=True)
class TensorType:
    """Element type and shape of a tensor.

    ``shape`` is a tuple of dimensions (``int`` or :class:`SymbolicDim`), ``()`` for a scalar, or ``None`` if the rank
    is unknown until the model runs.
    """

    dtype: DType
    shape: Shape | None = None

    @staticmethod
    def of_array(array: Array) -> TensorType:
        """Return the type of an array, with all dimensions known."""
        return TensorType(DType.STRING if array.dtype.hasobject else DType.of(array.dtype), tuple(array.shape))

    @property
    def rank(self) -> int | None:
        return None if self.shape is None else len(self.shape)

    @property
    def is_static(self) -> bool:
        """True if every dimension is an integer."""
        # A list is faster than any(), and this is called often.
        return self.shape is not None and not [dim for dim in self.shape if isinstance(dim, SymbolicDim)]

    @property
    def symbols(self) -> frozenset[str]:
        """Names of the symbols in the shape."""
        dims = self.shape or ()
        return frozenset().union(*(d.symbols for d in dims if isinstance(d, SymbolicDim)))

    @property
    def size(self) -> Dim | None:
        """Number of elements, or None if the rank is unknown."""
        return None if self.shape is None else product(self.shape)

    def with_shape(self, shape: Shape | None) -> TensorType:
        return TensorType(self.dtype, shape)

    def with_dtype(self, dtype: DType) -> TensorType:
        return TensorType(dtype, self.shape)

    def substitute(self, bindings: Mapping[str, Dim]) -> TensorType:
        """Return the type with some symbols replaced; symbols without a value stay."""
        if self.shape is None or not self.symbols:
            return self
        return self.with_shape(tuple(d.substitute(bindings) if isinstance(d, SymbolicDim) else d for d in self.shape))

    def accepts(self, shape: Shape | None) -> bool:
        """Return True if an array of this shape can have this type; symbols and unknown ranks match any size."""
        if self.shape is None or shape is None or shape == self.shape:
            return True
        return len(shape) == len(self.shape) and all(
            isinstance(d, SymbolicDim) or d == n for d, n in zip(self.shape, shape)
        )

    def __str__(self) -> str:
        return f"{self.dtype}[{'?' if self.shape is None else ', '.join(map(str, self.shape))}]"

    __repr__ = __str__
