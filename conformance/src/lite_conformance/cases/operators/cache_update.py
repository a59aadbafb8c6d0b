"""Cases of TensorScatter."""

from __future__ import annotations

from hypothesis import strategies as st

from lite_conformance.cases.op_cases import Draw, OpCase, table
from lite_conformance.cases.operators.operands import data
from lite_conformance.cases.tensors import Tensor, const, special, t, values
from lite_conformance.judge.tolerances import MOVED
from lite_core.ir import DType


def starts(*indices: int, constant: bool = False) -> Tensor:
    """Return the first index of each row of the batch."""
    return values(list(indices), "int64", constant=constant)


update = table("TensorScatter", MOVED)
update("2x3x6x4,2", data(2, 3, 6, 4), data(2, 3, 2, 4), starts(1, 4))
update("2x3x6x4,2,at-start", data(2, 3, 6, 4), data(2, 3, 2, 4))
update("2x3x6x4,2,constant-starts", data(2, 3, 6, 4), data(2, 3, 2, 4), starts(0, 3, constant=True))
update("2x3x6x4,2,circular", data(2, 3, 6, 4), data(2, 3, 2, 4), starts(5, 11), mode="circular")
update("2x6x4,2,axis1", data(2, 6, 4), data(2, 2, 4), starts(1, 4), axis=1)
update("2x6x3x4,2,axis1", data(2, 6, 3, 4), data(2, 2, 3, 4), starts(1, 4), axis=1)
update("2x2x3x5x4,2,axis-2", data(2, 2, 3, 5, 4), data(2, 2, 3, 2, 4), starts(1, 3))
update("2x3x6,2,last-axis", data(2, 3, 6), data(2, 3, 2), starts(1, 4), axis=2)
update("1x2x9x33,whole", data(1, 2, 9, 33), data(1, 2, 9, 33), starts(0))
update("constant-cache", const(2, 3, 6, 4), data(2, 3, 1, 4), starts(1, 4))
update("2x3x6x4,0,nothing-new", data(2, 3, 6, 4), data(2, 3, 0, 4), starts(1, 4))
update("2x9x4000,large", data(2, 9, 4000), data(2, 2, 4000), starts(1, 3))
update("0x3x6x4,empty", data(0, 3, 6, 4), data(0, 3, 2, 4))
update("special", t(2, 3, 6, 4, init=special), t(2, 3, 2, 4, init=special), starts(1, 4))


@update.drawn
def draw_update(draw: Draw, dtype: DType) -> OpCase:
    sizes = [draw(st.integers(1, 4)) for _ in range(draw(st.integers(2, 4)))]
    axis = draw(st.integers(1, len(sizes) - 1))
    count = draw(st.integers(0, sizes[axis]))
    new = [count if number == axis else size for number, size in enumerate(sizes)]
    firsts = starts(*(draw(st.integers(0, sizes[axis] - count)) for _ in range(sizes[0])))
    mode = draw(st.sampled_from(("linear", "circular")))
    return update.case(t(*sizes), t(*new), firsts, axis=axis, mode=mode)
