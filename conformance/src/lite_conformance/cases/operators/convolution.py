"""Conv and its integer forms, ConvInteger and QLinearConv."""

from __future__ import annotations

from hypothesis import strategies as st

from lite_conformance.cases.op_cases import Draw, OpCase, table
from lite_conformance.cases.operators.layer_initializers import all_integers
from lite_conformance.cases.operators.spatial import channel_groups, scales, sliding_window
from lite_conformance.cases.tensors import big, const, integers, t, tiny, values
from lite_conformance.judge.tolerances import SUM
from lite_core.ir import DType

conv = table("Conv", SUM)
conv("n1c3h8w8,o4,k3s2p1", t(1, 3, 8, 8), const(4, 3, 3, 3), strides=(2, 2), pads=(1, 1, 1, 1))
conv("n2c3h7w9,o5,k3p1,bias", t(2, 3, 7, 9), const(5, 3, 3, 3), const(5), pads=(1, 1, 1, 1))
conv("n1c8h5w5,o8,k1", t(1, 8, 5, 5), const(8, 8, 1, 1))
conv("n2c7h5w9,o9,k1s2x3,bias", t(2, 7, 5, 9), const(9, 7, 1, 1), const(9), strides=(2, 3))
conv("n2c5h3w4,o6,k1p1", t(2, 5, 3, 4), const(6, 5, 1, 1), pads=(1, 1, 1, 1))
conv("n1c8h9w9,depthwise,k3p1", t(1, 8, 9, 9), const(8, 1, 3, 3), group=8, pads=(1, 1, 1, 1))
conv("n2c7h9w5,depthwise,k3s2p1,bias", t(2, 7, 9, 5), const(7, 1, 3, 3), const(7), group=7, strides=(2, 2),
     pads=(1, 1, 1, 1))  # fmt: skip
conv("n1c3h6w6,o6,depthwise-times-2,k3", t(1, 3, 6, 6), const(6, 1, 3, 3), group=3)
conv("n1c7h9w9,depthwise,k3,dilation2x3", t(1, 7, 9, 9), const(7, 1, 3, 3), group=7, dilations=(2, 3))
conv("n1c6h9w9,o6,k3,group3", t(1, 6, 9, 9), const(6, 2, 3, 3), group=3)
conv("n2c4h5w5,o6,k1,group2,bias", t(2, 4, 5, 5), const(6, 2, 1, 1), const(6), group=2)
conv("n1c3h9w9,k3,dilation2", t(1, 3, 9, 9), const(4, 3, 3, 3), dilations=(2, 2))
conv("n1c3h9w9,k3s2,dilation3x1,pads-differ", t(1, 3, 9, 9), const(4, 3, 3, 3), dilations=(3, 1), strides=(1, 2),
     pads=(2, 0, 1, 1))  # fmt: skip
conv("n1c3h9w6,k2x3,pads-differ", t(1, 3, 9, 6), const(4, 3, 2, 3), pads=(0, 1, 1, 2), strides=(1, 2))
conv("n1c3h7w7,k3s2,same-upper", t(1, 3, 7, 7), const(4, 3, 3, 3), strides=(2, 2), auto_pad="SAME_UPPER")
conv("n1c3h7w7,k4s2,same-lower", t(1, 3, 7, 7), const(4, 3, 4, 4), strides=(2, 2), auto_pad="SAME_LOWER")
conv("n1c3h8w7,k2x4,same-upper,odd-padding", t(1, 3, 8, 7), const(4, 3, 2, 4), auto_pad="SAME_UPPER")
conv("n1c3h8w7,k3s2,valid", t(1, 3, 8, 7), const(4, 3, 3, 3), strides=(2, 2), auto_pad="VALID", kernel_shape=(3, 3))
conv("n1c3w11,k5,1d", t(1, 3, 11), const(4, 3, 5))
conv("n2c4w257,o5,k3s2p1,1d", t(2, 4, 257), const(5, 4, 3), const(5), strides=(2,), pads=(1, 1))
conv("n1c2d5h6w7,k3p1,3d", t(1, 2, 5, 6, 7), const(3, 2, 3, 3, 3), pads=(1,) * 6)
conv("n2c4d5h6w7,k3x2x3,3d,everything-differs", t(2, 4, 5, 6, 7), const(7, 4, 3, 2, 3), pads=(1, 0, 1, 1, 1, 0),
     strides=(2, 1, 2))  # fmt: skip
