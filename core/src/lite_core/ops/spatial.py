"""Windows that slide over spatial axes: arithmetic shared by convolutions and pools.

A window of ``kernel`` taps, ``dilation`` apart, starts at every ``stride``-th position of an input with
``begin`` elements of padding before it and ``end`` after it. Tap ``t`` of window ``o`` reads the input at
``o * stride + t * dilation - begin``. :meth:`WindowAxis.taps` turns this into pairs of slices, so that
references loop over the few taps of a kernel, NumPy loops over everything else, and padding is never copied.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from lite_core.ir import Array, Dim, Shape
from lite_core.ops.inference import fail
from lite_core.ops.registry import choice, optional

__all__ = [
    "AUTO_PAD",
    "WINDOW_ATTRIBUTES",
    "WindowAttributes",
    "WindowAxis",
    "after",
    "check_kernel",
    "elements_in_windows",
    "split_padding",
    "taps",
    "window_axes",
    "window_counts",
]

AUTO_PAD = choice("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")

#: The attributes of every convolution and pool, apart from those of the kernel.
WINDOW_ATTRIBUTES: dict[str, Any] = {
    "auto_pad": AUTO_PAD,
    "dilations": optional("ints"),
    "pads": optional("ints"),
    "strides": optional("ints"),
}


@dataclass(frozen=True, slots=True)
class WindowAttributes:
    """The attributes of :data:`WINDOW_ATTRIBUTES`, one entry per spatial axis, defaults filled in."""

    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    #: Elements before and after; zeros unless ``auto_pad`` is NOTSET, because other modes compute the padding.
    pads: tuple[tuple[int, int], ...]
    auto_pad: str

    @staticmethod
    def read(attributes: Mapping[str, Any], rank: int) -> WindowAttributes:
        """Read the attributes of a node with ``rank`` spatial axes.

        Raises:
            GraphError: a list has the wrong length, a stride or dilation is below 1, or a pad below 0.
        """
        strides = _per_axis(attributes, "strides", rank, 1, lowest=1)
        dilations = _per_axis(attributes, "dilations", rank, 1, lowest=1)
        auto_pad = attributes.get("auto_pad") or "NOTSET"
        pads = _per_axis(attributes, "pads", 2 * rank, 0, lowest=0)
        if auto_pad != "NOTSET":
            pads = (0,) * (2 * rank)
        return WindowAttributes(strides, dilations, tuple(zip(pads[:rank], pads[rank:])), auto_pad)


def _per_axis(attributes: Mapping[str, Any], name: str, length: int, default: int, *, lowest: int) -> tuple[int, ...]:
    given: tuple[int, ...] | None = attributes.get(name)
    if given is None:
        return (default,) * length
    if len(given) != length:
        spatial = length // 2 if name == "pads" else length
        raise fail(f"{name} {list(given)} must have {length} elements for {spatial} spatial axes")
    if any(g < lowest for g in given):
        raise fail(f"{name} {list(given)} must all be at least {lowest}")
    return given


def after(count: int, *rest: Any) -> tuple[Any, ...]:
    """Return an index that takes all of the first ``count`` axes and ``rest`` of the following axes."""
    return (slice(None),) * count + rest


def check_kernel(kernel: Sequence[Dim]) -> None:
    """Raise GraphError if the kernel has no taps along some axis, or no axes."""
    if not kernel or any(isinstance(k, int) and k < 1 for k in kernel):
        raise fail(f"kernel_shape {list(kernel)} must have one size of at least 1 for each spatial axis")


def window_counts(
    window: WindowAttributes, kernel: Sequence[Dim], sizes: Sequence[Dim], ceil_mode: bool = False
) -> Shape:
    """Return the number of windows along each spatial axis, which is the spatial shape of the output.

    Args:
        window: strides, dilations and pads.
        kernel: taps along each axis.
        sizes: the input's spatial shape; both may be symbolic.
        ceil_mode: also count a last window that extends beyond the padded input.

    Raises:
        GraphError: the kernel is larger than the padded input.
    """
    counts: list[Dim] = []
    for axis, (size, taps_, stride, dilation, (begin, end)) in enumerate(
        zip(sizes, kernel, window.strides, window.dilations, window.pads)
    ):
        if window.auto_pad.startswith("SAME"):
            counts.append((size + stride - 1) // stride)
            continue
        extent = (taps_ - 1) * dilation + 1
        last_start = size + begin + end - extent
        # NOTE: ONNX's text gives VALID another formula, in which ceil_mode has no effect. This function treats
        # VALID as pads of zero, like ONNX's shape inference and ONNX Runtime.
        if ceil_mode:
            # The last window may extend beyond the padding, but must not start in the padding on the right.
            overhang, in_padding = end - extent + stride - 1, -1
            if isinstance(overhang, int):
                last_start = size + begin + min(overhang, in_padding)
        count = last_start // stride + 1
        if isinstance(count, int) and count < 1:
            raise fail(
                f"kernel of {taps_} (dilation {dilation}) spans {extent} elements of spatial axis {axis}, "
                f"the padded input has {size + begin + end} (size {size}, pads {begin} and {end})"
            )
        counts.append(count)
    return tuple(counts)


def split_padding(total: int, auto_pad: str) -> tuple[int, int]:
    """Split padding into both sides; the odd element goes to the end for SAME_UPPER, else to the beginning."""
    total = max(total, 0)
    small, large = total // 2, total - total // 2
    return (small, large) if auto_pad == "SAME_UPPER" else (large, small)


@dataclass(frozen=True, slots=True)
class WindowAxis:
    """All windows along one spatial axis of known size."""

    kernel: int
    stride: int
    dilation: int
    #: Elements of padding before the input; negative when the first window starts inside.
    begin: int
    end: int
    #: Elements of the input.
    size: int
    #: Number of windows, the size of the output.
    count: int

    @property
    def extent(self) -> int:
        """Elements from the first to the last tap of a window."""
        return (self.kernel - 1) * self.dilation + 1

    @property
    def fitting_end(self) -> int:
        """Elements of padding after the input with which the last window ends exactly where the padded input ends.

        Libraries that count windows themselves get the right count with it. It is larger than ``end`` if ``ceil_mode``
        adds a window that extends beyond the padding, and smaller, perhaps negative, if the stride leaves elements that
        no window reads.
        """
        return (self.count - 1) * self.stride + self.extent - self.size - self.begin

    def taps(self) -> Iterator[tuple[slice, slice]]:
        """Yield for each tap the windows in which it reads the input, and the input elements that it reads."""
        for tap in range(self.kernel):
            shift = tap * self.dilation - self.begin
            first = max(0, -(shift // self.stride))
            last = min(self.count - 1, (self.size - 1 - shift) // self.stride)
            if last < first:
                yield slice(0, 0), slice(0, 0)
            else:
                start = first * self.stride + shift
                stop = last * self.stride + shift + 1
                yield slice(first, last + 1), slice(start, stop, self.stride)

    def part(self, first: int, stop: int) -> WindowAxis:
        """Return only the windows from ``first`` up to but excluding ``stop``."""
        return WindowAxis(
            self.kernel,
            self.stride,
            self.dilation,
            self.begin - first * self.stride,
            self.end,
            self.size,
            stop - first,
        )


def window_axes(
    window: WindowAttributes, kernel: Sequence[int], sizes: Sequence[int], ceil_mode: bool = False
) -> tuple[WindowAxis, ...]:
    """Return the windows along each axis of an input of known size, with ``auto_pad`` resolved."""
    axes = []
    counts = window_counts(window, kernel, sizes, ceil_mode)
    for count, size, taps_, stride, dilation, (begin, end) in zip(
        counts, sizes, kernel, window.strides, window.dilations, window.pads
    ):
        assert isinstance(count, int)
        if window.auto_pad.startswith("SAME"):
            total = (count - 1) * stride + (taps_ - 1) * dilation + 1 - size
            begin, end = split_padding(total, window.auto_pad)
        axes.append(WindowAxis(taps_, stride, dilation, begin, end, size, count))
    return tuple(axes)


def taps(
    axes: Sequence[WindowAxis],
) -> Iterator[tuple[tuple[int, ...], tuple[slice, ...], tuple[slice, ...]]]:
    """Yield each tap of a kernel in row-major order: its index, the windows that use it, the elements it reads."""
    for combination in product(*(list(enumerate(axis.taps())) for axis in axes)):
        index = tuple(tap for tap, _ in combination)
        yield index, tuple(o for _, (o, _) in combination), tuple(i for _, (_, i) in combination)


def elements_in_windows(axes: Sequence[WindowAxis], include_padding: bool) -> Array:
    """Return how many elements each window averages, int64[*windows]: the divisors of AveragePool.

    Args:
        axes: the windows along each axis.
        include_padding: also count the padding (``count_include_pad``). Elements beyond the padding, in a last window
            of ``ceil_mode``, never count.
    """
    total = np.ones((), dtype=np.int64)
    for axis in axes:
        starts = np.arange(axis.count) * axis.stride - axis.begin
        positions = starts[:, None] + np.arange(axis.kernel) * axis.dilation
        low, high = (-axis.begin, axis.size + axis.end) if include_padding else (0, axis.size)
        total = total[..., None] * np.count_nonzero((positions >= low) & (positions < high), axis=1)
    return total
