"""Cases of HannWindow, HammingWindow, BlackmanWindow."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from lite_conformance.cases.op_cases import Draw, OpCase, OpTable, table
from lite_conformance.cases.tensors import Tensor, values
from lite_conformance.judge.tolerances import FUNCTION
from lite_core.ir import DType

# ONNX defines windows by functions that compute in float32 and convert the result.
_SINGLE = replace(FUNCTION, name="function, in float32", wide=(32 * 2.0**29, 32 * 2.0**29))


def size(elements: int, *, constant: bool = True) -> Tensor:
    """Return the operand with the number of elements of the window."""
    return values(elements, constant=constant)


def _add_window(window: OpTable) -> None:
    """Add the cases of every window operator."""
    window("10", size(10))
    window("10,symmetric", size(10), periodic=0)
    window("33", size(33))
    window("33,symmetric", size(33), periodic=0)
    window("257,symmetric", size(257), periodic=0)
    window("2", size(2))
    window("2,symmetric", size(2), periodic=0)
    window("1", size(1))
    # A symmetric window of one element divides 0 by 0 in ONNX's formula.
    window("17,at-run-time", size(17, constant=False))
    window("17,symmetric,at-run-time", size(17, constant=False), periodic=0)
    window("17,float64", size(17), output_datatype=DType.FLOAT64, numerics=_SINGLE)
    window("17,float16", size(17), output_datatype=DType.FLOAT16)
    window("17,bfloat16", size(17), output_datatype=DType.BFLOAT16)

    @window.drawn
    def draw_window(draw: Draw, dtype: DType) -> OpCase:
        length = size(draw(st.integers(2, 99)), constant=draw(st.booleans()))
        return window.case(length, periodic=draw(st.integers(0, 1)))


for _name in ("HannWindow", "HammingWindow", "BlackmanWindow"):
    _add_window(table(_name, FUNCTION))
