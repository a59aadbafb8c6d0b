"""Figures about the difference of two arrays that should be equal."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, sqrt
from typing import Any

import numpy as np

__all__ = ["Errors", "difference_picture", "error_histogram", "measure", "same_bits"]

Array = np.ndarray[Any, Any]

#: Elements that are measured at a time, so that temporary arrays stay small.
_BLOCK = 1 << 16
#: Relative errors are relative to at least this share of the root mean square.
_SMALL = 1e-3
#: Edges of the histogram: powers of ten of absolute differences, two to a decade.
_EDGES = tuple(0.5 * k for k in range(-24, 9))
_PICTURE = 64


@dataclass(frozen=True, slots=True)
class Errors:
    """The difference of an array b from an array a.

    Attributes:
        max_abs: greatest absolute difference of finite elements.
        mean_abs: mean absolute difference of finite elements.
        max_rel: greatest difference relative to ``|a|``, or to 0.001 times the root mean square of a where that is
            larger; None for empty arrays.
        max_ulp: greatest number of floating-point numbers between two elements, in b's element type; None for others.
        cosine: cosine similarity of the finite elements; None for integers, or if all elements of one are zero.
        relative: ``max_abs`` as a share of the largest finite ``|a|``; None if that is 0.
        nan_a, nan_b, inf_a, inf_b: numbers of elements that are NaN or infinite.
        different: number of elements that are not equal; NaN equals NaN.
        misplaced: number of elements that are NaN or infinite in one array and something else in the other.
        elements: number of elements.
        at: index of the greatest difference; of the first misplaced element, if there is one.
        value_a, value_b: the elements there.
    """

    max_abs: float
    mean_abs: float
    max_rel: float | None
    max_ulp: int | None
    cosine: float | None
    relative: float | None
    nan_a: int
    nan_b: int
    inf_a: int
    inf_b: int
    different: int
    misplaced: int
    elements: int
    at: tuple[int, ...]
    value_a: float
    value_b: float

    @property
    def is_equal(self) -> bool:
        """True if all elements are equal; NaN equals NaN."""
        return not self.different

    def as_dict(self) -> dict[str, Any]:
        """Return plain data; a number that is not finite is text."""
        data = {name: getattr(self, name) for name in self.__slots__}
        return {
            **data,
            "at": list(self.at),
            "value_a": plain_number(self.value_a),
            "value_b": plain_number(self.value_b),
        }


def plain_number(number: float) -> float | str:
    """Return a number as JSON can hold it: NaN and infinities as text."""
    return number if isfinite(number) else str(number)


def same_bits(a: Array, b: Array) -> bool:
    """Return True if two arrays have the same type, shape and bits."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype.kind in "OUS":
        return bool(np.array_equal(a, b))
    word = np.dtype(np.uint64 if a.nbytes % 8 == 0 else np.uint8)
    flat = [np.ascontiguousarray(side).reshape(-1).view(word) for side in (a, b)]
    return bool((flat[0] == flat[1]).all())


def measure(a: Array, b: Array) -> Errors:
    """Return the difference of b from a, two arrays of one shape.

    The arrays are read block by block: temporary memory is a few megabytes, whatever their size.

    Raises:
        ValueError: their shapes differ.
    """
    if a.shape != b.shape:
        raise ValueError(f"shapes {list(a.shape)} and {list(b.shape)} cannot be compared")
    # Elements are compared in the order in which they are in memory: reordering would take longest.
    order = sorted(range(a.ndim), key=lambda axis: -a.strides[axis]) if a.size > 1 else list(range(a.ndim))
    flat_a, flat_b = [np.ascontiguousarray(side.transpose(order)).reshape(-1) for side in (a, b)]
    is_float = bool({a.dtype.kind, b.dtype.kind} & set("fVc"))
    if flat_a.size and same_bits(flat_a, flat_b) and (not is_float or _all_finite(flat_a)):
        return _no_errors(flat_a, a.shape, is_float)
    sums = _Sums()
    for start in range(0, flat_a.size, _BLOCK):
        sums.add(start, flat_a[start : start + _BLOCK], flat_b[start : start + _BLOCK])
    rms = sqrt(sums.squares_a / sums.used) if sums.used else 0.0
    index = sums.first_misplaced if sums.first_misplaced >= 0 else sums.worst_at
    max_rel: float | None = 0.0 if sums.used else None
    if sums.worst > 0:
        max_rel = _largest_relative(flat_a, flat_b, _SMALL * rms)
    norms = sqrt(sums.squares_a) * sqrt(sums.squares_b)
    return Errors(
        max_abs=sums.worst,
        mean_abs=sums.total / sums.used if sums.used else 0.0,
        max_rel=max_rel,
        max_ulp=_most_ulps(flat_a, flat_b) if is_float and sums.worst > 0 else (0 if is_float else None),
        cosine=max(-1.0, min(1.0, sums.product / norms)) if is_float and norms else None,
        relative=sums.worst / sums.largest_a if sums.largest_a else None,
        nan_a=sums.nan_a,
        nan_b=sums.nan_b,
        inf_a=sums.inf_a,
        inf_b=sums.inf_b,
        different=sums.different,
        misplaced=sums.misplaced,
        elements=flat_a.size,
        at=_place(index, a.shape, order) if flat_a.size else (),
        value_a=float(_wide(flat_a[index : index + 1])[0]) if flat_a.size else 0.0,
        value_b=float(_wide(flat_b[index : index + 1])[0]) if flat_a.size else 0.0,
    )


