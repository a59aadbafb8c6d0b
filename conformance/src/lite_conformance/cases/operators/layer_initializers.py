"""Initializers that the families of layers (convolutions, products, pools, normalisations) share."""

from __future__ import annotations

import numpy as np

from lite_conformance.cases.tensors import Array, Initializer, normal, uniform
from lite_core.ir import DType

__all__ = ["all_integers", "multiples_of", "negative", "small", "unbounded", "with_nan", "zeros"]

#: Negative numbers: zeros of padding then show in a maximum.
negative: Initializer = uniform(-4, -1)


def zeros(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    """Return zeros, for denominators that only an epsilon keeps from zero."""
    return np.zeros(shape, dtype.numpy)


def small(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    """Return standard normal numbers; integers are so small that sums of a few products fit into eight bits."""
    if not dtype.is_integer:
        return normal(random, shape, dtype)
    return np.asarray(random.integers(-1 if dtype.is_signed else 0, 3, shape)).astype(dtype.numpy)


def all_integers(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    """Return integers of the whole range, a quarter of them extremes: sums of products exceed 16 bits."""
    info = np.iinfo(dtype.numpy)
    anything = random.integers(info.min, info.max, shape, endpoint=True)
    extreme = random.choice([info.min, info.max], shape)
    return np.where(random.integers(0, 4, shape) == 0, extreme, anything).astype(dtype.numpy)


def unbounded(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    """Return standard normal numbers with a NaN and both infinities; sums in any order give the same special result."""
    array = normal(random, shape, dtype).reshape(-1)
    positions = random.permutation(array.size)[:3]
    array[positions] = np.array([np.nan, np.inf, -np.inf][: positions.size]).astype(dtype.numpy)
    return array.reshape(shape)


def with_nan(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    """Return standard normal numbers with one NaN, which must appear in exactly the sums that include it."""
    array = normal(random, shape, dtype).reshape(-1)
    array[random.permutation(array.size)[:1]] = np.array(np.nan, dtype.numpy)
    return array.reshape(shape)


def with_infinity(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    """Return standard normal numbers with one infinity."""
    array = normal(random, shape, dtype).reshape(-1)
    array[random.permutation(array.size)[:1]] = np.array(np.inf, dtype.numpy)
    return array.reshape(shape)


def multiples_of(step: int, count: int) -> Initializer:
    """Return an initializer of random numbers among ``0, step, 2 * step, ...``, the first ``count`` of them."""

    def initialize(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
        return np.asarray(random.integers(0, count, shape) * step).astype(dtype.numpy)

    return initialize
