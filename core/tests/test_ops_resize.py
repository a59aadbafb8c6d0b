"""The operator Resize."""

from __future__ import annotations

import numpy as np
import pytest

from lite_core import ops
from lite_core.builder import GraphBuilder
from lite_core.errors import GraphError
from lite_core.ops.evaluate import evaluate_op

RESIZE = ops.find("Resize")


def resize(x, *, roi=None, scales=None, sizes=None, **attributes):
    filled = {k: attributes.get(k, spec.default) for k, spec in RESIZE.attributes.items()}
    roi = None if roi is None else np.array(roi, dtype=np.float32)
    scales = None if scales is None else np.array(scales, dtype=np.float32)
    return evaluate_op(RESIZE, [x, roi, scales, None if sizes is None else np.array(sizes)], filled)[0]


def inferred(shape, *, scales=None, sizes=None, **attributes):
    b = GraphBuilder()
    x = b.input("x", "float32", shape)
    scales = None if scales is None else b.constant(np.array(scales, dtype=np.float32))
    sizes = None if sizes is None else b.ints(*sizes)
    return [str(d) for d in b.add("Resize", [x, None, scales, sizes], attributes).type.shape]


# **** symbolic shapes ****


def test_scaled_symbolic_sizes():
    assert inferred(["n", 3, "h", "w"], scales=[1, 1, 2, 0.5]) == ["n", "3", "2*h", "w//2"]
    assert inferred(["n", 3, "h", "w"], scales=[1 / 3, 1.5], axes=(2, 3)) == ["n", "3", "h//3", "(3*w)//2"]


def test_symbolic_sizes_agree_with_real_ones():
    for scale in (1 / 3, 0.6, 0.7, 1.1, 1.2345678, 2.5, 7 / 3, 1 / 49):
        b = GraphBuilder()
        scales = b.constant(np.array([scale], dtype=np.float32))
        (dim,) = b.add("Resize", [b.input("x", "float32", ["h"]), None, scales]).type.shape
        for size in range(1, 200):
            assert dim.evaluate({"h": size}) == len(resize(np.zeros(size, np.float32), scales=[scale]))


def test_sizes_apply_to_the_given_axes():
    assert inferred(["n", "c", "h", "w"], sizes=[7, 9], axes=(-1, 2)) == ["n", "c", "9", "7"]
    kept = inferred(["n", 3, "h", 8], sizes=[4, 4], axes=(2, 3), keep_aspect_ratio_policy="not_larger")
    assert kept[:2] == ["n", "3"]
    assert "h" not in kept
    b = GraphBuilder()
    x, y = b.input("x", "float32", ["n", "h"]), b.input("y", "float32", ["p", "q"])
    assert [str(d) for d in b.add("Resize", [x, None, None, b.add("Shape", [y])]).type.shape] == ["p", "q"]
    assert len(b.add("Resize", [b.input("z", "float32", None), None, None, b.ints(1, 2)]).type.shape) == 2


# **** values ****


def test_scale_rounded_to_float32_gives_the_exact_size():
    assert len(resize(np.zeros(10, np.float32), scales=[0.7])) == 7
    assert len(resize(np.zeros(49, np.float32), scales=[1 / 49])) == 1


