"""Cases of ConvTranspose."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from lite_conformance.cases.op_cases import Draw, OpCase, table
from lite_conformance.cases.tensors import big, const, t, tiny
from lite_conformance.judge.tolerances import SUM
from lite_core.ir import DType

transposed = table("ConvTranspose", SUM)
transposed("n1c3h5w5,o4,k3", t(1, 3, 5, 5), const(3, 4, 3, 3))
transposed("n2c3h4w5,o5,k4s2p1,bias", t(2, 3, 4, 5), const(3, 5, 4, 4), const(5), strides=(2, 2), pads=(1, 1, 1, 1))
transposed("n1c4h3w3,o3,k2s2", t(1, 4, 3, 3), const(4, 3, 2, 2), strides=(2, 2))
transposed("n1c3h4w4,k2s3,gaps", t(1, 3, 4, 4), const(3, 2, 2, 2), const(2), strides=(3, 3))
transposed("n1c3h4w5,k3x2,pads-differ", t(1, 3, 4, 5), const(3, 4, 3, 2), strides=(1, 2), pads=(0, 1, 2, 0))
transposed("n1c3h4w4,k3s2p1,output-padding", t(1, 3, 4, 4), const(3, 2, 3, 3), const(2), strides=(2, 2),
           pads=(1, 1, 1, 1), output_padding=(1, 0))  # fmt: skip
transposed("n1c2h5w4,k3,dilation2x3", t(1, 2, 5, 4), const(2, 3, 3, 2), dilations=(2, 3), kernel_shape=(3, 2))
transposed("n1c2h4w3,k3,s3x1,dilation2x3", t(1, 2, 4, 3), const(2, 3, 3, 3), strides=(3, 1), dilations=(2, 3))
transposed("n1c2h4w3,k3,s4x2,dilation2x2", t(1, 2, 4, 3), const(2, 3, 3, 3), strides=(4, 2), dilations=(2, 2))
transposed("n1c3h5w6,k3s2p3,inputs-cut-off", t(1, 3, 5, 6), const(3, 4, 3, 3), strides=(2, 2), pads=(3, 3, 3, 3))
transposed("n2c6h4w4,o6,k3s2,group3", t(2, 6, 4, 4), const(6, 2, 3, 3), const(6), group=3, strides=(2, 2))
transposed("n1c7h5w3,depthwise,k4s2p1", t(1, 7, 5, 3), const(7, 1, 4, 4), group=7, strides=(2, 2), pads=(1, 1, 1, 1))
transposed("n1c3h3w4,k3s2,same-upper", t(1, 3, 3, 4), const(3, 2, 3, 3), strides=(2, 2), auto_pad="SAME_UPPER")
transposed("n1c3h3w4,k3s2,same-lower", t(1, 3, 3, 4), const(3, 2, 3, 3), strides=(2, 2), auto_pad="SAME_LOWER")
transposed("n1c3h3w4,k3s2,valid", t(1, 3, 3, 4), const(3, 2, 3, 3), strides=(2, 2), auto_pad="VALID")
transposed("n1c3h4w3,k4s2,output-shape8x6", t(1, 3, 4, 3), const(3, 2, 4, 4), strides=(2, 2), output_shape=(8, 6))
transposed("n1c3h4w3,k3s2,output-shape10x8,larger", t(1, 3, 4, 3), const(3, 2, 3, 3), strides=(2, 2),
           output_shape=(10, 8))  # fmt: skip
transposed("n1c3h4w4,k3s2,output-shape8x8,same-upper", t(1, 3, 4, 4), const(3, 2, 3, 3), strides=(2, 2),
           output_shape=(8, 8), auto_pad="SAME_UPPER")  # fmt: skip
transposed("n1c33h3w3,o5,k1", t(1, 33, 3, 3), const(33, 5, 1, 1))
transposed("n1c3w33,k5s2,1d", t(1, 3, 33), const(3, 4, 5), const(4), strides=(2,), pads=(2, 1))
transposed("n1c2d3h2w4,k2s2,3d", t(1, 2, 3, 2, 4), const(2, 3, 2, 2, 2), strides=(2, 2, 2))
transposed("n2c2d3h4w5,k2x3x3,s2x1x3,3d", t(2, 2, 3, 4, 5), const(2, 3, 2, 3, 3), strides=(2, 1, 3))
transposed("n0c3h5w5,empty-batch", t(0, 3, 5, 5), const(3, 4, 3, 3))
transposed("n1c4h5w3,k3s2,group2,weights-and-bias-at-run-time", t(1, 4, 5, 3), t(4, 3, 3, 3), t(6), group=2,
           strides=(2, 2))  # fmt: skip
transposed("big", t(1, 3, 4, 4, init=big), const(3, 2, 3, 3))
transposed("tiny", t(1, 3, 4, 4, init=tiny), const(3, 2, 3, 3))


@transposed.drawn
def draw_transposed(draw: Draw, dtype: DType) -> OpCase:
    rank = draw(st.integers(1, 2))
    kernel = [draw(st.integers(1, 4)) for _ in range(rank)]
    strides = [draw(st.integers(1, 3)) for _ in range(rank)]
    dilations = [draw(st.integers(1, 2)) for _ in range(rank)]
    size = [draw(st.integers(1, 6)) for _ in range(rank)]
    attributes: dict[str, Any] = {"strides": tuple(strides), "dilations": tuple(dilations)}
    covered = [(n - 1) * s + (k - 1) * d + 1 for n, s, k, d in zip(size, strides, kernel, dilations)]
    if draw(st.booleans()):
        # Half of the total padding on either side leaves at least one element.
        ends = [draw(st.integers(0, min(k - 1, (c - 1) // 2))) for k, c in zip(kernel, covered)]
        attributes["pads"] = (*(draw(st.integers(0, end)) for end in ends), *ends)
        attributes["output_padding"] = tuple(draw(st.integers(0, s - 1)) for s in strides)
    elif draw(st.booleans()):
        attributes["output_shape"] = tuple(max(1, c - 2 * draw(st.integers(0, 1))) for c in covered)
    group, per_group = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    channels = group * draw(st.integers(1, 3))
    bias = [const(group * per_group)] if draw(st.booleans()) else []
    x = t(draw(st.integers(1, 2)), channels, *size)
    return transposed.case(x, const(channels, per_group, *kernel), *bias, group=group, **attributes)