def _all_finite(flat: Array) -> bool:
    """Return True if all elements of an array of floating-point numbers are finite."""
    wide = _plain(flat)
    with np.errstate(over="ignore", invalid="ignore"):
        return isfinite(abs(np.dot(wide, wide))) or bool(np.isfinite(wide).all())


def _place(index: int, shape: tuple[int, ...], order: Sequence[int]) -> tuple[int, ...]:
    """Return the index of an element for its number in an array whose dimensions are in another order."""
    found = np.unravel_index(index, [shape[axis] for axis in order])
    return tuple(int(found[order.index(axis)]) for axis in range(len(shape)))


def _no_errors(flat: Array, shape: tuple[int, ...], is_float: bool) -> Errors:
    """Return the errors of an array without NaN and infinity that equals another bit by bit."""
    first = float(_wide(flat[:1])[0])
    has_elements = bool(flat.any()) if flat.dtype.kind != "O" else True
    return Errors(
        max_abs=0.0,
        mean_abs=0.0,
        max_rel=0.0,
        max_ulp=0 if is_float else None,
        cosine=1.0 if is_float and has_elements else None,
        relative=0.0 if has_elements else None,
        nan_a=0,
        nan_b=0,
        inf_a=0,
        inf_b=0,
        different=0,
        misplaced=0,
        elements=flat.size,
        at=(0,) * len(shape),
        value_a=first,
        value_b=first,
    )


@dataclass(slots=True)
class _Sums:
    """Sums over the blocks of two arrays. ``worst`` is the greatest difference, at the flat index ``worst_at``."""

    worst: float = 0.0
    worst_at: int = 0
    first_misplaced: int = -1
    total: float = 0.0
    used: int = 0
    squares_a: float = 0.0
    squares_b: float = 0.0
    product: float = 0.0
    largest_a: float = 0.0
    nan_a: int = 0
    nan_b: int = 0
    inf_a: int = 0
    inf_b: int = 0
    different: int = 0
    misplaced: int = 0

    def add(self, start: int, a: Array, b: Array) -> None:
        """Add a block that begins at the flat index ``start``."""
        # Differences of float32 numbers that are close to each other are exact in float32, and twice as fast.
        narrow = a.dtype == b.dtype == np.float32
        x, y = (a, b) if narrow else (_wide(a), _wide(b))
        with np.errstate(invalid="ignore", over="ignore"):
            gaps = y - x
            np.abs(gaps, out=gaps)
            total = float(gaps.sum())
        positions: Array | None = None
        if not isfinite(total):
            positions = self._add_not_finite(start, x, y)
            x, y = _wide(x[positions]), _wide(y[positions])
            gaps = np.abs(y - x)
            total = float(gaps.sum())
        if not x.size:
            return
        largest = float(gaps.max())
        if largest > self.worst:
            place = int(gaps.argmax())
            self.worst, self.worst_at = largest, start + (place if positions is None else int(positions[place]))
        self.used += x.size
        self.total += total
        self.different += gaps.size - int(np.count_nonzero(gaps == 0)) if largest else 0
        self.largest_a = max(self.largest_a, float(x.max()), -float(x.min()))
        with np.errstate(over="ignore"):
            squares = float(np.dot(x, x)) if narrow else float(x @ x)
        if not isfinite(squares):
            x, y, narrow = _wide(x), _wide(y), False
            squares = float(x @ x)
        self.squares_a += squares
        self.squares_b += float(np.dot(y, y)) if largest else squares
        self.product += float(np.dot(x, y)) if largest else squares

    def _add_not_finite(self, start: int, x: Array, y: Array) -> Array:
        """Count the elements that are not finite; return the positions of those that are finite in both blocks."""
        nans = np.isnan(x), np.isnan(y)
        finite = np.isfinite(x), np.isfinite(y)
        self.nan_a, self.nan_b = self.nan_a + int(nans[0].sum()), self.nan_b + int(nans[1].sum())
        self.inf_a += int((~finite[0] & ~nans[0]).sum())
        self.inf_b += int((~finite[1] & ~nans[1]).sum())
        both = finite[0] & finite[1]
        wrong = ~both & ~((x == y) | (nans[0] & nans[1]))
        count = int(wrong.sum())
        self.misplaced += count
        self.different += count
        if count and self.first_misplaced < 0:
            self.first_misplaced = start + int(wrong.argmax())
        return np.flatnonzero(both)


def _wide(array: Array) -> Array:
    """Return the elements as float64; of complex numbers the magnitude, of text a number for each different word."""
    if array.dtype.kind in "OUS":
        return np.array([zlib.crc32(str(word).encode()) for word in array], np.float64)
    return np.abs(array).astype(np.float64) if array.dtype.kind == "c" else array.astype(np.float64)


