"""Choice of the tensors that are stored as 16-bit floats, if the session allows it and the device supports float16.

Kernels load 16-bit floats and compute in float32, so only stored results can overflow, not sums, products and norms
inside a kernel. Results of operators that grow without bound, and outputs of the partition, stay float32.
"""

from __future__ import annotations

from lite_core.backend import Options
from lite_core.ir import DType, Graph, Node, Value
from lite_opencl.device.devices import FoundDevice

__all__ = ["computed_types", "stored_type", "unsupported_precision"]

#: Results of these are often beyond 65504, the largest float16.
_GROWING = frozenset(
    ("CumSum", "Det", "Exp", "Pow", "Range", "ReduceL1", "ReduceProd", "ReduceSum", "ReduceSumSquare", "Reciprocal")
)


def stored_type(value: Value, producer: Node | None, options: Options, device: FoundDevice) -> DType:
    """Return the element type in memory of a value that ``producer`` computes and that stays in the partition."""
    may_be_narrow = _may_be_narrow(options, device) and value.dtype is DType.FLOAT32
    return DType.FLOAT16 if may_be_narrow and producer is not None and producer.op not in _GROWING else value.dtype


def unsupported_precision(options: Options, device: FoundDevice) -> list[str]:
    """Return a line for profiles if the session allows a precision that the device does not compute in."""
    if options.precision == "float32" or _may_be_narrow(options, device):
        return []
    return [f"computed in float32: {device.name} does not compute in {options.precision}"]


def computed_types(graph: Graph, options: Options, device: FoundDevice) -> str:
    """Return the types that a partition with this graph computes in, in words."""
    if _may_be_narrow(options, device):
        return "float32; most tensors between its kernels are stored in float16"
    types = {value.dtype for scope in graph.walk() for value in scope.defined()}
    widened = ", 16-bit floats in float32" if types & {DType.FLOAT16, DType.BFLOAT16} else ""
    return f"the types of the model{widened}"


def _may_be_narrow(options: Options, device: FoundDevice) -> bool:
    return options.precision == "float16" and device.half
