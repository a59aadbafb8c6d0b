"""Tests of strided tensors against NumPy's views of real memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lite_compiler.tensors import StridedTensor, collapse, dense_strides, memory_order, split_dimensions
from lite_core.ir import DType

Array = np.ndarray[Any, Any]
Tensor = StridedTensor[str]

#: The memory that tensors are views of; the value of each element is its index.
_MEMORY = np.arange(4000)


def elements(tensor: Tensor) -> Array:
    """Return the elements of a tensor."""
    strides = [8 * s for s in tensor.strides]
    return np.lib.stride_tricks.as_strided(_MEMORY[tensor.offset :], tensor.shape, strides)


def dense(*shape: int, offset: int = 0) -> Tensor:
    return StridedTensor("memory", DType.INT64, shape, dense_strides(shape), offset)


@st.composite
def tensors(draw: st.DrawFn) -> Tensor:
    """Draw a view of a dense tensor: permuted, sliced, possibly reversed or with repeated elements."""
    shape = draw(st.lists(st.integers(1, 5), min_size=0, max_size=4))
    tensor = dense(*shape, offset=100)
    tensor = tensor.permute(draw(st.permutations(range(len(shape)))))
    for axis, size in enumerate(tensor.shape):
        view = draw(st.sampled_from(["whole", "sliced", "reversed", "repeated"]))
        if view == "sliced":
            first = draw(st.integers(0, size - 1))
            tensor = tensor.slice(axis, first, draw(st.integers(0, size - first)))
        elif view == "reversed":
            tensor = tensor.slice(axis, size - 1, size, -1)
        elif view == "repeated":
            tensor = tensor.slice(axis, 0, 1)
            tensor = tensor.expand([*tensor.shape[:axis], 3, *tensor.shape[axis + 1 :]])
    return tensor


@given(tensors())
def test_properties(tensor: Tensor) -> None:
    array = elements(tensor)
    assert (tensor.rank, tensor.size, tensor.bytes) == (array.ndim, array.size, array.nbytes)
    assert tensor.distinct_bytes == 8 * len(np.unique(array))
    if array.size:  # strides of an empty tensor do not matter
        assert tensor.is_dense == array.flags.c_contiguous
    assert tensor.byte_offset == 8 * tensor.offset


@given(tensors(), st.data())
def test_permute(tensor: Tensor, data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(tensor.rank)))
    np.testing.assert_array_equal(elements(tensor.permute(order)), elements(tensor).transpose(order))


@given(tensors(), st.data())
def test_reshape_is_a_view_where_numpy_returns_one(tensor: Tensor, data: st.DataObject) -> None:
    """NumPy's result is a view if it shares memory; with fewer than two elements any strides are valid."""
    sizes = [n for n in tensor.shape if data.draw(st.booleans()) or n != 1]
    for _ in range(data.draw(st.integers(0, 2))):
        sizes.insert(data.draw(st.integers(0, len(sizes))), 1)
    if len(sizes) > 1 and data.draw(st.booleans()):
        i = data.draw(st.integers(0, len(sizes) - 2))
        sizes[i : i + 2] = [sizes[i] * sizes[i + 1]]
    for i, n in enumerate(sizes):
        if n == 4 and data.draw(st.booleans()):
            sizes[i : i + 1] = [2, 2]
            break
    array = elements(tensor)
    reshaped = array.reshape(sizes)
    view = tensor.reshape(sizes)
    if view is None:
        assert not np.shares_memory(reshaped, _MEMORY)
    else:
        np.testing.assert_array_equal(elements(view), reshaped)
        assert view.storage is tensor.storage
    if array.size > 1 and np.shares_memory(reshaped, _MEMORY):
        assert view is not None


@pytest.mark.parametrize(
    ("shape", "wide"), [((3,), (2, 3)), ((2, 1, 3), (2, 4, 3)), ((), (2, 2)), ((1,), (0,)), ((2, 3), (2, 3))]
)
def test_expand(shape: tuple[int, ...], wide: tuple[int, ...]) -> None:
    np.testing.assert_array_equal(elements(dense(*shape).expand(wide)), np.broadcast_to(elements(dense(*shape)), wide))


def test_slice() -> None:
    tensor, array = dense(6, 5), elements(dense(6, 5))
    np.testing.assert_array_equal(elements(tensor.slice(0, 1, 3)), array[1:4])
    np.testing.assert_array_equal(elements(tensor.slice(1, 4, 3, -2)), array[:, ::-2])
    assert tensor.slice(0, 6, 0).offset == 0  # the offset of an empty slice is not beyond the end


def test_views_keep_the_class_of_the_tensor() -> None:
    class BackendTensor(StridedTensor[str]):
        __slots__ = ()

    tensor = BackendTensor("memory", DType.FLOAT32, (2, 3), (3, 1))
    views = [tensor.permute((1, 0)), tensor.reshape((6,)), tensor.expand((4, 2, 3)), tensor.as_bits()]
    assert all(type(view) is BackendTensor for view in views)
    assert tensor.as_bits().dtype is DType.UINT32


def test_equal_views_have_equal_hashes() -> None:
    assert dense(2, 3) == dense(2, 3)
    assert len({dense(2, 3), dense(2, 3), dense(3, 2), dense(2, 3, offset=1)}) == 3


def test_occupies_same_memory() -> None:
    tensor = dense(2, 1, 3)
    # The stride of a dimension of size 1 does not matter.
    assert tensor.occupies_same_memory(tensor.view((2, 1, 3), (3, 77, 1)))
    assert not tensor.occupies_same_memory(tensor.view((2, 1, 3), (1, 3, 2)))
    assert not tensor.occupies_same_memory(dense(2, 1, 3, offset=1))
    assert not tensor.occupies_same_memory(StridedTensor("other", DType.INT64, (2, 1, 3), (3, 3, 1)))


def test_memory_order() -> None:
    assert dense_strides((2, 3, 4)) == (12, 4, 1)
    assert dense_strides((2, 3, 4), (0, 2, 1)) == (12, 1, 3)
    tensor = StridedTensor("memory", DType.INT8, (2, 3, 4), dense_strides((2, 3, 4), (2, 0, 1)))
    assert memory_order(tensor) == [2, 0, 1]


@given(tensors(), st.booleans())
def test_collapsed_loops_visit_the_same_elements(tensor: Tensor, by_memory: bool) -> None:
    other = dense(*tensor.shape, offset=7)
    order = memory_order(tensor) if by_memory else list(range(tensor.rank))
    sizes, strides = collapse([tensor, other], order)
    assert len(sizes) >= 1
    assert all(len(own) == len(sizes) for own in strides)
    for view, own in zip((tensor, other), strides):
        visited = elements(view.view(sizes, own)).ravel()
        np.testing.assert_array_equal(visited, elements(view).transpose(order).ravel())


def test_collapse_returns_the_fewest_loops() -> None:
    tensor = dense(2, 3, 4)
    assert collapse([tensor]) == ([24], [[1]])
    assert collapse([tensor, dense(4).expand((2, 3, 4))]) == ([6, 4], [[4, 1], [0, 1]])
    transposed = tensor.permute((2, 0, 1))
    assert collapse([transposed])[0] == [4, 6]
    assert collapse([transposed], memory_order(transposed))[0] == [24]
    assert collapse([dense(1, 1), dense(1, 1)]) == ([1], [[1], [0]])


def test_split_dimensions() -> None:
    tensor = dense(4, 6).permute((1, 0))
    split = split_dimensions(tensor, [(2, 3), (4,)])
    np.testing.assert_array_equal(elements(split), elements(tensor).reshape(2, 3, 4))