def _most_ulps(flat_a: Array, flat_b: Array) -> int:
    """Return the greatest number of representable numbers from a finite element of a to that of b, in b's type."""
    dtype = flat_b.dtype
    if dtype.itemsize not in (2, 4, 8) or dtype.kind == "c":
        return 0
    bits, most = np.dtype(f"i{dtype.itemsize}"), 0.0
    for start in range(0, flat_a.size, _BLOCK):
        a, b = flat_a[start : start + _BLOCK], flat_b[start : start + _BLOCK]
        with np.errstate(over="ignore", invalid="ignore"):
            a = a if a.dtype == dtype else a.astype(dtype)
            finite = np.isfinite(_plain(a)) & np.isfinite(_plain(b))
        x, y = a.view(bits), b.view(bits)
        if not finite.all():
            x, y = x[finite], y[finite]
        if not x.size:
            continue
        signs = x ^ y
        if signs.min() < 0:  # from x down to zero, and from zero to y
            crossing = signs < 0
            magnitudes = [(part[crossing] & np.iinfo(bits).max).astype(np.float64) for part in (x, y)]
            most = max(most, float((magnitudes[0] + magnitudes[1]).max()))
            x, y = x[~crossing], y[~crossing]
        if x.size:
            steps = x - y  # of one sign, so that this does not overflow
            most = max(most, float(steps.max()), -float(steps.min()))
    return int(most)


def _plain(array: Array) -> Array:
    """Return an array that NumPy's own functions take: bfloat16 is widened."""
    return array.astype(np.float32) if array.dtype.kind == "V" else array


def _largest_relative(flat_a: Array, flat_b: Array, floor: float) -> float | None:
    """Return the greatest difference relative to ``|a|``, or to ``floor`` where that is larger, of finite elements."""
    largest, floor = None, max(floor, float(np.finfo(np.float32).tiny))
    narrow = flat_a.dtype == flat_b.dtype == np.float32
    for start in range(0, flat_a.size, _BLOCK):
        x, y = flat_a[start : start + _BLOCK], flat_b[start : start + _BLOCK]
        if not narrow:
            x, y = _wide(x), _wide(y)
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            ratios = y - x
            np.abs(ratios, out=ratios)
            ratios /= np.maximum(np.abs(x), floor)
        most = float(ratios.max())
        if not isfinite(most):
            ratios = ratios[np.isfinite(ratios)]
            most = float(ratios.max()) if ratios.size else 0.0
        largest = max(largest or 0.0, most)
    return largest


def error_histogram(a: Array, b: Array) -> dict[str, Any]:
    """Return how many finite absolute differences are in each half decade; those that are zero are left out.

    Returns:
        ``edges``: powers of ten, from smallest to largest; ``counts``: one fewer. The first and the last bin also
        count what is beyond them.
    """
    counts = np.zeros(len(_EDGES) - 1, np.int64)
    flat_a, flat_b = a.reshape(-1), b.reshape(-1)
    for start in range(0, flat_a.size, _BLOCK):
        gaps = np.abs(_wide(flat_b[start : start + _BLOCK]) - _wide(flat_a[start : start + _BLOCK]))
        powers = np.log10(gaps[np.isfinite(gaps) & (gaps > 0)])
        counts += np.histogram(np.clip(powers, _EDGES[0], _EDGES[-1]), _EDGES)[0]
    return {"edges": list(_EDGES), "counts": counts.tolist()}


def difference_picture(a: Array, b: Array) -> dict[str, Any] | None:
    """Return the differences as a small grey picture of the last two dimensions; None for fewer than two dimensions.

    A pixel is the greatest absolute difference of the elements that it stands for, over all other dimensions; 255 is
    the greatest of all, or an element that is not finite in one array only.
    """
    if a.ndim < 2 or not a.size:
        return None
    height, width = a.shape[-2:]
    plane = np.zeros((height, width))
    for x, y in zip(a.reshape(-1, height, width), b.reshape(-1, height, width)):
        wide_x, wide_y = _wide(x.reshape(-1)), _wide(y.reshape(-1))
        with np.errstate(invalid="ignore"):
            gaps = np.abs(wide_y - wide_x)
        gaps[(wide_x == wide_y) | (np.isnan(wide_x) & np.isnan(wide_y))] = 0
        np.maximum(plane, np.nan_to_num(gaps, nan=np.inf, posinf=np.inf).reshape(height, width), out=plane)
    for axis, size in ((0, height), (1, width)):
        if size > _PICTURE:
            starts = np.arange(_PICTURE) * size // _PICTURE
            plane = np.maximum.reduceat(plane, starts, axis=axis)
    finite = plane[np.isfinite(plane)]
    scale = float(finite.max()) if finite.size else 0.0
    pixels = np.where(np.isfinite(plane), 255 * plane / (scale or 1.0), 255).astype(np.uint8)
    height, width = pixels.shape
    return {"width": width, "height": height, "scale": scale, "pixels": base64.b64encode(pixels.tobytes()).decode()}
