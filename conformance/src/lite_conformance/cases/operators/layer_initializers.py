"""Kinds of numbers that the families of layers (convolutions, products, pools, normalisations) share."""

from __future__ import annotations

import numpy as np

from lite_conformance.cases.tensors import Array, Initializer, normal, uniform
from lite_core.ir import DType

__all__ = ["all_integers", "multiples_of", "negative", "small", "unbounded", "with_nan", "zeros"]

#: Below zero everywhere: padding with zeros shows in a maximum.
negative: Initializer = uniform(-4, -1)


def zeros(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    """Zeros: denominators that only an epsilon keeps away from zero."""
    return np.zeros(shape, dtype.numpy)


def small(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    """Standard normal; integers so small that sums of a few products of them fit into eight bits."""
    if not dtype.is_integer:
        return normal(random, shape, dtype)
    return np.asarray(random.integers(-1 if dtype.is_signed else 0, 3, shape)).astype(dtype.numpy)


def all_integers(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    """Integers from the whole range of the type, every fourth an extreme: sums of products leave 16 bits."""
    info = np.iinfo(dtype.numpy)
    anything = random.integers(info.min, info.max, shape, endpoint=True)
    extreme = random.choice([info.min, info.max], shape)
    return np.where(random.integers(0, 4, shape) == 0, extreme, anything).astype(dtype.numpy)


def unbounded(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    """Standard normal with a NaN and both infinities, which sums in any order treat alike."""
    array = normal(random, shape, dtype).reshape(-1)
    places = random.permutation(array.size)[:3]
    array[places] = np.array([np.nan, np.inf, -np.inf][: places.size]).astype(dtype.numpy)
    return array.reshape(shape)


def with_nan(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    """Standard normal with one NaN, which spreads over what it is summed with and no further."""
    array = normal(random, shape, dtype).reshape(-1)
    array[random.permutation(array.size)[:1]] = np.array(np.nan, dtype.numpy)
    return array.reshape(shape)


def multiples_of(step: int, count: int) -> Initializer:
    """``0, step, 2 * step, ..``, ``count`` different numbers, in random order and repeated."""

    def fill(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
        return np.asarray(random.integers(0, count, shape) * step).astype(dtype.numpy)

    return fill
