"""Tests of the views of operators that only move elements, against their references."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lite_compiler.tensors import StridedTensor, dense_strides
from lite_compiler.views import (
    depth_to_space_views,
    even_spacing,
    gather_view,
    slice_view,
    space_to_depth_views,
    tile_view,
    transpose_order,
)
from lite_core.builder import GraphBuilder
from lite_core.ir import DType
from lite_core.ops.evaluate import evaluate_node

Array = np.ndarray[Any, Any]
Tensor = StridedTensor[str]


def dense(*shape: int) -> Tensor:
    return StridedTensor("memory", DType.INT64, shape, dense_strides(shape))


def elements(tensor: Tensor, memory: Array) -> Array:
    """Return the elements of a tensor whose storage is ``memory``."""
    strides = [memory.itemsize * s for s in tensor.strides]
    return np.lib.stride_tricks.as_strided(memory[tensor.offset :], tensor.shape, strides)


def numbered(tensor: Tensor) -> Array:
    """Return the elements of a tensor in memory where the value of each element is its index."""
    return elements(tensor, np.arange(tensor.offset + 10_000))


def reference(op: str, *inputs: Array, **attributes: Any) -> Array:
    b = GraphBuilder(op)
    values = [b.input(f"x{i}", str(x.dtype), x.shape) for i, x in enumerate(inputs)]
    b.output(b.add(op, values, attributes), "y")
    (node,) = b.build().nodes
    return evaluate_node(node, inputs)[0]


@pytest.mark.parametrize("perm", [None, (2, 0, 1), (-1, 0, 1)])
def test_transpose(perm: tuple[int, ...] | None) -> None:
    b = GraphBuilder("transpose")
    b.output(b.add("Transpose", [b.input("x", "int64", (2, 3, 4))], {} if perm is None else {"perm": perm}), "y")
    (node,) = b.build().nodes
    tensor = dense(2, 3, 4)
    expected = numbered(tensor).transpose(perm)
    np.testing.assert_array_equal(numbered(tensor.permute(transpose_order(node))), expected)


@pytest.mark.parametrize(
    ("starts", "ends", "axes", "steps"),
    [
        ([1, 0], [4, 9], None, None),
        ([-2], [99], [1], None),
        ([3, -1], [-99, -5], [0, -1], [-1, -2]),
        ([2], [2], [0], [1]),
    ],
)
def test_slice(starts: list[int], ends: list[int], axes: list[int] | None, steps: list[int] | None) -> None:
    tensor = dense(4, 5)
    given = [np.array(starts), np.array(ends), np.arange(len(starts)) if axes is None else np.array(axes)]
    expected = reference("Slice", numbered(tensor), *given, np.array(steps or [1] * len(starts)))
    np.testing.assert_array_equal(numbered(slice_view(tensor, expected.shape, starts, axes, steps)), expected)


@pytest.mark.parametrize("indices", [[1, 3, 5], [-1, -3], [[0, 1], [2, 3]], [4], 2, [0, 0]])
@pytest.mark.parametrize("axis", [0, 1])
def test_gather_of_evenly_spaced_indices_is_a_view(indices: Any, axis: int) -> None:
    tensor = dense(6, 6, 2)
    view = gather_view(tensor, axis, np.array(indices))
    assert view is not None
    np.testing.assert_array_equal(numbered(view), numbered(tensor).take(np.array(indices) % 6, axis))


@pytest.mark.parametrize("indices", [[0, 1, 3], [5, -6, 1], []])
def test_gather_of_other_indices_is_no_view(indices: list[int]) -> None:
    assert even_spacing(np.array(indices, np.int64), 6) is None
    assert gather_view(dense(6, 2), 0, np.array(indices, np.int64)) is None


def test_tile() -> None:
    tensor = dense(2, 3)
    expected = np.tile(numbered(tensor), (2, 4)).reshape(2, 2, 4, 3)
    np.testing.assert_array_equal(numbered(tile_view(tensor, (2, 4))), expected)


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
def test_depth_to_space(mode: str) -> None:
    source, target = dense(2, 12, 3, 5), dense(2, 3, 6, 10)
    memory = np.zeros(target.size, np.int64)
    copied_from, copied_to = depth_to_space_views(source, target, 2, mode)
    np.copyto(elements(copied_to, memory), numbered(copied_from))
    expected = reference("DepthToSpace", numbered(source), blocksize=2, mode=mode)
    np.testing.assert_array_equal(elements(target, memory), expected)


def test_space_to_depth() -> None:
    source, target = dense(2, 3, 6, 10), dense(2, 12, 3, 5)
    memory = np.zeros(target.size, np.int64)
    copied_from, copied_to = space_to_depth_views(source, target, 2)
    np.copyto(elements(copied_to, memory), numbered(copied_from))
    np.testing.assert_array_equal(elements(target, memory), reference("SpaceToDepth", numbered(source), blocksize=2))
