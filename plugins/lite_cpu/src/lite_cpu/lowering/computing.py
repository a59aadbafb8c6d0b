"""The types that a compiled program computes in, in words for users."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from lite_core.ir import DType
from lite_cpu.lowering.steps import PlannedStep
from lite_cpu.machine import Machine
from lite_cpu.precisions import bfloat16_unit, float16_unit

__all__ = ["computed_types"]


def computed_types(steps: Sequence[PlannedStep], machine: Machine) -> str:
    """Return the types of a program: that of most operators, then the products that have another one.

    Args:
        steps: the steps of the program.
        machine: the processor that it is compiled for.
    """
    products = [each for step in steps if (each := step.kernel.computes) is not None]
    kinds = Counter(product.factors for product in products)
    stored = Counter(product.stored for product in products if product.stored)
    total = kinds.total()

    def count(number: int) -> str:
        if total == 1:
            return "the product"
        return "all products" if number == total else f"{number} of {total} products"

    found = {tensor.dtype for step in steps for tensor in step.tensors if tensor.dtype.is_floating}
    words = [*(["float32"] if found - {DType.FLOAT64} else []), *(["float64"] if DType.FLOAT64 in found else [])]
    parts = [" and ".join(words) or "integers"]
    if number := kinds[DType.BFLOAT16]:
        parts.append(f"{count(number)} in bfloat16 by {bfloat16_unit(machine)} with sums in float32")
    if number := kinds[DType.FLOAT16]:
        parts.append(f"{count(number)} in float16 by {float16_unit(machine)} with sums of 64 in float16")
    if number := kinds[DType.INT8]:
        parts.append(f"{count(number)} in int8 with sums in int32")
    parts += [f"the weights of {count(number)} stored in {form}" for form, number in stored.items()]
    return "; ".join(parts)
