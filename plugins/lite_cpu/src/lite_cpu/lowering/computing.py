"""The types that a compiled program computes in, in words for users."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from lite_core.ir import DType
from lite_cpu.kernels.attention import Attention
from lite_cpu.kernels.base import Kernel
from lite_cpu.kernels.cached_attention import CachedAttention
from lite_cpu.kernels.conv_int8 import ConvInt8
from lite_cpu.kernels.depthwise import Depthwise
from lite_cpu.kernels.depthwise_dots import DepthwiseDots
from lite_cpu.kernels.depthwise_int8 import DepthwiseInt8
from lite_cpu.kernels.depthwise_pointwise import DepthwisePointwise
from lite_cpu.kernels.direct import Direct
from lite_cpu.kernels.external_product import ExternalProduct
from lite_cpu.kernels.gemm import Gemm
from lite_cpu.kernels.gemm_int8 import GemmInt8
from lite_cpu.kernels.narrow_product import NarrowProduct
from lite_cpu.kernels.plain_matmul import PlainMatMul
from lite_cpu.kernels.recurrent import Recurrent
from lite_cpu.kernels.widened_product import WidenedProduct
from lite_cpu.kernels.winograd import Winograd
from lite_cpu.lowering.steps import PlannedStep
from lite_cpu.machine import Machine
from lite_cpu.precisions import bfloat16_unit

__all__ = ["computed_types"]

_INT8 = (ConvInt8, DepthwiseDots, DepthwiseInt8, GemmInt8)
_FLOAT = (
    Attention, CachedAttention, Depthwise, DepthwisePointwise, Direct, ExternalProduct, Gemm, NarrowProduct,
    PlainMatMul, Recurrent, WidenedProduct, Winograd,
)  # fmt: skip
_BFLOAT16_PRODUCTS, _INT8_PRODUCTS, _FLOAT_PRODUCTS = "bfloat16", "int8", "float"


def computed_types(steps: Sequence[PlannedStep], machine: Machine) -> str:
    """Return the types of a program: that of most operators, then the products that have another one.

    Args:
        steps: the steps of the program.
        machine: the processor that it is compiled for.
    """
    kinds = Counter(kind for step in steps if (kind := _products(step.kernel)))
    stored = Counter(form for step in steps if (form := _stored_weights(step.kernel)))
    total = kinds.total()

    def count(number: int) -> str:
        if total == 1:
            return "the product"
        return "all products" if number == total else f"{number} of {total} products"

    found = {tensor.dtype for step in steps for tensor in step.tensors if tensor.dtype.is_floating}
    words = [*(["float32"] if found - {DType.FLOAT64} else []), *(["float64"] if DType.FLOAT64 in found else [])]
    parts = [" and ".join(words) or "integers"]
    if number := kinds[_BFLOAT16_PRODUCTS]:
        parts.append(f"{count(number)} in bfloat16 by {bfloat16_unit(machine)} with sums in float32")
    if number := kinds[_INT8_PRODUCTS]:
        parts.append(f"{count(number)} in int8 with sums in int32")
    parts += [f"the weights of {count(number)} stored in {form}" for form, number in stored.items()]
    return "; ".join(parts)


def _products(kernel: Kernel) -> str:
    """Return the kind of products that a kernel computes; empty if it computes none."""
    if isinstance(kernel, _INT8):
        return _INT8_PRODUCTS
    if not isinstance(kernel, _FLOAT):
        return ""
    return _BFLOAT16_PRODUCTS if getattr(kernel, "pairs", False) else _FLOAT_PRODUCTS


def _stored_weights(kernel: Kernel) -> str:
    """Return what weights are stored in that a kernel widens; empty if it widens none."""
    if isinstance(kernel, NarrowProduct | WidenedProduct):
        return f"{kernel.bits} bits"
    dtype = getattr(kernel, "weights", None)
    return str(dtype) if isinstance(dtype, DType) and dtype.is_half else ""
