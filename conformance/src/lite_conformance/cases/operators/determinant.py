"""Cases of Det."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from lite_conformance.cases.op_cases import Draw, OpCase, table
from lite_conformance.cases.tensors import Array, t, values
from lite_conformance.judge.tolerances import SCALED
from lite_core.ir import DType


def well_conditioned(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    """Return matrices with one dominant element per row and column: well-conditioned, elimination needs pivoting."""
    size = shape[-1]
    matrices = random.uniform(-0.5, 0.5, shape) / max(size, 1)
    for matrix in matrices.reshape(-1, size, size):
        dominant = random.choice([-1, 1], size) * random.uniform(0.8, 1.6, size)
        matrix[np.arange(size), random.permutation(size)] = dominant
    return matrices.astype(dtype.numpy)


det = table("Det", SCALED)
det("1x1", t(1, 1, init=well_conditioned))
det("2x2", t(2, 2, init=well_conditioned))
det("3x3", t(3, 3, init=well_conditioned))
det("7x7", t(7, 7, init=well_conditioned))
det("33x33", t(33, 33, init=well_conditioned))
det("5x4x4,batch", t(5, 4, 4, init=well_conditioned))
det("2x3x5x5,batch", t(2, 3, 5, 5, init=well_conditioned))
det("two-rows-exchanged", values([[0, 1, 0], [1, 0, 0], [0, 0, 2]]))
det("zero-in-the-corner", values([[0, 2, 1], [4, 1, 1], [2, 1, 3]]))
det("column-of-zeros", values([[1, 0, 2], [3, 0, 4], [5, 0, 6]]))
det("integers", values([[[1, 2], [3, 4]], [[1, 3], [2, 1]], [[2, 0], [0, 5]]]))
det("0x3x3,empty", t(0, 3, 3))
det("2x0x0,without-elements", t(2, 0, 0))


@det.drawn
def draw_det(draw: Draw, dtype: DType) -> OpCase:
    stack = draw(st.lists(st.integers(1, 3), max_size=2))
    size = draw(st.integers(1, 8))
    return det.case(t(*stack, size, size, init=well_conditioned))