def test_nearest_mode_repeats_elements():
    x = np.random.default_rng(0).random((1, 2, 16, 10), dtype=np.float32)
    up = resize(x, scales=[1, 1, 2, 2], coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    np.testing.assert_array_equal(up, x.repeat(2, axis=2).repeat(2, axis=3))


@pytest.mark.parametrize("new", [1, 5, 20])
@pytest.mark.parametrize("transformation", ["half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel"])
def test_linear_mode_interpolates_between_clamped_neighbours(new, transformation):
    x = np.random.default_rng(new).random(9)
    i = np.arange(new)
    coordinates = {
        "half_pixel": (i + 0.5) * 9 / new - 0.5,
        "pytorch_half_pixel": (i + 0.5) * 9 / new - 0.5 if new > 1 else i,
        "align_corners": i * 8 / max(new - 1, 1),
        "asymmetric": i * 9 / new,
    }[transformation]
    result = resize(x, sizes=[new], mode="linear", coordinate_transformation_mode=transformation)
    np.testing.assert_allclose(result, np.interp(coordinates, np.arange(9), x), rtol=1e-12)


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("attributes", [{}, {"antialias": 1}, {"exclude_outside": 1}])
@pytest.mark.parametrize("new", [3, 21])
def test_constant_image_stays_constant(mode, attributes, new):
    for dtype in (np.float64, np.uint8, np.int64):
        result = resize(np.full((8, 8), 3, dtype), sizes=[new, 5], mode=mode, **attributes)
        np.testing.assert_allclose(result, np.full((new, 5), 3), rtol=1e-12)


def test_cubic_follows_a_straight_line():
    x = np.arange(20.0)
    result = resize(x, sizes=[40], mode="cubic", cubic_coeff_a=-0.5)
    coordinates = (np.arange(40) + 0.5) / 2 - 0.5
    np.testing.assert_allclose(result[4:-4], coordinates[4:-4], rtol=1e-12)


def test_axes_are_separable():
    x = np.random.default_rng(1).random((5, 6, 7))
    attributes = {"mode": "cubic", "antialias": 1}
    both = resize(x, sizes=[9, 3], axes=(0, 2), **attributes)
    one = resize(resize(x, sizes=[9], axes=(0,), **attributes), sizes=[3], axes=(2,), **attributes)
    np.testing.assert_allclose(both, one, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    ("nearest_mode", "expected"),
    [("round_prefer_floor", [0, 2]), ("round_prefer_ceil", [1, 3]), ("floor", [0, 2]), ("ceil", [1, 3])],
)
def test_nearest_modes_at_ties(nearest_mode, expected):
    assert resize(np.arange(4), scales=[0.5], nearest_mode=nearest_mode).tolist() == expected


def test_crop_and_resize_multiplies_the_cropped_size_by_the_scale():
    attributes = {"mode": "linear", "coordinate_transformation_mode": "tf_crop_and_resize"}
    assert resize(np.arange(1.0, 5.0), roi=[0, 0.5], scales=[2], **attributes).shape == (4,)


def test_empty_scales_count_as_left_out_and_sizes_may_be_zero():
    x = np.zeros((0, 4), dtype=np.float32)
    assert resize(x, scales=[], sizes=[0, 8]).shape == (0, 8)
    assert resize(x, scales=[2, 2], mode="cubic").shape == (0, 8)
    assert resize(np.ones((2, 4), np.float32), sizes=[0, 8], mode="linear", antialias=1).shape == (0, 8)


def test_integers_stay_within_their_range():
    x = np.array([0, 0, 255, 255, 0, 0], dtype=np.uint8)
    result = resize(x, scales=[3], mode="cubic")
    assert result.max() == 255
    assert result.min() == 0
    big = np.array([2**63 - 1, -(2**63)])
    np.testing.assert_array_equal(resize(big, scales=[2]), big.repeat(2))


# **** errors ****


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "neither"),
        ({"scales": [2, 2], "sizes": [4, 4]}, "not both"),
        ({"scales": [2]}, "scales .*2 entries.* 1"),
        ({"scales": [2, 0]}, r"scales .*positive.*\[2.0, 0.0\]"),
        ({"scales": [2, np.nan]}, "finite"),
        ({"sizes": [4], "axes": (2,)}, "axis 2 "),
        ({"sizes": [4, 4], "axes": (0, -2)}, "axes .*twice"),
        ({"sizes": [4, -4]}, "sizes .*negative"),
        ({"sizes": [4, 4], "coordinate_transformation_mode": "tf_crop_and_resize"}, "tf_crop_and_resize.* roi"),
    ],
)
def test_errors_name_values_and_shapes(arguments, message):
    with pytest.raises(GraphError, match=message):
        resize(np.zeros((2, 2), dtype=np.float32), **arguments)


def test_errors_of_empty_axes_and_bool():
    with pytest.raises(GraphError, match=r"axis 0 .* 2"):
        resize(np.zeros((0, 2), dtype=np.float32), sizes=[2, 2])
    with pytest.raises(GraphError, match=r"bool.*nearest"):
        resize(np.zeros(2, dtype=bool), sizes=[4], mode="linear")
