"""Resize."""

from __future__ import annotations

import ml_dtypes
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


def test_sizes_replace_the_axes_they_name():
    assert inferred(["n", "c", "h", "w"], sizes=[7, 9], axes=(-1, 2)) == ["n", "c", "9", "7"]
    kept = inferred(["n", 3, "h", 8], sizes=[4, 4], axes=(2, 3), keep_aspect_ratio_policy="not_larger")
    assert kept[:2] == ["n", "3"]
    assert "h" not in kept
    b = GraphBuilder()
    x, y = b.input("x", "float32", ["n", "h"]), b.input("y", "float32", ["p", "q"])
    assert [str(d) for d in b.add("Resize", [x, None, None, b.add("Shape", [y])]).type.shape] == ["p", "q"]
    assert len(b.add("Resize", [b.input("z", "float32", None), None, None, b.ints(1, 2)]).type.shape) == 2


# **** values ****


def test_a_scale_that_was_rounded_to_float32_gives_the_whole_size():
    assert len(resize(np.zeros(10, np.float32), scales=[0.7])) == 7
    assert len(resize(np.zeros(49, np.float32), scales=[1 / 49])) == 1


def test_nearest_by_two_repeats():
    x = np.random.default_rng(0).random((1, 96, 160, 160), dtype=np.float32)
    up = resize(x, scales=[1, 1, 2, 2], coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    np.testing.assert_array_equal(up, x.repeat(2, axis=2).repeat(2, axis=3))


@pytest.mark.parametrize("new", [1, 2, 5, 9, 20])
@pytest.mark.parametrize("transformation", ["half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel"])
def test_linear_is_interpolation_between_the_clamped_neighbours(new, transformation):
    x = np.random.default_rng(new).random(9)
    i = np.arange(new)
    places = {
        "half_pixel": (i + 0.5) * 9 / new - 0.5,
        "pytorch_half_pixel": (i + 0.5) * 9 / new - 0.5 if new > 1 else i,
        "align_corners": i * 8 / max(new - 1, 1),
        "asymmetric": i * 9 / new,
    }[transformation]
    result = resize(x, sizes=[new], mode="linear", coordinate_transformation_mode=transformation)
    np.testing.assert_allclose(result, np.interp(places, np.arange(9), x), rtol=1e-12)


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("attributes", [{}, {"antialias": 1}, {"exclude_outside": 1}])
@pytest.mark.parametrize("new", [3, 8, 21])
def test_a_constant_stays_constant(mode, attributes, new):
    for dtype in (np.float64, np.uint8, np.int64):
        result = resize(np.full((8, 8), 3, dtype), sizes=[new, 5], mode=mode, **attributes)
        np.testing.assert_allclose(result, np.full((new, 5), 3), rtol=1e-12)


def test_cubic_follows_a_straight_line():
    x = np.arange(20.0)
    result = resize(x, sizes=[40], mode="cubic", cubic_coeff_a=-0.5)
    places = (np.arange(40) + 0.5) / 2 - 0.5
    np.testing.assert_allclose(result[4:-4], places[4:-4], rtol=1e-12)


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


@pytest.mark.parametrize(("policy", "expected"), [("not_larger", (4, 8)), ("not_smaller", (7, 14))])
def test_aspect_ratio_is_kept(policy, expected):
    x = np.zeros((10, 20), dtype=np.float32)
    assert resize(x, sizes=[7, 8], keep_aspect_ratio_policy=policy).shape == expected


def test_crop_and_resize_fills_what_lies_outside():
    x = np.arange(1.0, 5.0)
    attributes = {"mode": "linear", "coordinate_transformation_mode": "tf_crop_and_resize"}
    result = resize(x, roi=[-1 / 3, 1], sizes=[5], extrapolation_value=9.0, **attributes)
    np.testing.assert_allclose(result, [9, 1, 2, 3, 4], rtol=1e-6)
    assert resize(x, roi=[0, 0.5], scales=[2], **attributes).shape == (4,)


def test_empty_scales_count_as_left_out_and_zero_sizes_give_nothing():
    x = np.zeros((0, 4), dtype=np.float32)
    assert resize(x, scales=[], sizes=[0, 8]).shape == (0, 8)
    assert resize(x, scales=[2, 2], mode="cubic").shape == (0, 8)
    assert resize(np.ones((2, 4), np.float32), sizes=[0, 8], mode="linear", antialias=1).shape == (0, 8)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_half_types(dtype):
    result = resize(np.array([1, 3], dtype=dtype), scales=[2], mode="linear")
    assert result.dtype == dtype
    assert result.astype(float).tolist() == [1, 1.5, 2.5, 3]


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
        ({}, "neither is given"),
        ({"scales": [2, 2], "sizes": [4, 4]}, "not both"),
        ({"scales": [2]}, "scales must have 2 entries for 2 axes, has 1"),
        ({"scales": [2, 0]}, r"scales must be positive, are \[2.0, 0.0\]"),
        ({"scales": [2, np.nan]}, "must be finite"),
        ({"sizes": [4], "axes": (2,)}, "axis 2 is out of range"),
        ({"sizes": [4, 4], "axes": (0, -2)}, "name an axis twice"),
        ({"sizes": [4, -4]}, "negative entry"),
        ({"sizes": [4, 4], "coordinate_transformation_mode": "tf_crop_and_resize"}, "needs the input roi"),
    ],
)
def test_errors_say_what_is_wrong(arguments, message):
    with pytest.raises(GraphError, match=message):
        resize(np.zeros((2, 2), dtype=np.float32), **arguments)


def test_errors_of_empty_axes_and_bool():
    with pytest.raises(GraphError, match="axis 0 has no elements and cannot be resized to 2"):
        resize(np.zeros((0, 2), dtype=np.float32), sizes=[2, 2])
    with pytest.raises(GraphError, match="cannot interpolate bool; use nearest"):
        resize(np.zeros(2, dtype=bool), sizes=[4], mode="linear")
