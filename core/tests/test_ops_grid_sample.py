"""GridSample, compared with its definition point by point, and AffineGrid."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from lite_core import ops
from lite_core.builder import GraphBuilder
from lite_core.errors import GraphError
from lite_core.ops.evaluate import evaluate_op


def run(name, *inputs, **attributes):
    definition = ops.find(name)
    filled = {k: attributes.get(k, spec.default) for k, spec in definition.attributes.items()}
    return evaluate_op(definition, inputs, filled)[0]


def reflect(x, low, high):
    if low == high:
        return 0.0
    while not low <= x <= high:
        x = 2 * low - x if x < low else 2 * high - x
    return x


def sample(image, point, mode, padding_mode, align_corners):
    """Compute one output element: ``image`` [D1, .., Dr] at ``point`` [r]."""
    taps_of_axes = []
    for size, g in zip(image.shape, point[::-1]):
        x = (g + 1) / 2 * (size - 1) if align_corners else ((g + 1) * size - 1) / 2
        low, high = (0, size - 1) if align_corners else (-0.5, size - 0.5)
        x = float(np.rint(x)) if mode == "nearest" else x
        if not low <= x <= high:
            if padding_mode == "border":
                x = min(max(x, 0), size - 1)
            elif padding_mode == "reflection":
                x = reflect(x, low, high)
        taps = []
        base = math.floor(x)
        t, a = x - base, -0.75
        if mode == "nearest":
            weights = {int(np.rint(x)): 1.0}
        elif mode == "linear":
            weights = {base: 1 - t, base + 1: t}
        else:
            weights = {
                base - 1: a * (t + 1) ** 3 - 5 * a * (t + 1) ** 2 + 8 * a * (t + 1) - 4 * a,
                base: (a + 2) * t**3 - (a + 3) * t**2 + 1,
                base + 1: (a + 2) * (1 - t) ** 3 - (a + 3) * (1 - t) ** 2 + 1,
                base + 2: a * (2 - t) ** 3 - 5 * a * (2 - t) ** 2 + 8 * a * (2 - t) - 4 * a,
            }
        for index, weight in weights.items():
            if padding_mode == "border":
                index = min(max(index, 0), size - 1)
            elif padding_mode == "reflection":
                index = int(reflect(index, low, high))
            taps.append((index, weight))
        taps_of_axes.append(taps)
    total = 0.0
    for corner in itertools.product(*taps_of_axes):
        indices = tuple(i for i, _ in corner)
        if all(0 <= i < n for i, n in zip(indices, image.shape)):
            total += image[indices] * math.prod(w for _, w in corner)
    return total


@pytest.mark.parametrize("align_corners", [0, 1])
@pytest.mark.parametrize("padding_mode", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["linear", "nearest", "cubic"])
@pytest.mark.parametrize("spatial", [(5,), (1, 6), (2, 3, 4)])
def test_every_mode_equals_its_definition(spatial, mode, padding_mode, align_corners):
    random = np.random.default_rng(len(spatial))
    x = random.random((2, 2, *spatial))
    grid = random.uniform(-2.5, 2.5, (2, *(3,) * len(spatial), len(spatial)))
    result = run("GridSample", x, grid, mode=mode, padding_mode=padding_mode, align_corners=align_corners)
    assert result.shape == (2, 2, *grid.shape[1:-1])
    for n, c, *position in np.ndindex(*result.shape):
        expected = sample(x[n, c], grid[(n, *position)], mode, padding_mode, align_corners)
        np.testing.assert_allclose(result[(n, c, *position)], expected, atol=1e-12)


@pytest.mark.parametrize("padding_mode", ["zeros", "border", "reflection"])
def test_non_finite_coordinates_are_outside(padding_mode):
    grid = np.array([np.nan, np.inf, -np.inf, 1e30], dtype=np.float32).reshape(1, 4, 1)
    result = run("GridSample", np.ones((1, 1, 3), np.float32), grid, padding_mode=padding_mode)
    assert result.reshape(-1).tolist() == [0.0 if padding_mode == "zeros" else 1.0] * 4


@pytest.mark.parametrize("dtype", [np.uint8, np.int64])
def test_integer_element_types_are_kept(dtype):
    x = np.arange(4).reshape(1, 1, 2, 2).astype(dtype)
    grid = np.array([[[[-1, -1], [1, 1]]]], dtype=np.float32)
    for mode in ("linear", "nearest", "cubic"):
        result = run("GridSample", x, grid, mode=mode, align_corners=1)
        assert result.dtype == dtype
        assert result.astype(float).tolist() == [[[[0, 3]]]]


def test_an_empty_grid_and_an_empty_batch():
    assert run("GridSample", np.ones((2, 3, 4, 4)), np.ones((2, 0, 5, 2))).shape == (2, 3, 0, 5)
    assert run("GridSample", np.ones((0, 3, 4, 4)), np.ones((0, 2, 5, 2))).shape == (0, 3, 2, 5)


def test_symbolic_shapes():
    b = GraphBuilder()
    x, grid = b.input("x", "float32", ["n", 8, "h", "w"]), b.input("grid", "float32", [2, "p", "q", 2])
    assert [str(d) for d in b.add("GridSample", [x, grid]).type.shape] == ["2", "8", "p", "q"]
    theta = b.input("theta", "float32", ["n", 2, 3])
    made = b.add("AffineGrid", [theta, b.add("Shape", [x])])
    assert [str(d) for d in made.type.shape] == ["n", "h", "w", "2"]
    assert len(b.add("AffineGrid", [theta, b.input("size", "int64", [4])]).type.shape) == 4


@pytest.mark.parametrize("align_corners", [0, 1])
def test_the_identity_transformation_samples_the_image_itself(align_corners):
    x = np.random.default_rng(0).random((1, 2, 3, 4, 5))
    theta = np.eye(3, 4)[np.newaxis]
    grid = run("AffineGrid", theta, np.array(x.shape), align_corners=align_corners)
    np.testing.assert_allclose(run("GridSample", x, grid, align_corners=align_corners), x, atol=1e-12)


def test_affine_grid_of_one_element_is_at_the_centre():
    theta = np.array([[[2, 0, 0.5], [0, 3, -0.5]]], dtype=np.float32)
    for align_corners in (0, 1):
        grid = run("AffineGrid", theta, np.array([1, 1, 1, 1]), align_corners=align_corners)
        assert grid.tolist() == [[[[0.5, -0.5]]]]


@pytest.mark.parametrize(
    ("name", "inputs", "attributes", "message"),
    [
        ("GridSample", [np.ones((1, 1, 4, 4)), np.ones((1, 2, 2, 3))], {}, r"grid .*\[1, .., .., 2\]"),
        ("GridSample", [np.ones((1, 1, 0, 4)), np.ones((1, 2, 2, 2))], {}, "no elements to sample"),
        ("GridSample", [np.ones((1, 1)), np.ones((1, 2))], {}, "X .*rank 3"),
        ("GridSample", [np.ones((1, 1, 4), bool), np.ones((1, 2, 1))], {}, "bool.*nearest"),
        ("AffineGrid", [np.ones((1, 2, 2)), np.array([1, 1, 2, 2])], {}, "theta "),
        ("AffineGrid", [np.ones((1, 2, 3)), np.array([1, 1, 2, 2, 2])], {}, "size .*theta"),
        ("AffineGrid", [np.ones((1, 2, 3)), np.array([2, 1, 2, 2])], {}, "theta has batch 1"),
    ],
)  # fmt: skip
def test_errors_name_values_and_shapes(name, inputs, attributes, message):
    with pytest.raises(GraphError, match=message):
        run(name, *inputs, **attributes)