conv("n1c4d7h5w6,k3x3x1,3d,group2,dilation2x1x1", t(1, 4, 7, 5, 6), const(6, 2, 3, 3, 1), dilations=(2, 1, 1), group=2)
conv("n1c2h3w2,k3p2,smaller-than-kernel", t(1, 2, 3, 2), const(3, 2, 3, 3), pads=(2, 2, 2, 2))
conv("n1c2h2w1,k3,more-padding-than-kernel", t(1, 2, 2, 1), const(3, 2, 3, 3), pads=(5, 6, 7, 5))
conv("n0c3h8w8,empty-batch", t(0, 3, 8, 8), const(4, 3, 3, 3))
conv("n1c3h8w8,weights-at-run-time", t(1, 3, 8, 8), t(4, 3, 3, 3))
conv("n1c4h6w6,k3p1,group2,weights-and-bias-at-run-time", t(1, 4, 6, 6), t(6, 2, 3, 3), t(6), group=2,
     pads=(1, 1, 1, 1))  # fmt: skip
conv("big", t(1, 3, 8, 8, init=big), const(4, 3, 3, 3))
conv("tiny", t(1, 3, 8, 8, init=tiny), const(4, 3, 3, 3))
conv("n1c32h14w14,o33,k3p1,odd-channels", t(1, 32, 14, 14), const(33, 32, 3, 3), pads=(1, 1, 1, 1))


