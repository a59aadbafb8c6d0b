"""Cases of DeformConv."""

from __future__ import annotations

from hypothesis import strategies as st

from lite_conformance.cases.op_cases import Draw, OpCase, table
from lite_conformance.cases.operators.layer_initializers import zeros
from lite_conformance.cases.tensors import const, t, uniform
from lite_conformance.judge.tolerances import SCALED
from lite_core.ir import DType

share = uniform(0, 1)
deform = table("DeformConv", SCALED)
deform("n1c3h5w5,o2,k3,still", t(1, 3, 5, 5), const(2, 3, 3, 3), t(1, 18, 3, 3, init=zeros))
deform("n1c3h5w5,o2,k3,whole-steps", t(1, 3, 5, 5), const(2, 3, 3, 3), t(1, 18, 3, 3, init=uniform(1, 1)))
deform("n2c3h5w6,o4,k3p1", t(2, 3, 5, 6), const(4, 3, 3, 3), t(2, 18, 5, 6), pads=(1, 1, 1, 1))
deform("n1c3h6w5,k2x3s2x1,pads-differ,bias", t(1, 3, 6, 5), const(4, 3, 2, 3), t(1, 12, 3, 5), const(4),
       strides=(2, 1), pads=(0, 1, 1, 1))  # fmt: skip
deform("n1c3h5w5,k3p1,bias,mask", t(1, 3, 5, 5), const(4, 3, 3, 3), t(1, 18, 5, 5), const(4),
       t(1, 9, 5, 5, init=share), pads=(1, 1, 1, 1), kernel_shape=(3, 3))  # fmt: skip
deform("n1c3h5w5,k2,mask,no-bias", t(1, 3, 5, 5), const(4, 3, 2, 2), t(1, 8, 4, 4), None, t(1, 4, 4, 4, init=share))
deform("n2c4h5w5,k2,offset-group2,mask", t(2, 4, 5, 5), const(3, 4, 2, 2), t(2, 16, 4, 4), None,
       t(2, 8, 4, 4, init=share), offset_group=2)  # fmt: skip
deform("n1c4h5w5,o6,k2,group2", t(1, 4, 5, 5), const(6, 2, 2, 2), t(1, 8, 4, 4), const(6), group=2)
deform("n1c6h4w4,o6,k2,group3,offset-group2", t(1, 6, 4, 4), const(6, 2, 2, 2), t(1, 16, 3, 3), group=3, offset_group=2)
deform("n1c2h7w7,k3,dilation2x1", t(1, 2, 7, 7), const(3, 2, 3, 3), t(1, 18, 3, 5), dilations=(2, 1))
deform("n1c2h5w5,k2,far-outside", t(1, 2, 5, 5), const(2, 2, 2, 2), t(1, 8, 4, 4, init=uniform(-9, 9)))
deform("n1c2h5w5,k2,all-at-run-time", t(1, 2, 5, 5), t(2, 2, 2, 2), t(1, 8, 4, 4), t(2), t(1, 4, 4, 4, init=share))
deform("n0c3h5w5,empty-batch", t(0, 3, 5, 5), const(2, 3, 3, 3), t(0, 18, 3, 3))


@deform.drawn
def draw_deform(draw: Draw, dtype: DType) -> OpCase:
    kernel = [draw(st.integers(1, 3)) for _ in range(2)]
    strides = [draw(st.integers(1, 2)) for _ in range(2)]
    dilations = [draw(st.integers(1, 2)) for _ in range(2)]
    pads = [draw(st.integers(0, 1)) for _ in range(4)]
    size = [(k - 1) * d + 1 + draw(st.integers(0, 3)) for k, d in zip(kernel, dilations)]
    windows = [
        (n + begin + end - (k - 1) * d - 1) // s + 1
        for n, k, d, s, begin, end in zip(size, kernel, dilations, strides, pads, pads[2:])
    ]
    group, offset_group, batch = draw(st.integers(1, 2)), draw(st.integers(1, 2)), draw(st.integers(1, 2))
    channels, outputs = group * offset_group * draw(st.integers(1, 2)), group * draw(st.integers(1, 3))
    offsets = offset_group * kernel[0] * kernel[1]
    return deform.case(
        t(batch, channels, *size),
        const(outputs, channels // group, *kernel),
        t(batch, 2 * offsets, *windows),
        const(outputs) if draw(st.booleans()) else None,
        t(batch, offsets, *windows, init=share) if draw(st.booleans()) else None,
        group=group,
        offset_group=offset_group,
        strides=tuple(strides),
        dilations=tuple(dilations),
        pads=tuple(pads),
    )
