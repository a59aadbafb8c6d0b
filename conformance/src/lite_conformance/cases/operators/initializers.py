"""Initializers that operator families share, beyond those of ``tensors``: ties, neighbours, special numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from lite_conformance.cases.tensors import Array, Initializer, as_type, largest_finite, normal
from lite_conformance.judge.tolerances import epsilon, smallest_normal
from lite_core.ir import DType

__all__ = ["few", "full_range", "grid", "half_range", "neighbours", "nonzero", "specials", "with_elements", "within"]


def few(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    """Return five different numbers around zero (two booleans): many elements of two such tensors are equal."""
    if dtype is DType.BOOL:
        return normal(random, shape, dtype)
    return as_type(random.integers(-2 if dtype.is_signed else 0, 3 if dtype.is_signed else 5, shape), dtype)


def grid(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    """Return multiples of 1/4 from -8 to 8, whose sums, products and quotients are exact or far from rounding ties."""
    if not dtype.is_floating:
        return normal(random, shape, dtype)
    return as_type(random.integers(-32, 33, shape) / 4, dtype)


def nonzero(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    """Return divisors: multiples of 1/4 from 1/2 to 4 (integers from 1 to 4), and their negatives in signed types."""
    sizes = random.integers(2, 17, shape) / 4 if dtype.is_floating else random.integers(1, 5, shape)
    return as_type(sizes * (random.choice([-1, 1], shape) if dtype.is_signed else 1), dtype)


def neighbours(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    """Return the four largest integers, or 1 and the next three floats: conversion to a narrower type merges them."""
    if dtype is DType.BOOL:
        return normal(random, shape, dtype)
    steps = random.integers(0, 4, shape)
    if dtype.is_floating:
        return as_type(1 + steps * epsilon(dtype), dtype)
    return np.asarray(np.iinfo(dtype.numpy).max - steps.astype(dtype.numpy)).astype(dtype.numpy)


def full_range(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    """Return integers of the whole range, except the smallest of signed types, whose negation does not fit."""
    most = np.iinfo(dtype.numpy).max
    lowest = -most if dtype.is_signed else 0
    return np.asarray(random.integers(lowest, most, shape, dtype=dtype.numpy, endpoint=True))


def half_range(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    """Return integers up to half the largest in magnitude: the sum of two fits and may use every bit of the type."""
    return np.asarray(full_range(random, shape, dtype) // dtype.numpy.type(2))


def specials(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    """Return NaN, infinities, zeros, extremes and ordinary numbers in a fixed order: a column and a row form all pairs.

    There are 11 in floating types and 5 in integer types.
    """
    if dtype is DType.BOOL:
        chosen: list[Any] = [False, True]
    elif dtype.is_floating:
        least, largest = smallest_normal(dtype), largest_finite(dtype)
        chosen = [np.nan, np.inf, -np.inf, 0.0, -0.0, largest, -largest, least, -least, 1.0, -1.5]
    else:
        info = np.iinfo(dtype.numpy)
        chosen = [info.min, info.max, 0, 1, info.max - 1]
    return np.resize(np.array(chosen, dtype.numpy), shape)


def with_elements(*elements: float, among: Initializer = normal) -> Initializer:
    """Return an initializer that puts each of these elements, repeatedly, at random positions among others."""

    def initialize(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
        flat = among(random, shape, dtype).reshape(-1)
        positions = random.permutation(flat.size)[: (flat.size + 1) // 2]
        for number, position in enumerate(positions):
            flat[position] = elements[number % len(elements)]
        return flat.reshape(shape)

    return initialize


def within(low: float, high: float, half: float) -> Initializer:
    """Return an initializer of uniform numbers from ``low`` to ``high``; of half types within ``-half`` to ``half``."""

    def initialize(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
        ends = (max(low, -half), min(high, half)) if dtype.is_half else (low, high)
        return as_type(random.uniform(*ends, shape), dtype)

    return initialize
