"""The weights of convolutions, constant or computed by the run, and their packed forms."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from lite_core.ir import DType, Node, PanelLayout
from lite_cpu.dot_panels import DotPanels, Matrices, pack_halves, pack_pairs, unit_of_halves
from lite_cpu.kernels.bfloat16_pairs import group_of_pairs
from lite_cpu.kernels.half_products import with_lanes_of_halves
from lite_cpu.kernels.tiles import gemm_tile, pack_columns
from lite_cpu.lowering.context import Lowering
from lite_cpu.lowering.packing import pack_at_run_time
from lite_cpu.lowering.weights import Recipe
from lite_cpu.lowering.window import as_image
from lite_cpu.panel_preparation import prepare_panels
from lite_cpu.tensors import Tensor

__all__ = ["Filters", "filters_of"]

Array = np.ndarray[Any, Any]

#: Order of the dimensions of filters in matrices [groups, height * width * depth, columns].
_MATRIX_ORDER = (0, 3, 4, 2, 1)


@dataclass(frozen=True, slots=True)
class Filters:
    """Weights [groups, columns, depth, height, width].

    Attributes:
        view: the tensor of the weights.
        source: the constant that ``view`` is a view of; None if the weights are computed by the run.
    """

    view: Tensor
    source: Array | None
    # Not an argument of __init__: replace() creates another view and must not copy the packed weights.
    _packed: dict[Hashable, Tensor] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def elements(self) -> Array | None:
        """The weights as an array if they are known before the run, else None."""
        if self.source is None:
            return None
        if not self.view.size:
            return np.zeros(self.view.shape, self.source.dtype)
        strides = [s * self.source.itemsize for s in self.view.strides]
        memory = np.ascontiguousarray(self.source)
        elements: Array = np.ndarray(self.view.shape, self.source.dtype, memory, self.view.byte_offset, strides)
        return elements

    def packed(
        self, lowering: Lowering, key: Hashable, pack: Callable[[Array], Array], recipe: Recipe | None = None
    ) -> Tensor:
        """Return known weights packed by ``pack``, which is called once in the process for the same ``key``."""
        found = self._packed.get(key)
        if found is None:
            elements, source = self.elements, self.source
            assert elements is not None
            assert source is not None
            view = (self.view.shape, self.view.strides, self.view.offset)
            found = self._packed[key] = lowering.packed((key, view), [source], lambda: pack(elements), recipe)
        return found

    def _transposition(self) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
        """Return the dimensions of the whole constant and their order in matrices; None if the view is a part of it."""
        dims = sorted(range(5), key=lambda d: (self.view.shape[d] > 1, -self.view.strides[d]))
        split = tuple(self.view.shape[d] for d in dims)
        dense = all(self.view.strides[d] == prod(split[i + 1 :]) for i, d in enumerate(dims) if split[i] > 1)
        if self.source is None or not dense or self.view.offset or prod(split) != self.source.size or not prod(split):
            return None
        return split, tuple(dims.index(d) for d in _MATRIX_ORDER)

    def layout(self, lanes: int, vectors: int) -> PanelLayout | None:
        """Return the layout of :meth:`panels` if the view is a transposition of the whole constant, else None."""
        found = self._transposition()
        if found is None:
            return None
        (split, order), (groups, columns) = found, self.view.shape[:2]
        return PanelLayout(split, order, prod(split) // (groups * columns), columns, lanes * vectors, lanes)

    def panels(self, lowering: Lowering) -> Tensor:
        """Return the matrices [groups, height * width * depth, columns] packed into panels [groups, n].

        See :func:`~lite_cpu.kernels.tiles.pack_panels`.
        """
        groups, columns = self.view.shape[:2]
        if self.source is None:
            depth = self.view.size // max(1, groups * columns)
            matrices = lowering.dense(self.view.permute(_MATRIX_ORDER)).reshape((groups, depth, columns))
            assert matrices is not None
            return pack_at_run_time(lowering, matrices)
        lanes, (_, vectors) = lowering.machine.lanes(), gemm_tile(lowering.machine)

        def pack(elements: Array) -> Array:
            depth = elements.size // max(1, groups * columns)
            if elements.shape[3:] == (1, 1):
                return prepare_panels(lowering.library, elements[:, :, :, 0, 0].transpose(0, 2, 1))

            def matrices_of(part: slice) -> Array:
                matrices: Array = elements[:, part].transpose(_MATRIX_ORDER)
                return matrices.reshape(groups, depth, part.stop - part.start)

            return pack_columns(matrices_of, (groups, depth, columns), lanes, vectors)

        return self.packed(lowering, ("panels", lanes, vectors), pack, self.layout(lanes, vectors))

    def pairs(self, lowering: Lowering) -> Tensor:
        """Return the known weights as panels of pairs of bfloat16 [groups, n]; a run of pairs is a pixel.

        See :func:`~lite_cpu.dot_panels.pack_pairs`.
        """
        lanes, (_, vectors) = lowering.machine.lanes(), gemm_tile(lowering.machine)
        shape, found = self._matrices_shape, self._transposition()
        group, layout = group_of_pairs(lowering.machine, shape[2]), None
        if found is not None:
            layout = DotPanels(Matrices(*found, shape, ()), DType.BFLOAT16, group, lanes, vectors)

        def pack(elements: Array) -> Array:
            return pack_pairs(elements.transpose(_MATRIX_ORDER).reshape(shape), lanes, vectors, group)

        return self.packed(lowering, ("bfloat16 panels", lanes, vectors, group), pack, layout)

    def halves(self, lowering: Lowering) -> Tensor:
        """Return the known weights, divided by :meth:`unit`, as panels of float16 [groups, n].

        See :func:`~lite_cpu.dot_panels.pack_halves`.
        """
        machine, shape, found = with_lanes_of_halves(lowering.machine), self._matrices_shape, self._transposition()
        lanes, (_, vectors) = machine.lanes(), gemm_tile(machine)
        layout = None
        if found is not None:
            layout = DotPanels(Matrices(*found, shape, ()), DType.FLOAT16, 1, lanes, vectors)

        def pack(elements: Array) -> Array:
            matrices = elements.transpose(_MATRIX_ORDER).reshape(shape)
            return pack_halves(matrices, unit_of_halves(matrices), lanes, vectors)

        return self.packed(lowering, ("float16 panels", lanes, vectors), pack, layout)

    def unit(self, lowering: Lowering) -> float:
        """Return the unit of :meth:`halves`."""
        elements, view = self.elements, (self.view.shape, self.view.strides, self.view.offset)
        assert elements is not None

        def find() -> float:
            return unit_of_halves(elements.transpose(_MATRIX_ORDER).reshape(self._matrices_shape))

        return lowering.cache.get_or_make(("unit", id(self.source), view), find)

    @property
    def _matrices_shape(self) -> tuple[int, int, int, int]:
        """The shape of the matrices: groups, pixels, depth, columns."""
        groups, columns, depth, height, width = self.view.shape
        return groups, height * width, depth, columns


def filters_of(lowering: Lowering, node: Node, groups: int, *, transposed: bool = False) -> Filters:
    """Return the weights of a convolution with one or two spatial dimensions.

    Args:
        lowering: the lowering context.
        node: the convolution; its second input is [columns, depth / groups, ...window].
        groups: number of groups of channels.
        transposed: True if the second input is [depth, columns / groups, ...window].
    """
    value = node.inputs[1]
    assert value is not None

    def find() -> Filters:
        tensor = as_image(lowering.tensor(value))
        first, second, *window = tensor.shape
        view = tensor.reshape((groups, first // groups, second, *window))
        if view is None:
            view = lowering.dense(tensor).reshape((groups, first // groups, second, *window))
        assert view is not None
        return Filters(view.permute((0, 2, 1, 3, 4)) if transposed else view, lowering.known(value))

    return lowering.cached(node, ("filters", groups, transposed), find)
