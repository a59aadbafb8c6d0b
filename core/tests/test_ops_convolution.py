"""Conv, ConvTranspose, DeformConv, ConvInteger, QLinearConv."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from op_runner import infer_op, run_op

from lite_core.errors import GraphError
from lite_core.ir import DType, SymbolicDim, TensorType

RANDOM = np.random.default_rng(1)


def normal(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


def typed(*dims, dtype="float32"):
    return TensorType(DType.of(dtype), tuple(SymbolicDim.named(d) if isinstance(d, str) else d for d in dims))


def window_positions(size, kernel, stride, dilation, begin, end):
    """Return the input elements that each window of one axis reads, found by enumeration; -1 is padding."""
    padded = [-1] * begin + list(range(size)) + [-1] * end
    starts = range(0, len(padded) - dilation * (kernel - 1), stride)
    return [[padded[s + t * dilation] for t in range(kernel)] for s in starts]


def naive_conv(x, w, group, strides, dilations, pads):
    """Compute a 2-D convolution by its definition, one product at a time (1-D as 2-D of height 1)."""
    rows = window_positions(x.shape[2], w.shape[2], strides[0], dilations[0], pads[0], pads[2])
    columns = window_positions(x.shape[3], w.shape[3], strides[1], dilations[1], pads[1], pads[3])
    y = np.zeros((x.shape[0], w.shape[0], len(rows), len(columns)))
    per_group_in, per_group_out = w.shape[1], w.shape[0] // group
    for n, m, r, c in np.ndindex(*y.shape):
        for k in range(per_group_in):
            channel = m // per_group_out * per_group_in + k
            for (i, h), (j, v) in itertools.product(enumerate(rows[r]), enumerate(columns[c])):
                if h >= 0 and v >= 0:
                    y[n, m, r, c] += float(x[n, channel, h, v]) * float(w[m, k, i, j])
    return y


# **** Conv ****


@pytest.mark.parametrize(
    ("channels", "outputs", "kernel", "group", "strides", "dilations", "pads"),
    [
        (3, 4, (3, 2), 1, (2, 3), (2, 1), (0, 2, 3, 1)),
        (4, 6, (1, 1), 2, (2, 1), (1, 1), (0, 0, 0, 0)),
        (4, 6, (1, 1), 1, (1, 1), (1, 1), (1, 0, 2, 1)),
        (4, 6, (3, 3), 2, (1, 2), (1, 1), (0, 1, 2, 0)),
        (4, 4, (3, 3), 4, (2, 2), (1, 1), (1, 0, 1, 2)),
        (3, 6, (5, 2), 3, (1, 1), (1, 3), (2, 3, 2, 3)),
        (1, 2, (7, 9), 1, (1, 1), (1, 1), (1, 1, 0, 1)),
    ],
)
def test_conv_equals_its_definition(channels, outputs, kernel, group, strides, dilations, pads):
    x, w, b = normal(2, channels, 6, 7), normal(outputs, channels // group, *kernel), normal(outputs)
    result = run_op("Conv", [x, w, b], group=group, strides=strides, dilations=dilations, pads=pads)[0]
    expected = naive_conv(x, w, group, strides, dilations, pads) + b[:, None, None]
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5)


def test_conv_of_one_and_three_axes_agrees_with_two():
    x, w = normal(2, 3, 9), normal(4, 3, 3)
    flat = run_op("Conv", [x, w], strides=(2,), pads=(1, 2))[0]
    expected = naive_conv(x[:, :, None], w[:, :, None], 1, (1, 2), (1, 1), (0, 1, 0, 2))
    np.testing.assert_allclose(flat, expected[:, :, 0], rtol=1e-5, atol=1e-5)
    deep = run_op("Conv", [x[:, :, None, None], w[:, :, None, None]], strides=(1, 1, 2), pads=(0, 0, 1, 0, 0, 2))[0]
    np.testing.assert_allclose(deep[:, :, 0, 0], flat, rtol=1e-5, atol=1e-5)


def test_conv_in_blocks_of_rows_and_samples(monkeypatch):
    from lite_core.ops import convolution

    x, w = normal(5, 4, 9, 8), normal(6, 2, 3, 3)
    attributes = {"group": 2, "pads": (1, 1, 1, 1), "strides": (2, 1)}
    whole = run_op("Conv", [x, w], **attributes)[0]
    for elements in (1, 700, 3000):
        monkeypatch.setattr(convolution, "_UNFOLDED_ELEMENTS", elements)
        np.testing.assert_allclose(run_op("Conv", [x, w], **attributes)[0], whole, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("auto_pad", "begin"), [("SAME_UPPER", 0), ("SAME_LOWER", 1)])
def test_auto_pad_puts_the_odd_element_at_the_named_end(auto_pad, begin):
    x, w = normal(1, 1, 1, 5), normal(1, 1, 1, 4)
    # stride 2: three windows span 8 elements, 3 of them padding
    result = run_op("Conv", [x, w], auto_pad=auto_pad, strides=(1, 2))[0]
    expected = naive_conv(x, w, 1, (1, 2), (1, 1), (0, 1 + begin, 0, 2 - begin))
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("group", [1, 4])
def test_conv_of_float64_is_computed_in_float64(group):
    x, w = RANDOM.standard_normal((1, 4, 5, 5)), RANDOM.standard_normal((4, 4 // group, 3, 3))
    result = run_op("Conv", [x, w], group=group)[0]
    np.testing.assert_allclose(result, naive_conv(x, w, group, (1, 1), (1, 1), (0, 0, 0, 0)), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kernel", [1, 3])
@pytest.mark.parametrize("group", [1, 2, 4])
def test_conv_of_an_empty_batch(kernel, group):
    result = run_op("Conv", [normal(0, 4, 5, 5), normal(4, 4 // group, kernel, kernel)], group=group)[0]
    assert result.shape == (0, 4, 6 - kernel, 6 - kernel)


def test_conv_symbolic_shapes():
    x = typed("n", 3, "h", "w")
    attributes = {"strides": (2, 2), "pads": (3, 3, 3, 3)}
    assert infer_op("Conv", [x, typed(64, 3, 7, 7)], **attributes) == ["float32[n, 64, (h + 1)//2, (w + 1)//2]"]
    same = {"strides": (2, 1), "auto_pad": "SAME_UPPER"}
    assert infer_op("Conv", [x, typed(8, 3, 3, 3)], **same) == ["float32[n, 8, (h + 1)//2, w]"]
    assert infer_op("Conv", [x, typed("m", "c", "k", "k")]) == ["float32[n, m, h - k + 1, -k + w + 1]"]
    unranked = infer_op("Conv", [TensorType(DType.FLOAT32), typed(64, 3, 7, 7)])[0]
    assert unranked.count(",") == 3
    assert unranked.split(",")[1] == " 64"
    assert infer_op("Conv", [TensorType(DType.FLOAT32), TensorType(DType.FLOAT32)]) == ["float32[?]"]


@pytest.mark.parametrize(
    ("x", "w", "attributes", "message"),
    [
        ((1, 3, 8, 8), (4, 2, 3, 3), {}, r"3 channels.*\[4, 2, 3, 3\].*group 1 .* 2"),
        ((1, 4, 8, 8), (6, 1, 3, 3), {"group": 4}, "group 4 .*6 output channels"),
        ((1, 3, 8, 8), (4, 2, 3, 3), {"group": 2}, "group 2 .*3 channels"),
        ((1, 3, 8, 8), (4, 3, 3, 3), {"group": 0}, "group .*at least 1"),
        ((1, 3, 8), (4, 3, 3, 3), {}, "same rank"),
        ((1, 3), (4, 3), {}, "rank 3"),
        ((1, 3, 2, 8), (4, 3, 3, 3), {}, r"kernel of 3 .*spatial axis 0"),
        ((1, 3, 8, 8), (4, 3, 3, 3), {"kernel_shape": (3, 5)}, "kernel_shape.*weights"),
        ((1, 3, 8, 8), (4, 3, 3, 3), {"kernel_shape": (3,)}, "kernel_shape.* 2 elements"),
        ((1, 3, 8, 8), (4, 3, 3, 3), {"strides": (1,)}, "strides .* 2 elements"),
        ((1, 3, 8, 8), (4, 3, 3, 3), {"strides": (0, 1)}, "strides .* at least 1"),
        ((1, 3, 8, 8), (4, 3, 3, 3), {"pads": (1, 1)}, "pads .* 4 elements"),
        ((1, 3, 8, 8), (4, 3, 3, 3), {"pads": (1, 1, -1, 1)}, "pads .* at least 0"),
    ],
)
def test_conv_errors(x, w, attributes, message):
    with pytest.raises(GraphError, match=message):
        infer_op("Conv", [typed(*x), typed(*w)], **attributes)


def test_conv_bias_must_fit_the_output_channels():
    with pytest.raises(GraphError, match=r"bias .*output channel.*\[4\]"):
        infer_op("Conv", [typed(1, 3, 8, 8), typed(4, 3, 3, 3), typed(3)])


# **** ConvTranspose ****


def naive_conv_transpose(x, w, group, strides, dilations, pads, sizes):
    """Add a scaled kernel for every input element; ``sizes`` is the size of the output without its padding."""
    outputs, inputs = w.shape[1], x.shape[1] // group
    y = np.zeros((x.shape[0], outputs * group, *sizes))
    for n, c, h, v in np.ndindex(*x.shape):
        for m, i, j in np.ndindex(*w.shape[1:]):
            row = h * strides[0] + i * dilations[0] - pads[0]
            column = v * strides[1] + j * dilations[1] - pads[1]
            if 0 <= row < sizes[0] and 0 <= column < sizes[1]:
                y[n, c // inputs * outputs + m, row, column] += float(x[n, c, h, v]) * float(w[c, m, i, j])
    return y


@pytest.mark.parametrize(
    ("channels", "outputs", "kernel", "group", "attributes", "begin", "sizes"),
    [
        (4, 3, (2, 4), 2, {"strides": (2, 3), "pads": (1, 0, 0, 2)}, (1, 0), (7, 14)),
        (
            4,
            1,
            (3, 3),
            4,
            {"strides": (2, 2), "pads": (1, 1, 1, 1), "output_padding": (1, 0)},
            (1, 1),
            (8, 9),
        ),
        (2, 2, (3, 2), 1, {"dilations": (2, 3), "strides": (1, 2)}, (0, 0), (8, 12)),
        (2, 2, (3, 3), 1, {"strides": (2, 2), "output_shape": (7, 10)}, (1, 1), (7, 10)),
        (
            2,
            2,
            (3, 3),
            1,
            {"strides": (2, 2), "output_shape": (8, 10), "auto_pad": "SAME_UPPER"},
            (0, 0),
            (8, 10),
        ),
        (2, 2, (3, 3), 1, {"strides": (2, 2), "output_shape": (8, 10)}, (1, 1), (8, 10)),
        (2, 2, (3, 3), 1, {"strides": (2, 2), "output_shape": (12, 13)}, (0, 0), (12, 13)),
        (2, 2, (3, 3), 1, {"strides": (2, 2), "auto_pad": "SAME_LOWER"}, (1, 1), (8, 10)),
        (2, 2, (1, 1), 1, {"strides": (3, 2), "auto_pad": "SAME_UPPER"}, (0, 0), (12, 10)),
        (2, 2, (3, 3), 1, {"auto_pad": "VALID"}, (0, 0), (6, 7)),
    ],
)
def test_conv_transpose_equals_its_definition(channels, outputs, kernel, group, attributes, begin, sizes):
    x, w, b = normal(2, channels, 4, 5), normal(channels, outputs, *kernel), normal(outputs * group)
    result = run_op("ConvTranspose", [x, w, b], group=group, **attributes)[0]
    strides, dilations = attributes.get("strides", (1, 1)), attributes.get("dilations", (1, 1))
    expected = naive_conv_transpose(x, w, group, strides, dilations, begin, sizes) + b[:, None, None]
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5)


def test_conv_transpose_of_an_empty_batch():
    (result,) = run_op("ConvTranspose", [normal(0, 2, 4, 4), normal(2, 3, 2, 2)], strides=(2, 2))
    assert result.shape == (0, 3, 8, 8)


def test_conv_transpose_symbolic_shapes():
    x, w = typed("n", 8, "h", "w"), typed(8, 2, 4, 4)
    attributes = {"group": 4, "strides": (2, 2), "pads": (1, 1, 1, 1)}
    assert infer_op("ConvTranspose", [x, w], **attributes) == ["float32[n, 8, 2*h, 2*w]"]
    same = {"strides": (3, 1), "auto_pad": "SAME_UPPER"}
    assert infer_op("ConvTranspose", [x, w], **same) == ["float32[n, 2, 3*h, w]"]
    assert infer_op("ConvTranspose", [x, w], output_shape=(9, 10)) == ["float32[n, 2, 9, 10]"]


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"output_shape": (9,)}, "output_shape .* 2 spatial axes"),
        ({"output_padding": (0, -1)}, "output_padding .* at least 0"),
        ({"pads": (9, 0, 9, 0)}, "pads 9 and 9 .*10 elements.* axis 0"),
        ({"group": 3}, "group 3 .*8 channels"),
        ({"group": 0}, "group .*at least 1"),
    ],
)
def test_conv_transpose_errors(attributes, message):
    with pytest.raises(GraphError, match=message):
        infer_op("ConvTranspose", [typed(1, 8, 8, 8), typed(8, 2, 3, 3)], **attributes)


def test_conv_transpose_channels_must_match():
    with pytest.raises(GraphError, match=r"3 channels.*\[8, 2, 3, 3\].* 8"):
        infer_op("ConvTranspose", [typed(1, 3, 8, 8), typed(8, 2, 3, 3)])


# **** DeformConv ****


def test_deform_conv_without_offsets_is_conv():
    x, w, b = normal(2, 4, 6, 7), normal(6, 2, 3, 2), normal(6)
    attributes = {"group": 2, "strides": (2, 1), "pads": (1, 0, 2, 1), "dilations": (1, 2)}
    plain = run_op("Conv", [x, w, b], **attributes)[0]
    offset = np.zeros((2, 2 * 6 * 2, *plain.shape[2:]), np.float32)
    result = run_op("DeformConv", [x, w, offset, b], offset_group=2, **attributes)[0]
    np.testing.assert_allclose(result, plain, rtol=1e-5, atol=1e-5)
    halved = run_op("DeformConv", [x, w, offset, None, np.full((2, 12, *plain.shape[2:]), 0.5, np.float32)],
                    offset_group=2, **attributes)[0]  # fmt: skip
    np.testing.assert_allclose(halved, (plain - b[:, None, None]) / 2, rtol=1e-5, atol=1e-5)


def test_deform_conv_interpolates_and_reads_zero_outside():
    x = np.arange(4, dtype=np.float32).reshape(1, 1, 4) + 1
    w = np.ones((1, 1, 1), np.float32)
    offset = np.array([[[0.5, -0.25, 1.5, 9]]], np.float32)
    # at 0.5, 0.75, 3.5 (half of it outside), 12
    np.testing.assert_allclose(run_op("DeformConv", [x, w, offset])[0], [[[1.5, 1.75, 2, 0]]])


def test_deform_conv_of_three_axes():
    x, w = normal(1, 2, 4, 4, 4), normal(3, 2, 2, 2, 2)
    result = run_op("DeformConv", [x, w, np.zeros((1, 24, 3, 3, 3), np.float32)])[0]
    np.testing.assert_allclose(result, run_op("Conv", [x, w])[0], rtol=1e-5, atol=1e-5)


def test_deform_conv_errors():
    x, w = typed(1, 4, 6, 6), typed(3, 4, 3, 3)
    with pytest.raises(GraphError, match=r"offset .*\[1, 18, 4, 4\].*\[1, 9, 4, 4\]"):
        infer_op("DeformConv", [x, w, typed(1, 9, 4, 4)])
    with pytest.raises(GraphError, match="offset_group 3 "):
        infer_op("DeformConv", [x, w, typed(1, 54, 4, 4)], offset_group=3)
    with pytest.raises(GraphError, match=r"mask .*\[1, 9, 4, 4\]"):
        infer_op("DeformConv", [x, w, typed(1, 18, 4, 4), None, typed(1, 18, 4, 4)])


# **** integers ****


def integers(*shape, dtype):
    limits = np.iinfo(dtype)
    return RANDOM.integers(limits.min, limits.max + 1, shape).astype(dtype)


@pytest.mark.parametrize("group", [1, 2, 4])
def test_conv_integer_is_exact(group):
    x, w = integers(1, 4, 5, 5, dtype=np.uint8), integers(4, 4 // group, 3, 3, dtype=np.int8)
    x_zero, w_zero = np.uint8(120), integers(4, dtype=np.int8)
    pads = (1, 1, 1, 1)
    result = run_op("ConvInteger", [x, w, np.asarray(x_zero), w_zero], group=group, pads=pads)[0]
    shifted = w.astype(int) - w_zero.astype(int)[:, None, None, None]
    expected = naive_conv(x.astype(int) - 120, shifted, group, (1, 1), (1, 1), pads)
    np.testing.assert_array_equal(result, expected)
    assert result.dtype == np.int32


def test_conv_integer_sums_wrap_around():
    x, w = np.full((1, 40000, 1), 255, np.uint8), np.full((1, 40000, 1), 255, np.uint8)
    assert run_op("ConvInteger", [x, w])[0].item() == 40000 * 255 * 255 - 2**32


def test_qlinear_conv_rounds_to_even_and_saturates():
    x = np.array([[[1, 2, 3, 5, 200]]], np.uint8)
    w = np.array([[[1]], [[-1]]], np.int8)
    scale = np.float32(1)
    result = run_op(
        "QLinearConv",
        [x, np.asarray(scale), np.asarray(np.uint8(0)), w, np.array([0.5, 0.5], np.float32),
         np.zeros(2, np.int8),
         np.asarray(scale), np.asarray(np.int8(10)), np.array([0, 2], np.int32)],
    )[0]  # fmt: skip
    assert result.dtype == np.int8
    np.testing.assert_array_equal(result, [[[10, 11, 12, 12, 110], [10, 10, 10, 8, -89]]])


def test_quantization_parameters_must_fit():
    x, w = typed(1, 4, 5, 5, dtype="uint8"), typed(6, 4, 3, 3, dtype="uint8")
    with pytest.raises(GraphError, match=r"w_zero_point .*output channel.*\[6\]"):
        infer_op("ConvInteger", [x, w, None, typed(4, dtype="uint8")])
    with pytest.raises(GraphError, match=r"x_zero_point .*scalar.*\[4\]"):
        infer_op("ConvInteger", [x, w, typed(4, dtype="uint8")])