@conv.drawn
def draw_conv(draw: Draw, dtype: DType) -> OpCase:
    size, window = sliding_window(draw, draw(st.integers(1, 2)))
    group, channels, outputs = channel_groups(draw)
    of_weights = draw(st.sampled_from((const, t)))
    bias = [of_weights(outputs)] if draw(st.booleans()) else []
    weights = of_weights(outputs, channels // group, *window["kernel_shape"])
    return conv.case(t(draw(st.integers(1, 3)), channels, *size), weights, *bias, group=group, **window)


# **** integers ****

byte = all_integers
conv_integer = table("ConvInteger")
conv_integer("n1c3h6w7,o4,k3", t(1, 3, 6, 7, init=byte), const(4, 3, 3, 3, init=byte))
conv_integer("n1c3h6w7,k3s2p1,zero-points", t(1, 3, 6, 7, init=byte), const(4, 3, 3, 3, init=byte),
             const(init=integers(3, 9)), const(init=integers(3, 9)), strides=(2, 2), pads=(1, 1, 1, 1))  # fmt: skip
conv_integer("n2c3h5w5,k3p1,zero-point-per-channel", t(2, 3, 5, 5, init=byte), const(5, 3, 3, 3, init=byte),
             const(init=integers(1, 9)), const(5, init=integers(0, 9)), pads=(1, 1, 1, 1))  # fmt: skip
conv_integer("n1c3h5w5,k3p1,second-zero-point-only", t(1, 3, 5, 5, init=byte), const(2, 3, 3, 3, init=byte), None,
             const(init=integers(3, 9)), pads=(1, 1, 1, 1))  # fmt: skip
conv_integer("n1c3h6w6,weights-int8", t(1, 3, 6, 6, init=byte), const(4, 3, 3, 3, init=byte, dtype="int8"),
             const(init=integers(3, 9)))  # fmt: skip
conv_integer("n1c3h6w6,weights-uint8", t(1, 3, 6, 6, init=byte), const(4, 3, 3, 3, init=byte, dtype="uint8"), None,
             const(init=integers(100, 200), dtype="uint8"))  # fmt: skip
conv_integer("n1c6h7w7,k3p2,group3,dilation2", t(1, 6, 7, 7, init=byte), const(6, 2, 3, 3, init=byte), group=3,
             dilations=(2, 2), pads=(2, 2, 2, 2))  # fmt: skip
conv_integer("n1c7h7w5,depthwise,k3p1,zero-point", t(1, 7, 7, 5, init=byte), const(7, 1, 3, 3, init=byte),
             const(init=integers(3, 9)), group=7, pads=(1, 1, 1, 1))  # fmt: skip
conv_integer("n1c33h3w3,o5,k1,odd-channels", t(1, 33, 3, 3, init=byte), const(5, 33, 1, 1, init=byte))
conv_integer("n1c3h7w7,k3s2,same-lower,kernel-shape", t(1, 3, 7, 8, init=byte), const(4, 3, 3, 3, init=byte),
             strides=(2, 2), auto_pad="SAME_LOWER", kernel_shape=(3, 3))  # fmt: skip
conv_integer("n1c3h9w7,k2x3,everything-differs", t(1, 3, 9, 7, init=byte), const(4, 3, 2, 3, init=byte),
             const(init=integers(3, 9)), strides=(1, 2), dilations=(3, 1), pads=(0, 1, 2, 0))  # fmt: skip
conv_integer("n1c2w9,k3,1d,all-at-run-time", t(1, 2, 9, init=byte), t(3, 2, 3, init=byte), t(init=integers(3, 9)),
             t(3, init=integers(0, 9)))  # fmt: skip
conv_integer("n1c2d4h5w6,k2x3x3,s2x1x2,3d", t(1, 2, 4, 5, 6, init=byte), const(3, 2, 2, 3, 3, init=byte),
             strides=(2, 1, 2))  # fmt: skip
conv_integer("n0c3h6w7,empty-batch", t(0, 3, 6, 7), const(4, 3, 3, 3))


@conv_integer.drawn
def draw_conv_integer(draw: Draw, dtype: DType) -> OpCase:
    size, window = sliding_window(draw, draw(st.integers(1, 2)))
    group, channels, outputs = channel_groups(draw)
    x_zero_point = const(init=integers(0, 100)) if draw(st.booleans()) else None
    shape = draw(st.sampled_from(((), (outputs,))))
    w_zero_point = const(*shape, init=integers(0, 100)) if draw(st.booleans()) else None
    x = t(draw(st.integers(1, 2)), channels, *size, init=byte)
    w = const(outputs, channels // group, *window["kernel_shape"], init=byte)
    return conv_integer.case(x, w, x_zero_point, w_zero_point, group=group, **window)


# NOTE: the combined scale of these cases is a power of two (ties round to even), or 1 / 3, 1 / 5, ... (whose
# multiples are never ties). With any other scale the last bit of the factor may decide the rounding.
qlinear_conv = table("QLinearConv")
point = const(init=integers(3, 9))
qlinear_conv("n1c3h6w7,k3,halves-to-even", t(1, 3, 6, 7, init=integers(0, 8)), scales(0.5), point,
             const(4, 3, 3, 3, init=integers(2, 9)), scales(0.25), point, scales(0.5), point)  # fmt: skip
qlinear_conv("n1c3h6w7,k3s2p1,saturates", t(1, 3, 6, 7, init=byte), scales(0.5), point,
             const(4, 3, 3, 3, init=byte), scales(1 / 64), point, scales(1), point, strides=(2, 2),
             pads=(1, 1, 1, 1))  # fmt: skip
qlinear_conv("n2c3h5w5,k3p1,bias,wide-sums", t(2, 3, 5, 5, init=byte), scales(0.5), point,
             const(5, 3, 3, 3, init=byte), scales(1 / 64), point, scales(8), point,
             const(5, init=integers(-90000, 90000), dtype="int32"), pads=(1, 1, 1, 1))  # fmt: skip
qlinear_conv("n1c4h5w5,k3,per-channel", t(1, 4, 5, 5, init=byte), scales(0.25), point,
             const(5, 4, 3, 3, init=byte), scales(2 / 513, 2 / 257, 2 / 129, 2 / 65, 2 / 1025),
             const(5, init=integers(0, 9)), scales(0.5), point,
             const(5, init=integers(-99, 99), dtype="int32"))  # fmt: skip
qlinear_conv("n1c3h6w6,x-uint8,w-int8", t(1, 3, 6, 6, init=byte, dtype="uint8"), scales(0.25),
             const(init=integers(100, 160), dtype="uint8"), const(4, 3, 3, 3, init=byte, dtype="int8"), scales(0.25),
             const(init=integers(-9, 9), dtype="int8"), scales(64 * 0.5), point)  # fmt: skip
qlinear_conv("n1c6h7w7,k3p2,group3,dilation2", t(1, 6, 7, 7, init=byte), scales(0.5), point,
             const(6, 2, 3, 3, init=byte), scales(0.5), point, scales(63.75), point, group=3, dilations=(2, 2),
             pads=(2, 2, 2, 2))  # fmt: skip
qlinear_conv("n1c7h7w5,depthwise,k3p1,same-upper", t(1, 7, 7, 5, init=byte), scales(0.5), point,
             const(7, 1, 3, 3, init=byte), scales(0.5), point, scales(63.75), point, group=7,
             auto_pad="SAME_UPPER", kernel_shape=(3, 3), strides=(2, 2))  # fmt: skip
qlinear_conv("n1c3h9w7,k2x3,everything-differs", t(1, 3, 9, 7, init=byte), scales(0.5), point,
             const(4, 3, 2, 3, init=byte), scales(0.5), point, scales(63.75), point, strides=(1, 2), dilations=(3, 1),
             pads=(0, 1, 2, 0))  # fmt: skip
qlinear_conv("n1c33h3w3,o5,k1,all-at-run-time", t(1, 33, 3, 3, init=byte), values(0.5, "float32"),
             t(init=integers(3, 9)), t(5, 33, 1, 1, init=byte), values(0.5, "float32"), t(init=integers(3, 9)),
             values(128.0, "float32"), t(init=integers(3, 9)), t(5, init=integers(-99, 99), dtype="int32"))  # fmt: skip
qlinear_conv("n1c2w9,k3,1d", t(1, 2, 9, init=byte), scales(0.5), point, const(3, 2, 3, init=byte), scales(0.5),
             point, scales(32), point)  # fmt: skip
qlinear_conv("n0c3h6w7,empty-batch", t(0, 3, 6, 7), scales(0.5), point, const(4, 3, 3, 3), scales(0.5), point,
             scales(1), point)  # fmt: skip


@qlinear_conv.drawn
def draw_qlinear_conv(draw: Draw, dtype: DType) -> OpCase:
    size, window = sliding_window(draw, draw(st.integers(1, 2)))
    group, channels, outputs = channel_groups(draw)
    powers = st.integers(-4, 2).map(lambda exponent: 2.0**exponent)
    per_channel = draw(st.booleans())
    w_scale = scales(*(draw(powers) for _ in range(outputs if per_channel else 1)))
    w_point = const(*w_scale.shape, init=integers(0, 100))
    bias = [const(outputs, init=integers(-99, 99), dtype="int32")] if draw(st.booleans()) else []
    return qlinear_conv.case(
        t(draw(st.integers(1, 2)), channels, *size, init=byte),
        scales(draw(powers)),
        const(init=integers(0, 100)),
        const(outputs, channels // group, *window["kernel_shape"], init=byte),
        w_scale,
        w_point,
        scales(128 * draw(powers)),
        const(init=integers(0, 100)),
        *bias,
        group=group,
        **window,
    )
