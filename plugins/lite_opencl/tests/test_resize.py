"""Resize by tables of neighbours, alone and with element-wise operators in the same step; sampling at any places."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from moving import agree, lowered
from opencl_device import run

from lite_core.builder import GraphBuilder
from lite_core.ir import Graph
from lite_core.ops.evaluate import evaluate_graph

Array = np.ndarray[Any, Any]

COORDINATES = ["half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel", "half_pixel_symmetric"]
RANDOM = np.random.default_rng(0)


def normal(*shape: int) -> Array:
    return RANDOM.standard_normal(shape).astype(np.float32)


def resized(
    shape: tuple[int, ...],
    attributes: dict[str, Any],
    *,
    scales: tuple[float, ...] = (),
    sizes: tuple[int, ...] = (),
    roi: tuple[float, ...] = (),
    tail: bool = False,
) -> Graph:
    """Resize, with ``tail`` followed by the addition of an image, a factor for each channel, and Relu."""
    b = GraphBuilder("resize")
    x = b.input("x", "float32", shape)
    numbers = [np.array(roi, np.float32), np.array(scales, np.float32), np.array(sizes, np.int64)]
    y = b.add("Resize", [x, *(b.constant(n) if n.size else None for n in numbers)], attributes)
    if tail:
        other = b.input("other", "float32", y.shape)
        y = b.add("Relu", [b.add("Mul", [b.add("Add", [y, other]), b.constant(normal(shape[1], 1, 1))])])
    b.output(y, "y")
    return b.build()


def check(graph: Graph) -> None:
    arrays = [normal(*v.shape) for v in graph.inputs]
    np.testing.assert_allclose(run(graph, arrays)[0], evaluate_graph(graph, arrays)[0], rtol=0, atol=3e-6)


@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_images(mode: str, coordinates: str) -> None:
    attributes = {"mode": mode, "coordinate_transformation_mode": coordinates}
    check(resized((2, 3, 5, 6), attributes, scales=(1, 1, 2, 2), tail=True))
    check(resized((2, 3, 5, 6), attributes, scales=(1, 1, 1.5, 0.5)))


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize(
    ("shape", "scales"),
    [
        ((2, 3, 9), (1, 1, 2)),
        ((2, 3, 4, 5, 6), (1, 1, 2, 1.5, 3)),
        ((7, 8), (2, 0.5)),
        ((2, 4, 5, 3), (1, 2, 3, 1)),
        ((0, 2, 3, 3), (1, 1, 2, 2)),
        ((1, 2, 3, 3), (1, 1, 1, 1)),
    ],
)
def test_any_axes(mode: str, shape: tuple[int, ...], scales: tuple[float, ...]) -> None:
    check(resized(shape, {"mode": mode}, scales=scales))


def test_many_neighbours_take_a_pass_for_each_axis() -> None:
    check(resized((1, 5, 40, 30), {"mode": "linear", "antialias": 1}, scales=(1, 1, 0.1, 0.2), tail=True))


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("policy", ["not_larger", "not_smaller"])
def test_a_kept_aspect_ratio(mode: str, policy: str) -> None:
    check(resized((1, 2, 5, 7), {"mode": mode, "keep_aspect_ratio_policy": policy, "axes": (2, 3)}, sizes=(9, 8)))


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_what_lies_beyond_a_crop_is_the_extrapolation_value(mode: str) -> None:
    attributes = {"mode": mode, "coordinate_transformation_mode": "tf_crop_and_resize", "extrapolation_value": 7.5}
    check(resized((1, 2, 6, 5), attributes, sizes=(1, 2, 4, 9), roi=(0, 0, -0.25, 0.3, 1, 1, 0.75, 1.4), tail=True))


def test_the_addition_after_an_enlargement_is_part_of_its_step() -> None:
    graph = resized((1, 8, 4, 4), {"mode": "nearest"}, scales=(1, 1, 2, 2), tail=True)
    assert lowered(graph) == ["pick"]


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("align", [0, 1])
def test_grid_sample(mode: str, padding: str, align: int) -> None:
    attributes = {"mode": mode, "padding_mode": padding, "align_corners": align}
    for spatial, points in (((5, 6), (3, 4)), ((7,), (9,)), ((2, 3, 4), (2, 2, 3))):
        grid = (1.5 * RANDOM.standard_normal((2, *points, len(spatial)))).astype(np.float32)
        agree("GridSample", [normal(2, 3, *spatial), grid], attributes, tolerance=5e-5)


@pytest.mark.parametrize("size", [(2, 1, 3, 4), (2, 5, 2, 3, 4)])
def test_affine_grid(size: tuple[int, ...]) -> None:
    rank = len(size) - 2
    for align in (0, 1):
        arrays = [normal(2, rank, rank + 1), np.array(size)]
        agree("AffineGrid", arrays, {"align_corners": align}, constants=1, tolerance=1e-5)


def test_col2im() -> None:
    attributes = {"strides": (2, 1), "pads": (1, 0, 1, 2), "dilations": (1, 2)}
    image, block = np.array([6, 7]), np.array([3, 2])
    agree("Col2Im", [normal(2, 12, 21), image, block], attributes, constants=2, tolerance=1e-6)


def test_yolo_box() -> None:
    for aware in (0, 1):
        x = normal(2, 3 * (7 + aware), 4, 5)
        attributes = {"anchors": (10, 13, 16, 30, 33, 23), "class_num": 2, "iou_aware": aware, "conf_thresh": 0.4}
        sizes = np.array([[64, 80], [100, 90]], np.int32)
        agree("lite.YoloBox", [x, sizes], attributes, outputs=2, tolerance=2e-3)
