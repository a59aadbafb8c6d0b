"""Weights of convolutions, packed in the order in which kernels read them."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from lite_compiler.fusion import Group
from lite_compiler.tensors import dense_strides
from lite_core.ir import DType
from lite_opencl.lowering.context import Lowering
from lite_opencl.tensors import Tensor

__all__ = ["Filters", "filters_of"]

Array = np.ndarray[Any, Any]


class _Slice(NamedTuple):
    """A selection of taps along an axis."""

    first: int
    taps: int
    step: int


@dataclass(frozen=True)
class Filters:
    """Weights as [groups, output channels, input channels, depth, height, width], with the channels of one group.

    Attributes:
        shape: the sizes of all six dimensions.
        array: the elements if they are known before the run, as a view of ``source``.
        source: the constant; packed weights are found again by its identity.
        tensor: the weights if they are computed in the run, strided.
        slices: the selected taps of the last three dimensions, part of the key of packed weights.
    """

    shape: tuple[int, ...]
    array: Array | None
    source: Array | None
    tensor: Tensor | None
    slices: tuple[_Slice, ...] = ()

    def take(self, axis: int, first: int, count: int, step: int) -> Filters:
        """Return some of the taps along one of the last three dimensions, which are counted from 0."""
        part = _Slice(first, count, step)
        dimension = 3 + axis
        stop = first + (count - 1) * step + 1 if count else first
        index = (slice(None),) * dimension + (slice(first, stop, step),)
        return replace(
            self,
            shape=(*self.shape[:dimension], count, *self.shape[dimension + 1 :]),
            array=None if self.array is None else self.array[index],
            tensor=None if self.tensor is None else self.tensor.slice(dimension, first, count, step),
            slices=(*self.slices, part),
        )

    def panels(self, lowering: Lowering, rows: int, dtype: DType) -> Tensor:
        """Return blocks of ``rows`` output channels as [groups, blocks, input channels, taps, rows], padded with zeros.

        NOTE: if the weights are computed in the run, the padding is undefined: its results are not stored.
        """
        if self.array is not None and self.source is not None:
            array = self.array
            return self.uploaded(lowering, ("panels", rows, dtype), lambda: pack_panels(array, rows, dtype))
        assert self.tensor is not None
        groups, outputs, *rest = self.shape
        blocks, remainder = -(-outputs // rows), outputs % rows
        packed = lowering.allocate((groups, blocks, *rest, rows), self.tensor.dtype)
        whole = outputs // rows
        for first, count, height in ((0, whole, rows), (whole, 1, remainder)):
            if count and height:
                part = self.tensor.slice(1, first * rows, count * height)
                g, o, *others = part.strides
                view = part.view((groups, count, height, *rest), (g, o * height, o, *others))
                view = view.permute((0, 1, 3, 4, 5, 6, 2))
                lowering.copy(view, packed.slice(1, first, count).slice(6, 0, height))
        return packed

    def uploaded(self, lowering: Lowering, key: tuple[Hashable, ...], make: Any) -> Tensor:
        """Return the upload of the result of ``make``, which packs known weights; it is called once."""
        assert self.source is not None
        return lowering.constant(("filters", *key, self.shape, self.slices), [self.source], make)


def filters_of(lowering: Lowering, group: Group, *, transposed: bool = False) -> Filters:
    """Return the weights of a group's head, its second input."""
    value, groups = group.input(1), int(group.attributes["group"])
    first, second, *kernel = value.shape
    spatial = [1] * (3 - len(kernel)) + list(kernel)
    shape = (groups, first // groups, second, *spatial)
    order = (0, 2, 1, 3, 4, 5) if transposed else (0, 1, 2, 3, 4, 5)
    source = lowering.known(value)
    key = ("transposed",) if transposed else ()
    if source is not None:
        array = source.reshape(shape).transpose(order)
        return Filters(array.shape, array, source, None, slices=tuple(_Slice(0, 0, 0) for _ in key))
    dense = lowering.dense(lowering.tensor(value))
    tensor = dense.view(shape, dense_strides(shape)).permute(order)
    return Filters(tensor.shape, None, None, tensor)


def pack_panels(weights: Array, rows: int, dtype: DType) -> Array:
    """Pack weights [groups, outputs, inputs, ...taps] as [groups, blocks, inputs, taps, rows], padded with zeros."""
    groups, outputs, inputs = weights.shape[:3]
    blocks = -(-outputs // rows)
    taps = int(np.prod(weights.shape[3:]))
    matrix = np.zeros((groups, blocks * rows, inputs, taps), dtype.numpy)
    matrix[:, :outputs] = weights.reshape(groups, outputs, inputs, taps)
    panels = matrix.reshape(groups, blocks, rows, *matrix.shape[2:])
    return np.ascontiguousarray(panels.transpose(0, 1, 3, 4, 2))
