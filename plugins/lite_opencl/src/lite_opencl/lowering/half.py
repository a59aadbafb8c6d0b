"""Which tensors are kept as 16-bit floats, where the session allows it and the device computes with them.

Kernels load 16-bit floats and compute in float32, so only what is stored can overflow: sums, products and norms inside
a kernel cannot. What operators make whose results grow without bound, and what leaves the partition, stays float32.
"""

from __future__ import annotations

from lite_core.backend import Options
from lite_core.ir import DType, Node, Value
from lite_opencl.device.devices import FoundDevice

__all__ = ["stored_type", "unheeded_precision"]

#: Results of these are often beyond 65504, the largest float16.
_GROWING = frozenset(
    ("CumSum", "Det", "Exp", "Pow", "Range", "ReduceL1", "ReduceProd", "ReduceSum", "ReduceSumSquare", "Reciprocal")
)


def stored_type(value: Value, maker: Node | None, options: Options, device: FoundDevice) -> DType:
    """The element type in which a value that ``maker`` makes, and that stays in the partition, lies in memory."""
    may_be_narrow = _may_be_narrow(options, device) and value.dtype is DType.FLOAT32
    return DType.FLOAT16 if may_be_narrow and maker is not None and maker.op not in _GROWING else value.dtype


def unheeded_precision(options: Options, device: FoundDevice) -> list[str]:
    """A line for profiles where the session allows a precision that the device does not compute in."""
    if options.precision == "float32" or _may_be_narrow(options, device):
        return []
    return [f"computed in float32: {device.name} does not compute in {options.precision}"]


def _may_be_narrow(options: Options, device: FoundDevice) -> bool:
    return options.precision == "float16" and device.half
