"""The memory order of quantized weights that Paddle's ``weight_quantize`` writes for the tensor cores of a GPU.

A weight [K, N] is multiplied from the right. Its numbers have 8 or 4 bits and an offset, so that they are unsigned. In
4 bits the first of two numbers is in the lower half of a byte. The order depends on the architecture, the attribute
``arch``: 80 stands for compute capability 8.0. It was found by quantizing weights of one set bit each with Paddle 3.3.1
on the CPU, which ``tests/test_weight_only.py`` repeats.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lite_paddle.lowering.unlowerable import Unlowerable

__all__ = ["stored_numbers"]

Array = np.ndarray[Any, Any]

#: Architectures that store the rows of the weight one after the other, and those that store columns.
_BY_ROWS, _BY_COLUMNS = frozenset({70}), frozenset({75, 80, 86, 89, 90, 100})
#: Numbers of a column that are stored before those of the next column.
_TILE = 64


def stored_numbers(content: Array, bits: int, arch: int) -> Array:
    """Return the numbers [N, K] of a weight as int8, from -128 or -8.

    Args:
        content: the stored tensor, [N, K] with 8 bits, [N / 2, K] with 4.
        bits: 8 or 4.
        arch: compute capability of the GPU, times 10.

    Raises:
        Unlowerable: The order for this architecture is not known, or the tensor does not have whole tiles.
    """
    if arch not in _BY_ROWS | _BY_COLUMNS:
        known = ", ".join(map(str, sorted(_BY_ROWS | _BY_COLUMNS)))
        raise Unlowerable(
            f"its attribute arch is {arch}, and the order of its weights is known for {known}",
            "quantize the model for one of these architectures",
        )
    depth, columns = content.shape[1], content.shape[0] * 8 // bits
    bytes_ = np.ascontiguousarray(content).view(np.uint8).reshape(-1)
    numbers = bytes_ if bits == 8 else np.stack([bytes_ & 15, bytes_ >> 4], -1).reshape(-1)
    signed = numbers.astype(np.int8) ^ np.int8(-128) if bits == 8 else numbers.astype(np.int8) - np.int8(8)
    if arch in _BY_ROWS:
        return np.ascontiguousarray(_from_rows(signed, bits).reshape(depth, columns).T)
    lanes = 16 // bits
    if depth % _TILE or columns % lanes:
        raise Unlowerable(
            f"its weight [{depth}, {columns}] in {bits} bits does not have tiles of {_TILE} rows and {lanes} columns"
        )
    return _from_columns(signed, columns, depth, lanes)


def _from_rows(numbers: Array, bits: int) -> Array:
    """Sort the numbers of each word of 32 bits, which has those at even positions first."""
    half = 16 // bits
    if len(numbers) % (2 * half):
        raise Unlowerable(f"its weight has {len(numbers)} numbers of {bits} bits, expected whole words of 32 bits")
    words: Array = numbers.reshape(-1, 2, half).swapaxes(1, 2)
    return words


def _from_columns(numbers: Array, columns: int, depth: int, lanes: int) -> Array:
    """Sort numbers stored by columns.

    Tiles of ``lanes`` columns follow one another. In every column, a group of ``8 * lanes`` numbers begins with the
    first of each eight, then come the second ones.
    """
    by_column = numbers.reshape(columns // lanes, depth // _TILE, lanes, _TILE).swapaxes(1, 2)
    groups: Array = by_column.reshape(columns, depth // (8 * lanes), 8, lanes).swapaxes(2, 3)
    return groups.reshape(columns, depth)
