"""Resize with a fused tail, and cubic samples near the edges of images."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from moving import agree, lowered
from opencl_device import run
from tiers import in_part

from lite_core.builder import GraphBuilder
from lite_core.ir import Graph
from lite_core.ops.evaluate import evaluate_graph

Array = np.ndarray[Any, Any]

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
) -> Graph:
    """Return a Resize, followed by the addition of an image, a factor for each channel, and Relu."""
    b = GraphBuilder("resize")
    x = b.input("x", "float32", shape)
    numbers = [np.array(roi, np.float32), np.array(scales, np.float32), np.array(sizes, np.int64)]
    y = b.add("Resize", [x, *(b.constant(n) if n.size else None for n in numbers)], attributes)
    y = b.add("Add", [y, b.input("other", "float32", y.shape)])
    b.output(b.add("Relu", [b.add("Mul", [y, b.constant(normal(shape[1], 1, 1))])]), "y")
    return b.build()


def check(graph: Graph) -> None:
    arrays = [normal(*v.shape) for v in graph.inputs]
    np.testing.assert_allclose(run(graph, arrays)[0], evaluate_graph(graph, arrays)[0], rtol=0, atol=3e-6)


@pytest.mark.parametrize("mode", in_part("opencl", ["nearest", "linear", "cubic"], ["linear"]))
def test_resize_with_element_wise_tail(mode: str) -> None:
    graph = resized((2, 3, 5, 6), {"mode": mode}, scales=(1, 1, 2, 2))
    assert "elementwise" not in lowered(graph)
    check(graph)


@pytest.mark.full("opencl")
def test_resize_with_many_taps_uses_a_pass_for_each_axis() -> None:
    check(resized((1, 5, 40, 30), {"mode": "linear", "antialias": 1}, scales=(1, 1, 0.1, 0.2)))


@pytest.mark.full("opencl")
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_resize_fills_beyond_crop_with_extrapolation_value(mode: str) -> None:
    attributes = {"mode": mode, "coordinate_transformation_mode": "tf_crop_and_resize", "extrapolation_value": 7.5}
    check(resized((1, 2, 6, 5), attributes, sizes=(1, 2, 4, 9), roi=(0, 0, -0.25, 0.3, 1, 1, 0.75, 1.4)))


def test_element_wise_tail_is_fused_into_resize() -> None:
    graph = resized((1, 8, 4, 4), {"mode": "nearest"}, scales=(1, 1, 2, 2))
    assert lowered(graph) == ["gather_axes"]


@pytest.mark.full("opencl")
@pytest.mark.parametrize(("padding", "align"), [("zeros", 0), ("border", 1), ("reflection", 0), ("reflection", 1)])
def test_cubic_samples_outside_of_images(padding: str, align: int) -> None:
    attributes = {"mode": "cubic", "padding_mode": padding, "align_corners": align}
    for spatial, points in (((5, 6), (3, 4)), ((7,), (9,)), ((2, 3, 4), (2, 2, 3))):
        grid = (1.5 * RANDOM.standard_normal((2, *points, len(spatial)))).astype(np.float32)
        agree("GridSample", [normal(2, 3, *spatial), grid], attributes, tolerance=5e-5)
