"""The kernels that Paddle-Lite 2.13 has for its host, x86, ARM and OpenCL targets.

``kernels.json`` lists them by operator, each as ``ALIAS/TARGET/PRECISION/LAYOUT`` with the numbers of the enumerations
below. A model file names one for each operator, and Paddle-Lite refuses a name that it does not have.
"""

from __future__ import annotations

import json
import pkgutil
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import cache

__all__ = ["Kernel", "Layout", "Precision", "Target", "all_kernels", "kernels_of"]


class Target(IntEnum):
    """The processor of a kernel."""

    HOST = 1
    X86 = 2
    ARM = 4
    OPENCL = 5


class Precision(IntEnum):
    """The element type that a kernel is registered for."""

    FLOAT = 1
    INT8 = 2
    INT32 = 3
    ANY = 4
    FP16 = 5
    BOOL = 6
    INT64 = 7


class Layout(IntEnum):
    """The order of a kernel's elements: a buffer in C order, or an image of four channels or columns in a pixel."""

    NCHW = 1
    ANY = 2
    NHWC = 3
    IMAGE_DEFAULT = 4
    IMAGE_FOLDER = 5


# Many kernels of integers are registered as kernels of floats, and only their alias tells the type. In this order,
# because "uint8" contains "int8".
_ALIAS_TYPES = (
    (re.compile("int64|i64"), "int64"),
    (re.compile("int32|i32"), "int32"),
    (re.compile("int16"), "int16"),
    (re.compile("uint8"), "uint8"),
    (re.compile("int8"), "int8"),
    (re.compile("bool|^bl$"), "bool"),
    (re.compile("double"), "float64"),
    (re.compile("fp32|float"), "float32"),
)
_PRECISION_TYPES = {
    Precision.FLOAT: "float32",
    Precision.INT8: "int8",
    Precision.INT32: "int32",
    Precision.FP16: "float16",
    Precision.BOOL: "bool",
    Precision.INT64: "int64",
}


# Kernels whose alias does not tell their element type, or that depend on the types of two operands.
_SPECIAL_TEXT = """
beam_search def int64
beam_search_decode def int64
reduce_all def bool
reduce_any def bool
lookup_table def int64
lookup_table_v2 def int64
lookup_table_v2 int8_int32 int8
lookup_table_v2 int8_int64 int8
one_hot def int64
one_hot_v2 def int64
gather int32int32 int32,int32
gather int32int64 int32,int64
gather int64int32 int64,int32
gather int64int64 int64,int64
scatter_nd_add def float32,int32
scatter_nd_add float32_int64 float32,int64
scatter_nd_add int32_int32 int32,int32
scatter_nd_add int32_int64 int32,int64
scatter_nd_add int64_int32 int64,int32
scatter_nd_add int64_int64 int64,int64
"""
_SPECIAL = {(op, alias): types for op, alias, types in (line.split() for line in _SPECIAL_TEXT.strip().splitlines())}


@dataclass(frozen=True, slots=True)
class Kernel:
    """One kernel.

    Attributes:
        operator: type of the operator that it computes.
        alias: its name among the kernels of the operator with the same target, precision and layout.
        target: the processor.
        precision: the registered element type.
        layout: the order of the elements.
    """

    operator: str
    alias: str
    target: Target
    precision: Precision
    layout: Layout

    def __str__(self) -> str:
        """Return the text that a model file has."""
        return f"{self.operator}/{self.alias}/{self.target:d}/{self.precision:d}/{self.layout:d}"

    @property
    def element_type(self) -> str | None:
        """The element type that it computes, None if it takes any; two with a comma if it depends on two operands."""
        if (self.operator, self.alias) in _SPECIAL and self.target is not Target.OPENCL:
            return _SPECIAL[self.operator, self.alias]
        if self.precision in (Precision.FLOAT, Precision.ANY):
            for pattern, element_type in _ALIAS_TYPES:
                if pattern.search(self.alias):
                    return element_type
        return _PRECISION_TYPES.get(self.precision)

    def takes(self, element_type: str) -> bool:
        """Return True if it computes an element type; the second of two may be left out."""
        own = self.element_type
        return own is None or own == element_type or own.startswith(f"{element_type},")

    @property
    def is_array_kernel(self) -> bool:
        """True if it computes with tensor arrays."""
        return "array" in self.alias


@cache
def all_kernels() -> Mapping[str, tuple[Kernel, ...]]:
    """Return operator -> its kernels."""
    text = pkgutil.get_data(__package__, "kernels.json")
    assert text is not None, "the package was installed without its kernels.json"
    table: dict[str, str] = json.loads(text)
    return {operator: tuple(_parse(operator, name) for name in names.split()) for operator, names in table.items()}


def kernels_of(operator: str) -> tuple[Kernel, ...]:
    """Return the kernels of an operator; none if Paddle-Lite does not have it on these targets."""
    return all_kernels().get(operator, ())


def _parse(operator: str, name: str) -> Kernel:
    alias, target, precision, layout = name.split("/")
    return Kernel(operator, alias, Target(int(target)), Precision(int(precision)), Layout(int(layout)))
