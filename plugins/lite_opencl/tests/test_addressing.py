"""Index expressions in C, evaluated and compared with strides."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lite_core.ir import DType
from lite_opencl.addressing import Addressing, address
from lite_opencl.tensors import Storage, Tensor


def strided(shape: tuple[int, ...], strides: tuple[int, ...]) -> Tensor:
    return Tensor(Storage(0), DType.FLOAT32, shape, strides)


def evaluated(tensor: Tensor, split: int, row: int, column: int) -> int:
    """Evaluate the index expression in Python."""
    addressing, arguments = address(tensor, split)
    names = dict(zip(addressing.arguments("x"), map(int, arguments)), row=row, column=column)
    return int(eval(re.sub("/", "//", addressing.index("x")), {}, names))


@given(st.lists(st.tuples(st.integers(1, 4), st.sampled_from([0, 1, 3, 12, -2])), min_size=1, max_size=5), st.data())
def test_index_expression_matches_strides(dims: list[tuple[int, int]], data: st.DataObject) -> None:
    shape, strides = tuple(n for n, _ in dims), tuple(s for _, s in dims)
    split = data.draw(st.integers(0, len(dims)))
    tensor = strided(shape, strides)
    columns = int(np.prod(shape[split:]))
    for number, coordinate in enumerate(np.ndindex(*shape)):
        expected = sum(i * s for i, s in zip(coordinate, strides))
        assert evaluated(tensor, split, *divmod(number, columns)) == expected


@pytest.mark.parametrize(
    ("shape", "strides", "rows", "columns"),
    [
        ((2, 3, 4), (12, 4, 1), "s", "1"),  # dense: two numbers, one stride
        ((2, 3, 4), (0, 0, 0), "", ""),  # a scalar: nothing to compute
        ((1, 3, 4), (0, 1, 0), "1", ""),  # one number for each channel
        ((2, 3, 4), (0, 1, 0), "10", ""),  # the same for each image
    ],
)
def test_patterns_are_minimal(shape, strides, rows: str, columns: str) -> None:
    addressing, _ = address(strided(shape, strides), 2)
    assert addressing == Addressing(rows, columns)
